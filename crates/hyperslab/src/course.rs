//! The doors of collective calls: each waits for the calls before it, drives one of the state machines of `collective`, and
//! lets others see how it goes: the queue, an observer, a trace, what is learned of plans.

use crate::apart::RankMounts;
use crate::comm::{Comm, Member, Observer};
use crate::crew::{self, Counted};
use crate::line::{ANY_TARGET, Line, NO_TARGET};
use crate::recording::Noted;
use crate::said::quoted;
use hyperslab_collective::attempts::Home;
use hyperslab_collective::{Agreement, Arguments, Begin, Call, Done, Ending, Fields, served};
use hyperslab_format::hdf5::Pipeline;
use hyperslab_format::zarr::codec_from_bytes;
use hyperslab_layout::{Codec, Numbering};
use hyperslab_real::Machine;
use hyperslab_walk::trace::Kind;
use hyperslab_walk::{Awaited, Limits, Party, Question, Votes, Waits, Walk, Walked};
use hyperslab_world::{Fault, FaultKind, Mount, Names, Root, Work, World};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

/// Makes a codec of what another rank told of it.
pub fn decode(bytes: &[u8]) -> Option<Arc<dyn Codec>> {
    let filters = Pipeline::from_bytes(bytes).map(|filters| Arc::new(filters) as Arc<dyn Codec>);
    let numbering = || Numbering::from_bytes(bytes).map(|numbering| Arc::new(numbering) as Arc<dyn Codec>);
    filters.or_else(numbering).or_else(|| codec_from_bytes(bytes))
}

/// How often an observer is told.
const OBSERVE: Duration = Duration::from_millis(100);

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

/// The member in the hands of a call, which is counted while it lasts.
pub(crate) struct Turn<'a> {
    member: MutexGuard<'a, Member>,
    _counted: Counted,
}

impl Deref for Turn<'_> {
    type Target = Member;

    fn deref(&self) -> &Member {
        &self.member
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Member {
        &mut self.member
    }
}

impl Comm {
    /// Agrees that all ranks do the same, and gives everybody what rank 0 finds: what waits for nothing far away.
    pub(crate) fn agree(
        &self,
        question: Question,
        decide: impl FnOnce() -> Result<Vec<u8>, Fault>,
    ) -> Result<Vec<u8>, Fault> {
        if let Some(driver) = self.driver() {
            let mut decide = Some(decide);
            return driver.decide(question, &mut || decide.take().expect("it is decided once")());
        }
        self.as_call(question, |machine, party, question| {
            let (serves, mut decide) = (self.servers() > 0, Some(decide));
            let agreed = party.agree(machine, question, || {
                let told = decide.take().expect("it is decided once")()?;
                Ok(if serves { served::plain(&told) } else { told })
            })?;
            if serves { served::payload(&agreed) } else { Ok(agreed) }
        })
    }

    /// Agrees that all ranks do the same, and gives everybody what rank 0 finds or makes in storage. With `at_once`, on its
    /// own thread.
    pub(crate) fn agree_on(
        &self,
        question: Question,
        at_once: bool,
        work: impl FnOnce() -> Result<Vec<u8>, Fault> + Send + 'static,
    ) -> Result<Vec<u8>, Fault> {
        let question = Question { stores: true, ..question };
        self.agree_by(question, Box::new(move |_| (Box::new(work), at_once)))
    }

    /// The same for an opening, with what rank 0 finds out when the others know that it sets to work in storage: whether
    /// the names are known. What `waits` besides is done on another thread.
    pub(crate) fn agree_on_opening(
        &self,
        question: Question,
        names: Option<Arc<dyn Names>>,
        waits: bool,
        work: impl FnOnce(&dyn Names, bool) -> Result<Vec<u8>, Fault> + Send + 'static,
    ) -> Result<Vec<u8>, Fault> {
        let question = Question { stores: true, ..question };
        let begin: Begin = Box::new(move |_| {
            let names = names.expect("a rank without names has a fault");
            let at_hand = names.is_at_hand();
            let work: Work = Box::new(move || work(&*names, at_hand));
            (work, at_hand && !waits)
        });
        self.agree_by(question, begin)
    }

    /// The same, where what comes of it is no result of a call of the user: a failure that waits for one of those waits on.
    pub(crate) fn agree_aside(
        &self,
        question: Question,
        work: impl FnOnce() -> Result<Vec<u8>, Fault> + Send + 'static,
    ) -> Result<Vec<u8>, Fault> {
        self.check_usable()?;
        let (question, what) = (Question { stores: true, ..question.clone() }, question.what);
        let begin: Begin = Box::new(move |_| (Box::new(work), false));
        if let Some(driver) = self.driver() {
            return driver.agree(question, begin);
        }
        self.with_member(&what, |Member { machine, party, .. }| agreed(machine, party, question, begin))
    }

    /// Finds out whether all ranks see what was opened here by the mount of rank 0, which told of it. Collective, if there is one.
    pub(crate) fn compare_mounts(
        &self,
        of_root: Option<Mount>,
        home: &Home,
        writes: bool,
    ) -> Result<RankMounts, Fault> {
        let Some(mount) = of_root.filter(|_| self.size() > 1 || self.servers() > 0) else {
            return Ok(RankMounts::default());
        };
        let (place, has_another) = (home.shown(), !RankMounts::is_same(&mount, &*home.names));
        let rank = u64::from(self.rank());
        let votes = Votes { reach: has_another.then_some((rank, rank)), ..Votes::default() };
        let question = Question { votes, ..Question::opening(format!("open '{place}'"), Vec::new(), None) };
        // The first that has another.
        let first = |votes: Votes| votes.reach.map_or(u64::MAX, |(first, _)| first);
        let begin: Begin = Box::new(move |votes| (Box::new(move || Ok(first(votes).to_le_bytes().to_vec())), true));
        let told = self.agree_by(question, begin)?;
        let broken = |_| Fault::new(FaultKind::Peer, "which rank has another mount cannot be decoded");
        let first = told.try_into().map(u64::from_le_bytes).map_err(broken)?;
        // Dedicated servers have no vote.
        let alike = first.min(self.size().into()) as u32;
        let apart = (alike < self.size() || self.servers() > 0).then_some(mount);
        Ok(RankMounts::new(apart, alike, !has_another, (place, writes)))
    }

    /// The member for a collective call. One that blocks comes after all requests before it.
    fn settled_member(&self) -> Turn<'_> {
        let turn = self.turn();
        if !self.is_inside() {
            self.line().settle();
        }
        turn
    }

    /// The member for a call that is counted as one of this thread.
    pub(crate) fn turn(&self) -> Turn<'_> {
        let counted = self.counted();
        Turn { member: self.member(), _counted: counted }
    }

    /// Ends a call, before it begins, of a thread that was told to stop while it was in none.
    fn heed_crew(&self, machine: &mut Machine, party: &mut Party, what: &str) -> Result<(), Fault> {
        let refused = crew::refused(machine, party, what);
        refused.map_or(Ok(()), |fault| self.ended(machine, party, Err(fault)))
    }

    pub(crate) fn agree_by(&self, question: Question, begin: Begin) -> Result<Vec<u8>, Fault> {
        if let Some(driver) = self.driver() {
            return driver.agree(question, begin);
        }
        self.as_call(question, |machine, party, question| agreed(machine, party, question, begin))
    }

    /// A call that is one agreement.
    fn as_call(
        &self,
        mut question: Question,
        agreed: impl FnOnce(&mut Machine, &mut Party, Question) -> Result<Vec<u8>, Fault>,
    ) -> Result<Vec<u8>, Fault> {
        self.check_usable().map_err(|fault| fault.context(&question.what))?;
        let mut member = self.settled_member();
        let Member { machine, party, .. } = &mut *member;
        self.heed_crew(machine, party, &question.what)?;
        self.bring_failure(party, &mut question, NO_TARGET);
        self.heed_environment(machine, party)?;
        let noted = self.begin_note(machine, party, &question.what, Kind::Commit);
        let decided = agreed(machine, party, question);
        self.end_note(machine, party, noted, decided.as_ref().err());
        self.ended(machine, party, decided)
    }

    /// Meets all ranks before what joins them is freed, since freeing hears nothing of a rank that has left, or is in another
    /// call. Neither is waited for, and no call comes after this one.
    pub(crate) fn end_together(&self, machine: &mut Machine, party: &mut Party, limit: Duration) -> Result<(), Fault> {
        if self.size() == 1 || self.servers() > 0 {
            return Ok(());
        }
        let before = std::mem::replace(&mut party.limits.arrival, limit);
        let fields = vec![("operation".into(), "freeing the communicator".into())];
        let question = Question::opening("freeing a communicator", fields, None);
        let agreed = party.agree(machine, question, || Ok(Vec::new()));
        party.limits.arrival = before;
        if let Err(fault) = &agreed {
            party.leave(machine, fault.clone());
        }
        self.ended(machine, party, agreed).map(drop)
    }

    /// The end of a call. After a failure that ends the use of the communicator, nothing more of what it asked for may begin:
    /// others may go on where it left off. Who finds that it ended in a call that had returned before hears why.
    fn ended<T>(&self, machine: &mut Machine, party: &mut Party, result: Result<T, Fault>) -> Result<T, Fault> {
        if party.poisoned().is_some() {
            machine.store().cut();
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

    /// Brings to an agreement what went wrong in a call that nobody waited for. Where no agreement is possible any more,
    /// [`Comm::ended`] tells it.
    fn bring_failure(&self, party: &Party, question: &mut Question, target: u64) {
        if question.fault.is_none() && party.poisoned().is_none() {
            question.fault = self.line().take_failure(target);
        }
    }

    /// A call that some other file drives, from its beginning to its end.
    pub(crate) fn with_member<T>(
        &self,
        what: &str,
        call: impl FnOnce(&mut Member) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut member = self.settled_member();
        let Member { machine, party, .. } = &mut *member;
        self.heed_crew(machine, party, what)?;
        self.heed_environment(machine, party)?;
        let result = call(&mut member);
        let Member { machine, party, .. } = &mut *member;
        self.ended(machine, party, result)
    }

    /// Waits for all calls before, on all ranks.
    pub(crate) fn settle(&self, what: &str) -> Result<(), crate::Error> {
        Ok(self.sync_and(End::of(what, "settle", ""), ANY_TARGET, Publish::nothing())?)
    }

    /// Carries out a collective transfer.
    pub(crate) fn transfer(&self, arguments: Arguments) -> Result<Done, Fault> {
        self.check_usable().map_err(|fault| fault.context(&arguments.what))?;
        if let Some(driver) = self.driver() {
            return driver.transfer(arguments);
        }
        let mut member = self.settled_member();
        let Member { machine, party, observer } = &mut *member;
        self.heed_crew(machine, party, &arguments.what)?;
        self.heed_environment(machine, party)?;
        let mut noted = self.begin_note(machine, party, &arguments.what, Kind::Plan);
        // Only a rank that waits is told; the thread of the line must not call the user.
        let observer = observer.as_mut().filter(|_| !self.is_inside());
        let done = self.carry_out(machine, party, observer, arguments, &mut noted);
        self.end_note(machine, party, noted, done.as_ref().err());
        self.ended(machine, party, done)
    }

    fn carry_out(
        &self,
        machine: &mut Machine,
        party: &mut Party,
        observer: Option<&mut Observer>,
        arguments: Arguments,
        noted: &mut Noted,
    ) -> Result<Done, Fault> {
        let limits = party.limits;
        if self.is_inside() && self.line().needs_caller() {
            // A rank that computes for long moves no messages meanwhile, and that is allowed.
            party.limits.progress = limits.progress.max(limits.arrival);
        }
        let restoring = Restoring { party, limits };
        let party = &mut *restoring.party;
        let writes = arguments.direction == hyperslab_plan::Direction::Write;
        let mut call = Call::new(machine, (self.rank(), self.size()), arguments, decode).among(self.repeats());
        if self.is_inside() {
            call = call.before(self.waiting());
        }
        // Several calls as one would all fail.
        if party.poisoned().is_none() && !self.line().is_joined() {
            call.bring(|| self.line().take_failure(NO_TARGET));
        }
        let mut watching = Watching { line: self.line(), observer, told: Instant::now(), steps: 0 };
        let mut leaves = self.current().filter(|_| self.servers() > 0 && writes);
        let mut opened = false;
        let done = call.carry_out(machine, party, limits.progress, &mut |call, party| {
            if let Some((transfer, decision)) = call.opened().filter(|_| !std::mem::replace(&mut opened, true)) {
                noted.tell(party, transfer, decision);
            }
            watching.look(call);
            // Also when something went wrong here: no other rank can know that before the end.
            if let (Some(report), Some(current)) = (call.left(), leaves) {
                self.line().leave(current, report.clone());
                leaves = None;
            }
        })?;
        if let Some(current) = leaves {
            // All of it passed between two looks.
            self.line().leave(current, done.report.clone());
        }
        if party.rank() == 0 {
            self.plans().done(&done.report);
        }
        if self.is_inside() {
            self.line().agree(done.waiting);
        }
        Ok(done)
    }

    /// Makes what was written below durable, on all ranks, then lets rank 0 go on. What went wrong in a call of `target`
    /// that nobody waited for is the failure of this one.
    pub(crate) fn sync_and(&self, end: End, target: u64, publish: Publish) -> Result<(), Fault> {
        let End { what, fields, sync, publishing_syncs, fault } = end;
        self.check_usable().map_err(|fault| fault.context(&what))?;
        if let Some(driver) = self.driver() {
            return driver.end(Question::opening(what, fields, fault), sync, publish.0);
        }
        let mut member = self.settled_member();
        let Member { machine, party, .. } = &mut *member;
        self.heed_crew(machine, party, &what)?;
        self.heed_environment(machine, party)?;
        let noted = self.begin_note(machine, party, &what, Kind::Commit);
        let mut question = Question::opening(what.clone(), fields, fault);
        if question.fault.is_none() {
            self.bring_failure(party, &mut question, target);
            question.fault = question.fault.map(|fault| fault.context(&what));
        }
        let mut ending = Ending::new(question, sync, publish.0).synced_by_publishing(publishing_syncs);
        let (mut result, mut steps) = (None, 0);
        let driven = party.drive(machine, &mut ending, |ending, world, party| {
            result = ending.poll(world, party);
            if std::mem::replace(&mut steps, ending.walked().steps) != steps {
                self.line().moves();
            }
            result.is_some()
        });
        let result = driven.and_then(|()| result.expect("driven until it was there"));
        self.end_note(machine, party, noted, result.as_ref().err());
        self.ended(machine, party, result)
    }
}

/// Drives an agreement to its end.
fn agreed(machine: &mut Machine, party: &mut Party, question: Question, begin: Begin) -> Result<Vec<u8>, Fault> {
    let mut agreement = Agreement::open(party, question, Some(begin))?;
    let mut result = None;
    party.drive(machine, &mut agreement, |agreement, world, party| {
        result = agreement.poll(world, party);
        result.is_some()
    })?;
    result.expect("driven until it was there").map(|agreed| agreed.payload)
}

/// Who is told how far a call is.
struct Watching<'a> {
    line: &'a Line,
    observer: Option<&'a mut Observer>,
    told: Instant,
    steps: u64,
}

impl Watching<'_> {
    fn look(&mut self, call: &Call) {
        let walked = call.walked();
        if std::mem::replace(&mut self.steps, walked.steps) != walked.steps {
            self.line.moves();
        }
        let Some(observer) = self.observer.as_mut().filter(|_| self.told.elapsed() > OBSERVE) else { return };
        let Some((transfer, decision)) = call.opened().filter(|_| walked.steps > 0) else { return };
        self.told = Instant::now();
        // By how much this rank's bytes stand for all.
        let servers = &decision.parameters.servers;
        let scale = if servers.is_empty() { 1 } else { servers.len() as u64 };
        let total = transfer.stored_bytes();
        observer((walked.store_bytes * scale).min(total), total);
    }
}

/// A walk, and what it is for.
struct NamedWalk<'a> {
    what: &'a str,
    walk: Walk,
}

impl Awaited for NamedWalk<'_> {
    fn waits(&self) -> Waits {
        self.walk.waits()
    }

    fn waits_for(&self) -> String {
        format!("{}: {}", self.what, self.walk.waits_for())
    }
}

/// Walks a program to its end. The outer error is one that ended the call on all ranks.
pub(crate) fn run(
    machine: &mut Machine,
    party: &mut Party,
    (what, walk): (&str, Walk),
    line: &Line,
) -> Result<Result<Walked, Fault>, Fault> {
    let (mut result, mut steps) = (None, 0);
    party.begin_part();
    party.drive(machine, &mut NamedWalk { what, walk }, |NamedWalk { walk, .. }, world, party| {
        result = walk.poll(world, party);
        if std::mem::replace(&mut steps, walk.walked().steps) != steps {
            line.moves();
        }
        result.is_some()
    })?;
    Ok(result.expect("driven to its end"))
}

/// A call that ends something: what is done, what all ranks must mean by it, and what is made durable before.
pub(crate) struct End {
    pub(crate) what: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) sync: Option<Root>,
    /// Whether publishing makes durable what lies there, as far as rank 0 reaches it.
    pub(crate) publishing_syncs: bool,
    pub(crate) fault: Option<Fault>,
}

impl End {
    /// What is called, on which target: one rank that closes this file while others publish that step would else be
    /// taken for one of them.
    pub(crate) fn of(what: impl Into<String>, called: &str, target: &str) -> End {
        let fields = vec![("operation".into(), called.into()), ("file or store".into(), quoted(target))];
        End { what: what.into(), fields, sync: None, publishing_syncs: false, fault: None }
    }

    pub(crate) fn and(mut self, fields: Fields) -> End {
        self.fields.extend(fields);
        self
    }
}

/// What rank 0 does at the end of a call, if anything, and whether at once.
pub(crate) struct Publish(Option<(Work, bool)>);

impl Publish {
    pub(crate) fn nothing() -> Publish {
        Publish(None)
    }

    pub(crate) fn by(at_once: bool, work: impl FnOnce() -> Result<(), Fault> + Send + 'static) -> Publish {
        Publish(Some((Box::new(move || work().map(|()| Vec::new())), at_once)))
    }
}
