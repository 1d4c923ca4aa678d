//! Indexing: what a rank must know of where chunks lie in shards before it can read any.
//!
//! The rank's own program says which shards it reads: those, and no others, have their indexes read, by the rank itself, a few
//! at a time, while it goes through the program. Nothing is told to other ranks. A shard that is shorter than its index is
//! noticed before its chunks, which may be millions by its metadata, are gone through.

use crate::limits::{Awaited, Waits};
use crate::party::Party;
use crate::walk::{WINDOW, Walked};
use hyperslab_layout::Object;
use hyperslab_layout::stored::{Indexes, Objects, Shards};
use hyperslab_plan::{Action, Program, Step, Transfer};
use hyperslab_world::{Fault, FaultKind, Moved, Outcome, Request, Root, Ticket, Within, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One rank's reading of indexes.
pub struct Indexing {
    transfer: Arc<Transfer>,
    /// What is left of the program to go through.
    steps: Option<Box<dyn Iterator<Item = Step>>>,
    /// Shards that were met.
    met: BTreeSet<Object>,
    /// The last one: most steps read of the shard of the one before.
    last: Option<Object>,
    under_way: BTreeMap<Ticket, (usize, Object)>,
    next: Ticket,
    /// By array: what was found, by the names of shards that exist.
    known: BTreeMap<usize, Indexes>,
    /// Most bytes of indexes, and how many they have \[B\].
    bytes_max: u64,
    bytes: u64,
    walked: Walked,
    fault: Option<Fault>,
}

/// What became of it.
pub struct Indexed {
    /// The transfer as this rank can carry it out: it knows where the chunks lie that it reads.
    pub transfer: Arc<Transfer>,
    /// What reading indexes took.
    pub walked: Walked,
    /// What went wrong, if something did. This rank then reads nothing.
    pub fault: Option<Fault>,
}

impl Indexed {
    /// Where there was nothing to learn.
    pub fn nothing(transfer: Arc<Transfer>) -> Indexed {
        Indexed { transfer, walked: Walked::default(), fault: None }
    }
}

impl Indexing {
    /// Of the shards that a rank reads by this program, which it has for this transfer before it knows any index. Those take
    /// at most so many bytes.
    pub fn new(transfer: &Arc<Transfer>, program: Program, bytes_max: u64) -> Indexing {
        Indexing {
            transfer: transfer.clone(),
            steps: Some(Box::new(program.lanes.into_iter().flatten())),
            met: BTreeSet::new(),
            last: None,
            under_way: BTreeMap::new(),
            next: 0,
            known: BTreeMap::new(),
            bytes_max,
            bytes: 0,
            walked: Walked::default(),
            fault: None,
        }
    }

    /// Goes on; what became of it, once it is over.
    pub fn poll(&mut self, world: &mut dyn World, party: &mut Party) -> Option<Indexed> {
        loop {
            self.settle(world, party);
            if self.fault.is_some() {
                self.steps = None;
            }
            if self.steps.is_none() || self.under_way.len() >= WINDOW {
                break;
            }
            self.go_through(world);
        }
        (self.steps.is_none() && self.under_way.is_empty()).then(|| self.end())
    }

    /// Learns what storage has answered.
    fn settle(&mut self, world: &mut dyn World, party: &mut Party) {
        let mut done = Vec::new();
        world.store().poll(&mut done);
        for (ticket, result) in done {
            party.progress();
            let Some((array, object)) = self.under_way.remove(&ticket) else { continue };
            if let Err(fault) = result.and_then(|outcome| self.learn(world, array, &object, outcome)) {
                self.fault.get_or_insert(fault);
            }
        }
    }

    /// Looks at some more steps, and asks for the indexes of shards that are met for the first time.
    fn go_through(&mut self, world: &mut dyn World) {
        for _ in 0..WINDOW {
            let Some(step) = self.steps.as_mut().and_then(Iterator::next) else { return self.steps = None };
            let (Action::Read { object, .. } | Action::Get { object, .. }) = step.action else { continue };
            if self.last.as_ref() == Some(&object) {
                continue;
            }
            self.last = Some(object.clone());
            if self.met.insert(object.clone())
                && let Some(array) = array_of(&self.transfer, &object)
                && let Err(fault) = self.ask(world, array, object)
            {
                self.fault.get_or_insert(fault);
                return;
            }
            if self.under_way.len() >= WINDOW {
                return;
            }
        }
    }

    fn ask(&mut self, world: &mut dyn World, array: usize, object: Object) -> Result<(), Fault> {
        let Some(index) = shards_of(&self.transfer, array).and_then(|shards| shards.codec.index()) else {
            return Ok(());
        };
        let (bytes, at_end) = (index.bytes(), index.is_at_end());
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.bytes_max {
            let name = &self.transfer.asks[array].name;
            let text =
                format!("the indexes of the shards of '{name}' that one rank reads are too large for its buffers");
            return Err(Fault::new(FaultKind::Invalid, text)
                .expected(format!("at most {} B", self.bytes_max), format!("{} B and more", self.bytes))
                .hint("read smaller sections, let more ranks serve, or allow more buffer bytes"));
        }
        let within = if at_end { Within::End(bytes) } else { Within::Stretch(0, bytes) };
        let request = Request::Get { object: object.clone(), within, bytes_max: bytes };
        self.under_way.insert(self.next, (array, object));
        world.store().submit(self.next, request);
        self.next += 1;
        Ok(())
    }

    fn learn(&mut self, world: &mut dyn World, array: usize, object: &Object, outcome: Outcome) -> Result<(), Fault> {
        // A shard that is not there has no chunks.
        let Outcome::Done(Moved { bytes, calls, content, first, .. }) = outcome else { return Ok(()) };
        self.walked.store_bytes += bytes;
        self.walked.store_calls += calls;
        self.walked.buffer_bytes += bytes;
        let Some(index) = shards_of(&self.transfer, array).and_then(|shards| shards.codec.index()) else {
            return Ok(());
        };
        let named = Root::full_of(&world.store().roots(), object);
        let stretches = index.stretches(&content, first, &named);
        let stretches = stretches.map_err(|error| Fault::said_by(FaultKind::Corrupt, error))?;
        self.known.entry(array).or_default().insert(object.name.clone(), stretches.into());
        Ok(())
    }

    fn end(&mut self) -> Indexed {
        let mut transfer = (*self.transfer).clone();
        let mut known = std::mem::take(&mut self.known);
        for (array, ask) in transfer.asks.iter_mut().enumerate() {
            let Some(shards) = ask.stored.shards().cloned() else { continue };
            let known = Some(Arc::new(known.remove(&array).unwrap_or_default()));
            ask.stored.objects = Objects::Shards(Arc::new(Shards { known, ..(*shards).clone() }));
        }
        Indexed { transfer: Arc::new(transfer), walked: self.walked, fault: self.fault.take() }
    }
}

impl Awaited for Indexing {
    fn waits(&self) -> Waits {
        Waits { storage: !self.under_way.is_empty(), ..Waits::default() }
    }

    fn waits_for(&self) -> String {
        format!("waits for the indexes of {} shards", self.under_way.len())
    }
}

fn shards_of(transfer: &Transfer, array: usize) -> Option<&Arc<Shards>> {
    transfer.asks.get(array)?.stored.shards()
}

/// The array in shards that an object belongs to.
fn array_of(transfer: &Transfer, object: &Object) -> Option<usize> {
    let holds = |shards: &Arc<Shards>| object.name.starts_with(&*shards.keys.prefix);
    transfer.asks.iter().position(|ask| ask.stored.root == object.root && ask.stored.shards().is_some_and(holds))
}
