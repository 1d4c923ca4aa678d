//! How a rank waits for others without taking the processor from them.

use std::time::Duration;

/// Turns in which only the processor is offered to others.
const YIELDS: u32 = 20;
/// First and longest sleep.
const SLEEP_FIRST: Duration = Duration::from_micros(20);
const SLEEP_MAX: Duration = Duration::from_micros(500);

/// Waits longer and longer: a few yields, for answers that are on their way, then sleeps. Ranks that spin while they
/// share cores slow down the very rank that they wait for.
#[derive(Default)]
pub(super) struct Pace {
    turns: u32,
}

impl Pace {
    /// How long to sleep next; `None` means to yield only.
    pub(super) fn next(&mut self) -> Option<Duration> {
        self.turns = self.turns.saturating_add(1);
        let doublings = self.turns.checked_sub(YIELDS + 1)?;
        Some(SLEEP_FIRST.saturating_mul(1 << doublings.min(10)).min(SLEEP_MAX))
    }

    /// Begins anew: something happened.
    pub(super) fn reset(&mut self) {
        self.turns = 0;
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
        let sleeps: Vec<_> = (0..40).map_while(|_| pace.next()).map(|sleep| sleep.as_micros()).collect();
        assert_eq!(sleeps[..7], [20, 40, 80, 160, 320, 500, 500]);
        assert_eq!(sleeps.len(), 40);
        pace.reset();
        assert!(pace.next().is_none());
    }
}
