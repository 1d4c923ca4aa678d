//! Files as callers see them: requests become calls, one for each contiguous range of a file, and calls become pieces that
//! file servers serve.

use crate::behind::Behind;
use crate::blocks::Blocks;
use crate::calls::Calls;
use crate::contents::FileBytes;
use crate::desk::{Books, Metadata};
use crate::disk::{self, Disk};
use crate::drive::Drive;
use crate::machine::{Machine, Size, WhatIf};
use crate::names::is_below;
use crate::placing::{DiskLayout, Placing};
use crate::servers::Server;
use hyperslab_layout::{Loop, Nest, Object};
use hyperslab_pack::for_each_run;
use hyperslab_plan::profile::{self, Cache, Layout, Profile};
use hyperslab_world::{Fault, FaultKind, Moved, Moves, Outcome, Request, Root, Ticket, Within};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Most ranges of a file in one request.
const RANGES_MAX: u64 = 1 << 26;

/// What one rank asked for and has not got.
#[derive(Default)]
struct Caller {
    line: VecDeque<Job>,
    running: u32,
    /// Servers that hold something that it wrote and did not sync.
    touched: BTreeSet<u32>,
    /// Below which its objects lie, and openings of which it has seen the proofs.
    roots: Arc<[Root]>,
    proven: BTreeSet<u64>,
    /// Files that it has open.
    open: BTreeSet<u32>,
}

/// A request under way.
pub(crate) struct Job {
    ticket: Ticket,
    request: Request,
    pub(crate) write: bool,
    pub(crate) direct: bool,
    pub(crate) file: u32,
    /// Ranges that were not called for yet, last first, as (offset, bytes).
    pub(crate) ranges: Vec<(u64, u64)>,
    bytes: u64,
    calls: u64,
}

/// All files of a machine.
pub(crate) struct Files {
    pub(crate) servers: Vec<Server>,
    pub(crate) placing: Placing,
    callers: Vec<Caller>,
    pub(crate) calls: Calls,
    pub(crate) books: Books,
    /// By name.
    numbers: BTreeMap<Arc<str>, u32>,
    lengths: Vec<u64>,
    /// The contents, as far as payloads carry bytes.
    pub(crate) contents: FileBytes,
}

impl Files {
    pub(crate) fn new(
        profile: &Profile,
        size: Size,
        what_if: WhatIf,
        on_disk: DiskLayout,
        seed: u64,
        contents: FileBytes,
    ) -> Files {
        let storage = &profile.storage;
        let count = match storage.servers.layout {
            Layout::Local => profile.nodes.filled_by(size.ranks),
            Layout::Ranks { .. } => size.servers,
            Layout::Apart { count, .. } => count,
        };
        let disks = storage.servers.disks;
        let mut random = fastrand::Rng::with_seed(seed ^ 0xD15C);
        let mut drive = || {
            let phase = random.f64();
            let kind = if what_if.instant_disk { &profile::Disk::Instant } else { &storage.disk };
            Drive::new(make_disk(kind, phase), storage.queue)
        };
        let callers =
            size.ranks - if matches!(storage.servers.layout, Layout::Ranks { .. }) { size.servers } else { 0 };
        let blocks = || match storage.cache {
            Cache::Blocks { block_bytes, blocks_per_rank, .. } => {
                let room = u64::from(blocks_per_rank) * u64::from(callers.max(1)) * u64::from(disks);
                Some(Blocks::new(block_bytes, room as usize))
            }
            _ => None,
        };
        let behind = || match storage.cache {
            Cache::WriteBehind { limit_bytes, copy_rate, cluster_bytes } => {
                Some(Behind::new(limit_bytes, copy_rate, cluster_bytes))
            }
            _ => None,
        };
        let mut server = |_| Server::new((0..disks).map(|_| drive()).collect(), blocks(), behind());
        Files {
            servers: (0..count).map(&mut server).collect(),
            placing: Placing::new(storage.servers.layout.clone(), count, disks, on_disk, seed),
            callers: (0..size.ranks).map(|_| Caller::default()).collect(),
            calls: Calls::default(),
            books: Books::default(),
            numbers: BTreeMap::new(),
            lengths: Vec::new(),
            contents,
        }
    }

    /// The number of a file, which is so long if nobody said so before \[B\].
    pub(crate) fn number(&mut self, name: &str, bytes: u64) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.lengths.len() as u32;
        self.numbers.insert(name.into(), number);
        self.lengths.push(bytes);
        self.placing.add_file(bytes);
        number
    }

    /// Gives a file, or all files in a directory, another name; what had that is gone.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let moved = self.take_below(from);
        self.take_below(to);
        self.numbers
            .extend(moved.into_iter().map(|(name, file)| (format!("{to}{}", &name[from.len()..]).into(), file)));
    }

    /// Forgets a file, or all files in a directory; says how many there were.
    pub(crate) fn remove(&mut self, name: &str) -> u64 {
        self.take_below(name).len() as u64
    }

    fn take_below(&mut self, name: &str) -> Vec<(Arc<str>, u32)> {
        let mut all = self.numbers.split_off(name);
        // Behind what begins with the name, others follow.
        let mut behind = all.split_off(&*format!("{name}\u{10ffff}"));
        let (below, beside): (Vec<_>, Vec<_>) = all.into_iter().partition(|(other, _)| is_below(other, name));
        self.numbers.append(&mut behind);
        self.numbers.extend(beside);
        below
    }

    /// Objects of a rank's further requests lie below these.
    pub(crate) fn enter(&mut self, rank: u32, roots: Arc<[Root]>) {
        self.contents.enter(rank, &roots);
        self.callers[rank as usize].roots = roots;
    }

    /// Below which the objects of a rank's requests lie.
    pub(crate) fn roots(&self, rank: u32) -> Arc<[Root]> {
        self.callers[rank as usize].roots.clone()
    }

    /// How many files a rank has open, which it closes now.
    pub(crate) fn close_all(&mut self, rank: u32) -> u64 {
        std::mem::take(&mut self.callers[rank as usize].open).len() as u64
    }

    /// How often a rank asks or opens before it begins a request for a file. One whose name is not absolute has been open on
    /// all ranks since before the beginning.
    fn chores(&mut self, rank: u32, job: &Job) -> [(Metadata, u64); 2] {
        let caller = &mut self.callers[rank as usize];
        let root = job.request.object().and_then(|object| caller.roots.get(object.root as usize));
        let Some(root) = root.filter(|root| root.at.starts_with('/')) else {
            return [(Metadata::Query, 0), (Metadata::Open, 0)];
        };
        let proofs = if caller.proven.insert(root.opening) { root.proofs.len() as u64 } else { 0 };
        let opens = match &job.request {
            // What is replaced takes its name by a rename.
            Request::WriteWhole { replace, .. } | Request::Put { replace, .. } => 1 + u64::from(*replace),
            Request::ReadWhole { .. } | Request::Get { .. } => 1,
            _ => u64::from(caller.open.insert(job.file)),
        };
        [(Metadata::Query, proofs), (Metadata::Open, opens)]
    }

    /// The number of an object, as a rank calls it.
    fn number_of(&mut self, rank: u32, object: &Object, bytes: u64) -> u32 {
        let roots = &self.callers[rank as usize].roots;
        match roots.is_empty() {
            true => self.number(&object.name.clone(), bytes),
            false => self.number(&Root::full_of(&self.roots(rank), object), bytes),
        }
    }

    /// Whether a file was opened for this request alone, and so is closed after it.
    fn is_opened_alone(&self, rank: u32, request: &Request) -> bool {
        let whole = !matches!(
            request,
            Request::Write { .. } | Request::Read { .. } | Request::ReadPart { .. } | Request::Sync { .. }
        );
        let root = request.object().and_then(|object| self.callers[rank as usize].roots.get(object.root as usize));
        whole && root.is_some_and(|root| root.at.starts_with('/'))
    }

    /// How long a file is, as far as anybody said \[B\].
    pub(crate) fn length(&self, file: u32) -> u64 {
        self.lengths[file as usize]
    }

    /// Notes that a server holds something that a rank wrote.
    pub(crate) fn touch(&mut self, rank: u32, server: u32) {
        self.callers[rank as usize].touched.insert(server);
    }

    /// Servers that hold something that a rank wrote and did not sync.
    pub(crate) fn take_touched(&mut self, rank: u32) -> BTreeSet<u32> {
        std::mem::take(&mut self.callers[rank as usize].touched)
    }

    /// When all disks have all that they accepted on their media.
    pub(crate) fn settled_ns(&self) -> u64 {
        self.servers.iter().flat_map(|server| &server.drives).map(Drive::settled_ns).max().unwrap_or(0)
    }
}

fn make_disk(kind: &profile::Disk, phase: f64) -> Box<dyn Disk> {
    match *kind {
        profile::Disk::Hp97560 => Box::new(disk::Hp97560::new(phase)),
        profile::Disk::Rated { read_rate, write_rate, position_ns, request_ns } => {
            Box::new(disk::Rated::new(read_rate, write_rate, position_ns, request_ns))
        }
        profile::Disk::Nvme { read_rate, write_rate, read_ns, write_ns, depth } => {
            Box::new(disk::Nvme::new(read_rate, write_rate, read_ns, write_ns, depth))
        }
        profile::Disk::Instant => Box::new(disk::Instant::default()),
    }
}

impl Machine {
    /// Takes a request of a rank.
    pub(crate) fn submit(&mut self, rank: u32, ticket: Ticket, request: Request) {
        if is_endless(&request) {
            let text = format!("rank {rank} asks for more than {RANGES_MAX} ranges of a file at once");
            let fault = Fault::new(FaultKind::Invalid, text).hint("take a smaller array, or another strategy");
            return self.post(rank, |mail| mail.stored.push((ticket, Err(fault))));
        }
        let job = self.job(rank, ticket, request);
        self.files.callers[rank as usize].line.push_back(job);
        self.next_jobs(rank);
    }

    fn job(&mut self, rank: u32, ticket: Ticket, request: Request) -> Job {
        let (write, direct, mut ranges) = match &request {
            Request::Write { moves, direct, .. } => (true, *direct, ranges_of(moves)),
            Request::Read { moves, direct, .. } => (false, *direct, ranges_of(moves)),
            Request::ReadPart { moves, .. } => (false, false, ranges_of(moves)),
            Request::WriteWhole { moves, checksum, .. } => {
                (true, false, vec![(0, moves.bytes() + sum_bytes(*checksum))])
            }
            Request::ReadWhole { moves, checksum, .. } => {
                (false, false, vec![(0, moves.bytes() + sum_bytes(*checksum))])
            }
            Request::Put { bytes, .. } => (true, false, vec![(0, bytes.len() as u64)]),
            // Where an imagined object ends nobody knows.
            Request::Get { within: Within::All, bytes_max, .. } => (false, false, vec![(0, *bytes_max)]),
            Request::Get { within, .. } => (false, false, vec![within.of(0)]),
            Request::Sync { .. } => (false, false, Vec::new()),
        };
        let end = ranges.iter().map(|range| range.0.saturating_add(range.1)).max().unwrap_or(0);
        let file = request.object().map_or(0, |object| self.files.number_of(rank, object, end));
        ranges.reverse();
        let bytes = ranges.iter().map(|range| range.1).sum();
        let calls = ranges.len() as u64;
        Job { ticket, request, write, direct, file, ranges, bytes, calls }
    }

    /// Begins requests of a rank, as many as it may have under way. A sync waits for all before it.
    fn next_jobs(&mut self, rank: u32) {
        loop {
            let limit = self.profile.storage.calls_at_once;
            let caller = &mut self.files.callers[rank as usize];
            let Some(first) = caller.line.front() else { return };
            let sync = matches!(first.request, Request::Sync { .. });
            let limit = if first.direct { limit.max(8) } else { limit };
            if caller.running > 0 && (sync || caller.running >= limit) {
                return;
            }
            caller.running += 1;
            let Some(job) = caller.line.pop_front() else { return };
            if sync { self.sync(rank, job) } else { self.begin_job(rank, job) }
        }
    }

    /// Looks at what is to be proven, opens the file, and calls.
    fn begin_job(&mut self, rank: u32, job: Job) {
        let [queries, opens] = self.files.chores(rank, &job);
        self.metadata_if(queries, move |machine| {
            machine.metadata_if(opens, move |machine| machine.next_call(rank, job));
        });
    }

    /// Opens, closes or asks about so many files, if any.
    fn metadata_if(&mut self, (kind, count): (Metadata, u64), then: impl FnOnce(&mut Machine) + 'static) {
        if count == 0 { then(self) } else { self.metadata(kind, count, Box::new(then)) }
    }

    pub(crate) fn end_job(&mut self, rank: u32, job: Job) {
        let closes = u64::from(self.files.is_opened_alone(rank, &job.request));
        self.metadata_if((Metadata::Close, closes), move |machine| machine.over(rank, job));
    }

    fn over(&mut self, rank: u32, job: Job) {
        let (bytes, calls) = (job.bytes, job.calls);
        self.note(|| {
            format!("{rank} {} {bytes} B in {calls} calls", if job.write { "wrote" } else { "read or synced" })
        });
        let moved = Moved { bytes, calls, ..Moved::default() };
        let applied = self.files.contents.apply(rank, job.request);
        let outcome = applied.unwrap_or(Ok(Outcome::Done(moved)));
        self.files.callers[rank as usize].running -= 1;
        self.post(rank, |mail| mail.stored.push((job.ticket, outcome)));
        self.next_jobs(rank);
    }
}

fn sum_bytes(checksum: bool) -> u64 {
    if checksum { 4 } else { 0 }
}

/// The walk over the elements' places in the object alone: the memory may be scattered, the system gathers it.
fn in_object(nest: &Nest) -> Nest {
    let loops = nest.loops.iter().map(|l| Loop { count: l.count, a: l.b, b: l.b }).collect();
    Nest { a: nest.b, b: nest.b, loops }
}

/// Whether a request falls into so many ranges that nobody would wait for their end.
fn is_endless(request: &Request) -> bool {
    let (Request::Write { moves, .. } | Request::Read { moves, .. } | Request::ReadPart { moves, .. }) = request else {
        return false;
    };
    let bytes = moves.there.element.bytes();
    let runs = moves.nests().map(|nest| in_object(&nest).normalised().runs(bytes, bytes));
    runs.fold(0, u64::saturating_add) > RANGES_MAX
}

/// The contiguous ranges of the object that elements lie in, in the order of their walk, as (offset, bytes).
fn ranges_of(moves: &Moves) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for nest in moves.nests() {
        for_each_run(&in_object(&nest), moves.there.element.bytes(), |_, offset, bytes| match ranges.last_mut() {
            Some(last) if last.0 + last.1 == offset as u64 => last.1 += bytes,
            _ => ranges.push((offset as u64, bytes)),
        });
    }
    ranges
}
