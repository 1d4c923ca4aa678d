//! Files that this program makes: of two openings of one, what the first had written would be lost when the other is closed.

use hyperslab_collective::attempts::Attempts;
use hyperslab_world::{Fault, FaultKind, Names, is_in_memory};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A file: the directory, by its number or its name in memory, and the name in it.
type Which = ((u64, u64), String, String);

static MADE: Mutex<Vec<(Which, Weak<Attempts>)>> = Mutex::new(Vec::new());

/// A file that this program is about to write.
pub(super) struct Making {
    path: String,
    /// `None` where it is not known which programs there are.
    which: Option<Which>,
}

impl Making {
    /// The file with this name, in a directory with this number, where that is known.
    pub(super) fn of(directory: &dyn Names, name: &str, above: Option<(u64, u64)>) -> Making {
        let (place, process) = (directory.full(""), directory.process());
        let which = match is_in_memory(&place) {
            true => Some(((process.started, 0), place, name.into())),
            false => above.filter(|_| !process.boot.is_empty()).map(|above| (above, String::new(), name.into())),
        };
        Making { path: directory.full(name), which }
    }

    /// Refuses to write to it if this program makes it anew in another opening.
    pub(super) fn check_once(&self) -> Result<(), Fault> {
        self.check(&mut made())
    }

    fn check(&self, made: &mut Vec<(Which, Weak<Attempts>)>) -> Result<(), Fault> {
        made.retain(|(_, attempts)| attempts.upgrade().is_some_and(|attempts| attempts.is_at_work()));
        if made.iter().all(|(other, _)| Some(other) != self.which.as_ref()) {
            return Ok(());
        }
        let text = format!("'{}' is a new file that this program has open for writing already", self.path);
        Err(Fault::new(FaultKind::Busy, text)
            .about(&*self.path)
            .hint("close it first, or go on with the file that is open"))
    }

    /// This program makes it, as long as these attempts are at work.
    ///
    /// # Errors
    /// When it does already.
    pub(super) fn begins(self, attempts: &Arc<Attempts>) -> Result<(), Fault> {
        let mut made = made();
        self.check(&mut made)?;
        made.extend(self.which.map(|which| (which, Arc::downgrade(attempts))));
        Ok(())
    }
}

fn made() -> MutexGuard<'static, Vec<(Which, Weak<Attempts>)>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}
