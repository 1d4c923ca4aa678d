//! The end of the program: what is still open, what was left undone, and the exit status that says so.

use crate::any_target::AnyTarget;
use crate::interrupts::waiting;
use hyperslab::binding::{Unpublished, tell};
use pyo3::prelude::*;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::Duration;

/// What is open, until it is closed.
pub(crate) type SharedTarget = Arc<Mutex<Option<AnyTarget>>>;

/// All that is open and of which a rank alone may see the end, the oldest first.
static OPEN: Mutex<Vec<Weak<Mutex<Option<AnyTarget>>>>> = Mutex::new(Vec::new());

/// Takes note of something new that is open, or of a step.
pub(crate) fn opened(target: &SharedTarget) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if open.len() == open.capacity() {
        open.retain(|one| one.strong_count() > 0);
    }
    open.push(Arc::downgrade(target));
}

/// Closes what this rank has open by itself, the youngest first: all that it may end without others.
fn close_alone() {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    for one in open.iter().rev().filter_map(Weak::upgrade) {
        // Where somebody holds it, a call of another thread is under way.
        let Ok(mut held) = one.try_lock() else { continue };
        let Some(target) = held.take_if(|target| target.ends_alone()) else { continue };
        drop(held);
        let told = target.told();
        match target.end(None) {
            Ok(()) => tell(&format!("{told} was never closed; it was closed at the end of the program")),
            Err(error) => {
                tell(&format!("{told} was never closed, and could not be at the end of the program: {error}"))
            }
        }
    }
}

/// Ends what the program has left: waits for requests, closes what this rank may close by itself where the program ends `well`,
/// and tells what was left undone. Says whether there was anything to tell.
#[pyfunction]
pub(crate) fn finalize(py: Python<'_>, patience: f64, well: bool) -> PyResult<bool> {
    let patience = Duration::try_from_secs_f64(patience).unwrap_or(Duration::MAX / 4);
    waiting(py, || {
        if well {
            close_alone();
        }
        hyperslab::finalize(patience)
    })
}

/// Tells of something that was left undone, once.
#[pyfunction]
pub(crate) fn tell_left(text: &str) {
    tell(text);
}

/// What a child of this process inherits is its parent's to end.
#[pyfunction]
pub(crate) fn forget() {
    if let Ok(mut open) = OPEN.try_lock() {
        open.clear();
    }
}

/// Something of which readers see nothing until it is ended, and that is kept elsewhere.
#[pyclass(frozen, name = "Undone", module = "hyperslab._core")]
pub(crate) struct UndoneHandle(Unpublished);

#[pymethods]
impl UndoneHandle {
    #[new]
    fn new(text: String) -> UndoneHandle {
        UndoneHandle(Unpublished::new(move || text.clone()))
    }

    /// It was ended, or given up.
    fn end(&self) {
        self.0.end();
    }
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    /// Of glibc: as `atexit`, and tells the exit status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    fn exit(status: c_int) -> !;
}

/// The process that shall not end with status 0.
static FAILED: AtomicU32 = AtomicU32::new(0);

#[cfg(target_env = "gnu")]
extern "C" fn fail(status: c_int, _: *mut c_void) {
    if status == 0 && FAILED.load(Ordering::Relaxed) == std::process::id() {
        // SAFETY: the C library carries out the handlers that are left and then ends the process, also in a handler.
        unsafe { exit(1) }
    }
}

/// A program that ends otherwise well ends with status 1.
#[pyfunction]
pub(crate) fn fail_at_exit() {
    static ONCE: Once = Once::new();
    FAILED.store(std::process::id(), Ordering::Relaxed);
    ONCE.call_once(|| {
        #[cfg(target_env = "gnu")]
        // SAFETY: the function is there as long as the process, and needs no argument.
        let _ = unsafe { on_exit(fail, std::ptr::null_mut()) };
    });
}
