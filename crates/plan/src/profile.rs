//! The schema of machine profiles: what a machine costs, in numbers that each say where they come from.
//!
//! A profile is TOML. Every number is written as `{ is = "5 us", from = "paper: Kotz 1997, table I" }`: a value with its
//! unit, and its source. The source begins with one of `paper:`, `public:`, `measured:`, `fitted:`, `guess:`. The
//! simulator reads machines that nobody here has in this form; measured profiles of this machine have the same.

mod document;
mod error;
mod machine;
mod parse;
mod quantity;
mod similar;
mod source;
#[cfg(test)]
mod tests;

pub use error::ProfileError;
pub use machine::{
    Agreements, Bus, Cache, Disk, Files, Identity, Layout, Measured, Messages, Metadata, Neighbours, Network, Nodes,
    Noise, Processor, Profile, Queue, Requests, Servers, Storage, Topology,
};
pub use parse::{constants, parse};
pub use source::{Constant, Origin};

/// The profile that holds where there is no other, as TOML.
pub const BUILT_IN: &str = include_str!("profile/built_in.toml");

/// The profile that holds where there is no other: of a small node, and no machine in particular.
///
/// # Panics
/// Never: its text is tested.
pub fn built_in() -> Profile {
    parse("the built-in profile", BUILT_IN, &[]).expect("the built-in profile is tested")
}
