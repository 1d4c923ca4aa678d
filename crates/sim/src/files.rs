//! Files as callers see them: requests become calls, one for each contiguous range of a file, and calls become pieces that
//! file servers serve.

use crate::behind::Behind;
use crate::blocks::Blocks;
use crate::calls::Calls;
use crate::disk::{self, Disk};
use crate::drive::Drive;
use crate::machine::{Machine, Size, WhatIf};
use crate::metadata::Books;
use crate::placing::{DiskLayout, Placing};
use crate::servers::Server;
use hyperslab_layout::{Loop, Nest, Object};
use hyperslab_pack::for_each_run;
use hyperslab_plan::profile::{self, Cache, Layout, Profile};
use hyperslab_world::{Fault, FaultKind, MemoryStore, Moved, Moves, Outcome, Request, Store, Ticket};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most ranges of a file in one request.
const RANGES_MAX: u64 = 1 << 26;

/// What one rank asked for and has not got.
#[derive(Default)]
struct Caller {
    line: VecDeque<Job>,
    running: u32,
    /// Servers that hold something that it wrote and did not sync.
    touched: BTreeSet<u32>,
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
    numbers: BTreeMap<Object, u32>,
    lengths: Vec<u64>,
    /// The contents, when payloads carry bytes.
    contents: Option<MemoryStore>,
}

impl Files {
    pub(crate) fn new(
        profile: &Profile,
        size: Size,
        what_if: WhatIf,
        on_disk: DiskLayout,
        seed: u64,
        contents: Option<MemoryStore>,
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
    pub(crate) fn number(&mut self, object: &Object, bytes: u64) -> u32 {
        if let Some(&number) = self.numbers.get(object) {
            return number;
        }
        let number = self.lengths.len() as u32;
        self.numbers.insert(object.clone(), number);
        self.lengths.push(bytes);
        self.placing.add_file(bytes);
        number
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
        let job = self.job(ticket, request);
        self.files.callers[rank as usize].line.push_back(job);
        self.next_jobs(rank);
    }

    fn job(&mut self, ticket: Ticket, request: Request) -> Job {
        let (write, direct, mut ranges) = match &request {
            Request::Write { moves, direct, .. } => (true, *direct, ranges_of(moves)),
            Request::Read { moves, direct, .. } => (false, *direct, ranges_of(moves)),
            Request::WriteWhole { moves, checksum, .. } => {
                (true, false, vec![(0, moves.bytes() + sum_bytes(*checksum))])
            }
            Request::ReadWhole { moves, checksum, .. } => {
                (false, false, vec![(0, moves.bytes() + sum_bytes(*checksum))])
            }
            Request::Put { bytes, .. } => (true, false, vec![(0, bytes.len() as u64)]),
            Request::Get { within, bytes_max, .. } => (false, false, vec![within.unwrap_or((0, *bytes_max))]),
            Request::Sync { .. } => (false, false, Vec::new()),
        };
        let end = ranges.iter().map(|range| range.0.saturating_add(range.1)).max().unwrap_or(0);
        let file = request.object().cloned().map_or(0, |object| self.files.number(&object, end));
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
            if sync { self.sync(rank, job) } else { self.next_call(rank, job) }
        }
    }

    pub(crate) fn end_job(&mut self, rank: u32, job: Job) {
        let (bytes, calls) = (job.bytes, job.calls);
        self.note(|| {
            format!("{rank} {} {bytes} B in {calls} calls", if job.write { "wrote" } else { "read or synced" })
        });
        let moved = Moved { bytes, calls, content: Vec::new() };
        let outcome = self.apply(job.request).unwrap_or(Ok(Outcome::Done(moved)));
        self.files.callers[rank as usize].running -= 1;
        self.post(rank, |mail| mail.stored.push((job.ticket, outcome)));
        self.next_jobs(rank);
    }

    /// Does what was asked to the contents, if there are any.
    fn apply(&mut self, request: Request) -> Option<Result<Outcome, Fault>> {
        let contents = self.files.contents.as_mut()?;
        contents.submit(0, request);
        let mut done = Vec::new();
        contents.poll(&mut done);
        done.pop().map(|(_, outcome)| outcome)
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
    let (Request::Write { moves, .. } | Request::Read { moves, .. }) = request else { return false };
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
