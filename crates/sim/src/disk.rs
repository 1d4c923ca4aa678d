//! Models of disks in virtual time.
//!
//! A disk is asked in the order in which commands reach it and answers at once, telling when what it was asked will be
//! over. Times are absolute \[ns\], offsets are bytes on that disk. Nothing here draws random numbers or reads a clock.

mod arm;
#[cfg(test)]
mod calibration;
pub(crate) mod geometry;
mod hp97560;
mod instant;
mod nvme;
mod pass;
mod rated;
mod spindle;

pub(crate) use hp97560::Hp97560;
pub(crate) use instant::Instant;
pub(crate) use nvme::Nvme;
pub(crate) use rated::Rated;

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
fn duration_ns(bytes: u64, rate: f64) -> u64 {
    whole_ns(bytes as f64 * 1e9 / rate)
}

/// A time to the nearest whole \[ns\]; what is less than nothing is nothing.
fn whole_ns(ns: f64) -> u64 {
    ns.round() as u64
}
