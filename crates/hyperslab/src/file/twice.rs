//! Files that this program makes: of two openings of one, what the first had written would be lost when the other is closed.

use hyperslab_collective::attempts::Attempts;
use hyperslab_world::{Fault, FaultKind, Names, is_in_memory};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Which file it is: the directory, and the name in it.
type Which = ((u64, u64), String, String);

static MADE: Mutex<Vec<(Which, Weak<Attempts>)>> = Mutex::new(Vec::new());

/// Which file this is, in a place where this process is one program; `None` elsewhere.
fn which(directory: &dyn Names, name: &str) -> Result<Option<Which>, Fault> {
    let place = directory.full("");
    let process = directory.process();
    if is_in_memory(&place) {
        return Ok(Some(((process.started, 0), place, name.into())));
    }
    if process.boot.is_empty() {
        return Ok(None);
    }
    Ok(directory.identity("")?.map(|identity| (identity, String::new(), name.into())))
}

/// Refuses to write to a file that this program makes anew in another opening.
pub(super) fn check_made_once(directory: &dyn Names, name: &str) -> Result<(), Fault> {
    let Some(which) = which(directory, name)? else { return Ok(()) };
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    check(&mut made, &which, &directory.full(name))
}

fn check(made: &mut Vec<(Which, Weak<Attempts>)>, which: &Which, path: &str) -> Result<(), Fault> {
    made.retain(|(_, attempts)| attempts.upgrade().is_some_and(|attempts| attempts.is_at_work()));
    if made.iter().all(|(other, _)| other != which) {
        return Ok(());
    }
    let text = format!("'{path}' is a new file that this program has open for writing already");
    Err(Fault::new(FaultKind::Busy, text).about(path).hint("close it first, or go on with the file that is open"))
}

/// Notes that this program makes a file, as long as these attempts are at work.
///
/// # Errors
/// When it does already.
pub(super) fn note_made(directory: &dyn Names, name: &str, attempts: &Arc<Attempts>) -> Result<(), Fault> {
    let Some(which) = which(directory, name)? else { return Ok(()) };
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    check(&mut made, &which, &directory.full(name))?;
    made.push((which, Arc::downgrade(attempts)));
    Ok(())
}
