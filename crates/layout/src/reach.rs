//! Which memory of another process on the same machine is worth reaching for: what transports do, and planners price.

/// Shortest average runs that are worth reading there \[B\]: below, each run costs as much as the system call's bookkeeping
/// for it, and packing is faster.
const PULLED_RUN_BYTES: u64 = 256;
/// The same of runs that are written, whose gaps cannot be moved along: 32 MiB that two ranks exchange took 28.6 ms by
/// reaching for runs of 256 B, and 15.0 packed; 17.8 and 12.5 with 512 B, 12.2 and 11.1 with 1 KiB, 10.0 and 13.7 with 4 KiB.
const PUSHED_RUN_BYTES: u64 = 1024;
/// Longest messages that are packed for this \[B\], since what is packed needs memory besides slots.
const PACKED_BYTES_MAX: u64 = 1 << 20;
/// Runs of at least this length on both sides \[B\] go straight to their place; shorter ones through a buffer.
const STRAIGHT_RUN_BYTES: u64 = 512;
/// The same where the buffer spares calls runs, because gaps can be read along: measured, twice as fast at 1 KiB and
/// equal at 16 KiB.
const STRAIGHT_RUN_BYTES_AMONG_GAPS: u64 = 4096;

/// Gaps up to this length \[B\] are read along with what surrounds them: another run of a call costs as much (about
/// half a microsecond). Shorter than a page, so that what lies in a gap is mapped as its ends are.
pub const GAP_BYTES_MAX: u64 = 2048;

/// Whether so many bytes in so many runs of another's memory are worth reaching for: to pull them from there, or else to
/// push them there. A single run is, since there is nothing to pack.
pub fn is_worth_reaching(bytes: u64, runs: u64, pulls: bool) -> bool {
    let run_bytes_min = if pulls || bytes > PACKED_BYTES_MAX { PULLED_RUN_BYTES } else { PUSHED_RUN_BYTES };
    runs <= 1 || bytes >= runs * run_bytes_min
}

/// Whether runs of so many bytes go straight to their place.
pub fn goes_straight(run_bytes: u64, among_gaps: bool) -> bool {
    run_bytes >= if among_gaps { STRAIGHT_RUN_BYTES_AMONG_GAPS } else { STRAIGHT_RUN_BYTES }
}
