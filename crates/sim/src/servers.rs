//! File servers: what they do with a piece of a call, with or without a cache.

use crate::blocks::Blocks;
use crate::drive::{BusState, DiskJob, Drive};
use crate::kernel::Act;
use crate::machine::{Machine, Work};
use crate::placing::{Following, Piece};
use hyperslab_plan::profile::{Cache, Layout};
use std::collections::{BTreeMap, VecDeque};

/// How a server writes behind.
#[derive(Clone, Copy)]
struct Rules {
    limit_bytes: u64,
    copy_rate: f64,
    cluster_bytes: u64,
}

/// One server.
pub(crate) struct Server {
    pub(crate) drives: Vec<Drive>,
    pub(crate) bus: BusState,
    pub(crate) blocks: Option<Blocks>,
    /// Where its files lie, if they are those of one node.
    pub(crate) following: Following,
    /// Pieces that it has and has not finished.
    waiting: u32,
    /// Bytes that were accepted and wait for the disk \[B\].
    dirty_bytes: u64,
    /// Writes that wait for room, with their sizes, and those who wait until nothing is dirty.
    crowded: VecDeque<(u64, Act<Machine>)>,
    flushing: Vec<Act<Machine>>,
    /// Ends of what was accepted that fill no cluster, by disk and where they end there \[B\].
    tails: BTreeMap<(u32, u64), Piece>,
}

impl Server {
    pub(crate) fn new(drives: Vec<Drive>, blocks: Option<Blocks>) -> Server {
        Server {
            drives,
            bus: BusState::default(),
            blocks,
            following: Following::default(),
            waiting: 0,
            dirty_bytes: 0,
            crowded: VecDeque::new(),
            flushing: Vec::new(),
            tails: BTreeMap::new(),
        }
    }
}

impl Machine {
    /// The processor that serves files at a server.
    pub(crate) fn server_processor(&self, server: u32) -> usize {
        match self.profile.storage.servers.layout {
            Layout::Local => self.processor(server * self.profile.nodes.ranks_per_node),
            Layout::Ranks { .. } => self.processor(self.size.ranks - self.size.servers + server),
            Layout::Apart { .. } => self.processor_apart(server),
        }
    }

    /// The node of a server.
    pub(crate) fn server_node(&self, server: u32) -> usize {
        match self.profile.storage.servers.layout {
            Layout::Local => server as usize,
            Layout::Ranks { .. } => self.node(self.size.ranks - self.size.servers + server),
            Layout::Apart { .. } => self.node_apart(server),
        }
    }

    /// Serves a piece that has reached its server.
    pub(crate) fn serve(&mut self, piece: Piece, then: Act<Machine>) {
        let costs = &self.profile.storage.servers;
        let each = if piece.write { costs.write_byte_ns } else { costs.read_byte_ns };
        let lookup = match self.profile.storage.cache {
            Cache::Blocks { lookup_ns, .. } if !piece.direct => lookup_ns,
            _ => 0.0,
        };
        let alone = if piece.direct { 0.0 } else { costs.request_ns + each * piece.bytes as f64 + lookup };
        let crowding = costs.crowding;
        let server = &mut self.files.servers[piece.server as usize];
        let others = f64::from(server.waiting);
        server.waiting += 1;
        let ns = alone * (1.0 + crowding * others);
        let end = self.work(self.server_processor(piece.server), Work::Serve, ns);
        self.kernel.at(end, move |machine| {
            let done: Act<Machine> = Box::new(move |machine| {
                machine.files.servers[piece.server as usize].waiting -= 1;
                then(machine);
            });
            machine.store_piece(piece, done);
        });
    }

    fn store_piece(&mut self, piece: Piece, then: Act<Machine>) {
        match self.profile.storage.cache.clone() {
            Cache::Blocks { .. } if !piece.direct => self.serve_block(piece, then),
            Cache::WriteBehind { copy_rate, .. } if !piece.direct && !piece.write => {
                self.read_behind(piece, copy_rate, then);
            }
            Cache::WriteBehind { limit_bytes, copy_rate, cluster_bytes } if !piece.direct => {
                let rules = Rules { limit_bytes, copy_rate, cluster_bytes };
                self.write_behind(piece, rules, then);
            }
            _ => self.disk(piece.server, piece.disk, job(&piece, then)),
        }
    }

    /// A read ends when the disk has done it and it is copied.
    fn read_behind(&mut self, piece: Piece, copy_rate: f64, then: Act<Machine>) {
        let copied: Act<Machine> = Box::new(move |machine| {
            let ns = piece.bytes as f64 * 1e9 / copy_rate;
            let end = machine.work(machine.server_processor(piece.server), Work::Serve, ns);
            machine.kernel.at(end, then);
        });
        self.disk(piece.server, piece.disk, job(&piece, copied));
    }

    /// A write ends when it is copied, for which there must be room.
    fn write_behind(&mut self, piece: Piece, rules: Rules, then: Act<Machine>) {
        let accept: Act<Machine> = Box::new(move |machine| {
            let ns = piece.bytes as f64 * 1e9 / rules.copy_rate;
            let end = machine.work(machine.server_processor(piece.server), Work::Serve, ns);
            machine.kernel.at(end, move |machine| {
                machine.cluster(piece, rules);
                then(machine);
            });
        });
        let server = &mut self.files.servers[piece.server as usize];
        if server.dirty_bytes > 0 && server.dirty_bytes + piece.bytes > rules.limit_bytes {
            server.crowded.push_back((piece.bytes, accept));
            return self.write_tails(piece.server, rules.limit_bytes);
        }
        server.dirty_bytes += piece.bytes;
        accept(self);
    }

    /// Gives the disk what fills clusters of what was accepted; the rest waits for more.
    fn cluster(&mut self, piece: Piece, rules: Rules) {
        let server = &mut self.files.servers[piece.server as usize];
        let whole = match server.tails.remove(&(piece.disk, piece.offset)) {
            Some(tail) => Piece { bytes: tail.bytes + piece.bytes, ..tail },
            None => piece,
        };
        let end = whole.offset + whole.bytes;
        let cut = (end - end % rules.cluster_bytes).max(whole.offset);
        if end > cut {
            let tail = Piece { offset: cut, bytes: end - cut, ..whole };
            if let Some(older) = server.tails.insert((piece.disk, end), tail) {
                self.write_through(older, rules.limit_bytes);
            }
        }
        self.write_through(Piece { bytes: cut - whole.offset, ..whole }, rules.limit_bytes);
        // Somebody may wait for room, or for all to be on the disk, already.
        let server = &self.files.servers[piece.server as usize];
        if !server.crowded.is_empty() || !server.flushing.is_empty() {
            self.write_tails(piece.server, rules.limit_bytes);
        }
    }

    /// Gives the disks what waited for more to follow, in rising order.
    fn write_tails(&mut self, server: u32, limit: u64) {
        let tails = std::mem::take(&mut self.files.servers[server as usize].tails);
        tails.into_values().for_each(|tail| self.write_through(tail, limit));
    }

    fn write_through(&mut self, piece: Piece, limit: u64) {
        if piece.bytes > 0 {
            let written: Act<Machine> = Box::new(move |machine| machine.cleaned(piece.server, piece.bytes, limit));
            self.disk(piece.server, piece.disk, job(&piece, written));
        }
    }

    /// Bytes that waited for the disk have reached it.
    fn cleaned(&mut self, server: u32, bytes: u64, limit: u64) {
        let state = &mut self.files.servers[server as usize];
        state.dirty_bytes -= bytes;
        let mut accepted = Vec::new();
        while let Some(&(next, _)) = state.crowded.front() {
            if state.dirty_bytes > 0 && state.dirty_bytes + next > limit {
                break;
            }
            state.dirty_bytes += next;
            accepted.extend(state.crowded.pop_front().map(|(_, act)| act));
        }
        let flushed = if state.dirty_bytes == 0 { std::mem::take(&mut state.flushing) } else { Vec::new() };
        accepted.into_iter().for_each(|act| act(self));
        for act in flushed {
            self.settle(server, act);
        }
    }

    /// Makes what a server has accepted durable, then goes on.
    pub(crate) fn flush(&mut self, server: u32, then: Act<Machine>) {
        let state = &mut self.files.servers[server as usize];
        if state.blocks.is_some() {
            let settled = Box::new(move |machine: &mut Machine| machine.settle(server, then));
            return self.flush_blocks(server, settled);
        }
        if state.dirty_bytes > 0 {
            state.flushing.push(then);
            let limit = match self.profile.storage.cache {
                Cache::WriteBehind { limit_bytes, .. } => limit_bytes,
                _ => u64::MAX,
            };
            return self.write_tails(server, limit);
        }
        self.settle(server, then);
    }

    /// Goes on once the drives have all that they accepted on their media.
    fn settle(&mut self, server: u32, then: Act<Machine>) {
        let drives = &self.files.servers[server as usize].drives;
        let at = drives.iter().map(Drive::settled_ns).max().unwrap_or(0);
        self.kernel.at(at, then);
    }
}

fn job(piece: &Piece, then: Act<Machine>) -> DiskJob {
    let hinted = piece.direct && !piece.write;
    DiskJob { write: piece.write, offset: piece.offset, bytes: piece.bytes, hinted, then }
}
