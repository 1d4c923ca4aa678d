//! One rank's program, looked at step by step.

use super::{Counts, Limits, Moved, Requests, Round, Share};
use crate::facts::Facts;
use crate::program::{Action, Parts, Place, Program, Step};
use crate::transfer::Transfer;
use hyperslab_layout::{Object, Region, View, nests};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was seen of a program.
pub(super) struct Watched {
    pub(super) share: Share,
    pub(super) requests: Requests,
    /// What this rank, as a server, moved in the first rounds.
    pub(super) rounds: Vec<Round>,
    /// How many more there are.
    pub(super) more_rounds: u64,
    /// Steps that were looked at, and pieces in them.
    pub(super) looked_at: u64,
}

impl Watched {
    pub(super) fn of(program: Program, sizes: &Sizes, rank: u32, limits: Limits) -> Watched {
        let mut watch = Watch {
            sizes,
            rank,
            limits,
            rounds: BTreeMap::new(),
            objects: BTreeSet::new(),
            seen: Watched {
                share: Share {
                    rank,
                    steps: 0,
                    cut: false,
                    sent: Default::default(),
                    received: Default::default(),
                    slots: program.slots,
                    slot_bytes: program.slot_bytes,
                },
                requests: Requests { rank, reads: 0, writes: 0, extents: 0, bytes: 0, objects: 0, cut: false },
                rounds: Vec::new(),
                more_rounds: 0,
                looked_at: 0,
            },
        };
        // Each lane gets its part, and what those before it have left.
        let (mut left, mut lanes) = (limits.steps, program.lanes.len() as u64);
        for mut lane in program.lanes {
            let (mut counted, part) = (0, left.div_ceil(lanes));
            while counted < part
                && let Some(step) = lane.next()
            {
                counted += watch.step(&step);
            }
            watch.seen.share.cut |= counted >= part && lane.next().is_some();
            watch.seen.looked_at += counted;
            (left, lanes) = (left.saturating_sub(counted).max(1), lanes - 1);
        }
        let mut seen = watch.seen;
        seen.requests.cut = seen.share.cut;
        seen.requests.objects = watch.objects.len() as u64;
        seen.rounds = watch.rounds.into_iter().filter_map(|(round, peers)| peers.told(round, rank, limits)).collect();
        seen
    }
}

/// Bytes of elements in memory.
pub(super) struct Sizes<'a> {
    transfer: &'a Transfer,
    /// By rank, the arrays of explicit pieces by the numbers under which they are exposed.
    explicit: Vec<BTreeMap<u32, u32>>,
}

impl<'a> Sizes<'a> {
    pub(super) fn new(transfer: &'a Transfer, facts: &[Arc<Facts>]) -> Sizes<'a> {
        let arrays = |facts: &Arc<Facts>| {
            let all = facts.mine.iter();
            all.flat_map(|(&array, pieces)| pieces.iter().map(move |piece| (piece.exposed, array))).collect()
        };
        Sizes { transfer, explicit: facts.iter().map(arrays).collect() }
    }

    /// Those of an element of the array that a rank has exposed under this number \[B\].
    fn of(&self, rank: u32, exposed: u32) -> u64 {
        let array = self.explicit.get(rank as usize).and_then(|arrays| arrays.get(&exposed)).unwrap_or(&exposed);
        self.transfer.asks.get(*array as usize).map_or(0, |ask| ask.memory.bytes())
    }
}

/// Ranks whose elements a server moves in one round.
#[derive(Default)]
struct Peers(BTreeMap<u32, Counts>);

impl Peers {
    fn told(self, round: u64, server: u32, limits: Limits) -> Option<Round> {
        let mut all = self.0.into_iter().map(|(rank, counts)| Moved { rank, counts });
        let peers: Vec<Moved> = all.by_ref().take(limits.ranks as usize).collect();
        let mut more = (0, Counts::default());
        for Moved { counts, .. } in all {
            more.0 += 1;
            more.1.add(counts);
        }
        (!peers.is_empty()).then_some(Round { round, server, peers, more })
    }
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.pieces += other.pieces;
        self.elements += other.elements;
        self.bytes += other.bytes;
    }
}

struct Watch<'a> {
    sizes: &'a Sizes<'a>,
    rank: u32,
    limits: Limits,
    rounds: BTreeMap<u64, Peers>,
    objects: BTreeSet<Object>,
    seen: Watched,
}

impl Watch<'_> {
    /// Takes note of a step; gives how much was looked at: itself, and the pieces in it.
    fn step(&mut self, step: &Step) -> u64 {
        self.seen.share.steps += 1;
        match &step.action {
            Action::Send { to: peer, parts } | Action::Recv { from: peer, parts } => {
                self.message(step, *peer, parts);
                return 1 + parts.len() as u64;
            }
            Action::Copy { region, from, to } => {
                if let (Place::User(exposed), _) | (_, Place::User(exposed)) = (from, to) {
                    self.moves(step.round, self.rank, self.counts(self.rank, *exposed, region));
                }
            }
            Action::Read { object, region, to: place, there, .. }
            | Action::Write { object, region, from: place, there, .. } => {
                self.objects.insert(object.clone());
                let requests = &mut self.seen.requests;
                *(if matches!(step.action, Action::Read { .. }) {
                    &mut requests.reads
                } else {
                    &mut requests.writes
                }) += 1;
                requests.extents += extents(region, there);
                requests.bytes += region.elements() * there.element.bytes();
                // Straight between the user's array and storage.
                if let Place::User(exposed) = place {
                    self.moves(step.round, self.rank, self.counts(self.rank, *exposed, region));
                }
            }
            Action::Get { object, .. } | Action::Put { object, .. } | Action::Make { object, .. } => {
                self.objects.insert(object.clone());
                let requests = &mut self.seen.requests;
                *(if matches!(step.action, Action::Get { .. }) {
                    &mut requests.reads
                } else {
                    &mut requests.writes
                }) += 1;
                requests.extents += 1;
            }
            Action::Decode { region, to: Place::Slot(_, view), .. }
            | Action::Encode { region, from: Place::Slot(_, view), .. } => {
                self.seen.requests.bytes += region.elements() * view.element.bytes();
            }
            Action::Decode { .. } | Action::Encode { .. } | Action::Fill { .. } | Action::Sync { .. } => {}
        }
        1
    }

    fn message(&mut self, step: &Step, peer: u32, parts: &Parts) {
        // The side with slots is the server; arrays are numbered as the other side has them exposed.
        let serves = parts.iter().any(|(_, _, place)| matches!(place, Place::Slot(..)));
        let holder = if serves { peer } else { self.rank };
        let mut counts = Counts::default();
        parts.iter().for_each(|(exposed, region, _)| counts.add(self.counts(holder, *exposed, region)));
        let share = &mut self.seen.share;
        let way = if matches!(step.action, Action::Send { .. }) { &mut share.sent } else { &mut share.received };
        way.0 += 1;
        way.1.add(counts);
        if serves {
            self.moves(step.round, peer, counts);
        }
    }

    fn counts(&self, holder: u32, exposed: u32, region: &Region) -> Counts {
        let elements = region.elements();
        Counts { pieces: 1, elements, bytes: elements * self.sizes.of(holder, exposed) }
    }

    /// This rank, as a server, moves elements of a rank.
    fn moves(&mut self, round: u64, peer: u32, counts: Counts) {
        if round >= self.limits.rounds {
            self.seen.more_rounds = self.seen.more_rounds.max(round + 1 - self.limits.rounds);
            return;
        }
        self.rounds.entry(round).or_default().0.entry(peer).or_default().add(counts);
    }
}

/// Contiguous ranges of bytes that elements take in an object, apart from those that happen to touch.
fn extents(region: &Region, there: &View) -> u64 {
    let bytes = there.element.bytes();
    let ranges = |nest: hyperslab_layout::Nest| {
        let inner = nest.loops.last().filter(|inner| inner.b.unsigned_abs() == bytes).map_or(1, |inner| inner.count);
        nest.elements() / inner
    };
    nests(region, there, there).map(ranges).sum()
}
