//! Communicators.

use crate::foreign::{given, handle, room, several, taken};
use crate::handles::CommHandle;
use crate::member::{CMember, border};
use hyperslab::{Comm, Error};
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

/// How long ranks wait for each other when a communicator is made or freed.
const MEETING: Duration = Duration::from_secs(1800);

fn made(comm: Comm) -> CommHandle {
    CommHandle(Arc::new(CMember::new(comm)))
}

/// A duplicate of an MPI communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_comm_from_integer(integer: c_int, comm: *mut *mut CommHandle) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let place = unsafe { handle(comm) }?;
        place.put(made(Comm::mpi(integer, None, MEETING, &mut || false)?));
        Ok(())
    })
}

/// This process alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_comm_alone(comm: *mut *mut CommHandle) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        unsafe { handle(comm) }?.put(made(Comm::alone()));
        Ok(())
    })
}

/// Threads as ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_comm_threads(ranks: i32, comms: *mut *mut CommHandle) -> c_int {
    border(|| {
        let count = u32::try_from(ranks).ok().filter(|ranks| *ranks > 0);
        let count = count.ok_or_else(|| Error::invalid(format!("there cannot be {ranks} ranks")))?;
        // SAFETY: the caller has room for so many; whatever is there is not looked at.
        unsafe {
            several(
                "the room for communicators",
                comms.cast_const().cast::<std::mem::MaybeUninit<usize>>(),
                ranks.into(),
            )
        }?;
        for (rank, comm) in Comm::threads(count).into_iter().enumerate() {
            // SAFETY: there is room for each.
            unsafe { handle(comms.add(rank)) }?.put(made(comm));
        }
        Ok(())
    })
}

/// Ends a membership.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_comm_free(comm: *mut CommHandle) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let CommHandle(member) = unsafe { taken("the communicator", comm) }?;
        member.alone(|| {
            let (failures, _) = member.comm.finish(MEETING);
            let closed = member.comm.close(MEETING);
            failures.into_iter().next().map_or(closed, Err)
        })
    })
}

/// The number of this rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_comm_rank(comm: *const CommHandle, rank: *mut i32) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        unsafe { *room("the room for a rank", rank)? = given("the communicator", comm)?.0.comm.rank() as i32 };
        Ok(())
    })
}

/// How many ranks there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_comm_size(comm: *const CommHandle, size: *mut i32) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        unsafe { *room("the room for a size", size)? = given("the communicator", comm)?.0.comm.size() as i32 };
        Ok(())
    })
}

/// What becomes of failures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_set_errors(comm: *mut CommHandle, errors: c_int) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let member = unsafe { &given("the communicator", comm.cast_const())?.0 };
        match errors {
            0 | 1 => member.set_aborts(errors == 1),
            _ => {
                let text = format!("errors must be HYPERSLAB_RETURN or HYPERSLAB_ABORT, got {errors}");
                return Err(Error::invalid(text).into());
            }
        }
        Ok(())
    })
}
