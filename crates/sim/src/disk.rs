//! Models of disks in virtual time.
//!
//! A disk is asked in the order in which commands reach it and answers at once, telling when what it was asked will be
//! over. Times are absolute \[ns\], offsets are bytes on that disk. Nothing here draws random numbers or reads a clock.

mod access;
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

pub(crate) use access::{Access, Disk};
pub(crate) use hp97560::Hp97560;
pub(crate) use instant::Instant;
pub(crate) use nvme::Nvme;
pub(crate) use rated::Rated;
