//! A cache that writes behind, as those of local file systems and of many servers do: a write ends when it is copied and
//! there is room for it, and the disk follows, in whole clusters (for JFS 16 KB; Chen et al. 1996, section 2).

use crate::drive::DiskJob;
use crate::kernel::Act;
use crate::machine::{Machine, Work};
use crate::placing::Piece;
use std::collections::{BTreeMap, VecDeque};

/// What one server has accepted and not written.
pub(crate) struct Behind {
    limit_bytes: u64,
    copy_rate: f64,
    cluster_bytes: u64,
    /// All that waits for the disks \[B\].
    dirty_bytes: u64,
    /// Ends of what was accepted that fill no cluster, by disk and where they end there \[B\].
    tails: BTreeMap<(u32, u64), Piece>,
    /// Writes that wait for room, with their sizes, and those who wait until nothing is dirty.
    crowded: VecDeque<(u64, Act<Machine>)>,
    flushing: Vec<Act<Machine>>,
}

impl Behind {
    pub(crate) fn new(limit_bytes: u64, copy_rate: f64, cluster_bytes: u64) -> Behind {
        let (tails, crowded, flushing) = (BTreeMap::new(), VecDeque::new(), Vec::new());
        Behind { limit_bytes, copy_rate, cluster_bytes, dirty_bytes: 0, tails, crowded, flushing }
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.dirty_bytes == 0 || self.dirty_bytes.saturating_add(bytes) <= self.limit_bytes
    }

    /// Splits what was accepted, with what waited for it, into whole clusters, which are returned with whatever else must be
    /// written now, and an end that waits for more.
    fn cluster(&mut self, piece: Piece) -> Vec<Piece> {
        let whole = match self.tails.remove(&(piece.disk, piece.offset)) {
            Some(tail) => Piece { bytes: tail.bytes + piece.bytes, ..tail },
            None => piece,
        };
        let end = whole.offset + whole.bytes;
        let cut = (end - end % self.cluster_bytes).max(whole.offset);
        let mut now = vec![Piece { bytes: cut - whole.offset, ..whole }];
        if end > cut {
            let tail = Piece { offset: cut, bytes: end - cut, ..whole };
            now.extend(self.tails.insert((piece.disk, end), tail));
        }
        if !self.crowded.is_empty() || !self.flushing.is_empty() {
            now.extend(self.take_tails());
        }
        now.retain(|piece| piece.bytes > 0);
        now
    }

    /// What waited for more to follow, in rising order.
    fn take_tails(&mut self) -> impl Iterator<Item = Piece> {
        std::mem::take(&mut self.tails).into_values()
    }
}

impl Machine {
    fn behind(&mut self, server: u32) -> &mut Behind {
        self.files.servers[server as usize].behind.as_mut().expect("a server with a cache that writes behind")
    }

    /// Serves a piece through the cache.
    pub(crate) fn serve_behind(&mut self, piece: Piece, then: Act<Machine>) {
        let ns = piece.bytes as f64 * 1e9 / self.behind(piece.server).copy_rate;
        let copy = move |machine: &mut Machine, then: Act<Machine>| {
            let end = machine.work(machine.server_processor(piece.server), Work::Serve, ns);
            machine.kernel.at(end, then);
        };
        if !piece.write {
            // A read ends when the disk has done it and it is copied.
            let read: Act<Machine> = Box::new(move |machine| copy(machine, then));
            return self.disk(piece.server, piece.disk, DiskJob::of(&piece, read));
        }
        let accept: Act<Machine> = Box::new(move |machine| {
            let copied: Act<Machine> = Box::new(move |machine| {
                let now = machine.behind(piece.server).cluster(piece);
                machine.write_behind(now);
                then(machine);
            });
            copy(machine, copied);
        });
        let behind = self.behind(piece.server);
        if behind.has_room(piece.bytes) {
            behind.dirty_bytes += piece.bytes;
            return accept(self);
        }
        behind.crowded.push_back((piece.bytes, accept));
        let tails = behind.take_tails().collect();
        self.write_behind(tails);
    }

    fn write_behind(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            let written: Act<Machine> = Box::new(move |machine| machine.cleaned(piece.server, piece.bytes));
            self.disk(piece.server, piece.disk, DiskJob::of(&piece, written));
        }
    }

    /// Bytes that waited for the disk have reached it.
    fn cleaned(&mut self, server: u32, bytes: u64) {
        let behind = self.behind(server);
        behind.dirty_bytes -= bytes;
        let mut accepted = Vec::new();
        while let Some(&(next, _)) = behind.crowded.front()
            && behind.has_room(next)
        {
            behind.dirty_bytes += next;
            accepted.extend(behind.crowded.pop_front().map(|(_, act)| act));
        }
        let flushed = if behind.dirty_bytes == 0 { std::mem::take(&mut behind.flushing) } else { Vec::new() };
        accepted.into_iter().for_each(|act| act(self));
        flushed.into_iter().for_each(|act| act(self));
    }

    /// Writes all that a server has accepted, then goes on.
    pub(crate) fn flush_behind(&mut self, server: u32, then: Act<Machine>) {
        let behind = self.behind(server);
        if behind.dirty_bytes == 0 {
            return then(self);
        }
        behind.flushing.push(then);
        let tails = behind.take_tails().collect();
        self.write_behind(tails);
    }
}
