//! What came out of a rehearsal: times, counts, and who was busy.

use crate::drive::{DiskTimes, Drive};
use crate::faults::LifeEnd;
use crate::machine::{Machine, Processor, Work};
use crate::tally::Tally;

/// From when the first rank began a stage to when the last ended it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// When the first began \[ns\].
    pub begin_ns: u64,
    /// When the last ended \[ns\].
    pub end_ns: u64,
    /// Time that ranks spent in it, summed; says nothing as long as some have not ended it \[ns\].
    pub spent_ns: u64,
    /// How many began it and never ended it, since they died or failed.
    pub unended: u32,
    begun: bool,
}

impl Span {
    pub(crate) fn begin(&mut self, now_ns: u64) {
        if !std::mem::replace(&mut self.begun, true) {
            self.begin_ns = now_ns;
        }
        self.unended += 1;
        self.spent_ns = self.spent_ns.wrapping_sub(now_ns);
    }

    pub(crate) fn end(&mut self, now_ns: u64) {
        self.unended -= 1;
        self.end_ns = self.end_ns.max(now_ns);
        self.spent_ns = self.spent_ns.wrapping_add(now_ns);
    }
}

/// How long something was at work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Busy {
    /// What.
    pub name: String,
    /// How long \[ns\].
    pub ns: u64,
}

/// What a processor was at work for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spent {
    /// In all \[ns\].
    pub ns: u64,
    /// By kind of work, in the order of [`Work::ALL`] \[ns\].
    pub kinds: [u64; Work::ALL.len()],
}

/// The disks of one file server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Disks {
    /// How long they had something to do, summed \[ns\].
    pub busy_ns: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes \[B\].
    pub bytes: u64,
    /// Bytes of each \[B\].
    pub each: Vec<u64>,
    /// How they spent their time.
    pub times: DiskTimes,
}

/// What came out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// By stage.
    pub spans: Vec<Span>,
    /// When the last rank was through \[ns\].
    pub end_ns: u64,
    /// When all that was written was on the media, with what caches still held, which is written last \[ns\].
    pub settled_ns: u64,
    /// Counts.
    pub tally: Tally,
    /// The busiest of each kind of thing, the busiest first.
    pub busiest: Vec<Busy>,
    /// Processors of compute nodes, by number.
    pub processors: Vec<Spent>,
    /// Processors of file servers on nodes of their own.
    pub server_processors: Vec<Spent>,
    /// File servers.
    pub disks: Vec<Disks>,
    /// Bytes that crossed between nodes \[B\].
    pub network_bytes: u64,
    /// How each rank's life ended, where something was to go wrong; else nothing, since all came through.
    pub ends: Vec<LifeEnd>,
    /// Events.
    pub events: u64,
    /// What happened, if it was to be written down: time \[ns\] and what, a line each.
    pub trace: Option<String>,
}

impl Outcome {
    pub(crate) fn new(machine: &Machine, spans: Vec<Span>, ends: Vec<LifeEnd>) -> Outcome {
        let end_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
        let settled_ns = machine.settled_ns();
        let spent = |p: &Processor| Spent { ns: p.time.busy_ns, kinds: p.spent_ns };
        let (nodes, apart) = machine.processors.split_at(machine.processor_apart(0));
        let disks = machine.files.servers.iter().map(|server| disks(&server.drives)).collect();
        Outcome {
            spans,
            end_ns,
            settled_ns,
            tally: machine.tally.clone(),
            busiest: busiest(machine),
            processors: nodes.iter().map(spent).collect(),
            server_processors: apart.iter().map(spent).collect(),
            disks,
            network_bytes: machine.network.bytes,
            ends,
            events: machine.kernel.events(),
            trace: machine.trace.clone(),
        }
    }
}

fn disks(drives: &[Drive]) -> Disks {
    drives.iter().fold(Disks::default(), |mut all, drive| {
        all.busy_ns += drive.busy_ns();
        all.requests += drive.requests;
        all.bytes += drive.bytes;
        all.each.push(drive.bytes);
        all.times.seek_ns += drive.times.seek_ns;
        all.times.rotate_ns += drive.times.rotate_ns;
        all.times.transfer_ns += drive.times.transfer_ns;
        all.times.overhead_ns += drive.times.overhead_ns;
        all
    })
}

fn busiest(machine: &Machine) -> Vec<Busy> {
    let numbered = |all: Vec<u64>, what: &str| {
        let most = all.iter().enumerate().max_by_key(|(number, ns)| (**ns, std::cmp::Reverse(*number)));
        most.map(|(number, &ns)| Busy { name: format!("{what} {number}"), ns })
    };
    let servers = &machine.files.servers;
    let processors = machine.processors.iter().map(|p| p.time.busy_ns).collect();
    let drives = servers.iter().flat_map(|server| server.drives.iter().map(Drive::busy_ns)).collect();
    let buses = servers.iter().map(|server| server.bus.time.busy_ns).collect();
    let (link_ns, link) = machine.network.busiest();
    let mut all: Vec<Busy> =
        [numbered(processors, "processor"), numbered(drives, "disk"), numbered(buses, "bus of server")]
            .into_iter()
            .flatten()
            .collect();
    all.push(Busy { name: link, ns: link_ns });
    all.push(Busy { name: "manager of files".into(), ns: machine.files.books.manager.busy_ns });
    all.sort_by_key(|busy| std::cmp::Reverse(busy.ns));
    all
}
