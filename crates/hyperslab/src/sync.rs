//! What threads of this crate meet at: locks and conditions. They are the standard library's, and in the models of
//! `line/tests.rs` (`make loom`) those of loom, which carries a model out in each order in which its threads may take turns.

#[cfg(all(loom, test))]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
#[cfg(all(loom, test))]
pub(crate) use loom::thread;
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(all(loom, test)))]
pub(crate) use std::{thread, thread_local};

/// Locks what no model covers.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Loom's takes no `const` block.
#[cfg(all(loom, test))]
macro_rules! local_of_thread {
    ($(#[$attribute:meta])* static $name:ident: $held:ty = const $begins:block;) => {
        loom::thread_local! { $(#[$attribute])* static $name: $held = $begins; }
    };
}
#[cfg(all(loom, test))]
pub(crate) use local_of_thread as thread_local;
