//! Reading and writing arrays of a file without waiting for it.

use super::File;
use crate::comm::Comm;
use crate::error::Error;
use crate::options::{ReadOptions, WriteOptions};
use crate::request::{Request, Room, stage};
use crate::unready::Unready;
use crate::zarr::{ArrayWrite, Destination, QueuedWrite, completed, said, staging};
use hyperslab_collective::{LocalArray, Report};
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

    fn comm(&self) -> &Comm {
        &self.comm
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
        self.alone.run(&self.comm, &self.options, |comm| {
            let file = File { comm: comm.clone(), ..self.clone() };
            file.read(&[name], ReadOptions { holdings: Vec::new(), ..options })
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
