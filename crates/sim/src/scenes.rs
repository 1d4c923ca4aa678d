//! What ranks do besides collective calls: agreements and walks by themselves, and what the program does on its own.

use crate::names::SimNames;
use crate::scene::{Scene, Task, Who};
use crate::world::RankWorld;
use hyperslab_layout::{Durability, ElementType, Kind, Object, Region, View};
use hyperslab_pack::Memory;
use hyperslab_plan::{Facts, Parameters, Transfer};
use hyperslab_walk::trace::{self, Kind as SpanKind};
use hyperslab_walk::{Awaited, Consensus, Party, Question, Waits, Walk};
use hyperslab_world::{Desk, Exposed, Fault, Moves, Request, Store};
use std::rc::Rc;
use std::sync::Arc;

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

struct Agreeing(Consensus);

impl Task for Agreeing {
    fn poll(&mut self, world: &mut RankWorld, party: &mut Party) -> Option<Result<(), Fault>> {
        self.0.poll(world, party, &mut || Ok(Vec::new())).map(|agreed| agreed.map(drop))
    }
}

impl Awaited for Agreeing {
    fn waits(&self) -> Waits {
        self.0.waits()
    }

    fn waits_for(&self) -> String {
        self.0.waits_for()
    }
}

struct Walking(Walk);

impl Task for Walking {
    fn poll(&mut self, world: &mut RankWorld, party: &mut Party) -> Option<Result<(), Fault>> {
        self.0.poll(world, party).map(|walked| walked.map(drop))
    }
}

impl Awaited for Walking {
    fn waits(&self) -> Waits {
        self.0.waits()
    }

    fn waits_for(&self) -> String {
        self.0.waits_for()
    }
}

/// Something that the program does by itself, of which one span is recorded.
struct OwnWork {
    kind: SpanKind,
    object: Option<Arc<str>>,
    bytes: u64,
    begin_ns: u64,
    is_over: fn(&mut RankWorld) -> Option<Result<(), Fault>>,
}

impl OwnWork {
    fn new(world: &RankWorld, kind: SpanKind, is_over: fn(&mut RankWorld) -> Option<Result<(), Fault>>) -> OwnWork {
        OwnWork { kind, object: None, bytes: 0, begin_ns: world.time_ns(), is_over }
    }
}

impl Task for OwnWork {
    fn poll(&mut self, world: &mut RankWorld, party: &mut Party) -> Option<Result<(), Fault>> {
        let over = (self.is_over)(world)?;
        let now = world.time_ns();
        if let Some(trace) = party.trace.as_mut().filter(|_| now > self.begin_ns) {
            let span = trace::Span::plain(self.kind, self.begin_ns, now);
            trace.push(trace::Span { object: self.object.clone(), bytes: self.bytes, ..span });
        }
        Some(over)
    }
}

impl Awaited for OwnWork {
    fn waits_for(&self) -> String {
        "waits for the machine".into()
    }
}

impl Scene {
    /// All ranks agree, along the tree of a collective call, as one does at whose end rank 0 makes something visible.
    pub fn agree() -> Scene {
        Scene::new(1, |_, party| {
            let question = Question { stores: true, ..Question::default() };
            Ok(Some(Box::new(Agreeing(party.open(question)?))))
        })
    }

    /// Data move, with no agreement around.
    pub fn walk(asked: Move) -> Scene {
        Scene::new(1, move |world, party| {
            let rank = party.rank();
            let Part { users, facts } = (asked.bring)(rank);
            let views: Vec<Arc<View>> = users.iter().map(|user| user.view.clone()).collect();
            let Move { transfer, parameters, .. } = &asked;
            let program = parameters.strategy.program(transfer, parameters, &facts, rank, &views);
            let pace = world.pace(parameters.servers.contains(&rank));
            Ok(Some(Box::new(Walking(Walk::new(program, users).at(pace)))))
        })
    }

    /// The program works for so long \[ns\].
    pub fn work(who: Who, ns: f64) -> Scene {
        Scene::new(1, move |world, party| {
            if !who.has(party.rank(), world.size()) {
                return Ok(None);
            }
            let own = OwnWork::new(world, SpanKind::Application, |world| world.has_worked().then_some(Ok(())));
            world.work(ns);
            Ok(Some(Box::new(OwnWork { object: Some("work".into()), ..own })))
        })
    }

    /// Each of these ranks does something with names by itself.
    pub fn names(who: Who, what: fn(&SimNames) -> Result<(), Fault>) -> Scene {
        Scene::new(1, move |world, party| {
            if !who.has(party.rank(), world.size()) {
                return Ok(None);
            }
            let own = OwnWork::new(world, SpanKind::Metadata, |world| Some(Desk::poll(world)?.map(drop)));
            let names = world.names();
            Desk::begin(world, Box::new(move || what(&names).map(|()| Vec::new())), false);
            Ok(Some(Box::new(own)))
        })
    }

    /// Each of these ranks reads or writes one range of a file by one request of its own: rank 0 from `offset` on, each further
    /// rank `pitch` behind the one before \[B\].
    pub fn range(who: Who, object: Object, (offset, pitch, bytes): (u64, u64, u64), write: bool) -> Scene {
        Scene::new(1, move |world, party| {
            if !who.has(party.rank(), world.size()) {
                return Ok(None);
            }
            let kind = if write { SpanKind::Write } else { SpanKind::Read };
            let own = OwnWork::new(world, kind, |world| {
                let mut done = Vec::new();
                Store::poll(world, &mut done);
                done.pop().map(|(_, outcome)| outcome.map(drop))
            });
            let moves = stretch(offset + pitch * u64::from(party.rank()), bytes);
            let (at, durability) = (object.clone(), Durability::Cached);
            Store::submit(
                world,
                0,
                match write {
                    true => Request::Write { object: at, moves, direct: false, durability },
                    false => Request::Read { object: at, moves, direct: false },
                },
            );
            Ok(Some(Box::new(OwnWork { object: Some(object.name.clone()), bytes, ..own })))
        })
    }
}

/// Bytes that lie together in a file, and nowhere in memory.
fn stretch(offset: u64, bytes: u64) -> Moves {
    let (region, byte) = (Region::whole(&[bytes]), ElementType::native(Kind::UInt8));
    let at = |begin: u64| Arc::new(View::held(&region, begin as i64, &[1], byte));
    Moves { here: at(0), there: at(offset), memory: Memory::imagined(bytes), region: region.clone() }
}
