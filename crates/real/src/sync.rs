//! What threads of this crate meet at: locks, conditions, channels. They are the standard library's, and in the models of
//! `sync/tests/` (`make loom`) those of loom, which carries a model out in each order in which its threads may take turns.
//! What is checked is thus what ships.

#[cfg(all(loom, test))]
mod checked;
#[cfg(all(loom, test))]
pub(crate) mod tests;

#[cfg(all(loom, test))]
pub(crate) use checked::{Arc, Condvar, Mutex, MutexGuard, atomic, mpsc, thread};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic, mpsc};
#[cfg(not(all(loom, test)))]
pub(crate) use std::thread;

use std::sync::PoisonError;

/// Locks without regard to a panic elsewhere: what the locks of this crate guard is whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
