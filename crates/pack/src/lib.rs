//! COPY: executes loop nests between two memories: gather, scatter, fill and convert.
//!
//! Nothing here recurses or allocates per run. A nest is brought into a canonical form, its innermost loops become
//! one typed kernel call, and an odometer drives the rest. [`safe`] is the index-checked twin that tests compare with.

mod batch;
mod bfloat16;
mod bounds;
mod convert;
mod copy;
mod fill;
mod float16;
mod gathered;
mod memory;
mod moves;
mod nan;
mod number;
mod runs;
pub mod safe;
mod scalar;
mod shape;
mod text;
mod transpose;

pub use batch::copy_region;
pub use bounds::{OutOfBounds, Side};
pub use copy::{copy, copy_raw};
pub use fill::fill;
pub use gathered::gather;
pub use memory::{Memory, MemoryKind, OutOfMemory};
pub use nan::{CopyError, NotANumber, first_nan};
pub use runs::{for_each_run, run_bytes, try_for_each_run};
pub use scalar::convert_scalar;
pub use text::tidy_texts;
