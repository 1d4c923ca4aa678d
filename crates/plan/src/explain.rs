//! What a program does, counted and told.

use crate::program::{Action, Program};
use crate::transfer::{Direction, Parameters, Transfer};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Counts over one rank's program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Steps.
    pub steps: u64,
    /// Messages to send and to receive, by peer.
    pub messages: BTreeMap<u32, u64>,
    /// Pieces in those messages.
    pub pieces: u64,
    /// Elements in messages sent.
    pub elements_sent: u64,
    /// Elements in messages received.
    pub elements_received: u64,
    /// Reads and writes of objects.
    pub requests: u64,
    /// Bytes that they move, before encoding \[B\].
    pub request_bytes: u64,
    /// Bytes of buffer slots \[B\].
    pub slot_bytes: u64,
}

/// Counts a program's steps, to the last.
pub fn tally(program: Program) -> Tally {
    let mut tally = Tally { slot_bytes: u64::from(program.slots) * program.slot_bytes, ..Tally::default() };
    for step in program.lanes.into_iter().flatten() {
        tally.steps += 1;
        match &step.action {
            Action::Send { to: peer, parts } | Action::Recv { from: peer, parts } => {
                let elements: u64 = parts.iter().map(|(_, region, _)| region.elements()).sum();
                *tally.messages.entry(*peer).or_default() += 1;
                tally.pieces += parts.len() as u64;
                match &step.action {
                    Action::Send { .. } => tally.elements_sent += elements,
                    _ => tally.elements_received += elements,
                }
            }
            Action::Read { region, there, .. } | Action::Write { region, there, .. } => {
                tally.requests += 1;
                tally.request_bytes += region.elements() * there.element.bytes();
            }
            Action::Get { .. } | Action::Put { .. } => tally.requests += 1,
            Action::Decode { region, to: crate::Place::Slot(_, view), .. }
            | Action::Encode { region, from: crate::Place::Slot(_, view), .. } => {
                tally.request_bytes += region.elements() * view.element.bytes();
            }
            _ => {}
        }
    }
    tally
}

/// Tells what will be done, by whom, for at most `ranks_shown` ranks.
pub fn explain(
    transfer: &Transfer,
    parameters: &Parameters,
    ranks_shown: u32,
    program: impl Fn(u32) -> Program,
) -> String {
    let mut text = String::new();
    let verb = if transfer.direction == Direction::Write { "write" } else { "read" };
    let _ = writeln!(
        text,
        "{verb} {} array(s), {} B stored, {} ranks",
        transfer.asks.len(),
        transfer.stored_bytes(),
        transfer.ranks
    );
    for ask in transfer.asks.iter().take(8) {
        let _ = writeln!(text, "  {}{}: {} -> {}", ask.name, ask.section, ask.spread, ask.stored.element);
    }
    let _ = writeln!(
        text,
        "strategy {} (servers {:?}, {} slots, subchunk {} B, buffers at most {} B a rank)",
        parameters.strategy,
        parameters.servers,
        parameters.slots,
        parameters.subchunk_bytes,
        parameters.buffer_bytes_max
    );
    let _ = writeln!(
        text,
        "{:>6} {:>8} {:>9} {:>8} {:>12} {:>12} {:>9} {:>13} {:>12}",
        "rank", "steps", "messages", "pieces", "sent", "received", "requests", "stored B", "buffers B"
    );
    for rank in 0..transfer.ranks.min(ranks_shown) {
        let t = tally(program(rank));
        let messages: u64 = t.messages.values().sum();
        let _ = writeln!(
            text,
            "{rank:>6} {:>8} {messages:>9} {:>8} {:>12} {:>12} {:>9} {:>13} {:>12}",
            t.steps, t.pieces, t.elements_sent, t.elements_received, t.requests, t.request_bytes, t.slot_bytes
        );
    }
    if transfer.ranks > ranks_shown {
        let _ = writeln!(text, "  ... and {} more ranks", transfer.ranks - ranks_shown);
    }
    text
}
