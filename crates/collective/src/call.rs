//! A collective call that moves arrays: agree, move, agree, publish.

use crate::Decode;
use crate::agreement::{Agreement, Begin, syncs_of};
use crate::alike::{Lying, Parts, TOGETHER, cannot_say, runs};
use crate::array::LocalArray;
use crate::compiling::{Compiled, Compiling, News, ReadTexts};
use crate::decision::Decision;
use crate::described::with_arrays;
use crate::holding::Exposure;
use crate::moving::Moving;
use crate::preparing::Preparing;
use crate::repeats::Repeats;
use crate::report::{Measured, Report, bytes_of_each};
use crate::request::{ArrayRequest, reach};
use crate::served;
use crate::target::Target;
use crate::telling::opened::Announced;
use hyperslab_layout::stored::Change;
use hyperslab_layout::{Casting, Policies};
use hyperslab_plan::{Beside, Direction, Parameters, Transfer};
use hyperslab_walk::trace::Kind;
use hyperslab_walk::{
    Agreed, Awaited, Compared, Failed, Party, PlacedChunk, Question, ToldPlaces, Votes, Waits, Walked,
};
use hyperslab_world::{Fault, FaultKind, Root, World, Writer};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What this rank brings to a call.
pub struct Arguments {
    /// What is done, for messages.
    pub what: String,
    /// What must be the same on all ranks, besides the arrays.
    pub compared: Compared,
    /// What is wrong on this rank already.
    pub fault: Option<Fault>,
    /// Which way.
    pub direction: Direction,
    /// What is asked for.
    pub arrays: Vec<ArrayRequest>,
    /// This rank's part of each array: one local array, or one for each of its boxes. Fresh ones are read into when not given.
    pub locals: Option<Vec<Vec<LocalArray>>>,
    /// Which changes of the element type are allowed.
    pub casting: Casting,
    /// What is promised of what is written.
    pub policies: Policies,
    /// Whether arrays may lie in one object, so that those that follow each other there are moved as one.
    pub together: bool,
    /// On rank 0: what is written or read.
    pub target: Option<Box<dyn Target>>,
    /// Whether there is anything to do to make it visible.
    pub publishes: bool,
    /// Whether rank 0's work with names is done on its own thread.
    pub at_once: bool,
}

/// What a call gave.
pub struct Done {
    /// The arrays that were read into.
    pub arrays: Vec<LocalArray>,
    /// What it did.
    pub report: Report,
    /// Of each array, of several that moved as one for all of them, how many elements this rank's part had: fewer than asked
    /// for where a file ended.
    pub elements: Vec<u64>,
    /// How many calls wait on each rank that could follow as one.
    pub waiting: u32,
    /// What an earlier change did not end, and this one has.
    pub ended: Vec<String>,
}

type Shared = Arc<Mutex<Box<dyn Target>>>;

fn lock(target: &Shared) -> MutexGuard<'_, Box<dyn Target>> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Such a call, under way on one rank.
pub struct Call {
    what: String,
    direction: Direction,
    policies: Policies,
    together: bool,
    casting: Casting,
    /// This rank, and how many there are that ask.
    at: (u32, u32),
    arrays: Arc<[ArrayRequest]>,
    locals: Option<Vec<Vec<LocalArray>>>,
    /// The parts, where it is known how this rank holds the arrays before it is known how they are stored.
    parts: Option<Parts>,
    question: Option<Question>,
    target: Option<Shared>,
    publishes: bool,
    at_once: bool,
    decode: Decode,
    stage: Stage,
    /// Of each array of the transfer, the number of the first array of the call that it is.
    firsts: Vec<usize>,
    /// When it began, and when it was open \[ns\].
    times: (u64, u64),
    /// On rank 0, how long its syncs took in the opening \[ns\].
    synced_ns: u64,
    opened: Option<Opened>,
    /// Calls that may come again, and what to keep of this one once it has succeeded.
    repeats: Repeats,
    news: Option<News>,
    /// The same transfer where chunks are read whole, which tells the one whose checksum is wrong.
    strictly: Option<Strictly>,
    /// What is wrong with this rank's own arrays; it takes part all the same and says so at the end.
    fault: Option<Fault>,
    given: Vec<LocalArray>,
    moved: Vec<u64>,
    /// What texts are read into.
    texts: Vec<ReadTexts>,
    report: Option<Report>,
    /// How many calls wait on this rank, if anybody asks.
    waiting: Option<Box<dyn Fn() -> u32 + Send>>,
}

enum Stage {
    New,
    Opening(Agreement),
    Moving(Box<Moving>),
    Closing(Agreement),
    Over,
}

/// A transfer once more, in another way.
type Strictly = (Arc<Transfer>, Exposure, (Parameters, Arc<[Beside]>));

/// What all ranks agreed on.
struct Opened {
    transfer: Arc<Transfer>,
    decision: Decision,
}

impl Call {
    /// A call of this rank, of so many that ask.
    pub fn new(world: &mut dyn World, at: (u32, u32), arguments: Arguments, decode: Decode) -> Call {
        let Arguments { what, compared, fault, direction, arrays, locals, casting, policies, .. } = arguments;
        let Arguments { target, publishes, at_once, together, .. } = arguments;
        let arrays: Arc<[ArrayRequest]> = arrays.into();
        let compared = compared.and(casting, move || vec![("casting".into(), format!("'{}'", casting.name()))]);
        let compared = with_arrays(compared, &arrays, direction);
        let (parts, unfit) = match Parts::known(&arrays, locals.as_deref(), at, together) {
            Ok(parts) => (parts, None),
            Err(unfit) => (None, Some(unfit)),
        };
        let cannot = match &parts {
            Some(parts) => parts.cannot(),
            // How they lie is not known yet.
            None if together && locals.is_some() && runs(&arrays).iter().any(|run| run.len() > 1) => TOGETHER,
            None => 0,
        };
        let fault = fault.or(unfit).map(|fault| fault.context(&what));
        let question = Question {
            stores: true,
            votes: Votes { cannot: cannot | cannot_say(&arrays), reach: reach(&arrays), ..Votes::default() },
            ..Question::opening(what.clone(), compared, fault)
        };
        let began = world.clock().stamp_ns();
        Call {
            what,
            direction,
            policies,
            together,
            casting,
            at,
            arrays,
            locals,
            parts,
            question: Some(question),
            target: target.map(|target| Arc::new(Mutex::new(target))),
            publishes,
            at_once,
            decode,
            stage: Stage::New,
            firsts: Vec::new(),
            times: (began, began),
            synced_ns: 0,
            opened: None,
            repeats: Repeats::default(),
            news: None,
            strictly: None,
            fault: None,
            given: Vec::new(),
            moved: Vec::new(),
            texts: Vec::new(),
            report: None,
            waiting: None,
        }
    }

    /// The same, on a communicator on which calls come again.
    #[must_use]
    pub fn among(self, repeats: Repeats) -> Call {
        Call { repeats, ..self }
    }

    /// Brings what went wrong in an earlier call of which nobody has heard, if nothing did in this one.
    pub fn bring(&mut self, failure: impl FnOnce() -> Option<Fault>) {
        if let Some(question) = self.question.as_mut().filter(|question| question.fault.is_none()) {
            question.fault = failure();
        }
    }

    /// Lets all ranks know how many calls wait on each of them that could follow as one: as many as this says at the end.
    #[must_use]
    pub fn before(self, waiting: impl Fn() -> u32 + Send + 'static) -> Call {
        Call { waiting: Some(Box::new(waiting)), ..self }
    }

    /// What all agreed on, once they have.
    pub fn opened(&self) -> Option<(&Arc<Transfer>, &Decision)> {
        self.opened.as_ref().map(|opened| (&opened.transfer, &opened.decision))
    }

    /// What this rank has moved so far.
    pub fn walked(&self) -> Walked {
        match (&self.stage, &self.report) {
            (Stage::Moving(moving), _) => moving.walked(),
            (_, Some(report)) => report.walked(),
            _ => Walked::default(),
        }
    }

    /// What it did, once this rank's part of the data has moved: its arrays may be used again.
    pub fn left(&self) -> Option<&Report> {
        self.report.as_ref()
    }

    /// Goes on; gives the outcome once it is over. A failure is the same on all ranks.
    pub fn poll(&mut self, world: &mut dyn World, party: &mut Party) -> Option<Result<Done, Fault>> {
        loop {
            let next = match &mut self.stage {
                Stage::New => self.open(party),
                Stage::Opening(agreement) => {
                    let agreed = agreement.poll(world, party)?;
                    self.synced_ns = agreement.synced_ns();
                    agreed.and_then(|agreed| self.start(world, party, agreed))
                }
                Stage::Moving(moving) => {
                    let moved = moving.poll(world, party)?;
                    let (placed, changed) = (moving.take_placed(), moving.has_changed());
                    moved.and_then(|moved| self.close(world, party, (moved, changed), placed))
                }
                Stage::Closing(agreement) => match agreement.poll(world, party)? {
                    Ok(agreed) if agreed.votes.sum != 0 && self.strictly.is_some() => self.read_again(world, party),
                    Ok(agreed) => {
                        let moved_ns = agreement.answered_ns();
                        return Some(Ok(self.done(world, party, &agreed, moved_ns)));
                    }
                    Err(fault) => Err(fault),
                },
                Stage::Over => return None,
            };
            match next {
                Ok(stage) => self.stage = stage,
                Err(fault) => return Some(Err(self.broken(world, party, fault))),
            }
        }
    }

    fn open(&mut self, party: &mut Party) -> Result<Stage, Fault> {
        let question = self.question.take().expect("it is asked once");
        let begin = self.target.clone().map(|target| -> Begin {
            let preparing = Preparing {
                what: self.what.clone(),
                arrays: self.arrays.clone(),
                lying: match (&self.parts, &self.locals) {
                    (Some(parts), _) => parts.lying(&self.arrays),
                    (None, locals) => Lying::of_locals(locals.as_deref().unwrap_or_default()),
                },
                casting: self.casting,
                moves: self.moves(),
                servers: served::has_servers(party).then(|| (party.size(), party.limits)),
                repeats: self.repeats.clone(),
            };
            let at_once = self.at_once;
            Box::new(move |votes| (Box::new(move || preparing.prepare(&mut lock(&target), votes)), at_once))
        });
        Agreement::open(party, question, begin).map(|agreement| Stage::Opening(agreement.with_servers()))
    }

    /// All ranks agreed, and rank 0 has told how.
    fn start(&mut self, world: &mut dyn World, party: &mut Party, agreed: Agreed) -> Result<Stage, Fault> {
        // All ranks make the same; one that cannot has met something that nobody could foresee.
        let compiling = Compiling {
            arrays: &self.arrays,
            moves: self.moves(),
            casting: self.casting,
            together: self.together,
            at: self.at,
            decode: self.decode,
            repeats: &self.repeats,
            served: served::has_servers(party),
        };
        let compiled = compiling.compile(&agreed, (self.parts.take(), self.locals.take()));
        let compiled = compiled.map_err(|fault| party.abandon(world, fault.context(&self.what)))?;
        let Compiled { transfer, opening, exposure, vetted, fault, given, firsts, moved, texts, news } = compiled;
        let Announced { decision, roots, beside } = opening;
        (self.fault, self.given, self.firsts, self.moved, self.news) = (fault, given, firsts, moved, news);
        self.texts = texts;
        let transfer = transfer.among(party.size());
        self.times.1 = world.clock().stamp_ns();
        if let Some(trace) = &mut party.trace {
            trace.decides(Kind::Commit);
        }
        enter(world, roots);
        let how = (decision.parameters.clone(), beside);
        let strict = transfer.in_whole_chunks().map(Arc::new);
        self.strictly = strict.map(|strict| (strict, exposure.clone(), how.clone()));
        let moving = Moving::begin(world, party, &self.what, (transfer.clone(), exposure), vetted, how);
        self.opened = Some(Opened { transfer, decision });
        Ok(Stage::Moving(Box::new(moving?)))
    }

    fn moves(&self) -> (Direction, Policies, u32) {
        (self.direction, self.policies, self.at.1)
    }

    /// The checksums of what was read in parts do not add up: somewhere a chunk is damaged, or was replaced meanwhile.
    fn read_again(&mut self, world: &mut dyn World, party: &mut Party) -> Result<Stage, Fault> {
        let (transfer, exposure, how) = self.strictly.take().expect("it was read in parts");
        Moving::begin(world, party, &self.what, (transfer, exposure), None, how)
            .map(|moving| Stage::Moving(moving.into()))
    }

    /// This rank's part has moved, or failed to.
    fn close(
        &mut self,
        world: &mut dyn World,
        party: &mut Party,
        (moved, changed): (Result<Walked, Fault>, bool),
        (placed, end): ToldPlaces,
    ) -> Result<Stage, Fault> {
        let (walked, fault) = match moved {
            Ok(walked) => (walked, self.fault.take()),
            Err(fault) => (Walked::default(), Some(fault)),
        };
        let fault = fault.or_else(|| self.texts.iter().find_map(|(array, parts)| array.tidy(parts).err()));
        let of_call = |mut placed: PlacedChunk| {
            let first = self.firsts.get(placed.chunk.array as usize);
            placed.chunk.array = first.map_or(u32::MAX, |first| *first as u32);
            placed
        };
        let target = self.target.as_ref().zip(end).filter(|_| fault.is_none());
        let told = target.map(|(target, end)| lock(target).placed(placed.into_iter().map(of_call).collect(), end));
        let fault = fault.or_else(|| told.and_then(Result::err));
        let fault = fault.map(|fault| fault.context(&self.what));
        self.report = self.opened.as_ref().map(|Opened { transfer, decision }| {
            let seconds = seconds_between(self.times.0, world.clock().stamp_ns());
            let (open, sync) = (seconds_between(self.times.0, self.times.1), walked.sync_ns as f64 / 1e9);
            let measured = Measured { open, moving: (seconds - open - sync).max(0.0), sync, ..Measured::default() };
            let each =
                if self.waiting.is_some() { bytes_of_each(&self.arrays, &self.firsts, transfer) } else { Vec::new() };
            Report::new(self.what.clone(), decision, transfer.stored_bytes(), (seconds, measured), walked).of_each(each)
        });
        let waiting = self.waiting.as_ref().map_or(0, |waiting| waiting());
        let votes = Votes { sum: walked.sum, waiting, changed, ..Votes::default() };
        let question =
            Question { what: self.what.clone(), fault, votes, stores: self.publishes, ..Question::default() };
        let begin = self.target.clone().filter(|_| self.publishes).map(|target| -> Begin {
            let (at_once, what) = (self.at_once, self.what.clone());
            let publish = move || {
                let mut target = lock(&target);
                target.publish().map_err(|fault| fault.context(what))?;
                Ok(tell_names(&target.ended()))
            };
            Box::new(move |_| (Box::new(publish), at_once))
        });
        let failed = self.target.clone().map(|target| -> Failed {
            Box::new(move |votes, fault| match fault.kind {
                FaultKind::Unsynced => fault,
                _ if votes.changed => fault.torn(lock(&target).torn()),
                _ => fault,
            })
        });
        let syncs_ns = [self.synced_ns, walked.sync_ns];
        let agreement = Agreement::open(party, question, begin)?;
        Ok(Stage::Closing(agreement.telling_syncs(syncs_ns).where_failed(failed)))
    }

    /// All is over; on rank 0 it is known when all ranks' parts had moved, unless they answered when they came to their queues.
    fn done(&mut self, world: &mut dyn World, party: &mut Party, agreed: &Agreed, moved_ns: Option<u64>) -> Done {
        self.stage = Stage::Over;
        let begin_ns = party.trace.is_some().then(|| world.clock().stamp_ns());
        self.afterwards(world, |target| target.tidy());
        if let Some((trace, begin_ns)) = party.trace.as_mut().zip(begin_ns) {
            let end_ns = world.clock().stamp_ns();
            trace.tidied((begin_ns, end_ns), &world.desk().spent());
        }
        if let Some(((groups, taken, votes), Opened { transfer, decision })) =
            self.news.take().zip(self.opened.as_ref())
        {
            let asked = (&self.arrays, (self.moves(), votes));
            self.repeats.kept().keep(asked, (groups, taken), (transfer, decision));
        }
        let report = self.report.take().expect("made before the last agreement");
        let (since, moved_ns) = (|ns| seconds_between(self.times.0, ns), moved_ns.filter(|_| self.waiting.is_none()));
        let (syncs_ns, ended) = syncs_of(&agreed.payload);
        let report = report.closed(moved_ns.map(since), since(world.clock().stamp_ns())).synced(syncs_ns);
        let (arrays, elements) = (std::mem::take(&mut self.given), std::mem::take(&mut self.moved));
        Done { arrays, report, elements, waiting: agreed.votes.waiting, ended }
    }

    /// Ends it, since it has failed on all ranks, perhaps while nobody polled it: what was begun is taken back, on rank 0 and
    /// after what it is at.
    pub fn broken(&mut self, world: &mut dyn World, party: &Party, fault: Fault) -> Fault {
        let poisoned = party.poisoned().is_some();
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let opening = matches!(stage, Stage::New | Stage::Opening(_)) && self.opened.is_none();
        world.compute().cut();
        if poisoned && !opening {
            world.store().cut();
        }
        let undo: fn(&mut dyn Target) = match (&stage, fault.kind) {
            (Stage::Over, _) => return fault,
            _ if opening => |target| target.undo(false),
            // It is visible.
            (Stage::Closing(_), FaultKind::Unsynced) => |target| target.keep(),
            _ if poisoned => |target| target.abandon(),
            // Who was told that pieces overlap, or cannot be converted, leaves with it; nothing was written.
            (Stage::New | Stage::Opening(_) | Stage::Moving(_), _) => |target| target.undo(false),
            // What was changed in place, if anything was, stays marked.
            (Stage::Closing(_), _) if fault.torn.is_empty() => |target| target.undo(false),
            (Stage::Closing(_), _) => |target| target.undo(true),
        };
        self.afterwards(world, undo);
        // Nobody knows what others have changed.
        if poisoned && !opening { fault.torn(self.in_place()) } else { fault }
    }

    /// The arrays that are written in place.
    fn in_place(&self) -> Vec<String> {
        let asks = self.opened.iter().flat_map(|opened| &opened.transfer.asks);
        let written = asks.filter(|ask| self.direction == Direction::Write && ask.stored.change != Change::Fresh);
        written.map(|ask| ask.name.clone()).collect()
    }

    /// Rank 0's work with the target, for which nobody waits.
    fn afterwards(&mut self, world: &mut dyn World, work: fn(&mut dyn Target)) {
        if let Some(target) = self.target.take() {
            world.desk().later(Box::new(move || work(&mut **lock(&target))), self.at_once);
        }
    }

    /// Carries it out, and waits for it; after a failure, for what takes back what was begun, so long at most. `watch` is told
    /// of it after each step.
    ///
    /// # Errors
    /// The one failure that all ranks get.
    pub fn carry_out(
        mut self,
        world: &mut dyn World,
        party: &mut Party,
        patience: Duration,
        watch: &mut dyn FnMut(&Call, &mut Party),
    ) -> Result<Done, Fault> {
        /// For what is given up because something does not answer.
        const GRACE: Duration = Duration::from_secs(1);
        let mut result = None;
        let driven = party.drive(world, &mut self, |call, world, party| {
            result = call.poll(world, party);
            watch(call, party);
            result.is_some()
        });
        let result = match driven {
            Ok(()) => result.expect("driven until it was there"),
            Err(fault) => Err(self.broken(world, party, fault)),
        };
        if result.is_err() {
            // Who hears that a call failed may look at once at what is there, and finds no lock of it.
            let limit = if party.poisoned().is_some() { GRACE } else { patience };
            party.linger(world, limit, |world| world.desk().is_idle());
        }
        result
    }
}

impl Stage {
    /// What of it waits.
    fn waiting(&self) -> Option<&dyn Awaited> {
        match self {
            Stage::Opening(agreement) | Stage::Closing(agreement) => Some(agreement),
            Stage::Moving(moving) => Some(&**moving),
            Stage::New | Stage::Over => None,
        }
    }
}

impl Awaited for Call {
    fn waits(&self) -> Waits {
        self.stage.waiting().map_or_else(Waits::default, Awaited::waits)
    }

    fn waits_for(&self) -> String {
        self.stage.waiting().map_or_else(String::new, Awaited::waits_for)
    }
}

/// Names as rank 0 tells them; none take no room.
fn tell_names(names: &[String]) -> Vec<u8> {
    names.iter().fold(Writer::default(), |w, name| w.bytes(name.as_bytes())).0
}

/// Lets the store know where objects of a transfer lie.
pub fn enter(world: &mut dyn World, mut roots: Vec<Root>) {
    if world.transport().is_one_process() {
        // All see the same.
        roots.iter_mut().for_each(|root| root.proofs.clear());
    }
    world.store().enter(roots.into());
}

fn seconds_between(begin_ns: u64, end_ns: u64) -> f64 {
    end_ns.saturating_sub(begin_ns) as f64 / 1e9
}
