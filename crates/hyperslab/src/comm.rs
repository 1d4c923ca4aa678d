//! A rank's membership in a communicator, and the course of a collective call.

use crate::report::Report;
use hyperslab_plan::{
    Action, After, Direction, Facts, Machine as PlanMachine, Mine, Overlap, Parameters, Preference, Program, Spread,
    Step, Transfer, choose,
};
use hyperslab_real::mpi::MpiWire;
use hyperslab_real::wire::{Wire, thread_wires};
use hyperslab_real::{Interrupted, Machine};
use hyperslab_walk::{Limits, Party, Question, Walk, Walked};
use hyperslab_world::{Exposed, Fault, FaultKind, Location, Names, Reader, World, Writer};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Told now and then how far a transfer is: bytes done and bytes in all, both as seen by this rank.
pub type Observer = Box<dyn FnMut(u64, u64) + Send>;

/// One rank of a communicator: of MPI, of threads of this process, or alone.
///
/// Clones are the same membership. Calls on it are collective and in the same order on all ranks.
#[derive(Clone)]
pub struct Comm(Arc<Mutex<Member>>);

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
    description: String,
}

impl Comm {
    fn over(wire: Box<dyn Wire>, description: String) -> Comm {
        let party = Party::new(wire.rank(), wire.size(), Limits::default());
        let machine = Machine::new(wire, Path::new(""), Box::new(|| false));
        Comm(Arc::new(Mutex::new(Member { machine, party, observer: None, description })))
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

    fn member(&self) -> MutexGuard<'_, Member> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.member().party.rank()
    }

    /// Number of ranks.
    pub fn size(&self) -> u32 {
        self.member().party.size()
    }

    /// What joins the ranks, for people.
    pub fn description(&self) -> String {
        self.member().description.clone()
    }

    /// Whether an earlier failure made it unusable.
    pub fn is_poisoned(&self) -> bool {
        self.member().party.poisoned().is_some()
    }

    /// Takes part in a collective call that this rank cannot make, so that all ranks get its error instead of waiting.
    pub fn attend(&self, what: &str, why: Unready) -> crate::Error {
        let fault = Fault { kind: why.kind, text: format!("{what}: {}", why.text), hint: why.hint };
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
        self.member().machine.interrupted_by(interrupted);
    }

    /// Tells this how far transfers are.
    pub fn observed_by(&self, observer: Option<Observer>) {
        self.member().observer = observer;
    }

    /// Names at a place, or why not all ranks can reach it.
    pub(crate) fn names(&self, location: &Location) -> Result<Arc<dyn Names>, Fault> {
        self.member().machine.names(location)
    }

    /// Agrees that all ranks do the same, and gives everybody what rank 0 finds.
    pub(crate) fn agree(
        &self,
        question: Question,
        decide: impl FnMut() -> Result<Vec<u8>, Fault>,
    ) -> Result<Vec<u8>, Fault> {
        let mut member = self.member();
        let Member { machine, party, .. } = &mut *member;
        party.agree(machine, question, decide)
    }

    /// Carries out a collective transfer.
    pub(crate) fn transfer(&self, call: Call) -> Result<Report, Fault> {
        let started = Instant::now();
        let mut member = self.member();
        let Member { machine, party, observer, .. } = &mut *member;
        let Call { what, fields, durable, prepared, mut decide, compile, mut publish, mut undo, tidy } = call;
        let question = Question { what: what.clone(), fields, fault: prepared, opens: true };
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
        let facts = match learn(machine, party, &what, &transfer, &parameters, compiled.mine) {
            Ok(facts) => Arc::new(facts),
            Err(fault) => {
                if party.rank() == 0 {
                    undo();
                }
                return Err(fault);
            }
        };
        let program = parameters.strategy.program(&transfer, &parameters, &facts, party.rank(), &views);
        let (bytes, below) = (transfer.stored_bytes(), transfer.objects_below());
        let walk = Walk::new(program, compiled.users);
        let scale = if parameters.servers.is_empty() { 1 } else { parameters.servers.len() as u64 };
        let watched = Watched { what: &what, total: bytes, scale, observer };
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
        sync: Option<String>,
        publish: impl FnMut() -> Result<Vec<u8>, Fault>,
        mut fault: Option<Fault>,
    ) -> Result<(), Fault> {
        let mut member = self.member();
        let Member { machine, party, .. } = &mut *member;
        if let Some(below) = sync.filter(|_| fault.is_none() && party.poisoned().is_none()) {
            let action = Action::Sync { below: [below.into()].into() };
            let step = Step { id: 0, round: 0, after: After::none(), action };
            let program = Program { slots: 0, slot_bytes: 0, lanes: vec![Box::new(std::iter::once(step))] };
            let watched = Watched { what, total: 0, scale: 1, observer: &mut None };
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
    party.drive(machine, None, |world: &mut dyn World, party| {
        result = walk.poll(world, party);
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
    /// The arrays, by the numbers under which they are exposed.
    pub(crate) users: Vec<Exposed>,
    /// Pieces of this rank that no distribution describes.
    pub(crate) mine: BTreeMap<u32, Vec<Mine>>,
    /// What is wrong with this rank's own arrays; it takes part all the same and says so at the end.
    pub(crate) fault: Option<Fault>,
}

/// Lets the ranks that handle storage know of pieces that no closed form describes, and refuses to write what several
/// pieces hold.
fn learn(
    machine: &mut Machine,
    party: &mut Party,
    what: &str,
    transfer: &Arc<Transfer>,
    parameters: &Parameters,
    mine: BTreeMap<u32, Vec<Mine>>,
) -> Result<Facts, Fault> {
    let mut facts = Facts::of_mine(mine);
    if transfer.asks.iter().all(|ask| ask.spread != Spread::Explicit) {
        return Ok(facts);
    }
    let told = facts.to_tell(transfer, parameters, party.rank());
    facts.hear(party.tell(machine, what, told)?);
    if transfer.direction == Direction::Write {
        let fault = facts.overlap(transfer, parameters).map(|overlap| overlapping(what, transfer, &overlap));
        let question = Question { what: what.into(), fields: Vec::new(), fault, opens: false };
        party.agree(machine, question, || Ok(Vec::new()))?;
    }
    Ok(facts)
}

fn overlapping(what: &str, transfer: &Transfer, overlap: &Overlap) -> Fault {
    let Overlap { array, ranks: (first, second), at } = overlap;
    let who = if first == second { format!("rank {first} twice") } else { format!("ranks {first} and {second}") };
    let name = &transfer.asks[*array as usize].name;
    let text = format!("{what}: element {at:?} of '{name}' would be written by {who}: their pieces overlap");
    Fault::new(FaultKind::Invalid, text)
        .hint("each element may be written once; leave ghost cells out of the pieces that are written")
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
pub(crate) fn choose_parameters(transfer: Transfer, wish: &Preference) -> Result<Writer, Fault> {
    let transfer = Arc::new(transfer);
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let machine = PlanMachine { ranks_per_node: transfer.ranks, cores_per_node: cores };
    let parameters = choose(&transfer, machine, wish).map_err(|no| {
        let strategy = wish.strategy.map_or("no strategy".to_string(), |s| format!("strategy {s}"));
        Fault::new(FaultKind::Invalid, format!("{strategy} cannot carry out this transfer: {}", no.reason))
            .hint(no.hint)
    })?;
    Ok(Writer::default().bytes(&parameters.to_bytes()))
}
