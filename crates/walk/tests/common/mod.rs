//! What the tests of planning and walking share: ranks in one thread, polled in a random order, and an oracle.
#![allow(dead_code)] // each test uses its part

pub(crate) mod array;
pub(crate) mod case;
pub(crate) mod ledger;
pub(crate) mod oracle;
pub(crate) mod part;
pub(crate) mod pieces;
pub(crate) mod random;

use hyperslab_plan::{Facts, Parameters, Told as Pieces, Transfer};
use hyperslab_walk::{Agreed, Awaited, Consensus, Limits, Party, Question, Telling, Walk, Walked};
use hyperslab_world::lockstep::{Hub, HubWorld};
use hyperslab_world::{Exposed, Fault, MemoryStore, Objects, Store, World};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Rounds without progress after which ranks can go no further: finished operations take two to become visible.
const IDLE_ROUNDS: u32 = 2;

/// Ranks of a communicator, in one thread.
pub(crate) struct Ranks<S> {
    pub(crate) hub: Rc<RefCell<Hub>>,
    pub(crate) worlds: Vec<HubWorld<S>>,
    pub(crate) parties: Vec<Party>,
    random: fastrand::Rng,
    /// Whether ranks go as far as they can before each delivery, so that it alone decides what happens.
    eager: bool,
    /// Whether sends block.
    blocking_sends: bool,
}

impl Ranks<MemoryStore> {
    /// Ranks that share a store in memory.
    pub(crate) fn in_memory(ranks: u32, seed: u64, objects: &Objects) -> Ranks<MemoryStore> {
        Ranks::new(Hub::new(ranks, seed, 0), ranks, seed, |_| array::rooted(objects))
    }

    /// The same over a hub that follows a script.
    pub(crate) fn scripted(ranks: u32, script: Vec<usize>, objects: &Objects) -> Ranks<MemoryStore> {
        Ranks::new(Hub::scripted(ranks, script), ranks, 0, |_| array::rooted(objects)).eager()
    }
}

impl<S: Store> Ranks<S> {
    pub(crate) fn new(hub: Rc<RefCell<Hub>>, ranks: u32, seed: u64, mut store: impl FnMut(u32) -> S) -> Ranks<S> {
        let worlds = (0..ranks).map(|rank| HubWorld::new(&hub, rank, store(rank))).collect();
        let parties = (0..ranks).map(|rank| Party::new(rank, ranks, Limits::default())).collect();
        let random = fastrand::Rng::with_seed(seed ^ 0x5eed);
        Ranks { hub, worlds, parties, random, eager: false, blocking_sends: false }
    }

    /// The same ranks, in a tree of this degree, whose sends may block.
    pub(crate) fn of_the_period(self, arity: u32, blocking_sends: bool) -> Ranks<S> {
        let parties = self.parties.into_iter().map(|party| party.with_arity(arity)).collect();
        Ranks { parties, blocking_sends, ..self }
    }

    /// The same ranks, each of which goes as far as it can before anything is delivered and before time passes.
    pub(crate) fn eager(self) -> Ranks<S> {
        Ranks { eager: true, ..self }
    }

    /// Agrees on all ranks. Rank 0 decides on these bytes.
    pub(crate) fn agree(
        &mut self,
        questions: Vec<Question>,
        decided: &Result<Vec<u8>, Fault>,
    ) -> Vec<Result<Vec<u8>, Fault>> {
        let agreed = self.agree_on_ways(questions, decided);
        agreed.into_iter().map(|agreed| agreed.map(|agreed| agreed.payload)).collect()
    }

    /// The same with what some rank cannot do.
    pub(crate) fn agree_on_ways(
        &mut self,
        questions: Vec<Question>,
        decided: &Result<Vec<u8>, Fault>,
    ) -> Vec<Result<Agreed, Fault>> {
        let pairs = questions.into_iter().zip(&mut self.parties);
        let calls: Vec<_> = pairs.map(|(question, party)| RefCell::new(Consensus::new(party, question))).collect();
        self.finish(
            |rank, world, party| {
                let decide = &mut |_: &mut dyn World, _| Some(decided.clone());
                (calls[rank].borrow_mut().poll_with(world, party, decide), 0)
            },
            |rank| calls[rank].borrow().waits_for(),
        )
    }

    /// Tells other ranks of pieces, in a call of its own: opened, told, and agreed to be over.
    pub(crate) fn tell(&mut self, told: Vec<BTreeMap<u32, Pieces>>) -> Vec<Vec<(u32, Pieces)>> {
        let question = |opens| Question { what: "write".into(), opens, ..Question::default() };
        let size = self.worlds.len();
        assert!(self.agree(vec![question(true); size], &Ok(Vec::new())).iter().all(Result::is_ok));
        let each = told.into_iter().zip(&mut self.worlds).zip(&self.parties);
        let tellings: Vec<_> =
            each.map(|((told, world), party)| RefCell::new(Telling::new(world, party, told))).collect();
        // Who has told already answers others while it waits for them to agree.
        let closing: Vec<_> = (0..size).map(|_| RefCell::new(None)).collect();
        let agreed = self.finish(
            |rank, world, party| {
                let mut closing = closing[rank].borrow_mut();
                if closing.is_none() && tellings[rank].borrow_mut().poll(party) {
                    *closing = Some(Consensus::new(party, question(false)));
                }
                let call: Option<&mut Consensus> = closing.as_mut();
                (call.and_then(|call| call.poll(world, party, &mut || Ok(Vec::new()))), 0)
            },
            |rank| tellings[rank].borrow().waits_for(),
        );
        assert!(agreed.iter().all(Result::is_ok));
        let heard = tellings.into_iter().zip(&mut self.parties);
        heard.map(|(telling, party)| telling.into_inner().heard(party).expect("what was told makes sense")).collect()
    }

    /// Polls all ranks until each has given a result. `poll` also gives a number that grows with progress; `waits`
    /// says what a rank waits for.
    ///
    /// # Panics
    /// When nothing moves any more.
    pub(crate) fn finish<T>(
        &mut self,
        mut poll: impl FnMut(usize, &mut HubWorld<S>, &mut Party) -> (Option<T>, u64),
        waits: impl Fn(usize) -> String,
    ) -> Vec<T> {
        let size = self.worlds.len();
        let mut results: Vec<Option<T>> = (0..size).map(|_| None).collect();
        let mut steps = vec![0; size];
        let mut idle = 0;
        let mut order: Vec<usize> = (0..size).collect();
        while results.iter().any(Option::is_none) {
            self.random.shuffle(&mut order);
            let before = (steps.clone(), results.iter().filter(|r| r.is_some()).count());
            for &rank in &order {
                // Ranks are not equally fast; but who is stuck gets every chance to show that it is not.
                if results[rank].is_some() || (idle == 0 && !self.eager && self.random.u8(0..4) == 0) {
                    continue;
                }
                self.parties[rank].pump(&mut self.worlds[rank]).expect("the hub never breaks");
                (results[rank], steps[rank]) = poll(rank, &mut self.worlds[rank], &mut self.parties[rank]);
            }
            let moved = before != (steps.clone(), results.iter().filter(|r| r.is_some()).count());
            let delivered = (idle > IDLE_ROUNDS || !self.eager) && self.hub.borrow_mut().turn();
            idle = if delivered || moved { 0 } else { idle + 1 };
            if idle > IDLE_ROUNDS + 1 {
                let stuck = (0..size).filter(|&rank| results[rank].is_none());
                let told: Vec<String> = stuck.map(|rank| format!("rank {rank} {}", waits(rank))).collect();
                panic!("deadlock:\n  {}", told.join("\n  "));
            }
        }
        results.into_iter().flatten().collect()
    }

    /// Walks a transfer on all ranks. `users` are the arrays of each rank, `facts` what it knows.
    pub(crate) fn walk(
        &mut self,
        transfer: &Arc<Transfer>,
        parameters: &Parameters,
        window: Option<usize>,
        users: &[Vec<Exposed>],
        facts: &[Arc<Facts>],
    ) -> Vec<Result<Walked, Fault>> {
        let walks: Vec<RefCell<Walk>> = users
            .iter()
            .enumerate()
            .map(|(rank, users)| {
                let views: Vec<_> = users.iter().map(|user| user.view.clone()).collect();
                let program = parameters.strategy.program(transfer, parameters, &facts[rank], rank as u32, &views);
                let names = transfer.asks.iter().map(|ask| ask.name.clone()).collect();
                let walk = Walk::new(program, users.clone()).with_names(names);
                let walk = if self.blocking_sends { walk.with_blocking_sends() } else { walk };
                RefCell::new(match window {
                    Some(window) => walk.with_window(window),
                    None => walk,
                })
            })
            .collect();
        self.finish(
            |rank, world, party| {
                let mut walk = walks[rank].borrow_mut();
                let result = walk.poll(world, party);
                (result, walk.walked().steps)
            },
            |rank| walks[rank].borrow().waits_for(),
        )
    }
}

/// Says which seed to run again when a test panics.
pub(crate) struct Told(pub(crate) u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failing case: run again with HYPERSLAB_SEED={}", self.0);
        }
    }
}

/// The seeds to try: the one that HYPERSLAB_SEED names, or `count` of them, HYPERSLAB_TIMES as many where it is set: how long
/// a seed takes differs from test to test, so one number for all would suit none.
#[allow(clippy::disallowed_methods)] // what a test tries may come from its environment
pub(crate) fn seeds(count: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("HYPERSLAB_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count * number("HYPERSLAB_TIMES").unwrap_or(1),
    }
}
