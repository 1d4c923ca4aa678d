//! A disk with the line of requests before it, and the bus that it shares.

use crate::disk::{Access, Disk};
use crate::kernel::{Act, Resource};
use crate::machine::Machine;
use crate::placing::Piece;
use hyperslab_plan::profile::Queue;
use std::collections::BTreeMap;

/// A request to a disk.
pub(crate) struct DiskJob {
    pub(crate) write: bool,
    pub(crate) offset: u64,
    /// Where it lies among all files, for queues that go by that.
    pub(crate) in_files: u64,
    pub(crate) bytes: u64,
    /// Whether the drive is told before that this will be read.
    pub(crate) hinted: bool,
    pub(crate) then: Act<Machine>,
}

impl DiskJob {
    /// The request for a piece.
    pub(crate) fn of(piece: &Piece, then: Act<Machine>) -> DiskJob {
        let hinted = piece.direct && !piece.write;
        let (write, offset, bytes) = (piece.write, piece.offset, piece.bytes);
        DiskJob { write, offset, in_files: piece.in_files(), bytes, hinted, then }
    }
}

/// How a disk spent its time \[ns\].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskTimes {
    /// Finding tracks.
    pub seek_ns: u64,
    /// Waiting for sectors to come round.
    pub rotate_ns: u64,
    /// Moving data.
    pub transfer_ns: u64,
    /// What requests cost besides.
    pub overhead_ns: u64,
}

pub(crate) struct Drive {
    disk: Box<dyn Disk>,
    queue: Queue,
    line: BTreeMap<(u64, u64), DiskJob>,
    /// Where the last request that was taken began.
    head: u64,
    number: u64,
    /// Requests at the drive.
    running: u32,
    pub(crate) times: DiskTimes,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// Since when it has had something to do, and for how long it had in all \[ns\].
    since_ns: u64,
    busy_ns: u64,
}

impl Drive {
    pub(crate) fn new(disk: Box<dyn Disk>, queue: Queue) -> Drive {
        let times = DiskTimes::default();
        let line = BTreeMap::new();
        Drive {
            disk,
            queue,
            line,
            head: 0,
            number: 0,
            running: 0,
            times,
            requests: 0,
            bytes: 0,
            since_ns: 0,
            busy_ns: 0,
        }
    }

    fn push(&mut self, job: DiskJob) {
        self.number += 1;
        let place = match self.queue {
            Queue::Fcfs => 0,
            Queue::Cscan => job.offset,
            Queue::CscanFile => job.in_files,
        };
        self.line.insert((place, self.number), job);
    }

    /// The next request, if the drive takes one: the nearest ahead, or the lowest (cyclical scan).
    fn pop(&mut self) -> Option<DiskJob> {
        if self.running >= self.disk.depth() {
            return None;
        }
        let ahead = self.line.range((self.head, 0)..).next().map(|(&key, _)| key);
        let key = ahead.or_else(|| self.line.keys().next().copied())?;
        self.head = key.0;
        self.running += 1;
        self.line.remove(&key)
    }

    fn note(&mut self, access: &Access, job: &DiskJob) {
        self.times.seek_ns += access.seek_ns;
        self.times.rotate_ns += access.rotate_ns;
        self.times.transfer_ns += access.transfer_ns;
        self.times.overhead_ns += access.overhead_ns;
        self.requests += 1;
        self.bytes += job.bytes;
    }

    /// When all that it accepted is on the medium.
    pub(crate) fn settled_ns(&self) -> u64 {
        self.disk.settled_ns()
    }

    /// For how long it had something to do.
    pub(crate) fn busy_ns(&self) -> u64 {
        self.busy_ns
    }
}

/// A bus.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusState {
    pub(crate) time: Resource,
}

impl Machine {
    /// Lets so many bus transactions, which move these bytes, pass; gives the end.
    fn bus(&mut self, server: u32, transactions: f64, bytes: u64) -> u64 {
        let now = self.kernel.now_ns();
        match &self.profile.storage.bus {
            Some(bus) if !self.what_if.instant_disk => {
                let ns = bus.transaction_ns * transactions + bytes as f64 * 1e9 / bus.rate;
                self.files.servers[server as usize].bus.time.take(now, ns)
            }
            _ => now,
        }
    }

    /// Hands a request to a disk of a server.
    pub(crate) fn disk(&mut self, server: u32, disk: u32, job: DiskJob) {
        if job.hinted {
            // Kotz's rates for reads show that the drive does nothing before the command comes (1997, section 6: 6.3 MB/s, as
            // much as seeks, rotation and the command's overhead leave); only the transaction is felt.
            self.bus(server, 1.0, 0);
        }
        let now = self.kernel.now_ns();
        let drive = self.drive(server, disk);
        if drive.running == 0 && drive.line.is_empty() {
            drive.since_ns = now;
        }
        drive.push(job);
        self.serve_disk(server, disk);
    }

    fn drive(&mut self, server: u32, disk: u32) -> &mut Drive {
        &mut self.files.servers[server as usize].drives[disk as usize]
    }

    /// Gives the drive what it can take.
    fn serve_disk(&mut self, server: u32, disk: u32) {
        while let Some(job) = self.drive(server, disk).pop() {
            let bytes = if job.write { job.bytes } else { 0 };
            let at = self.bus(server, 1.0, bytes);
            self.kernel.at(at, move |machine| machine.begin_disk(server, disk, job));
        }
    }

    /// The command, and a write's data, are at the drive.
    fn begin_disk(&mut self, server: u32, disk: u32, job: DiskJob) {
        let now = self.kernel.now_ns();
        let drive = self.drive(server, disk);
        let access = if job.write {
            drive.disk.write(now, job.offset, job.bytes)
        } else {
            drive.disk.read(now, job.offset, job.bytes)
        };
        drive.note(&access, &job);
        self.kernel.at(access.ready_ns, move |machine| {
            if job.write {
                return machine.end_disk(server, disk, job);
            }
            let at = machine.bus(server, 1.0, job.bytes);
            machine.kernel.at(at, move |machine| machine.end_disk(server, disk, job));
        });
    }

    fn end_disk(&mut self, server: u32, disk: u32, job: DiskJob) {
        let now = self.kernel.now_ns();
        let drive = self.drive(server, disk);
        drive.running -= 1;
        if drive.running == 0 && drive.line.is_empty() {
            drive.busy_ns += now - drive.since_ns;
        }
        self.serve_disk(server, disk);
        (job.then)(self);
    }
}
