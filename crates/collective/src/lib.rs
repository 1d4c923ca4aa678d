//! CALLS: one collective call from its opening to its end, as a state machine over the seams.
//!
//! A [`Call`] moves arrays between memories and a [`Target`]: what lies in storage, as rank 0 sees it. All ranks agree on what
//! is asked; rank 0 lets the target look, chooses, begins, and tells [`Stored`](hyperslab_layout::Stored)s, roots and
//! parameters; each rank makes the same transfer of that and walks its own program; all agree on how it went, and the target
//! publishes, or takes back what was begun. An [`Ending`] ends something that several calls wrote, and an [`Agreement`] is
//! what both begin and end with. None of them blocks or knows a format, a path or a place: a door drives them.
//!
//! ```text
//! Call       agreement: look, choose, begin  ->  Moving: vet, tell pieces, walk  ->  agreement: publish  ->  tidy
//! Ending     sync                            ->  agreement: publish
//! Delivery   agreement  ->  tell counts, agree, walk  ->  agreement
//! ```
//!
//! [`attempts`] is what is written before it is published: roots, owners, markers, journals, and what dead owners left.
#![forbid(unsafe_code)]

mod agreement;
mod alike;
mod array;
pub mod attempts;
mod call;
mod casting;
mod compiling;
mod decision;
mod delivery;
mod described;
mod destinations;
mod ending;
mod holding;
mod moving;
pub mod naming;
mod preparing;
mod repeats;
mod report;
mod request;
mod runs;
pub mod served;
mod settling;
mod target;
mod telling;
mod typed;

pub use agreement::{Agreement, Begin};
pub use alike::listed;
pub use array::{CHUNK_BYTES_MAX, LocalArray, natural_chunks};
pub use call::{Arguments, Call, Done, enter};
pub use casting::check_cast;
pub use decision::{Decision, Predicted, predicted};
pub use delivery::{Delivery, Packets, undelivered};
pub use ending::{Ending, syncing};
pub use holding::{Exposure, Ownership, Part, number_parts};
pub use moving::Moving;
pub use repeats::Repeats;
pub use report::{Measured, Report};
pub use request::{ArrayRequest, Selected, checked_section};
pub use runs::RunList;
pub use target::{Each, InMemory, Target};
pub use typed::Element;

pub use hyperslab_walk::{Compared, Fields};

/// Makes a codec of what [`Codec::to_bytes`](hyperslab_layout::Codec::to_bytes) gave on another rank; formats know how.
pub type Decode = fn(&[u8]) -> Option<std::sync::Arc<dyn hyperslab_layout::Codec>>;
