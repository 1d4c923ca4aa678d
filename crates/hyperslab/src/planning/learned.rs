//! What transfers teach: by how much the model is off on this machine.
//!
//! The logarithm of measured over predicted has two parts: one that all transfers of a kind share, and one of each
//! strategy. What is shared makes predictions right and changes no choice. What is a strategy's own moves slowly and not
//! far, so that no single odd measurement turns a choice around. Only rank 0 learns, and all ranks do what it decides.

use super::Asked;
use crate::environment;
use crate::report::Report;
use hyperslab_plan::Strategy;
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
/// Changes of what a strategy has of its own after which plans are made anew, as logarithms.
const STEP: f64 = 0.05;

#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
struct Kind {
    shared: f64,
    own: BTreeMap<String, f64>,
    seen: u64,
}

/// Corrections by kind of transfer.
#[derive(Default)]
pub(super) struct Learned {
    kinds: Option<BTreeMap<String, Kind>>,
    /// What strategies had of their own when plans were made.
    planned_with: BTreeMap<String, f64>,
    unsaved: u32,
}

/// Transfers after which the file is written.
const SAVE_AFTER: u32 = 16;

fn key(asked: &Asked) -> String {
    let word = |it: bool, yes: &'static str, no: &'static str| if it { yes } else { no };
    format!(
        "{} {} {} {}",
        word(asked.write, "write", "read"),
        word(asked.chunked, "chunks", "file"),
        word(asked.durable, "durable", "cached"),
        asked.ranks.next_power_of_two()
    )
}

impl Learned {
    /// By what prices of strategies are multiplied.
    pub(super) fn factors(&mut self, asked: &Asked) -> Vec<(Strategy, f64)> {
        let key = key(asked);
        let Some(kind) = self.kinds().get(&key).cloned() else { return Vec::new() };
        let own = |strategy: Strategy| kind.own.get(strategy.name()).copied().unwrap_or(0.0);
        let factors = Strategy::ALL.map(|strategy| (strategy, (kind.shared + own(strategy)).exp()));
        self.planned_with.extend(kind.own.iter().map(|(name, own)| (format!("{key} {name}"), *own)));
        factors.to_vec()
    }

    fn kinds(&mut self) -> &mut BTreeMap<String, Kind> {
        self.kinds.get_or_insert_with(|| read().unwrap_or_default())
    }

    /// Learns from a transfer. Returns whether plans should be made anew.
    pub(super) fn hear(&mut self, asked: &Asked, report: &Report) -> bool {
        let (predicted, measured) = report.moving();
        if !(predicted.is_finite() && predicted > 0.0 && measured > SECONDS_MIN && measured.is_finite()) {
            return false;
        }
        let key = key(asked);
        let name = report.strategy().name();
        let kind = self.kinds().entry(key.clone()).or_default();
        kind.seen += 1;
        // What is left after the corrections with which it was predicted.
        let off = (measured / predicted).ln().clamp(-ODD.ln(), ODD.ln());
        // The first ones teach most: a stated default may be far off.
        let share = SHARED_SHARE.max(1.0 / kind.seen as f64).min(0.5);
        kind.shared = (kind.shared + share * off).clamp(-SHARED_MAX.ln(), SHARED_MAX.ln());
        let own = kind.own.entry(name.to_string()).or_default();
        *own = (*own + OWN_SHARE * off).clamp(-OWN_MAX.ln(), OWN_MAX.ln());
        let own = *own;
        let planned = self.planned_with.get(&format!("{key} {name}")).copied().unwrap_or(0.0);
        self.unsaved += 1;
        if self.unsaved >= SAVE_AFTER {
            self.save();
        }
        (own - planned).abs() > STEP || share > SHARED_SHARE
    }

    /// Writes the file. That it cannot be written hurts nobody.
    fn save(&mut self) {
        self.unsaved = 0;
        let (Some(path), Some(kinds)) = (environment::learned(), &self.kinds) else { return };
        let Ok(text) = serde_json::to_string_pretty(kinds) else { return };
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
fn read() -> Option<BTreeMap<String, Kind>> {
    let text = std::fs::read_to_string(environment::learned()?).ok()?;
    let mut kinds: BTreeMap<String, Kind> = serde_json::from_str(&text).ok()?;
    for kind in kinds.values_mut() {
        let sane = |value: f64, most: f64| if value.is_finite() { value.clamp(-most.ln(), most.ln()) } else { 0.0 };
        kind.shared = sane(kind.shared, SHARED_MAX);
        kind.own.values_mut().for_each(|own| *own = sane(*own, OWN_MAX));
    }
    Some(kinds)
}
