//! The model: what a transfer costs on a machine, without carrying it out.
//!
//! ```text
//! programs of some ranks --> rounds of work --> times of rounds --> time of each rank   \   the largest
//!   (work.rs)                                    (costs.rs)         (pipeline.rs)        >  of these is
//!                                                                   busy shared things  /   the price
//! ```
//!
//! The first rounds of a few ranks stand for all: what they do is read off the very programs that would run, so a
//! strategy has no second description. Each round's exchange and storage follow from the numbers of a profile, with the
//! delays of a server that waits for its clients (Chen et al. 1996, formula F11). Rounds then overlap as far as slots
//! allow. What ranks share (cores, links, the lock of a file, servers of files, disks) may not be busy for longer than
//! all takes; the busiest of these is the bottleneck.
//!
//! Arrays that are alike are priced once. Pieces without a closed form are priced as if each rank held as many as the
//! others, all as large as one of them (tiles.rs), since nobody knows all of them.

mod busy;
mod classes;
mod costs;
mod imagined;
mod look;
mod pipeline;
mod spread;
#[cfg(test)]
mod tests;
mod tiles;
mod work;

use crate::choose::Machine;
use crate::profile::Profile;
use crate::transfer::{Parameters, Transfer};
use busy::Busy;
use classes::Class;
use costs::Costs;
use hyperslab_layout::{Axis, Durability, View, dense_strides};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use work::Memories;

/// A part of the time of a transfer, as a rank lives through it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Agreeing on what is asked.
    Open,
    /// Data move between memories, which includes copies.
    Exchange,
    /// Data move between buffers and storage, as far as no exchange goes on meanwhile.
    Storage,
    /// Making durable.
    Sync,
    /// Agreeing on the outcome, and publishing.
    Close,
}

impl Phase {
    /// All, in the order of time.
    pub const ALL: [Phase; 5] = [Phase::Open, Phase::Exchange, Phase::Storage, Phase::Sync, Phase::Close];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Open => "open",
            Phase::Exchange => "exchange",
            Phase::Storage => "storage",
            Phase::Sync => "sync",
            Phase::Close => "close",
        }
    }
}

/// What ranks share, or are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Resource {
    /// A rank that handles storage, with its waiting.
    Server,
    /// A rank whose elements others move.
    Client,
    /// The cores of a node.
    Cores,
    /// The link of a node.
    Link,
    /// The lock of a file, which lets so many writers in; or that of names, where files are made.
    File,
    /// Processors and links of file servers.
    FileServer,
    /// Disks.
    Disk,
}

impl Resource {
    /// All.
    pub const ALL: [Resource; 7] = [
        Resource::Server,
        Resource::Client,
        Resource::Cores,
        Resource::Link,
        Resource::File,
        Resource::FileServer,
        Resource::Disk,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Server => "server",
            Resource::Client => "client",
            Resource::Cores => "cores",
            Resource::Link => "link",
            Resource::File => "file's lock",
            Resource::FileServer => "file server",
            Resource::Disk => "disk",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a transfer is expected to cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Price {
    /// By phase, in the order of [`Phase::ALL`]; their sum is the whole \[ns\].
    pub phases: [f64; Phase::ALL.len()],
    /// How long the busiest of each kind is busy, in the order of [`Resource::ALL`] \[ns\].
    pub resources: [f64; Resource::ALL.len()],
    /// The busiest of all while data move.
    pub bottleneck: Resource,
    /// Buffers of a rank that handles storage \[B\].
    pub buffer_bytes: u64,
    /// What a later call takes to make durable what this one leaves in the cache, where somebody will make it \[ns\].
    pub later_ns: f64,
    /// Steps of programs that were looked at for it.
    pub looked_at: u64,
}

impl Price {
    /// From the call to its return \[ns\].
    pub fn ns(&self) -> f64 {
        self.phases.iter().sum()
    }

    /// The same in seconds \[s\].
    pub fn seconds(&self) -> f64 {
        self.ns() / 1e9
    }

    /// What a phase takes \[ns\].
    pub fn phase(&self, phase: Phase) -> f64 {
        self.phases[phase as usize]
    }

    /// Multiplies what is not spent on agreements.
    pub fn scale_moving(&mut self, factor: f64) {
        for phase in [Phase::Exchange, Phase::Storage, Phase::Sync] {
            self.phases[phase as usize] *= factor;
        }
        self.later_ns *= factor;
    }

    /// While data move, without agreements \[ns\].
    pub fn moving_ns(&self) -> f64 {
        self.ns() - self.phase(Phase::Open) - self.phase(Phase::Close)
    }

    /// All that it costs its caller, now and later: by this candidates are compared \[ns\].
    pub fn whole_ns(&self) -> f64 {
        self.ns() + self.later_ns
    }
}

/// How much of programs is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Ranks that handle storage.
    pub ranks: u32,
    /// Rounds of each.
    pub rounds: usize,
    /// Steps of each.
    pub steps: usize,
}

impl Effort {
    /// Enough to tell candidates apart.
    pub const QUICK: Effort = Effort { ranks: 2, rounds: 3, steps: 48 };
    /// More, for transfers that take long.
    pub const USUAL: Effort = Effort { ranks: 8, rounds: 3, steps: 120 };
    /// For people who wait for the answer.
    pub const CAREFUL: Effort = Effort { ranks: 32, rounds: 64, steps: 40_000 };
}

/// How the elements of an array lie in the memories of ranks: in which order of dimensions, from the slowest to the fastest,
/// how far apart neighbours along the fastest are, and what lies between.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Laid {
    /// Dimensions from the slowest to the fastest.
    pub order: Vec<usize>,
    /// From one element to the next: more than an element where arrays are interleaved \[B\].
    pub pitch: u64,
    /// By dimension, elements that the memory has beyond those of the array: guard cells.
    pub padding: Vec<u64>,
    /// Extents of the part that lies so: of pieces that no closed form describes, one of them.
    pub held: Vec<u64>,
}

impl Hash for Laid {
    /// Extents count roughly: blocks of an adaptive mesh that is made anew are about as large, and plans are found by this.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.order, self.pitch, &self.padding).hash(state);
        let rough = |&extent: &u64| extent.checked_next_power_of_two();
        self.held.iter().map(rough).collect::<Vec<_>>().hash(state);
    }
}

impl Laid {
    /// As a part lies that has this view.
    pub fn of(view: &View) -> Laid {
        let dim = |(axis, stride): &(Axis, i64)| match axis {
            Axis::Held(set) => (set.len(), *stride),
            // Of lists it is not known what lies between, which may be nothing.
            Axis::Listed(_) | Axis::Selected(..) => (u64::MAX, *stride),
        };
        let mut dims: Vec<(u64, i64)> = view.axes.iter().map(dim).collect();
        if let (Some((Axis::Listed(list), unit)), Some((first, inner))) = (view.axes.first(), dims.split_first_mut())
            && !inner.is_empty()
        {
            // Arrays of their own, as one: where each lies changes from call to call, and costs the same everywhere.
            let reach = |&(extent, stride): &(u64, i64)| stride.unsigned_abs().saturating_mul(extent);
            let whole = inner.iter().map(reach).max().unwrap_or(0).max(view.element.bytes());
            let apart = list.windows(2).map(|pair| pair[0].at.abs_diff(pair[1].at)).min().unwrap_or(0);
            *first = (list.len() as u64, apart.saturating_mul(unit.unsigned_abs()).min(whole) as i64);
        }
        Laid::new(&dims, view.element.bytes())
    }

    /// As a part lies that has these extents, and these distances between neighbours \[B\].
    pub fn new(dims: &[(u64, i64)], element_bytes: u64) -> Laid {
        let stride = |d: usize| dims[d].1.unsigned_abs();
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by_key(|&d| std::cmp::Reverse(stride(d)));
        let pitch = order.iter().map(|&d| stride(d)).filter(|&stride| stride > 0).min();
        let mut padding = vec![0; dims.len()];
        for pair in order.windows(2) {
            // Where there is one element, no distance was ever gone.
            if let (&[slow, fast], true) = (pair, dims[pair[0]].0 > 1) {
                padding[fast] = (stride(slow) / stride(fast).max(element_bytes)).saturating_sub(dims[fast].0);
            }
        }
        let held = dims.iter().map(|dim| dim.0).collect();
        Laid { order, pitch: pitch.unwrap_or(0).max(element_bytes), padding, held }
    }

    /// Distances between neighbours in a part of this shape \[B\].
    pub(crate) fn strides(&self, shape: &[u64]) -> Vec<i64> {
        let room: Vec<u64> = shape.iter().zip(&self.padding).map(|(extent, padding)| extent + padding).collect();
        dense_strides(&room, &self.order, self.pitch)
    }
}

/// How arrays lie in memories, by their numbers, where that is known of one rank; others are taken to be alike. Otherwise
/// parts are dense, the last dimension the fastest.
pub type Memory<'a> = &'a dyn Fn(usize) -> Option<Laid>;

/// A machine as the model sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priced<'a> {
    /// Its numbers.
    pub(crate) profile: &'a Profile,
    /// How ranks lie on nodes; of a machine at hand, as they do, and not as the profile says.
    pub(crate) machine: Machine,
}

/// A transfer whose prices with several parameters are wanted.
pub(crate) struct Pricing<'a> {
    priced: Priced<'a>,
    transfer: &'a Arc<Transfer>,
    classes: Vec<Class>,
    memories: Vec<Memories>,
}

impl<'a> Pricing<'a> {
    pub(crate) fn new(priced: Priced<'a>, transfer: &'a Arc<Transfer>, memory: Memory<'a>) -> Pricing<'a> {
        let classes = classes::of(transfer, memory);
        let memories = classes.iter().map(|class| Memories::new(class, memory, priced.machine)).collect();
        Pricing { priced, transfer, classes, memories }
    }

    /// One array of each kind: what cannot be done for all cannot be done for these.
    pub(crate) fn one_of_each(&self) -> Arc<Transfer> {
        let asks =
            self.classes.iter().filter_map(|class| self.transfer.asks.get(*class.members.first()?).cloned()).collect();
        Arc::new(Transfer { asks, ..self.transfer.of_no_array() })
    }

    /// What the transfer costs with these parameters, of which the strategy is feasible.
    pub(crate) fn price(&self, parameters: &Parameters, effort: Effort) -> Price {
        let costs = Costs::new(self.priced, self.transfer, parameters);
        let mut busy = Busy::default();
        let (mut exchange, mut storage, mut waited, mut buffer_bytes, mut looked_at) = (0.0, 0.0, 0.0, 0, 0);
        for (class, memories) in self.classes.iter().zip(&self.memories) {
            let timed = pipeline::time(&costs, class, parameters, memories, effort, &mut busy);
            busy.end_class();
            exchange += timed.exchange_ns;
            storage += timed.storage_ns;
            waited += timed.waited_ns;
            buffer_bytes = buffer_bytes.max(timed.buffer_bytes);
            looked_at += timed.looked_at;
        }
        busy.servers_take(exchange + storage, waited);
        let (bottleneck, moving) = busy.busiest(&costs);
        // What is beyond the servers' own time is waited for where it belongs.
        let more = moving - (exchange + storage);
        let exchanging = match bottleneck {
            Resource::Client | Resource::Link => 1.0,
            Resource::Cores => exchange / (exchange + storage).max(1.0),
            _ => 0.0,
        };
        exchange += more * exchanging;
        storage += more * (1.0 - exchanging);
        // Before a later call makes it durable, this one ends and that one begins.
        let synced_at_end = self.transfer.policies.durability == Durability::Now;
        let between = if synced_at_end { 0.0 } else { 2.0 * costs.agreement_ns() };
        let synced = costs.write && self.transfer.policies.durability > Durability::Cached;
        let durable = if synced { busy.sync_ns(&costs, moving, between) } else { 0.0 };
        let (sync, later_ns) = if synced_at_end { (durable, 0.0) } else { (0.0, durable) };
        let open = costs.agreement_ns() + costs.preparing_ns(self.transfer, parameters);
        let close = costs.agreement_ns() + costs.publishing_ns();
        let phases = [open, exchange, storage, sync, close];
        Price { phases, resources: busy.all(&costs), bottleneck, buffer_bytes, later_ns, looked_at }
    }
}
