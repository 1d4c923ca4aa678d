//! When plans are made anew because of what was learned.

/// Which share of the time in which data move may go into making plans anew. Measurements are noisy, so that small
/// corrections come and go, and the plan of a transfer of a millisecond takes half of one.
const SHARE: f64 = 0.01;

/// What was planned and moved since plans were made anew.
#[derive(Default)]
pub(super) struct Renewal {
    /// Whether some of the plans would be others by now.
    outdated: bool,
    /// How long the plans that are kept took, and how long transfers by them did \[s\].
    planned: f64,
    moved: f64,
}

impl Renewal {
    /// A plan was made in so many seconds.
    pub(super) fn planned(&mut self, seconds: f64) {
        self.planned += seconds;
    }

    /// Whether to make plans anew after a transfer that moved data for so many seconds, and taught something or not.
    pub(super) fn is_due(&mut self, taught: bool, moved: f64) -> bool {
        self.outdated |= taught;
        self.moved += moved;
        let due = self.outdated && self.planned <= SHARE * self.moved;
        if due {
            *self = Renewal::default();
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transfers of so many seconds that all teach something: how often plans are made anew, each in half a millisecond.
    fn renewals(moved: f64, transfers: usize) -> usize {
        let mut renewal = Renewal::default();
        let mut is_planned = false;
        let mut one = || {
            if !std::mem::replace(&mut is_planned, true) {
                renewal.planned(5e-4);
            }
            let due = renewal.is_due(true, moved);
            is_planned = !due;
            due
        };
        (0..transfers).filter(|_| one()).count()
    }

    #[test]
    fn long_transfers_use_what_was_learned_at_once_and_short_ones_seldom() {
        assert_eq!(renewals(0.1, 40), 40);
        assert_eq!(renewals(1e-3, 400), 8);
    }

    #[test]
    fn without_news_plans_stay() {
        let mut renewal = Renewal::default();
        renewal.planned(1e-3);
        assert!((0..1000).all(|_| !renewal.is_due(false, 1.0)));
        assert!(renewal.is_due(true, 0.0));
    }

    #[test]
    fn news_that_came_too_early_are_not_forgotten() {
        let mut renewal = Renewal::default();
        renewal.planned(1.0);
        assert!(!renewal.is_due(true, 60.0));
        assert!(renewal.is_due(false, 60.0));
    }
}
