//! Models of bells, and of wires between threads.

use super::{Bare, count, explore, next, pair};
use crate::sync::{mpsc, thread};
use crate::wire::{Bell, Wire, thread_wires};
use std::time::Duration;

#[test]
fn a_ring_ends_a_wait_and_what_was_done_before_it_is_seen() {
    explore("bell", || {
        let (bell, done) = (Bell::default(), Bare::new(0));
        let (rung, doing) = (bell.clone(), done.clone());
        let ringer = thread::spawn(move || {
            count(&doing);
            rung.ring();
        });
        assert!(bell.wait(Duration::MAX));
        assert_eq!(done.read(|done| *done), 1);
        ringer.join().unwrap();
        assert!(!bell.wait(Duration::ZERO), "there was one ring");
    });
}

#[test]
fn of_two_rings_none_is_lost() {
    explore("two rings", || {
        let bell = Bell::default();
        let (news, heard) = mpsc::channel();
        for number in 0..2 {
            let (news, bell) = (news.clone(), bell.clone());
            thread::spawn(move || {
                news.send(number).unwrap();
                bell.ring();
            });
        }
        let mut sum = 0;
        for _ in 0..2 {
            sum += loop {
                match heard.try_recv() {
                    Ok(number) => break number + 1,
                    Err(_) => assert!(bell.wait(Duration::MAX)),
                }
            };
        }
        assert_eq!(sum, 3);
    });
}

#[test]
fn datagrams_of_two_senders_arrive_once_and_in_order() {
    explore("two senders", || {
        let mut wires = thread_wires(3);
        let (mut second, mut first, mut to) = (wires.pop().unwrap(), wires.pop().unwrap(), wires.pop().unwrap());
        let threads = [
            thread::spawn(move || {
                first.send(0, vec![1]).unwrap();
                first.send(0, vec![2]).unwrap();
            }),
            thread::spawn(move || second.send(0, vec![3]).unwrap()),
        ];
        let got: Vec<_> = (0..3).map(|_| next(&mut to)).collect();
        let of = |from| got.iter().filter(|got| got.0 == from).map(|got| got.1[0]).collect::<Vec<_>>();
        assert_eq!((of(1), of(2)), (vec![1, 2], vec![3]));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(to.poll().unwrap(), None);
    });
}

#[test]
fn two_ranks_that_answer_each_other_do_not_wait_both() {
    explore("answers", || {
        let (mut here, mut there) = pair();
        let other = thread::spawn(move || {
            for number in 0..2 {
                assert_eq!(next(&mut there), (0, vec![number]));
                there.send(0, vec![number + 10]).unwrap();
            }
        });
        for number in 0..2 {
            here.send(1, vec![number]).unwrap();
            assert_eq!(next(&mut here), (1, vec![number + 10]));
        }
        other.join().unwrap();
    });
}

#[test]
fn a_note_arrives_with_the_message_behind_it() {
    explore("note", || {
        let (mut here, mut there) = pair();
        let other = thread::spawn(move || {
            there.note(0, vec![1]).unwrap();
            there.send(0, vec![2]).unwrap();
        });
        assert_eq!((next(&mut here), next(&mut here)), ((1, vec![1]), (1, vec![2])));
        other.join().unwrap();
    });
}

#[test]
fn who_sends_to_a_rank_that_leaves_is_not_held_up() {
    explore("leaving", || {
        let (mut here, mut there) = pair();
        let other = thread::spawn(move || {
            assert_eq!(next(&mut there), (0, vec![1]));
            drop(there);
        });
        for number in 1..4 {
            here.send(1, vec![number]).unwrap();
        }
        other.join().unwrap();
        here.send(1, vec![4]).unwrap();
    });
}

#[test]
fn one_bell_for_messages_and_for_the_store_loses_neither() {
    explore("messages and answers of the store", || {
        let (mut here, mut there) = pair();
        let (bell, (answer, answers)) = (here.bell(), mpsc::channel());
        let store = thread::spawn(move || {
            answer.send(5).unwrap();
            bell.ring();
        });
        let other = thread::spawn(move || there.send(0, vec![1]).unwrap());
        let (mut message, mut stored) = (None, None);
        while message.is_none() || stored.is_none() {
            // As `Party::drive` does: it looks everywhere, and sleeps if there is nothing.
            let (told, done) = (here.poll().unwrap(), answers.try_recv().ok());
            if told.is_none() && done.is_none() {
                here.doze(Duration::MAX);
            }
            (message, stored) = (message.or(told), stored.or(done));
        }
        assert_eq!((message, stored), (Some((1, vec![1])), Some(5)));
        [store, other].into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_rings_before_the_message_is_there_is_found() {
    explore("rung too early", || {
        let (mut here, mut there) = pair();
        let bell = here.bell();
        thread::spawn(move || {
            bell.ring();
            there.note(0, vec![1]).unwrap();
        });
        assert_eq!(next(&mut here), (1, vec![1]));
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn who_looks_before_the_ring_is_found() {
    explore("looked too early", || {
        let (bell, done) = (Bell::default(), Bare::new(0));
        let (rung, doing) = (bell.clone(), done.clone());
        thread::spawn(move || {
            rung.ring();
            count(&doing);
        });
        bell.wait(Duration::MAX);
        done.read(|_| ());
    });
}
