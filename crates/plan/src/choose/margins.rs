//! How closely the planner looks.

/// By how much prices must differ to be told apart, as a share.
pub(super) const MARGIN: f64 = 0.05;
/// By how much direct I/O must be cheaper on a real machine than the cache, as a share:
/// how far a sync finds done what was sent to the disk meanwhile, and how far busy cores keep a disk waiting, is known roughly.
/// In 30 durable dumps of 2 to 192 MiB, by 2 to 8 ranks on 2 cores, it took 1.05 to 1.7 times as long as the best that goes
/// through the cache.
pub(super) const PAST_CACHE_MARGIN: f64 = 0.25;
/// Strategies that cost more than so many times the best are not varied.
pub(crate) const NEAR: f64 = 1.6;
/// Steps of programs that may be looked at in any case, and more for each second that the transfer takes, or has taken in all
/// where it comes again: 2 %. One takes about 600 ns.
pub(super) const STEPS_MIN: f64 = 1e3;
pub(super) const STEPS_A_SECOND: f64 = 3e4;
/// Transfers that take longer are looked at more closely \[s\].
pub(super) const LONG_SECONDS: f64 = 1.0;
/// Parameters of one strategy that are tried one after another, at most.
pub(super) const TURNS: usize = 4;
