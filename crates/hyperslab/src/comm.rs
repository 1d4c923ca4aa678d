//! A rank's membership in a communicator, and the course of a collective call.

use crate::line::{Finished, Line, Outcome};
use crate::report::Report;
use crate::request::Request;
use hyperslab_plan::{Action, Machine as PlanMachine, Parameters, Preference, Program, Step, Transfer, choose};
use hyperslab_real::mpi::MpiWire;
use hyperslab_real::relay::relay;
use hyperslab_real::wire::{Wire, thread_wires};
use hyperslab_real::{Interrupted, Machine};
use hyperslab_walk::{Limits, Party, Question, Walk, Walked};
use hyperslab_world::{Exposed, Fault, FaultKind, Reader, World, Writer};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The target of calls that belong to no store.
pub(crate) const NO_TARGET: u64 = 0;

/// A number for a store, step or file whose calls are to be told from those of others; only this process knows it.
pub(crate) fn new_target() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(NO_TARGET);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

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
    description: String,
    line: Line,
    member: Mutex<Member>,
}

/// Keeps a membership while its line works.
struct Keep(Arc<Shared>);

impl AsRef<Line> for Keep {
    fn as_ref(&self) -> &Line {
        &self.0.line
    }
}

/// What an error must say when a call cannot even be made ready on this rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unready {
    /// Kind of the error.
    pub kind: FaultKind,
    /// The message.
    pub text: String,
    /// What the user may do about it.
    pub hint: String,
}

struct Member {
    machine: Machine,
    party: Party,
    observer: Option<Observer>,
}

impl Comm {
    fn over(wire: Box<dyn Wire>, description: String) -> Comm {
        let (rank, size) = (wire.rank(), wire.size());
        let party = Party::new(rank, size, Limits::default());
        let (wire, pump): (Box<dyn Wire>, _) = match wire.bound_to() {
            Some(owner) => {
                let (relayed, pump) = relay(wire, owner);
                (Box::new(relayed), Some(pump))
            }
            None => (wire, None),
        };
        let shared = Arc::new_cyclic(|shared: &Weak<Shared>| {
            let line = shared.clone();
            let interrupted = move || line.upgrade().is_some_and(|shared| shared.line.interrupted());
            let machine = Machine::new(wire, Path::new(""), Box::new(interrupted));
            let member = Mutex::new(Member { machine, party, observer: None });
            Shared { rank, size, description, line: Line::new(pump), member }
        });
        Comm { shared, inside: None }
    }

    /// A communicator of this process alone.
    pub fn alone() -> Comm {
        let wire = thread_wires(1).pop().expect("one wire for one rank");
        Comm::over(Box::new(wire), "one process".into())
    }

    /// Threads of this process as ranks: one membership for each.
    pub fn threads(ranks: u32) -> Vec<Comm> {
        let wires = thread_wires(ranks.max(1)).into_iter();
        wires.map(|wire| Comm::over(Box::new(wire), format!("{ranks} threads"))).collect()
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
        let connected = MpiWire::connect(fortran, hint, limit, interrupted);
        let wire = connected.map_err(|error| Fault::new(FaultKind::Peer, error.to_string()))?;
        let description = wire.library().to_string();
        Ok(Comm::over(Box::new(wire), description))
    }

    /// The member, once all calls before this one are over.
    fn member(&self) -> MutexGuard<'_, Member> {
        if self.inside.is_none() {
            self.shared.line.drain();
        }
        self.shared.member.lock().unwrap_or_else(PoisonError::into_inner)
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

    pub(crate) fn submit(
        &self,
        outcome: Arc<Outcome>,
        staged: u64,
        work: Box<dyn FnOnce() -> Result<Finished, Fault> + Send>,
    ) {
        Line::submit(Keep(self.shared.clone()), outcome, staged, work);
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.shared.rank
    }

    /// Number of ranks.
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
        (failures.into_iter().map(crate::Error::from).collect(), given_up)
    }

    /// Whether an earlier failure made it unusable.
    pub fn is_poisoned(&self) -> bool {
        self.member().party.poisoned().is_some()
    }

    /// Takes part in a collective call that this rank cannot make, so that all ranks get its error instead of waiting.
    pub fn attend(&self, what: &str, why: Unready) -> crate::Error {
        let fault = Fault { kind: why.kind, text: why.text, hint: why.hint };
        self.attend_with(what, fault.context(what))
    }

    /// As [`Comm::attend`], for a call that does not block; the request gives the error.
    pub fn attend_later(&self, what: &str, why: Unready) -> Request {
        let (what, fault) = (what.to_string(), Fault { kind: why.kind, text: why.text, hint: why.hint });
        self.leave(NO_TARGET, false, None, move |comm| Err(comm.attend_with(&what, fault.context(&what))))
    }

    pub(crate) fn attend_with(&self, what: &str, fault: Fault) -> crate::Error {
        let question = Question { what: what.into(), fields: Vec::new(), fault: Some(fault.clone()), opens: true };
        self.agree(question, || Ok(Vec::new())).err().unwrap_or(fault).into()
    }

    /// Ends the membership on all ranks and frees the duplicated communicator. Clones become unusable.
    ///
    /// # Errors
    /// When other ranks do not come within the limit.
    pub fn close(&self, limit: Duration) -> Result<(), crate::Error> {
        let wire = thread_wires(1).pop().expect("one wire for one rank");
        let alone = Machine::new(Box::new(wire), Path::new(""), Box::new(|| false));
        let machine = std::mem::replace(&mut self.member().machine, alone);
        let closed = machine.into_wire().close(limit);
        Ok(closed.map_err(|error| Fault::new(FaultKind::Peer, error.to_string()))?)
    }

    /// How long calls wait for other ranks to arrive, and for progress.
    pub fn set_limits(&self, arrival: Duration, progress: Duration) {
        self.member().party.limits = Limits { arrival, progress };
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
        self.member().observer = observer;
    }

    /// Agrees that all ranks do the same, and gives everybody what rank 0 finds.
    pub(crate) fn agree(
        &self,
        mut question: Question,
        decide: impl FnMut() -> Result<Vec<u8>, Fault>,
    ) -> Result<Vec<u8>, Fault> {
        let mut member = self.member();
        self.bring_failure(&mut question, None);
        let Member { machine, party, .. } = &mut *member;
        party.agree(machine, question, decide)
    }

    /// Brings to an agreement what went wrong in a call that nobody waited for.
    fn bring_failure(&self, question: &mut Question, target: Option<u64>) {
        if question.fault.is_none() {
            let failure = self.shared.line.take_failure(target);
            question.fault = failure.map(|fault| fault.context("a request that was not waited for failed"));
        }
    }

    /// Carries out a collective transfer.
    pub(crate) fn transfer(&self, call: Call) -> Result<Report, Fault> {
        let started = Instant::now();
        let mut member = self.member();
        let Member { machine, party, observer, .. } = &mut *member;
        let Call { what, fields, durable, prepared, mut decide, compile, mut publish, mut undo, tidy } = call;
        let mut question = Question { what: what.clone(), fields, fault: prepared, opens: true };
        self.bring_failure(&mut question, None);
        let limits = party.limits;
        if self.is_inside() && self.shared.line.needs_caller() {
            // A rank that computes for long moves no messages meanwhile, and that is allowed.
            party.limits.progress = limits.progress.max(limits.arrival);
        }
        let party = Restoring { party, limits };
        let party = &mut *party.party;
        let payload = party.agree(machine, question, &mut *decide)?;
        let compiled = compile(&payload).and_then(|compiled| {
            let mut r = Reader::new(&payload);
            let parameters = r.bytes().and_then(Parameters::from_bytes);
            let parameters =
                parameters.ok_or_else(|| Fault::new(FaultKind::Peer, "rank 0 sent parameters that make no sense"))?;
            Ok((compiled, parameters))
        });
        // All ranks compile the same; one that cannot has met something that nobody could foresee.
        let (compiled, parameters) = match compiled {
            Ok(both) => both,
            Err(fault) => return Err(party.abandon(machine, fault.context(&what))),
        };
        let views: Vec<_> = compiled.users.iter().map(|user| user.view.clone()).collect();
        let transfer = Arc::new(compiled.transfer);
        let program = parameters.strategy.program(&transfer, &parameters, party.rank(), &views);
        let (bytes, below) = (transfer.stored_bytes(), transfer.objects_below());
        let walk = Walk::new(program, compiled.users);
        let scale = if parameters.servers.is_empty() { 1 } else { parameters.servers.len() as u64 };
        // Only a rank that waits is told; the thread of the line must not call the user.
        let observer = if self.is_inside() { &mut None } else { observer };
        let watched = Watched { what: &what, total: bytes, scale, observer, line: &self.shared.line };
        let walked = run(machine, party, walk, watched)?;
        if !durable {
            machine.forget_unsynced(below);
        }
        machine.release_files();
        let (walked, outcome) = match walked {
            Ok(walked) => (walked, compiled.fault),
            Err(fault) => (Walked::default(), Some(fault)),
        };
        let question = Question { what: format!("end of {what}"), fields: Vec::new(), fault: outcome, opens: false };
        if let Err(fault) = party.agree(machine, question, &mut *publish) {
            if party.rank() == 0 {
                undo();
            }
            return Err(Fault { text: fault.text.replacen("end of ", "", 1), ..fault });
        }
        if party.rank() == 0 {
            tidy();
        }
        Ok(Report { what, parameters, bytes, seconds: started.elapsed().as_secs_f64(), walked })
    }

    /// Makes what was written below durable, on all ranks, then lets rank 0 go on.
    pub(crate) fn sync_and(
        &self,
        what: &str,
        target: u64,
        sync: Option<String>,
        publish: impl FnMut() -> Result<Vec<u8>, Fault>,
        mut fault: Option<Fault>,
    ) -> Result<(), Fault> {
        let mut member = self.member();
        let mut early = Question { fault: fault.take(), ..Question::default() };
        self.bring_failure(&mut early, Some(target));
        fault = early.fault.map(|fault| fault.context(what));
        let Member { machine, party, .. } = &mut *member;
        if let Some(below) = sync.filter(|_| fault.is_none() && party.poisoned().is_none()) {
            let action = Action::Sync { below: [below.into()].into() };
            let step = Step { id: 0, after: Vec::new(), action };
            let program = Program { slots: 0, slot_bytes: 0, lanes: vec![Box::new(std::iter::once(step))] };
            let watched = Watched { what, total: 0, scale: 1, observer: &mut None, line: &self.shared.line };
            fault = run(machine, party, Walk::new(program, Vec::new()), watched)?.err();
        }
        let question = Question { what: what.into(), fields: Vec::new(), fault, opens: true };
        party.agree(machine, question, publish).map(|_| ())
    }
}

struct Watched<'a> {
    what: &'a str,
    total: u64,
    /// By how much this rank's bytes stand for all.
    scale: u64,
    observer: &'a mut Option<Observer>,
    line: &'a Line,
}

/// Gives a party its limits back.
struct Restoring<'a> {
    party: &'a mut Party,
    limits: Limits,
}

impl Drop for Restoring<'_> {
    fn drop(&mut self) {
        self.party.limits = self.limits;
    }
}

/// How often an observer is told.
const OBSERVE: Duration = Duration::from_millis(100);

/// Walks a program to its end. The outer error is one that ended the call on all ranks.
fn run(
    machine: &mut Machine,
    party: &mut Party,
    mut walk: Walk,
    watched: Watched,
) -> Result<Result<Walked, Fault>, Fault> {
    let mut result = None;
    let mut told = Instant::now();
    let mut steps = 0;
    party.drive(machine, None, |world: &mut dyn World, party| {
        result = walk.poll(world, party);
        if std::mem::replace(&mut steps, walk.walked().steps) != steps {
            watched.line.moves();
        }
        if let Some(observer) = watched.observer.as_mut().filter(|_| told.elapsed() > OBSERVE) {
            told = Instant::now();
            observer((walk.walked().store_bytes * watched.scale).min(watched.total), watched.total);
        }
        if result.is_some() { None } else { Some(format!("{}: {}", watched.what, walk.waits_for())) }
    })?;
    Ok(result.expect("driven to its end"))
}

/// What a rank walks: the transfer that all agreed on, and its own arrays.
pub(crate) struct Compiled {
    pub(crate) transfer: Transfer,
    pub(crate) users: Vec<Exposed>,
    /// What is wrong with this rank's own arrays; it takes part all the same and says so at the end.
    pub(crate) fault: Option<Fault>,
}

/// Makes a transfer of what rank 0 told.
pub(crate) type Compile<'a> = Box<dyn FnOnce(&[u8]) -> Result<Compiled, Fault> + 'a>;

/// A collective transfer, as seen by one rank.
pub(crate) struct Call<'a> {
    /// What is done, for messages.
    pub(crate) what: String,
    /// What must be the same on all ranks.
    pub(crate) fields: Vec<(String, String)>,
    /// Whether what is written shall be durable, now or when it is published.
    pub(crate) durable: bool,
    /// What is wrong on this rank already.
    pub(crate) prepared: Option<Fault>,
    /// On rank 0, when all agree: make ready, choose, and tell; begins with the parameters.
    pub(crate) decide: Box<dyn FnMut() -> Result<Vec<u8>, Fault> + 'a>,
    /// On all ranks: the transfer, from what rank 0 told.
    pub(crate) compile: Compile<'a>,
    /// On rank 0, when all ranks are done: make it visible.
    pub(crate) publish: Box<dyn FnMut() -> Result<Vec<u8>, Fault> + 'a>,
    /// On rank 0, when it failed: take away what is not visible.
    pub(crate) undo: Box<dyn FnMut() + 'a>,
    /// On rank 0, when all ranks know that it succeeded: remove what it replaced, which may take long.
    pub(crate) tidy: Box<dyn FnOnce() + 'a>,
}

/// Chooses parameters on rank 0, as the first part of what it tells.
/// `held` bytes of the budget are set aside for copies of arrays.
pub(crate) fn choose_parameters(transfer: &Transfer, wish: &Preference, held: u64) -> Result<Writer, Fault> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let machine = PlanMachine { ranks_per_node: transfer.ranks, cores_per_node: cores };
    let parameters = choose(transfer, machine, wish).map_err(|no| {
        let strategy = wish.strategy.map_or("no strategy".to_string(), |s| format!("strategy {s}"));
        let held = if held > 0 { format!(" (beside {held} B set aside for copies of arrays)") } else { String::new() };
        Fault::new(FaultKind::Invalid, format!("{strategy} cannot carry out this transfer: {}{held}", no.reason))
            .hint(no.hint)
    })?;
    Ok(Writer::default().bytes(&parameters.to_bytes()))
}
