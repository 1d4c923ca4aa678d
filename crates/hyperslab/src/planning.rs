//! How rank 0 chooses: with a profile of the machine, what was learned from transfers before, and a memory of plans.

mod learned;

use crate::apart::RankMounts;
use crate::environment::Explaining;
use crate::{environment, stderr};
use hyperslab_collective::{Decision, Report, predicted};
use hyperslab_layout::tuple;
use hyperslab_plan::profile::{Nodes, Profile};
use hyperslab_plan::{
    Choice, Direction, Infeasible, Limits, Machine, MemoryLayout, NodeBudget, Planner, Preference, Resource, Strategy,
    Taken, Transfer, Use, explain,
};
use hyperslab_real::{MAPPED_BYTES_MIN, maps_files};
use hyperslab_world::{Fault, FaultKind, Names, is_in_memory};
use learned::Learned;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Plans that are kept.
const PLANS_MAX: usize = 1024;

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

    /// What the machine is taken to be, and how so many ranks lie on it; with `maps_files`, what they read may be mapped.
    fn machine(&self, ranks: u32, maps_files: bool) -> (Arc<Profile>, Machine) {
        match &self.profile {
            Some(profile) => {
                let Nodes { ranks_per_node, cores_per_node } = profile.nodes;
                (profile.clone(), Machine { ranks_per_node, cores_per_node, maps_files })
            }
            None => {
                let profile = crate::profile::at_hand();
                let machine = machine_at_hand(&profile, self.ranks_per_node(ranks), maps_files);
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

    /// Whether what is chosen is told at length.
    fn explains(&self) -> bool {
        stderr::wanted() == Explaining::Long && !self.quiet.load(Ordering::Relaxed)
    }

    /// Hears that a transfer is over.
    pub(crate) fn done(&self, report: &Report) {
        if !self.quiet.load(Ordering::Relaxed) {
            self.kept().done(report);
        }
    }

    /// What buffers may take where nobody says it: those of all ranks of a node that handle storage together a 128th of its
    /// memory, and each at least as much as lets four chunks be under way.
    fn node_budget(&self, transfer: &Transfer) -> Option<NodeBudget> {
        let memory = environment::memory_bytes().filter(|_| self.profile.is_none())?;
        let chunk = transfer.asks.iter().filter_map(|ask| ask.stored.chunk_bytes()).max().unwrap_or(0);
        Some(NodeBudget { bytes: memory / 128, least_bytes: chunk.saturating_mul(4).max(8 << 20) })
    }

    /// The same as a part of what is wanted.
    fn budgeted(&self, transfer: &Transfer, hints: &Preference) -> Preference {
        Preference { node_budget: self.node_budget(transfer), ..hints.clone() }
    }

    /// Ranks on this rank's node, as far as the launcher tells; of threads all.
    fn ranks_per_node(&self, ranks: u32) -> u32 {
        environment::ranks_here(self.processes, ranks)
    }
}

/// What rank 0 keeps from call to call.
#[derive(Default)]
pub(crate) struct Planning {
    plans: HashMap<u64, Arc<Plan>>,
    /// What was chosen for transfers of which extents are about the same, and hints and how arrays lie in memory are.
    kinds: HashMap<(u64, u64), Choice>,
    /// Shapes of chunks that were chosen.
    shapes: HashMap<u64, Taken>,
    learned: Learned,
    /// What was chosen last.
    last: Option<Last>,
}

/// What was chosen for a transfer.
struct Plan {
    /// The kind of transfer that it is for.
    kind: Arc<str>,
    choice: Choice,
    /// For what else it was chosen: what the user wants, and what becomes of that; how arrays lie in memory.
    wanted: (Preference, Preference),
    /// Whether what is read may be mapped where it lies.
    maps_files: bool,
    /// Whether ranks have several clients there.
    apart: bool,
    laid: Vec<Option<MemoryLayout>>,
    /// What is chosen instead when the transfer comes again, if anything.
    later: Option<Choice>,
    /// How often it was carried out.
    calls: AtomicU32,
}

impl Plan {
    /// Whether something else may be done from now on.
    fn comes_again(&self) -> bool {
        self.later.is_some() || self.choice.is_worth_more(self.seconds())
    }

    /// What the calls took that were carried out by it, as far as the model tells \[s\].
    fn seconds(&self) -> f64 {
        self.choice.price.seconds() * f64::from(self.calls.load(Ordering::Relaxed))
    }

    /// What is done when the transfer comes again, after a longer look where that is worth it.
    fn again(&self, plans: &Plans, transfer: &Arc<Transfer>, hints: &Preference) -> Choice {
        let choice = self.later.as_ref().unwrap_or(&self.choice);
        if !choice.is_worth_more(self.seconds()) {
            return choice.clone();
        }
        let (profile, machine) = plans.machine(transfer.ranks, self.maps_files);
        let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
        let memory = |number: usize| self.laid.get(number).cloned()?;
        let looked = planner.look_on(transfer, &plans.budgeted(transfer, hints), &memory, choice, self.seconds());
        looked.again(transfer).unwrap_or(looked)
    }
}

/// What was chosen, until it is known how long it took.
struct Last {
    /// What kind of transfer it is, and what bounds it.
    kind: Arc<str>,
    bottleneck: Resource,
    /// How long choosing took \[ns\].
    planning_ns: u64,
}

impl Planning {
    /// Learns from a transfer that is over, and tells of it when that is wanted.
    fn done(&mut self, report: &Report) {
        let Some(Last { kind, bottleneck, planning_ns }) = self.last.take() else { return };
        stderr::after(report, planning_ns);
        self.learned.hear(&kind, bottleneck, report);
    }
}

/// Chooses parameters on rank 0, for what lies at this place. `held` bytes of the budget are set aside for copies of arrays.
/// Dedicated servers are the only ones.
pub(crate) fn decided(
    plans: &Plans,
    at: Whereabouts,
    transfer: &Arc<Transfer>,
    hints: &Preference,
    held: u64,
    laid: &[Option<MemoryLayout>],
    shaped: &Shaped,
) -> Result<Decision, Fault> {
    let asked = hints;
    let served = served(plans, transfer, hints).and_then(|(transfer, hints)| Ok((transfer, at.mounts.narrow(hints)?)));
    let (transfer, mut hints) = served.map_err(|no| refused(no, hints, held))?;
    hints.cached |= at.has_no_cache();
    let (maps_files, apart) = (at.is_read_by_mappings(&transfer), at.mounts.are_apart());
    let mut planning = plans.kept();
    let started = Instant::now();
    let mut hasher = DefaultHasher::new();
    (transfer.fingerprint(), asked, &hints, maps_files, laid).hash(&mut hasher);
    let key = hasher.finish();
    let plan = match planning.plans.get(&key).cloned() {
        Some(known) if !known.comes_again() => known,
        Some(known) => {
            let choice = known.again(plans, &transfer, &hints);
            let (kind, wanted, laid) = (known.kind.clone(), known.wanted.clone(), known.laid.clone());
            let calls = AtomicU32::new(0);
            planning.keep(key, Plan { kind, choice, wanted, maps_files, apart, laid, later: None, calls })
        }
        None => {
            // Dedicated servers narrow hints, but that is not the user's doing.
            let (kind, wanted) = (kind(&transfer, asked), (asked.clone(), hints.clone()));
            let choice = planning.chosen(plans, &transfer, &hints, (maps_files, laid));
            let choice = choice.map_err(|no| refused(no, &hints, held))?;
            let later = choice.again(&transfer);
            let calls = AtomicU32::new(0);
            planning.keep(key, Plan { kind, choice, wanted, maps_files, apart, laid: laid.to_vec(), later, calls })
        }
    };
    let planning_ns = started.elapsed().as_nanos() as u64 + shaped.planning_ns;
    let (corrections, decision) = planning.decide(key, &plan, planning_ns);
    if plans.explains() {
        let limits = Limits { ranks: 4, rounds: 1, steps: 2000 };
        let mut shown = plan.choice.scaled(corrections.moving);
        shown.why += &shaped.said;
        stderr::before(&explain(&transfer, &shown, limits, &[], |_| Vec::new()));
    }
    Ok(decision)
}

/// Chooses what it chose before, for a transfer that differs in its place alone, where nothing else has changed.
pub(crate) fn decided_again(
    plans: &Plans,
    at: Whereabouts,
    before: &Decision,
    hints: &Preference,
    laid: &[Option<MemoryLayout>],
) -> Option<Decision> {
    if plans.explains() {
        return None;
    }
    let mut planning = plans.kept();
    let plan = planning.plans.get(&before.plan)?.clone();
    // All ranks do it as they did then; by now something else may have been chosen.
    if plan.comes_again() || plan.choice.parameters != before.parameters {
        return None;
    }
    let (asked, then) = &plan.wanted;
    let as_then = asked == hints && then.cached == (hints.cached || at.has_no_cache()) && plan.laid == laid;
    let as_then = as_then && plan.apart == at.mounts.are_apart();
    (as_then && (!plan.maps_files || at.maps_files())).then(|| planning.decide(before.plan, &plan, 0).1)
}

/// Where that lies which a transfer moves.
#[derive(Clone, Copy)]
pub(crate) struct Whereabouts<'a> {
    pub(crate) names: &'a dyn Names,
    /// Below the root of the names.
    pub(crate) name: &'a str,
    /// How ranks see it.
    pub(crate) mounts: &'a RankMounts,
}

impl Whereabouts<'_> {
    /// Memory has no cache, and is durable as far as it can be.
    fn has_no_cache(&self) -> bool {
        is_in_memory(&self.names.full(self.name))
    }

    /// Whether the store copies what is read of files out of mappings.
    fn maps_files(&self) -> bool {
        self.names.full(self.name).starts_with('/') && self.names.is_at_hand() && maps_files()
    }

    /// The same of a transfer, of which little is never mapped.
    fn is_read_by_mappings(&self, transfer: &Transfer) -> bool {
        // What is larger than the memory is never all in the system's cache.
        let sizes = MAPPED_BYTES_MIN..=environment::memory_bytes().unwrap_or(u64::MAX);
        transfer.direction == Direction::Read && sizes.contains(&transfer.stored_bytes()) && self.maps_files()
    }
}

impl Planning {
    fn keep(&mut self, key: u64, plan: Plan) -> Arc<Plan> {
        if self.plans.len() >= PLANS_MAX && !self.plans.contains_key(&key) {
            self.plans.clear();
        }
        let plan = Arc::new(plan);
        self.plans.insert(key, plan.clone());
        plan
    }

    /// Chooses for a transfer: as before for one of its kind, where that was chosen among all.
    fn chosen(
        &mut self,
        plans: &Plans,
        transfer: &Arc<Transfer>,
        hints: &Preference,
        (maps_files, laid): (bool, &[Option<MemoryLayout>]),
    ) -> Result<Choice, Infeasible> {
        let (profile, machine) = plans.machine(transfer.ranks, maps_files);
        let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
        let memory = |number: usize| laid.get(number).cloned()?;
        let mut hasher = DefaultHasher::new();
        (hints, maps_files, laid).hash(&mut hasher);
        let kind = transfer.kind().map(|kind| (kind, hasher.finish()));
        let known = kind.as_ref().and_then(|kind| self.kinds.get(kind));
        let as_known = |known: &Choice| {
            let again = known.again(transfer);
            planner.choose_as(transfer, again.as_ref().unwrap_or(known), &memory)
        };
        if let Some(choice) = known.and_then(as_known) {
            return Ok(choice);
        }
        let choose = |hints: &Preference| planner.choose(transfer, hints, &memory);
        // What does not fit into a share of the memory has what a rank has at most.
        let choice = choose(&plans.budgeted(transfer, hints)).or_else(|_| choose(hints))?;
        if self.kinds.len() >= PLANS_MAX {
            self.kinds.clear();
        }
        self.kinds.extend(kind.map(|kind| (kind, choice.clone())));
        Ok(choice)
    }

    /// What is done by a plan, and what that is expected to take by what was learned.
    fn decide(&mut self, number: u64, plan: &Plan, planning_ns: u64) -> (learned::Corrections, Decision) {
        let Plan { kind, choice, calls, .. } = plan;
        calls.fetch_add(1, Ordering::Relaxed);
        let bottleneck = choice.price.bottleneck;
        let corrections = self.learned.of(kind, bottleneck, choice.parameters.strategy);
        self.last = Some(Last { kind: kind.clone(), bottleneck, planning_ns });
        let [open, exchange, storage, sync, close] = predicted(&choice.price);
        let learned::Corrections { open: opening, moving, close: closing } = corrections;
        let expected = [open * opening, exchange * moving, storage * moving, sync * moving, close * closing];
        let later = choice.price.later_ns / 1e9 * moving;
        let parameters = choice.parameters.clone();
        (corrections, Decision { parameters, predicted: expected, later, plan: number })
    }
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
    let (profile, machine) = plans.machine(ranks, false);
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
    let machine = machine_at_hand(&profile, plans.ranks_per_node(one.transfer.ranks), false);
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
fn machine_at_hand(profile: &Profile, ranks_per_node: u32, maps_files: bool) -> Machine {
    let cores = environment::cores().unwrap_or(profile.nodes.cores_per_node);
    // Cores that belong to one process are those of its share of the node where launchers bind ranks to cores.
    let cores = cores.max(profile.nodes.cores_per_node);
    Machine { ranks_per_node, cores_per_node: cores, maps_files }
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
