//! Reading and writing arrays of a group without waiting for it.

use super::{NewArray, Store, WriteAsk};
use crate::comm::Unready;
use crate::request::{Request, Room, stage};
use hyperslab_collective::Holding;
use hyperslab_collective::LocalArray;
use hyperslab_layout::{Casting, Section};

impl Store {
    /// The same for a call that the line carries out.
    fn with_room(&self, room: &Room) -> Store {
        let mut store = self.clone();
        store.options.wish = room.wish.clone();
        store.held = room.held;
        store
    }

    /// As [`Store::write`], but returns at once. The arrays must not be changed before [`Request::wait`]; with `staged`
    /// they are copied and may be changed at once. The copies count against the budget of buffers: they share half of
    /// it (a larger one is taken alone, and waits for requests before it), and what remains is for slots.
    pub fn write_later(&self, mut asks: Vec<WriteAsk>, new: NewArray, staged: bool) -> Request {
        self.forget_known(asks.iter().map(|ask| ask.name.as_str()));
        let arrays = asks.iter_mut().map(|ask| (ask.name.as_str(), &mut ask.arrays, &*ask.holding));
        match stage(&self.comm, &self.options.wish, staged, arrays) {
            Ok(room) => {
                let mut store = self.with_room(&room);
                self.comm.leave(self.target, true, Some(&room), move |comm| {
                    store.comm = comm.clone();
                    store.write(&asks, &new).map(|report| (Vec::new(), report))
                })
            }
            Err(fault) => {
                let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
                let what = format!("write of {} to '{}'", super::listed(&names), self.path().display());
                self.comm.refuse_later(self.target, true, what, fault)
            }
        }
    }

    /// A request that fails on all ranks, since this one cannot make its call.
    pub fn attend_later(&self, what: &str, why: Unready) -> Request {
        self.comm.attend_later(self.target, what, why)
    }

    /// As [`Store::read`], but returns at once. Arrays to read into must not be used before [`Request::wait`].
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
        let mut store = self.with_room(&room);
        self.comm.leave(self.target, false, Some(&room), move |comm| {
            store.comm = comm.clone();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            store.read(&names, holding.as_ref(), section.as_ref(), into, casting)
        })
    }
}
