//! Reading and writing arrays of a file without waiting for it.

use super::RawFile;
use crate::comm::{Comm, Unready};
use crate::error::Error;
use crate::request::{Request, Room, stage};
use hyperslab_collective::{Holding, LocalArray, Report};
use hyperslab_layout::{Casting, ElementType, Section};
use hyperslab_world::{Fault, FaultKind};
use std::sync::atomic::Ordering;

impl RawFile {
    /// As [`RawFile::write`], but returns at once; see [`Store::write_later`](crate::Store::write_later).
    pub fn write_later(
        &self,
        mut arrays: Vec<(String, Vec<LocalArray>)>,
        holding: Holding,
        element: Option<ElementType>,
        section: Option<Section>,
        staged: bool,
        casting: Casting,
    ) -> Request {
        let staging = arrays.iter_mut().map(|(name, parts)| (name.as_str(), parts, &holding));
        match stage(&self.comm, &self.options.wish, staged, staging) {
            Ok(room) => {
                let mut file = self.with_room(&room);
                self.comm.leave_numbered(self.target, Some(&room), |number| {
                    self.last_write.fetch_max(number, Ordering::Relaxed);
                    move |comm: &Comm| {
                        file.comm = comm.clone();
                        let written = file.write(&arrays, &holding, element, section.as_ref(), casting);
                        written.map(|report| (Vec::new(), report))
                    }
                })
            }
            Err(fault) => {
                let names: Vec<&str> = arrays.iter().map(|a| a.0.as_str()).collect();
                let what = format!("write of {} to '{}'", crate::zarr::listed(&names), self.path().display());
                self.comm.refuse_later(self.target, what, fault)
            }
        }
    }

    /// Reads an array, or a section of it, by this rank alone, all of it into one local array. Local: no other rank need do
    /// the same, and it waits for no request; so a file that one of this program's writes is refused.
    ///
    /// # Errors
    /// This rank's own.
    pub fn read_local(
        &self,
        name: &str,
        section: Option<&Section>,
        into: Option<Vec<LocalArray>>,
        casting: Casting,
    ) -> Result<(Vec<LocalArray>, Report), Error> {
        self.comm.line().check_process()?;
        if self.comm.line().is_under_way(self.last_write.load(Ordering::Relaxed)) {
            let text = format!("'{}' is being written by a request that is under way", self.path().display());
            let hint = "wait for the request before you read the file";
            return Err(Fault::new(FaultKind::Invalid, text)
                .about(self.path().display().to_string())
                .hint(hint)
                .into());
        }
        self.alone.run(&self.comm, &self.options, |comm| {
            let file = RawFile { comm: comm.clone(), ..self.clone() };
            file.read(&[name], None, section, into, casting)
        })
    }

    /// A request that fails on all ranks, since this one cannot make its call.
    pub fn attend_later(&self, what: &str, why: Unready) -> Request {
        self.comm.attend_later(self.target, what, why)
    }

    /// As [`RawFile::read`], but returns at once; see [`Store::read_later`](crate::Store::read_later).
    pub fn read_later(
        &self,
        names: Vec<String>,
        holding: Option<Holding>,
        section: Option<Section>,
        into: Option<Vec<LocalArray>>,
        casting: Casting,
    ) -> Request {
        let wish = stage(&self.comm, &self.options.wish, false, std::iter::empty());
        let room = wish.expect("without copies nothing can fail");
        let mut file = self.with_room(&room);
        self.comm.leave(self.target, Some(&room), move |comm| {
            file.comm = comm.clone();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            file.read(&names, holding.as_ref(), section.as_ref(), into, casting)
        })
    }

    fn with_room(&self, room: &Room) -> RawFile {
        let mut file = self.clone();
        file.options.wish = room.wish.clone();
        file.held = room.held;
        file
    }
}
