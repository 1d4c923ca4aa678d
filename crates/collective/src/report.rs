//! What a transfer did.

use crate::decision::{Decision, Predicted};
use crate::request::ArrayRequest;
use hyperslab_layout::mesh::volume;
use hyperslab_layout::quantity::{bytes, seconds};
use hyperslab_plan::{Parameters, Strategy, Transfer};
use hyperslab_walk::Walked;
use std::fmt;
use std::ops::Range;

/// What was chosen for a transfer and what it cost, as seen by this rank.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    what: String,
    parameters: Parameters,
    bytes: u64,
    /// Of each array, where that was asked for.
    each: Vec<u64>,
    seconds: f64,
    walked: Walked,
    predicted: Predicted,
    measured: Measured,
}

/// What the parts of a call took on this rank \[s\].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Measured {
    /// Until all ranks had agreed.
    pub open: f64,
    /// While elements moved: this rank's, but on rank 0 those of all, and until they are durable where that is asked for.
    pub moving: f64,
    /// While what was written was made durable.
    pub sync: f64,
    /// From then on to the end.
    pub close: f64,
    /// How long the others waited, in the opening and in the end, while rank 0 made something durable for all.
    pub for_rank_0: [f64; 2],
}

impl Report {
    /// What was asked, chosen and done, so many bytes in so many seconds, of which the parts took these.
    pub fn new(
        what: String,
        decision: &Decision,
        bytes: u64,
        (seconds, measured): (f64, Measured),
        walked: Walked,
    ) -> Report {
        let Decision { parameters, predicted, .. } = decision;
        let (parameters, each) = (parameters.clone(), Vec::new());
        Report { what, parameters, bytes, each, seconds, walked, predicted: *predicted, measured }
    }

    /// The same, with the bytes of each array.
    #[must_use]
    pub(crate) fn of_each(self, each: Vec<u64>) -> Report {
        Report { each, ..self }
    }

    /// What of it is about these arrays, which were asked for by this: their bytes, in the time of all.
    #[must_use]
    pub fn part(&self, what: String, arrays: Range<usize>) -> Report {
        let bytes = self.each.get(arrays).unwrap_or_default().iter().sum();
        let Report { parameters, seconds, walked, predicted, measured, .. } = self;
        let (parameters, each) = (parameters.clone(), Vec::new());
        Report {
            what,
            parameters,
            bytes,
            each,
            seconds: *seconds,
            walked: *walked,
            predicted: *predicted,
            measured: *measured,
        }
    }

    /// The same once the call is over, after so many seconds in all, and so many until the last rank's part had moved, where
    /// that is known: only then has that been measured which is predicted.
    #[must_use]
    pub(crate) fn closed(self, moved: Option<f64>, seconds: f64) -> Report {
        let moved = moved.map_or(self.seconds, |moved| moved.max(self.seconds).min(seconds));
        let moving = self.measured.moving + (moved - self.seconds);
        let measured = Measured { moving, close: seconds - moved, ..self.measured };
        Report { seconds, measured, ..self }
    }

    /// The same where rank 0's syncs took so long in the opening, of what it wrote itself, and in the end \[ns\].
    #[must_use]
    pub(crate) fn synced(self, syncs_ns: [u64; 3]) -> Report {
        let Measured { open, close, sync, .. } = self.measured;
        let [opening, own, ending] = syncs_ns.map(|ns| ns as f64 / 1e9);
        // Who has synced less waits for rank 0's sync.
        let for_rank_0 = [opening.min(open), ((own - sync).max(0.0) + ending).min(close)];
        Report { measured: Measured { for_rank_0, ..self.measured }, ..self }
    }

    /// What was asked.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The strategy used.
    pub fn strategy(&self) -> Strategy {
        self.parameters.strategy
    }

    /// All that was chosen.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Bytes of the arrays in storage, of all ranks together \[B\].
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// From the call to its return on this rank \[s\].
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// What the call was expected to take, by phase: open, exchange, storage, sync, close \[s\].
    pub fn predicted(&self) -> [f64; 5] {
        self.predicted
    }

    /// Phases with what was predicted and what was measured on this rank \[s\]. On rank 0, elements move until those of the last
    /// rank have, and are durable where that is asked for; in calls that nobody waits for, its own. What rank 0 makes durable for
    /// all is sync, also where others wait for it.
    pub fn phases(&self) -> [(&'static str, f64, f64); 4] {
        let [open, exchange, storage, sync, close] = self.predicted;
        let measured = &self.measured;
        let [opening, ending] = measured.for_rank_0;
        [
            ("open", open, measured.open - opening),
            ("move", exchange + storage, measured.moving),
            ("sync", sync, measured.sync + opening + ending),
            ("close", close, measured.close - ending),
        ]
    }

    /// Of the opening and of the end, what was predicted and what was measured, with all that rank 0 does in it \[s\].
    pub fn ends(&self) -> [(f64, f64); 2] {
        let [open, .., close] = self.predicted;
        [(open, self.measured.open), (close, self.measured.close)]
    }

    /// What the data were expected to move for, and did, made durable \[s\].
    pub fn moving(&self) -> (f64, f64) {
        let [_, exchange, storage, sync, _] = self.predicted;
        (exchange + storage + sync, self.measured.moving + self.measured.sync)
    }

    /// Bytes a second \[B/s\].
    pub fn bandwidth(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(1e-9)
    }

    /// What this rank did.
    pub fn walked(&self) -> Walked {
        self.walked
    }
}

/// Bytes of each array of a call in storage, of all ranks together, where arrays from each of `firsts` on are one of the
/// transfer \[B\].
pub(crate) fn bytes_of_each(arrays: &[ArrayRequest], firsts: &[usize], transfer: &Transfer) -> Vec<u64> {
    let ends = firsts.iter().skip(1).copied().chain([arrays.len()]);
    let each = firsts.iter().zip(ends).zip(&transfer.asks).flat_map(|((&first, end), ask)| {
        let alone = (end - first == 1).then(|| ask.stored_bytes());
        arrays[first..end].iter().map(move |request| {
            let held = || volume(request.holding.as_ref()?.shape())?.checked_mul(ask.stored.element.bytes());
            alone.or_else(held).unwrap_or(0)
        })
    });
    each.collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} in {} ({}/s), {}",
            self.what,
            bytes(self.bytes as f64),
            seconds(self.seconds),
            bytes(self.bandwidth()),
            self.strategy()
        )
    }
}
