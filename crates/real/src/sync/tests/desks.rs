//! Models of the desk at which work with names is done.

use super::{Bare, count, explore};
use crate::Desk;
use crate::sync::{mpsc, thread};
use crate::wire::Bell;
use hyperslab_world::Fault;
use std::time::Duration;

/// What came of it, which is slept for.
fn outcome(desk: &Desk, bell: &Bell) -> Result<Vec<u8>, Fault> {
    loop {
        if let Some(outcome) = desk.poll() {
            return outcome;
        }
        bell.wait(Duration::MAX);
    }
}

#[test]
fn what_was_begun_is_told_of_once() {
    explore("desk", || {
        let bell = Bell::default();
        let (desk, names) = (Desk::new(bell.clone()), Bare::new(0));
        for turn in 1..=2 {
            let names = names.clone();
            desk.begin(Box::new(move || Ok(vec![count(&names)])), false);
            assert_eq!(outcome(&desk, &bell), Ok(vec![turn]));
            assert!(desk.poll().is_none() && desk.is_idle());
        }
    });
}

#[test]
fn what_is_done_at_once_is_done_after_all_before() {
    explore("at once", || {
        let bell = Bell::default();
        let (desk, names) = (Desk::new(bell.clone()), Bare::new(0));
        let (before, after) = (names.clone(), names.clone());
        desk.later(move || assert_eq!(count(&before), 1), false);
        desk.begin(Box::new(move || Ok(vec![count(&after)])), true);
        assert_eq!(outcome(&desk, &bell), Ok(vec![2]));
    });
}

#[test]
fn who_sleeps_until_all_is_done_wakes_up() {
    explore("idle", || {
        let bell = Bell::default();
        let (desk, names) = (Desk::new(bell.clone()), Bare::new(0));
        for _ in 0..2 {
            let names = names.clone();
            desk.later(
                move || {
                    count(&names);
                },
                false,
            );
        }
        while !desk.is_idle() {
            bell.wait(Duration::MAX);
        }
        assert_eq!(count(&names), 3);
    });
}

#[test]
fn two_threads_do_one_thing_after_another() {
    explore("two at the desk", || {
        let bell = Bell::default();
        let (desk, names) = (Desk::new(bell.clone()), Bare::new(0));
        let (other, there, here) = (desk.clone(), names.clone(), names.clone());
        let beside = thread::spawn(move || {
            other.later(
                move || {
                    count(&there);
                },
                true,
            );
        });
        desk.begin(Box::new(move || Ok(vec![count(&here)])), true);
        assert!(matches!(outcome(&desk, &bell).as_deref(), Ok([1 | 2])));
        beside.join().unwrap();
        while !desk.is_idle() {
            bell.wait(Duration::MAX);
        }
        assert_eq!(count(&names), 3);
    });
}

#[test]
fn a_desk_that_is_left_finishes_its_work() {
    explore("left desk", || {
        let (desk, names) = (Desk::new(Bell::default()), Bare::new(0));
        let (done, heard) = mpsc::channel();
        let (first, second) = ((done.clone(), names.clone()), (done, names));
        desk.later(move || first.0.send(count(&first.1)).unwrap(), false);
        desk.begin(
            Box::new(move || second.0.send(count(&second.1)).map(|()| Vec::new()).map_err(|_| unreachable!())),
            false,
        );
        drop(desk);
        assert_eq!(heard.into_iter().collect::<Vec<_>>(), [1, 2]);
    });
}

#[test]
fn work_that_panics_is_told_of_and_others_go_on() {
    explore("panic at the desk", || {
        let bell = Bell::default();
        let desk = Desk::new(bell.clone());
        // As a panic, without its text.
        desk.begin(Box::new(|| std::panic::resume_unwind(Box::new(()))), false);
        assert!(outcome(&desk, &bell).is_err());
        desk.begin(Box::new(|| Ok(vec![1])), false);
        assert_eq!(outcome(&desk, &bell), Ok(vec![1]));
    });
}
