//! A rehearsal: ranks that live through scenes on an imagined machine. What they do is done by the code that does so on real
//! machines.

use crate::contents::FileBytes;
use crate::faults::{Faults, LifeEnd, Upcoming};
use crate::files::Files;
use crate::limits;
use crate::machine::{Machine, Size, WhatIf};
use crate::names::Directories;
use crate::order::files_in_order;
use crate::outcome::{Outcome, Span};
use crate::placing::DiskLayout;
use crate::scene::{Scene, Task};
use crate::world::RankWorld;
use hyperslab_layout::Object;
use hyperslab_plan::profile::Profile;
use hyperslab_walk::trace::Recorded;
use hyperslab_walk::{Driving, Pace, Party};
use hyperslab_world::{Fault, FaultKind, MemoryStore, MemoryTree};
use std::cell::RefCell;
use std::rc::Rc;

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

/// What messages and requests carry.
#[derive(Clone, Default)]
pub enum Payload {
    /// Lengths only.
    #[default]
    Lengths,
    /// Bytes, which these objects keep.
    Objects(MemoryStore),
    /// Bytes, which the files of [`Rehearsal::tree`] keep.
    Files,
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
    /// Decides what is left to chance: rotation, places of blocks, tokens.
    pub seed: u64,
    /// How systems of the time behaved.
    pub period: Period,
    /// What ranks live through.
    pub scenes: Vec<Scene>,
    /// Files that all ranks have open from the beginning, and their lengths \[B\], so that servers do not read ahead beyond
    /// their ends.
    pub lengths: Vec<(Object, u64)>,
    /// What names are there at the beginning, and at the end; small files have their contents.
    pub tree: MemoryTree,
    /// What moves.
    pub payload: Payload,
    /// What goes wrong. Limits on waiting hold then, and a call that fails ends the program of a rank, not the rehearsal.
    pub faults: Option<Faults>,
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
struct Pacing<'a> {
    interrupted: &'a mut dyn FnMut() -> bool,
    turns: u64,
}

impl Pacing<'_> {
    /// Lets time pass to the next event. Returns whether there was one.
    fn turn(&mut self, machine: &mut Machine) -> Result<bool, Fault> {
        self.turns += 1;
        if self.turns.is_multiple_of(TURNS) {
            go_on(machine, self.interrupted)?;
        }
        Ok(machine.turn())
    }
}

/// What a rank did in an scene, or in a part of it.
pub struct Lived {
    /// The rank.
    pub rank: u32,
    /// The scene.
    pub scene: usize,
    /// When the rank began it \[ns\].
    pub begin_ns: u64,
    /// Up to when this tells of it \[ns\].
    pub end_ns: u64,
    /// What it did.
    pub recorded: Recorded,
}

/// Is told what ranks did.
pub type SpanListener<'a> = &'a mut dyn FnMut(Lived);

/// Spans of a rank from which on its listener is told, also in the middle of an scene: so many are kept for each rank.
const SPANS_KEPT: usize = 128;

/// One rank.
struct Rank {
    world: RankWorld,
    party: Party,
    scene: usize,
    begun_ns: u64,
    /// What it is at, and in which part of that.
    at: Option<(Box<dyn Task>, usize)>,
    /// How it waits, where it may wait in vain; when it looks again \[ns\].
    driving: Option<Driving>,
    looks_ns: u64,
    end: Option<LifeEnd>,
}

/// A rehearsal that is under way.
struct Stage<'a, 's> {
    scenes: &'a [Scene],
    /// Number of the first span of each scene.
    first: Vec<usize>,
    spans: Vec<Span>,
    listener: Option<SpanListener<'s>>,
    /// Whether something may go wrong.
    guarded: bool,
}

impl Rank {
    /// Goes on with what it is at, within the limits on waiting. Returns whether that is over.
    fn go_on_within_limits(&mut self) -> Result<bool, Fault> {
        let Some((task, _)) = &mut self.at else { return Ok(true) };
        let Rank { world, party, .. } = self;
        let driving = self.driving.get_or_insert_with(|| party.driving(world));
        let failed = match party.attend(world, driving) {
            None if driving.ends() => None,
            None => {
                let over = task.poll(world, party).transpose()?.is_some();
                // Who has stopped in the middle notices nothing more.
                if over || world.is_stopped() {
                    self.driving = None;
                    return Ok(over);
                }
                party.look(world, driving, &**task)
            }
            failed => failed,
        };
        if let Some(fault) = failed {
            return Err(task.broken(world, party, fault));
        }
        let now = world.time_ns();
        let next = driving.looks_again_ns(party, now);
        if self.looks_ns <= now || next < self.looks_ns {
            self.looks_ns = next;
            world.wake_at(next);
        }
        Ok(false)
    }

    /// Whether nothing more will happen to it.
    fn is_over(&self, machine: &Rc<RefCell<Machine>>, number: u32) -> bool {
        self.end.is_some() || machine.borrow().is_dead(number)
    }
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
    pub fn run_recorded(
        self,
        interrupted: &mut dyn FnMut() -> bool,
        listener: Option<SpanListener>,
    ) -> Result<Outcome, Fault> {
        limits::check(&self)?;
        let directories = Directories::new(self.tree.clone(), self.seed);
        let machine = Rc::new(RefCell::new(self.machine(&directories)));
        let recorded = listener.is_some();
        let mut ranks: Vec<Rank> =
            (0..self.size.ranks).map(|rank| self.rank(&machine, rank, &directories, recorded)).collect();
        let mut stage = Stage::new(&self.scenes, listener, self.faults.is_some());
        for (number, rank) in ranks.iter_mut().enumerate() {
            stage.advance(rank, number as u32)?;
        }
        let mut pacing = Pacing { interrupted, turns: 0 };
        loop {
            loop {
                let next = machine.borrow_mut().next_ready();
                let Some(rank) = next else { break };
                stage.advance(&mut ranks[rank as usize], rank)?;
            }
            let over = stage.guarded && ranks.iter().zip(0..).all(|(rank, number)| rank.is_over(&machine, number));
            if over || !pacing.turn(&mut machine.borrow_mut())? {
                break;
            }
        }
        let ends = match stage.guarded {
            false => self.all_through(&ranks).map(|()| Vec::new())?,
            true => ranks.iter().map(|rank| rank.end.clone().unwrap_or(LifeEnd::Dead)).collect(),
        };
        // What ranks held they let go of, at no time.
        drop(ranks);
        let mut machine = machine.borrow_mut();
        machine.flush_all();
        while pacing.turn(&mut machine)? {}
        go_on(&machine, pacing.interrupted)?;
        Ok(Outcome::new(&machine, stage.spans, ends))
    }

    /// The machine, with the files that are open from the beginning.
    fn machine(&self, directories: &Directories) -> Machine {
        let files = || FileBytes::in_tree(directories.clone(), &self.tree, self.size.ranks);
        let contents = match &self.payload {
            Payload::Lengths => FileBytes::Small(Box::new(files())),
            Payload::Objects(store) => FileBytes::Objects(store.clone()),
            Payload::Files => files(),
        };
        let carries_bytes = !matches!(self.payload, Payload::Lengths);
        let files = Files::new(&self.profile, self.size, self.what_if, self.on_disk, self.seed, contents);
        let mut machine = Machine::new(&self.profile, self.size, self.what_if, files, carries_bytes);
        machine.trace = self.traced.then(String::new);
        let files = files_in_order(&self.lengths);
        let mut in_order: Vec<(&Object, (u32, u64))> = files.iter().map(|(object, &file)| (object, file)).collect();
        in_order.sort_unstable_by_key(|file| file.1);
        for (object, (_, bytes)) in in_order {
            machine.files.number(&object.name, bytes);
        }
        machine
    }

    fn rank(&self, machine: &Rc<RefCell<Machine>>, rank: u32, directories: &Directories, recorded: bool) -> Rank {
        let faults = self.faults.clone().unwrap_or_default();
        let mut party = Party::new(rank, self.size.ranks, faults.limits);
        if self.period.linear_start {
            party = party.with_arity(self.size.ranks);
        }
        let Period { blocking_sends, look_ahead, .. } = self.period;
        let pace = Pace { blocking_sends, window: (look_ahead > 0).then_some(look_ahead) };
        let watched = Upcoming::of(&faults, rank);
        let world = RankWorld::new(machine, rank, directories.on(rank, watched.clone()), pace, watched);
        party.pace = world.pace(false);
        // Time is virtual: there is nothing to measure.
        party.trace = recorded.then(Box::default);
        Rank { world, party, scene: 0, begun_ns: 0, at: None, driving: None, looks_ns: 0, end: None }
    }

    /// Whether all ranks came to the end.
    fn all_through(&self, ranks: &[Rank]) -> Result<(), Fault> {
        let stuck = ranks.iter().enumerate().filter(|(_, rank)| rank.scene < self.scenes.len());
        let waits = |rank: &Rank| rank.at.as_ref().map_or(String::new(), |(course, _)| course.waits_for());
        let stuck: Vec<String> = stuck
            .take(8)
            .map(|(number, rank)| format!("rank {number}, scene {}: {}", rank.scene, waits(rank)))
            .collect();
        if stuck.is_empty() {
            return Ok(());
        }
        let text = format!("nothing moves any more (seed {}):\n  {}", self.seed, stuck.join("\n  "));
        Err(Fault::new(FaultKind::Timeout, text))
    }
}

impl<'a, 's> Stage<'a, 's> {
    fn new(scenes: &'a [Scene], listener: Option<SpanListener<'s>>, guarded: bool) -> Stage<'a, 's> {
        let mut parts = 0;
        let first = scenes.iter().map(|scene| {
            parts += scene.parts;
            parts - scene.parts
        });
        let first = first.collect();
        Stage { scenes, first, spans: vec![Span::default(); parts], listener, guarded }
    }

    /// Goes on with a rank as far as it can.
    fn advance(&mut self, rank: &mut Rank, number: u32) -> Result<(), Fault> {
        if rank.end.is_some() || rank.world.is_stopped() {
            return Ok(());
        }
        rank.world.awake();
        let lived = if self.guarded { Ok(()) } else { rank.party.pump(&mut rank.world) };
        let lived = lived.and_then(|()| self.live(rank, number));
        match lived {
            // What it came to nobody hears.
            _ if self.guarded && rank.world.is_dead() => return Ok(()),
            Err(fault) if self.guarded => rank.end = Some(LifeEnd::Failed(rank.scene, fault)),
            lived => lived?,
        }
        if self.guarded && rank.scene == self.scenes.len() {
            rank.end = Some(LifeEnd::Through);
        }
        Ok(())
    }

    /// Goes on through as many scenes as it can.
    fn live(&mut self, rank: &mut Rank, number: u32) -> Result<(), Fault> {
        while let Some(scene) = self.scenes.get(rank.scene) {
            let first = self.first[rank.scene];
            if rank.at.is_none() {
                rank.begun_ns = rank.world.time_ns();
                self.spans[first].begin(rank.begun_ns);
                rank.at = (scene.begin)(&mut rank.world, &mut rank.party)?.map(|course| (course, 0));
            }
            let over = match &mut rank.at {
                None => true,
                Some(_) if self.guarded => rank.go_on_within_limits()?,
                Some((course, _)) => course.poll(&mut rank.world, &mut rank.party).transpose()?.is_some(),
            };
            let now = rank.world.time_ns();
            let end = if over { scene.parts } else { rank.at.as_ref().map_or(0, |(course, _)| course.part()) };
            let begun = rank.at.as_ref().map_or(0, |(_, part)| *part);
            for part in begun..end {
                self.spans[first + part].end(now);
                if part + 1 < scene.parts {
                    self.spans[first + part + 1].begin(now);
                }
            }
            if !over {
                if let Some((_, part)) = &mut rank.at {
                    *part = end;
                }
                self.tell(rank, number, now, SPANS_KEPT);
                return Ok(());
            }
            self.tell(rank, number, now, 1);
            rank.at = None;
            rank.scene += 1;
        }
        Ok(())
    }

    /// Tells what a rank did, once there are so many spans.
    fn tell(&mut self, rank: &mut Rank, number: u32, now: u64, least: usize) {
        let (Some(listener), Some(trace)) = (&mut self.listener, &mut rank.party.trace) else { return };
        if trace.len() >= least {
            let (scene, begin_ns, recorded) = (rank.scene, rank.begun_ns, trace.take());
            listener(Lived { rank: number, scene, begin_ns, end_ns: now, recorded });
        }
    }
}
