//! A rehearsal: ranks that live through stages on an imagined machine. They agree and walk with the code that does so on
//! real machines.

use crate::calls::Range;
use crate::files::Files;
use crate::limits;
use crate::machine::{Machine, Size, WhatIf, Work};
use crate::metadata::Metadata;
use crate::order::files_in_order;
use crate::outcome::{Outcome, Span};
use crate::placing::DiskLayout;
use crate::world::RankWorld;
use hyperslab_layout::{Object, View};
use hyperslab_plan::profile::Profile;
use hyperslab_plan::{Facts, Parameters, Transfer};
use hyperslab_walk::trace::{self, Kind, Recorded};
use hyperslab_walk::{Consensus, Limits, Party, Question, Walk};
use hyperslab_world::{Exposed, Fault, FaultKind, MemoryStore};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Ranks from which on those that do not serve derive only so many steps ahead: each that waits takes about 1 KiB.
const MANY_RANKS: u32 = 2000;
const FEW_STEPS: usize = 16;

/// How systems of the 1990s behaved, where it differs. All of it also runs on threads: these are parameters of the walker
/// and of agreements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Period {
    /// Whether a send occupies its sender until the data have left (`MPI_Send`).
    pub blocking_sends: bool,
    /// Whether rank 0 tells one rank after another instead of along a tree.
    pub linear_start: bool,
    /// Steps that are derived ahead; as many as the walker likes when 0, but fewer on ranks that do not serve when there are
    /// very many of them.
    pub look_ahead: usize,
}

/// What one rank brings to a transfer.
pub struct Part {
    /// Its arrays, by the numbers under which they are exposed.
    pub users: Vec<Exposed>,
    /// What it knows of pieces without a closed form.
    pub facts: Arc<Facts>,
}

/// Says what a rank brings.
pub type Bring = Rc<dyn Fn(u32) -> Part>;

/// A transfer of all ranks.
#[derive(Clone)]
pub struct Move {
    /// What is asked.
    pub transfer: Arc<Transfer>,
    /// How it is done.
    pub parameters: Parameters,
    /// What each rank brings.
    pub bring: Bring,
}

/// Who takes part in a stage; the others go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// All ranks.
    All,
    /// The ranks that do not only serve.
    Clients,
    /// One rank.
    Rank(u32),
}

impl Who {
    fn has(self, rank: u32, size: Size) -> bool {
        match self {
            Who::All => true,
            Who::Clients => rank < size.ranks - size.servers,
            Who::Rank(only) => rank == only,
        }
    }
}

/// A stage in the life of ranks. Each begins it when it has ended the one before; nobody waits for the others but in
/// [`Stage::Agree`].
#[derive(Clone)]
pub enum Stage {
    /// All ranks agree, along the tree of a collective call.
    Agree,
    /// Data move.
    Move(Move),
    /// The program works for so long \[ns\].
    Work(Who, f64),
    /// A file is opened, closed, or asked about.
    Metadata(Who, Metadata),
    /// One range of a file is read or written by a plain call: offset and bytes are those of rank 0, and grow by `pitch`
    /// from rank to rank \[B\].
    Call {
        /// Who calls.
        who: Who,
        /// The file.
        object: Object,
        /// Where rank 0 begins \[B\].
        offset: u64,
        /// By how much each further rank begins behind the one before \[B\].
        pitch: u64,
        /// How much each moves \[B\].
        bytes: u64,
        /// Whether it is written.
        write: bool,
    },
}

/// All that a rehearsal needs.
pub struct Rehearsal {
    /// The machine.
    pub profile: Profile,
    /// The ranks on it.
    pub size: Size,
    /// What takes no time.
    pub what_if: WhatIf,
    /// How files lie on disks.
    pub on_disk: DiskLayout,
    /// Decides what is left to chance: rotation, places of blocks.
    pub seed: u64,
    /// How systems of the time behaved.
    pub period: Period,
    /// What ranks live through.
    pub stages: Vec<Stage>,
    /// Lengths of files \[B\], so that servers do not read ahead beyond their ends.
    pub lengths: Vec<(Object, u64)>,
    /// The contents of files when payloads carry bytes; without, they carry lengths only.
    pub contents: Option<MemoryStore>,
    /// Whether to write down what happens.
    pub traced: bool,
}

/// Moments between two questions whether the user wants to stop.
const TURNS: u64 = 1 << 14;

/// Whether to go on: nobody wants to stop, and virtual time is within its limit.
fn go_on(machine: &Machine, interrupted: &mut dyn FnMut() -> bool) -> Result<(), Fault> {
    if interrupted() {
        return Err(Fault::new(FaultKind::Interrupted, "the simulation was interrupted by the user"));
    }
    if machine.kernel.now_ns() < limits::TIME_NS {
        return Ok(());
    }
    let text = format!("the simulation on machine '{}' goes beyond 30 years of virtual time", machine.profile.name);
    Err(Fault::new(FaultKind::Invalid, text).hint("some number of the machine, or some stage, is far too slow"))
}

/// Takes a machine's events, and asks now and then whether to go on.
struct Pace<'a> {
    interrupted: &'a mut dyn FnMut() -> bool,
    turns: u64,
}

impl Pace<'_> {
    /// Lets time pass to the next event. Returns whether there was one.
    fn turn(&mut self, machine: &mut Machine) -> Result<bool, Fault> {
        self.turns += 1;
        if self.turns.is_multiple_of(TURNS) {
            go_on(machine, self.interrupted)?;
        }
        Ok(machine.turn())
    }
}

/// What a rank did in a stage, or in a part of it.
pub struct Lived {
    /// The rank.
    pub rank: u32,
    /// The stage.
    pub stage: usize,
    /// When the rank began it \[ns\].
    pub begin_ns: u64,
    /// Up to when this tells of it \[ns\].
    pub end_ns: u64,
    /// What it did.
    pub recorded: Recorded,
}

/// Is told what ranks did.
pub type Sink<'a> = &'a mut dyn FnMut(Lived);

/// Spans of a rank from which on its sink is told, also in the middle of a stage: so many are kept for each rank.
const SPANS_KEPT: usize = 128;

/// What a rank is at.
enum At {
    Between,
    Agreeing(Box<Consensus>),
    Walking(Box<Walk>),
    Waiting,
}

/// One rank.
struct Rank {
    world: RankWorld,
    party: Party,
    stage: usize,
    begun_ns: u64,
    at: At,
}

impl Rehearsal {
    /// Runs it to its end.
    ///
    /// # Errors
    /// When a rank fails, or when nothing moves any more before all ranks are through; the text names the seed.
    pub fn run(self) -> Result<Outcome, Fault> {
        self.run_unless(&mut || false)
    }

    /// The same, unless it is interrupted, which is asked now and then.
    ///
    /// # Errors
    /// As [`Rehearsal::run`], and when it is interrupted.
    pub fn run_unless(self, interrupted: &mut dyn FnMut() -> bool) -> Result<Outcome, Fault> {
        self.run_recorded(interrupted, None)
    }

    /// The same, telling what ranks did: those of real machines, in virtual time.
    ///
    /// # Errors
    /// As [`Rehearsal::run_unless`].
    pub fn run_recorded(self, interrupted: &mut dyn FnMut() -> bool, mut sink: Option<Sink>) -> Result<Outcome, Fault> {
        limits::check(&self)?;
        let files = Files::new(&self.profile, self.size, self.what_if, self.on_disk, self.seed, self.contents.clone());
        let mut machine = Machine::new(&self.profile, self.size, self.what_if, files, self.contents.is_some());
        machine.trace = self.traced.then(String::new);
        let files = files_in_order(&self.lengths);
        let mut in_order: Vec<(&Object, (u32, u64))> = files.iter().map(|(object, &file)| (object, file)).collect();
        in_order.sort_unstable_by_key(|file| file.1);
        for (object, (_, bytes)) in in_order {
            machine.files.number(object, bytes);
        }
        let machine = Rc::new(RefCell::new(machine));
        let mut ranks: Vec<Rank> = (0..self.size.ranks).map(|rank| self.rank(&machine, rank, sink.is_some())).collect();
        let mut spans = vec![Span::default(); self.stages.len()];
        for (number, rank) in ranks.iter_mut().enumerate() {
            self.advance(&machine, rank, number as u32, &mut spans, &mut sink)?;
        }
        let mut pace = Pace { interrupted, turns: 0 };
        loop {
            loop {
                let next = machine.borrow_mut().next_ready();
                let Some(rank) = next else { break };
                self.advance(&machine, &mut ranks[rank as usize], rank, &mut spans, &mut sink)?;
            }
            if !pace.turn(&mut machine.borrow_mut())? {
                break;
            }
        }
        self.all_through(&ranks)?;
        drop(ranks);
        let mut machine = machine.borrow_mut();
        machine.flush_all();
        while pace.turn(&mut machine)? {}
        go_on(&machine, pace.interrupted)?;
        Ok(Outcome::new(&machine, spans))
    }

    fn rank(&self, machine: &Rc<RefCell<Machine>>, rank: u32, recorded: bool) -> Rank {
        let mut party = Party::new(rank, self.size.ranks, Limits::default());
        if self.period.linear_start {
            party = party.with_arity(self.size.ranks);
        }
        let world = RankWorld::new(machine, rank);
        // Time is virtual: there is nothing to measure.
        party.trace = recorded.then(Box::default);
        Rank { world, party, stage: 0, begun_ns: 0, at: At::Between }
    }

    /// Goes on with a rank as far as it can.
    fn advance(
        &self,
        machine: &Rc<RefCell<Machine>>,
        rank: &mut Rank,
        number: u32,
        spans: &mut [Span],
        sink: &mut Option<Sink>,
    ) -> Result<(), Fault> {
        rank.party.pump(&mut rank.world)?;
        while let Some(stage) = self.stages.get(rank.stage) {
            if let At::Between = rank.at {
                rank.begun_ns = machine.borrow().kernel.now_ns();
                spans[rank.stage].begin(rank.begun_ns);
                rank.at = self.begin(machine, stage, &mut rank.party, number);
            }
            let over = match &mut rank.at {
                At::Between => true,
                At::Agreeing(call) => {
                    call.poll(&mut rank.world, &mut rank.party, &mut || Ok(Vec::new())).transpose()?.is_some()
                }
                At::Walking(walk) => walk.poll(&mut rank.world, &mut rank.party).transpose()?.is_some(),
                At::Waiting => std::mem::take(&mut machine.borrow_mut().mail[number as usize].woken),
            };
            let now = machine.borrow().kernel.now_ns();
            if !over {
                tell(sink, rank, number, now, SPANS_KEPT);
                return Ok(());
            }
            spans[rank.stage].end(now);
            note_plain(rank, stage, now);
            tell(sink, rank, number, now, 1);
            rank.at = At::Between;
            rank.stage += 1;
        }
        Ok(())
    }

    /// Begins a stage.
    fn begin(&self, machine: &Rc<RefCell<Machine>>, stage: &Stage, party: &mut Party, rank: u32) -> At {
        match stage {
            // As one does at whose end rank 0 makes something visible.
            Stage::Agree => {
                let question = Question { stores: true, ..Question::default() };
                At::Agreeing(Box::new(Consensus::new(party, question)))
            }
            Stage::Move(asked) => At::Walking(Box::new(self.walk(asked, rank))),
            Stage::Work(who, _) | Stage::Metadata(who, _) | Stage::Call { who, .. } if !who.has(rank, self.size) => {
                At::Between
            }
            Stage::Work(_, ns) => {
                let mut machine = machine.borrow_mut();
                let processor = machine.processor(rank);
                let end = machine.work(processor, Work::Application, *ns);
                machine.kernel.at(end, move |machine| machine.post(rank, |mail| mail.woken = true));
                At::Waiting
            }
            Stage::Metadata(_, kind) => {
                machine.borrow_mut().metadata(*kind, rank);
                At::Waiting
            }
            Stage::Call { object, offset, pitch, bytes, write, .. } => {
                let then = Box::new(move |machine: &mut Machine| machine.post(rank, |mail| mail.woken = true));
                let mut machine = machine.borrow_mut();
                let (file, offset) = (machine.files.number(object, 0), offset + pitch * u64::from(rank));
                let range = Range { file, offset, bytes: *bytes, write: *write, direct: false };
                machine.plain_call(rank, range, then);
                At::Waiting
            }
        }
    }

    /// The walk of a rank.
    fn walk(&self, asked: &Move, rank: u32) -> Walk {
        let Part { users, facts } = (asked.bring)(rank);
        let views: Vec<Arc<View>> = users.iter().map(|user| user.view.clone()).collect();
        let strategy = asked.parameters.strategy;
        let program = strategy.program(&asked.transfer, &asked.parameters, &facts, rank, &views);
        let walk = Walk::new(program, users);
        let walk = if self.period.blocking_sends { walk.with_blocking_sends() } else { walk };
        let serves = asked.parameters.servers.contains(&rank);
        match self.period.look_ahead {
            0 if !serves && self.size.ranks > MANY_RANKS => walk.with_window(FEW_STEPS),
            0 => walk,
            steps => walk.with_window(steps),
        }
    }

    /// Whether all ranks came to the end.
    fn all_through(&self, ranks: &[Rank]) -> Result<(), Fault> {
        let waits = |rank: &Rank| match &rank.at {
            At::Agreeing(call) => call.waits_for(),
            At::Walking(walk) => walk.waits_for(),
            _ => "waits for the machine".into(),
        };
        let stuck = ranks.iter().enumerate().filter(|(_, rank)| rank.stage < self.stages.len());
        let stuck: Vec<String> = stuck
            .take(8)
            .map(|(number, rank)| format!("rank {number}, stage {}: {}", rank.stage, waits(rank)))
            .collect();
        if stuck.is_empty() {
            return Ok(());
        }
        let text = format!("nothing moves any more (seed {}):\n  {}", self.seed, stuck.join("\n  "));
        Err(Fault::new(FaultKind::Timeout, text))
    }
}

/// Records a stage that is neither agreed on nor walked, if the rank took part.
fn note_plain(rank: &mut Rank, stage: &Stage, now: u64) {
    let kind = match stage {
        Stage::Agree | Stage::Move(_) => return,
        Stage::Work(..) => Kind::Application,
        Stage::Metadata(..) => Kind::Metadata,
        Stage::Call { write, .. } => {
            if *write {
                Kind::Write
            } else {
                Kind::Read
            }
        }
    };
    let Some(trace) = rank.party.trace.as_mut().filter(|_| now > rank.begun_ns) else { return };
    let span = trace::Span::plain(kind, rank.begun_ns, now);
    let (object, bytes) = match stage {
        Stage::Call { object, bytes, .. } => (Some(object.name.clone()), *bytes),
        Stage::Work(..) => (Some("work".into()), 0),
        _ => (None, 0),
    };
    trace.push(trace::Span { object, bytes, ..span });
}

/// Tells what a rank did, once there are so many spans.
fn tell(sink: &mut Option<Sink>, rank: &mut Rank, number: u32, now: u64, least: usize) {
    let (Some(sink), Some(trace)) = (sink, &mut rank.party.trace) else { return };
    if trace.len() >= least {
        let (stage, begin_ns, recorded) = (rank.stage, rank.begun_ns, trace.take());
        sink(Lived { rank: number, stage, begin_ns, end_ns: now, recorded });
    }
}
