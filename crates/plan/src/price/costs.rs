//! What single things cost on a machine.

use super::Priced;
use super::work::{Moved, Request};
use crate::profile::{Cache, Disk, Files, Layout, Measured, Messages, Profile, Requests};
use crate::strategies::Strategy;
use crate::transfer::{Direction, Parameters, Placement, Transfer};

/// Children of a rank in the tree of an agreement.
const ARITY: u32 = 4;
/// Largest gap that a read goes over instead of being two \[B\], and most bytes of one read that does so \[B\].
const SIEVED_GAP_BYTES: u64 = 4096;
const SIEVED_CALL_BYTES: u64 = 8 << 20;
/// Most runs of memory that one call gathers.
const GATHERED_MAX: u64 = 1024;
/// New files from which on all are made durable by one call.
const FILES_SYNCED_ALONE: f64 = 32.0;
/// How much longer requests past the cache take that do not begin between pages: they go by way of aligned memory, 1 MiB
/// at a time, and their ends through the cache. Measured with a header of 128 B: 1.5 times for 64 MiB, 2.1 for 256 MiB.
const OUT_OF_STEP: f64 = 2.0;
/// How much longer a drive with heads needs when requests of several ranks mix at it, over those of one rank in the order
/// of the disk: in simulations of `starfish` 1.05 to 1.3, more for reads.
const MIXED: f64 = 1.15;
/// Shorter ranges of a file go through the cache even when they shall not \[B\].
const DIRECT_BYTES_MIN: u64 = 64 << 10;

/// What a message costs.
#[derive(Clone, Copy, Default)]
pub(super) struct Message {
    /// The processor of the side with the slot \[ns\].
    pub(super) slot_ns: f64,
    /// Of this, asking for the data \[ns\].
    pub(super) ask_ns: f64,
    /// The processor of the side with the user's array \[ns\].
    pub(super) array_ns: f64,
    /// From asking to the arrival of the data, without what the side with the slot does itself \[ns\].
    pub(super) handled_ns: f64,
    /// The link of either node \[ns\].
    pub(super) wire_ns: f64,
}

/// What a request to storage costs.
#[derive(Clone, Copy, Default)]
pub(super) struct Stored {
    /// The processor of who asks \[ns\].
    pub(super) cpu_ns: f64,
    /// From asking to the end, when nobody else asks \[ns\].
    pub(super) wall_ns: f64,
    /// The lock of its file \[ns\].
    pub(super) lock_ns: f64,
    /// The link of the node of who asks \[ns\].
    pub(super) wire_ns: f64,
    /// File servers, all together \[ns\].
    pub(super) server_ns: f64,
    /// Disks, all together; perhaps later \[ns\].
    pub(super) disk_ns: f64,
}

pub(super) struct Costs<'a> {
    priced: Priced<'a>,
    pub(super) ranks: u32,
    pub(super) write: bool,
    /// Ranks that serve: where these have the disks, as many as there are of them.
    servers: f64,
}

impl<'a> Costs<'a> {
    pub(super) fn new(priced: Priced<'a>, transfer: &Transfer, parameters: &Parameters) -> Costs<'a> {
        let (ranks, write) = (transfer.ranks.max(1), transfer.direction == Direction::Write);
        Costs { priced, ranks, write, servers: parameters.servers.len().max(1) as f64 }
    }

    pub(super) fn profile(&self) -> &Profile {
        self.priced.profile
    }

    pub(super) fn measured(&self) -> Option<&Measured> {
        self.priced.profile.measured.as_ref()
    }

    /// The node of a rank.
    pub(super) fn node(&self, rank: u32) -> u32 {
        rank / self.priced.machine.ranks_per_node.max(1)
    }

    pub(super) fn nodes(&self) -> f64 {
        f64::from(self.ranks.div_ceil(self.priced.machine.ranks_per_node.max(1)))
    }

    /// Cores of a node that have ranks.
    pub(super) fn cores(&self) -> f64 {
        let machine = self.priced.machine;
        // A machine at hand has a thread for each rank's files besides.
        let ranks = machine.ranks_per_node.min(self.ranks) * if self.measured().is_some() { 2 } else { 1 };
        f64::from(machine.cores_per_node.clamp(1, ranks.max(1)))
    }

    /// Whether a rank's calls for storage keep its own processor from moving data.
    pub(super) fn one_processor(&self) -> bool {
        self.measured().is_none()
    }

    /// Requests to storage of one rank that go on at the same time.
    pub(super) fn at_once(&self, direct: bool) -> usize {
        let calls = if self.measured().is_some() { 1 } else { self.profile().storage.calls_at_once as usize };
        if direct { calls.max(8) } else { calls }
    }

    pub(super) fn planning_ns(&self, steps: u64, pieces: u64) -> f64 {
        let costs = &self.profile().processor;
        steps as f64 * costs.step_ns + pieces as f64 * costs.piece_ns
    }

    pub(super) fn copy_ns(&self, bytes: u64, runs: u64) -> f64 {
        let costs = &self.profile().processor;
        bytes as f64 * 1e9 / costs.copy_rate + runs as f64 * costs.run_ns
    }

    pub(super) fn code_ns(&self, bytes: u64) -> f64 {
        bytes as f64 * 1e9 / self.profile().processor.code_rate
    }

    /// A message between a slot of `rank` and an array of its peer.
    pub(super) fn message(&self, rank: u32, moved: Moved) -> Message {
        if self.node(rank) != self.node(moved.peer) {
            return self.far(moved);
        }
        let Some(measured) = self.measured() else {
            return Message { slot_ns: self.copy_ns(moved.bytes, moved.runs), ..Message::default() };
        };
        let near = &measured.neighbours;
        let copy = moved.bytes as f64 * 1e9 / near.rate + moved.runs as f64 * near.run_ns;
        let half = near.message_ns / 2.0;
        Message { slot_ns: half + copy, ask_ns: 0.0, array_ns: half, handled_ns: near.wake_ns, wire_ns: 0.0 }
    }

    fn far(&self, moved: Moved) -> Message {
        let costs = &self.profile().messages;
        let Messages { send_ns, receive_ns, .. } = *costs;
        let (bytes, runs) = (moved.bytes as f64, moved.runs as f64);
        let parts = moved.bytes.div_ceil(costs.bytes_max.max(1)).max(1) as f64;
        let small = send_ns + self.wire_ns(0.0) + receive_ns;
        let asks = self.write || costs.requests == Requests::All;
        // Long messages ask and are answered before they leave.
        let long = if moved.bytes > costs.eager_bytes { 1.0 } else { 0.0 };
        let hands = long * (send_ns + receive_ns);
        let sends = parts * send_ns + bytes * costs.send_byte_ns;
        let receives = parts * receive_ns + bytes * costs.receive_byte_ns;
        let (slot_side, array_side) = if self.write { (receives, sends) } else { (sends, receives) };
        let ask_ns = match (asks, self.write) {
            (false, _) => 0.0,
            (true, true) => send_ns,
            (true, false) => receive_ns,
        };
        let wire = self.wire_ns(bytes + (parts - 1.0) * costs.header_bytes as f64);
        // Clients derive their pieces before they are asked for them.
        let derived = self.profile().processor.piece_ns;
        let answer_ns =
            array_side + runs * costs.array_run_ns + hands + if asks { send_ns + receive_ns - ask_ns } else { 0.0 };
        Message {
            slot_ns: ask_ns + slot_side + runs * costs.slot_run_ns + hands,
            ask_ns,
            array_ns: derived + answer_ns,
            handled_ns: wire + answer_ns + long * 2.0 * small + if asks { self.wire_ns(0.0) } else { 0.0 },
            wire_ns: bytes * 1e9 / self.profile().network.link_rate,
        }
    }

    /// From the first byte that leaves a node to the last that arrives at another.
    fn wire_ns(&self, bytes: f64) -> f64 {
        let network = &self.profile().network;
        network.latency_ns + (bytes + self.profile().messages.header_bytes as f64) * 1e9 / network.link_rate
    }

    /// A request to storage.
    pub(super) fn request(&self, request: &Request) -> Stored {
        match self.measured() {
            Some(measured) => match direct_rate(&measured.files, request) {
                Some(rate) => self.past_cache_at_hand(&measured.files, request, rate),
                None => at_hand(&measured.files, request),
            },
            None => self.imagined(request),
        }
    }

    /// A request past the cache of the machine at hand: the disk's answer is waited for, but several may be under way.
    fn past_cache_at_hand(&self, costs: &Files, request: &Request, rate: f64) -> Stored {
        let named = match (&request.file, request.write) {
            (Some(_), _) => 0.0,
            (None, true) => costs.create_ns + if request.replace { costs.rename_ns } else { 0.0 },
            (None, false) => costs.open_ns,
        };
        let calls = request.ranges.max(request.runs.div_ceil(GATHERED_MAX)) as f64;
        let each = if request.write { costs.write_ns } else { costs.read_ns };
        let rate = if request.at_page { rate } else { rate / OUT_OF_STEP };
        let (cpu_ns, disk_ns) = (named + calls * each, request.bytes as f64 * 1e9 / rate);
        let answered = calls * self.disk_latency_ns(request.write);
        Stored { cpu_ns, wall_ns: cpu_ns + answered + disk_ns, disk_ns, ..Stored::default() }
    }

    /// On a simulated machine: calls, each of which is cut into pieces that file servers serve.
    fn imagined(&self, request: &Request) -> Stored {
        let storage = &self.profile().storage;
        let servers = &storage.servers;
        let (bytes, ranges) = (request.bytes as f64, request.ranges.max(1) as f64);
        let own = request.direct && matches!(servers.layout, Layout::Ranks { .. });
        let call_ns = if own { 0.0 } else { ranges * storage.call_ns + bytes * storage.call_byte_ns };
        let each = bytes / ranges;
        let (pieces, width) = match servers.layout {
            Layout::Local => (1.0, 1.0),
            Layout::Ranks { unit_bytes } => ((each / unit_bytes as f64).ceil().max(1.0), each / unit_bytes as f64),
            Layout::Apart { unit_bytes, width, gathers, .. } => {
                let units = (each / unit_bytes as f64).ceil().max(1.0);
                let width = f64::from(width).min(units);
                (if gathers { width } else { units }, width)
            }
        };
        let (pieces, width) = (pieces * ranges, width.max(1.0));
        let byte_ns = if request.write { servers.write_byte_ns } else { servers.read_byte_ns };
        let mut serving = pieces * servers.request_ns + bytes * byte_ns;
        let mut cpu_ns = call_ns;
        let mut wire_ns = 0.0;
        let mut path_ns = 0.0;
        if !own && !matches!(servers.layout, Layout::Local) {
            let costs = &self.profile().messages;
            let both = costs.send_ns + costs.receive_ns;
            let (mine, its) = if request.write {
                (costs.send_byte_ns, costs.receive_byte_ns)
            } else {
                (costs.receive_byte_ns, costs.send_byte_ns)
            };
            cpu_ns += pieces * both + bytes * mine;
            serving += pieces * both + bytes * its + bytes * 1e9 / servers.link_rate;
            wire_ns = bytes * 1e9 / self.profile().network.link_rate;
            path_ns = 2.0 * self.wire_ns(0.0) + both;
        }
        let in_turn = match servers.layout {
            Layout::Ranks { unit_bytes } => own && each <= unit_bytes as f64,
            Layout::Local | Layout::Apart { .. } => true,
        };
        let mixed = if in_turn || !matches!(storage.disk, Disk::Hp97560) { 1.0 } else { MIXED };
        let disk_ns = mixed * self.disk_ns(request.write, bytes, pieces);
        let mut behind = false;
        if let Cache::WriteBehind { copy_rate, .. } = storage.cache
            && !request.direct
        {
            let copy = bytes * 1e9 / copy_rate;
            behind = request.write;
            match servers.layout {
                Layout::Local => cpu_ns += copy,
                _ => serving += copy,
            }
        }
        if let Cache::Blocks { lookup_ns, .. } = storage.cache
            && !request.direct
        {
            serving += pieces * lookup_ns;
        }
        let local = matches!(servers.layout, Layout::Local);
        let mut wall_ns = cpu_ns + path_ns * ranges + wire_ns.max(serving / width);
        if !behind {
            wall_ns += ranges * self.disk_latency_ns(request.write);
            wall_ns += disk_ns / (width * f64::from(servers.disks)).max(1.0);
        }
        if local {
            cpu_ns += serving;
            serving = 0.0;
        }
        Stored { cpu_ns, wall_ns, lock_ns: 0.0, wire_ns, server_ns: serving, disk_ns }
    }

    /// What disks need for so many bytes in so many requests, one disk for all.
    fn disk_ns(&self, write: bool, bytes: f64, requests: f64) -> f64 {
        match self.profile().storage.disk {
            // Kotz (1997): the drive's sustained rate past its heads; see hp97560.rs for the drive itself.
            Disk::Hp97560 => bytes * 1e9 / 2.1e6,
            Disk::Rated { read_rate, write_rate, request_ns, .. } => {
                bytes * 1e9 / if write { write_rate } else { read_rate } + requests * request_ns
            }
            Disk::Nvme { read_rate, write_rate, read_ns, write_ns, depth } => {
                let (rate, each) = if write { (write_rate, write_ns) } else { (read_rate, read_ns) };
                (bytes * 1e9 / rate).max(requests * each / f64::from(depth.max(1)))
            }
            Disk::Instant => 0.0,
        }
    }

    /// What a disk's answer to one request takes besides moving its bytes.
    pub(super) fn disk_latency_ns(&self, write: bool) -> f64 {
        match self.profile().storage.disk {
            Disk::Nvme { read_ns, write_ns, .. } => {
                if write {
                    write_ns
                } else {
                    read_ns
                }
            }
            // Requests of a rank follow each other on the disk, and so need no new position.
            Disk::Rated { .. } | Disk::Hp97560 | Disk::Instant => 0.0,
        }
    }

    /// File servers, and disks of all of them, or of one node.
    pub(super) fn file_servers(&self) -> (f64, f64) {
        let servers = &self.profile().storage.servers;
        let count = match servers.layout {
            Layout::Local => 1.0,
            Layout::Ranks { .. } => self.servers,
            Layout::Apart { count, .. } => f64::from(count),
        };
        (count, count * f64::from(servers.disks))
    }

    /// An agreement of all ranks: up and down a tree.
    pub(super) fn agreement_ns(&self) -> f64 {
        if self.ranks < 2 {
            return self.measured().map_or(0.0, |measured| measured.agreements.base_ns);
        }
        if let Some(measured) = self.measured() {
            let costs = &measured.agreements;
            let cores = f64::from(self.priced.machine.cores_per_node.max(1)) * self.nodes();
            let ranks = f64::from(self.ranks);
            let beyond = (ranks - cores).max(0.0);
            return costs.base_ns + costs.rank_ns * (ranks - 1.0 - beyond).max(0.0) + costs.crowded_ns * beyond;
        }
        let costs = &self.profile().messages;
        let levels = f64::from(self.ranks).log(f64::from(ARITY)).ceil().max(1.0);
        let children = f64::from(ARITY.min(self.ranks - 1));
        let up = costs.send_ns + self.wire_ns(0.0) + children * costs.receive_ns;
        let down = children * costs.send_ns + self.wire_ns(0.0) + costs.receive_ns;
        levels * (up + down)
    }

    /// Whether a request goes past the system's cache.
    pub(super) fn past_cache(&self, request: &Request) -> bool {
        match self.measured() {
            Some(measured) => direct_rate(&measured.files, request).is_some(),
            None => request.direct,
        }
    }

    /// What rank 0 does before data move.
    pub(super) fn preparing_ns(&self, transfer: &Transfer, parameters: &Parameters) -> f64 {
        self.naming_ns(transfer) + self.ordering_ns(transfer, parameters)
    }

    /// Reserving the space of files and asking where it lies on the disk, where the order of the disk is followed.
    fn ordering_ns(&self, transfer: &Transfer, parameters: &Parameters) -> f64 {
        let Some(measured) = self.measured().filter(|_| parameters.strategy == Strategy::DiskDirected) else {
            return 0.0;
        };
        let files = transfer.asks.iter().filter(|ask| matches!(ask.stored.placement, Placement::File { .. }));
        let bytes: u64 = files.map(crate::transfer::Ask::stored_bytes).sum();
        // Where a group begins is found and sorted as a piece of a message is; all of a transfer lie in one file.
        let groups = bytes.div_ceil(parameters.subchunk_bytes.max(1)) as f64;
        let asked = if bytes > 0 { 2.0 * measured.files.open_ns } else { 0.0 };
        asked + groups * self.profile().processor.piece_ns
    }

    /// Making directories and metadata where arrays are new.
    fn naming_ns(&self, transfer: &Transfer) -> f64 {
        let Some(measured) = self.measured().filter(|_| self.write) else { return 0.0 };
        let new = |ask: &&crate::transfer::Ask| match &ask.stored.placement {
            Placement::File { .. } => false,
            Placement::Chunks { fresh, .. } => *fresh,
        };
        // Of each new array a directory and a file of metadata.
        transfer.asks.iter().filter(new).count() as f64 * 2.0 * measured.files.create_ns
    }

    /// Making it visible.
    pub(super) fn publishing_ns(&self) -> f64 {
        self.measured().filter(|_| self.write).map_or(0.0, |measured| measured.files.rename_ns)
    }

    /// Making so many files with so many bytes durable.
    pub(super) fn sync_ns(&self, files: f64, bytes: f64) -> f64 {
        let Some(measured) = self.measured() else { return 0.0 };
        let costs = &measured.files;
        let calls = if files > FILES_SYNCED_ALONE { 1.0 } else { files };
        calls * costs.sync_ns + bytes * 1e9 / costs.sync_rate
    }
}

/// The rate at which a request goes past the cache of the machine at hand; `None` where it goes through it, because it
/// may, because its ranges are short, or because files have no such requests \[B/s\].
fn direct_rate(costs: &Files, request: &Request) -> Option<f64> {
    let long = request.bytes / request.ranges.max(1) >= DIRECT_BYTES_MIN;
    let rate = if request.write { costs.direct_write_rate } else { costs.direct_read_rate };
    rate.filter(|_| request.direct && long)
}

/// A request to the file system of the machine at hand, through its cache.
fn at_hand(costs: &Files, request: &Request) -> Stored {
    let (bytes, runs, ranges) = (request.bytes as f64, request.runs as f64, request.ranges.max(1));
    let chunk = request.file.is_none();
    if request.write {
        let calls = ranges.max(request.runs.div_ceil(GATHERED_MAX)) as f64;
        let named = if chunk { costs.create_ns + if request.replace { costs.rename_ns } else { 0.0 } } else { 0.0 };
        let call = calls * costs.write_ns + bytes * 1e9 / costs.write_rate;
        let call = call + (runs - calls).max(0.0) * costs.gather_ns;
        let lock_ns = if chunk { 0.0 } else { call / f64::from(costs.writers.max(1)) };
        return Stored { cpu_ns: call + named, wall_ns: call + named, lock_ns, ..Stored::default() };
    }
    let sieved = ranges > 1 && request.gaps / (ranges - 1) <= SIEVED_GAP_BYTES;
    let (calls, read) = if sieved {
        ((request.bytes + request.gaps).div_ceil(SIEVED_CALL_BYTES), bytes + request.gaps as f64)
    } else {
        (ranges.max(request.runs.div_ceil(GATHERED_MAX)), bytes)
    };
    let calls = calls as f64;
    let named = if chunk { costs.open_ns } else { 0.0 };
    let call = named + calls * costs.read_ns + read * 1e9 / costs.read_rate;
    let call = call + (runs - calls).max(0.0) * costs.gather_ns;
    Stored { cpu_ns: call, wall_ns: call, ..Stored::default() }
}
