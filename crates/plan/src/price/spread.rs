//! How the requests of ranks spread over file servers: over which of them files lie in all, and at how many of them the
//! requests meet that are under way at the same time.

use super::classes::Class;
use super::costs::Costs;
use super::work::Work;
use crate::profile::Layout;
use crate::strategies::Servers;
use crate::strategy::{Parameters, Role, Sequence};
use crate::transfer::{Spread as Owned, TransferArray};

/// Ranks whose places in a file are looked at, spread over all.
const PLACES_MAX: usize = 64;

/// Requests of arrays alike over file servers.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    /// Requests that are under way at a time, over all ranks.
    pub(super) callers: f64,
    /// Unit of striping \[B\].
    unit_bytes: f64,
    /// File servers, each with its disks, and over how many of them one file lies.
    servers: f64,
    disks: f64,
    width: f64,
    /// Of what the arrays have in files: units of one file, and files.
    units: f64,
    files: f64,
    /// Units in which requests under way begin: those of some callers, rising, and for how many others each stands.
    begins: Vec<u64>,
    stands_for: f64,
    /// Whether callers ask for places beside each other.
    pub(super) side_by_side: bool,
    /// How much less the arrays are than what all ranks together read or write of them, where they read what lies between.
    pub(super) once: f64,
}

impl Spread {
    /// Of arrays alike, of which a rank that handles storage does this.
    pub(super) fn of(costs: &Costs<'_>, class: &Class, parameters: &Parameters, work: &Work) -> Option<Spread> {
        let layout = &costs.profile().storage.servers.layout;
        let ask = class.some.asks.first()?;
        let (unit_bytes, count, width) = match layout {
            // A server on each node, for those who are there.
            Layout::Local => {
                let nodes = nodes(costs, Servers::of(parameters, class.some.ranks));
                (u64::MAX, nodes, nodes)
            }
            Layout::Ranks { unit_bytes } => (*unit_bytes, costs.file_servers().0, costs.file_width()),
            Layout::Apart { unit_bytes, .. } => (*unit_bytes, costs.file_servers().0, costs.file_width()),
        };
        let stored = ask.stored_bytes() as f64 * class.some.asks.len() as f64 * class.times;
        let (asking, each) = under_way(costs, class, parameters, (work.total, stored));
        let on_nodes = Spread {
            callers: asking * each,
            unit_bytes: unit_bytes as f64,
            servers: count,
            disks: f64::from(costs.profile().storage.servers.disks),
            width,
            units: count,
            files: 1.0,
            begins: vec![0],
            stands_for: count,
            side_by_side: false,
            once: if is_own(parameters) { (stored / requested(work, asking)).min(1.0) } else { 1.0 },
        };
        if *layout == Layout::Local {
            return Some(on_nodes);
        }
        let (bytes, files) = match ask.stored.chunk_bytes() {
            None => (stored, 1.0),
            Some(bytes) => (bytes.max(1) as f64, (stored / bytes.max(1) as f64).max(1.0)),
        };
        let mut begins = begins(ask, parameters, (asking as usize, each as u64), unit_bytes);
        let stands_for = (asking / PLACES_MAX as f64).max(1.0);
        let in_turn = parameters.role() == Role::Servers && parameters.strategy.order() != Sequence::Domains;
        let crowded = begins.len() as f64 * stands_for * 2.0 <= asking * each;
        begins.iter_mut().for_each(|unit| *unit %= (width as u64).max(1));
        begins.sort_unstable();
        begins.dedup();
        let units = (bytes / unit_bytes as f64).ceil().max(1.0);
        let side_by_side = files <= 1.0 && (in_turn || crowded);
        Some(Spread { units, files, begins, stands_for, side_by_side, ..on_nodes })
    }

    /// Units that a range of a file so long lies in.
    pub(super) fn units_of(&self, bytes: f64) -> f64 {
        (bytes / self.unit_bytes).ceil().max(1.0)
    }

    /// File servers on which the arrays lie in all.
    pub(super) fn servers(&self) -> f64 {
        self.over(self.files, self.units)
    }

    /// Disks on which they lie.
    pub(super) fn disks(&self) -> f64 {
        self.servers() * self.disks_each()
    }

    /// Disks of a server on which they lie: one turn over all servers after the other.
    pub(super) fn disks_each(&self) -> f64 {
        self.disks.min((self.units * self.files / self.servers()).ceil()).max(1.0)
    }

    /// Servers on which so many files lie that have so many units each. Files take servers in turn, and begin one further on
    /// each time around.
    fn over(&self, files: f64, units: f64) -> f64 {
        let around = (self.servers / self.width).max(1.0);
        let turns = (files / around).ceil().max(1.0);
        let wide = (units.min(self.width) + turns - 1.0).min(self.width);
        (files.min(around) * wide).min(self.servers).max(1.0)
    }

    /// File servers at which requests of so many bytes together meet at a time.
    pub(super) fn meeting(&self, bytes: f64) -> f64 {
        let long = self.units_of(bytes);
        if self.files > 1.0 {
            return self.over(self.callers.min(self.files), long.min(self.units));
        }
        // The union of arcs on the ring of servers.
        let ring = self.width as u64;
        let Some(&first) = self.begins.first() else { return 1.0 };
        let nexts = self.begins.iter().skip(1).copied().chain([first + ring]);
        let all: f64 = self.begins.iter().zip(nexts).map(|(begin, next)| long.min((next - begin) as f64)).sum();
        (all * self.stands_for).min(self.width).min(self.units).max(1.0)
    }

    /// The same where callers go on from server to server, so many of them, after so many calls at each: those who were first
    /// at one are alone at the next until the others come, and so they draw apart.
    pub(super) fn drawn_apart(&self, meeting: f64, calls: f64, visits: f64) -> f64 {
        let together = self.callers / meeting;
        if together <= 1.0 {
            return meeting;
        }
        // With each call of the first there are twice as many, until all are there.
        let alone = calls.min(together.log2());
        let first = alone.exp2() + (calls - alone) * together;
        let apart = meeting * (calls * together / first).max(1.0);
        let all = self.over(self.files, self.units);
        let apart = apart.min(all * self.callers / (self.callers + all - 1.0)).max(meeting);
        // At the first they all begin.
        let first = 1.0 / visits.max(1.0);
        1.0 / (first / meeting + (1.0 - first) / apart)
    }

    /// Bytes of a unit of striping \[B\].
    pub(super) fn unit_bytes(&self) -> f64 {
        self.unit_bytes
    }
}

/// Whether each rank handles storage for its own.
fn is_own(parameters: &Parameters) -> bool {
    parameters.strategy.is_own()
}

/// Nodes on which ranks handle storage.
fn nodes(costs: &Costs<'_>, servers: Servers<'_>) -> f64 {
    if let Servers::All(_) = servers {
        return costs.nodes();
    }
    let mut nodes: Vec<u32> = servers.iter().map(|rank| costs.node(rank)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.len().max(1) as f64
}

/// Ranks that ask for files at a time, and how many requests each has under way, if one has so many rounds and all move so many
/// bytes.
fn under_way(costs: &Costs<'_>, class: &Class, parameters: &Parameters, (rounds, bytes): (f64, f64)) -> (f64, f64) {
    let spread = class.some.asks.first().and_then(|ask| ask.spread.regular());
    let ranks = match Servers::of(parameters, class.some.ranks) {
        // Of those who move their own, the ones that hold something.
        Servers::All(ranks) => spread.map_or(f64::from(ranks), |held| held.ranks() as f64).min(f64::from(ranks)),
        Servers::Listed(listed) => listed.len() as f64,
    };
    let groups = (bytes / parameters.subchunk_bytes.max(1) as f64).ceil().max(1.0);
    let asking = if is_own(parameters) { ranks } else { ranks.min(groups) };
    let direct = parameters.strategy.order() == Sequence::Disk;
    let at_once = costs.at_once(direct).min(parameters.slots.max(1) as usize);
    (asking.max(1.0), (at_once as f64).min(rounds.ceil()).max(1.0))
}

/// Bytes that so many ranks ask storage for, if all do as this one.
fn requested(work: &Work, ranks: f64) -> f64 {
    let seen: u64 = work.rounds.iter().flat_map(|round| &round.requests).map(|request| request.bytes).sum();
    (seen as f64 * work.total / work.rounds.len().max(1) as f64 * ranks).max(1.0)
}

/// The units of a file in which requests of ranks begin, so many of each; of some ranks, where there are more.
fn begins(ask: &TransferArray, parameters: &Parameters, (ranks, each): (usize, u64), unit: u64) -> Vec<u64> {
    let bytes = ask.stored_bytes().max(1);
    let subchunk = parameters.subchunk_bytes.clamp(1, bytes);
    let domain = bytes.div_ceil(ranks.max(1) as u64).div_ceil(subchunk).saturating_mul(subchunk);
    let (role, in_domains) = (parameters.role(), parameters.strategy.order() == Sequence::Domains);
    let place = |rank: u64| match role {
        Role::Own | Role::Holders => first_byte(ask, (rank as u32, ranks as u32)),
        _ if in_domains => rank.saturating_mul(domain),
        _ => rank.saturating_mul(subchunk),
    };
    let in_a_row = in_domains || role == Role::Own;
    let step = if in_a_row { subchunk } else { subchunk.saturating_mul(ranks as u64) };
    let looked_at = ranks.clamp(1, PLACES_MAX);
    let mut begins = Vec::with_capacity(looked_at * each as usize);
    for number in 0..looked_at {
        let first = place((number * ranks / looked_at) as u64);
        begins.extend((0..each).map(|round| first.saturating_add(round.saturating_mul(step)) / unit.max(1)));
    }
    begins.sort_unstable();
    begins.dedup();
    begins
}

/// Where the first element of a rank lies in the file, behind that of the array \[B\].
fn first_byte(ask: &TransferArray, (rank, ranks): (u32, u32)) -> u64 {
    let Owned::Regular(distribution) = &ask.spread else {
        return ask.stored_bytes() / u64::from(ranks.max(1)) * u64::from(rank);
    };
    if ask.section.dims.iter().any(|dim| dim.is_empty()) {
        return 0;
    }
    let region = distribution.owned(rank);
    let low = |d: usize| region.dims.get(d).and_then(|set| set.hull()).map_or(0, |hull| hull.0);
    let first: Vec<u64> = ask.section.dims.iter().enumerate().map(|(d, dim)| dim.select(low(d))).collect();
    ask.stored.distance_of(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 requests on 8 servers, each with 2 disks, of a file of 64 units.
    fn spread(begins: &[u64]) -> Spread {
        Spread {
            callers: 16.0,
            unit_bytes: 1024.0,
            servers: 8.0,
            disks: 2.0,
            width: 8.0,
            units: 64.0,
            files: 1.0,
            begins: begins.to_vec(),
            stands_for: 1.0,
            side_by_side: false,
            once: 1.0,
        }
    }

    #[test]
    fn requests_meet_where_their_units_lie() {
        let apart = spread(&[0, 2, 7]);
        assert_eq!((apart.meeting(100.0), apart.meeting(1024.0)), (3.0, 3.0));
        // Units 0-1, 2-3, and 7 with 0 of the next turn.
        assert_eq!(apart.meeting(2048.0), 5.0);
        assert_eq!(apart.meeting(8192.0), 8.0);
        assert_eq!((apart.servers(), apart.disks()), (8.0, 16.0));
        let short = Spread { units: 3.0, ..apart };
        assert_eq!((short.servers(), short.disks(), short.meeting(8192.0)), (3.0, 3.0, 3.0));
    }

    #[test]
    fn files_begin_at_one_server_after_the_other() {
        let files = Spread { files: 100.0, units: 1.0, ..spread(&[0]) };
        assert_eq!((files.servers(), files.disks()), (8.0, 16.0));
        assert_eq!(files.meeting(1024.0), 8.0);
        let few = Spread { files: 3.0, ..files.clone() };
        assert_eq!((few.servers(), few.disks()), (3.0, 3.0));
        let long = Spread { units: 4.0, ..few };
        assert_eq!(long.servers(), 6.0);
        let narrow = Spread { width: 3.0, ..files.clone() };
        assert_eq!(narrow.servers(), 8.0);
        let halves = Spread { width: 4.0, ..files };
        assert_eq!(halves.servers(), 8.0);
        assert_eq!(Spread { files: 2.0, ..halves }.servers(), 2.0);
    }

    #[test]
    fn callers_draw_apart_the_sooner_the_fewer_calls_they_make_at_each_server() {
        let together = spread(&[0]);
        let many = 1e9;
        // One call each: as spread as requests at random, 8 x 16 / 23.
        assert!((together.drawn_apart(1.0, 1.0, many) - 128.0 / 23.0).abs() < 1e-6);
        // 4 calls, twice as many ahead at each: 16 instead of 4 x 16.
        assert!((together.drawn_apart(1.0, 4.0, many) - 4.0).abs() < 1e-6);
        assert!(together.drawn_apart(1.0, 1000.0, many) < 1.01);
        // Who makes one visit has no time for it.
        assert_eq!(together.drawn_apart(1.0, 4.0, 1.0), 1.0);
        assert_eq!(spread(&[0]).drawn_apart(16.0, 4.0, many), 16.0);
    }
}
