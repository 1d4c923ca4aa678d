//! How far a file has come to be seen.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

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
    /// That of a file that is opened: a new one is hidden.
    pub(super) fn of_mode(new: bool) -> PhaseNow {
        PhaseNow::of(if new { FilePhase::Hidden } else { FilePhase::There })
    }

    fn of(phase: FilePhase) -> PhaseNow {
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

    /// Whether it ever had its name.
    pub(super) fn was_shown(&self) -> bool {
        self.shown.load(Ordering::SeqCst)
    }
}
