//! What requests to storage cost on a machine that is described and not measured: calls, each of which is cut into pieces
//! that file servers serve, as the simulator does it in detail.

use super::costs::{Costs, Stored};
use super::spread::Spread;
use super::work::Request;
use crate::profile::{Cache, Disk, Layout, Queue};

/// Sustained rate of the HP 97560 past its heads \[B/s\] (Kotz 1997), and what a request costs besides that does not follow the
/// one before, but lies near it: the command and a change of heads \[ns\]; see the simulator's disk.
const HP_RATE: f64 = 2.1e6;
const HP_NEAR_NS: f64 = 2.2e6 + 1.6e6;

/// One call, and what its pieces are.
struct Call {
    bytes: f64,
    /// In all, and at the busiest server and disk.
    pieces: f64,
    at_one: f64,
    at_disk: f64,
    piece_bytes: f64,
    /// Servers, and disks, at which it and those of others meet; how many pieces at each.
    servers: f64,
    disks: f64,
    waiting: f64,
    /// Whether they ask for places beside each other.
    side_by_side: bool,
    /// How much less is read and written than is asked for, if what is asked for twice is not moved twice.
    once: f64,
}

impl Call {
    fn new(costs: &Costs<'_>, spread: Option<&Spread>, request: &Request) -> Call {
        let ranges = request.ranges.max(1) as f64;
        let bytes = request.bytes as f64 / ranges;
        let servers = &costs.profile().storage.servers;
        let Some(spread) = spread else {
            let (servers, disks) = (1.0, 1.0);
            return Call {
                bytes,
                pieces: 1.0,
                at_one: 1.0,
                at_disk: 1.0,
                piece_bytes: bytes,
                servers,
                disks,
                waiting: 1.0,
                side_by_side: false,
                once: 1.0,
            };
        };
        let units = spread.units_of(bytes);
        let over = costs.file_width().min(units);
        // Disks of all those servers.
        let lanes = (costs.file_width() * f64::from(servers.disks)).min(units);
        let pieces = if matches!(servers.layout, Layout::Apart { gathers: true, .. }) { lanes } else { units };
        let at_once = f64::from(servers.requests_at_once.max(1));
        let pitch = (request.bytes + request.gaps) as f64 / ranges;
        let calls = (spread.unit_bytes() / pitch.max(1.0)).clamp(1.0, ranges);
        let meeting = spread.drawn_apart(spread.meeting(bytes), calls, ranges / calls);
        let under_way = spread.callers * pieces.min(lanes * at_once);
        let disks = (meeting * spread.disks_each()).min(under_way).max(1.0);
        Call {
            bytes,
            pieces,
            at_one: (pieces / over).max(1.0),
            at_disk: (pieces / lanes).max(1.0),
            piece_bytes: bytes / pieces,
            servers: meeting,
            disks,
            waiting: (under_way / meeting).max(1.0),
            side_by_side: spread.side_by_side,
            once: spread.once,
        }
    }
}

/// What a piece costs on its way.
#[derive(Clone, Copy, Default)]
struct Piece {
    /// The caller's processor: before it leaves, and when the answer is there \[ns\].
    out_ns: f64,
    in_ns: f64,
    /// The wires, there and back \[ns\].
    wire_ns: f64,
    /// The server's processor and link \[ns\].
    server_ns: f64,
    /// The disk \[ns\].
    disk_ns: f64,
}

impl Costs<'_> {
    /// A request on a simulated machine.
    pub(super) fn imagined(&self, request: &Request, spread: Option<&Spread>) -> Stored {
        let storage = &self.profile().storage;
        let ranges = request.ranges.max(1) as f64;
        let local = matches!(storage.servers.layout, Layout::Local);
        let own = request.direct && matches!(storage.servers.layout, Layout::Ranks { .. });
        let call = Call::new(self, spread, request);
        let apart = !own && !local;
        let mut piece = if apart { self.messages_of_piece(request.write, call.piece_bytes) } else { Piece::default() };
        let cached = !matches!(storage.cache, Cache::None) && !request.direct;
        let behind = cached && request.write;
        piece.disk_ns = self.disk_ns(request, &call, behind);
        let in_path = if behind { 0.0 } else { piece.disk_ns + self.disk_latency_ns(request.write) };
        let disk_busy = if behind { 0.0 } else { piece.disk_ns };
        if !own {
            let serving = self.serving_ns(request, call.piece_bytes, cached);
            let around = piece.server_ns + self.cached_copy_ns(call.piece_bytes, cached);
            let away = piece.out_ns + piece.in_ns + piece.wire_ns + self.call_ns(call.bytes) / call.pieces;
            let crowd = crowding(storage.servers.crowding, &call, (serving, around + in_path, away));
            piece.server_ns = around + serving * crowd;
        }
        let path = piece.out_ns + piece.wire_ns + piece.server_ns + in_path + piece.in_ns;
        let call_ns = if own { 0.0 } else { self.call_ns(call.bytes) };
        let link_ns = if apart { call.piece_bytes * 1e9 / self.profile().network.link_rate } else { 0.0 };
        let mine = piece.out_ns.max(piece.in_ns).max(link_ns);
        let at_once = f64::from(storage.servers.requests_at_once.max(1));
        let at_disk = (call.at_disk - 1.0) * disk_busy.max(path / at_once);
        let more = ((call.pieces - 1.0) * mine).max((call.at_one - 1.0) * piece.server_ns).max(at_disk);
        let mut cpu_ns = ranges * (call_ns + call.pieces * (piece.out_ns + piece.in_ns));
        let mut server_ns = ranges * call.pieces * piece.server_ns;
        if !local {
            server_ns /= call.servers;
        } else if self.alone() {
            cpu_ns += server_ns;
            server_ns = 0.0;
        }
        let disk_ns = ranges * call.pieces * piece.disk_ns;
        let disk_ns = match (local, behind) {
            (true, _) => disk_ns,
            (_, true) => disk_ns / spread.map_or(1.0, Spread::disks),
            _ => disk_ns / call.disks,
        };
        // The first place that is to be found on each disk.
        let first_ns = (1.0 - self.elsewhere(request, &call, behind)) * self.first_place_ns();
        let others = (call.waiting - 1.0) * piece.server_ns.max(disk_busy);
        Stored {
            cpu_ns,
            wall_ns: ranges * (call_ns + path + more),
            wire_ns: ranges * call.pieces * link_ns,
            server_ns,
            disk_ns,
            tail_ns: if behind && self.is_tail(&call) { disk_ns } else { 0.0 },
            last_ns: if behind { piece.disk_ns + first_ns } else { 0.0 },
            pieces: ranges * call.pieces,
            queue_ns: if behind { others } else { others + first_ns },
            ..Stored::default()
        }
    }

    fn call_ns(&self, bytes: f64) -> f64 {
        let storage = &self.profile().storage;
        storage.call_ns + bytes * storage.call_byte_ns
    }

    /// The messages of a piece and of its answer.
    fn messages_of_piece(&self, write: bool, bytes: f64) -> Piece {
        let costs = &self.profile().messages;
        let (there, back) = if write { (bytes, 0.0) } else { (0.0, bytes) };
        let link = bytes * 1e9 / self.profile().storage.servers.link_rate;
        Piece {
            out_ns: costs.send_ns + there * costs.send_byte_ns,
            in_ns: costs.receive_ns + back * costs.receive_byte_ns,
            wire_ns: self.wire_ns(there) + self.wire_ns(back)
                - link.min(bytes * 1e9 / self.profile().network.link_rate),
            server_ns: costs.receive_ns
                + there * costs.receive_byte_ns
                + costs.send_ns
                + back * costs.send_byte_ns
                + link,
            disk_ns: 0.0,
        }
    }

    /// What serving a piece takes when nobody else waits.
    fn serving_ns(&self, request: &Request, bytes: f64, cached: bool) -> f64 {
        let servers = &self.profile().storage.servers;
        let byte_ns = if request.write { servers.write_byte_ns } else { servers.read_byte_ns };
        let lookup = match self.profile().storage.cache {
            Cache::Blocks { lookup_ns, .. } if cached => lookup_ns,
            _ => 0.0,
        };
        servers.request_ns + bytes * byte_ns + lookup
    }

    /// Copying a piece into or out of a cache.
    fn cached_copy_ns(&self, bytes: f64, cached: bool) -> f64 {
        match self.profile().storage.cache {
            Cache::WriteBehind { copy_rate, .. } if cached => bytes * 1e9 / copy_rate,
            _ => 0.0,
        }
    }

    /// What a disk needs for a piece.
    fn disk_ns(&self, request: &Request, call: &Call, behind: bool) -> f64 {
        let storage = &self.profile().storage;
        let elsewhere = self.elsewhere(request, call, behind);
        let bytes = call.piece_bytes;
        // Of a block that is kept, each piece is a part.
        let part = match storage.cache {
            Cache::Blocks { block_bytes, .. } if !request.direct => (bytes / block_bytes as f64).min(1.0),
            _ => 1.0,
        };
        // What several read, the disk reads once.
        let once = if self.keeps_blocks(request) { call.once } else { 1.0 };
        match storage.disk {
            Disk::Hp97560 => once * (bytes * 1e9 / HP_RATE + part * elsewhere * HP_NEAR_NS),
            Disk::Rated { read_rate, write_rate, request_ns, position_ns } => {
                let rate = if request.write { write_rate } else { read_rate };
                bytes * 1e9 / rate + request_ns + elsewhere * position_ns
            }
            Disk::Nvme { read_rate, write_rate, read_ns, write_ns, depth } => {
                let (rate, each) = if request.write { (write_rate, write_ns) } else { (read_rate, read_ns) };
                (bytes * 1e9 / rate).max(each / f64::from(depth.max(1)))
            }
            Disk::Instant => 0.0,
        }
    }

    /// The share of pieces that do not lie on their disk where the one before ended.
    fn elsewhere(&self, request: &Request, call: &Call, behind: bool) -> f64 {
        let storage = &self.profile().storage;
        if request.write && storage.servers.layout == Layout::Local {
            // What is new gets room behind what got it last, where each node has its own files.
            return 0.0;
        }
        if let Layout::Ranks { unit_bytes } = storage.servers.layout {
            // Each server asks its own disk alone, in the disk's order.
            if request.direct && call.bytes <= unit_bytes as f64 {
                return 0.0;
            }
        } else if request.file.is_none() {
            return 1.0;
        }
        let sorted = behind && (self.keeps_blocks(request) || self.is_tail(call));
        let alone = call.waiting * call.servers / call.disks <= 1.0;
        match (sorted || request.gaps == 0 && alone, call.side_by_side) {
            (true, _) => 0.0,
            // Those who ask for places beside each other come in nearly the right order.
            (false, true) => 0.5,
            // A call's own pieces on a disk lie behind each other.
            _ if storage.queue != Queue::Fcfs => 1.0 / call.at_one,
            _ => 1.0,
        }
    }

    /// Whether pieces are too short to go to the disk before they are made durable.
    fn is_tail(&self, call: &Call) -> bool {
        match self.profile().storage.cache {
            Cache::WriteBehind { cluster_bytes, .. } => {
                // Those of a node's own files lie together.
                call.piece_bytes < cluster_bytes as f64 && self.profile().storage.servers.layout != Layout::Local
            }
            _ => false,
        }
    }

    /// Whether servers keep the blocks that they read and write.
    fn keeps_blocks(&self, request: &Request) -> bool {
        matches!(self.profile().storage.cache, Cache::Blocks { .. }) && !request.direct
    }

    /// Finding the first place on a disk.
    fn first_place_ns(&self) -> f64 {
        match self.profile().storage.disk {
            Disk::Rated { position_ns, .. } => position_ns,
            Disk::Hp97560 => HP_NEAR_NS,
            Disk::Nvme { .. } | Disk::Instant => 0.0,
        }
    }

    /// Making durable what servers hold of a rank that wrote to so many of them: asking them, and their last request to a disk.
    pub(super) fn flushing_ns(&self, asked: f64, last_ns: f64) -> f64 {
        let storage = &self.profile().storage;
        let last = if matches!(storage.cache, Cache::None) { 0.0 } else { last_ns + self.disk_latency_ns(true) };
        if storage.servers.layout == Layout::Local || asked == 0.0 {
            return last;
        }
        let costs = &self.profile().messages;
        last + (asked + 1.0) * (costs.send_ns + costs.receive_ns) + 2.0 * self.wire_ns(0.0)
    }
}

/// By how much serving takes longer because others wait at the server.
fn crowding(each: f64, call: &Call, (serving, beside, away): (f64, f64, f64)) -> f64 {
    if each == 0.0 {
        return 1.0;
    }
    // Of those under way, these are at the server: the others are on their way or at their callers.
    let others = call.waiting - 1.0;
    let there = call.waiting * (serving + beside);
    1.0 + each * others * there / (there + away).max(1.0)
}
