//! What messages cost: between processes of one node, and between nodes.

use super::costs::Costs;
use super::moved::{Moved, WORD_BYTES};
use super::stretches::LINE_BYTES;
use crate::profile::{Measured, Messages, Neighbours, Requests};
use hyperslab_layout::reach::{goes_straight, is_worth_reaching};

/// What a message costs.
#[derive(Clone, Copy, Default)]
pub(super) struct Message {
    /// The processor of the side with the slot \[ns\].
    pub(super) slot_ns: f64,
    /// Of this, asking for the data \[ns\].
    pub(super) ask_ns: f64,
    /// The processor of the side with the user's array \[ns\].
    pub(super) array_ns: f64,
    /// From asking to the arrival of the data, without what the side with the slot does itself \[ns\].
    pub(super) handled_ns: f64,
    /// The link of either node \[ns\].
    pub(super) wire_ns: f64,
}

impl Costs<'_> {
    /// A message between a slot of `rank` and an array of its peer.
    pub(super) fn message(&self, rank: u32, moved: Moved) -> Message {
        if self.node(rank) != self.node(moved.peer) {
            return self.far(moved);
        }
        let Some(measured) = self.measured() else {
            return Message { slot_ns: self.moved_ns(moved), ..Message::default() };
        };
        self.near(measured, moved)
    }

    /// Between processes of one node: the rank with the slot reaches over into the array where runs there are long enough. Else
    /// one side packs them, and the other puts them in their places.
    fn near(&self, measured: &Measured, moved: Moved) -> Message {
        let half = self.near_message_ns(measured) / 2.0;
        let is_reached = is_worth_reaching(moved.array_bytes, moved.array_runs, self.write);
        let (slot_ns, array_ns) =
            if is_reached { (self.reached_ns(&measured.neighbours, moved), 0.0) } else { self.packed_ns(moved) };
        let handled_ns = measured.neighbours.wake_ns;
        Message { slot_ns: half + slot_ns, ask_ns: 0.0, array_ns: half + array_ns, handled_ns, wire_ns: 0.0 }
    }

    /// What it takes a rank to reach over into a neighbour's array. Gaps are read along between runs that are short; they are
    /// never written.
    fn reached_ns(&self, near: &Neighbours, moved: Moved) -> f64 {
        let pulls_among_gaps = self.write && moved.array_stretches < moved.array_runs;
        // What is long enough on both sides goes straight to its place; all else by way of a buffer.
        let among_gaps = pulls_among_gaps && moved.runs == moved.array_runs;
        let is_straight =
            moved.bytes == moved.array_bytes && goes_straight(moved.bytes / moved.runs.max(1), among_gaps);
        let (named, bytes) = match pulls_among_gaps && !is_straight {
            true => (moved.array_stretches, moved.array_bytes + moved.array_gaps),
            false => (moved.array_runs, moved.array_bytes),
        };
        let placed_ns = match is_straight {
            true => moved.runs.saturating_sub(moved.array_runs) as f64 * near.run_ns,
            false => self.moved_ns(moved),
        };
        bytes as f64 * 1e9 / near.rate + named.saturating_sub(1) as f64 * near.array_run_ns + placed_ns
    }

    /// What packed data take on the side with the slot and on that with the array.
    fn packed_ns(&self, moved: Moved) -> (f64, f64) {
        let costs = &self.profile().messages;
        let bytes = moved.array_bytes as f64;
        let (sent, received) = (bytes * costs.send_byte_ns, bytes * costs.receive_byte_ns);
        let (slot_side, array_side) = if self.write { (received, sent) } else { (sent, received) };
        // A run shorter than a line of the processor's cache moves the line.
        let lines = bytes + (moved.array_part_lines() * LINE_BYTES) as f64;
        let are_words = moved.array_bytes <= moved.array_runs * WORD_BYTES;
        let (words, planes) = if are_words { (moved.array_runs, moved.planes) } else { (0, 0) };
        let slot_runs_ns = self.runs_ns(moved.runs, moved.words, moved.planes);
        let slot_ns = slot_side + slot_runs_ns.max(self.part_lines_ns(moved.slot_part_lines));
        (slot_ns, array_side + self.lines_ns(lines) + self.runs_ns(moved.array_runs, words, planes))
    }

    /// The processors' time for a message between processes of one node. Where ranks share cores, whoever it is for has to be
    /// woken up first, as in an agreement, which has two messages for each rank and keeps all cores busy.
    fn near_message_ns(&self, measured: &Measured) -> f64 {
        let machine = self.priced.machine;
        let ranks = f64::from(machine.ranks_per_node.min(self.ranks));
        let cores = f64::from(machine.cores_per_node.max(1));
        let (alone_ns, crowded_ns) = (measured.neighbours.message_ns, measured.agreements.crowded_ns * cores / 2.0);
        let share = (ranks - cores).max(0.0) / (ranks - 1.0).max(1.0);
        alone_ns + share * (crowded_ns - alone_ns).max(0.0)
    }

    fn far(&self, moved: Moved) -> Message {
        let costs = &self.profile().messages;
        let Messages { send_ns, receive_ns, .. } = *costs;
        let (bytes, runs) = (moved.bytes as f64, moved.runs as f64);
        let parts = moved.bytes.div_ceil(costs.bytes_max.max(1)).max(1) as f64;
        let small = send_ns + self.wire_ns(0.0) + receive_ns;
        let asks = self.write || costs.requests == Requests::All;
        // Long messages ask and are answered before they leave.
        let long = if moved.bytes > costs.eager_bytes { 1.0 } else { 0.0 };
        let hands = long * (send_ns + receive_ns);
        let sends = parts * send_ns + bytes * costs.send_byte_ns;
        let receives = parts * receive_ns + bytes * costs.receive_byte_ns;
        let (slot_side, array_side) = if self.write { (receives, sends) } else { (sends, receives) };
        let ask_ns = match (asks, self.write) {
            (false, _) => 0.0,
            (true, true) => send_ns,
            (true, false) => receive_ns,
        };
        let wire = self.wire_ns(bytes + (parts - 1.0) * costs.header_bytes as f64);
        // Clients derive their pieces before they are asked for them.
        let derived = self.profile().processor.piece_ns;
        let answer_ns =
            array_side + runs * costs.array_run_ns + hands + if asks { send_ns + receive_ns - ask_ns } else { 0.0 };
        Message {
            slot_ns: ask_ns + slot_side + runs * costs.slot_run_ns + hands,
            ask_ns,
            array_ns: derived + answer_ns,
            handled_ns: wire + answer_ns + long * 2.0 * small + if asks { self.wire_ns(0.0) } else { 0.0 },
            wire_ns: bytes * 1e9 / self.profile().network.link_rate,
        }
    }

    /// From the first byte that leaves a node to the last that arrives at another.
    pub(super) fn wire_ns(&self, bytes: f64) -> f64 {
        let network = &self.profile().network;
        network.latency_ns + (bytes + self.profile().messages.header_bytes as f64) * 1e9 / network.link_rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::terms::{Machine, Priced};
    use crate::profile::{Profile, built_in};
    use crate::strategy::Parameters;
    use crate::transfer::{Direction, Transfer};
    use hyperslab_layout::{ElementType, Kind, Policies, Region, View};

    /// The processors' time on both sides for 1 MiB in runs of so many bytes, so far apart in the array \[ns\].
    fn message_ns(profile: &Profile, direction: Direction, run_bytes: u64, apart: u64) -> (f64, f64) {
        let machine = Machine { ranks_per_node: 2, cores_per_node: 2, maps_files: false };
        let transfer = Transfer { direction, asks: Vec::new(), ranks: 2, policies: Policies::default() };
        let costs = Costs::new(Priced { profile, machine }, &transfer, &Parameters::default());
        let element = ElementType::native(Kind::UInt8);
        let region = Region::whole(&[(1 << 20) / run_bytes, run_bytes]);
        let view = |distance| View::held(&region, 0, &[distance as i64, 1], element);
        let mut moved = Moved::nothing(1);
        moved.add(&region, &view(apart), (&view(run_bytes), true));
        let Message { slot_ns, array_ns, .. } = costs.message(0, moved);
        (slot_ns, array_ns)
    }

    #[test]
    fn short_runs_are_reached_for_where_gaps_are_read_along() {
        let mut profile = built_in();
        let half = profile.measured.as_ref().map(|measured| measured.neighbours.message_ns / 2.0);
        let packs = |profile: &Profile, direction, run_bytes, apart| {
            Some(message_ns(profile, direction, run_bytes, apart).1) != half
        };
        for (run_bytes, read, written) in [(128, true, true), (512, true, false), (2048, false, false)] {
            assert_eq!(packs(&profile, Direction::Read, run_bytes, 2 * run_bytes), read, "{run_bytes} B, pushed");
            assert_eq!(packs(&profile, Direction::Write, run_bytes, 2 * run_bytes), written, "{run_bytes} B, pulled");
        }
        // Runs with longer gaps are named one by one; a gap of 2 KiB costs its bytes.
        let pulled = |profile: &Profile, gap: u64| message_ns(profile, Direction::Write, 1024, 1024 + gap).0;
        let [along, apart] = [2048, 2049].map(|gap| pulled(&profile, gap));
        let measured = profile.measured.as_mut().expect("the built-in profile is of a machine at hand");
        let named = 1023.0 * std::mem::take(&mut measured.neighbours.array_run_ns);
        let gaps = 1023.0 * 2048.0 * 1e9 / measured.neighbours.rate;
        let bytes_alone = pulled(&profile, 2049);
        assert!((apart - bytes_alone - named).abs() < 1e-3 * named, "{apart} and {bytes_alone} ns");
        assert!(pulled(&profile, 2048) == along && along > bytes_alone + gaps, "{along} and {bytes_alone} ns");
    }
}
