//! The same of loom. A wait with a limit ends only when somebody ends it, so that a wake-up that is lost is found as a
//! deadlock and not hidden by the limit.

pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
pub(crate) use loom::thread;

/// A channel of loom's parts: its own knows of no end that is gone.
pub(crate) mod mpsc {
    use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    use std::collections::VecDeque;
    use std::iter::from_fn;
    pub(crate) use std::sync::mpsc::{RecvError, SendError, TryRecvError};

    struct Channel<T> {
        state: Mutex<State<T>>,
        news: Condvar,
    }

    struct State<T> {
        queue: VecDeque<T>,
        senders: usize,
        is_heard: bool,
    }

    pub(crate) struct Sender<T>(Arc<Channel<T>>);

    pub(crate) struct Receiver<T>(Arc<Channel<T>>);

    pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
        let state = Mutex::new(State { queue: VecDeque::new(), senders: 1, is_heard: true });
        let channel = Arc::new(Channel { state, news: Condvar::new() });
        (Sender(channel.clone()), Receiver(channel))
    }

    impl<T> Channel<T> {
        fn lock(&self) -> MutexGuard<'_, State<T>> {
            self.state.lock().unwrap()
        }
    }

    impl<T> Sender<T> {
        pub(crate) fn send(&self, value: T) -> Result<(), SendError<T>> {
            let mut state = self.0.lock();
            if !state.is_heard {
                return Err(SendError(value));
            }
            state.queue.push_back(value);
            drop(state);
            self.0.news.notify_one();
            Ok(())
        }
    }

    impl<T> Clone for Sender<T> {
        fn clone(&self) -> Sender<T> {
            self.0.lock().senders += 1;
            Sender(self.0.clone())
        }
    }

    impl<T> Drop for Sender<T> {
        fn drop(&mut self) {
            self.0.lock().senders -= 1;
            self.0.news.notify_one();
        }
    }

    impl<T> Receiver<T> {
        pub(crate) fn recv(&self) -> Result<T, RecvError> {
            let mut state = self.0.lock();
            loop {
                match state.queue.pop_front() {
                    Some(value) => return Ok(value),
                    None if state.senders == 0 => return Err(RecvError),
                    None => state = self.0.news.wait(state).unwrap(),
                }
            }
        }

        pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
            let mut state = self.0.lock();
            let gone = if state.senders == 0 { TryRecvError::Disconnected } else { TryRecvError::Empty };
            state.queue.pop_front().ok_or(gone)
        }

        pub(crate) fn try_iter(&self) -> impl Iterator<Item = T> {
            from_fn(|| self.try_recv().ok())
        }
    }

    impl<T: 'static> IntoIterator for Receiver<T> {
        type Item = T;
        type IntoIter = Box<dyn Iterator<Item = T>>;

        fn into_iter(self) -> Self::IntoIter {
            Box::new(from_fn(move || self.recv().ok()))
        }
    }

    impl<T> Drop for Receiver<T> {
        fn drop(&mut self) {
            let mut state = self.0.lock();
            state.is_heard = false;
            // What was sent may ring and lock by itself when it goes.
            let unread = std::mem::take(&mut state.queue);
            drop(state);
            drop(unread);
        }
    }
}
