//! What transfers teach: by how much the model is off on this machine.
//!
//! The logarithm of measured over predicted has two parts: one that all transfers of a kind share, and one of each
//! strategy. What is shared makes predictions right and changes no choice. What is a strategy's own moves slowly and not
//! far, so that no single odd measurement turns a choice around. Only rank 0 learns, and all ranks do what it decides.

use crate::environment;
use crate::report::Report;
use hyperslab_plan::{Resource, Strategy};
use std::collections::BTreeMap;

/// Largest corrections, as factors: what is shared, and what a strategy has of its own.
const SHARED_MAX: f64 = 4.0;
const OWN_MAX: f64 = 1.5;
/// How far one transfer moves them.
const SHARED_SHARE: f64 = 0.25;
const OWN_SHARE: f64 = 0.1;
/// Measurements that are further off than this factor are cut: something else was going on.
const ODD: f64 = 3.0;
/// Transfers that move for less than this say more of noise than of the model \[s\].
const SECONDS_MIN: f64 = 2e-4;
/// Transfers after which the file is written.
const SAVE_AFTER: u32 = 16;
/// Changes of what a strategy has of its own after which plans are made anew, as logarithms.
const STEP: f64 = 0.05;

/// Corrections, as logarithms of factors.
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
struct Kept {
    /// By kind of transfer and what bounds it: what all strategies share, and how many transfers taught it.
    shared: BTreeMap<String, (f64, u64)>,
    /// By kind of transfer and strategy: what that one has of its own.
    own: BTreeMap<String, f64>,
}

/// What transfers taught.
#[derive(Default)]
pub(super) struct Learned {
    kept: Option<Kept>,
    /// What strategies had of their own when plans were made.
    planned_with: BTreeMap<String, f64>,
    unsaved: u32,
}

impl Learned {
    /// By what the prices of strategies are multiplied, before they are compared.
    pub(super) fn own(&mut self, kind: &str) -> Vec<(Strategy, f64)> {
        let mut factors = Vec::new();
        for strategy in Strategy::ALL {
            let key = format!("{kind} {strategy}");
            let own = self.kept().own.get(&key).copied().unwrap_or(0.0);
            if own != 0.0 {
                self.planned_with.insert(key, own);
                factors.push((strategy, own.exp()));
            }
        }
        factors
    }

    /// By what all prices of transfers of a kind are multiplied that this bounds.
    pub(super) fn shared(&mut self, kind: &str, bound: Resource) -> f64 {
        self.kept().shared.get(&format!("{kind} {bound}")).map_or(1.0, |(shared, _)| shared.exp())
    }

    fn kept(&mut self) -> &mut Kept {
        self.kept.get_or_insert_with(|| read().unwrap_or_default())
    }

    /// Learns from a transfer of a kind, which this bounded. Returns whether plans should be made anew.
    pub(super) fn hear(&mut self, kind: &str, bound: Resource, report: &Report) -> bool {
        let (predicted, measured) = report.moving();
        if !(predicted.is_finite() && predicted > 0.0 && measured > SECONDS_MIN && measured.is_finite()) {
            return false;
        }
        // What is left after the corrections with which it was predicted.
        let off = (measured / predicted).ln().clamp(-ODD.ln(), ODD.ln());
        let (shared, seen) = self.kept().shared.entry(format!("{kind} {bound}")).or_default();
        *seen += 1;
        // The first ones teach most: a stated default may be far off.
        let share = SHARED_SHARE.max(1.0 / (*seen as f64 + 1.0));
        *shared = (*shared + share * off).clamp(-SHARED_MAX.ln(), SHARED_MAX.ln());
        let key = format!("{kind} {}", report.strategy());
        let own = self.kept().own.entry(key.clone()).or_default();
        *own = (*own + OWN_SHARE * off).clamp(-OWN_MAX.ln(), OWN_MAX.ln());
        let moved = *own - self.planned_with.get(&key).copied().unwrap_or(0.0);
        self.unsaved += 1;
        if self.unsaved >= SAVE_AFTER {
            self.save();
        }
        moved.abs() > STEP
    }

    /// Writes the file. That it cannot be written hurts nobody.
    fn save(&mut self) {
        self.unsaved = 0;
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
        if self.unsaved > 0 {
            self.save();
        }
    }
}

/// Reads the file. One that makes no sense is as good as none.
fn read() -> Option<Kept> {
    let text = std::fs::read_to_string(environment::learned()?).ok()?;
    let mut kept: Kept = serde_json::from_str(&text).ok()?;
    let sane = |value: f64, most: f64| if value.is_finite() { value.clamp(-most.ln(), most.ln()) } else { 0.0 };
    kept.shared.values_mut().for_each(|(shared, _)| *shared = sane(*shared, SHARED_MAX));
    kept.own.values_mut().for_each(|own| *own = sane(*own, OWN_MAX));
    Some(kept)
}
