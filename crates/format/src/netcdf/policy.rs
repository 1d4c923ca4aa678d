//! Limits on NetCDF files, and how much room they are given to grow.

/// Longest header \[B\] that is read. A thousand variables with ten attributes each have some 500 KB.
pub const HEADER_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a file that are looked at first, in which most headers end \[B\].
pub const HEADER_BYTES_FIRST: u64 = 64 << 10;
/// Longest name \[B\], that of `NC_MAX_NAME`.
pub(super) const NAME_BYTES_MAX: usize = 256;
/// Room for attributes and variables that are added once the first data are there \[B\]: some hundred variables.
pub(super) const ROOM_BYTES: u64 = 16 << 10;
/// Larger files have more of it: this part of their first variables, up to a limit \[B\].
pub(super) const ROOM_PART: u64 = 256;
pub(super) const ROOM_BYTES_MAX: u64 = 1 << 20;
/// Data begin at a multiple of a page \[B\].
pub(super) const PAGE_BYTES: u64 = 4096;
