//! A queue of jobs and the threads that carry them out: one for each device, as deep as the device likes it.

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, thread};
use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Duration;

/// How long a thread waits for the next job before it ends.
const IDLE: Duration = Duration::from_secs(5);

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Jobs begin in the order of their submission, as many at once as the queue is deep; they may end in any order.
pub(super) struct Queue {
    shared: Arc<Shared>,
    depth_max: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is a job, or the queue is closed.
    news: Condvar,
    /// No job is unfinished.
    quiet: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Jobs submitted and not over.
    unfinished: usize,
    threads: usize,
    /// Threads without a job.
    idle: usize,
    closed: bool,
}

impl Queue {
    /// A queue of at most so many jobs at once. No thread is started before it is needed.
    pub(super) fn new(depth_max: usize) -> Queue {
        Queue { shared: Arc::default(), depth_max: depth_max.max(1) }
    }

    pub(super) fn submit(&self, job: Job) {
        let mut state = self.shared.lock();
        state.unfinished += 1;
        state.jobs.push_back(job);
        if state.jobs.len() > state.idle && state.threads < self.depth_max {
            let shared = self.shared.clone();
            let started = thread::Builder::new().name("hyperslab-disk".into()).spawn(move || Shared::serve(&shared));
            state.threads += usize::from(started.is_ok());
        }
        // Where the system gives no thread at all, the work is done all the same.
        let mine = if state.threads == 0 { state.jobs.pop_front() } else { None };
        drop(state);
        self.shared.news.notify_one();
        if let Some(job) = mine {
            self.shared.run(job);
        }
    }

    /// Waits until all that was submitted is over.
    pub(super) fn wait(&self) {
        let mut state = self.shared.lock();
        while state.unfinished > 0 {
            state = self.shared.quiet.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Queue {
    /// Lets the threads finish what there is; nobody waits for them.
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.news.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The life of a thread.
    fn serve(shared: &Shared) {
        while let Some(job) = shared.next() {
            shared.run(job);
        }
    }

    /// The next job, `None` when the thread shall end.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        state.idle += 1;
        let mut waited = false;
        while state.jobs.is_empty() && !state.closed && !waited {
            let (again, timeout) = self.news.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            (state, waited) = (again, timeout.timed_out());
        }
        state.idle -= 1;
        let job = state.jobs.pop_front();
        if job.is_none() {
            state.threads -= 1;
        }
        job
    }

    /// Carries out a job. One that panics is over as well: who waits must not wait for ever.
    fn run(&self, job: Job) {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
        let mut state = self.lock();
        state.unfinished -= 1;
        if state.unfinished == 0 {
            self.quiet.notify_all();
        }
    }
}

#[cfg(all(loom, test))]
#[path = "../sync/tests/queues.rs"]
mod models;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn as_many_jobs_run_at_once_as_the_queue_is_deep() {
        let queue = Queue::new(3);
        // Three jobs that wait for each other end only if they run at once; more than three are never seen.
        let (together, running, most) =
            (Arc::new(Barrier::new(3)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..30 {
            let (together, running, most) = (together.clone(), running.clone(), most.clone());
            queue.submit(Box::new(move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                together.wait();
                running.fetch_sub(1, Ordering::SeqCst);
            }));
        }
        queue.wait();
        assert_eq!(most.load(Ordering::SeqCst), 3);
        assert_eq!(running.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn one_thread_keeps_the_order() {
        let queue = Queue::new(1);
        let seen = Arc::new(Mutex::new(Vec::new()));
        for number in 0..100 {
            let seen = seen.clone();
            queue.submit(Box::new(move || seen.lock().unwrap().push(number)));
        }
        queue.wait();
        assert_eq!(*seen.lock().unwrap(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_job_that_panics_is_over() {
        let queue = Queue::new(2);
        let after = Arc::new(AtomicUsize::new(0));
        queue.submit(Box::new(|| panic!("on purpose")));
        for _ in 0..4 {
            let after = after.clone();
            queue.submit(Box::new(move || {
                after.fetch_add(1, Ordering::SeqCst);
            }));
        }
        queue.wait();
        assert_eq!(after.load(Ordering::SeqCst), 4);
    }

    #[test]
    fn a_dropped_queue_finishes_what_it_has() {
        let queue = Queue::new(2);
        let (done, told) = std::sync::mpsc::channel();
        for number in 0..10 {
            let done = done.clone();
            queue.submit(Box::new(move || done.send(number).unwrap()));
        }
        drop((queue, done));
        assert_eq!(told.iter().count(), 10);
    }
}
