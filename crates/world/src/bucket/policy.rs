//! How patient programs are with object stores.

/// How often a request without a reply is made.
pub(super) const TRIES_MAX: usize = 4;
/// How often others may change an object meanwhile.
pub(super) const TURNS_MAX: usize = 100;
/// Most keys and beginnings of one page of a bucket in memory: as many as S3 gives.
pub(super) const PAGE_MAX: usize = 1000;
