//! Messages between ranks.

use crate::{Fault, Ticket};
use hyperslab_layout::{Region, View};
use hyperslab_pack::Memory;
use std::sync::Arc;

/// A user's array as it takes part in a transfer: its memory, and where this rank's elements lie in it. Peers may
/// read or write it directly from the begin to the end of the transfer.
#[derive(Clone, Debug)]
pub struct Exposed {
    /// The registered memory.
    pub memory: Memory,
    /// Where elements lie, relative to the start of the memory.
    pub view: Arc<View>,
}

/// Where this rank's side of a message part lies.
#[derive(Clone, Debug)]
pub enum Here {
    /// In the user's array that takes part under the number [`Part::array`]. This side stays passive: the peer,
    /// which has a buffer slot, may move the data itself.
    Exposed,
    /// In a buffer slot. This side is active.
    Slot(Memory, Arc<View>),
}

/// One piece of a message.
#[derive(Clone, Debug)]
pub struct Part {
    /// Number of the array in the transfer.
    pub array: u32,
    /// Which elements.
    pub region: Region,
    /// Where they lie on this rank.
    pub here: Here,
}

/// What a transport tells.
#[derive(Debug)]
pub enum Event {
    /// A send or receive is over.
    Done(Ticket, Result<(), Fault>),
    /// A signal arrived from a rank.
    Signal(u32, Vec<u8>),
}

/// Moves pieces and signals between the ranks of one communicator.
///
/// All parts of a message are on the same kind of side: one rank has them in slots, the other in exposed arrays.
/// The k-th send from a to b matches the k-th receive at b from a of the same transfer. A send to oneself does not
/// occur. Signals between two ranks keep their order, but not relative to messages.
pub trait Transport {
    /// This rank.
    fn rank(&self) -> u32;
    /// Number of ranks.
    fn size(&self) -> u32;
    /// Starts a transfer in which these arrays take part. Transfers have rising numbers, the same on all ranks.
    fn begin(&mut self, transfer: u64, arrays: Vec<Exposed>);
    /// Submits a send. Its memory must stay until the ticket returns.
    fn send(&mut self, ticket: Ticket, to: u32, parts: Vec<Part>);
    /// Submits a receive. Its memory must stay until the ticket returns.
    fn recv(&mut self, ticket: Ticket, from: u32, parts: Vec<Part>);
    /// Ends the transfer that began last. All its tickets have returned, on all ranks, or the transport is not used
    /// for transfers any more.
    fn end(&mut self);
    /// Sends a small message outside of transfers.
    fn signal(&mut self, to: u32, bytes: Vec<u8>);
    /// As [`Transport::signal`], of something for which nobody has to wake up: it is early enough when the other rank looks
    /// the next time.
    fn note(&mut self, to: u32, bytes: Vec<u8>) {
        self.signal(to, bytes);
    }
    /// Whether all ranks are threads of this process, which see the same files and memories.
    fn is_one_process(&mut self) -> bool {
        false
    }
    /// Whether the process of a rank is known to have ended. Of one on another host, nothing is known.
    fn is_gone(&self, rank: u32) -> bool {
        let _ = rank;
        false
    }
    /// Appends what happened.
    ///
    /// # Errors
    /// When the link to other ranks is broken for good.
    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), Fault>;
}
