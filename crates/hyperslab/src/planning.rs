//! How rank 0 chooses: with a profile of the machine, what was learned from transfers before, and a memory of plans.

mod learned;
mod trials;

use crate::environment::Explaining;
use crate::{environment, stderr};
use hyperslab_collective::{Decision, Report, predicted};
use hyperslab_layout::tuple;
use hyperslab_plan::profile::{Nodes, Profile};
use hyperslab_plan::{
    Candidate, Direction, Infeasible, Limits, Machine, MemoryLayout, Parameters, Planner, Preference, Resource,
    Strategy, Taken, Transfer, Use, explain,
};
use hyperslab_world::{Fault, FaultKind, is_in_memory};
use learned::Learned;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use trials::Trials;

/// Plans that are kept.
const PLANS_MAX: usize = 1024;
/// Writes that are remembered until a later call makes them durable.
const UNSYNCED_MAX: usize = 1024;

/// What kind of transfer it is, for what is learned of it. What a user forces teaches nothing of what is chosen: with the
/// wrong number of servers, say, the model may be off by a factor that the right one has not.
fn kind(transfer: &Transfer, hints: &Preference) -> Arc<str> {
    let word = |it: bool, yes: &'static str, no: &'static str| if it { yes } else { no };
    let chunked = transfer.asks.iter().any(|ask| ask.stored.chunk().is_some());
    let way = word(transfer.direction == Direction::Write, "write", "read");
    let (place, kept) = (word(chunked, "chunks", "file"), word(transfer.is_synced(), "durable", "cached"));
    let free = Preference { buffer_bytes_max: hints.buffer_bytes_max, cached: hints.cached, ..Preference::default() };
    let forced = word(*hints == free, "", " forced");
    format!("{way} {place} {kept} {}{forced}", transfer.ranks.next_power_of_two()).into()
}

/// How rank 0 of a communicator chooses.
pub(crate) struct Plans {
    kept: Mutex<Planning>,
    /// Whether ranks are processes, which a launcher may have spread over several nodes.
    processes: bool,
    /// Number of the ranks that ask, and of those that only serve.
    clients: u32,
    servers: u32,
    /// Whether nothing is told of what is chosen, and nothing learned of it.
    quiet: AtomicBool,
    /// That of the machine, if it is not this one.
    profile: Option<Arc<Profile>>,
}

impl Plans {
    pub(crate) fn new(processes: bool, clients: u32, servers: u32) -> Plans {
        let quiet = AtomicBool::new(false);
        Plans { kept: Mutex::default(), processes, clients, servers, quiet, profile: None }
    }

    /// Of ranks on a machine of this profile, of which nothing is learned.
    pub(crate) fn on(profile: Arc<Profile>, clients: u32) -> Plans {
        let kept = Mutex::new(Planning { learned: Learned::nothing(), ..Planning::default() });
        let quiet = AtomicBool::new(true);
        Plans { kept, processes: false, clients, servers: 0, quiet, profile: Some(profile) }
    }

    /// What the machine is taken to be, and how so many ranks lie on it.
    fn machine(&self, ranks: u32) -> (Arc<Profile>, Machine) {
        match &self.profile {
            Some(profile) => {
                let Nodes { ranks_per_node, cores_per_node } = profile.nodes;
                (profile.clone(), Machine { ranks_per_node, cores_per_node })
            }
            None => {
                let profile = crate::profile::at_hand();
                let machine = machine_at_hand(&profile, self.ranks_per_node(ranks));
                (profile, machine)
            }
        }
    }

    /// What is kept from call to call.
    pub(crate) fn kept(&self) -> MutexGuard<'_, Planning> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells nothing of what is chosen, and learns nothing of it.
    pub(crate) fn keep_quiet(&self) {
        self.quiet.store(true, Ordering::Relaxed);
    }

    /// Hears that a transfer is over.
    pub(crate) fn done(&self, report: &Report) {
        if !self.quiet.load(Ordering::Relaxed) {
            self.kept().done(report);
        }
    }

    /// Ranks on this rank's node, as far as the launcher tells; of threads all.
    fn ranks_per_node(&self, ranks: u32) -> u32 {
        environment::ranks_here(self.processes, ranks)
    }
}

/// What rank 0 keeps from call to call.
#[derive(Default)]
pub(crate) struct Planning {
    /// With the kind of transfer that each is for.
    plans: HashMap<u64, (Arc<str>, Trials)>,
    /// Shapes of chunks that were chosen.
    shapes: HashMap<u64, Taken>,
    learned: Learned,
    /// What was chosen last.
    last: Option<Last>,
    /// Writes that a later call makes durable.
    unsynced: Vec<Unsynced>,
    /// Whether there were more, so that nobody knows what calls make durable until all of these are.
    too_many: bool,
}

/// What was chosen, until it is known how long it took.
struct Last {
    /// Under which number its plan is kept.
    key: u64,
    /// What kind of transfer it is, and what bounds it.
    kind: Arc<str>,
    bottleneck: Resource,
    /// How long choosing took \[ns\].
    planning_ns: u64,
    /// Absolute name of what it is about.
    place: Arc<str>,
}

/// A write that a later call makes durable.
struct Unsynced {
    /// Under which number its plan is kept, and the candidate of it that was used.
    key: u64,
    candidate: usize,
    place: Arc<str>,
    /// What making durable is taken to take \[ns\].
    later_ns: f64,
}

impl Planning {
    /// Learns from a transfer that is over, and tells of it when that is wanted.
    fn done(&mut self, report: &Report) {
        let Some(Last { key, kind, bottleneck, planning_ns, place }) = self.last.take() else { return };
        stderr::after(report, planning_ns);
        self.learned.hear(&kind, bottleneck, report);
        let Planning { plans, learned, unsynced, too_many, .. } = self;
        // A plan that hears nothing stays as it is.
        if let Some((_, trials)) = plans.get_mut(&key).filter(|_| environment::trials()) {
            let (candidate, later_ns) = trials.in_use();
            // A rank that wrote nothing makes nothing durable, and cannot say how long that takes.
            if later_ns > 0.0 && report.walked().store_bytes > 0 {
                match unsynced.len() {
                    UNSYNCED_MAX => *too_many = true,
                    _ => unsynced.push(Unsynced { key, candidate, place, later_ns }),
                }
            }
            // There are few that bound some candidate, and dozens of candidates.
            let mut known: [Option<f64>; Resource::ALL.len()] = Default::default();
            let usual = |one: &Candidate| {
                let bound = one.price.bottleneck;
                *known[bound as usize].get_or_insert_with(|| learned.shared(&kind, bound).moving)
            };
            trials.hear(report.seconds() - report.phases()[0].2, usual);
        }
    }

    /// Learns how long the call took this rank that made durable what was written below a name, if it did: of several
    /// writes, each has the share of it that the model says. Where writes by one plan were carried out in several ways,
    /// nobody can tell what each of these took.
    pub(crate) fn synced(&mut self, below: &str, seconds: Option<f64>) {
        let is_below = |one: &mut Unsynced| lies_below(&one.place, below);
        let durable: Vec<Unsynced> = self.unsynced.extract_if(.., is_below).collect();
        let known = !self.too_many;
        self.too_many &= !self.unsynced.is_empty();
        let Some(seconds) = seconds.filter(|_| known) else { return };
        let all_ns: f64 = durable.iter().map(|one| one.later_ns).sum();
        let one_way = |key: u64, candidate: usize| durable.iter().all(|o| o.key != key || o.candidate == candidate);
        for Unsynced { key, candidate, later_ns, .. } in &durable {
            if let Some((_, trials)) = self.plans.get_mut(key).filter(|_| one_way(*key, *candidate)) {
                trials.hear_later(*candidate, seconds * later_ns / all_ns);
            }
        }
    }
}

/// Whether a place is that of this name, or lies in the directory of this name.
fn lies_below(place: &str, name: &str) -> bool {
    place.strip_prefix(name).is_some_and(|rest| rest.is_empty() || name.ends_with('/') || rest.starts_with('/'))
}

/// Chooses parameters on rank 0, for what lies at this place. `held` bytes of the budget are set aside for copies of arrays.
/// Dedicated servers are the only ones.
pub(crate) fn decided(
    plans: &Plans,
    place: &str,
    transfer: &Arc<Transfer>,
    hints: &Preference,
    held: u64,
    laid: &[Option<MemoryLayout>],
    shaped: &Shaped,
) -> Result<Decision, Fault> {
    let asked = hints;
    let (transfer, mut hints) = served(plans, transfer, hints).map_err(|no| refused(no, hints, held))?;
    // Memory has no cache, and is durable as far as it can be.
    hints.cached |= is_in_memory(place);
    let mut planning = plans.kept();
    let started = Instant::now();
    let mut hasher = DefaultHasher::new();
    (transfer.fingerprint(), asked, &hints, laid).hash(&mut hasher);
    let key = hasher.finish();
    let can = |parameters: &Parameters| parameters.strategy.feasible(&transfer, parameters).is_ok();
    // A call that did not come to its end has failed; if another way was tried in it, that may be why.
    if let Some((_, trials)) = planning.last.take().and_then(|last| planning.plans.get_mut(&last.key)) {
        trials.fails();
    }
    let known = planning.plans.get_mut(&key).map(|(kind, trials)| (kind.clone(), trials.choice(can)));
    let (kind, choice) = match known {
        Some(known) => known,
        None => {
            let (profile, machine) = plans.machine(transfer.ranks);
            let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
            let choice = Arc::new(
                planner
                    .choose(&transfer, &hints, &|number| laid.get(number).cloned()?)
                    .map_err(|no| refused(no, &hints, held))?,
            );
            if planning.plans.len() >= PLANS_MAX {
                planning.plans.clear();
                planning.unsynced.clear();
                planning.too_many = true;
            }
            // Dedicated servers narrow hints, but that is not the user's doing.
            let kind = kind(&transfer, asked);
            planning.plans.insert(key, (kind.clone(), Trials::new(choice.clone())));
            (kind, choice)
        }
    };
    let bottleneck = choice.price.bottleneck;
    let corrections = planning.learned.of(&kind, bottleneck, choice.parameters.strategy);
    let planning_ns = started.elapsed().as_nanos() as u64 + shaped.planning_ns;
    planning.last = Some(Last { key, kind, bottleneck, planning_ns, place: place.into() });
    if stderr::wanted() == Explaining::Long && !plans.quiet.load(Ordering::Relaxed) {
        let limits = Limits { ranks: 4, rounds: 1, steps: 2000 };
        let mut shown = choice.scaled(corrections.moving);
        shown.why += &shaped.said;
        stderr::before(&explain(&transfer, &shown, limits, &[], |_| Vec::new()));
    }
    let [open, exchange, storage, sync, close] = predicted(&choice.price);
    let learned::Corrections { open: opening, moving, close: closing } = corrections;
    let expected = [open * opening, exchange * moving, storage * moving, sync * moving, close * closing];
    let later = choice.price.later_ns / 1e9 * moving;
    Ok(Decision { parameters: choice.parameters.clone(), predicted: expected, later })
}

/// What was chosen of the chunks of a call's new arrays before its parameters are.
#[derive(Default)]
pub(crate) struct Shaped {
    /// What is to be said of it, as parts of a sentence.
    pub(crate) said: String,
    /// How long choosing took \[ns\].
    pub(crate) planning_ns: u64,
}

/// Chooses on rank 0 the shape of new chunks: the first, or one of the ladders that is clearly cheaper to use. What was
/// learned is left out, so that the arrays of a program look alike on disk from run to run.
pub(crate) fn choose_shape(
    plans: &Plans,
    first: &[u64],
    ladders: &[Vec<Vec<u64>>],
    uses: impl Fn(&[u64]) -> Vec<Use>,
) -> Taken {
    let uses = |chunk: &[u64]| -> Vec<Use> { uses(chunk).into_iter().map(|one| as_served(plans, one)).collect() };
    let natural = uses(first);
    let mut hasher = DefaultHasher::new();
    ladders.hash(&mut hasher);
    for one in &natural {
        (one.transfer.fingerprint(), one.times.to_bits(), &one.hints, &one.laid).hash(&mut hasher);
    }
    let key = hasher.finish();
    let mut planning = plans.kept();
    if let Some(taken) = planning.shapes.get(&key) {
        return taken.clone();
    }
    let ranks = natural.first().map_or(1, |one| one.transfer.ranks);
    let (profile, machine) = plans.machine(ranks);
    let taken =
        Planner { profile: &profile, machine, strategies: &Strategy::ALL }.cheapest_layout(first, ladders, uses);
    if planning.shapes.len() >= PLANS_MAX {
        planning.shapes.clear();
    }
    planning.shapes.insert(key, taken.clone());
    taken
}

/// Whether a use can be carried out.
pub(crate) fn is_possible(plans: &Plans, one: &Use) -> bool {
    let one = as_served(plans, one.clone());
    let profile = crate::profile::at_hand();
    let machine = machine_at_hand(&profile, plans.ranks_per_node(one.transfer.ranks));
    Planner { profile: &profile, machine, strategies: &Strategy::ALL }.can(&one)
}

/// A use as dedicated servers would carry it out.
fn as_served(plans: &Plans, one: Use) -> Use {
    // Who reads later has servers of his own, if any.
    if one.transfer.direction == Direction::Read {
        return one;
    }
    // What is wrong with hints is said where the transfer itself is planned.
    match served(plans, &one.transfer, &one.hints) {
        Ok((transfer, hints)) => Use { transfer, hints, ..one },
        Err(_) => one,
    }
}

/// Why the chunks of an array have not the usual shape, as a part of a sentence; nothing where they have.
pub(crate) fn said_of_chunks(name: &str, taken: &Taken, usual: &[u64]) -> String {
    let chunk = &taken.chunk;
    match taken.times {
        _ if chunk == usual => String::new(),
        times if times.is_finite() => {
            format!(
                "; chunks of '{name}' are {chunk}, since {usual} would take {times:.1} times as long to move",
                chunk = tuple(chunk),
                usual = tuple(usual)
            )
        }
        _ => format!(
            "; chunks of '{name}' are {chunk}, since {usual} cannot be",
            chunk = tuple(chunk),
            usual = tuple(usual)
        ),
    }
}

/// How ranks lie on this machine.
fn machine_at_hand(profile: &Profile, ranks_per_node: u32) -> Machine {
    // Asking reads several files of the system's, for each plan.
    static CORES: OnceLock<Option<u32>> = OnceLock::new();
    let known = CORES.get_or_init(|| std::thread::available_parallelism().ok().map(|cores| cores.get() as u32));
    let cores = known.unwrap_or(profile.nodes.cores_per_node);
    // Cores that belong to one process are those of its share of the node where launchers bind ranks to cores.
    let cores = cores.max(profile.nodes.cores_per_node);
    Machine { ranks_per_node, cores_per_node: cores }
}

fn refused(no: Infeasible, hints: &Preference, held: u64) -> Fault {
    let strategy = hints.strategy.map_or("no strategy can".to_string(), |s| format!("strategy {s} cannot"));
    let held = if held > 0 { format!(" (beside {held} B set aside for copies of arrays)") } else { String::new() };
    Fault::new(FaultKind::Invalid, format!("{strategy} carry out this transfer: {}{held}", no.reason)).hint(no.hint)
}

/// The same for a communicator with dedicated servers, which work by one strategy.
fn served(
    plans: &Plans,
    transfer: &Arc<Transfer>,
    hints: &Preference,
) -> Result<(Arc<Transfer>, Preference), Infeasible> {
    if plans.servers == 0 {
        return Ok((transfer.clone(), hints.clone()));
    }
    if let Some(other) = hints.strategy.filter(|&strategy| strategy != Strategy::SERVER_DIRECTED) {
        return Err(Infeasible {
            reason: format!("dedicated servers work by strategy {}, not {other}", Strategy::SERVER_DIRECTED),
            hint: "leave the choice of the strategy open, or use the communicator without dedicated servers".into(),
        });
    }
    let clients = plans.clients;
    let transfer = Arc::new(Transfer { ranks: clients + plans.servers, ..(**transfer).clone() });
    let servers = hints.servers.unwrap_or(plans.servers).clamp(1, plans.servers);
    let server_ranks = Some((clients..clients + servers).collect());
    let strategy = Some(Strategy::SERVER_DIRECTED);
    Ok((transfer, Preference { strategy, server_ranks, servers: None, ..hints.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two plans, and writes by them that are not durable yet: plan, directory of the objects, and what it should take.
    fn planning(writes: &[(u64, &str, f64)]) -> Planning {
        let mut planning = Planning::default();
        for key in [1, 2] {
            let mut trials = trials::tests::plan(&[(Strategy::SERVER_DIRECTED, 10.0)]);
            trials.hear(0.01, |_| 1.0);
            planning.plans.insert(key, ("write".into(), trials));
        }
        planning.unsynced.extend(writes.iter().map(|&(key, name, later_ns)| Unsynced {
            key,
            candidate: 0,
            place: name.into(),
            later_ns,
        }));
        planning
    }

    fn heard(planning: &Planning) -> [Vec<f64>; 2] {
        [1, 2].map(|key| planning.plans[&key].1.heard_later(0).to_vec())
    }

    #[test]
    fn writes_share_what_making_them_durable_took() {
        let mut planning = planning(&[(1, "/s/a/", 1.0), (2, "/s/b/", 3.0), (1, "/s1/a/", 1.0)]);
        planning.synced("/s", Some(8.0));
        assert_eq!(heard(&planning), [vec![2.0], vec![6.0]]);
        assert_eq!(planning.unsynced.len(), 1, "that of another directory, whose name begins alike");
    }

    #[test]
    fn what_failed_to_become_durable_teaches_nothing() {
        let mut planning = planning(&[(1, "/s/a/", 1.0)]);
        planning.synced("/s", None);
        assert!(heard(&planning).concat().is_empty());
        assert!(planning.unsynced.is_empty());
    }

    #[test]
    fn what_is_not_remembered_is_not_charged_to_the_rest() {
        let mut planning = planning(&[(1, "/a", 1.0), (2, "/b", 1.0)]);
        planning.too_many = true;
        planning.synced("/a", Some(8.0));
        planning.synced("/b", Some(8.0));
        assert!(heard(&planning).concat().is_empty());
        planning.unsynced.push(Unsynced { key: 1, candidate: 0, place: "/c".into(), later_ns: 1.0 });
        planning.synced("/c", Some(8.0));
        assert_eq!(heard(&planning), [vec![8.0], vec![]]);
    }

    #[test]
    fn of_writes_in_several_ways_nobody_knows_what_each_took() {
        let mut planning = planning(&[(1, "/s/a/", 1.0), (1, "/s/b/", 1.0), (2, "/s/c/", 2.0)]);
        planning.unsynced[1].candidate = 1;
        planning.synced("/s/", Some(8.0));
        assert_eq!(heard(&planning), [vec![], vec![4.0]]);
    }
}
