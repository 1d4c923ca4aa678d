//! The course of a collective call: agree, walk, agree, publish.

use crate::comm::{Comm, Member, Observer};
use crate::line::Line;
use crate::planning::Decision;
use crate::recording::Noted;
use crate::report::{Measured, Report};
use crate::served;
use hyperslab_plan::{Action, After, Direction, Facts, Mine, Overlap, Parameters, Program, Spread, Step, Transfer};
use hyperslab_real::Machine;
use hyperslab_walk::trace::{Kind, Span};
use hyperslab_walk::{Limits, Party, Question, Walk, Walked};
use hyperslab_world::{Exposed, Fault, FaultKind, Reader, World};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// Agrees that all ranks do the same, and gives everybody what rank 0 finds.
    pub(crate) fn agree(
        &self,
        mut question: Question,
        decide: impl FnMut() -> Result<Vec<u8>, Fault>,
    ) -> Result<Vec<u8>, Fault> {
        let mut member = self.member();
        self.bring_failure(&mut question, NO_TARGET);
        let Member { machine, party, .. } = &mut *member;
        self.heed_environment(machine, party)?;
        let noted = self.begin_note(machine, party, &question.what, Kind::Commit);
        let decided = self.decided(machine, party, question, decide);
        self.end_note(machine, party, noted, decided.as_ref().err());
        decided
    }

    /// Agrees on something that servers need not know.
    fn decided(
        &self,
        machine: &mut Machine,
        party: &mut Party,
        question: Question,
        mut decide: impl FnMut() -> Result<Vec<u8>, Fault>,
    ) -> Result<Vec<u8>, Fault> {
        if self.servers() == 0 {
            return party.agree(machine, question, decide);
        }
        let told = party.agree(machine, question, || decide().map(|payload| served::plain(&payload)))?;
        served::payload(&told)
    }

    /// Brings to an agreement what went wrong in a call that nobody waited for.
    fn bring_failure(&self, question: &mut Question, target: u64) {
        if question.fault.is_none() {
            question.fault = self.line().take_failure(target);
        }
    }

    /// Waits for all calls before, on all ranks.
    pub(crate) fn settle(&self, what: &str) -> Result<(), crate::Error> {
        Ok(self.sync_and(what, ANY_TARGET, None, || Ok(Vec::new()), None)?)
    }

    /// Carries out a collective transfer.
    pub(crate) fn transfer(&self, call: Call) -> Result<Report, Fault> {
        let mut member = self.member();
        let Member { machine, party, observer } = &mut *member;
        self.heed_environment(machine, party)?;
        let mut noted = self.begin_note(machine, party, &call.what, Kind::Plan);
        let report = self.carry_out(machine, party, observer, call, &mut noted);
        self.end_note(machine, party, noted, report.as_ref().err());
        report
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
        let Call { what, fields, durable, prepared, decide, compile, publish, mut undo, tidy } = call;
        let mut question = Question::opening(what.clone(), fields, prepared);
        self.bring_failure(&mut question, NO_TARGET);
        let opening = Opening { question, decide, compile, durable };
        let (Compiled { transfer, users, mine, fault }, decision) = self.open(machine, party, opening)?;
        let opened = started.elapsed();
        noted.tell(party, &transfer, &decision);
        let Decision { parameters, predicted, .. } = decision;
        let (bytes, writes) = (transfer.stored_bytes(), transfer.direction == Direction::Write);
        let scale = if parameters.servers.is_empty() { 1 } else { parameters.servers.len() as u64 };
        // Only a rank that waits is told; the thread of the line must not call the user.
        let observer = observer.as_mut().filter(|_| !self.is_inside());
        let watched = Watched { what: &what, total: bytes, scale, observer, line: self.line() };
        let moved = match moved(machine, party, (transfer, users, mine), &parameters, durable, watched) {
            // Who was told that pieces overlap leaves with it; nothing was written.
            Err(fault) if party.poisoned().is_none() => {
                if party.rank() == 0 {
                    undo(false);
                }
                return Err(fault);
            }
            moved => moved?,
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
        let lasts = publish.is_some();
        let question = Question { what: format!("end of {what}"), fault: outcome, lasts, ..Question::default() };
        let mut publish = publish.unwrap_or_else(|| Box::new(|| Ok(Vec::new())));
        if let Err(fault) = self.decided(machine, party, question, &mut *publish) {
            if party.rank() == 0 {
                undo(true);
            }
            return Err(Fault { text: fault.text.replacen("end of ", "", 1), ..fault });
        }
        if party.rank() == 0 {
            tidy();
        }
        let whole = started.elapsed().as_secs_f64();
        let measured = Measured { close: whole - seconds, ..report.measured };
        let report = Report { seconds: whole, measured, ..report };
        if party.rank() == 0 {
            self.planning().done(&report);
        }
        Ok(report)
    }

    /// Agrees on a transfer; gives it, and how it is carried out.
    fn open(&self, machine: &mut Machine, party: &mut Party, opening: Opening) -> Result<(Compiled, Decision), Fault> {
        let Opening { question, mut decide, compile, durable } = opening;
        let what = question.what.clone();
        let (mut compile, mut made) = (Some(compile), None);
        let mut finish = |payload: &[u8]| -> Result<(Compiled, Decision), Fault> {
            let compile = compile.take().expect("a transfer is made once");
            let decision = Reader::new(payload).bytes().and_then(Decision::from_bytes);
            let senseless = || Fault::new(FaultKind::Peer, "rank 0 sent parameters that make no sense");
            Ok((compile(payload)?, decision.ok_or_else(senseless)?))
        };
        let compiled = if self.servers() == 0 {
            let payload = party.agree(machine, question, &mut *decide)?;
            finish(&payload)
        } else {
            let (ranks, limits) = (party.size(), party.limits);
            let told = party.agree(machine, question, || {
                // Servers are told the transfer itself, so rank 0 makes it before it decides.
                let payload = decide()?;
                let (mut compiled, decision) = finish(&payload)?;
                compiled.transfer = compiled.transfer.among(ranks);
                let told = served::opening(&payload, &what, &compiled.transfer, durable, limits);
                made = Some((compiled, decision));
                Ok(told)
            })?;
            let heard = made.map_or_else(|| finish(&served::payload(&told)?), Ok);
            heard.map(|(compiled, decision)| {
                (Compiled { transfer: compiled.transfer.among(ranks), ..compiled }, decision)
            })
        };
        // All ranks make the same; one that cannot has met something that nobody could foresee.
        compiled.map_err(|fault| party.abandon(machine, fault.context(&what)))
    }

    /// Makes what was written below durable, on all ranks, then lets rank 0 go on. What went wrong in a call of `target`
    /// that nobody waited for is the failure of this one.
    pub(crate) fn sync_and(
        &self,
        what: &str,
        target: u64,
        sync: Option<String>,
        publish: impl FnMut() -> Result<Vec<u8>, Fault>,
        fault: Option<Fault>,
    ) -> Result<(), Fault> {
        let mut member = self.member();
        let Member { machine, party, .. } = &mut *member;
        self.heed_environment(machine, party)?;
        let noted = self.begin_note(machine, party, what, Kind::Commit);
        let mut question = Question::opening(what, Vec::new(), fault);
        if question.fault.is_none() {
            self.bring_failure(&mut question, target);
            question.fault = question.fault.map(|fault| fault.context(what));
        }
        let sync = sync.filter(|_| party.poisoned().is_none());
        let synced = self.synced_below(machine, party, &mut question, sync.as_deref());
        let seconds = synced.as_ref().ok().copied();
        let result = synced.and_then(|_| self.decided(machine, party, question, publish).map(|_| ()));
        if let Some(below) = sync.filter(|_| party.rank() == 0) {
            self.planning().synced(&below, seconds.filter(|_| result.is_ok()));
        }
        self.end_note(machine, party, noted, result.as_ref().err());
        result
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
    decide: Decide<'a>,
    compile: Compile<'a>,
    durable: bool,
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
        if result.is_some() { None } else { Some(format!("{}: {}", watched.what, walk.waits_for())) }
    })?;
    Ok(result.expect("driven to its end"))
}

/// Carries out this rank's part of a transfer that all agreed on.
pub(crate) fn moved(
    machine: &mut Machine,
    party: &mut Party,
    (transfer, users, mine): (Arc<Transfer>, Vec<Exposed>, BTreeMap<u32, Vec<Mine>>),
    parameters: &Parameters,
    durable: bool,
    watched: Watched,
) -> Result<Result<Walked, Fault>, Fault> {
    let views: Vec<_> = users.iter().map(|user| user.view.clone()).collect();
    let begin_ns = machine.clock().stamp_ns();
    let facts = Arc::new(learn(machine, party, watched.what, &transfer, parameters, mine)?);
    if let Some(trace) = &mut party.trace {
        trace.push(Span::plain(Kind::Plan, begin_ns, machine.clock().stamp_ns()));
    }
    let program = parameters.strategy.program(&transfer, parameters, &facts, party.rank(), &views);
    machine.shall_be_durable(durable);
    let walked = run(machine, party, Walk::new(program, users), watched);
    machine.shall_be_durable(false);
    let walked = walked?;
    if !durable && transfer.direction == Direction::Write {
        machine.forget_unsynced(transfer.objects_below());
    }
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

/// Makes a transfer of what rank 0 told.
pub(crate) type Compile<'a> = Box<dyn FnOnce(&[u8]) -> Result<Compiled, Fault> + 'a>;

/// Makes ready, on rank 0, and tells.
type Decide<'a> = Box<dyn FnMut() -> Result<Vec<u8>, Fault> + 'a>;

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
    pub(crate) decide: Decide<'a>,
    /// On all ranks: the transfer, from what rank 0 told.
    pub(crate) compile: Compile<'a>,
    /// On rank 0, when all ranks are done: make it visible, if there is anything to do for that.
    pub(crate) publish: Option<Decide<'a>>,
    /// On rank 0, when it failed: take away what is not visible. Told whether data may have moved.
    pub(crate) undo: Box<dyn FnMut(bool) + 'a>,
    /// On rank 0, when all ranks know that it succeeded: remove what it replaced, which may take long.
    pub(crate) tidy: Box<dyn FnOnce() + 'a>,
}
