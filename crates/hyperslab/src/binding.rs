//! What doors of other languages share: options by the names that users write, and arrays whatever their format.
//!
//! Programs in Rust need none of it. It changes with the bindings in this repository, without notice.

pub use crate::arrays::Arrays;
pub use crate::comm::Observer;
pub use crate::course::decode;
pub use crate::driver::Driver;
pub use crate::environment::launched;
pub use crate::left::{Unpublished, tell};
pub use crate::measuring::Measuring;
pub use crate::opening::format_of;
pub use crate::options::{casting_named, codecs_named, exchange_named, limit_of, mode_named, strategy_named};
pub use crate::place::place_named;
pub use crate::select::{reduce_from, select_from};
pub use crate::selection::{Pick, select};
pub use crate::unready::Unready;
pub use hyperslab_format::zarr::{fill_from_json, fill_to_json};
pub use hyperslab_layout::tuple;
pub use hyperslab_real::{PlaceSeen, map_code, place_seen};
pub use hyperslab_world::Locks;
