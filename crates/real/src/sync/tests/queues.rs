//! Models of the queue of jobs; a module of `posix/queue.rs`, which nobody else sees.

use super::Queue;
use crate::sync::tests::{Bare, explore};
use crate::sync::{Arc, atomic::AtomicUsize, atomic::Ordering, mpsc, thread};

#[test]
fn who_waits_sees_all_that_was_done() {
    explore("queue of one thread", || {
        let (queue, done) = (Queue::new(1), Bare::new(Vec::new()));
        for number in 0..3 {
            let done = done.clone();
            queue.submit(Box::new(move || done.change(|done| done.push(number))));
        }
        queue.wait();
        done.read(|done| assert_eq!(*done, [0, 1, 2]));
    });
}

#[test]
fn no_job_is_left_over_or_done_twice() {
    explore("queue of two threads", || {
        let (queue, done) = (Queue::new(2), Arc::new(AtomicUsize::new(0)));
        for _ in 0..2 {
            let done = done.clone();
            queue.submit(Box::new(move || {
                done.fetch_add(1, Ordering::Relaxed);
            }));
        }
        queue.wait();
        assert_eq!(done.load(Ordering::Relaxed), 2);
        let again = done.clone();
        queue.submit(Box::new(move || {
            again.fetch_add(1, Ordering::Relaxed);
        }));
        queue.wait();
        assert_eq!(done.load(Ordering::Relaxed), 3);
    });
}

#[test]
fn two_jobs_that_wait_for_each_other_run_at_once() {
    explore("two jobs at once", || {
        let queue = Queue::new(2);
        let ((to_second, of_first), (to_first, of_second)) = (mpsc::channel(), mpsc::channel());
        queue.submit(Box::new(move || {
            to_second.send(()).unwrap();
            of_second.recv().unwrap();
        }));
        queue.submit(Box::new(move || {
            to_first.send(()).unwrap();
            of_first.recv().unwrap();
        }));
        queue.wait();
    });
}

#[test]
fn two_that_submit_and_wait_are_both_served() {
    explore("two submit", || {
        let queue = Arc::new(Queue::new(1));
        let submit = |queue: Arc<Queue>| {
            let (done, heard) = mpsc::channel();
            queue.submit(Box::new(move || done.send(()).unwrap()));
            queue.wait();
            assert!(heard.try_recv().is_ok());
        };
        let other = queue.clone();
        let beside = thread::spawn(move || submit(other));
        submit(queue);
        beside.join().unwrap();
    });
}

#[test]
fn a_dropped_queue_finishes_its_jobs() {
    explore("dropped queue", || {
        let queue = Queue::new(2);
        let (done, heard) = mpsc::channel();
        for number in 0..2 {
            let done = done.clone();
            queue.submit(Box::new(move || done.send(number).unwrap()));
        }
        drop((queue, done));
        assert_eq!(heard.into_iter().sum::<i32>(), 1);
    });
}

#[test]
fn a_job_that_panics_is_over() {
    explore("panic in a queue", || {
        let (queue, done) = (Queue::new(1), Arc::new(AtomicUsize::new(0)));
        // As a panic, without its text.
        queue.submit(Box::new(|| std::panic::resume_unwind(Box::new(()))));
        let after = done.clone();
        queue.submit(Box::new(move || after.store(1, Ordering::Relaxed)));
        queue.wait();
        assert_eq!(done.load(Ordering::Relaxed), 1);
    });
}
