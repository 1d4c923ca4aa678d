//! What a transfer promises beyond moving its elements: seen by programs, stores and the simulator.

/// When what is written survives the loss of power.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Durability {
    /// Nobody has asked for it: it survives the process, and all ranks see it on return.
    #[default]
    Cached,
    /// When the attempt that it belongs to is published: the disk may begin with it.
    Soon,
    /// On return.
    Now,
}

/// What becomes of elements that several pieces hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Overlapping {
    /// A write of them is refused before anything is written.
    #[default]
    Refused,
    /// Any of the pieces may win, element by element.
    Any,
}

/// What becomes of bytes between those that are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Holes {
    /// They may be read and written again, since nobody else changes them meanwhile.
    #[default]
    MayBeRewritten,
    /// They are left alone.
    Kept,
}

/// What becomes of elements behind the end of what is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum EndOfFile {
    /// A read of them is refused before anything moves.
    #[default]
    Fault,
    /// They are left out: a rank gets as many as there are.
    Short,
}

/// The policies of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Policies {
    /// When what is written is durable.
    pub durability: Durability,
    /// What becomes of elements that several pieces hold.
    pub overlapping: Overlapping,
    /// What becomes of bytes between those that are written.
    pub holes: Holes,
    /// What becomes of elements behind the end of what is read.
    pub end: EndOfFile,
}

impl Policies {
    /// The usual ones, and what is written is as durable as this.
    pub fn of(durability: Durability) -> Policies {
        Policies { durability, ..Policies::default() }
    }
}
