//! Two programs on one tree in memory, of which one at a time goes on, from one request to the next: a schedule says where they
//! change over and where one dies, so that every interleaving can be tried, and any one again.

pub(crate) mod deeds;

use hyperslab::{FaultKind, MemoryTree};
use hyperslab_world::{Fault, TreeDeed, Witness};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Where the two change over, by the number of the request before which that is, of both together; who begins; and who dies
/// when he asks for his n-th.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) first: usize,
    pub(crate) changes_over: Vec<u64>,
    pub(crate) death: Option<(usize, u64)>,
}

/// What came of it.
pub(crate) struct Played<T> {
    pub(crate) results: [T; 2],
    /// Requests of both together.
    pub(crate) requests: u64,
    pub(crate) died: bool,
    /// Who asked for what, in words.
    pub(crate) log: Vec<String>,
}

struct Turns {
    turn: usize,
    over: [bool; 2],
    waits: [bool; 2],
    dead: [bool; 2],
    requests: u64,
    of_each: [u64; 2],
    changes_over: VecDeque<u64>,
    death: Option<(usize, u64)>,
    log: Vec<String>,
    logs: bool,
}

struct Turnstile {
    turns: Mutex<Turns>,
    moved: Condvar,
}

/// One of the two, at the turnstile.
struct Passing(Arc<Turnstile>, usize);

impl Turnstile {
    fn locked(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of this program.
    fn await_turn<'a>(&self, turns: MutexGuard<'a, Turns>, who: usize) -> MutexGuard<'a, Turns> {
        self.moved.wait_while(turns, |turns| turns.turn != who).unwrap_or_else(PoisonError::into_inner)
    }

    fn pass<'a>(&self, mut turns: MutexGuard<'a, Turns>, from: usize) -> MutexGuard<'a, Turns> {
        turns.turn = 1 - from;
        self.moved.notify_all();
        turns
    }
}

impl Witness for Passing {
    fn before(&self, deed: TreeDeed<'_>) -> Result<(), Fault> {
        let Passing(stile, who) = self;
        let (who, other) = (*who, 1 - *who);
        let dead = || Fault::new(FaultKind::Storage, "the program is dead");
        let mut turns = stile.await_turn(stile.locked(), who);
        if turns.dead[who] {
            return Err(dead());
        }
        turns.waits[who] = deed.waits;
        if deed.waits {
            assert!(!turns.over[other] && !turns.waits[other], "nobody can go on: {:#?}", turns.log);
            turns = stile.await_turn(stile.pass(turns, who), who);
        }
        if turns.changes_over.front() == Some(&turns.requests) {
            turns.changes_over.pop_front();
            if !turns.over[other] {
                turns = stile.await_turn(stile.pass(turns, who), who);
            }
        }
        if turns.death == Some((who, turns.of_each[who])) {
            turns.dead[who] = true;
            return Err(dead());
        }
        turns.requests += 1;
        turns.of_each[who] += 1;
        if turns.logs {
            let line = format!("{} {} {} '{}'", turns.requests - 1, ["A", "B"][who], deed.verb, deed.name);
            turns.log.push(line);
        }
        Ok(())
    }
}

/// Lets two programs use the tree by a schedule, each through its view.
pub(crate) fn play<T: Send>(
    tree: &MemoryTree,
    schedule: &Schedule,
    logs: bool,
    programs: [&(dyn Fn(&MemoryTree) -> T + Sync); 2],
) -> Played<T> {
    let turns = Turns {
        turn: schedule.first,
        over: [false; 2],
        waits: [false; 2],
        dead: [false; 2],
        requests: 0,
        of_each: [0; 2],
        changes_over: schedule.changes_over.iter().copied().collect(),
        death: schedule.death,
        log: Vec::new(),
        logs,
    };
    let stile = Arc::new(Turnstile { turns: Mutex::new(turns), moved: Condvar::new() });
    let run = |who: usize| {
        let stile = stile.clone();
        let view = tree.watched(Arc::new(Passing(stile.clone(), who)));
        move || {
            drop(stile.await_turn(stile.locked(), who));
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| programs[who](&view)));
            drop(view);
            let mut turns = stile.locked();
            turns.over[who] = true;
            drop(stile.pass(turns, who));
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }
    };
    let results = std::thread::scope(|scope| {
        let threads = [scope.spawn(run(0)), scope.spawn(run(1))];
        threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let mut turns = stile.locked();
    Played { results, requests: turns.requests, died: turns.dead.contains(&true), log: std::mem::take(&mut turns.log) }
}

/// Lets one request fail.
pub(crate) struct FailsOnce {
    left: AtomicU64,
}

impl FailsOnce {
    /// After so many.
    pub(crate) fn after(requests: u64) -> Arc<FailsOnce> {
        Arc::new(FailsOnce { left: AtomicU64::new(requests + 1) })
    }

    /// Whether it has come to that.
    pub(crate) fn has_failed(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

impl Witness for FailsOnce {
    fn before(&self, _deed: TreeDeed<'_>) -> Result<(), Fault> {
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match before {
            Ok(1) => Err(Fault::new(FaultKind::Storage, "an error of the disk, once")),
            _ => Ok(()),
        }
    }
}
