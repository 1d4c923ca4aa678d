//! WHERE elements are: shapes, meshes, distributions, sections, and their intersections as products of index sets.
//!
//! Everything here is pure and in closed form: cost depends on the number of dimensions and of repeating patterns,
//! never on the number of elements or ranks. Where nothing repeats there are lists (`ordered.rs`), which are searched.
#![forbid(unsafe_code)]

mod axis;
mod batch;
mod chunking;
mod codec;
pub mod counted;
mod distribution;
mod element;
mod holdings;
mod index_set;
mod joined;
mod listing;
pub mod mesh;
mod nest;
mod numbering;
mod opaque;
mod ordered;
mod places;
mod policies;
mod policy;
pub mod quantity;
pub mod reach;
mod region;
mod section;
pub mod stored;
mod text_part;
mod tuple;
mod view;

pub use axis::{Axis, Listed};
pub use batch::RunBatch;
pub use chunking::{chunks_for_request, cut, natural_chunks, near_shapes, schema_chunks};
pub use codec::{Codec, CodecError, ShardIndex, Stretch};
pub use distribution::{Dim, Distribution, DistributionError, Holders, product};
pub use element::{ByteOrder, Casting, ElementType, Kind, same_kind};
pub use holdings::Holdings;
pub use index_set::{IndexSet, Level, Nested, ScatteredRuns, SetId, Term};
pub use joined::{Joined, JoinedRun};
pub use listing::{Layer, are_many_and_short, layers};
pub use nest::{Loop, Loops, Nest};
pub use numbering::Numbering;
pub use opaque::{Opaque, slot_of, text_of_slot};
pub use places::ListedPlaces;
pub use policies::{Durability, EndOfFile, Holes, Overlapping, Policies};
pub use policy::NUMBER_BYTES;
pub use region::Region;
pub use section::{Section, SectionError, Triplet};
pub use stored::{Object, Stored};
pub use text_part::{TextFill, TextPart, TextParts};
pub use tuple::{Tuple, tuple};
pub use view::{View, dense_strides, nests};
