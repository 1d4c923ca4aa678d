//! The words of the model: phases, resources, prices, how arrays lie in memories, how ranks lie on nodes.

use crate::profile::Profile;
use hyperslab_layout::{Axis, View, dense_strides};
use std::fmt;
use std::hash::{Hash, Hasher};

/// How ranks lie on compute nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Ranks on one compute node.
    pub ranks_per_node: u32,
    /// Cores that they share.
    pub cores_per_node: u32,
    /// Whether reads copy what the system's cache holds out of mappings of files, as they do on file systems of this host.
    pub maps_files: bool,
}

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
    /// What it costs to touch buffers for the first time, which a process does once \[ns\].
    pub first_ns: f64,
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

    /// All that it costs its caller, now and later \[ns\].
    pub fn whole_ns(&self) -> f64 {
        self.ns() + self.later_ns
    }

    /// The same the first time: by this candidates are compared, since most programs dump a given thing once \[ns\].
    pub fn compared_ns(&self) -> f64 {
        self.whole_ns() + self.first_ns
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
pub struct MemoryLayout {
    /// Dimensions from the slowest to the fastest.
    pub order: Vec<usize>,
    /// From one element to the next: more than an element where arrays are interleaved \[B\].
    pub pitch: u64,
    /// By dimension, elements that the memory has beyond those of the array: halo.
    pub padding: Vec<u64>,
    /// Extents of the part that lies so: of pieces that no closed form describes, one of them.
    pub held: Vec<u64>,
    /// Whether that is a run of a list, between those of other ranks.
    pub scattered: bool,
}

impl Hash for MemoryLayout {
    /// Extents count roughly: blocks of an adaptive mesh that is made anew are about as large, and plans are found by this.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.order, self.pitch, &self.padding, self.scattered).hash(state);
        let rough = |&extent: &u64| extent.checked_next_power_of_two();
        self.held.iter().map(rough).collect::<Vec<_>>().hash(state);
    }
}

impl MemoryLayout {
    /// As a part lies that has this view.
    pub fn of(view: &View) -> MemoryLayout {
        if let [(Axis::Scattered(places), stride)] = &view.axes[..] {
            return MemoryLayout::of_runs(places.elements(), places.runs() as u64, (*stride, view.element.bytes()));
        }
        let dim = |(axis, stride): &(Axis, i64)| match axis {
            Axis::Owned(set) => vec![(set.len(), *stride)],
            Axis::Folded(_, dims) => dims.iter().map(|&(count, step)| (count, step * stride)).collect(),
            // Of lists it is not known what lies between, which may be nothing.
            Axis::Listed(_) | Axis::Selected(..) | Axis::Scattered(_) => vec![(u64::MAX, *stride)],
        };
        let mut dims: Vec<(u64, i64)> = view.axes.iter().flat_map(dim).collect();
        if let (Some((Axis::Listed(list), unit)), Some((first, inner))) = (view.axes.first(), dims.split_first_mut())
            && !inner.is_empty()
        {
            // Arrays of their own, as one: where each lies changes from call to call, and costs the same everywhere.
            let reach = |&(extent, stride): &(u64, i64)| stride.unsigned_abs().saturating_mul(extent);
            let whole = inner.iter().map(reach).max().unwrap_or(0).max(view.element.bytes());
            let apart = list.windows(2).map(|pair| pair[0].at.abs_diff(pair[1].at)).min().unwrap_or(0);
            *first = (list.len() as u64, apart.saturating_mul(unit.unsigned_abs()).min(whole) as i64);
        }
        MemoryLayout::new(&dims, view.element.bytes())
    }

    /// As a part lies that has these extents, and these distances between neighbours \[B\].
    pub fn new(dims: &[(u64, i64)], element_bytes: u64) -> MemoryLayout {
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
        MemoryLayout { order, pitch: pitch.unwrap_or(0).max(element_bytes), padding, held, scattered: false }
    }

    /// As so many elements lie in so many runs of a list, so far from each other.
    pub fn of_runs(elements: u64, runs: u64, (stride, element_bytes): (i64, u64)) -> MemoryLayout {
        let run = (elements / runs.max(1)).max(1);
        MemoryLayout { scattered: true, ..MemoryLayout::new(&[(run, stride)], element_bytes) }
    }

    /// Distances between neighbours in a part of this shape \[B\].
    pub(crate) fn strides(&self, shape: &[u64]) -> Vec<i64> {
        let room: Vec<u64> = shape.iter().zip(&self.padding).map(|(extent, padding)| extent + padding).collect();
        dense_strides(&room, &self.order, self.pitch)
    }
}

/// How arrays lie in memories, by their numbers, where that is known of one rank; others are taken to be alike. Otherwise
/// parts are dense, the last dimension the fastest.
pub type Memory<'a> = &'a dyn Fn(usize) -> Option<MemoryLayout>;

/// A machine as the model sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priced<'a> {
    /// Its numbers.
    pub(crate) profile: &'a Profile,
    /// How ranks lie on nodes; of a real machine, as they do, and not as the profile says.
    pub(crate) machine: Machine,
}
