//! The course of a collective call: agree, walk, agree, publish.

use crate::comm::{Comm, Member, Observer};
use crate::line::Line;
use crate::planning::Decision;
use crate::recording::Noted;
use crate::report::{Measured, Report};
use crate::served;
use hyperslab_plan::{Action, After, Direction, Facts, Mine, Overlap, Parameters, Program, Spread, Step, Transfer};
use hyperslab_real::{Desk, Machine, Work};
use hyperslab_walk::trace::{Kind, Span};
use hyperslab_walk::{Agreed, Limits, Party, Question, Waits, Walk, Walked, Ways};
use hyperslab_world::{Exposed, Fault, FaultKind, Names, Reader, Root, World};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The target of calls that belong to no store.
pub(crate) const NO_TARGET: u64 = 0;
/// All targets.
pub(crate) const ANY_TARGET: u64 = u64::MAX;

/// A number for a store, step or file whose calls are to be told from those of others; only this process knows it.
pub(crate) fn new_target() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(NO_TARGET);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

impl Comm {
    /// Agrees that all ranks do the same, and gives everybody what rank 0 finds: what waits for nothing far away.
    pub(crate) fn agree(
        &self,
        question: Question,
        mut decide: impl FnMut() -> Result<Vec<u8>, Fault>,
    ) -> Result<Vec<u8>, Fault> {
        self.agree_polled(question, |_| Some(decide()))
    }

    /// Agrees that all ranks do the same, and gives everybody what rank 0 finds or makes in storage. With `at_once`, on its
    /// own thread.
    pub(crate) fn agree_on(
        &self,
        mut question: Question,
        at_once: bool,
        work: impl FnOnce() -> Result<Vec<u8>, Fault> + Send + 'static,
    ) -> Result<Vec<u8>, Fault> {
        question.stores = true;
        let mut work: Option<Work> = Some(Box::new(work));
        self.agree_polled(question, move |desk| worked(desk, &mut work, at_once))
    }

    /// The same for an opening, with what rank 0 finds out when the others know that it sets to work in storage: whether
    /// the names are at hand. What `waits` besides is done on another thread.
    pub(crate) fn agree_on_opening(
        &self,
        mut question: Question,
        names: Option<Arc<dyn Names>>,
        waits: bool,
        work: impl FnOnce(&dyn Names, bool) -> Result<Vec<u8>, Fault> + Send + 'static,
    ) -> Result<Vec<u8>, Fault> {
        question.stores = true;
        let mut begin = Some((names, work));
        let (mut work, mut at_once): (Option<Work>, bool) = (None, false);
        self.agree_polled(question, move |desk| {
            if let Some((names, open)) = begin.take() {
                let at_hand = names.as_ref().is_some_and(|names| names.is_at_hand());
                at_once = at_hand && !waits;
                work = Some(Box::new(move || open(&*names.expect("a rank without names has a fault"), at_hand)));
            }
            worked(desk, &mut work, at_once)
        })
    }

    fn agree_polled(
        &self,
        mut question: Question,
        decide: impl FnMut(&Desk) -> Option<Result<Vec<u8>, Fault>>,
    ) -> Result<Vec<u8>, Fault> {
        self.line().check_process().map_err(|fault| fault.context(&question.what))?;
        let mut member = self.member();
        let Member { machine, party, .. } = &mut *member;
        self.bring_failure(party, &mut question, NO_TARGET);
        self.heed_environment(machine, party)?;
        let noted = self.begin_note(machine, party, &question.what, Kind::Commit);
        let decided = self.decided(machine, party, question, decide);
        self.end_note(machine, party, noted, decided.as_ref().err());
        self.ended(machine, party, decided)
    }

    /// The end of a call. After a failure that ends the use of the communicator, nothing more of what it asked for may begin:
    /// others may go on where it left off. Who finds that it ended in a call that had returned before hears why.
    fn ended<T>(&self, machine: &mut Machine, party: &mut Party, result: Result<T, Fault>) -> Result<T, Fault> {
        if party.poisoned().is_some() {
            machine.cut();
            self.let_go();
        }
        if let Err(fault) = &result {
            party.release(machine, fault);
        }
        match result {
            Err(fault) if fault.kind == FaultKind::Poisoned => {
                Err(self.line().take_failure(ANY_TARGET).unwrap_or(fault))
            }
            result => result,
        }
    }

    /// Agrees on something that servers need not know.
    fn decided(
        &self,
        machine: &mut Machine,
        party: &mut Party,
        question: Question,
        mut decide: impl FnMut(&Desk) -> Option<Result<Vec<u8>, Fault>>,
    ) -> Result<Vec<u8>, Fault> {
        let desk = machine.desk();
        if self.servers() == 0 {
            return party.agree_with(machine, question, |_, _| decide(&desk)).map(|agreed| agreed.payload);
        }
        let told = party.agree_with(machine, question, |_, _| {
            decide(&desk).map(|decided| decided.map(|payload| served::plain(&payload)))
        })?;
        served::payload(&told.payload)
    }

    /// Brings to an agreement what went wrong in a call that nobody waited for. Where no agreement is possible any more,
    /// [`Comm::ended`] tells it.
    fn bring_failure(&self, party: &Party, question: &mut Question, target: u64) {
        if question.fault.is_none() && party.poisoned().is_none() {
            question.fault = self.line().take_failure(target);
        }
    }

    /// Waits for all calls before, on all ranks.
    pub(crate) fn settle(&self, what: &str) -> Result<(), crate::Error> {
        Ok(self.sync_and(End::of(what, "settle", ""), ANY_TARGET, Publish::nothing())?)
    }

    /// Carries out a collective transfer.
    pub(crate) fn transfer(&self, call: Call) -> Result<Report, Fault> {
        self.line().check_process().map_err(|fault| fault.context(&call.what))?;
        let mut member = self.member();
        let Member { machine, party, observer } = &mut *member;
        self.heed_environment(machine, party)?;
        let mut noted = self.begin_note(machine, party, &call.what, Kind::Plan);
        let report = self.carry_out(machine, party, observer, call, &mut noted);
        self.end_note(machine, party, noted, report.as_ref().err());
        self.ended(machine, party, report)
    }

    fn carry_out(
        &self,
        machine: &mut Machine,
        party: &mut Party,
        observer: &mut Option<Observer>,
        call: Call,
        noted: &mut Noted,
    ) -> Result<Report, Fault> {
        let started = Instant::now();
        let limits = party.limits;
        if self.is_inside() && self.line().needs_caller() {
            // A rank that computes for long moves no messages meanwhile, and that is allowed.
            party.limits.progress = limits.progress.max(limits.arrival);
        }
        let restoring = Restoring { party, limits };
        let party = &mut *restoring.party;
        let Call { what, fields, cannot, prepared, target, compile, publishes, at_once } = call;
        let mut question = Question { stores: true, cannot, ..Question::opening(what.clone(), fields, prepared) };
        self.bring_failure(party, &mut question, NO_TARGET);
        let target = (party.rank() == 0).then(|| Arc::new(Mutex::new(target())));
        let desk = machine.desk();
        // Rank 0's work with the target, for which nobody waits.
        let afterwards = |work: fn(&mut dyn Target)| {
            if let Some(target) = target.clone() {
                desk.later(move || work(&mut **lock(&target)), at_once);
            }
        };
        /// For what is given up because something does not answer.
        const GRACE: Duration = Duration::from_secs(1);
        // Who hears that a call failed may look at once at what is there, and finds no lock of it.
        let clean = |poisoned: bool, undo: fn(&mut dyn Target)| {
            afterwards(undo);
            desk.finish(if poisoned { GRACE } else { limits.progress });
        };
        let opening = Opening { question, target: target.clone(), compile, at_once };
        let opened = self.open(machine, party, opening);
        let (Compiled { transfer, users, mine, fault, vetted }, decision, roots) = opened.inspect_err(|_| {
            clean(party.poisoned().is_some(), |target| target.undo(false));
        })?;
        let opened = started.elapsed();
        noted.tell(party, &transfer, &decision);
        let Decision { parameters, predicted, .. } = decision;
        let (bytes, writes) = (transfer.stored_bytes(), transfer.direction == Direction::Write);
        let scale = if parameters.servers.is_empty() { 1 } else { parameters.servers.len() as u64 };
        // Only a rank that waits is told; the thread of the line must not call the user.
        let observer = observer.as_mut().filter(|_| !self.is_inside());
        let watched = Watched { what: &what, total: bytes, scale, observer, line: self.line() };
        machine.enter(roots.into());
        let moved = match moved(machine, party, (transfer, users, mine), vetted, &parameters, watched) {
            Ok(moved) => moved,
            Err(fault) => {
                // Who was told that pieces overlap, or cannot be converted, leaves with it; nothing was written.
                let nothing = party.poisoned().is_none();
                machine.cut_if(!nothing);
                clean(!nothing, if nothing { |target| target.undo(false) } else { |target| target.abandon() });
                return Err(fault);
            }
        };
        let (walked, outcome) = match moved {
            Ok(walked) => (walked, fault),
            Err(fault) => (Walked::default(), Some(fault)),
        };
        let (seconds, sync) = (started.elapsed().as_secs_f64(), walked.sync_ns as f64 / 1e9);
        let open = opened.as_secs_f64();
        let measured = Measured { open, moving: (seconds - open - sync).max(0.0), sync, close: 0.0 };
        let report = Report { what: what.clone(), parameters, bytes, seconds, walked, predicted, measured };
        if let Some(call) = self.current().filter(|_| self.servers() > 0 && writes) {
            // Also when something went wrong here: no other rank can know that before the end.
            self.line().leave(call, report.clone());
        }
        let question =
            Question { what: format!("end of {what}"), fault: outcome, stores: publishes, ..Question::default() };
        let publishing = target.clone().filter(|_| publishes);
        let mut work: Option<Work> = publishing.map(|target| Box::new(move || lock(&target).publish()) as Work);
        let published = self.decided(machine, party, question, |desk| match publishes {
            true => worked(desk, &mut work, at_once),
            false => Some(Ok(Vec::new())),
        });
        if let Err(fault) = published {
            machine.cut_if(party.poisoned().is_some());
            clean(
                party.poisoned().is_some(),
                match fault.kind {
                    // It is visible.
                    FaultKind::Unsynced => |target| target.keep(),
                    _ if party.poisoned().is_some() => |target| target.abandon(),
                    _ => |target| target.undo(true),
                },
            );
            return Err(Fault { text: fault.text.replacen("end of ", "", 1), ..fault });
        }
        afterwards(|target| target.tidy());
        let whole = started.elapsed().as_secs_f64();
        let measured = Measured { close: whole - seconds, ..report.measured };
        let report = Report { seconds: whole, measured, ..report };
        if party.rank() == 0 {
            self.planning().done(&report);
        }
        Ok(report)
    }

    /// Agrees on a transfer; gives it, how it is carried out, and where its objects lie.
    fn open(&self, machine: &mut Machine, party: &mut Party, opening: Opening) -> Result<Opened, Fault> {
        let Opening { question, target, compile, at_once } = opening;
        let what = question.what.clone();
        let (mut compile, mut made) = (Some(compile), None);
        let alone = machine.is_one_process();
        let mut finish = |payload: &[u8], cannot: Ways| -> Result<Opened, Fault> {
            let compile = compile.take().expect("a transfer is made once");
            let mut r = Reader::new(payload);
            let decision = r.bytes().and_then(Decision::from_bytes);
            let roots = r.bytes().and_then(Root::decode);
            let senseless = || Fault::new(FaultKind::Peer, "rank 0 sent parameters that make no sense");
            let (decision, roots) = decision.zip(roots).ok_or_else(senseless)?;
            Ok((compile(payload, cannot)?, decision, seen_by(roots, alone)))
        };
        let desk = machine.desk();
        let mut target = target;
        let mut prepare = |cannot| {
            let prepare = target.take().map(|target| Box::new(move || lock(&target).prepare(cannot)) as Work);
            worked(&desk, &mut { prepare }, at_once)
        };
        let compiled = if self.servers() == 0 {
            let Agreed { payload, cannot } = party.agree_with(machine, question, |_, cannot| prepare(cannot))?;
            finish(&payload, cannot)
        } else {
            let (ranks, limits) = (party.size(), party.limits);
            let mut told = |payload: Vec<u8>, cannot| {
                // Servers are told the transfer itself, so rank 0 makes it before it decides.
                let (mut compiled, decision, roots) = finish(&payload, cannot)?;
                compiled.transfer = compiled.transfer.among(ranks);
                let told = served::opening(&payload, &what, &compiled.transfer, limits);
                made = Some((compiled, decision, roots));
                Ok(told)
            };
            let Agreed { payload, cannot } = party.agree_with(machine, question, |_, cannot| {
                prepare(cannot).map(|payload| payload.and_then(|payload| told(payload, cannot)))
            })?;
            let heard = made.map_or_else(|| finish(&served::payload(&payload)?, cannot), Ok);
            heard.map(|(compiled, decision, roots)| {
                (Compiled { transfer: compiled.transfer.among(ranks), ..compiled }, decision, roots)
            })
        };
        // All ranks make the same; one that cannot has met something that nobody could foresee.
        compiled.map_err(|fault| party.abandon(machine, fault.context(&what)))
    }

    /// Makes what was written below durable, on all ranks, then lets rank 0 go on. What went wrong in a call of `target`
    /// that nobody waited for is the failure of this one.
    pub(crate) fn sync_and(&self, end: End, target: u64, publish: Publish) -> Result<(), Fault> {
        let End { what, fields, sync, fault } = end;
        self.line().check_process().map_err(|fault| fault.context(&what))?;
        let mut member = self.member();
        let Member { machine, party, .. } = &mut *member;
        self.heed_environment(machine, party)?;
        let noted = self.begin_note(machine, party, &what, Kind::Commit);
        let mut question = Question::opening(what.clone(), fields, fault);
        question.stores = publish.work.is_some();
        if question.fault.is_none() {
            self.bring_failure(party, &mut question, target);
            question.fault = question.fault.map(|fault| fault.context(&what));
        }
        let sync = sync.filter(|_| party.poisoned().is_none());
        let synced = self.synced_below(machine, party, &mut question, sync.as_deref());
        let seconds = synced.as_ref().ok().copied();
        let Publish { mut work, at_once } = publish;
        let works = work.is_some();
        let result = synced.and_then(|_| {
            let work = |desk: &Desk| if works { worked(desk, &mut work, at_once) } else { Some(Ok(Vec::new())) };
            self.decided(machine, party, question, work).map(|_| ())
        });
        if let Some(below) = sync.filter(|_| party.rank() == 0) {
            self.planning().synced(&below, seconds.filter(|_| result.is_ok()));
        }
        self.end_note(machine, party, noted, result.as_ref().err());
        self.ended(machine, party, result)
    }

    /// Makes durable what was written below a name, if one is given; what goes wrong on this rank is for the agreement.
    /// Gives how long it took this rank \[s\].
    fn synced_below(
        &self,
        machine: &mut Machine,
        party: &mut Party,
        question: &mut Question,
        below: Option<&str>,
    ) -> Result<f64, Fault> {
        let mut walked = Walked::default();
        match below {
            Some(below) if self.servers() > 0 => served::sync_servers(machine, party, question.clone(), below)?,
            Some(below) if question.fault.is_none() => {
                let watched = Watched::by_nobody(&question.what, self.line());
                match synced(machine, party, below, watched)? {
                    Ok(done) => walked = done,
                    Err(fault) => question.fault = Some(fault),
                }
            }
            _ => {}
        }
        Ok(walked.sync_ns as f64 / 1e9)
    }
}

struct Opening<'a> {
    question: Question,
    target: Option<Arc<Mutex<Box<dyn Target>>>>,
    compile: Compile<'a>,
    at_once: bool,
}

type Opened = (Compiled, Decision, Vec<Root>);

/// Begins work on rank 0 and gives what came of it, once it is known.
fn worked(desk: &Desk, work: &mut Option<Work>, at_once: bool) -> Option<Result<Vec<u8>, Fault>> {
    if let Some(work) = work.take() {
        desk.begin(work, at_once);
    }
    desk.poll()
}

/// Roots as a rank needs them: ranks of one process see the same.
pub(crate) fn seen_by(mut roots: Vec<Root>, one_process: bool) -> Vec<Root> {
    if one_process {
        roots.iter_mut().for_each(|root| root.proofs.clear());
    }
    roots
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that ends something: what is done, what all ranks must mean by it, and what is made durable before.
pub(crate) struct End {
    pub(crate) what: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) sync: Option<String>,
    pub(crate) fault: Option<Fault>,
}

impl End {
    /// What is called, on which target: one rank that closes this file while others publish that step would else be
    /// taken for one of them.
    pub(crate) fn of(what: impl Into<String>, called: &str, target: &str) -> End {
        let fields = vec![("operation".into(), called.into()), ("target".into(), target.into())];
        End { what: what.into(), fields, sync: None, fault: None }
    }

    pub(crate) fn and(mut self, name: &str, value: impl Into<String>) -> End {
        self.fields.push((name.into(), value.into()));
        self
    }
}

/// What rank 0 does at the end of a call, if anything.
pub(crate) struct Publish {
    work: Option<Work>,
    at_once: bool,
}

impl Publish {
    pub(crate) fn nothing() -> Publish {
        Publish { work: None, at_once: true }
    }

    pub(crate) fn by(at_once: bool, work: impl FnOnce() -> Result<(), Fault> + Send + 'static) -> Publish {
        Publish { work: Some(Box::new(move || work().map(|()| Vec::new()))), at_once }
    }
}

/// Who is told how far a transfer is.
pub(crate) struct Watched<'a> {
    what: &'a str,
    total: u64,
    /// By how much this rank's bytes stand for all.
    scale: u64,
    observer: Option<&'a mut Observer>,
    line: &'a Line,
}

impl<'a> Watched<'a> {
    pub(crate) fn by_nobody(what: &'a str, line: &'a Line) -> Watched<'a> {
        Watched { what, total: 0, scale: 1, observer: None, line }
    }
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
pub(crate) fn run(
    machine: &mut Machine,
    party: &mut Party,
    mut walk: Walk,
    mut watched: Watched,
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
        let waits = walk.waits();
        if result.is_some() { None } else { Some(Waits { text: format!("{}: {}", watched.what, waits.text), ..waits }) }
    })?;
    Ok(result.expect("driven to its end"))
}

/// Carries out this rank's part of a transfer that all agreed on.
pub(crate) fn moved(
    machine: &mut Machine,
    party: &mut Party,
    (transfer, users, mine): (Arc<Transfer>, Vec<Exposed>, BTreeMap<u32, Vec<Mine>>),
    vetted: Option<Fault>,
    parameters: &Parameters,
    watched: Watched,
) -> Result<Result<Walked, Fault>, Fault> {
    let views: Vec<_> = users.iter().map(|user| user.view.clone()).collect();
    let begin_ns = machine.clock().stamp_ns();
    if may_refuse(&transfer) {
        let fault = vetted.map(|fault| fault.context(watched.what));
        let question = Question { what: watched.what.into(), fault, ..Question::default() };
        party.agree(machine, question, || Ok(Vec::new()))?;
    }
    let facts = Arc::new(learn(machine, party, watched.what, &transfer, parameters, mine)?);
    if let Some(trace) = &mut party.trace {
        trace.push(Span::plain(Kind::Plan, begin_ns, machine.clock().stamp_ns()));
    }
    let program = parameters.strategy.program(&transfer, parameters, &facts, party.rank(), &views);
    let names = transfer.asks.iter().map(|ask| ask.name.clone()).collect();
    let walked = run(machine, party, Walk::new(program, users).with_names(names), watched);
    let walked = walked?;
    machine.release_files();
    Ok(walked)
}

/// Makes durable what this rank wrote to objects whose names begin so.
pub(crate) fn synced(
    machine: &mut Machine,
    party: &mut Party,
    below: &str,
    watched: Watched,
) -> Result<Result<Walked, Fault>, Fault> {
    let step = Step { id: 0, round: 0, after: After::none(), action: Action::Sync { below: [below.into()].into() } };
    let program = Program { lanes: vec![Box::new(std::iter::once(step))], ..Program::idle() };
    run(machine, party, Walk::new(program, Vec::new()), watched)
}

/// What a rank walks: the transfer that all agreed on, and its own arrays.
pub(crate) struct Compiled {
    pub(crate) transfer: Arc<Transfer>,
    /// The arrays, by the numbers under which they are exposed.
    pub(crate) users: Vec<Exposed>,
    /// Pieces of this rank that no distribution describes.
    pub(crate) mine: BTreeMap<u32, Vec<Mine>>,
    /// What is wrong with this rank's own arrays; it takes part all the same and says so at the end.
    pub(crate) fault: Option<Fault>,
    /// What it found wrong with elements that it would write, and what all hear of before bytes move, if they
    /// [may refuse](may_refuse) to.
    pub(crate) vetted: Option<Fault>,
}

/// Whether ranks agree once more before they write, on what each found in its own elements: where an array exists already,
/// of which rank 0 alone knew the type before. It follows from the transfer, since dedicated servers know nothing else.
fn may_refuse(transfer: &Transfer) -> bool {
    transfer.direction == Direction::Write
        && transfer.asks.iter().any(|ask| {
            let exists = ask.stored.is_replaced();
            let nan_matters = ask.memory.kind.has_nan() && ask.stored.element.kind.is_integer();
            exists && (nan_matters || ask.spread == Spread::Explicit)
        })
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
    for (from, told) in party.tell(machine, what, told)? {
        facts.hear(from, told);
    }
    if transfer.direction == Direction::Write {
        let fault = facts.overlap(transfer, parameters).map(|overlap| overlapping(what, transfer, &overlap));
        let question = Question { what: what.into(), fault, ..Question::default() };
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

/// Makes a transfer of what rank 0 told, and of what some rank cannot do.
pub(crate) type Compile<'a> = Box<dyn FnOnce(&[u8], Ways) -> Result<Compiled, Fault> + 'a>;

/// What is written or read, as rank 0 sees it. It owns what it needs, since its work may be done on another thread.
pub(crate) trait Target: Send {
    /// When all ranks agree: makes ready, chooses, and tells. That begins with the parameters and the roots. Told what some
    /// rank cannot do.
    fn prepare(&mut self, cannot: Ways) -> Result<Vec<u8>, Fault>;
    /// When all ranks are done: makes it visible.
    fn publish(&mut self) -> Result<Vec<u8>, Fault> {
        Ok(Vec::new())
    }
    /// When it failed: takes away what is not visible. Told whether data may have moved.
    fn undo(&mut self, _moved: bool) {}
    /// When it failed in a way that nobody knows who still writes.
    fn abandon(&mut self) {}
    /// When it is visible, but perhaps not durable: keeps what it replaced.
    fn keep(&mut self) {}
    /// When all ranks know that it succeeded: removes what it replaced, which may take long.
    fn tidy(&mut self) {}
}

/// A collective transfer, as seen by one rank.
pub(crate) struct Call<'a> {
    /// What is done, for messages.
    pub(crate) what: String,
    /// What must be the same on all ranks.
    pub(crate) fields: Vec<(String, String)>,
    /// What this rank cannot do, and others perhaps can.
    pub(crate) cannot: Ways,
    /// What is wrong on this rank already.
    pub(crate) prepared: Option<Fault>,
    /// On rank 0: what is written or read.
    pub(crate) target: Box<dyn FnOnce() -> Box<dyn Target> + 'a>,
    /// On all ranks: the transfer, from what rank 0 told.
    pub(crate) compile: Compile<'a>,
    /// Whether there is anything to do to make it visible.
    pub(crate) publishes: bool,
    /// Whether rank 0's work with names is done on its own thread.
    pub(crate) at_once: bool,
}
