//! How a rank waits for others without taking the processor from them.

use std::time::{Duration, Instant};

/// Turns in which only the processor is offered to others, where ranks share cores.
const YIELDS: u32 = 50;
/// The same where neighbours wake this rank up when they have something for it: enough for an agreement between ranks that
/// all are there. Waking one that sleeps takes longer (4 ranks on 2 cores: 100 us with one offer, 33 with these); dumps of
/// 1 to 500 MiB by 4 and 8 ranks took as long as with one.
const YIELDS_WOKEN: u32 = 30;
/// First sleep there, and each of those who wait for their own threads alone.
pub(super) const SLEEP_WOKEN: Duration = Duration::from_micros(200);
/// The same where each rank has a core: a message between two ranks that are awake comes within some microseconds, and
/// nobody is slowed down who could send it sooner.
const SPIN: Duration = Duration::from_micros(200);
/// First and longest sleep.
const SLEEP_FIRST: Duration = Duration::from_micros(20);
const SLEEP_MAX: Duration = Duration::from_micros(500);
/// How late a sleep may end where each rank has a core. By default the kernel adds 50 us; where ranks share cores, that
/// keeps those who wait from waking up all the time.
const SLACK: Duration = Duration::from_micros(1);

/// Waits longer and longer: some offers of the processor, for answers that are on their way, then sleeps. Ranks that spin
/// while they share cores slow down the very rank that they wait for.
///
/// A sleep lasts an eighth of all sleeps before it, so that an answer is noticed little later than it comes. (Were each
/// twice the one before, two ranks in conversation would oversleep each other's answers ever longer.)
#[derive(Default)]
pub(super) struct Pace {
    /// Whether each rank has a core.
    own_core: bool,
    /// Whether all that is waited for ends the wait.
    pub(super) is_woken: bool,
    begun: Option<Instant>,
    yields: u32,
    slept: Duration,
}

impl Pace {
    /// That of so many ranks on one host.
    pub(super) fn among(ranks: u32) -> Pace {
        Pace { own_core: u64::from(ranks) <= cores(), ..Pace::default() }
    }

    /// Whether ranks share cores.
    pub(super) fn shares_cores(&self) -> bool {
        !self.own_core
    }

    /// Whether the processor is only offered, for now.
    fn is_awake(&mut self) -> bool {
        self.yields += 1;
        match self.own_core {
            true => self.begun.get_or_insert_with(Instant::now).elapsed() < SPIN,
            false => self.yields <= if self.is_woken { YIELDS_WOKEN } else { YIELDS },
        }
    }

    /// Waits for one turn, or less, if `wait`, which waits for as long as it is told, ends before. Returns what that says.
    pub(super) fn turn(&mut self, wait: impl FnOnce(Duration) -> bool) -> bool {
        if !self.is_awake() {
            let sleep = self.sleep();
            return if self.own_core { with_slack(SLACK, || wait(sleep)) } else { wait(sleep) };
        }
        let ended = wait(Duration::ZERO);
        if !ended {
            std::thread::yield_now();
        }
        ended
    }

    /// How long to sleep next.
    fn sleep(&mut self) -> Duration {
        let first = if self.is_woken { SLEEP_WOKEN } else { SLEEP_FIRST };
        let sleep = (self.slept / 8).clamp(first, SLEEP_MAX);
        self.slept = self.slept.saturating_add(sleep);
        sleep
    }

    /// Begins anew: something happened.
    pub(super) fn reset(&mut self) {
        *self = Pace { own_core: self.own_core, ..Pace::default() };
    }
}

/// Processors of this host.
fn cores() -> u64 {
    // SAFETY: asks the system for a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u64::try_from(online).unwrap_or(1)
}

/// A wait that nothing ends before its time.
pub(super) fn pause(turn: Duration) -> bool {
    if !turn.is_zero() {
        std::thread::sleep(turn);
    }
    false
}

/// Does something on a thread whose sleeps end at most so late, and gives the thread its own slack back.
fn with_slack<T>(slack: Duration, work: impl FnOnce() -> T) -> T {
    let set = |ns: libc::c_ulong| {
        // SAFETY: changes a number of this thread and touches no memory.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns, 0, 0, 0) }
    };
    // SAFETY: reads a number of this thread.
    let before = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    set(slack.as_nanos() as libc::c_ulong);
    let result = work();
    if let Ok(before @ 1..) = libc::c_ulong::try_from(before) {
        set(before);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps of the first turns, and how many offers came before the first.
    fn waits(pace: &mut Pace, sleeps: usize) -> (usize, Vec<u128>) {
        let (mut offers, mut slept) = (0, Vec::new());
        while slept.len() < sleeps {
            pace.turn(|sleep| {
                if sleep.is_zero() {
                    offers += 1
                } else {
                    slept.push(sleep.as_micros())
                }
                false
            });
        }
        (offers, slept)
    }

    #[test]
    fn offers_the_processor_and_then_sleeps_longer_up_to_a_bound() {
        for mut pace in [Pace::among(1), Pace::among(u32::MAX)] {
            let (offers, sleeps) = waits(&mut pace, 100);
            assert!(pace.own_core && offers > 0 || offers == YIELDS as usize, "{offers}");
            assert!(sleeps.is_sorted());
            assert_eq!((sleeps[0], sleeps[8], sleeps[99]), (20, 20, 500));
            assert!(sleeps.iter().take(30).sum::<u128>() < 3000, "short waits are ended with short sleeps: {sleeps:?}");
            pace.reset();
            assert!(pace.turn(|sleep| sleep.is_zero()), "after news it begins with offers");
        }
    }

    #[test]
    fn who_is_woken_sleeps_long() {
        let mut pace = Pace { is_woken: true, ..Pace::among(u32::MAX) };
        let (offers, sleeps) = waits(&mut pace, 100);
        assert_eq!((offers, sleeps[0], sleeps[99]), (YIELDS_WOKEN as usize, 200, 500));
        assert!(sleeps.is_sorted());
    }

    #[test]
    fn a_thread_keeps_its_own_slack() {
        // SAFETY: reads a number of this thread.
        let slack = || unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
        let before = slack();
        assert_eq!(with_slack(SLACK, slack), SLACK.as_nanos() as i32);
        assert_eq!(slack(), before);
    }
}
