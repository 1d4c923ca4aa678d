//! Buckets: what an object store can do.
//!
//! Whole objects are put under keys, if nothing has the key or if what has it is still the version that was seen; they
//! carry a few words of the user's, are read in ranges, listed and deleted. Nothing is renamed, and nothing is written at an
//! offset. A reply may be lost, and a request that seemed lost may be carried out later.
//!
//! `sure.rs` makes puts of that whose outcome is known; [`BucketNames`] and [`BucketStore`] are names and objects over any
//! bucket; [`ObjectMemory`] is a bucket in the memory of this process, which disturbs its programs on demand.

pub(crate) mod contract;
mod memory;
mod names;
mod policy;
mod store;
mod sure;
mod trouble;

pub use contract::{ATTEMPT_TAG, Bucket, ObjectHead, Page, Tags, When};
pub use memory::ObjectMemory;
pub use names::BucketNames;
pub use store::BucketStore;
pub use sure::PutOutcome;
pub use trouble::{Death, Trouble};
