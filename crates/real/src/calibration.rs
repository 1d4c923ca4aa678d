//! Measuring this machine, as one process finds it: copies, files, names.
//!
//! What is timed is the code that transfers use: copies of nests, requests of the store, names of the directory. So a
//! price that is made of these times is the price that a transfer pays, bookkeeping and waiting for the worker included.
//! Nothing here interprets the times.

mod copies;
mod files;
mod identity;
mod turns;

pub use copies::copies;
pub use files::files;
pub use identity::{HostIdentity, file_system_of, host_identity};
pub use turns::{Case, Effort, Series, Turns};
