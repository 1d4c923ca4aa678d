//! Reading and writing arrays of a group without waiting for it.

use super::known::Known;
use super::nodes::{place, read_array};
use super::stored::stored_to_read;
use super::{ArrayInfo, Store};
use crate::alone::listed::WantedElements;
use crate::alone::sight::{Sight, WantedSection};
use crate::apart::RankMounts;
use crate::array_write::{ArrayWrite, completed, staging};
use crate::error::Error;
use crate::listing::{Coming, Writes};
use crate::options::{ReadOptions, WriteOptions};
use crate::queued::{Destination, QueuedWrite, said};
use crate::request::{Request, Room, stage};
use crate::unready::Unready;
use hyperslab_collective::{LocalArray, Report};
use hyperslab_format::zarr::{METADATA_KEY, v2};
use hyperslab_layout::Section;
use hyperslab_plan::Preference;
use hyperslab_world::{Fault, FaultKind, Names};

/// Arrays that a write changes, and of those that it makes what they will be, as far as that can be known before.
fn writes(asks: &[ArrayWrite], new: &WriteOptions) -> Writes {
    let makes = |number, ask: &ArrayWrite| match Store::new_metadata(number, ask, new) {
        _ if !new.section.is_whole() => None,
        Ok(_) if new.element.is_none() && ask.element().is_none() => Some(Coming::Untyped),
        made => made.ok().map(|metadata| Coming::Known(Box::new(metadata))),
    };
    asks.iter().enumerate().map(|(number, ask)| (ask.name.clone(), makes(number, ask))).collect()
}

impl Destination for Store {
    fn is_same(&self, other: &Store) -> bool {
        fn room(of: &Store) -> (u64, &Preference) {
            (of.held, &of.options.preference)
        }
        // Groups of a store have its number.
        self.target == other.target && self.group == other.group && room(self) == room(other)
    }
}

impl Store {
    /// The same for a call that the line carries out.
    fn with_room(&self, room: &Room) -> Store {
        let mut store = self.clone();
        store.options.preference = room.hints.clone();
        store.held = room.held;
        store
    }

    /// As [`Store::write`], but returns at once. The arrays must not be changed before [`Request::wait`]; with `staged`
    /// they are copied and may be changed at once. The copies count against the budget of buffers: they share half of
    /// it (a larger one is taken alone, and waits for requests before it), and what remains is for slots.
    pub fn write_later(&self, asks: Vec<ArrayWrite>, new: WriteOptions, staged: bool) -> Request {
        self.forget_known(asks.iter().map(|ask| ask.name.as_str()));
        let (mut asks, unfit) = completed(asks, self.comm.size());
        let nested = asks.iter().find(|ask| ask.name.contains('/')).map(|ask| {
            let text = format!("'{}' is a path, and requests write into an open group", ask.name);
            Fault::new(FaultKind::Unsupported, text).hint("open its group with group(), or write without a request")
        });
        let unfit = unfit.or(nested);
        let room = match unfit {
            Some(fault) => Err(fault),
            None => stage(&self.comm, &self.options.preference, staged, staging(&mut asks)),
        };
        match room {
            Ok(room) => {
                let to = self.with_room(&room);
                self.comm.leave_task(self.target, Some(&room), move |number, comm| {
                    let under_way = to.listing.begin(writes(&asks, &new), number, new.overwrite);
                    QueuedWrite { to: Store { comm, ..to }, asks, options: new, under_way: Some(under_way) }
                })
            }
            Err(fault) => self.comm.refuse_later(self.target, said(self, &asks), fault),
        }
    }

    /// Reads an array, a section of it or the pieces that `options` say it holds, by this rank alone. Local: no other rank need do
    /// the same, and it waits for no request; so an array that one of this program's writes is refused.
    ///
    /// # Errors
    /// This rank's own.
    pub fn read_local(&self, name: &str, options: ReadOptions) -> Result<(Vec<LocalArray>, Report), Error> {
        self.comm.check_usable()?;
        self.check_settled(name)?;
        self.mounts.check_alone(&format!("read '{name}'"))?;
        self.alone.run(&self.comm, &self.options, |comm| {
            let (known, mounts) = (Known::default(), RankMounts::default());
            let store = Store { comm: comm.clone(), ranks: 1, known, mounts, ..self.clone() };
            store.read(&[name], ReadOptions { holdings: Vec::new(), ..options })
        })
    }

    /// Reads a section of an array of this shape into a memory by this rank alone, if all of it is at rest on this host, few requests
    /// give it, and nothing is unusual; says whether it did. If not, [`Store::read_local`] reads it, or says what is wrong. Local.
    pub fn read_at_rest(&self, name: &str, shape: &[u64], section: &Section, into: &LocalArray) -> bool {
        self.at_rest(name, (shape, section), into, &|wanted, names| {
            self.alone.resting.read(&self.seen_as(name), wanted, || self.sight(name, names), &|_| None)
        })
    }

    /// Reads elements of an array of this shape, by their numbers, into a dense memory, as [`Store::read_at_rest`] reads a section. Not where
    /// the user wants to stop. Local.
    pub fn read_elements_at_rest(&self, name: &str, shape: &[u64], numbers: &[u64], into: &LocalArray) -> bool {
        let elements = WantedElements { numbers, stop: &|| self.comm.line().asks_user() };
        self.at_rest(name, (shape, &Section::whole(shape)), into, &|wanted, names| {
            let look = || self.sight(name, names);
            self.alone.resting.read_elements(&self.seen_as(name), (wanted, &elements), look, &|_| None)
        })
    }

    fn at_rest(
        &self,
        name: &str,
        (shape, section): (&[u64], &Section),
        into: &LocalArray,
        read: &dyn Fn(&WantedSection, &dyn Names) -> bool,
    ) -> bool {
        let Some(hands) = self.comm.hands_at_rest() else { return false };
        if self.staged.is_some() || self.check_settled(name).is_err() {
            return false;
        }
        let names = self.directory();
        read(&WantedSection { names: &*names, shape, section, into, hands }, &*names)
    }

    /// How an array is stored whose metadata rest.
    fn sight(&self, name: &str, names: &dyn Names) -> Option<Sight> {
        // What is far away is not asked for: it may not answer.
        if !names.is_at_hand() {
            return None;
        }
        let at = place(&self.base(), name);
        let below = if at.is_empty() { at } else { format!("{at}/") };
        let witness = |key: &str| {
            let witness = format!("{below}{key}");
            let seen = names.seen(&witness).ok()??;
            seen.rests.then_some((witness, seen.state))
        };
        let witness = witness(METADATA_KEY).or_else(|| witness(v2::ARRAY_KEY))?;
        let (metadata, node) = self.found(name).ok()?;
        if metadata.has_texts() {
            return None;
        }
        let of_v2 = witness.0.ends_with(v2::ARRAY_KEY);
        (node.is_v2 == of_v2).then(|| Sight {
            stored: stored_to_read(&metadata, 0),
            witness,
            below,
            file: None,
            addresses: None,
        })
    }

    /// What an array is that this rank is about to read alone.
    ///
    /// # Errors
    /// This rank's own, as those of [`Store::read_local`].
    pub fn look_local(&self, name: &str) -> Result<ArrayInfo, Error> {
        self.comm.check_usable()?;
        self.check_settled(name)?;
        if let Some(told) = self.told_array(name)? {
            return Ok(told);
        }
        Ok(ArrayInfo { metadata: read_array(&*self.directory(), &self.base(), name)?.0 })
    }

    /// Refuses what requests of this program are writing.
    fn check_settled(&self, name: &str) -> Result<(), Fault> {
        if !self.listing.is_under_way(name) {
            return Ok(());
        }
        let text = format!("'{name}' of '{}' is being written by a request that is under way", self.path().display());
        Err(Fault::new(FaultKind::Invalid, text)
            .hint("wait for the request, or call flush(), before you read the array"))
    }

    /// A request that fails on all ranks, since this one cannot make its call.
    pub fn attend_later(&self, what: &str, why: Unready) -> Request {
        self.comm.attend_later(self.target, what, why)
    }

    /// As [`Store::read`], but returns at once. Arrays to read into must not be used before [`Request::wait`].
    pub fn read_later(&self, names: Vec<String>, options: ReadOptions) -> Request {
        let hints = stage(&self.comm, &self.options.preference, false, std::iter::empty());
        let room = hints.expect("without copies nothing can fail");
        let mut store = self.with_room(&room);
        self.comm.leave(self.target, Some(&room), move |comm| {
            store.comm = comm.clone();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            store.read(&names, options)
        })
    }
}
