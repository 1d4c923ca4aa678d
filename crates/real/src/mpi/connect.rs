//! Getting a communicator of one's own, without blocking.

use std::time::{Duration, Instant};

use super::pace::{Pace, pause};
use super::table::{Handle, Table};
use super::traffic::{Flow, Traffic};
use hyperslab_world::{Fault, FaultKind};

/// How often the caller is asked whether to go on: asking may take an interpreter's lock, which has its price.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Duplicates the communicator and makes it the wire's own. Also says whether it joins nobody, since MPI knows of this process
/// only.
pub(super) fn connect<H: Handle>(
    table: Table<H>,
    fortran_comm: i32,
    limit: Duration,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<(Box<dyn Traffic>, bool), Fault> {
    let comm = table.communicator(fortran_comm)?;
    let (rank, size) = table.rank_and_size(comm)?;
    let is_lone = size == 1 && table.is_lone_world(comm)?;
    let copy = duplicate(&table, comm, limit, interrupted)
        .map_err(|why| why.context(format!("rank {rank} of {size} could not duplicate the communicator")))?;
    table.return_errors(copy)?;
    Ok((Box::new(Flow::new(table, copy)?), is_lone))
}

/// A private copy of a communicator. When it is given up, MPI keeps what it needs to complete it later.
fn duplicate<H: Handle>(
    table: &Table<H>,
    comm: H,
    limit: Duration,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<H, Fault> {
    let start = Instant::now();
    let mut asked = start;
    let mut pace = Pace::default();
    // On the heap and freed only on success: MPI may write there even after this function has given up.
    let copy = Box::into_raw(Box::new(H::NONE));
    // SAFETY: the place is valid until it is freed below, when the request is complete.
    let mut request = unsafe { table.idup(comm, copy)? };
    while !table.test(&mut request)? {
        let now = Instant::now();
        if now.duration_since(start) >= limit {
            let text = format!("not all ranks have come within {limit:?}");
            return Err(Fault::new(FaultKind::Timeout, text).hint("let every rank of the communicator take part"));
        }
        if now.duration_since(asked) >= ASK_EVERY {
            asked = now;
            if interrupted() {
                return Err(Fault::new(FaultKind::Interrupted, "interrupted"));
            }
        }
        pace.turn(pause);
    }
    // SAFETY: made by Box::into_raw above; the request is complete, so MPI has written it and uses it no more.
    Ok(*unsafe { Box::from_raw(copy) })
}
