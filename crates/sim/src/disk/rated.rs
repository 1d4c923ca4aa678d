//! A disk that finds a place and then moves bytes at a rate.

use super::access::{Access, Disk, duration_ns, whole_ns};

/// A disk with a rate: a request that does not begin where the last one ended pays for its position. Requests are
/// served one after another, and a write is accepted when it is over.
#[derive(Clone, Debug)]
pub(crate) struct Rated {
    read_rate: f64,
    write_rate: f64,
    position_ns: u64,
    request_ns: u64,
    /// Where the last request ended \[B\].
    end: Option<u64>,
    /// When the last request is over \[ns\].
    free_ns: u64,
    /// When the last write is over \[ns\].
    settled_ns: u64,
}

impl Rated {
    /// Rates \[B/s\], finding a place that does not follow the last \[ns\], what each request costs besides \[ns\].
    #[must_use]
    pub(crate) fn new(read_rate: f64, write_rate: f64, position_ns: f64, request_ns: f64) -> Rated {
        Rated {
            read_rate,
            write_rate,
            position_ns: whole_ns(position_ns),
            request_ns: whole_ns(request_ns),
            end: None,
            free_ns: 0,
            settled_ns: 0,
        }
    }

    fn serve(&mut self, now_ns: u64, offset: u64, bytes: u64, rate: f64) -> Access {
        let seek_ns = if self.end == Some(offset) { 0 } else { self.position_ns };
        let transfer_ns = duration_ns(bytes, rate);
        self.end = Some(offset + bytes);
        self.free_ns = now_ns.max(self.free_ns) + self.request_ns + seek_ns + transfer_ns;
        Access { ready_ns: self.free_ns, overhead_ns: self.request_ns, seek_ns, rotate_ns: 0, transfer_ns }
    }
}

impl Disk for Rated {
    fn read(&mut self, now_ns: u64, offset: u64, bytes: u64) -> Access {
        self.serve(now_ns, offset, bytes, self.read_rate)
    }

    fn write(&mut self, now_ns: u64, offset: u64, bytes: u64) -> Access {
        let access = self.serve(now_ns, offset, bytes, self.write_rate);
        self.settled_ns = access.ready_ns;
        access
    }

    fn settled_ns(&self) -> u64 {
        self.settled_ns
    }

    fn depth(&self) -> u32 {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_elsewhere_pays_for_its_position() {
        let mut disk = Rated::new(1e9, 5e8, 10_000.0, 100.0);
        assert_eq!(disk.read(0, 0, 1000).ready_ns, 11_100);
        assert_eq!(disk.read(20_000, 1000, 1000).ready_ns, 21_100);
        assert_eq!(disk.write(30_000, 2000, 1000).ready_ns, 32_100);
        assert_eq!(disk.write(40_000, 2000, 1000).ready_ns, 52_100);
    }

    #[test]
    fn requests_stand_in_line() {
        let mut disk = Rated::new(1e9, 1e9, 0.0, 0.0);
        disk.write(0, 0, 1000);
        assert_eq!(disk.read(10, 0, 500).ready_ns, 1500);
        assert_eq!(disk.settled_ns(), 1000);
    }
}
