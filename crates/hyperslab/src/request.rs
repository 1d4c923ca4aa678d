//! Calls that do not block.

use crate::comm::{Comm, Inside};
use crate::error::Error;
use crate::line::{Chore, Finished, Outcome};
use crate::unready::Unready;
use hyperslab_collective::{LocalArray, Ownership, Report};
use hyperslab_layout::mesh::volume;
use hyperslab_plan::{Parameters, Preference};
use hyperslab_world::{Fault, FaultKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A call under way. Requests of one communicator are carried out one after another, in the order of their calls.
///
/// A failure of a request that is dropped without [`Request::wait`] is that of the next collective call.
pub struct Request {
    comm: Comm,
    outcome: Arc<Outcome>,
}

impl Request {
    /// Waits for the end, and gives the arrays that were read and what it did. May be called again. With dedicated
    /// servers, a write ends here when its data have left this rank.
    ///
    /// # Errors
    /// The same on all ranks.
    pub fn wait(&self) -> Result<(Vec<LocalArray>, Report), Error> {
        self.comm.check_usable()?;
        Ok(self.comm.line().result(&self.outcome)?)
    }

    /// Whether it is over, well or not. Does not wait. Where MPI may be called only from the thread of the user, its
    /// messages move only while that thread is in here, in [`Request::wait`] or in a collective call.
    pub fn test(&self) -> bool {
        self.comm.line().is_over(&self.outcome)
    }
}

impl Request {
    /// Ends it on all ranks, unless it is over, as an interrupt does that meets it in [`Request::wait`].
    pub fn stop(&self) {
        self.comm.line().stop_through(self.outcome.number);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.outcome.dropped.store(true, Ordering::Relaxed);
    }
}

/// What a call that does not block may use, once its copies are made.
pub(crate) struct Room {
    /// Bytes set aside on this rank \[B\].
    staged: u64,
    /// What the planner may use, and how much the copies of a rank have of the rest.
    pub(crate) hints: Preference,
    pub(crate) held: u64,
}

/// Copies arrays into memory of this library if that is asked for, and says what is left for buffers.
///
/// Half of the budget is for copies, or more for a single one that needs it; what remains is for slots. The figures
/// follow from what is asked, so that they are the same on all ranks.
pub(crate) fn stage<'a>(
    comm: &Comm,
    hints: &Preference,
    staged: bool,
    arrays: impl Iterator<Item = (&'a str, &'a mut Vec<LocalArray>, &'a Ownership)>,
) -> Result<Room, Fault> {
    let most = hints.buffer_bytes_max.unwrap_or_else(|| Parameters::default().buffer_bytes_max);
    // Dedicated servers have the slots, and clients have the copies.
    let apart = comm.servers() > 0;
    if !staged {
        let slots = if apart { most } else { most - most / 2 };
        let hints = Preference { buffer_bytes_max: Some(slots), ..hints.clone() };
        return Ok(Room { staged: 0, hints, held: 0 });
    }
    let arrays: Vec<_> = arrays.collect();
    let known = largest_part(&arrays);
    let largest = known.unwrap_or(0);
    let mine: u64 = arrays.iter().flat_map(|(_, parts, _)| parts.iter()).map(LocalArray::bytes).sum();
    let names: Vec<&str> = arrays.iter().map(|a| a.0).collect();
    // Of pieces of its own a rank knows nobody else's; then copies get half, on every rank.
    let most_copies = if known.is_some() { most } else { most / 2 + 1 };
    if largest.max(mine) >= most_copies {
        let text = format!(
            "copies of {} take {} B on a rank, but there may be {most} B of buffers (buffer_bytes), of which a \
             transfer needs some, too",
            crate::array_write::listed(&names),
            largest.max(mine)
        );
        return Err(Fault::new(FaultKind::Invalid, text)
            .hint("give staged=False, which needs no copy, or write fewer arrays in a call, or raise buffer_bytes"));
    }
    comm.line().admit(mine, if apart { most } else { most / 2 });
    for (name, parts, _) in arrays {
        for array in parts {
            *array = array.copied(name).inspect_err(|_| comm.line().forgo(mine))?;
        }
    }
    let held = if apart { 0 } else { largest.max(most / 2) };
    let hints = Preference { buffer_bytes_max: Some(most - held), ..hints.clone() };
    Ok(Room { staged: mine, hints, held })
}

/// Bytes that no rank's parts exceed, where closed forms say so \[B\].
fn largest_part(arrays: &[(&str, &mut Vec<LocalArray>, &Ownership)]) -> Option<u64> {
    let bytes = |(_, parts, holding): &(&str, &mut Vec<LocalArray>, &Ownership)| {
        let element = parts.first().map_or(1, |array| array.element.bytes());
        let shape = holding.regular()?.largest_part().shape();
        Some(volume(&shape).unwrap_or(u64::MAX).saturating_mul(element))
    };
    arrays.iter().map(bytes).sum()
}

impl Comm {
    /// Leaves a call to the line. `work` gets a communicator through which it may call at once.
    pub(crate) fn leave(
        &self,
        target: u64,
        room: Option<&Room>,
        work: impl FnOnce(&Comm) -> Result<Finished, Error> + Send + 'static,
    ) -> Request {
        self.leave_task(target, room, |_, comm| move || work(&comm).map_err(Fault::from))
    }

    /// The same for a task that is made with the number of the request, and a communicator through which it may call at once.
    pub(crate) fn leave_task<T: Chore>(
        &self,
        target: u64,
        room: Option<&Room>,
        task: impl FnOnce(u64, Comm) -> T,
    ) -> Request {
        let outcome = self.line().outcome(target);
        let task = task(outcome.number, self.inside(Inside(outcome.clone())));
        self.submit(outcome.clone(), room.map_or(0, |room| room.staged), Box::new(task));
        Request { comm: self.clone(), outcome }
    }

    /// As [`Comm::attend`], for a call that does not block.
    pub(crate) fn attend_later(&self, target: u64, what: &str, why: Unready) -> Request {
        self.refuse_later(target, what.to_string(), why.into())
    }

    /// The same, for a fault that was found here.
    pub(crate) fn refuse_later(&self, target: u64, what: String, fault: Fault) -> Request {
        self.leave(target, None, move |comm| Err(comm.attend_with(&what, fault.context(&what))))
    }
}
