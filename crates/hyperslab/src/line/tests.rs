//! Models of the line, which loom carries out in each order of turns that it can tell from others. A model fails if its
//! threads can all wait at once, if one touches what another may be changing, or if it says so itself. Nobody's limit on
//! waiting ends here, so that a wake-up that is lost is found as a deadlock.

use super::*;
use hyperslab_collective::{Decision, Measured, Predicted};
use hyperslab_plan::Parameters;
use hyperslab_walk::Walked;
use loom::model::Builder;
use std::sync::atomic::AtomicUsize;

/// Times that loom takes the processor from a thread that could go on, in one order of turns; `LOOM_MAX_PREEMPTIONS`
/// says another number.
const PREEMPTIONS: usize = 3;

/// Carries a model out, and prints how many orders there are.
fn explore(name: &str, model: impl Fn() + Sync + Send + 'static) {
    let orders = Arc::new(AtomicUsize::new(0));
    let counted = orders.clone();
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.max_branches = 20_000;
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    println!("{name}: {} orders", orders.load(std::sync::atomic::Ordering::Relaxed));
}

/// The line of a rank that needs no relay.
#[derive(Clone)]
struct Kept(Arc<Line>);

impl AsRef<Line> for Kept {
    fn as_ref(&self) -> &Line {
        &self.0
    }
}

impl Kept {
    fn new() -> Kept {
        Kept(Arc::new(Line::new(None)))
    }

    fn leave(&self, work: impl FnOnce(&Outcome) -> Result<Finished, Fault> + Send + 'static) -> Arc<Outcome> {
        let outcome = self.0.outcome(NO_TARGET);
        let of_work = outcome.clone();
        Line::submit(self.clone(), outcome.clone(), 0, Box::new(move || work(&of_work)));
        outcome
    }
}

/// An array of the user's. Each access alone is allowed; where two threads are at it and neither waits for the other, loom
/// lets one of them read what was there before.
struct Array(AtomicU64);

impl Array {
    fn new() -> Arc<Array> {
        Arc::new(Array(AtomicU64::new(0)))
    }

    /// Changes it, and says how often it was changed.
    fn count(&self) -> u64 {
        let count = self.0.load(Ordering::Relaxed) + 1;
        self.0.store(count, Ordering::Relaxed);
        count
    }
}

/// What a call waits for, until the user opens it.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn open(&self) {
        *lock(&self.0) = true;
        self.1.notify_all();
    }

    fn pass(&self) {
        let mut is_open = lock(&self.0);
        while !*is_open {
            is_open = self.1.wait(is_open).unwrap();
        }
    }
}

fn report() -> Report {
    let decision = Decision { parameters: Parameters::default(), predicted: Predicted::default(), later: 0.0, plan: 0 };
    Report::new("a model".into(), &decision, 0, (0.0, Measured::default()), Walked::default())
}

fn finished() -> Result<Finished, Fault> {
    Ok((Vec::new(), report()))
}

fn failed() -> Result<Finished, Fault> {
    Err(Fault::new(FaultKind::Storage, "a model fails"))
}

#[test]
fn calls_are_carried_out_one_after_another() {
    explore("line", || {
        let (line, array) = (Kept::new(), Array::new());
        let outcomes: Vec<_> = (1..=2)
            .map(|turn| {
                let array = array.clone();
                line.leave(move |_| {
                    assert_eq!(array.count(), turn);
                    finished()
                })
            })
            .collect();
        assert!(outcomes.iter().all(|outcome| line.0.result(outcome).is_ok()));
        assert_eq!((array.count(), line.0.settled()), (3, 2));
    });
}

/// A task that joins others of its kind.
struct Joining(Arc<Array>);

impl Chore for Joining {
    fn run(self: Box<Self>) -> Result<Finished, Fault> {
        self.0.count();
        finished()
    }

    fn joins<'a>(&'a self, next: &mut dyn Iterator<Item = &'a dyn Chore>) -> usize {
        next.take_while(|task| (*task as &dyn Any).is::<Joining>()).count()
    }

    fn run_with(self: Box<Self>, next: Vec<Box<dyn Chore>>) -> Vec<Result<Finished, Fault>> {
        self.0.count();
        (0..=next.len()).map(|number| if number == 0 { finished() } else { failed() }).collect()
    }
}

#[test]
fn calls_that_join_are_one_and_each_has_its_own_result() {
    explore("calls that join", || {
        let (line, array) = (Kept::new(), Array::new());
        let (of_work, keeper) = (array.clone(), line.clone());
        line.leave(move |_| {
            of_work.count();
            // As after an agreement of one rank.
            keeper.0.agree(keeper.0.waiting());
            finished()
        });
        let outcomes: Vec<_> = (0..2)
            .map(|_| {
                let outcome = line.0.outcome(NO_TARGET);
                Line::submit(line.clone(), outcome.clone(), 0, Box::new(Joining(array.clone())));
                outcome
            })
            .collect();
        let first = line.0.result(&outcomes[0]);
        let second = line.0.result(&outcomes[1]);
        line.0.drain();
        // Both waited for the first call, or came one by one.
        let joined = second.is_err();
        assert!(first.is_ok());
        assert_eq!(array.count(), if joined { 3 } else { 4 });
        assert!(line.0.take_failure(ANY_TARGET).is_none(), "told");
    });
}

#[test]
fn a_call_that_comes_while_the_thread_ends_is_carried_out() {
    explore("thread that ends", || {
        let (line, array) = (Kept::new(), Array::new());
        for _ in 0..2 {
            let of_work = array.clone();
            let outcome = line.leave(move |_| {
                of_work.count();
                finished()
            });
            assert!(line.0.result(&outcome).is_ok());
        }
        line.0.drain();
        assert_eq!(array.count(), 3);
    });
}

#[test]
fn calls_of_two_threads_are_both_carried_out() {
    explore("two threads call", || {
        let (line, array) = (Kept::new(), Array::new());
        let call = |line: Kept, array: Arc<Array>| {
            let outcome = line.leave(move |_| {
                array.count();
                finished()
            });
            assert!(line.0.result(&outcome).is_ok());
        };
        let (other, there) = (line.clone(), array.clone());
        let beside = thread::spawn(move || call(other, there));
        call(line.clone(), array.clone());
        beside.join().unwrap();
        line.0.drain();
        assert_eq!(array.count(), 3);
    });
}

#[test]
fn arrays_that_are_free_are_touched_by_nobody_else() {
    explore("arrays that are free", || {
        let (line, array) = (Kept::new(), Array::new());
        let (of_work, keeper, gate) = (array.clone(), line.clone(), Arc::new(Gate::default()));
        let open = gate.clone();
        let outcome = line.leave(move |outcome| {
            of_work.count();
            keeper.0.leave(outcome, report());
            // Nothing else tells the user.
            gate.pass();
            failed()
        });
        assert!(line.0.result(&outcome).is_ok(), "they are free");
        assert_eq!(array.count(), 2);
        open.open();
        line.0.drain();
        assert!(line.0.take_failure(NO_TARGET).is_some(), "the next call hears of it");
        assert!(line.0.take_failure(ANY_TARGET).is_none(), "once");
    });
}

#[test]
fn a_failure_is_told_once() {
    explore("failure", || {
        let line = Kept::new();
        let outcome = line.leave(|_| failed());
        let other = line.clone();
        let beside = thread::spawn(move || other.0.take_failure(ANY_TARGET).is_some());
        // Whoever asks for all failures may be first; the call itself fails in any case.
        assert!(line.0.result(&outcome).is_err());
        beside.join().unwrap();
        assert!(line.0.take_failure(ANY_TARGET).is_none());
    });
}

#[test]
fn a_request_that_is_dropped_fails_the_next_call() {
    explore("dropped request", || {
        let line = Kept::new();
        let outcome = line.leave(|_| failed());
        outcome.dropped.store(true, Ordering::Relaxed);
        line.0.drain();
        assert!(line.0.take_failure(NO_TARGET).is_some());
    });
}

#[test]
fn room_that_is_given_back_wakes_up_who_waits_for_it() {
    explore("room", || {
        let line = Kept::new();
        line.0.admit(8, 10);
        // It ends only when there was room for the next one.
        let gate = Arc::new(Gate::default());
        let open = gate.clone();
        line.leave(move |_| {
            gate.pass();
            finished()
        });
        let other = line.clone();
        let beside = thread::spawn(move || {
            other.0.admit(8, 10);
            open.open();
        });
        line.0.forgo(8);
        beside.join().unwrap();
        line.0.drain();
    });
}

#[test]
fn the_end_waits_for_all_calls() {
    explore("end", || {
        let (line, array) = (Kept::new(), Array::new());
        let of_work = array.clone();
        line.leave(move |_| {
            of_work.count();
            finished()
        });
        let (failures, given_up) = line.0.finish(Duration::MAX);
        assert_eq!((failures.len(), given_up, array.count()), (0, 0, 2));
    });
}

#[test]
fn a_call_that_panics_fails_and_others_go_on() {
    explore("panic in the line", || {
        let line = Kept::new();
        // As a panic, without its text.
        let outcome = line.leave(|_| std::panic::resume_unwind(Box::new(())));
        assert!(line.0.result(&outcome).is_err());
        let outcome = line.leave(|_| finished());
        assert!(line.0.result(&outcome).is_ok());
    });
}
