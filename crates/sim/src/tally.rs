//! What a run counts.

use std::collections::BTreeMap;

/// Calls of one kind, of all ranks together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Calls {
    /// How many.
    pub count: u64,
    /// Bytes they moved \[B\].
    pub bytes: u64,
    /// Time that their callers waited for them, summed \[ns\].
    pub ns: u64,
    /// How many of each size \[B\].
    pub sizes: BTreeMap<u64, u64>,
}

/// All that a run counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Messages with data.
    pub messages: u64,
    /// Their data \[B\].
    pub message_bytes: u64,
    /// Contiguous runs that they gathered and scattered.
    pub message_runs: u64,
    /// Questions and answers without data: for data, and before long messages.
    pub questions: u64,
    /// Messages of agreements.
    pub signals: u64,
    /// Calls to the file system by kind: `read`, `write`, `sync`, `open`, `close`, `query`.
    pub calls: BTreeMap<&'static str, Calls>,
    /// Requests of callers to file servers.
    pub requests: u64,
}

impl Tally {
    /// Counts a call.
    pub(crate) fn call(&mut self, kind: &'static str, bytes: u64, ns: u64) {
        let calls = self.calls.entry(kind).or_default();
        calls.count += 1;
        calls.bytes += bytes;
        calls.ns += ns;
        *calls.sizes.entry(bytes).or_default() += 1;
    }
}
