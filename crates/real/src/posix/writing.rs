//! How the worker writes: to files that are there, and whole objects, straight or over others.

use super::at_hand::Nearness;
use super::coalescing::CoalescingWriter;
use super::files::Files;
use super::pieces::hull;
use super::replacing::replace_by;
use super::written;
use crate::doing::Doing;
use hyperslab_layout::{Durability, Object};
use hyperslab_world::{Fault, Moves, Outcome};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Files {
    /// Writes elements as a whole object.
    pub(super) fn write_whole(
        &mut self,
        object: &Object,
        moves: &Moves,
        checksum: bool,
        how: (bool, Durability),
    ) -> Result<Outcome, Fault> {
        self.whole(object, how, checksum, |writer| {
            writer.whole(moves)?;
            if checksum { writer.checksum() } else { Ok(()) }
        })
    }

    /// Writes bytes as a whole object.
    pub(super) fn put(
        &mut self,
        object: &Object,
        bytes: &[u8],
        replace: bool,
        durability: Durability,
    ) -> Result<Outcome, Fault> {
        self.whole(object, (replace, durability), false, |writer| writer.put(bytes))
    }

    pub(super) fn write(&mut self, object: &Object, moves: &Moves, durability: Durability) -> Result<Outcome, Fault> {
        let path = self.path(object);
        let doing = Doing { verb: "writing", path: &path };
        let opened = self.file(&path, true).map_err(|fault| fault.leaving_unchanged(true));
        let Some(handle) = opened? else { return Ok(Outcome::Absent) };
        let sends_on = self.sends_on(durability);
        let going = sends_on.then_some(&*self.advance);
        let mut writer = CoalescingWriter::new(&handle.file, doing, &mut self.scratch, false).going(going);
        let written = writer.scatter(moves).and_then(|()| writer.flush());
        // Where errors come late, one may tell of what was written before, or of bytes that the cache has taken.
        let tells = !handle.reach.tells_late();
        written.map_err(|fault| fault.leaving_unchanged(tells && !writer.has_taken()))?;
        let (moved, sent) = writer.finish()?;
        if durability > Durability::Cached {
            let parent = path.parent().unwrap_or(Path::new(""));
            if self.written.keep((parent, handle.reach), &path, &handle.file)? {
                self.dirty.insert(path.clone());
            }
        }
        if sends_on {
            self.send_on(&path, &handle.file, hull(moves), (moves.bytes(), sent))?;
        }
        Ok(Outcome::Done(moved))
    }

    /// Writes a whole object: straight, or beside it and then over it by a rename. What shall be durable at once takes its
    /// name when it is ([`Successors`]).
    fn whole(
        &mut self,
        object: &Object,
        (replace, durability): (bool, Durability),
        summed: bool,
        fill: impl FnOnce(&mut CoalescingWriter) -> Result<(), Fault>,
    ) -> Result<Outcome, Fault> {
        let path = self.path(object);
        let doing = Doing { verb: "writing", path: &path };
        let failed = |error: io::Error| doing.failed("", &error);
        let mut new = BTreeSet::new();
        let spot = self.grounds.spot(object, &path, &mut new);
        // Also of a write that fails: who tries again finds them made.
        if durability > Durability::Cached {
            self.new.extend(new);
        }
        let spot = spot.map_err(failed)?;
        let (made, target) = if replace { self.grounds.beside(object, &path) } else { (None, path.clone()) };
        let hidden = made.transpose().map_err(failed)?;
        let file = Arc::new(self.grounds.create(object, &spot, (hidden.as_ref(), &target)).map_err(failed)?);
        let reach = self.ask_about_root(object, &file);
        let sends_on = self.sends_on(durability);
        let going = sends_on.then_some(&*self.advance);
        let of_writer = Doing { verb: "writing", path: &target };
        let mut writer = CoalescingWriter::new(&file, of_writer, &mut self.scratch, summed).going(going);
        let filled = fill(&mut writer).and_then(|()| writer.finish());
        let (moved, sent) = match filled {
            Ok(ended) => ended,
            Err(fault) => {
                let _ = hidden.as_ref().unwrap_or(&spot).unlink();
                return Err(fault);
            }
        };
        if sends_on {
            self.send_on(&path, &file, (0, moved.bytes), (moved.bytes, sent))?;
        }
        if hidden.is_some() && durability == Durability::Now {
            self.believe((object, &target), (durability, reach), file)?;
            self.replacing.wait(object, target, path);
            return Ok(Outcome::Done(moved));
        }
        let held = self.believe((object, &path), (durability, reach), file).inspect_err(|_| {
            let _ = hidden.as_ref().unwrap_or(&spot).unlink();
        });
        held?;
        if let Some(hidden) = &hidden {
            replace_by(hidden, &spot, &doing)?;
        }
        if durability > Durability::Cached {
            self.new.insert(path);
        }
        Ok(Outcome::Done(moved))
    }

    /// Closes a whole object that was written, or keeps it for its sync. What takes the place of another must be believed before,
    /// also where it does not have to be durable.
    fn believe(
        &mut self,
        (object, path): (&Object, &Path),
        (durability, reach): (Durability, Nearness),
        file: Arc<File>,
    ) -> Result<(), Fault> {
        if durability > Durability::Cached {
            let root = self.grounds.at(object).map(PathBuf::from).unwrap_or_default();
            if self.written.keep((&root, reach), path, &file)? {
                self.dirty.insert(path.into());
            }
        }
        written::closed(path, file)
    }
}
