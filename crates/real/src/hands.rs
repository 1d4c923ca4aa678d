//! Hands: threads that code chunks for a rank, on cores of its node that no rank has.
//!
//! Only what takes long is handed over, and only as much as keeps them busy: coding holds a copy of each chunk. The rank's own
//! thread takes from the same queue when it has nothing else to do. How many chunks are coded at the same time also depends on the
//! slots of the plan, mostly two.

use crate::bell::Bell;
use crate::sync::{Arc, Condvar, Mutex, lock, thread};
use hyperslab_world::{Computation, Compute, Cost, Fault, FaultKind, InlineCompute, Ticket};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::time::Duration;

/// What takes less is done at once: to wake a thread takes tens of microseconds.
const WORTH_BYTES: u64 = 32 << 10;

/// A hand without work ends after this time.
const REST: Duration = Duration::from_secs(5);

type Computed = (Ticket, Result<Vec<u8>, Fault>);

/// The processor of a rank, with its hands.
pub(crate) struct Hands {
    at_once: InlineCompute,
    /// Most threads.
    most: usize,
    /// What was handed over and did not come back yet.
    under_way: usize,
    shared: Arc<HandsState>,
}

struct HandsState {
    queue: Mutex<CodingQueue>,
    changed: Condvar,
    bell: Bell,
}

#[derive(Default)]
struct CodingQueue {
    waiting: VecDeque<(Ticket, Computation)>,
    done: Vec<Computed>,
    /// Threads, and those of them that wait for work.
    threads: usize,
    resting: usize,
    /// Whether no work comes any more.
    over: bool,
}

impl Hands {
    /// None yet. The bell rings when something is done.
    pub(crate) fn new(bell: Bell) -> Hands {
        let shared = HandsState { queue: Mutex::default(), changed: Condvar::new(), bell };
        Hands { at_once: InlineCompute::default(), most: 0, under_way: 0, shared: Arc::new(shared) }
    }

    /// So many at most from now on.
    pub(crate) fn allow(&mut self, most: u32) {
        self.most = most as usize;
    }

    /// Whether work may be handed over: to a thread that rests, or a new one, or to wait for the next that is free.
    fn takes(&self, work: &Computation) -> bool {
        let Cost::Code { bytes, compresses: true } = (match work {
            Computation::Other(cost, _) => *cost,
            Computation::Copy { .. } => return false,
        }) else {
            return false;
        };
        bytes >= WORTH_BYTES && self.under_way <= self.most
    }

    /// Gives work back where there is no thread for it.
    fn hand_over(&mut self, ticket: Ticket, work: Computation) -> Option<Computation> {
        let mut queue = lock(&self.shared.queue);
        if queue.resting == 0 && queue.threads < self.most {
            let shared = self.shared.clone();
            let begun = thread::Builder::new().name("hyperslab-code".into()).spawn(move || shared.work());
            queue.threads += usize::from(begun.is_ok());
        }
        if queue.threads == 0 {
            return Some(work);
        }
        queue.waiting.push_back((ticket, work));
        drop(queue);
        self.under_way += 1;
        self.shared.changed.notify_one();
        None
    }
}

impl Compute for Hands {
    fn planned(&mut self, steps: u64, pieces: u64) {
        self.at_once.planned(steps, pieces);
    }

    fn submit(&mut self, ticket: Ticket, work: Computation) {
        let left = if self.most > 0 && self.takes(&work) { self.hand_over(ticket, work) } else { Some(work) };
        if let Some(work) = left {
            self.at_once.submit(ticket, work);
        }
    }

    fn poll(&mut self, done: &mut Vec<Computed>) {
        self.at_once.poll(done);
        if self.under_way > 0 {
            let before = done.len();
            done.append(&mut lock(&self.shared.queue).done);
            self.under_way -= done.len() - before;
        }
    }

    fn help(&mut self) {
        if self.under_way == 0 {
            return;
        }
        let mut queue = lock(&self.shared.queue);
        // What a hand that rests has just been woken for is its own: the rank would always be faster, and both then work in turns.
        let taken = if queue.waiting.len() > queue.resting { queue.waiting.pop_front() } else { None };
        drop(queue);
        if let Some((ticket, work)) = taken {
            self.under_way -= 1;
            self.at_once.submit(ticket, work);
            // What is done is looked at without waiting for it.
            self.shared.bell.ring();
        }
    }

    fn cut(&mut self) {
        self.at_once.cut();
        if self.under_way == 0 {
            return;
        }
        let mut queue = lock(&self.shared.queue);
        self.under_way -= queue.waiting.drain(..).count();
        // Hands compute, and wait for nothing.
        while queue.done.len() < self.under_way {
            queue = self.shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.done.clear();
        self.under_way = 0;
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        self.cut();
        lock(&self.shared.queue).over = true;
        self.shared.changed.notify_all();
    }
}

impl HandsState {
    /// The life of a hand.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            let Some((ticket, work)) = queue.waiting.pop_front() else {
                if queue.over {
                    break;
                }
                queue.resting += 1;
                let (woken, waited) = self.changed.wait_timeout(queue, REST).unwrap_or_else(PoisonError::into_inner);
                queue = woken;
                queue.resting -= 1;
                if waited.timed_out() && queue.waiting.is_empty() {
                    break;
                }
                continue;
            };
            drop(queue);
            let result = catch_unwind(AssertUnwindSafe(|| work.run())).unwrap_or_else(|_| Err(panicked()));
            queue = lock(&self.queue);
            queue.done.push((ticket, result));
            self.bell.ring();
            // The rank may wait for the last one.
            self.changed.notify_all();
        }
        queue.threads -= 1;
    }
}

fn panicked() -> Fault {
    Fault::new(FaultKind::Storage, "coding a chunk panicked").hint("please report this, with what was printed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    fn job(bytes: u64, run: impl FnOnce() -> Vec<u8> + Send + 'static) -> Computation {
        Computation::Other(Cost::Code { bytes, compresses: true }, Box::new(move || Ok(run())))
    }

    fn hands(most: u32) -> Hands {
        let mut hands = Hands::new(Bell::default());
        hands.allow(most);
        hands
    }

    fn all(hands: &mut Hands, count: usize) -> Vec<(Ticket, Vec<u8>)> {
        let (mut done, until) = (Vec::new(), Instant::now() + Duration::from_secs(60));
        while done.len() < count {
            assert!(Instant::now() < until, "{} of {count}", done.len());
            hands.help();
            hands.poll(&mut done);
        }
        let mut done: Vec<_> = done.into_iter().map(|(ticket, result)| (ticket, result.unwrap())).collect();
        done.sort();
        done
    }

    #[test]
    fn everything_comes_back_once_whoever_did_it() {
        for most in [0, 1, 3] {
            let mut hands = hands(most);
            for round in 0..20 {
                for ticket in 0..50 {
                    hands
                        .submit(ticket, job(if ticket % 3 == 0 { 1 } else { WORTH_BYTES }, move || vec![ticket as u8]));
                }
                let done = all(&mut hands, 50);
                assert_eq!(done, (0..50).map(|ticket| (ticket, vec![ticket as u8])).collect::<Vec<_>>(), "{round}");
            }
            assert_eq!(hands.under_way, 0);
        }
    }

    #[test]
    fn no_more_is_handed_over_than_keeps_them_busy() {
        let (mut hands, gate) = (hands(2), Arc::new((Mutex::new(false), Condvar::new())));
        for ticket in 0..3 {
            let gate = gate.clone();
            hands.submit(
                ticket,
                job(WORTH_BYTES, move || {
                    let mut open = lock(&gate.0);
                    while !*open {
                        open = gate.1.wait(open).unwrap();
                    }
                    Vec::new()
                }),
            );
        }
        assert_eq!(hands.under_way, 3);
        // There is no room for another: the rank does it.
        hands.submit(7, job(WORTH_BYTES, || vec![7]));
        let mut done = Vec::new();
        hands.poll(&mut done);
        assert_eq!(done, [(7, Ok(vec![7]))]);
        *lock(&gate.0) = true;
        gate.1.notify_all();
        assert_eq!(all(&mut hands, 3).len(), 3);
    }

    #[test]
    fn what_is_cut_neither_runs_nor_comes_back() {
        let (mut hands, ran) = (hands(1), Arc::new(AtomicUsize::new(0)));
        for round in 1..20 {
            for ticket in 0..2 {
                let ran = ran.clone();
                hands.submit(
                    ticket,
                    job(WORTH_BYTES, move || {
                        std::thread::sleep(Duration::from_millis(1));
                        ran.fetch_add(1, Ordering::SeqCst);
                        Vec::new()
                    }),
                );
            }
            hands.cut();
            let until_now = ran.load(Ordering::SeqCst);
            hands.submit(9, job(WORTH_BYTES, || vec![9]));
            assert_eq!(all(&mut hands, 1), [(9, vec![9])], "{round}");
            assert_eq!(ran.load(Ordering::SeqCst), until_now, "nothing touches memory after the cut");
        }
    }

    #[test]
    fn a_panic_is_an_error_of_its_work() {
        let mut hands = hands(1);
        hands.submit(1, job(WORTH_BYTES, || panic!("as planned")));
        let mut done = Vec::new();
        while done.is_empty() {
            hands.poll(&mut done);
        }
        assert_eq!(done, [(1, Err(panicked()))]);
        hands.submit(2, job(WORTH_BYTES, || vec![2]));
        assert_eq!(all(&mut hands, 1), [(2, vec![2])]);
    }
}
