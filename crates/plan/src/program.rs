//! Programs: what one rank does in a transfer, as plain data.
//!
//! A program has lanes. Inside a lane, steps come in an order in which each depends only on earlier ones; the walker
//! runs any step that is ready, but looks only a window ahead. Lanes do not wait for each other, so a rank that is
//! both client and server cannot block itself.

use hyperslab_layout::{Codec, Durability, Object, Region, View};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Number of a step in its lane.
pub type StepId = u64;

/// Steps of one lane, as ranges `low..high` of their numbers: who follows all messages of a round needs no list of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct After(SmallVec<[(StepId, StepId); 1]>);

impl After {
    /// No step.
    pub fn none() -> After {
        After::default()
    }

    /// The steps `low..high`.
    pub fn range(low: StepId, high: StepId) -> After {
        After(if low < high { smallvec![(low, high)] } else { SmallVec::new() })
    }

    /// One step.
    pub fn step(id: StepId) -> After {
        After::range(id, id + 1)
    }

    /// These and those.
    #[must_use]
    pub fn and(mut self, other: &After) -> After {
        for &(low, high) in &other.0 {
            match self.0.last_mut() {
                Some(last) if last.1 == low => last.1 = high,
                _ => self.0.push((low, high)),
            }
        }
        self
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges.
    pub fn ranges(&self) -> &[(StepId, StepId)] {
        &self.0
    }
}

/// A place for elements on this rank.
#[derive(Clone, PartialEq, Debug)]
pub enum Place {
    /// The user's array with this number.
    User(u32),
    /// A buffer slot, and where in it elements lie.
    Slot(u32, Arc<View>),
}

/// Pieces of a message, each of an array: number of the array on the side that has it exposed, elements, and where they
/// lie here. Most messages have one.
pub type Parts = SmallVec<[(u32, Region, Place); 1]>;

/// That an object is written or read whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Whole {
    /// Whether a CRC-32C follows the elements.
    pub checksum: bool,
}

/// A chunk of an array of the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkOf {
    /// Number of the array.
    pub array: u32,
    /// Number of the chunk in the grid of the array ([`Stored::chunk_number`](hyperslab_layout::Stored::chunk_number)).
    pub number: u64,
}

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Send pieces, each of an array, to a rank.
    Send {
        /// The receiver.
        to: u32,
        /// Pieces, where they lie here.
        parts: Parts,
    },
    /// Receive pieces from a rank.
    Recv {
        /// The sender.
        from: u32,
        /// Pieces, where they shall lie here.
        parts: Parts,
    },
    /// Copy elements on this rank, converting them if their type differs.
    Copy {
        /// Which elements.
        region: Region,
        /// Where they lie.
        from: Place,
        /// Where they shall lie.
        to: Place,
    },
    /// Give all elements of a region one value.
    Fill {
        /// Which elements.
        region: Region,
        /// Where they lie.
        at: Place,
        /// The value, in the type of the place.
        value: Arc<[u8]>,
    },
    /// Read elements of an object.
    Read {
        /// The object.
        object: Object,
        /// Which elements.
        region: Region,
        /// Where they shall lie.
        to: Place,
        /// Where they lie in the object.
        there: Arc<View>,
        /// Set when the region is the whole object.
        whole: Option<Whole>,
        /// Set when it is a part of an object whose checksum is compared once all parts have been read: how many bytes are
        /// before the checksum \[B\].
        part: Option<u64>,
        /// What elements are when there is no such object; without it that is an error.
        absent: Option<Arc<[u8]>>,
        /// A hint to bypass the system's cache.
        direct: bool,
    },
    /// Write elements to an object.
    Write {
        /// The object.
        object: Object,
        /// Which elements.
        region: Region,
        /// Where they lie.
        from: Place,
        /// Where they shall lie in the object.
        there: Arc<View>,
        /// Set when the region is the whole object.
        whole: Option<Whole>,
        /// Whether readers may see the object already, so that it must change at once.
        replace: bool,
        /// A hint to bypass the system's cache.
        direct: bool,
    },
    /// Read an encoded object, or a stretch of one, into a register.
    Get {
        /// The object.
        object: Object,
        /// First byte and number of bytes of the stretch; the whole object if not given \[B\].
        within: Option<(u64, u64)>,
        /// Most bytes that it can sensibly have.
        bytes_max: u64,
        /// The register.
        register: u64,
    },
    /// Decode a register, which is then empty.
    Decode {
        /// The register; filled by a [`Action::Get`].
        register: u64,
        /// The object it came from, for messages.
        object: Object,
        /// How it was encoded.
        codec: Arc<dyn Codec>,
        /// All elements of the object.
        region: Region,
        /// Where they shall lie: dense, in the object's order.
        to: Place,
        /// What elements are when there was no object.
        absent: Arc<[u8]>,
    },
    /// Encode elements into a register.
    Encode {
        /// All elements of the object.
        region: Region,
        /// Where they lie: dense, in the object's order.
        from: Place,
        /// How to encode them.
        codec: Arc<dyn Codec>,
        /// The register.
        register: u64,
    },
    /// Write a register as an object; the register is then empty.
    Put {
        /// The object.
        object: Object,
        /// The register.
        register: u64,
        /// As for [`Action::Write`].
        replace: bool,
        /// Set where the object holds other chunks too, and this one gets room in it now: which one it is.
        chunk: Option<ChunkOf>,
    },
    /// Write a small object of these bytes, which is not there.
    Make {
        /// The object.
        object: Object,
        /// What it shall hold.
        bytes: Arc<[u8]>,
    },
    /// Make what was written so far to objects with these beginnings durable.
    Sync {
        /// Beginnings of names.
        below: Arc<[Object]>,
    },
}

/// A step: an action, after others.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number in its lane, rising from 0.
    pub id: StepId,
    /// The round it belongs to, for those who print programs.
    pub round: u64,
    /// Steps of the same lane that must be over before it starts.
    pub after: After,
    /// What to do.
    pub action: Action,
}

/// Steps in an order that respects what depends on what.
pub type Lane = Box<dyn Iterator<Item = Step>>;

/// What one rank does.
pub struct Program {
    /// Number of buffer slots.
    pub slots: u32,
    /// Size of each \[B\].
    pub slot_bytes: u64,
    /// What all of them together may be larger, when there are larger buffers \[B\].
    pub spare_bytes: u64,
    /// The lanes.
    pub lanes: Vec<Lane>,
    /// How durable what it writes shall become.
    pub durability: Durability,
}

impl Program {
    /// A program that does nothing.
    pub fn idle() -> Program {
        Program { slots: 0, slot_bytes: 0, spare_bytes: 0, lanes: Vec::new(), durability: Durability::Cached }
    }
}
