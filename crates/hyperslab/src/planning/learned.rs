//! What transfers teach: by how much the model is off on this machine.
//!
//! The logarithm of measured over predicted has two parts: one that all transfers of a kind share, by phase and of moving
//! and closing together, and one of each strategy, which moves slowly and not far. Both make predictions right and change no choice: what one
//! transfer teaches of a strategy says little of another transfer. Only rank 0 learns, and all ranks do what it decides.

use crate::environment;
use hyperslab_collective::Report;
use hyperslab_plan::{Resource, Strategy};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What comes before and after data move.
const OPEN: &str = "open";
const CLOSE: &str = "close";
/// Moving and closing. What one takes longer the other one often takes less, so that of parts each of which is right the sum is too
/// small. Opening is left out: in it, ranks wait for those that come late, which says nothing of what follows.
const TOGETHER: &str = "together";

/// Largest corrections, as factors: what is shared, what is shared before and after data move, and what a strategy has of its
/// own. Before and after, the model has little more than agreements of some microseconds, and rank 0 may read or write the
/// metadata of hundreds of arrays.
const SHARED_MAX: f64 = 8.0;
const ENDS_MAX: f64 = 512.0;
const OWN_MAX: f64 = 1.5;
/// How far one transfer moves them.
const SHARED_SHARE: f64 = 0.25;
const OWN_SHARE: f64 = 0.1;
/// Measurements that are further off than this factor are cut: something else was going on.
const ODD: f64 = 3.0;
/// Transfers that move for less than this say more of noise than of the model \[s\].
const SECONDS_MIN: f64 = 2e-4;
/// Transfers after which what is left of an error is put down to the strategy.
const SETTLED: u64 = 4;
/// How long after a transfer the next one writes the file: rarely, since that takes longer than a small transfer.
const SAVE_AFTER: Duration = Duration::from_secs(1);

/// What is known of one kind of transfer: corrections, as logarithms of factors.
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
struct Kept {
    /// What all strategies share, by part, that of moving by what bounds it, and how many transfers taught it.
    shared: BTreeMap<String, (f64, u64)>,
    /// By strategy: what that one has of its own.
    own: BTreeMap<String, f64>,
}

impl Kept {
    /// By what a part of a price is multiplied.
    fn factor(&self, part: &str) -> f64 {
        self.shared.get(part).map_or(1.0, |(shared, _)| shared.exp())
    }

    /// What a strategy has of its own. One that was never taken is taken to be off as far as those that were.
    fn own(&self, strategy: Strategy) -> f64 {
        let mean = || self.own.values().sum::<f64>() / self.own.len().max(1) as f64;
        self.own.get(strategy.name()).copied().unwrap_or_else(mean).exp()
    }

    /// Corrects what all strategies share of a part by so much of the logarithm of measured over predicted, with which it was
    /// predicted.
    fn teach(&mut self, part: &str, off: f64) {
        let (shared, seen) = known(&mut self.shared, part);
        *seen += 1;
        // The first ones teach most: a stated default may be far off.
        let share = SHARED_SHARE.max(1.0 / (*seen as f64 + 1.0));
        *shared = bounded(*shared + share * off, shared_max(part));
    }

    fn learn(&mut self, bound: Resource, report: &Report) {
        let [open, close] = report.ends();
        let (predicted, measured) = report.moving();
        let together = self.factor(TOGETHER);
        let parts = [(OPEN, open.0, open.1), (CLOSE, close.0 / together, close.1)];
        for (part, predicted, measured) in parts {
            off(predicted, measured).into_iter().for_each(|off| self.teach(part, off));
        }
        if measured < SECONDS_MIN {
            return;
        }
        let Some(off_moving) = off(predicted / together, measured) else { return };
        self.teach(bound.name(), off_moving);
        if self.shared.get(bound.name()).is_some_and(|(_, seen)| *seen <= SETTLED) {
            // As long as all are far off, what is left says little of one strategy.
            return;
        }
        let own = known(&mut self.own, report.strategy().name());
        *own = bounded(*own + OWN_SHARE * off_moving, OWN_MAX);
        off(predicted + close.0, measured + close.1).into_iter().for_each(|off| self.teach(TOGETHER, off));
    }
}

/// The logarithm of measured over predicted, unless these are no positive numbers.
fn off(predicted: f64, measured: f64) -> Option<f64> {
    let are_times = predicted.is_finite() && predicted > 0.0 && measured.is_finite() && measured > 0.0;
    are_times.then(|| (measured / predicted).ln().clamp(-ODD.ln(), ODD.ln()))
}

/// What is known by a name, from now on if it was not.
fn known<'a, T: Default>(map: &'a mut BTreeMap<String, T>, name: &str) -> &'a mut T {
    if !map.contains_key(name) {
        map.insert(name.into(), T::default());
    }
    map.get_mut(name).expect("it is there")
}

/// Factors for prices that all strategies share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Corrections {
    pub(super) open: f64,
    pub(super) moving: f64,
    pub(super) close: f64,
}

/// What transfers taught, by their kinds.
#[derive(Default)]
pub(super) struct Learned {
    kept: Option<BTreeMap<String, Kept>>,
    /// When the first of the transfers was over that the file does not know.
    unsaved: Option<Instant>,
}

impl Learned {
    /// Nothing, whatever was kept.
    pub(crate) fn nothing() -> Learned {
        Learned { kept: Some(BTreeMap::new()), ..Learned::default() }
    }

    /// By what the price of a transfer of a kind is multiplied that this bounds and that this strategy carries out: agreeing,
    /// moving data, publishing.
    pub(super) fn of(&mut self, kind: &str, bound: Resource, strategy: Strategy) -> Corrections {
        let own = self.kept(kind).own(strategy);
        let shared = self.shared(kind, bound);
        Corrections { moving: shared.moving * own, ..shared }
    }

    /// By what is multiplied, in all prices of transfers of a kind that this bounds, whoever carries them out.
    fn shared(&mut self, kind: &str, bound: Resource) -> Corrections {
        let kept = self.kept(kind);
        let together = kept.factor(TOGETHER);
        let moving = together * kept.factor(bound.name());
        Corrections { open: kept.factor(OPEN), moving, close: together * kept.factor(CLOSE) }
    }

    fn kept(&mut self, kind: &str) -> &mut Kept {
        known(self.kept.get_or_insert_with(|| read().unwrap_or_default()), kind)
    }

    /// Learns from a transfer of a kind, which this bounded.
    pub(super) fn hear(&mut self, kind: &str, bound: Resource, report: &Report) {
        self.kept(kind).learn(bound, report);
        if self.unsaved.get_or_insert_with(Instant::now).elapsed() > SAVE_AFTER {
            self.save();
        }
    }

    /// Writes the file. That it cannot be written hurts nobody.
    fn save(&mut self) {
        self.unsaved = None;
        let (Some(path), Some(kept)) = (environment::learned(), &self.kept) else { return };
        let Ok(text) = serde_json::to_string_pretty(kept) else { return };
        let aside = path.with_extension(format!("{}.tmp", std::process::id()));
        let _ = path.parent().map(std::fs::create_dir_all);
        if std::fs::write(&aside, text).is_ok() {
            let _ = std::fs::rename(&aside, &path);
        }
    }
}

impl Drop for Learned {
    fn drop(&mut self) {
        if self.unsaved.is_some() {
            self.save();
        }
    }
}

/// Reads the file. An invalid one is as good as none.
fn read() -> Option<BTreeMap<String, Kept>> {
    let text = std::fs::read_to_string(environment::learned()?).ok()?;
    let mut kept: BTreeMap<String, Kept> = serde_json::from_str(&text).ok()?;
    for Kept { shared, own } in kept.values_mut() {
        shared.iter_mut().for_each(|(part, (shared, _))| *shared = bounded(*shared, shared_max(part)));
        own.values_mut().for_each(|own| *own = bounded(*own, OWN_MAX));
    }
    Some(kept)
}

/// The largest factor that may be learned of a part of what all strategies share.
fn shared_max(part: &str) -> f64 {
    match part {
        OPEN | CLOSE => ENDS_MAX,
        TOGETHER => OWN_MAX,
        _ => SHARED_MAX,
    }
}

/// A logarithm within bounds that are given as a factor; nothing, when it is no number.
fn bounded(value: f64, most: f64) -> f64 {
    if value.is_finite() { value.clamp(-most.ln(), most.ln()) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_collective::{Decision, Measured};
    use hyperslab_plan::Parameters;
    use hyperslab_walk::Walked;

    const KIND: &str = "write file cached 4";

    fn report(strategy: Strategy, predicted: f64, measured: f64) -> Report {
        let parameters = Parameters { strategy, ..Parameters::default() };
        let predicted = [1e-3, predicted, 0.0, 0.0, 1e-3];
        let measured = Measured { open: 1e-3, moving: measured, close: 1e-3, ..Measured::default() };
        let decision = Decision { parameters, predicted, later: 0.0, plan: 0 };
        Report::new("a test".into(), &decision, 1, (1.0, measured), Walked::default())
    }

    fn knows_nothing() -> Learned {
        Learned::nothing()
    }

    /// Lets transfers take `factor` times as long as the model says, and tells what is learned.
    fn taught(learned: &mut Learned, strategy: Strategy, factor: f64, times: usize) -> f64 {
        for _ in 0..times {
            let predicted = 0.1 * learned.of(KIND, Resource::Cores, strategy).moving;
            learned.hear(KIND, Resource::Cores, &report(strategy, predicted, 0.1 * factor));
            // Nothing of this is to be kept.
            learned.unsaved = None;
        }
        learned.of(KIND, Resource::Cores, strategy).moving
    }

    #[test]
    fn predictions_come_to_what_is_measured() {
        for factor in [0.5, 1.0, 1.7, 3.0] {
            let learned = taught(&mut knows_nothing(), Strategy::INDEPENDENT, factor, 30);
            assert!((learned / factor).ln().abs() < 0.05, "{factor}: {learned}");
        }
    }

    /// Lets calls take so long \[ms\] to open, move and close, and tells what the last corrections are, and by how much the last
    /// predictions of moving and closing were off in the mean.
    fn taught_parts(learned: &mut Learned, calls: usize, takes: impl Fn(usize) -> [f64; 3]) -> (Corrections, f64) {
        let mut off = Vec::new();
        for call in 0..calls {
            let corrections = learned.of(KIND, Resource::Cores, Strategy::INDEPENDENT);
            let predicted = [corrections.open, corrections.moving, 0.0, 0.0, corrections.close].map(|part| 1e-3 * part);
            let [open, moving, close] = takes(call).map(|part| 1e-3 * part);
            let measured = Measured { open, moving, close, ..Measured::default() };
            let decision = Decision { parameters: Parameters::default(), predicted, later: 0.0, plan: 0 };
            let report =
                Report::new("a test".into(), &decision, 1, (open + moving + close, measured), Walked::default());
            learned.hear(KIND, Resource::Cores, &report);
            learned.unsaved = None;
            off.push(((moving + close) / (predicted[1] + predicted[4])).ln());
        }
        let settled = &off[3 * calls / 4..];
        (learned.of(KIND, Resource::Cores, Strategy::INDEPENDENT), settled.iter().sum::<f64>() / settled.len() as f64)
    }

    #[test]
    fn moving_and_closing_are_predicted_right_together_when_they_take_turns_to_be_long() {
        let takes = |call| if call % 2 == 0 { [1.0, 2.0, 0.25] } else { [1.0, 0.25, 2.0] };
        let (_, off) = taught_parts(&mut knows_nothing(), 400, takes);
        assert!(off.abs() < 0.02, "{off}");
    }

    #[test]
    fn waiting_for_late_ranks_says_nothing_of_moving() {
        let takes = |call| [if call % 3 == 0 { 0.1 } else { 700.0 }, 1.0, 0.1];
        let (corrections, _) = taught_parts(&mut knows_nothing(), 400, takes);
        assert!(corrections.moving.ln().abs() < 0.02, "{corrections:?}");
    }

    #[test]
    fn one_odd_measurement_changes_little_of_a_strategy() {
        let mut learned = knows_nothing();
        taught(&mut learned, Strategy::INDEPENDENT, 1.0, 20);
        let before = learned.kept(KIND).own(Strategy::INDEPENDENT);
        taught(&mut learned, Strategy::INDEPENDENT, 1000.0, 1);
        assert!((learned.kept(KIND).own(Strategy::INDEPENDENT) / before).ln() < 0.12);
    }

    #[test]
    fn what_was_never_taken_is_off_as_the_others_are() {
        let mut learned = knows_nothing();
        taught(&mut learned, Strategy::SERVER_DIRECTED, 3.0, 12);
        let own = learned.kept(KIND).own(Strategy::SERVER_DIRECTED);
        assert!(own > 1.0);
        assert!(Strategy::ALL.into_iter().all(|strategy| (learned.kept(KIND).own(strategy) - own).abs() < 1e-12));
    }

    #[test]
    fn corrections_are_bounded_and_of_a_kind() {
        let mut learned = knows_nothing();
        for factor in [1e9, 1e-9] {
            taught(&mut learned, Strategy::TWO_PHASE, factor, 200);
            let most = SHARED_MAX * OWN_MAX * (1.0 + 1e-9);
            let shared = learned.shared(KIND, Resource::Cores).moving;
            assert!((1.0 / most..=most).contains(&shared), "{shared}");
            assert!(learned.kept(KIND).own(Strategy::TWO_PHASE).ln().abs() <= OWN_MAX.ln() + 1e-9);
        }
        let other = learned.of("read file cached 4", Resource::Cores, Strategy::TWO_PHASE);
        assert!((other.moving - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_makes_no_sense_teaches_nothing() {
        let mut learned = knows_nothing();
        for (predicted, measured) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, f64::NAN), (1.0, 0.0), (f64::INFINITY, 1.0)] {
            learned.hear(KIND, Resource::Cores, &report(Strategy::INDEPENDENT, predicted, measured));
            learned.unsaved = None;
        }
        assert!((learned.of(KIND, Resource::Cores, Strategy::INDEPENDENT).moving - 1.0).abs() < 1e-12);
    }
}
