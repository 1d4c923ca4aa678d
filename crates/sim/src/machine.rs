//! The machine: processors, wires and files, their clock, and what waits for each rank.

use crate::desk::{DeskLine, DeskTold};
use crate::files::Files;
use crate::kernel::{Kernel, Resource, whole_ns};
use crate::messages::Pairs;
use crate::network::Network;
use crate::tally::Tally;
use hyperslab_pack::Memory;
use hyperslab_plan::profile::{Layout, Profile};
use hyperslab_world::{Event, Exposed, Fault, Outcome, Ticket};
use std::collections::{BTreeMap, VecDeque};

/// What a processor is at work for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Deriving programs.
    Plan,
    /// Sending and receiving, gathering and scattering included.
    Message,
    /// Copies and fills on one rank.
    Copy,
    /// Encoding and decoding.
    Code,
    /// Calls of the file system.
    Call,
    /// Serving files.
    Serve,
    /// What the program does besides.
    Application,
}

impl Work {
    /// All kinds.
    pub const ALL: [Work; 7] =
        [Work::Plan, Work::Message, Work::Copy, Work::Code, Work::Call, Work::Serve, Work::Application];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Work::Plan => "plan",
            Work::Message => "message",
            Work::Copy => "copy",
            Work::Code => "code",
            Work::Call => "call",
            Work::Serve => "serve",
            Work::Application => "application",
        }
    }
}

/// One processor.
#[derive(Clone, Default)]
pub(crate) struct Processor {
    pub(crate) time: Resource,
    /// By kind of work \[ns\].
    pub(crate) spent_ns: [u64; Work::ALL.len()],
}

/// What has happened for a rank and was not taken by it.
#[derive(Default)]
pub(crate) struct Mail {
    pub(crate) events: Vec<Event>,
    pub(crate) computed: Vec<(Ticket, Result<Vec<u8>, Fault>)>,
    pub(crate) stored: Vec<(Ticket, Result<Outcome, Fault>)>,
    /// What came of work with names.
    pub(crate) named: Option<DeskTold>,
    /// Whether the program's own work is over.
    pub(crate) worked: bool,
    queued: bool,
    /// Up to when the rank has stopped \[ns\]; for good when it has died.
    pub(crate) stopped_ns: u64,
}

/// Until when a rank has stopped that has died \[ns\].
pub(crate) const DEAD: u64 = 1 << 62;

/// Ranks that run on a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// All of them.
    pub ranks: u32,
    /// How many of them only serve; they come last.
    pub servers: u32,
}

/// Parts that take no time, to see what they cost (Chen et al. 1996, section 3: "disk simulation", "network simulation").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WhatIf {
    /// Disks.
    pub instant_disk: bool,
    /// The network, with all that messages cost on processors but gathering and scattering.
    pub instant_network: bool,
}

/// The machine.
pub(crate) struct Machine {
    pub(crate) kernel: Kernel<Machine>,
    pub(crate) profile: Profile,
    pub(crate) what_if: WhatIf,
    pub(crate) size: Size,
    pub(crate) network: Network,
    pub(crate) processors: Vec<Processor>,
    pub(crate) mail: Vec<Mail>,
    pub(crate) pairs: Pairs,
    pub(crate) exposed: Vec<Vec<Exposed>>,
    pub(crate) files: Files,
    pub(crate) desks: Vec<DeskLine>,
    /// Whether payloads carry bytes, or lengths only.
    pub(crate) carries_bytes: bool,
    pub(crate) tally: Tally,
    /// Memory of buffer slots by size, where payloads carry lengths only.
    pub(crate) buffers: BTreeMap<u64, Memory>,
    /// A line for each thing that ended, when asked for.
    pub(crate) trace: Option<String>,
    ready: VecDeque<u32>,
}

impl Machine {
    pub(crate) fn new(profile: &Profile, size: Size, what_if: WhatIf, files: Files, carries_bytes: bool) -> Machine {
        let nodes = profile.nodes.filled_by(size.ranks) as usize;
        let mut rates = vec![profile.network.link_rate; nodes];
        let mut processors = nodes * profile.nodes.cores_used() as usize;
        if let Layout::Apart { count, .. } = profile.storage.servers.layout {
            rates.extend((0..count).map(|_| profile.storage.servers.link_rate));
            processors += count as usize;
        }
        let ranks = size.ranks as usize;
        Machine {
            kernel: Kernel::default(),
            what_if,
            size,
            network: Network::new(&profile.network, rates, what_if.instant_network),
            processors: vec![Processor::default(); processors],
            mail: (0..ranks).map(|_| Mail::default()).collect(),
            pairs: Pairs::new(size.ranks),
            exposed: vec![Vec::new(); ranks],
            files,
            desks: (0..ranks).map(|_| DeskLine::default()).collect(),
            carries_bytes,
            tally: Tally::default(),
            buffers: BTreeMap::new(),
            trace: None,
            ready: VecDeque::new(),
            profile: profile.clone(),
        }
    }

    /// The node of a rank.
    pub(crate) fn node(&self, rank: u32) -> usize {
        (rank / self.profile.nodes.ranks_per_node) as usize
    }

    /// The node of a file server that lies apart.
    pub(crate) fn node_apart(&self, server: u32) -> usize {
        self.profile.nodes.filled_by(self.size.ranks) as usize + server as usize
    }

    /// The processor of a rank: ranks of a node take turns over its cores.
    pub(crate) fn processor(&self, rank: u32) -> usize {
        let nodes = &self.profile.nodes;
        let cores = nodes.cores_used() as usize;
        self.node(rank) * cores + (rank % nodes.ranks_per_node) as usize % cores
    }

    /// The processor of a file server that lies apart.
    pub(crate) fn processor_apart(&self, server: u32) -> usize {
        self.node_apart(0) * self.profile.nodes.cores_used() as usize + server as usize
    }

    /// Lets a processor work for so long, when it is free; gives the end \[ns\].
    pub(crate) fn work(&mut self, processor: usize, kind: Work, ns: f64) -> u64 {
        let now = self.kernel.now_ns();
        let processor = &mut self.processors[processor];
        let spent = &mut processor.spent_ns[kind as usize];
        *spent = spent.saturating_add(whole_ns(ns));
        processor.time.take(now, ns)
    }

    /// Stops a rank until a moment \[ns\].
    pub(crate) fn stop(&mut self, rank: u32, until_ns: u64) {
        let mail = &mut self.mail[rank as usize];
        mail.stopped_ns = mail.stopped_ns.max(until_ns);
        if until_ns < DEAD {
            self.kernel.at(until_ns, move |machine| machine.post(rank, |_| ()));
        }
    }

    /// Whether a rank has died.
    pub(crate) fn is_dead(&self, rank: u32) -> bool {
        self.mail[rank as usize].stopped_ns >= DEAD
    }

    /// Whether a rank has stopped.
    pub(crate) fn is_stopped(&self, rank: u32) -> bool {
        self.mail[rank as usize].stopped_ns > self.kernel.now_ns()
    }

    /// Has something for a rank.
    pub(crate) fn post(&mut self, rank: u32, put: impl FnOnce(&mut Mail)) {
        let mail = &mut self.mail[rank as usize];
        put(mail);
        if !std::mem::replace(&mut mail.queued, true) {
            self.ready.push_back(rank);
        }
    }

    /// The next rank that has mail.
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        let rank = self.ready.pop_front()?;
        self.mail[rank as usize].queued = false;
        Some(rank)
    }

    /// Lets time pass to the next event and takes all of that moment. Returns whether there was one.
    pub(crate) fn turn(&mut self) -> bool {
        let Some(act) = self.kernel.next(false) else { return false };
        act(self);
        while let Some(act) = self.kernel.next(true) {
            act(self);
        }
        true
    }

    /// Has all servers write what they hold.
    pub(crate) fn flush_all(&mut self) {
        for server in 0..self.files.servers.len() as u32 {
            self.flush(server, Box::new(|_| ()));
        }
    }

    /// When all that was asked for is over: no event is left, no processor at work, nothing on its way to a medium.
    pub(crate) fn settled_ns(&self) -> u64 {
        let processors = self.processors.iter().map(|processor| processor.time.free_ns()).max().unwrap_or(0);
        self.files.settled_ns().max(self.kernel.now_ns()).max(processors)
    }

    /// Writes a line into the trace.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push_str(&format!("{} {}\n", self.kernel.now_ns(), line()));
        }
    }
}
