//! Datagrams in flight: sends and receives that MPI has begun and not yet completed.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::time::{Duration, Instant};

use super::pace::{Pace, pause};
use super::table::{Handle, Table};
use crate::wire::{Datagram, Spare, WireError, no_such_rank};

/// Largest datagram \[B\]: MPI counts bytes in an `int`.
pub(super) const DATAGRAM_BYTES_MAX: u64 = c_int::MAX as u64;
/// Most receives that are begun at a time; what comes beyond stays with MPI until some are done.
const RECEIVES_MAX: usize = 32;

/// What a wire asks of its traffic, whatever a handle is.
pub(super) trait Traffic: Send {
    fn rank(&self) -> u32;
    fn size(&self) -> u32;
    fn unsent_bytes(&self) -> u64;
    /// Bytes of datagrams that were sent or read.
    fn spare(&mut self) -> &mut Spare;
    fn is_finalized(&self) -> bool;
    /// Begins to send.
    fn send(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError>;
    /// Lets MPI work; says whether anything was completed.
    fn progress(&mut self) -> Result<bool, WireError>;
    /// Whether [`Traffic::take`] would give a datagram.
    fn has_arrived(&self) -> bool;
    /// Whether datagrams are half sent or half received, and need MPI to be called.
    fn is_busy(&self) -> bool;
    /// The next datagram that is whole, if any.
    fn take(&mut self) -> Option<Datagram>;
    /// Waits until every datagram of every rank has arrived (those to this rank are discarded), frees the communicator.
    fn close(self: Box<Self>, limit: Duration) -> Result<(), WireError>;
}

/// One receive.
struct Incoming<H> {
    from: u32,
    bytes: usize,
    buffer: Vec<u8>,
    /// `None` when it is complete.
    request: Option<H>,
}

/// The traffic of one communicator, which is this object's alone.
pub(super) struct Flow<H: Handle> {
    table: Table<H>,
    comm: H,
    rank: u32,
    size: u32,
    /// Requests of the sends, apart from their buffers because MPI wants them side by side.
    send_requests: Vec<H>,
    send_buffers: Vec<Vec<u8>>,
    unsent_bytes: u64,
    spare: Spare,
    done: Vec<c_int>,
    /// Receives in the order in which MPI matched them.
    incoming: VecDeque<Incoming<H>>,
    /// Datagrams to this rank itself, which need no MPI.
    to_self: VecDeque<Vec<u8>>,
    /// Whose turn it is when both have something, so that neither starves.
    self_first: bool,
    /// Datagrams sent to each rank, and received, other than to itself: closing compares them.
    sent: Vec<u64>,
    received: u64,
    /// The first error of MPI. What is in flight is then unknown, so nothing is done any more.
    fault: Option<WireError>,
}

// SAFETY: handles are names of objects in the MPI library, valid in every thread of the process; that MPI is called
// from a thread which may call it is checked by the wire that owns this.
unsafe impl<H: Handle> Send for Flow<H> {}

impl<H: Handle> Flow<H> {
    /// The traffic of `comm`, which nobody else may use.
    pub(super) fn new(table: Table<H>, comm: H) -> Result<Self, WireError> {
        let (rank, size) = table.rank_and_size(comm)?;
        Ok(Flow {
            table,
            comm,
            rank,
            size,
            send_requests: Vec::new(),
            send_buffers: Vec::new(),
            unsent_bytes: 0,
            spare: Spare::default(),
            done: Vec::new(),
            incoming: VecDeque::new(),
            to_self: VecDeque::new(),
            self_first: false,
            sent: vec![0; size as usize],
            received: 0,
            fault: None,
        })
    }

    /// Remembers the first error, after which nothing is done any more.
    fn guard<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, WireError>) -> Result<T, WireError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        work(self).inspect_err(|error| self.fault = Some(error.clone()))
    }

    fn finish_sends(&mut self) -> Result<bool, WireError> {
        if self.send_requests.is_empty() {
            return Ok(false);
        }
        self.table.testsome(&mut self.send_requests, &mut self.done)?;
        // From the highest index down, because each removal moves the last element into the gap.
        self.done.sort_unstable();
        for index in self.done.iter().rev().map(|index| *index as usize) {
            self.send_requests.swap_remove(index);
            let sent = self.send_buffers.swap_remove(index);
            self.unsent_bytes -= sent.len() as u64;
            self.spare.give(sent);
        }
        Ok(!self.done.is_empty())
    }

    fn begin_receives(&mut self) -> Result<(), WireError> {
        while self.incoming.len() < RECEIVES_MAX
            && let Some(found) = self.table.improbe(self.comm)?
        {
            let (from, bytes) = (found.from, found.bytes);
            let mut buffer = self.spare.take(bytes).unwrap_or_default();
            buffer.clear();
            buffer.try_reserve_exact(bytes).map_err(|cause| {
                WireError(format!("no memory for a datagram of {bytes} bytes from rank {from}: {cause}"))
            })?;
            // SAFETY: the buffer has room for the message, and is moved only as a whole, kept in `incoming`, and
            // leaked rather than freed, until the request is complete.
            let request = unsafe { self.table.imrecv(found, buffer.as_mut_ptr()) };
            match request {
                Ok(request) => {
                    let others = self.send_buffers.iter().chain(self.incoming.iter().map(|one| &one.buffer));
                    self.spare.under_way(&buffer, others);
                    self.incoming.push_back(Incoming { from, bytes, buffer, request: Some(request) });
                }
                Err(error) => {
                    std::mem::forget(buffer);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn finish_receives(&mut self) -> Result<bool, WireError> {
        let mut any = false;
        for incoming in &mut self.incoming {
            if let Some(request) = &mut incoming.request
                && self.table.test(request)?
            {
                incoming.request = None;
                // SAFETY: the request is complete, so MPI has written this many bytes, and the buffer has the room.
                unsafe { incoming.buffer.set_len(incoming.bytes) };
                self.received += 1;
                any = true;
            }
        }
        Ok(any)
    }

    /// Position of the first complete datagram whose sender has none before it that is incomplete.
    fn next_whole(&self) -> Option<usize> {
        let whole = |at: &usize| {
            let Incoming { from, request, .. } = &self.incoming[*at];
            request.is_none() && self.incoming.iter().take(*at).all(|before| before.from != *from)
        };
        (0..self.incoming.len()).find(whole)
    }

    /// Whether all datagrams are through, given how many other ranks sent to this one.
    fn is_through(&self, expected: u64) -> bool {
        self.received == expected && self.send_requests.is_empty() && self.incoming.is_empty()
    }

    /// Waits until all ranks have called this and all datagrams of all ranks have arrived.
    ///
    /// A message that nobody received must not be left behind: libraries use the number of a freed communicator again,
    /// and the next one would find it.
    fn settle(&mut self, limit: Duration) -> Result<(), WireError> {
        let deadline = Instant::now().checked_add(limit);
        // The library uses both until the sum is complete; should it never be, they stay as they are, leaked.
        let counts = std::mem::ManuallyDrop::new(std::mem::take(&mut self.sent));
        let expected = Box::into_raw(Box::new(0u64));
        // SAFETY: one number a rank and one for the sum; neither is freed before the request is complete.
        let mut request = Some(unsafe { self.table.isum(self.comm, counts.as_ptr(), expected)? });
        let mut pace = Pace::default();
        loop {
            if self.progress()? {
                pace.reset();
            }
            while self.take().is_some() {}
            if let Some(sum) = &mut request
                && self.table.test(sum)?
            {
                request = None;
            }
            // SAFETY: the sum is complete, so this is again ours alone.
            if request.is_none() && self.is_through(unsafe { expected.read() }) {
                // SAFETY: made by Box::into_raw above, and freed only here; the counts likewise.
                drop((unsafe { Box::from_raw(expected) }, std::mem::ManuallyDrop::into_inner(counts)));
                return Ok(());
            }
            if deadline.is_some_and(|end| Instant::now() >= end) {
                return Err(self.unsettled(request.is_none(), limit));
            }
            pace.turn(pause);
        }
    }

    fn unsettled(&self, summed: bool, limit: Duration) -> WireError {
        let what = if summed { "datagrams are still on their way" } else { "other ranks have not begun to close" };
        WireError(format!(
            "rank {} of {} could not close its wire within {limit:?}: {what} ({} sends of {} bytes unfinished, {} \
             receives unfinished); the communicator and these buffers are kept",
            self.rank,
            self.size,
            self.send_requests.len(),
            self.unsent_bytes,
            self.incoming.len(),
        ))
    }
}

impl<H: Handle> Traffic for Flow<H> {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn unsent_bytes(&self) -> u64 {
        self.unsent_bytes
    }

    fn spare(&mut self) -> &mut Spare {
        &mut self.spare
    }

    fn is_finalized(&self) -> bool {
        self.table.is_finalized()
    }

    fn send(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError> {
        if to >= self.size {
            return Err(no_such_rank(self.rank, to, self.size));
        }
        if bytes.len() as u64 > DATAGRAM_BYTES_MAX {
            let (length, rank) = (bytes.len(), self.rank);
            let limit = format!("a datagram has at most {DATAGRAM_BYTES_MAX} bytes");
            return Err(WireError(format!("rank {rank} cannot send {length} bytes at once to rank {to}: {limit}")));
        }
        if to == self.rank {
            self.to_self.push_back(bytes);
            return Ok(());
        }
        self.guard(|flow| {
            // SAFETY: the bytes are kept in `send_buffers`, where only their owner moves and not they themselves, and
            // leaked rather than freed, until the request is complete.
            match unsafe { flow.table.isend(flow.comm, to, &bytes) } {
                Ok(request) => flow.send_requests.push(request),
                Err(error) => {
                    std::mem::forget(bytes);
                    return Err(error);
                }
            }
            flow.unsent_bytes += bytes.len() as u64;
            let others = flow.send_buffers.iter().chain(flow.incoming.iter().map(|one| &one.buffer));
            flow.spare.under_way(&bytes, others);
            flow.send_buffers.push(bytes);
            flow.sent[to as usize] += 1;
            Ok(())
        })
    }

    fn progress(&mut self) -> Result<bool, WireError> {
        self.guard(|flow| {
            let sent = flow.finish_sends()?;
            flow.begin_receives()?;
            Ok(flow.finish_receives()? | sent)
        })
    }

    fn has_arrived(&self) -> bool {
        !self.to_self.is_empty() || self.next_whole().is_some()
    }

    fn is_busy(&self) -> bool {
        !self.send_requests.is_empty() || !self.incoming.is_empty()
    }

    fn take(&mut self) -> Option<Datagram> {
        self.self_first = !self.self_first;
        let own = |flow: &mut Self| flow.to_self.pop_front().map(|bytes| (flow.rank, bytes));
        if self.self_first
            && let Some(datagram) = own(self)
        {
            return Some(datagram);
        }
        match self.next_whole().and_then(|at| self.incoming.remove(at)) {
            Some(incoming) => Some((incoming.from, incoming.buffer)),
            None => own(self),
        }
    }

    fn close(mut self: Box<Self>, limit: Duration) -> Result<(), WireError> {
        self.guard(|flow| flow.settle(limit))?;
        self.table.free(self.comm)
    }
}

/// What MPI may still touch is leaked, and MPI is not called: it may be finalised by now.
impl<H: Handle> Drop for Flow<H> {
    fn drop(&mut self) {
        std::mem::take(&mut self.send_buffers).into_iter().for_each(std::mem::forget);
        let unfinished = std::mem::take(&mut self.incoming).into_iter().filter(|incoming| incoming.request.is_some());
        unfinished.for_each(|incoming| std::mem::forget(incoming.buffer));
    }
}
