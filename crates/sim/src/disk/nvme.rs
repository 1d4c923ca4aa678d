//! Flash: requests share a rate, and their latencies overlap.

use super::access::{Access, Disk, duration_ns, whole_ns};

/// Flash behind a number of channels. A request takes the channel that is free first; its bytes then stand in one line
/// for all channels, in the order of requests, and its latency follows, beside those of others. A write is accepted
/// when it is over.
#[derive(Clone, Debug)]
pub(crate) struct Nvme {
    read_rate: f64,
    write_rate: f64,
    read_ns: u64,
    write_ns: u64,
    /// When each channel is free \[ns\].
    channels: Vec<u64>,
    /// When the line of bytes is free \[ns\].
    line_ns: u64,
    /// When the last write is over \[ns\].
    settled_ns: u64,
}

impl Nvme {
    /// Rates \[B/s\], latencies \[ns\], and the number of requests served at once, at least 1.
    #[must_use]
    pub(crate) fn new(read_rate: f64, write_rate: f64, read_ns: f64, write_ns: f64, depth: u32) -> Nvme {
        Nvme {
            read_rate,
            write_rate,
            read_ns: whole_ns(read_ns),
            write_ns: whole_ns(write_ns),
            channels: (0..depth.max(1)).map(|_| 0).collect(),
            line_ns: 0,
            settled_ns: 0,
        }
    }

    fn serve(&mut self, now_ns: u64, bytes: u64, rate: f64, latency_ns: u64) -> Access {
        let transfer_ns = duration_ns(bytes, rate);
        let free_ns = self.channels.iter().copied().min().unwrap_or(0);
        self.line_ns = self.line_ns.max(now_ns.max(free_ns)) + transfer_ns;
        let ready_ns = self.line_ns + latency_ns;
        if let Some(channel) = self.channels.iter_mut().find(|channel| **channel == free_ns) {
            *channel = ready_ns;
        }
        Access { ready_ns, overhead_ns: latency_ns, transfer_ns, ..Access::default() }
    }
}

impl Disk for Nvme {
    fn read(&mut self, now_ns: u64, _offset: u64, bytes: u64) -> Access {
        self.serve(now_ns, bytes, self.read_rate, self.read_ns)
    }

    fn write(&mut self, now_ns: u64, _offset: u64, bytes: u64) -> Access {
        let access = self.serve(now_ns, bytes, self.write_rate, self.write_ns);
        self.settled_ns = self.settled_ns.max(access.ready_ns);
        access
    }

    fn settled_ns(&self) -> u64 {
        self.settled_ns
    }

    fn depth(&self) -> u32 {
        u32::try_from(self.channels.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_overlap_and_bytes_do_not() {
        let mut disk = Nvme::new(1e9, 1e9, 10_000.0, 20_000.0, 4);
        let ready = [0, 1, 2, 3].map(|n| disk.read(0, n * 1000, 1000).ready_ns);
        assert_eq!(ready, [11_000, 12_000, 13_000, 14_000]);
        assert_eq!(disk.depth(), 4);
    }

    #[test]
    fn more_than_fit_wait_for_a_channel() {
        let mut disk = Nvme::new(1e9, 1e9, 10_000.0, 20_000.0, 2);
        let ready = [0, 1, 2, 3].map(|n| disk.write(0, n * 1000, 1000).ready_ns);
        assert_eq!(ready, [21_000, 22_000, 42_000, 43_000]);
        assert_eq!(disk.settled_ns(), 43_000);
    }
}
