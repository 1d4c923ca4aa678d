//! How far a file has come to be seen.

use super::Contained;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// How a file that is open is seen by others, and so what becomes of what is written to it. All ranks know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FilePhase {
    /// It is new, and has a hidden name: nothing of it is seen.
    Hidden,
    /// It has its name. What is added lies behind what readers see, and is seen with the next publication.
    Gathering,
    /// It is there, and is changed where it lies.
    There,
}

/// The phase of a file, which all handles to it share.
#[derive(Debug)]
pub(super) struct PhaseNow {
    now: AtomicU8,
    /// Whether it ever had its name.
    shown: AtomicBool,
}

impl PhaseNow {
    pub(super) fn of(phase: FilePhase) -> PhaseNow {
        PhaseNow { now: AtomicU8::new(phase as u8), shown: AtomicBool::new(phase != FilePhase::Hidden) }
    }

    pub(super) fn set(&self, phase: FilePhase) {
        self.shown.fetch_or(phase != FilePhase::Hidden, Ordering::SeqCst);
        self.now.store(phase as u8, Ordering::SeqCst);
    }

    pub(super) fn get(&self) -> FilePhase {
        let now = self.now.load(Ordering::SeqCst);
        let all = [FilePhase::Hidden, FilePhase::Gathering, FilePhase::There];
        all.into_iter().find(|phase| *phase as u8 == now).expect("it was set to one of these")
    }

    /// Whether something was written that is seen only when the file is published: then, whether readers see an earlier state.
    pub(super) fn unseen(&self, inside: &Mutex<Contained>) -> Option<bool> {
        match self.get() {
            FilePhase::Hidden => Some(self.was_shown()),
            FilePhase::Gathering => inside.lock().unwrap_or_else(PoisonError::into_inner).changed.then_some(true),
            FilePhase::There => None,
        }
    }

    /// Whether it ever had its name.
    pub(super) fn was_shown(&self) -> bool {
        self.shown.load(Ordering::SeqCst)
    }
}
