//! Programs that only exchange messages between two ranks; they are walked as those of transfers are.

use hyperslab_layout::{ElementType, Kind, Region, View};
use hyperslab_pack::Memory;
use hyperslab_plan::{Action, After, Lane, Parts, Place, Program, Step};
use hyperslab_world::Exposed;
use std::sync::Arc;

/// Most bytes of slots \[B\], and how many there are at least and at most.
const SLOTS_BYTES: u64 = 4 << 20;
const SLOTS: (u64, u64) = (2, 16);

/// Distance between runs in a slot or array where they do not touch, in lengths of a run: as of four ranks in turn.
const SPREAD: u64 = 4;

/// Where the runs of a message do not touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Apart {
    /// Nowhere: there is one run.
    Nowhere,
    /// In the slot: blocks of several ranks are the rows of a file.
    Slot,
    /// In the array: cyclic distributions.
    Array,
}

/// Messages of one size between this rank and another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Exchange {
    /// How many each rank gets.
    pub(super) count: u64,
    /// Contiguous runs of one message, and their length \[B\].
    pub(super) runs: u64,
    pub(super) run_bytes: u64,
    /// Where they do not touch.
    pub(super) apart: Apart,
}

impl Exchange {
    /// Bytes of one message.
    pub(super) fn message_bytes(&self) -> u64 {
        self.runs * self.run_bytes
    }

    /// Distance between runs on a side \[B\].
    fn distance(&self, side: Apart) -> u64 {
        if self.apart == side { SPREAD * self.run_bytes } else { self.run_bytes }
    }

    /// Bytes of a slot.
    fn slot_bytes(&self) -> u64 {
        self.runs * self.distance(Apart::Slot)
    }

    /// Bytes of the array that is exposed.
    pub(super) fn array_bytes(&self) -> u64 {
        self.count * self.runs * self.distance(Apart::Array)
    }

    /// The array, in this memory.
    pub(super) fn exposed(&self, memory: &Memory) -> Exposed {
        let region = Region::whole(&[self.count, self.runs, self.run_bytes]);
        let distance = self.distance(Apart::Array);
        let strides = [(self.runs * distance) as i64, distance as i64, 1];
        Exposed { memory: memory.clone(), view: Arc::new(View::held(&region, 0, &strides, element())) }
    }

    fn message(&self, number: u64) -> Region {
        Region::boxed(&[number, 0, 0], &[number + 1, self.runs, self.run_bytes])
    }

    fn in_array(&self, number: u64) -> Parts {
        [(0, self.message(number), Place::User(0))].into_iter().collect()
    }

    fn in_slot(&self, slot: u64, number: u64) -> Parts {
        let region = self.message(number);
        let strides = [self.slot_bytes() as i64, self.distance(Apart::Slot) as i64, 1];
        let view = Arc::new(View::held(&region, 0, &strides, element()));
        [(0, region, Place::Slot(slot as u32, view))].into_iter().collect()
    }

    /// Each of the two gets all messages of the other into slots, and gives it his own, at the same time: as servers
    /// that write gather from each other.
    pub(super) fn program(self, partner: u32) -> Program {
        let slots = (SLOTS_BYTES / self.slot_bytes()).clamp(SLOTS.0, SLOTS.1);
        let get: Lane = Box::new((0..self.count).map(move |number| Step {
            id: number,
            round: number,
            after: number.checked_sub(slots).map_or_else(After::none, After::step),
            action: Action::Recv { from: partner, parts: self.in_slot(number % slots, number) },
        }));
        let give: Lane = Box::new((0..self.count).map(move |number| Step {
            id: number,
            round: number,
            after: After::none(),
            action: Action::Send { to: partner, parts: self.in_array(number) },
        }));
        let slot_bytes = self.slot_bytes();
        Program { slots: slots as u32, slot_bytes, spare_bytes: u64::MAX, lanes: vec![get, give], ..Program::idle() }
    }

    /// The two send one message to and fro; the lower rank begins.
    pub(super) fn echo(self, rank: u32, partner: u32) -> Program {
        let first = rank < partner;
        let lane: Lane = Box::new((0..2 * self.count).map(move |id| {
            let number = id / 2;
            let sends = (id % 2 == 0) == first;
            Step {
                id,
                round: number,
                after: if sends { id.checked_sub(1).map_or_else(After::none, After::step) } else { After::none() },
                action: if sends {
                    Action::Send { to: partner, parts: self.in_slot(0, number) }
                } else {
                    Action::Recv { from: partner, parts: self.in_array(number) }
                },
            }
        }));
        Program { slots: 1, slot_bytes: self.slot_bytes(), spare_bytes: u64::MAX, lanes: vec![lane], ..Program::idle() }
    }
}

fn element() -> ElementType {
    ElementType::native(Kind::UInt8)
}
