//! What a disk is asked, and what it answers.

/// How a disk spent its time with one request \[ns\].
///
/// A write's parts tell of its way to the medium, which may lie after it was accepted. Waiting for requests before is
/// in none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Access {
    /// Absolute time: a read's data are in the drive's buffer and may cross the bus; a write is accepted, that is
    /// reported complete \[ns\].
    pub ready_ns: u64,
    /// What the controller needed besides, or the latency of flash \[ns\].
    pub overhead_ns: u64,
    /// Moving the arm or changing heads \[ns\].
    pub seek_ns: u64,
    /// Waiting for the first sector \[ns\].
    pub rotate_ns: u64,
    /// From the first sector to the last, skews included \[ns\].
    pub transfer_ns: u64,
}

/// A disk.
pub(crate) trait Disk {
    /// Reads; the command reaches the drive at `now_ns`. Commands come in order, the next not before the data of the
    /// one before crossed the bus.
    fn read(&mut self, now_ns: u64, offset: u64, bytes: u64) -> Access;

    /// Writes; all data have crossed the bus and are in the drive's buffer at `now_ns`, or would be if there is room:
    /// the drive accepts when it can.
    fn write(&mut self, now_ns: u64, offset: u64, bytes: u64) -> Access;

    /// When everything that was accepted is on the medium \[ns\].
    fn settled_ns(&self) -> u64;

    /// Number of requests that the drive serves at once; 1 for disks that turn.
    fn depth(&self) -> u32;
}

/// Time that bytes need at a rate in B/s, to the nearest whole \[ns\].
pub(super) fn duration_ns(bytes: u64, rate: f64) -> u64 {
    whole_ns(bytes as f64 * 1e9 / rate)
}

/// A time to the nearest whole \[ns\]; what is less than nothing is nothing.
pub(super) fn whole_ns(ns: f64) -> u64 {
    ns.round() as u64
}
