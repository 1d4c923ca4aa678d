//! Reading and writing arrays of a file without waiting for it.

use super::File;
use crate::alone::listed::WantedElements;
use crate::alone::resting::{FindChunks, Resting};
use crate::alone::sight::{Sight, WantedSection};
use crate::apart::RankMounts;
use crate::array_write::{ArrayWrite, completed, staging};
use crate::error::Error;
use crate::mode::Mode;
use crate::options::{ReadOptions, WriteOptions};
use crate::queued::{Destination, QueuedWrite, said};
use crate::request::{Request, Room, stage};
use crate::selection::Sections;
use crate::unready::Unready;
use hyperslab_collective::{LocalArray, Report};
use hyperslab_layout::Section;
use hyperslab_plan::{Preference, Strategy};
use hyperslab_world::{Fault, FaultKind};
use std::sync::atomic::Ordering;

impl Destination for File {
    fn is_same(&self, other: &File) -> bool {
        fn room(of: &File) -> (u64, &Preference) {
            (of.held, &of.options.preference)
        }
        self.target == other.target && room(self) == room(other)
    }
}

impl File {
    /// As [`File::write`], but returns at once; see [`Store::write_later`](crate::Store::write_later).
    pub fn write_later(&self, asks: Vec<ArrayWrite>, options: WriteOptions, staged: bool) -> Request {
        let (mut asks, unfit) = completed(asks, self.comm.size());
        let room = match unfit {
            Some(fault) => Err(fault),
            None => stage(&self.comm, &self.options.preference, staged, staging(&mut asks)),
        };
        match room {
            Ok(room) => {
                let to = self.with_room(&room);
                self.comm.leave_task(self.target, Some(&room), |number, comm| {
                    self.last_write.fetch_max(number, Ordering::Relaxed);
                    QueuedWrite { to: File { comm, ..to }, asks, options, under_way: None }
                })
            }
            Err(fault) => self.comm.refuse_later(self.target, said(self, &asks), fault),
        }
    }

    /// Reads an array, a section of it or the pieces that `options` say it holds, by this rank alone. Local: no other rank need do
    /// the same, and it waits for no request; so a file that one of this program's writes is refused.
    ///
    /// # Errors
    /// This rank's own.
    pub fn read_local(&self, name: &str, options: ReadOptions) -> Result<(Vec<LocalArray>, Report), Error> {
        self.check_settled()?;
        self.check_published(name)?;
        self.mounts.check_alone(&format!("read '{name}'"))?;
        self.alone.run(&self.comm, &self.options, |comm| {
            let file = File { comm: comm.clone(), mounts: RankMounts::default(), ..self.clone() };
            file.read(&[name], ReadOptions { holdings: Vec::new(), ..options })
        })
    }

    /// Reads a section of an array of this shape into a memory by this rank alone, if all of it is at rest on this host, few requests
    /// give it, and nothing is unusual; says whether it did. If not, [`File::read_local`] reads it, or says what is wrong. Local.
    pub fn read_at_rest(&self, name: &str, shape: &[u64], section: &Section, into: &LocalArray) -> bool {
        self.at_rest(name, (shape, section), into, &|resting, wanted, find| {
            resting.read(&self.paths(&[name])[0], wanted, || self.sight(name), find)
        })
    }

    /// Reads elements of an array of this shape, by their numbers, into a dense memory, as [`File::read_at_rest`] reads a section. Not where
    /// the user wants to stop. Local.
    pub fn read_elements_at_rest(&self, name: &str, shape: &[u64], numbers: &[u64], into: &LocalArray) -> bool {
        let elements = WantedElements { numbers, stop: &|| self.comm.line().asks_user() };
        self.at_rest(name, (shape, &Section::whole(shape)), into, &|resting, wanted, find| {
            resting.read_elements(&self.paths(&[name])[0], (wanted, &elements), || self.sight(name), find)
        })
    }

    fn at_rest(
        &self,
        name: &str,
        (shape, section): (&[u64], &Section),
        into: &LocalArray,
        read: &dyn Fn(&Resting, &WantedSection, FindChunks) -> bool,
    ) -> bool {
        let Some(hands) = self.comm.hands_at_rest().filter(|_| self.mode == Mode::Read) else { return false };
        let sections = Sections::Same(section.clone());
        let find = |sight: &Sight| {
            let number = self.numbers(&[name]).ok()?;
            self.located(vec![sight.stored.clone()], &number, &sections, (None, false)).ok()?.pop()
        };
        read(&self.alone.resting, &WantedSection { names: &*self.directory, shape, section, into, hands }, &find)
    }

    /// How an array of a file that rests is stored.
    fn sight(&self, name: &str) -> Option<Sight> {
        // A file far away is not asked for: it may not answer.
        let (before, file) =
            if self.directory.is_at_hand() { self.directory.reader(self.object()).ok()?? } else { return None };
        if !before.rests || !self.attempts.is_still_there().ok()? {
            return None;
        }
        let number = self.numbers(&[name]).ok()?[0];
        let stored = self.stored(&[number]).pop()?;
        let looked_up = self.inside().form.lookup(number).is_some();
        Some(Sight {
            stored,
            witness: (self.object().into(), before.state),
            below: String::new(),
            file: Some(file.into()),
            addresses: looked_up.then(Default::default),
        })
    }

    /// Refuses to read alone what requests of this program are writing.
    pub(super) fn check_settled(&self) -> Result<(), Error> {
        self.comm.check_usable()?;
        if self.comm.line().is_under_way(self.last_write.load(Ordering::Relaxed)) {
            let text = format!("'{}' is being written by a request that is under way", self.path().display());
            let hint = "wait for the request; what dedicated servers still write is read by a collective call";
            return Err(Fault::new(FaultKind::Invalid, text)
                .about(self.path().display().to_string())
                .hint(hint)
                .into());
        }
        Ok(())
    }

    /// A request that fails on all ranks, since this one cannot make its call.
    pub fn attend_later(&self, what: &str, why: Unready) -> Request {
        self.comm.attend_later(self.target, what, why)
    }

    /// As [`File::read`], but returns at once; see [`Store::read_later`](crate::Store::read_later).
    pub fn read_later(&self, names: Vec<String>, options: ReadOptions) -> Request {
        let hints = stage(&self.comm, &self.options.preference, false, std::iter::empty());
        let room = hints.expect("without copies nothing can fail");
        let mut file = self.with_room(&room);
        self.comm.leave(self.target, Some(&room), move |comm| {
            file.comm = comm.clone();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            file.read(&names, options)
        })
    }

    /// The same file, with a strategy that is forced.
    pub(super) fn preferring(&self, strategy: Option<Strategy>) -> File {
        let mut file = self.clone();
        file.options.preference.strategy = strategy.or(file.options.preference.strategy);
        file
    }

    fn with_room(&self, room: &Room) -> File {
        let mut file = self.clone();
        file.options.preference = room.hints.clone();
        file.held = room.held;
        file
    }
}
