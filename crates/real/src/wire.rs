//! Wires: ordered, reliable datagrams between ranks, and the wire between threads of one process.
//!
//! A wire is the lowest common ground of threads and MPI. Nothing here blocks except [`Wire::doze`], and that one has
//! a limit. Bulk data are not for wires to hold back: the layer above sends them only on the receiver's grant.

pub use crate::bell::Bell;
use crate::sync::thread::ThreadId;
use crate::sync::{Mutex, lock};
use hyperslab_world::{Fault, FaultKind};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a wire could not do what was asked, in words for a person.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WireError(pub String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Fault {
        Fault::new(FaultKind::Peer, error.0)
    }
}

/// A datagram that arrived: its sender and its bytes.
pub type Datagram = (u32, Vec<u8>);

/// One rank's end of the datagrams between all ranks.
///
/// Promised: each datagram arrives once, whole, and those from one rank to another in the order of their sending (a
/// rank may send to itself). Not promised: any order between different senders, or that a datagram which is no longer
/// counted as unsent has arrived.
pub trait Wire: Send {
    /// This rank, below [`Wire::size`].
    fn rank(&self) -> u32;

    /// Number of ranks.
    fn size(&self) -> u32;

    /// Whether all ranks are threads of this process.
    fn is_one_process(&self) -> bool;

    /// Queues a datagram for rank `to` and returns at once; the wire owns the bytes until they are handed over.
    fn send(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError>;

    /// As [`Wire::send`], but a rank that dozes is not woken up, if that can be helped.
    fn note(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError> {
        self.send(to, bytes)
    }

    /// Whether the process of a rank is known to have ended.
    fn is_gone(&self, rank: u32) -> bool {
        let _ = rank;
        false
    }

    /// One arrived datagram with its sender, if there is any. Sends make progress here, too.
    fn poll(&mut self) -> Result<Option<Datagram>, WireError>;

    /// So many bytes of whatever values for a datagram, of one that was sent or read before and is spare, if there is any.
    fn spare(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let _ = bytes;
        None
    }

    /// Takes the bytes of a datagram that was read, for those that follow.
    fn reuse(&mut self, bytes: Vec<u8>) {
        drop(bytes);
    }

    /// Frees what is spare.
    fn free_spare(&mut self) {}

    /// Bytes that are queued and not yet handed over \[B\]: for flow control and for closing.
    fn unsent_bytes(&self) -> u64;

    /// Waits for news up to `limit`: a datagram, a send that finished, or a ring of the bell. It may return early
    /// without any, and reports no error; the next [`Wire::poll`] does.
    fn doze(&mut self, limit: Duration);

    /// The same where nothing is waited for but a ring by a thread of this process, which needs the processor: what arrives
    /// meanwhile may be noticed later.
    fn doze_for_ring(&mut self, limit: Duration) {
        self.doze(limit);
    }

    /// What other threads ring to end a doze.
    fn bell(&self) -> Bell;

    /// The only thread that may call this, if not all may; see [`crate::relay`].
    fn bound_to(&self) -> Option<ThreadId>;

    /// Ends the wire. Collective; waits for the other ranks up to `limit` and then gives up with an error.
    fn close(self: Box<Self>, limit: Duration) -> Result<(), WireError>;
}

/// Bytes of datagrams that were sent or read, for those that follow: an allocator would give many back to the system, and have
/// each page anew, which takes longer than to fill it.
#[derive(Default)]
pub(crate) struct Spare {
    each: Vec<Vec<u8>>,
    /// How many long datagrams were under way at once; as many are kept at most.
    most: usize,
}

impl Spare {
    /// Shorter ones an allocator keeps by itself \[B\].
    const BYTES_MIN: usize = 64 << 10;

    fn is_long(bytes: &Vec<u8>) -> bool {
        bytes.capacity() >= Spare::BYTES_MIN
    }

    /// Says which datagrams are under way, now that this one is. Short ones are as many as there are ranks, and do not count.
    pub(crate) fn under_way<'a>(&mut self, new: &Vec<u8>, others: impl Iterator<Item = &'a Vec<u8>>) {
        if Spare::is_long(new) {
            self.most = self.most.max(1 + others.filter(|bytes| Spare::is_long(bytes)).count());
        }
    }

    /// So many bytes, if some are spare that have the room; else one that is too short for them goes.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        if bytes < Spare::BYTES_MIN {
            return None;
        }
        let fits = |at: &usize| self.each[*at].capacity() >= bytes;
        let least = (0..self.each.len()).filter(fits).min_by_key(|&at| self.each[at].capacity());
        let Some(least) = least else {
            self.each.pop();
            return None;
        };
        let mut found = self.each.swap_remove(least);
        found.resize(bytes, 0);
        Some(found)
    }

    pub(crate) fn give(&mut self, bytes: Vec<u8>) {
        if Spare::is_long(&bytes) && self.each.len() < self.most {
            self.each.push(bytes);
        }
    }
}

/// The datagrams on their way to one rank; `None` once its wire is gone.
struct Inbox {
    queue: Mutex<Option<VecDeque<Datagram>>>,
    bell: Bell,
}

/// The wire of one thread that stands in for a rank.
///
/// What is sent to a rank whose wire was dropped is discarded, as on a network.
pub struct ThreadWire {
    rank: u32,
    inboxes: Arc<[Inbox]>,
}

/// Wires that join `size` ranks of this process, in rank order.
pub fn thread_wires(size: u32) -> Vec<ThreadWire> {
    let inbox = |_| Inbox { queue: Mutex::new(Some(VecDeque::new())), bell: Bell::default() };
    let inboxes: Arc<[Inbox]> = (0..size).map(inbox).collect();
    (0..size).map(|rank| ThreadWire { rank, inboxes: Arc::clone(&inboxes) }).collect()
}

impl ThreadWire {
    fn inbox(&self) -> &Inbox {
        &self.inboxes[self.rank as usize]
    }
}

impl Wire for ThreadWire {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.inboxes.len() as u32
    }

    fn is_one_process(&self) -> bool {
        true
    }

    fn send(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError> {
        self.note(to, bytes)?;
        self.inboxes[to as usize].bell.ring();
        Ok(())
    }

    fn note(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError> {
        let inbox = self.inboxes.get(to as usize).ok_or_else(|| no_such_rank(self.rank, to, self.size()))?;
        if let Some(queue) = lock(&inbox.queue).as_mut() {
            queue.push_back((self.rank, bytes));
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<Datagram>, WireError> {
        Ok(lock(&self.inbox().queue).as_mut().and_then(VecDeque::pop_front))
    }

    /// Always 0: a datagram is in the other rank's hands as soon as it is sent.
    fn unsent_bytes(&self) -> u64 {
        0
    }

    fn doze(&mut self, limit: Duration) {
        let waiting = lock(&self.inbox().queue).as_ref().is_some_and(|queue| !queue.is_empty());
        if !waiting {
            self.inbox().bell.wait(limit);
        }
    }

    fn bell(&self) -> Bell {
        self.inbox().bell.clone()
    }

    fn bound_to(&self) -> Option<ThreadId> {
        None
    }

    fn close(self: Box<Self>, _limit: Duration) -> Result<(), WireError> {
        Ok(())
    }
}

impl Drop for ThreadWire {
    fn drop(&mut self) {
        *lock(&self.inbox().queue) = None;
    }
}

/// The error of a datagram to a rank that does not exist.
pub(crate) fn no_such_rank(from: u32, to: u32, size: u32) -> WireError {
    WireError(format!("rank {from} cannot send a datagram to rank {to}: there are {size} ranks, from 0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Receives the next datagram, dozing meanwhile.
    fn next(wire: &mut ThreadWire) -> Datagram {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(datagram) = wire.poll().unwrap() {
                return datagram;
            }
            assert!(Instant::now() < deadline, "no datagram arrived at rank {} within 20 s", wire.rank());
            wire.doze(Duration::from_secs(5));
        }
    }

    #[test]
    fn as_many_bytes_are_spare_as_were_under_way() {
        let long = Spare::BYTES_MIN;
        let mut spare = Spare::default();
        spare.give(vec![0; long]);
        assert_eq!(spare.take(long), None, "nothing was under way");
        let (one, short) = (vec![0; long], vec![0; long - 1]);
        spare.under_way(&one, [&one, &short, &short].into_iter());
        spare.under_way(&one, [].into_iter());
        spare.under_way(&short, [&one, &one, &one].into_iter());
        [3 * long, long, 2 * long].into_iter().for_each(|bytes| spare.give(vec![7; bytes]));
        spare.give(vec![7; long - 1]);
        assert_eq!(spare.take(long - 1), None, "the allocator has such");
        // The shortest that has the room, whatever is in it; the third was one too many.
        let found = spare.take(long).unwrap();
        assert_eq!((found.len(), found.capacity()), (long, long));
        let found = spare.take(long + 5).unwrap();
        assert_eq!((found.len(), found.capacity()), (long + 5, 3 * long));
        spare.give(found);
        let again = spare.take(3 * long).unwrap();
        assert_eq!((again.len(), again.capacity()), (3 * long, 3 * long));
        spare.give(again);
        assert_eq!(spare.take(4 * long), None);
        assert!(spare.each.is_empty(), "one that is too short makes room");
    }

    #[test]
    fn a_note_keeps_the_order_and_wakes_nobody_up() {
        let mut wires = thread_wires(2);
        let mut to = wires.pop().unwrap();
        let mut from = wires.pop().unwrap();
        from.note(1, vec![1]).unwrap();
        assert!(!to.bell().wait(Duration::ZERO));
        from.send(1, vec![2]).unwrap();
        assert!(to.bell().wait(Duration::ZERO));
        assert_eq!((next(&mut to), next(&mut to)), ((0, vec![1]), (0, vec![2])));
        assert!(from.note(2, Vec::new()).is_err());
    }

    #[test]
    fn every_pair_keeps_its_order() {
        let (ranks, each) = (5u32, 300u32);
        std::thread::scope(|scope| {
            for mut wire in thread_wires(ranks) {
                scope.spawn(move || {
                    for number in 0..each {
                        for to in 0..ranks {
                            let length = (number * 7 + to) as usize % 50;
                            let mut bytes = number.to_le_bytes().to_vec();
                            bytes.resize(4 + length, wire.rank() as u8);
                            wire.send(to, bytes).unwrap();
                        }
                    }
                    let mut expected = vec![0u32; ranks as usize];
                    for _ in 0..ranks * each {
                        let (from, bytes) = next(&mut wire);
                        let number = &mut expected[from as usize];
                        assert_eq!(bytes[..4], number.to_le_bytes());
                        assert_eq!(bytes.len(), 4 + (*number * 7 + wire.rank()) as usize % 50);
                        assert!(bytes[4..].iter().all(|byte| u32::from(*byte) == from));
                        *number += 1;
                    }
                    assert_eq!(wire.poll().unwrap(), None);
                });
            }
        });
    }

    #[test]
    fn a_rank_that_left_is_no_error_but_a_rank_that_never_was_is() {
        let mut wires = thread_wires(2);
        drop(wires.pop());
        assert_eq!(wires[0].send(1, vec![1, 2, 3]), Ok(()));
        let error = wires[0].send(2, vec![]).unwrap_err();
        assert_eq!(error.to_string(), "rank 0 cannot send a datagram to rank 2: there are 2 ranks, from 0");
        assert_eq!(wires[0].unsent_bytes(), 0);
    }

    #[test]
    fn a_ring_ends_a_doze_and_is_kept_for_the_next() {
        let mut wire = thread_wires(1).remove(0);
        let bell = wire.bell();
        let start = Instant::now();
        let ringer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            bell.ring();
        });
        wire.doze(Duration::from_secs(30));
        assert!(start.elapsed() < Duration::from_secs(15));
        ringer.join().unwrap();
        assert!(!wire.bell().wait(Duration::from_millis(5)), "the doze has used up the ring");
        wire.bell().ring();
        wire.doze(Duration::from_secs(30));
        assert!(start.elapsed() < Duration::from_secs(15));
        wire.doze(Duration::from_millis(5));
    }
}
