//! Calls to the file system: one for each contiguous range of a file, cut into pieces that file servers serve.

use crate::files::Job;
use crate::kernel::Act;
use crate::machine::{Machine, Work};
use crate::messages::Side;
use crate::placing::Piece;
use hyperslab_plan::profile::Layout;
use std::collections::BTreeMap;

/// A contiguous range of a file that is to be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) file: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) write: bool,
    /// Past the server's cache.
    pub(crate) direct: bool,
}

/// Calls under way, by number.
#[derive(Default)]
pub(crate) struct Calls {
    all: BTreeMap<u64, Call>,
    next: u64,
}

/// A call under way.
struct Call {
    rank: u32,
    job: Option<Job>,
    range: Range,
    /// How much was asked for: bytes, or disks where each is asked once \[B\].
    asked: u64,
    began_ns: u64,
    /// Pieces under way, in all and by (server, disk).
    running: u32,
    at_disk: BTreeMap<(u32, u32), u32>,
    then: Option<Act<Machine>>,
}

impl Machine {
    /// The next call of a request; its end when there is none.
    pub(crate) fn next_call(&mut self, rank: u32, mut job: Job) {
        let Some((offset, bytes)) = job.ranges.pop() else { return self.end_job(rank, job) };
        let Job { file, write, direct, .. } = job;
        self.call(rank, Range { file, offset, bytes, write, direct }, Some(job), None);
    }

    /// Calls the file system for one range of a file.
    fn call(&mut self, rank: u32, range: Range, job: Option<Job>, then: Option<Act<Machine>>) {
        let storage = &self.profile.storage;
        // Ranks that serve their own disks call nobody.
        let own = range.direct && matches!(storage.servers.layout, Layout::Ranks { .. });
        let ns = storage.call_ns + storage.call_byte_ns * range.bytes as f64;
        let number = self.files.calls.next;
        self.files.calls.next += 1;
        let call = Call {
            rank,
            job,
            range,
            asked: 0,
            began_ns: self.kernel.now_ns(),
            running: 0,
            at_disk: BTreeMap::new(),
            then,
        };
        self.files.calls.all.insert(number, call);
        let begun = if own { self.kernel.now_ns() } else { self.work(self.processor(rank), Work::Call, ns) };
        self.kernel.at(begun, move |machine| machine.go_on(number));
    }

    /// The next piece of a call that was not asked for, and how much was after it; `None` behind the last.
    fn next_piece(&self, call: &Call) -> Option<(Piece, u64)> {
        let Range { file, offset, bytes, write, direct } = call.range;
        let (placing, end) = (&self.files.placing, offset + bytes);
        let dress = |piece: Piece| Piece { write, direct, ..piece };
        if let Layout::Apart { gathers: true, unit_bytes, .. } = placing.layout {
            // Disk after disk, from that of the first byte on.
            let number = (call.asked < placing.lanes()).then_some(call.asked)?;
            let (from, bytes) = placing.share(offset, end, (offset / unit_bytes + number) % placing.lanes())?;
            return Some((dress(Piece { bytes, ..placing.piece(0, file, from, end) }), number + 1));
        }
        let from = offset + call.asked;
        let piece = (from < end).then(|| placing.piece(self.node(call.rank) as u32, file, from, end))?;
        Some((dress(piece), call.asked + piece.bytes))
    }

    /// A call of a program that is not part of a transfer, such as that of a header.
    pub(crate) fn plain_call(&mut self, rank: u32, range: Range, then: Act<Machine>) {
        self.call(rank, range, None, Some(then));
    }

    /// Asks for pieces of a call in the order of the file, as far as may be under way at once; ends it after the last.
    fn go_on(&mut self, number: u64) {
        let at_once = self.profile.storage.servers.requests_at_once;
        while let Some(call) = self.files.calls.all.get(&number) {
            let Some((mut piece, asked)) = self.next_piece(call) else { break };
            let Some(call) = self.files.calls.all.get_mut(&number) else { break };
            let under_way = call.at_disk.entry((piece.server, piece.disk)).or_default();
            if *under_way >= at_once {
                return;
            }
            *under_way += 1;
            (call.running, call.asked) = (call.running + 1, asked);
            let rank = call.rank;
            if self.files.placing.layout == Layout::Local {
                piece = self.files.servers[piece.server as usize].allocation.place(piece);
            }
            self.ask(rank, piece, Box::new(move |machine| machine.end_piece(number, piece)));
        }
        if self.files.calls.all.get(&number).is_some_and(|call| call.running == 0) {
            self.end_call(number);
        }
    }

    fn end_piece(&mut self, number: u64, piece: Piece) {
        let Some(call) = self.files.calls.all.get_mut(&number) else { return };
        call.running -= 1;
        if let Some(under_way) = call.at_disk.get_mut(&(piece.server, piece.disk)) {
            *under_way -= 1;
        }
        let (rank, write) = (call.rank, call.range.write);
        if write {
            self.files.touch(rank, piece.server);
        }
        self.go_on(number);
    }

    fn end_call(&mut self, number: u64) {
        let Some(call) = self.files.calls.all.remove(&number) else { return };
        let ns = self.kernel.now_ns() - call.began_ns;
        self.tally.call(if call.range.write { "write" } else { "read" }, call.range.bytes, ns);
        if let Some(job) = call.job {
            self.next_call(call.rank, job);
        }
        if let Some(then) = call.then {
            then(self);
        }
    }

    /// Asks a server for a piece: by messages, unless it is on the caller's node.
    fn ask(&mut self, rank: u32, piece: Piece, then: Act<Machine>) {
        self.tally.requests += 1;
        if self.server_node(piece.server) == self.node(rank) {
            return self.serve(piece, then);
        }
        let (to_server, to_rank) = if piece.write { (piece.bytes, 0) } else { (0, piece.bytes) };
        self.ask_server(rank, piece.server, to_server, move |machine| {
            let answer: Act<Machine> = Box::new(move |machine| machine.answer(rank, piece.server, to_rank, then));
            machine.serve(piece, answer);
        });
    }

    pub(crate) fn ask_server(&mut self, rank: u32, server: u32, bytes: u64, then: impl FnOnce(&mut Machine) + 'static) {
        let route =
            [(self.processor(rank), self.node(rank)), (self.server_processor(server), self.server_node(server))];
        self.post_bytes(route, bytes, then);
    }

    pub(crate) fn answer(&mut self, rank: u32, server: u32, bytes: u64, then: Act<Machine>) {
        let route =
            [(self.server_processor(server), self.server_node(server)), (self.processor(rank), self.node(rank))];
        self.post_bytes(route, bytes, then);
    }

    /// A message of the file system from one processor and node to another, with start-ups and costs of bytes at both.
    fn post_bytes(&mut self, [from, to]: [(usize, usize); 2], bytes: u64, then: impl FnOnce(&mut Machine) + 'static) {
        let (sends, receives) = (self.side_ns(Side::Send, bytes, 1), self.side_ns(Side::Receive, bytes, 1));
        let left = self.work(from.0, Work::Message, sends);
        self.kernel.at(left, move |machine| {
            let all = bytes + machine.profile.messages.header_bytes;
            let passage = machine.network.send(machine.kernel.now_ns(), from.1, to.1, all);
            machine.kernel.at(passage.arrived_ns, move |machine| {
                let done = machine.work(to.0, Work::Message, receives);
                machine.kernel.at(done, then);
            });
        });
    }
}
