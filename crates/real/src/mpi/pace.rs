//! How a rank waits for others without taking the processor from them.

use std::time::Duration;

/// Turns in which only the processor is offered to others.
const YIELDS: u32 = 50;
/// First and longest sleep.
const SLEEP_FIRST: Duration = Duration::from_micros(20);
const SLEEP_MAX: Duration = Duration::from_micros(500);

/// Waits longer and longer: some yields, for answers that are on their way, then sleeps. Ranks that spin while they
/// share cores slow down the very rank that they wait for.
///
/// A sleep lasts an eighth of all sleeps before it, so that an answer is noticed little later than it comes. (Were each
/// twice the one before, two ranks in conversation would oversleep each other's answers ever longer.)
#[derive(Default)]
pub(super) struct Pace {
    turns: u32,
    slept: Duration,
}

impl Pace {
    /// How long to sleep next; `None` means to yield only.
    pub(super) fn next(&mut self) -> Option<Duration> {
        if self.turns < YIELDS {
            self.turns += 1;
            return None;
        }
        let sleep = (self.slept / 8).clamp(SLEEP_FIRST, SLEEP_MAX);
        self.slept = self.slept.saturating_add(sleep);
        Some(sleep)
    }

    /// Begins anew: something happened.
    pub(super) fn reset(&mut self) {
        *self = Pace::default();
    }

    /// Waits for one turn.
    pub(super) fn turn(&mut self) {
        match self.next() {
            Some(sleep) => std::thread::sleep(sleep),
            None => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yields_then_sleeps_longer_up_to_a_bound() {
        let mut pace = Pace::default();
        assert!((0..YIELDS).all(|_| pace.next().is_none()));
        let sleeps: Vec<_> = (0..100).map_while(|_| pace.next()).map(|sleep| sleep.as_micros()).collect();
        assert_eq!(sleeps.len(), 100);
        assert!(sleeps.is_sorted());
        assert_eq!((sleeps[0], sleeps[8], sleeps[99]), (20, 20, 500));
        assert!(sleeps.iter().take(30).sum::<u128>() < 3000, "short waits are ended with short sleeps: {sleeps:?}");
        pace.reset();
        assert!(pace.next().is_none());
    }
}
