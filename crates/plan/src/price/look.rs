//! What a look at the programs of a few ranks stands for: it is held against what is known of all.

use super::classes::Class;
use super::memories::Memories;
use super::terms::Effort;
use super::work::{Work, reads_whole_chunks, whole_chunks};
use crate::rounds::{COUNTED_MAX, Rounds};
use crate::strategies::Servers;
use crate::strategy::Parameters;
use crate::transfer::{Direction, Spread as Owned, TransferArray};
use crate::units::Units;

/// Ranks that were looked at, and what they stand for.
pub(super) struct Look {
    pub(super) works: Vec<Work>,
    /// Ranks for which each of them stands.
    pub(super) ranks: f64,
    /// Ranks that have something to do with storage, and so at the same time.
    pub(super) at_once: f64,
    /// What moves in all, over what seems to.
    pub(super) share: f64,
    /// The same of chunks that are written, or read, whole whatever moves of them: in all, and of the rank with most.
    pub(super) chunks: Option<(f64, f64)>,
    /// The same of the rank that moves most.
    pub(super) most: f64,
}

impl Look {
    /// Looks at some of the ranks that handle storage.
    pub(super) fn at(
        class: &Class,
        parameters: &Parameters,
        memories: &Memories,
        effort: Effort,
        at_hand: bool,
    ) -> Look {
        let servers = Servers::of(parameters, class.some.ranks);
        // On imagined machines all count: disks lie apart from who serves there, and where few serve, their requests come
        // out too cheap (0.32 s for 0.36 simulated, 10 MiB on starfish).
        // Some of them stand for all, so those with nothing to do must not be among them.
        let rounds = Rounds::of(&class.some, parameters, 0).filter(|_| at_hand);
        let sharers = rounds.as_ref().and_then(|rounds| rounds.sharers(class.times));
        let working = match (&rounds, &sharers) {
            (_, Some((working, _))) => *working,
            (Some(rounds), None) => rounds.working(class.times).unwrap_or(servers.len()).max(1),
            (None, None) => servers.len(),
        };
        let such = sharers.as_ref().map_or(servers, |(_, such)| Servers::Listed(such));
        let numbers = spread(working.min(such.len()), effort.ranks as usize);
        let work =
            |&number: &usize| Work::of(&class.some, parameters, memories, (such.get(number), class.times), effort);
        let works: Vec<Work> = numbers.iter().filter_map(work).collect();
        let ranks = working as f64 / numbers.len().max(1) as f64;
        let at_once = (ranks * works.len() as f64).max(1.0);
        let look = Look { works, ranks, at_once, share: 1.0, chunks: None, most: 1.0 };
        let look = match known_chunks(class, parameters).filter(|_| at_hand) {
            Some(chunks) => look.with_chunks(class.some.direction == Direction::Write, chunks),
            None => look,
        };
        match known_bytes(class).filter(|_| at_hand) {
            Some(bytes) => look.corrected(bytes, numbers.len() == working),
            None => look,
        }
    }

    /// The same where so many chunks are written, or read, in all, and by one rank, where that is known.
    fn with_chunks(self, write: bool, (all, most): (f64, Option<f64>)) -> Look {
        let each = || self.works.iter().map(|work| work.chunks(write));
        let (seen, seen_most) = (each().sum::<f64>() * self.ranks, each().fold(0.0, f64::max));
        let most = most.map_or(1.0, |most| (most / seen_most.max(1.0)).max(1.0));
        Look { chunks: (seen > 0.0).then(|| (all / seen, most)), ..self }
    }

    /// The same where so many bytes move in all, which may be more, or less, than it seems.
    fn corrected(self, bytes: f64, all_ranks: bool) -> Look {
        let moved: Option<Vec<f64>> = self.works.iter().map(Work::moved_bytes).collect();
        let Some(moved) = moved.filter(|moved| moved.iter().any(|&bytes| bytes > 0.0)) else { return self };
        let (seen, most) = (moved.iter().sum::<f64>(), moved.iter().copied().fold(0.0, f64::max));
        let share = bytes / (seen * self.ranks);
        if all_ranks {
            return Look { share, most: share, ..self };
        }
        // Of the ranks that have something to do, one moves at least as much as they do on average.
        let average = bytes / (self.ranks * self.works.len() as f64);
        Look { share, most: (average / most).max(1.0), ..self }
    }
}

/// How many bytes move in all, where each does once, whoever moves it.
fn known_bytes(class: &Class) -> Option<f64> {
    let write = class.some.direction == Direction::Write;
    let once = |ask: &TransferArray| match &ask.spread {
        Owned::Regular(distribution) => write || distribution.replication() == 1,
        Owned::Explicit => true,
    };
    class.some.asks.iter().all(once).then(|| class.some.stored_bytes() as f64 * class.times)
}

/// How many chunks are written, each of which is by one rank, whoever that is; or read whole, by one rank or by all that want
/// something of them. In all, and, of the latter, by the rank with most.
fn known_chunks(class: &Class, parameters: &Parameters) -> Option<(f64, Option<f64>)> {
    let in_chunks = |ask: &TransferArray| ask.stored.chunk().is_some();
    let written = class.some.direction == Direction::Write && class.some.asks.iter().all(in_chunks);
    if !written && !reads_whole_chunks(&class.some) {
        return None;
    }
    let units = Units::new(&class.some, parameters.subchunk_bytes);
    if written || !parameters.strategy.is_own() {
        return Some((units.count() as f64 * class.times, None));
    }
    let ranks = spread(class.some.ranks as usize, COUNTED_MAX as usize);
    let each = ranks.iter().map(|&rank| whole_chunks(&class.some, &units, rank as u32).map(|count| count as f64));
    let each = each.collect::<Option<Vec<f64>>>()?;
    let all = each.iter().sum::<f64>() * f64::from(class.some.ranks) / each.len() as f64;
    Some((all * class.times, Some(each.into_iter().fold(0.0, f64::max) * class.times)))
}

/// At most `most` of `count` numbers, the first among them. Their distances differ, so that no period of overlaps with
/// clients hides between them.
fn spread(count: usize, most: usize) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let step = count as f64 / most as f64;
    let mut numbers: Vec<usize> =
        (0..most).map(|i| (i as f64 * step) as usize + (i * i) % (step as usize).max(1)).collect();
    numbers.retain(|&number| number < count);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
