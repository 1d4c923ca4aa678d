//! Rounds of one rank, one after another and one beside another.

use super::busy::{Busy, Costed, first_piece};
use super::classes::Class;
use super::costs::{Costs, Stored};
use super::look::Look;
use super::memories::Memories;
use super::messages::Message;
use super::moved::Moved;
use super::spread::Spread;
use super::terms::Effort;
use super::work::{Round, Work};
use crate::strategy::Parameters;
use crate::transfer::TransferArray;

/// What arrays alike take.
#[derive(Clone, Copy, Default)]
pub(super) struct Timed {
    pub(super) exchange_ns: f64,
    pub(super) storage_ns: f64,
    /// Of this, waiting for others who write the same file \[ns\].
    pub(super) waited_ns: f64,
    pub(super) buffer_bytes: u64,
    /// Of this, what data go through.
    pub(super) touched_bytes: u64,
    /// Steps of programs that were looked at.
    pub(super) looked_at: u64,
}

/// What a round takes.
struct Lap {
    /// Waiting for the first data, which other rounds can hide \[ns\].
    wait_ns: f64,
    /// The rank's own work on messages, copies and coding \[ns\].
    exchange_ns: f64,
    /// Of this, coding, which is of whole chunks as requests are \[ns\].
    coded_ns: f64,
    /// Requests to storage: the rank's own part, and in all \[ns\].
    calls_ns: f64,
    storage_ns: f64,
    /// Of this, waiting for others who write the same file \[ns\].
    waited_ns: f64,
    /// How many of them go on at the same time.
    beside: usize,
    /// Whether the rank does nothing else meanwhile.
    stops_rank: bool,
}

impl Lap {
    /// Waits for those, so many with it, who write the same file. Where rounds begin, all come at once, and the last waits for
    /// all others; later their turns are apart as far as exchanges take as long as all other turns. Gives how long a core is
    /// kept busy by that: Linux lets waiters for the lock of a file run on as long as its holder runs.
    fn take_turns(&mut self, costs: &Costs<'_>, stored: &[Stored], writers: f64, first: bool) -> f64 {
        let locked: f64 = stored.iter().filter(|stored| stored.shared).map(|stored| stored.lock_ns).sum();
        let others = (writers - 1.0) * locked;
        let waits = (others - self.exchange_ns).max(0.0);
        self.waited_ns = if first { others } else { waits };
        self.storage_ns += self.waited_ns;
        let cores = ((costs.cores() - 1.0) / (writers - 1.0).max(1.0)).min(1.0);
        waits * cores
    }

    /// The same where so many times more is exchanged, and stored.
    fn times(self, exchanged: f64, stored: f64) -> Lap {
        Lap {
            wait_ns: self.wait_ns * exchanged,
            exchange_ns: (self.exchange_ns - self.coded_ns) * exchanged + self.coded_ns * stored,
            coded_ns: self.coded_ns * stored,
            calls_ns: self.calls_ns * stored,
            storage_ns: self.storage_ns * stored,
            waited_ns: self.waited_ns * stored,
            beside: self.beside,
            stops_rank: self.stops_rank,
        }
    }
}

/// Times the ranks that handle storage of these arrays, and adds what they share; gives the slowest.
pub(super) fn time(
    costs: &Costs<'_>,
    class: &Class,
    parameters: &Parameters,
    memories: &Memories,
    effort: Effort,
    busy: &mut Busy,
) -> Timed {
    let parameters = &in_smaller_groups(class, parameters);
    let look = Look::at(class, parameters, memories, effort, costs.measured().is_some());
    let spread_out = match look.works.first() {
        Some(work) if costs.measured().is_none() => Spread::of(costs, class, parameters, work),
        _ => None,
    };
    let mut slowest = Timed::default();
    for work in &look.works {
        let timed = of_rank(costs, work, spread_out.as_ref(), &look, busy);
        if timed.exchange_ns + timed.storage_ns > slowest.exchange_ns + slowest.storage_ns {
            slowest = timed;
        }
    }
    Timed { looked_at: look.works.iter().map(Work::looked_at).sum(), ..slowest }
}

/// Slots beyond which more do not help.
const SLOTS_MAX: u32 = 1024;
/// Units of a group that are looked at.
const GROUP_MAX: u64 = 64;

/// The same with groups of fewer units, where there would be very many small ones in each.
fn in_smaller_groups(class: &Class, parameters: &Parameters) -> Parameters {
    let cut = |ask: &TransferArray| ask.stored_bytes().min(parameters.subchunk_bytes);
    let bytes = |ask: &TransferArray| ask.stored.chunk_bytes().unwrap_or_else(|| cut(ask));
    let unit = class.some.asks.iter().map(bytes).max().unwrap_or(0).max(1);
    let subchunk_bytes = parameters.subchunk_bytes.min(unit.saturating_mul(GROUP_MAX));
    Parameters { subchunk_bytes, slots: parameters.slots.min(SLOTS_MAX), ..parameters.clone() }
}

fn of_rank(costs: &Costs<'_>, work: &Work, spread: Option<&Spread>, look: &Look, busy: &mut Busy) -> Timed {
    let whole = work.total;
    let scale = whole / work.rounds.len() as f64;
    let direct = work.rounds.iter().flat_map(|round| &round.requests).any(|request| costs.past_cache(request));
    let mut laps = Vec::with_capacity(work.rounds.len());
    let mut queued = 0.0_f64;
    for (number, round) in work.rounds.iter().enumerate() {
        let messages: Vec<(Moved, Message)> =
            round.messages.iter().map(|&moved| (moved, costs.message(work.rank, moved))).collect();
        let stored: Vec<Stored> = round.requests.iter().map(|request| costs.request(request, spread)).collect();
        let mut lap = lap(costs, round, &messages, &stored, costs.at_once(direct));
        queued = stored.iter().map(|stored| stored.queue_ns).fold(queued, f64::max);
        let spun_ns = lap.take_turns(costs, &stored, look.at_once, number == 0);
        let in_chunks = round.requests.iter().all(|request| request.file.is_none());
        let chunks = look.chunks.filter(|_| in_chunks);
        let stored_share = chunks.map_or(look.share, |(share, _)| share);
        let own_ns = (lap.exchange_ns - lap.coded_ns) * look.share + (lap.calls_ns + lap.coded_ns) * stored_share;
        let requests = &round.requests;
        let (messages, stored) = (&messages, &stored);
        busy.add(
            costs,
            &Costed {
                rank: work.rank,
                number,
                messages,
                requests,
                stored,
                more: round.more,
                exchange_ns: lap.exchange_ns,
                own_ns,
                spun_ns,
                servers: spread.map_or(0.0, Spread::servers),
                rounds: scale,
                ranks: look.ranks,
                share: look.share,
                stored_share,
            },
        );
        laps.push(lap.times(look.most, chunks.map_or(look.most, |(_, most)| most)));
    }
    let alone = if costs.write { laps.first() } else { laps.last() };
    if let Some(lap) = alone {
        let piece = work.rounds.first().and_then(|round| round.requests.first()).map_or(1.0, first_piece);
        busy.exchanges_alone(lap.exchange_ns + lap.wait_ns, (lap.storage_ns - lap.waited_ns) * piece);
    }
    let laps = if work.sampled { alike(laps) } else { laps };
    let (seen, slope) = walk(costs, &laps, work.slots.max(1) as usize, costs.at_once(direct));
    let all = seen + slope * (whole - laps.len() as f64).max(0.0);
    let exchange: f64 = laps.iter().map(|lap| lap.exchange_ns).sum::<f64>() * scale;
    let own = if costs.one_processor() { laps.iter().map(|lap| lap.calls_ns).sum::<f64>() * scale } else { 0.0 };
    let all = all.max(exchange + own) + queued;
    let exchange_ns = exchange.min(all);
    let storage_ns = all - exchange_ns;
    // Rounds begin with the wait of all for all; that comes once, whatever follows.
    let first = laps.first().map_or(0.0, |lap| lap.waited_ns);
    let later: f64 = laps.iter().skip(1).map(|lap| lap.waited_ns).sum();
    // Arrays of one round each begin anew, all of them.
    let waited_ns = match laps.len() {
        0 | 1 => first * whole,
        some => first + later * (whole - 1.0).max(0.0) / (some as f64 - 1.0),
    };
    let waited_ns = waited_ns.min(storage_ns);
    let (buffer_bytes, touched_bytes) = (work.buffer_bytes, work.touched_bytes);
    Timed { exchange_ns, storage_ns, waited_ns, buffer_bytes, touched_bytes, looked_at: 0 }
}

/// The same, each as they are on the average, but for the wait of all for all where rounds begin: none of them is the first.
fn alike(laps: Vec<Lap>) -> Vec<Lap> {
    let mean = |of: fn(&Lap) -> f64| laps.iter().map(of).sum::<f64>() / laps.len() as f64;
    let (wait_ns, exchange_ns, calls_ns) =
        (mean(|lap| lap.wait_ns), mean(|lap| lap.exchange_ns), mean(|lap| lap.calls_ns));
    let storage_ns = mean(|lap| lap.storage_ns - lap.waited_ns);
    let turned = |lap: Lap| Lap { wait_ns, exchange_ns, calls_ns, storage_ns: storage_ns + lap.waited_ns, ..lap };
    laps.into_iter().map(turned).collect()
}

fn lap(costs: &Costs<'_>, round: &Round, messages: &[(Moved, Message)], stored: &[Stored], at_once: usize) -> Lap {
    let many = 1.0 + round.more;
    let planning = costs.planning_ns(round.steps, (round.pieces as f64 * many) as u64);
    let processor = &costs.profile().processor;
    let coded_ns = processor.coding_ns(round.compressed, true) + processor.coding_ns(round.summed, false);
    let own = costs.copied_ns(round.copied) + costs.copied_ns(round.filled) + coded_ns;
    let slots: f64 = messages.iter().map(|(_, message)| message.slot_ns).sum();
    let asks: f64 = messages.iter().map(|(_, message)| message.ask_ns).sum();
    let parts: Vec<(f64, f64)> =
        messages.iter().map(|(_, message)| (message.handled_ns, message.slot_ns - message.ask_ns)).collect();
    let wait_ns = if costs.write { delays(asks, &parts) } else { 0.0 };
    // Requests of a round go on beside each other, as far as calls do.
    let beside = if costs.measured().is_some() { 1 } else { at_once.min(stored.len()).max(1) };
    let walls = stored.iter().map(|stored| stored.wall_ns);
    let storage_ns = (walls.clone().sum::<f64>() / beside as f64).max(walls.fold(0.0, f64::max));
    Lap {
        wait_ns,
        exchange_ns: planning + own + slots * many,
        coded_ns,
        calls_ns: stored.iter().map(|stored| stored.cpu_ns).sum(),
        storage_ns,
        waited_ns: 0.0,
        beside,
        stops_rank: !round.requests.is_empty() && round.requests.iter().all(|request| costs.stops_rank(request)),
    }
}

/// How long a server waits for its clients in a round, when it asks all of them first and takes their data in order:
/// formulas F8 to F11 of Chen et al. (1996). `asks` is what asking all takes; of each client, how long it takes to
/// answer, and what receiving takes.
pub(super) fn delays(asks: f64, clients: &[(f64, f64)]) -> f64 {
    let ask = asks / clients.len().max(1) as f64;
    // Since the current client was asked: the others were, and the data of those before it came.
    let (mut since, mut waited) = (asks, 0.0);
    for &(handled, receiving) in clients {
        since -= ask;
        let delay = (handled - since).max(0.0);
        waited += delay;
        since += delay + receiving;
    }
    waited
}

/// When all rounds are over, and how much later each further round ends.
fn walk(costs: &Costs<'_>, laps: &[Lap], slots: usize, at_once: usize) -> (f64, f64) {
    let mut exchanged: Vec<f64> = Vec::with_capacity(laps.len());
    let mut stored: Vec<f64> = Vec::with_capacity(laps.len());
    let before = |ends: &[f64], back: usize| ends.len().checked_sub(back).map_or(0.0, |at| ends[at]);
    let mut stopped = false;
    for lap in laps {
        let at_once = (at_once / lap.beside).max(1);
        if costs.write {
            let free = before(&stored, slots) + lap.wait_ns;
            // What the round before stores keeps the rank from exchanging for this one.
            let idle = if std::mem::replace(&mut stopped, lap.stops_rank) { before(&stored, 1) } else { 0.0 };
            let begin = free.max(before(&exchanged, 1)).max(idle);
            exchanged.push(begin + lap.exchange_ns);
            let begin = before(&exchanged, 1).max(before(&stored, at_once));
            stored.push(begin + lap.storage_ns);
        } else {
            let idle = if lap.stops_rank { before(&exchanged, 1) } else { 0.0 };
            let begin = before(&exchanged, slots).max(before(&stored, at_once)).max(idle);
            stored.push(begin + lap.storage_ns);
            let begin = before(&stored, 1).max(before(&exchanged, 1));
            exchanged.push(begin + lap.exchange_ns);
        }
    }
    let ends = if costs.write { &stored } else { &exchanged };
    let last = ends.iter().copied().fold(0.0, f64::max);
    let half = ends.len() / 2;
    let slope = if half > 0 { (last - ends[half - 1]) / (ends.len() - half) as f64 } else { last };
    (last, slope)
}
