//! What single things cost on a machine.

use super::memories::CACHED_BYTES;
use super::moved::{Copied, Moved};
use super::spread::Spread;
use super::stretches::LINE_BYTES;
use super::terms::Priced;
use super::work::Request;
use crate::profile::{Disk, Files, Layout, Measured, Profile};
use crate::strategies::Servers;
use crate::strategy::{Parameters, Sequence};
use crate::transfer::{Direction, PAGE_BYTES, Transfer, TransferArray};

/// Children of a rank in the tree of an agreement.
const ARITY: u32 = 4;
/// Most bytes of one read that goes over short gaps \[B\].
const SIEVED_CALL_BYTES: u64 = 8 << 20;
/// Most runs of memory that one call gathers.
const GATHERED_MAX: u64 = 1024;
/// New files from which on all are made durable by one call.
const FILES_SYNCED_ALONE: f64 = 32.0;
/// What each further file takes beside the first, which commits the journal for those that are set going with it; and
/// what each takes where one call does all \[shares of one alone\]. Measured on ext4 with files of 8 KiB: 0.35 ms for 1,
/// 1.0 for 8, 2.5 for 32; all by one call 0.29 for 1, 1.1 for 32, 2.6 for 128.
const FURTHER_SYNCED: f64 = 0.2;
const FURTHER_SYNCED_AT_ONCE: f64 = 0.06;
/// Requests from which on what they wrote is sent to the disk at once \[B\], and the share of what goes on meanwhile by which
/// that makes it longer. Measured with 28 MiB by 2 ranks, 7.4 ms of copies and 12.6 of syncing: 14 to 17 ms, 23 one after the
/// other.
const SENT_ON_BYTES_MIN: u64 = 512 << 10;
const SENDING: f64 = 0.25;
/// How much longer direct requests take that do not begin between pages: they go by way of aligned memory, 1 MiB
/// at a time, and their ends through the cache. Measured with a header of 128 B: 1.5 times for 64 MiB, 2.1 for 256 MiB.
const OUT_OF_STEP: f64 = 2.0;
/// How much longer direct writes take in transfers than where they are measured, eight at a time out of memory that is
/// filled already: as many are under way as a server has slots, and space is reserved first. Measured with 22 and 25 MB by 2 and 4
/// ranks: 13.6 to 14.1 ms for 10.5 to 11.7; in eleven durable dumps of 1 to 70 MiB, none of which they did best, they took 1.07 to
/// 1.55 times as long as the best that goes through the cache.
const UNDER_WAY: f64 = 1.3;
/// Longest requests through the cache that a rank of this machine carries out on its own thread, by which it moves data,
/// too, although a core is free for another thread; and half of the shortest reads that go by way of a mapping \[B\].
const OWN_THREAD_BYTES: u64 = 256 << 10;
/// Runs of memory from which on a chunk with a checksum is read straight into them \[B\].
const CHECKED_RUN_BYTES: u64 = 8 << 10;
/// Shorter ranges of a file go through the cache even when they shall not \[B\].
const DIRECT_BYTES_MIN: u64 = 64 << 10;

/// What a request to storage costs.
#[derive(Clone, Copy, Default)]
pub(super) struct Stored {
    /// The processor of who asks \[ns\].
    pub(super) cpu_ns: f64,
    /// From asking to the end, when nobody else asks \[ns\].
    pub(super) wall_ns: f64,
    /// The lock of its file \[ns\].
    pub(super) lock_ns: f64,
    /// Whether that file may have other writers.
    pub(super) shared: bool,
    /// The link of the node of who asks \[ns\].
    pub(super) wire_ns: f64,
    /// File servers, each of those that are at work at a time; of a node's own files, all \[ns\].
    pub(super) server_ns: f64,
    /// Disks likewise; perhaps later \[ns\].
    pub(super) disk_ns: f64,
    /// Of this, what is written only when it is made durable, and the last piece of it \[ns\].
    pub(super) tail_ns: f64,
    pub(super) last_ns: f64,
    /// Pieces that file servers are asked for.
    pub(super) pieces: f64,
    /// Waiting once for those who ask at the same time \[ns\].
    pub(super) queue_ns: f64,
}

pub(super) struct Costs<'a> {
    pub(super) priced: Priced<'a>,
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

    /// Whether each rank has a node of its own, whose processor then does all that is done there.
    pub(super) fn alone(&self) -> bool {
        self.priced.machine.ranks_per_node.min(self.ranks) <= 1
    }

    /// Whether a rank is the first of its node: files of a node's own are served by its processor.
    pub(super) fn first_of_node(&self, rank: u32) -> bool {
        rank.is_multiple_of(self.priced.machine.ranks_per_node.max(1))
    }

    /// Cores of a node that have ranks.
    pub(super) fn cores(&self) -> f64 {
        let machine = self.priced.machine;
        // A real machine has a thread for each rank's files besides.
        let ranks = machine.ranks_per_node.min(self.ranks) * if self.measured().is_some() { 2 } else { 1 };
        f64::from(machine.cores_per_node.clamp(1, ranks.max(1)))
    }

    /// Whether ranks of a node have to share its cores.
    pub(super) fn crowded(&self) -> bool {
        let machine = self.priced.machine;
        machine.ranks_per_node.min(self.ranks) > machine.cores_per_node
    }

    /// Whether a rank's calls for storage keep its own processor from moving data.
    pub(super) fn one_processor(&self) -> bool {
        self.measured().is_none()
    }

    /// Whether a rank moves no data while this request goes on: its own thread carries it out, or another one that has to
    /// share cores with the ranks.
    pub(super) fn stops_rank(&self, request: &Request) -> bool {
        let machine = self.priced.machine;
        let all_cores = machine.ranks_per_node.min(self.ranks) >= machine.cores_per_node;
        // Whole files are always made by the other thread.
        let short = request.bytes <= OWN_THREAD_BYTES && (!request.write || request.file.is_some());
        self.measured().is_some() && (all_cores || short) && !self.past_cache(request)
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
        bytes as f64 * 1e9 / self.profile().processor.copy_rate + self.runs_ns(runs, 0, 0)
    }

    /// What copies on a rank take: lines of its cache come while the processor is busy with runs.
    pub(super) fn copied_ns(&self, copied: Copied) -> f64 {
        let Copied { bytes, runs, words, planes, part_lines, spilled } = copied;
        let lines_ns = self.runs_ns(runs, words, planes).max(self.part_lines_ns(part_lines));
        self.copy_ns(bytes, 0) + lines_ns + self.memory_ns(spilled as f64)
    }

    /// What runs of a copy cost besides their bytes; so many of them are words, in so many planes.
    pub(super) fn runs_ns(&self, runs: u64, words: u64, planes: u64) -> f64 {
        let costs = &self.profile().processor;
        let begun = planes as f64 * (costs.run_ns - costs.turn_ns).max(0.0);
        runs.saturating_sub(words) as f64 * costs.run_ns + words as f64 * costs.turn_ns + begun
    }

    /// What it takes besides where copies move only parts of lines of the processor's cache: each line comes from memory, and
    /// goes back where it was changed. Measured with a file in column-major order: 11 to 16 ns a line that was,
    /// 5 one that was only read.
    pub(super) fn part_lines_ns(&self, lines: u64) -> f64 {
        2.0 * self.memory_ns((lines * LINE_BYTES) as f64)
    }

    /// What it takes to bring so many bytes of lines from memory, and back where they are read into.
    pub(super) fn lines_ns(&self, bytes: f64) -> f64 {
        let ways = if self.write { 1.0 } else { 2.0 };
        ways * self.memory_ns(bytes)
    }

    /// What so many bytes take one way between memory and the processor's cache, where a copy takes both; nothing on imagined
    /// machines.
    fn memory_ns(&self, bytes: f64) -> f64 {
        self.measured().map_or(0.0, |measured| 0.5 * bytes * 1e9 / measured.neighbours.rate)
    }

    /// What copying the data of a message takes.
    pub(super) fn moved_ns(&self, moved: Moved) -> f64 {
        self.copy_ns(moved.bytes, 0) + self.runs_ns(moved.runs, moved.words, moved.planes)
    }

    /// A request to storage, beside those of others.
    pub(super) fn request(&self, request: &Request, spread: Option<&Spread>) -> Stored {
        match self.measured() {
            Some(measured) => match direct_rate(&measured.files, request) {
                Some(rate) => self.past_cache_at_hand(&measured.files, request, rate),
                None if request.checked && !request.write => self.checked_at_hand(&measured.files, request),
                None if self.is_mapped(request) => self.mapped(&measured.files, request),
                None => at_hand(&measured.files, request),
            },
            None => self.imagined(request, spread),
        }
    }

    /// A direct request of this machine: the disk's answer is waited for, but several may be under way.
    fn past_cache_at_hand(&self, costs: &Files, request: &Request, rate: f64) -> Stored {
        let named = match (&request.file, request.write) {
            (Some(_), _) => 0.0,
            (None, true) => costs.create_ns + if request.replace { costs.rename_ns } else { 0.0 },
            (None, false) => costs.open_ns,
        };
        let calls = request.ranges.max(request.runs.div_ceil(GATHERED_MAX)) as f64;
        let (first, further) =
            if request.write { (costs.write_ns, costs.write_range_ns) } else { (costs.read_ns, costs.read_range_ns) };
        let rate = if request.at_page { rate } else { rate / OUT_OF_STEP };
        let rate = if request.write { rate / UNDER_WAY } else { rate };
        // What goes by way of aligned memory is copied.
        let copied_ns = if request.at_page { 0.0 } else { self.copy_ns(request.bytes, 1) };
        let asked_ns = named + first + (calls - 1.0).max(0.0) * further;
        // The rate out of step has been measured with it.
        let (cpu_ns, disk_ns) = (asked_ns + copied_ns, request.bytes as f64 * 1e9 / rate);
        let answered = calls * self.disk_latency_ns(request.write);
        let lock_ns = if request.write { named } else { 0.0 };
        Stored { cpu_ns, wall_ns: asked_ns + answered + disk_ns, lock_ns, disk_ns, ..Stored::default() }
    }

    /// Whether a read copies out of mappings: where a line of the processor's cache is wanted of each page, or more, and a call has
    /// more to do than one short copy.
    fn is_mapped(&self, request: &Request) -> bool {
        let is_worth_it = request.runs > 1 || request.bytes >= CACHED_BYTES;
        self.maps(request.copied.bytes) && is_worth_it && request.gaps / (PAGE_BYTES / LINE_BYTES) <= request.bytes
    }

    /// A read by way of a mapping, which the processor copies as it does between arrays.
    fn mapped(&self, costs: &Files, request: &Request) -> Stored {
        let named = if request.file.is_none() { costs.open_ns } else { 0.0 };
        let call = named + costs.read_ns + self.copied_ns(request.copied);
        Stored { cpu_ns: call, wall_ns: call, ..Stored::default() }
    }

    fn maps(&self, bytes: u64) -> bool {
        self.priced.machine.maps_files && bytes >= 2 * OWN_THREAD_BYTES
    }

    /// A whole chunk, whose checksum is compared: what goes to short runs of memory is read ahead and copied; long runs have
    /// a call each.
    fn checked_at_hand(&self, costs: &Files, request: &Request) -> Stored {
        let runs = request.runs.max(1);
        let to_runs_ns = if runs > 1 && request.bytes / runs < CHECKED_RUN_BYTES {
            self.copy_ns(request.bytes, runs)
        } else {
            (runs - 1) as f64 * costs.read_range_ns
        };
        let rate = if self.maps(request.bytes) { self.profile().processor.copy_rate } else { costs.read_rate };
        let call = costs.open_ns + costs.read_ns + request.bytes as f64 * 1e9 / rate + to_runs_ns;
        Stored { cpu_ns: call, wall_ns: call, ..Stored::default() }
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

    /// Over how many file servers one file is spread.
    pub(super) fn file_width(&self) -> f64 {
        match self.profile().storage.servers.layout {
            Layout::Apart { width, .. } => f64::from(width),
            _ => self.file_servers().0,
        }
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

    /// Whether a request is a direct one.
    pub(super) fn past_cache(&self, request: &Request) -> bool {
        match self.measured() {
            Some(measured) => direct_rate(&measured.files, request).is_some(),
            None => request.direct,
        }
    }

    /// What rank 0 does before data move.
    pub(super) fn preparing_ns(&self, transfer: &Transfer, parameters: &Parameters) -> f64 {
        let made = if makes_several(transfer) { 0.0 } else { self.naming_ns(transfer) };
        made + self.ordering_ns(transfer, parameters)
    }

    /// Touching buffers for the first time, on all ranks that handle storage.
    pub(super) fn touching_ns(&self, parameters: &Parameters, bytes: u64) -> f64 {
        let Some(_) = self.measured() else { return 0.0 };
        let here = (Servers::of(parameters, self.ranks).len() as f64 / self.nodes()).max(1.0);
        bytes as f64 * 1e9 / self.profile().processor.touch_rate * (here / self.cores()).max(1.0)
    }

    /// Reserving the space of files and asking where it lies on the disk, where the order of the disk is followed.
    fn ordering_ns(&self, transfer: &Transfer, parameters: &Parameters) -> f64 {
        let Some(measured) = self.measured().filter(|_| parameters.strategy.order() == Sequence::Disk) else {
            return 0.0;
        };
        let files = transfer.asks.iter().filter(|ask| ask.stored.is_in_one_object());
        let bytes: u64 = files.map(crate::transfer::TransferArray::stored_bytes).sum();
        // Where a group begins is found and sorted as a piece of a message is; all of a transfer lie in one file.
        let groups = bytes.div_ceil(parameters.subchunk_bytes.max(1)) as f64;
        let asked = if bytes > 0 { 2.0 * measured.files.open_ns } else { 0.0 };
        asked + groups * self.profile().processor.piece_ns
    }

    /// What the ranks that handle storage make beside each other of several new arrays: their directories all in one, the
    /// metadata each in its own, where nobody else makes anything.
    pub(super) fn beside_ns(&self, transfer: &Transfer, parameters: &Parameters) -> f64 {
        let makers = Servers::of(parameters, transfer.ranks).len().min(self.cores() as usize);
        if !makes_several(transfer) {
            0.0
        } else if makers > 1 {
            self.naming_ns(transfer) * f64::midpoint(self.beside_others(), 1.0) / makers as f64
        } else {
            self.naming_ns(transfer)
        }
    }

    /// Making directories and metadata where arrays are new.
    fn naming_ns(&self, transfer: &Transfer) -> f64 {
        let Some(measured) = self.measured().filter(|_| self.write) else { return 0.0 };
        // Of each new array a directory and a file of metadata.
        made_arrays(transfer).count() as f64 * 2.0 * measured.files.create_ns
    }

    /// How much longer a file takes to be made where several ranks make some, each of all of them over one alone.
    pub(super) fn beside_others(&self) -> f64 {
        self.measured()
            .map_or(1.0, |measured| measured.files.create_together_ns / measured.files.create_ns.max(1.0))
            .max(1.0)
    }

    /// Making it visible.
    pub(super) fn publishing_ns(&self) -> f64 {
        self.measured().filter(|_| self.write).map_or(0.0, |measured| measured.files.rename_ns)
    }

    /// What a request leaves in the cache: its bytes, and as many more as are made durable in the time that its folios take.
    pub(super) fn synced_bytes(&self, request: &Request) -> f64 {
        let more = |measured: &Measured| folios_ns(&measured.files, request) * measured.files.sync_rate / 1e9;
        request.bytes as f64 + self.measured().map_or(0.0, more)
    }

    /// Whether what a request writes to the cache is sent to the disk at once, where it shall be durable.
    pub(super) fn is_sent_on(&self, request: &Request) -> bool {
        !request.replace && !request.direct && request.bytes >= SENT_ON_BYTES_MIN && request.gaps <= request.bytes
    }

    /// Making so many files of a node with so many bytes durable, of which one rank has made at most `most`. So many of the
    /// bytes were sent to the disk while data moved for so long, and so many while something else was done.
    pub(super) fn sync_ns(&self, files: f64, most: f64, bytes: f64, sent: [(f64, f64); 2]) -> f64 {
        let Some(measured) = self.measured() else { return 0.0 };
        let costs = &measured.files;
        let each = if most > FILES_SYNCED_ALONE { FURTHER_SYNCED_AT_ONCE } else { FURTHER_SYNCED };
        let calls = files.min(1.0) + (files - 1.0).max(0.0) * each;
        let [moving_ns, idle_ns] = sent.map(|(bytes, ns)| (bytes * 1e9 / costs.sync_rate).min(ns));
        calls * costs.sync_ns + bytes * 1e9 / costs.sync_rate - (1.0 - SENDING) * moving_ns - idle_ns
    }
}

/// The rate of a direct request on this machine; `None` where it goes through the cache, because it
/// may, because its ranges are short, or because files have no such requests \[B/s\].
fn direct_rate(costs: &Files, request: &Request) -> Option<f64> {
    let long = request.bytes / request.ranges.max(1) >= DIRECT_BYTES_MIN;
    let rate = if request.write { costs.direct_write_rate } else { costs.direct_read_rate };
    rate.filter(|_| request.direct && long)
}

/// What further folios take, when they are written to the cache, and again when they are sent to the disk: each about as
/// long as a further range \[ns\].
fn folios_ns(costs: &Files, request: &Request) -> f64 {
    request.further_folios as f64 * costs.write_range_ns
}

/// A request to the file system of this machine, through its cache.
fn at_hand(costs: &Files, request: &Request) -> Stored {
    let (bytes, runs, ranges) = (request.bytes as f64, request.runs as f64, request.ranges.max(1));
    let chunk = request.file.is_none();
    if request.write {
        let calls = ranges.max(request.runs.div_ceil(GATHERED_MAX)) as f64;
        let named = if chunk { costs.create_ns + if request.replace { costs.rename_ns } else { 0.0 } } else { 0.0 };
        let rate = if request.kept { costs.write_rate_kept } else { costs.write_rate };
        let call = costs.write_ns + (calls - 1.0).max(0.0) * costs.write_range_ns + bytes * 1e9 / rate;
        let call = call + (runs - calls).max(0.0) * costs.gather_ns + folios_ns(costs, request);
        // A directory lets one in at a time.
        let lock_ns = match chunk {
            true if request.alone => 0.0,
            true => named,
            false => call / f64::from(costs.writers.max(1)),
        };
        return Stored { cpu_ns: call + named, wall_ns: call + named, lock_ns, shared: !chunk, ..Stored::default() };
    }
    let sieved = request.short_gaps > 0;
    let read = bytes + request.short_gaps as f64;
    let calls = if sieved {
        request.stretches.max((request.bytes + request.short_gaps).div_ceil(SIEVED_CALL_BYTES))
    } else {
        ranges.max(request.runs.div_ceil(GATHERED_MAX))
    };
    let calls = calls as f64;
    let named = if chunk { costs.open_ns } else { 0.0 };
    let call = named + costs.read_ns + (calls - 1.0).max(0.0) * costs.read_range_ns + read * 1e9 / costs.read_rate;
    let call = call + (runs - calls).max(0.0) * costs.scatter_ns;
    Stored { cpu_ns: call, wall_ns: call, ..Stored::default() }
}

fn made_arrays(transfer: &Transfer) -> impl Iterator<Item = &TransferArray> {
    transfer.asks.iter().filter(|ask| ask.stored.makes_objects())
}

/// Whether rank 0 leaves it to others to make new arrays.
fn makes_several(transfer: &Transfer) -> bool {
    made_arrays(transfer).nth(1).is_some()
}
