//! File servers: what they do with a piece of a call, with or without a cache.

use crate::allocation::Allocation;
use crate::behind::Behind;
use crate::blocks::Blocks;
use crate::drive::{BusState, DiskJob, Drive};
use crate::kernel::Act;
use crate::machine::{Machine, Work};
use crate::placing::Piece;
use hyperslab_plan::profile::{Cache, Layout};

/// One server.
pub(crate) struct Server {
    pub(crate) drives: Vec<Drive>,
    pub(crate) bus: BusState,
    /// Its cache, if it has one.
    pub(crate) blocks: Option<Blocks>,
    pub(crate) behind: Option<Behind>,
    /// Where its files lie, if they are those of one node.
    pub(crate) allocation: Allocation,
    /// Pieces that it has and has not finished.
    waiting: u32,
}

impl Server {
    pub(crate) fn new(drives: Vec<Drive>, blocks: Option<Blocks>, behind: Option<Behind>) -> Server {
        Server { drives, bus: BusState::default(), blocks, behind, allocation: Allocation::default(), waiting: 0 }
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
        // Ranks that serve their own disks by direct I/O only wait for these; others are served as always.
        let own = piece.direct && matches!(costs.layout, Layout::Ranks { .. });
        let alone = if own { 0.0 } else { costs.request_ns + each * piece.bytes as f64 + lookup };
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
        match self.profile.storage.cache {
            Cache::Blocks { .. } if !piece.direct => self.serve_block(piece, then),
            Cache::WriteBehind { .. } if !piece.direct => self.serve_behind(piece, then),
            _ => self.disk(piece.server, piece.disk, DiskJob::of(&piece, then)),
        }
    }

    /// Makes what a server has accepted durable, then goes on.
    pub(crate) fn flush(&mut self, server: u32, then: Act<Machine>) {
        let settled: Act<Machine> = Box::new(move |machine| machine.settle(server, then));
        let state = &self.files.servers[server as usize];
        match (&state.blocks, &state.behind) {
            (Some(_), _) => self.flush_blocks(server, settled),
            (_, Some(_)) => self.flush_behind(server, settled),
            _ => settled(self),
        }
    }

    /// Goes on once the drives have all that they accepted on their media.
    fn settle(&mut self, server: u32, then: Act<Machine>) {
        let drives = &self.files.servers[server as usize].drives;
        let at = drives.iter().map(Drive::settled_ns).max().unwrap_or(0);
        self.kernel.at(at, then);
    }
}
