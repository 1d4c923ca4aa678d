//! A rank's membership in a communicator.

use crate::crew::{self, Counted, Membership};
use crate::driver::{Driver, Elsewhere};
use crate::environment;
use crate::left;
use crate::line::{Chore, Line, Outcome};
use crate::listing::Listings;
use crate::lone::Lone;
use crate::planning::Plans;
use crate::recording::Recording;
use crate::unready::Unready;
use hyperslab_collective::Repeats;
use hyperslab_collective::attempts::Attempts;
use hyperslab_plan::profile::Profile;
use hyperslab_real::mpi::MpiWire;
use hyperslab_real::relay::relay;
use hyperslab_real::renumber::Renumbered;
use hyperslab_real::wire::{Wire, thread_wires};
use hyperslab_real::{Interrupted, Machine};
use hyperslab_walk::{Limits, Party, Question};
use hyperslab_world::{Fault, FaultKind, Location, Names};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Told now and then how far a transfer is: bytes done and bytes in all, both as seen by this rank.
pub type Observer = Box<dyn FnMut(u64, u64) + Send>;

/// One rank of a communicator: of MPI, of threads of this process, or alone.
///
/// Clones are the same membership. Calls on it are collective and in the same order on all ranks. On each rank they are
/// carried out one after another in that order, also those that do not block.
#[derive(Clone)]
pub struct Comm {
    shared: Arc<Shared>,
    /// In the hands of a call that the line carries out: it need not wait for its turn.
    inside: Option<Inside>,
}

/// The call that the line carries out.
#[derive(Clone)]
pub(crate) struct Inside(pub(crate) Arc<Outcome>);

struct Shared {
    rank: u32,
    size: u32,
    /// Number of dedicated servers.
    servers: u32,
    description: String,
    line: Line,
    member: Mutex<Member>,
    /// Used on rank 0.
    plans: Plans,
    /// Calls that may come again.
    repeats: Repeats,
    recording: Mutex<Recording>,
    /// What was opened on it and is open, to be let go when it becomes unusable.
    attempts: Mutex<Vec<Weak<Attempts>>>,
    /// What is known of the groups that are open on it.
    listings: Listings,
    /// Where its machine is, if not here.
    elsewhere: Option<Elsewhere>,
    /// Whether requests were made on it.
    listed: AtomicBool,
    /// Calls and requests that were begun on it.
    begun: AtomicU64,
    /// Cores beside its own that its rank may use.
    idle_cores: u32,
    /// Whether it is one of several processes that MPI does not know of.
    lone: Option<Lone>,
}

/// Keeps a membership while its line works.
struct Keep(Arc<Shared>);

impl AsRef<Line> for Keep {
    fn as_ref(&self) -> &Line {
        &self.0.line
    }
}

impl Membership for Shared {
    fn stop_requests(&self) {
        self.line.stop_all();
    }

    fn is_idle(&self) -> bool {
        self.line.is_idle()
    }

    fn finish(self: Arc<Self>, patience: Duration) -> Option<(Vec<String>, usize)> {
        self.line.check_process().ok()?;
        let (failures, given_up) = Comm { shared: self, inside: None }.finish(patience);
        Some((failures.iter().map(ToString::to_string).collect(), given_up))
    }
}

pub(crate) struct Member {
    pub(crate) machine: Machine,
    pub(crate) party: Party,
    pub(crate) observer: Option<Observer>,
}

impl Comm {
    fn over(wire: Box<dyn Wire>, servers: &[u32], description: String, processes: bool) -> Comm {
        Comm::made(wire, servers, description, processes, (None, None))
    }

    /// The membership of a rank, of so many, on a machine of this profile, whose calls this driver carries out. Calls that do
    /// not block are not for it.
    pub fn elsewhere((rank, size): (u32, u32), driver: Arc<dyn Driver>, profile: Arc<Profile>) -> Comm {
        let elsewhere = Elsewhere { rank, size, driver, profile };
        let wire = thread_wires(1).pop().expect("one wire for one rank");
        let description = format!("{} ranks on machine '{}'", elsewhere.size, elsewhere.profile.name);
        Comm::made(Box::new(wire), &[], description, false, (Some(elsewhere), None))
    }

    fn made(
        wire: Box<dyn Wire>,
        servers: &[u32],
        description: String,
        processes: bool,
        (elsewhere, lone): (Option<Elsewhere>, Option<Lone>),
    ) -> Comm {
        let mut party = Party::new(wire.rank(), wire.size(), Limits::default());
        party.dedicate(servers.to_vec());
        let (servers, clients) = (servers.len() as u32, party.clients());
        let (rank, size) = if party.is_server() { (party.rank() - clients, servers) } else { (party.rank(), clients) };
        let (rank, size) = elsewhere.as_ref().map_or((rank, size), |elsewhere| (elsewhere.rank, elsewhere.size));
        let (wire, pump): (Box<dyn Wire>, _) = match wire.bound_to() {
            Some(owner) => {
                let (relayed, pump) = relay(wire, owner);
                (Box::new(relayed), Some(pump))
            }
            None => (wire, None),
        };
        let (crowded, idle_cores) = environment::cores_for(processes, clients + servers);
        let shared = Arc::new_cyclic(|shared: &Weak<Shared>| {
            let line = shared.clone();
            let interrupted = move || line.upgrade().is_some_and(|shared| shared.line.interrupted());
            let mut machine = Machine::new(wire, Box::new(interrupted)).crowded(crowded).with_hands(idle_cores);
            if let Some(pump) = &pump {
                machine.count_by(pump.clone());
            }
            let member = Mutex::new(Member { machine, party, observer: None });
            let (plans, recording) = match &elsewhere {
                None => (Plans::new(processes, clients, servers), Recording::from_environment()),
                Some(elsewhere) => (Plans::on(elsewhere.profile.clone(), size), Recording::default()),
            };
            let recording = Mutex::new(recording);
            Shared {
                rank,
                size,
                servers,
                description,
                line: Line::new(pump),
                member,
                plans,
                repeats: Repeats::default(),
                recording,
                attempts: Mutex::default(),
                listings: Listings::default(),
                elsewhere,
                listed: AtomicBool::new(false),
                begun: AtomicU64::new(0),
                idle_cores,
                lone,
            }
        });
        Comm { shared, inside: None }
    }

    /// The same ranks, of which `servers` are dedicated to serving the others. The others are numbered first.
    fn dedicated(
        wire: Box<dyn Wire>,
        servers: &[u32],
        description: String,
        processes: bool,
    ) -> Result<Comm, crate::Error> {
        let size = wire.size();
        let mut sorted = servers.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let fit = sorted.len() == servers.len() && sorted.last().is_none_or(|&last| last < size);
        if !fit || servers.is_empty() || servers.len() as u32 >= size {
            let text = format!("ranks {servers:?} cannot be the dedicated servers of a communicator of {size} ranks");
            return Err(Fault::new(FaultKind::Invalid, text)
                .hint("name at least one rank, each once, and leave at least one client")
                .into());
        }
        let clients = (0..size).filter(|rank| !servers.contains(rank));
        let order: Vec<u32> = clients.chain(servers.iter().copied()).collect();
        Ok(Comm::over(Box::new(Renumbered::new(wire, &order)), servers, description, processes))
    }

    /// A communicator of this process alone.
    pub fn alone() -> Comm {
        let wire = thread_wires(1).pop().expect("one wire for one rank");
        Comm::over(Box::new(wire), &[], "one process".into(), false)
    }

    /// A communicator of this rank alone, beside this one: it neither records nor learns, and tells nothing of plans.
    pub(crate) fn alone_beside(&self) -> Comm {
        let alone = Comm::alone();
        *alone.recording_of().lock().unwrap_or_else(PoisonError::into_inner) = Recording::default();
        alone.plans().keep_quiet();
        alone.member().machine.allow_hands(self.shared.idle_cores);
        let shared = Arc::downgrade(&self.shared);
        alone.interrupted_by(Box::new(move || shared.upgrade().is_some_and(|shared| shared.line.asks_user())));
        alone
    }

    /// Threads of this process as ranks: one membership for each.
    pub fn threads(ranks: u32) -> Vec<Comm> {
        let wires = thread_wires(ranks.max(1)).into_iter();
        wires.map(|wire| Comm::over(Box::new(wire), &[], format!("{ranks} threads"), false)).collect()
    }

    /// As [`Comm::threads`], with these threads as servers of the others.
    ///
    /// # Errors
    /// When servers are named twice or do not exist, or no client is left.
    pub fn threads_with_servers(ranks: u32, servers: &[u32]) -> Result<Vec<Comm>, crate::Error> {
        let wires = thread_wires(ranks.max(1)).into_iter();
        wires.map(|wire| Comm::dedicated(Box::new(wire), servers, format!("{ranks} threads"), false)).collect()
    }

    /// A duplicate of an MPI intracommunicator, given by its Fortran handle (`comm.py2f()` in mpi4py). Collective.
    ///
    /// `hint` is the path of a loaded module that is linked to the MPI library, such as `MPI.__file__`. MPI itself is
    /// the one that the process has loaded; nothing of it is needed at build time.
    ///
    /// # Errors
    /// When no MPI is loaded and initialised, the communicator is an intercommunicator, or other ranks do not arrive.
    pub fn mpi(
        fortran: i32,
        hint: Option<&str>,
        limit: Duration,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Comm, crate::Error> {
        let wire = environment::beside_others(MpiWire::connect(fortran, hint, limit, interrupted)?);
        let (description, lone) = (wire.library().to_string(), Lone::of(&wire));
        Ok(Comm::made(Box::new(wire), &[], description, true, (None, lone)))
    }

    /// As [`Comm::mpi`], with these ranks as servers of the others.
    ///
    /// # Errors
    /// As [`Comm::mpi`], and when servers are named twice or do not exist, or no client is left.
    pub fn mpi_with_servers(
        fortran: i32,
        hint: Option<&str>,
        servers: &[u32],
        limit: Duration,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Comm, crate::Error> {
        let wire = environment::beside_others(MpiWire::connect(fortran, hint, limit, interrupted)?);
        let description = wire.library().to_string();
        Comm::dedicated(Box::new(wire), servers, description, true)
    }

    /// Whether this machine carries calls out.
    pub(crate) fn works_here(&self) -> bool {
        self.driver().is_none()
    }

    /// What this thread is in, for those that count its calls.
    pub(crate) fn counted(&self) -> Counted {
        self.shared.begun.fetch_add(1, Ordering::Relaxed);
        Counted::new(&self.shared)
    }

    /// Who carries out calls instead of this machine.
    pub(crate) fn driver(&self) -> Option<&Arc<dyn Driver>> {
        self.shared.elsewhere.as_ref().map(|elsewhere| &elsewhere.driver)
    }

    /// The member, once all calls before this one are over.
    pub(crate) fn member(&self) -> MutexGuard<'_, Member> {
        if self.inside.is_none() {
            self.shared.line.drain();
        }
        self.shared.member.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of these when the membership becomes unusable.
    pub(crate) fn watch(&self, attempts: &Arc<Attempts>) {
        let mut all = self.shared.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(attempts));
    }

    pub(crate) fn let_go(&self) {
        let all = std::mem::take(&mut *self.shared.attempts.lock().unwrap_or_else(PoisonError::into_inner));
        all.iter().filter_map(Weak::upgrade).for_each(|attempts| attempts.let_go());
    }

    /// Calls that may come again.
    pub(crate) fn repeats(&self) -> Repeats {
        self.shared.repeats.clone()
    }

    /// How rank 0 chooses.
    pub(crate) fn plans(&self) -> &Plans {
        &self.shared.plans
    }

    pub(crate) fn recording_of(&self) -> &Mutex<Recording> {
        &self.shared.recording
    }

    /// What is known of the groups that are open on it.
    pub(crate) fn listings(&self) -> &Listings {
        &self.shared.listings
    }

    pub(crate) fn line(&self) -> &Line {
        &self.shared.line
    }

    /// The same in the hands of a call that the line carries out.
    pub(crate) fn inside(&self, call: Inside) -> Comm {
        Comm { shared: self.shared.clone(), inside: Some(call) }
    }

    /// Whether a call that the line carries out has it.
    pub(crate) fn is_inside(&self) -> bool {
        self.inside.is_some()
    }

    /// That call.
    pub(crate) fn current(&self) -> Option<&Outcome> {
        self.inside.as_ref().map(|inside| &*inside.0)
    }

    /// Number of dedicated servers; 0 where ranks serve themselves.
    pub fn servers(&self) -> u32 {
        self.shared.servers
    }

    /// Whether a write is over for its caller when the data have left, and goes on without him.
    pub(crate) fn goes_on_alone(&self) -> bool {
        self.servers() > 0 && !self.is_inside()
    }

    pub(crate) fn submit(&self, outcome: Arc<Outcome>, staged: u64, task: Box<dyn Chore>) {
        self.shared.begun.fetch_add(1, Ordering::Relaxed);
        Line::submit(Keep(self.shared.clone()), outcome, staged, task);
        crew::requests(&self.shared);
        if !self.shared.listed.swap(true, Ordering::Relaxed) {
            left::requests(self.shared.clone());
        }
    }

    /// How many calls wait that could follow this one as one.
    pub(crate) fn waiting(&self) -> impl Fn() -> u32 + Send + 'static {
        let keep = Keep(self.shared.clone());
        move || keep.as_ref().waiting()
    }

    /// This rank, among the servers if it is one of them.
    pub fn rank(&self) -> u32 {
        self.shared.rank
    }

    /// Number of ranks; of a communicator with dedicated servers, of those of this rank's kind.
    pub fn size(&self) -> u32 {
        self.shared.size
    }

    /// What joins the ranks, for people.
    pub fn description(&self) -> String {
        self.shared.description.clone()
    }

    /// Whether requests move by themselves while their ranks compute. Otherwise, since MPI's level of thread support is
    /// below `MPI_THREAD_MULTIPLE`, messages move only inside of calls; [`Request::test`](crate::Request::test) is one.
    pub fn moves_alone(&self) -> bool {
        !self.shared.line.needs_caller()
    }

    /// Waits for all requests, before the process or the thread of this rank ends. Requests that do not move for
    /// `patience` are given up for good, and the membership with them. Gives the failures that nobody waited for, and
    /// the number of calls given up.
    pub fn finish(&self, patience: Duration) -> (Vec<crate::Error>, usize) {
        let (failures, given_up) = self.shared.line.finish(patience);
        self.flush_notes();
        (failures.into_iter().map(crate::Error::from).collect(), given_up)
    }

    /// Acts at once, or after the requests that are under way; not at all while a call of another thread is.
    pub(crate) fn without_waiting(&self, act: impl FnOnce(&mut Machine, &mut Party) + Send + 'static) {
        if self.check_usable().is_err() {
            return;
        }
        if !self.line().is_idle() {
            let shared = self.shared.clone();
            self.line().act_at_end(Box::new(move || {
                let mut member = shared.member.lock().unwrap_or_else(PoisonError::into_inner);
                let Member { machine, party, .. } = &mut *member;
                act(machine, party);
            }));
        } else if let Ok(mut member) = self.shared.member.try_lock() {
            let Member { machine, party, .. } = &mut *member;
            act(machine, party);
        }
    }

    /// Whether this process and thread may call on it.
    ///
    /// # Errors
    /// In a child made by a fork, and in a handler of signals that interrupts a call on it.
    pub(crate) fn check_usable(&self) -> Result<(), Fault> {
        if self.is_interrupted() {
            let text = "a handler of signals calls on the communicator of the call that it interrupts";
            return Err(Fault::new(FaultKind::Invalid, text).hint("set a flag in the handler, or raise, and call then"));
        }
        self.line().check_process()
    }

    /// How many calls and requests this rank has begun on it: who finds as many as before has made none, and is waited for.
    pub fn begun(&self) -> u64 {
        self.shared.begun.load(Ordering::Relaxed)
    }

    /// Whether this thread is in a call on it, which a handler of signals interrupts.
    pub fn is_interrupted(&self) -> bool {
        crew::is_in_call(&self.shared)
    }

    /// Whether a call is under way on it, or none can be made any more. Does not wait.
    pub fn is_in_call(&self) -> bool {
        let member = self.shared.member.try_lock();
        member.map_or(true, |member| member.party.poisoned().is_some()) || self.line().check_process().is_err()
    }

    /// How many more threads may help this one to read what is at rest without a call, if it may at all: on this machine, and where
    /// nothing speaks against a call.
    pub(crate) fn hands_at_rest(&self) -> Option<u32> {
        let may = self.driver().is_none() && !crew::is_stopped() && self.check_usable().is_ok();
        may.then_some(self.shared.idle_cores)
    }

    /// Whether an earlier failure made it unusable, or this process is a child of the one that it belongs to.
    pub fn is_poisoned(&self) -> bool {
        self.check_usable().is_err() || self.member().party.poisoned().is_some()
    }

    /// Takes part in a collective call that this rank cannot make, so that all ranks get its error instead of waiting.
    pub fn attend(&self, what: &str, why: Unready) -> crate::Error {
        self.attend_with(what, Fault::from(why).context(what))
    }

    pub(crate) fn attend_with(&self, what: &str, fault: Fault) -> crate::Error {
        let question = Question::opening(what, Vec::new(), Some(fault.clone()));
        self.agree(question, || Ok(Vec::new())).err().unwrap_or(fault).into()
    }

    /// Compares these names and values on all ranks, and so waits for them.
    ///
    /// # Errors
    /// When they differ, or other ranks do not come.
    pub fn compare(&self, what: &str, fields: Vec<(String, String)>) -> Result<(), crate::Error> {
        let question = Question::opening(what, fields, None);
        Ok(self.agree(question, || Ok(Vec::new())).map(|_| ())?)
    }

    /// Ends the membership on all ranks and frees the duplicated communicator. Clones become unusable.
    ///
    /// # Errors
    /// When other ranks do not come within the limit; at once, when one has left, or is in another call, which then fails. The
    /// duplicate is kept then.
    pub fn close(&self, limit: Duration) -> Result<(), crate::Error> {
        let wire = thread_wires(1).pop().expect("one wire for one rank");
        let alone = Machine::new(Box::new(wire), Box::new(|| false));
        self.check_usable()?;
        let machine = {
            let mut member = self.member();
            let Member { machine, party, .. } = &mut *member;
            self.end_together(machine, party, limit)?;
            let text = "the membership has ended: its communicator was freed, or MPI was finalised";
            member.party.end(Fault::new(FaultKind::Poisoned, text));
            std::mem::replace(&mut member.machine, alone)
        };
        let closed = machine.into_wire().close(limit);
        Ok(closed.map_err(|error| Fault::new(FaultKind::Peer, error.to_string()))?)
    }

    /// How long calls wait: for other ranks to arrive, for progress, for storage.
    pub fn set_limits(&self, limits: Limits) {
        if self.check_usable().is_ok() {
            self.member().party.limits = limits;
        }
    }

    /// Does something with names, after all other such work; nobody asks what came of it. With `at_once`, it is done on return,
    /// unless storage does not answer within its limit.
    pub(crate) fn work_later(&self, at_once: bool, work: impl FnOnce() + Send + 'static) {
        // What a child of this process would clear up is its parent's.
        if self.check_usable().is_err() {
            return;
        }
        if let Some(driver) = self.driver() {
            return driver.later(Box::new(work));
        }
        let desk = self.member().machine.names_desk();
        desk.later(work, at_once);
        if at_once && !desk.is_idle() {
            let Member { machine, party, .. } = &mut *self.member();
            let limit = party.limits.storage;
            party.linger(machine, limit, |_| desk.is_idle());
        }
    }

    /// Agreements made so far; each collective call makes one to open and one to close.
    pub fn agreements(&self) -> u64 {
        self.member().party.agreements
    }

    /// Asks this now and then whether the user wants to stop.
    pub fn interrupted_by(&self, interrupted: Interrupted) {
        self.shared.line.ask(interrupted);
    }

    /// Tells this how far transfers are.
    pub fn observed_by(&self, observer: Option<Observer>) {
        if self.check_usable().is_ok() {
            self.member().observer = observer;
        }
    }

    /// Names at a place where something is opened, also to be written. Who is one of several processes that do not know of each
    /// other may only read there.
    pub(crate) fn names_for(&self, location: &Location, writes: bool) -> Result<Arc<dyn Names>, Fault> {
        self.shared.lone.as_ref().filter(|_| writes).map_or(Ok(()), |lone| lone.check(location))?;
        self.names(location)
    }

    /// Whether this process is one of several that its launcher started, and to MPI the only one. Local.
    pub fn is_lone(&self) -> bool {
        self.shared.lone.is_some()
    }

    /// What to warn of, once in a process, when such a one opens something to read. Local.
    pub fn lone_reader(&self) -> Option<String> {
        self.shared.lone.as_ref().and_then(Lone::warning)
    }

    /// Names at a place, or why not all ranks can reach it.
    pub(crate) fn names(&self, location: &Location) -> Result<Arc<dyn Names>, Fault> {
        if let (Location::Memory(_), true) = (location, self.servers() > 0) {
            let text = "a store in memory cannot be opened through dedicated servers, which do not have it";
            let hint = "open it on a communicator without dedicated servers, or give a path";
            return Err(Fault::new(FaultKind::Unsupported, text).hint(hint));
        }
        self.check_usable()?;
        if let Some(driver) = self.driver() {
            return driver.names(location);
        }
        self.member().machine.names(location)
    }
}
