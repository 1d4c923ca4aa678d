//! Stored objects: named sequences of bytes.

use crate::{Fault, Root, Ticket};
use hyperslab_layout::{Durability, Nest, Object, Region, View, nests};
use hyperslab_pack::Memory;
use std::sync::Arc;

/// Elements that move between memory and an object: which, and where they lie on either side. Their type is the
/// same on both sides.
#[derive(Clone, Debug)]
pub struct Moves {
    /// Which elements.
    pub region: Region,
    /// The memory.
    pub memory: Memory,
    /// Where the elements lie in the memory.
    pub here: Arc<View>,
    /// Where they lie in the object: addresses are offsets.
    pub there: Arc<View>,
}

impl Moves {
    /// Bytes that move.
    pub fn bytes(&self) -> u64 {
        self.region.elements() * self.there.element.bytes()
    }

    /// The walk over the elements; side `a` is memory, side `b` the object, in rising order of offsets inside each.
    pub fn nests(&self) -> impl Iterator<Item = Nest> {
        nests(&self.region, &self.here, &self.there)
    }
}

/// What a store is asked for. Objects lie below the roots that it was given by [`Store::enter`].
#[derive(Debug)]
pub enum Request {
    /// Writes elements at their offsets of an object that keeps its other bytes, and grows if they lie beyond its end.
    /// The object must exist.
    Write {
        /// The object.
        object: Object,
        /// What, from where, to where.
        moves: Moves,
        /// Whether the bytes should move by direct I/O, and other such requests be under way meanwhile. A
        /// hints: a store that cannot, or would gain nothing by it, does the same through the cache.
        direct: bool,
        /// How durable it shall become, at the latest by a [`Request::Sync`].
        durability: Durability,
    },
    /// Writes a whole object, whose bytes in order are the elements, and a CRC-32C of them after them when asked.
    WriteWhole {
        /// The object.
        object: Object,
        /// What, from where, to where. Offsets cover the object from 0 without holes.
        moves: Moves,
        /// Whether to append the checksum, little-endian.
        checksum: bool,
        /// Whether a reader must see the old object or the new one and nothing between; of one that shall be durable on
        /// return ([`Durability::Now`]) perhaps the old one until the next [`Request::Sync`], or for good where there is
        /// none. Otherwise the object is new and hidden until it is published.
        replace: bool,
        /// As for [`Request::Write`].
        durability: Durability,
    },
    /// Writes bytes as a whole object.
    Put {
        /// The object.
        object: Object,
        /// Its bytes.
        bytes: Vec<u8>,
        /// As for [`Request::WriteWhole`].
        replace: bool,
        /// As for [`Request::Write`].
        durability: Durability,
    },
    /// Reads elements from their offsets. An object that ends before them is corrupt.
    Read {
        /// The object.
        object: Object,
        /// What, from where, to where.
        moves: Moves,
        /// As for [`Request::Write`].
        direct: bool,
    },
    /// Reads a whole object that [`Request::WriteWhole`] wrote, and compares length and checksum.
    ReadWhole {
        /// The object.
        object: Object,
        /// What, from where, to where. Offsets cover the object from 0 without holes.
        moves: Moves,
        /// Whether a checksum follows the elements.
        checksum: bool,
    },
    /// Reads a part of a whole object with a checksum, and tells what it [contributes](crate::PartSum) to that.
    ReadPart {
        /// The object.
        object: Object,
        /// What, from where, to where.
        moves: Moves,
        /// Bytes of the object before the checksum; it has no others.
        total: u64,
    },
    /// Reads a whole object, or a stretch of it, as bytes, refusing more than the limit.
    Get {
        /// The object.
        object: Object,
        /// Which of its bytes.
        within: Within,
        /// Most bytes that make sense \[B\].
        bytes_max: u64,
    },
    /// Makes what was written through this handle, to objects whose names begin with one of these, durable: all that
    /// was submitted before, whether or not its ticket has returned, but for what need not be
    /// ([`Durability::Cached`]). Where there are no names, closes what was written, and fails where closing says that some of it could
    /// not be kept ([`Store::owes`]).
    Sync {
        /// Beginnings of names.
        below: Arc<[Object]>,
    },
}

impl Request {
    /// The object, where there is one.
    pub fn object(&self) -> Option<&Object> {
        match self {
            Request::Write { object, .. }
            | Request::WriteWhole { object, .. }
            | Request::Put { object, .. }
            | Request::Read { object, .. }
            | Request::ReadPart { object, .. }
            | Request::ReadWhole { object, .. }
            | Request::Get { object, .. } => Some(object),
            Request::Sync { .. } => None,
        }
    }
}

/// Which bytes of an object are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Within {
    /// All of them.
    All,
    /// From the first of these on so many, all of which must be there \[B\].
    Stretch(u64, u64),
    /// The last so many, all of which must be there \[B\].
    End(u64),
}

impl Within {
    /// The first byte and the number of bytes, of an object of this length; they may not all be there \[B\].
    pub fn of(self, length: u64) -> (u64, u64) {
        match self {
            Within::All => (0, length),
            Within::Stretch(first, bytes) => (first, bytes),
            Within::End(bytes) => (length.saturating_sub(bytes), bytes),
        }
    }
}

/// A stretch, or all where none is given.
impl From<Option<(u64, u64)>> for Within {
    fn from(stretch: Option<(u64, u64)>) -> Within {
        stretch.map_or(Within::All, |(first, bytes)| Within::Stretch(first, bytes))
    }
}

/// What an operation left.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Bytes moved.
    pub bytes: u64,
    /// Requests to the system beneath.
    pub calls: u64,
    /// For [`Request::Get`]: the bytes.
    pub content: Vec<u8>,
    /// For [`Request::Get`]: where the first of them lies in the object \[B\].
    pub first: u64,
    /// For [`Request::ReadPart`]: what the part contributes.
    pub sum: u32,
}

/// How an operation ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was done.
    Done(Moved),
    /// The object to read does not exist.
    Absent,
}

/// Moves bytes between memory and named objects. [`conformance::objects`](crate::conformance::objects) tests an
/// implementation.
///
/// Not promised: any order among requests that are under way together, except that of [`Request::Sync`]; who needs
/// one waits for the ticket of the first.
pub trait Store {
    /// Hands an operation over. Its memory must stay until the ticket returns.
    fn submit(&mut self, ticket: Ticket, request: Request);
    /// Appends what has finished.
    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>);
    /// A number that changes when an operation in flight comes forward without being finished: making a large file
    /// durable may take longer than anybody waits for a sign of life.
    fn advance(&self) -> u64;
    /// Objects of all further requests lie below these roots, by their numbers; each is to be proven before the first of its
    /// objects is touched. What was asked for before goes on below those of then.
    fn enter(&mut self, roots: Arc<[Root]>) {
        let _ = roots;
    }
    /// The roots that it was given last.
    fn roots(&self) -> Arc<[Root]> {
        [].into()
    }
    /// Closes what it keeps open for the requests so far.
    fn release(&mut self) {}
    /// Leaves what was written below a root, and is not durable yet, to rank 0, who has it on a disk of his host and makes it durable
    /// before it is published: if this is the same host. If not, nothing changes.
    fn leave_to_rank_0(&mut self, below: &Root) -> bool {
        let _ = below;
        false
    }
    /// The same after a call that others like it may follow: a few files may stay open, until all are released or other
    /// roots are entered.
    fn pause(&mut self) {
        self.release();
    }
    /// Whether closing what was written, as [`Store::pause`] or (if `released`) [`Store::release`] does, may still say that it could not
    /// be kept: servers may tell so late. Then a [`Request::Sync`] of nothing comes before.
    fn owes(&self, released: bool) -> bool {
        let _ = released;
        false
    }
    /// Whether a whole object that shall be durable on return takes the place of another only with the next [`Request::Sync`].
    fn replaces_by_syncs(&self) -> bool {
        false
    }
    /// Begins nothing more of what it was asked for, for good; what is under way ends when it does.
    fn cut(&mut self) {}
}
