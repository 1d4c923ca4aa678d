//! The machine imagined: the seams in virtual time.
//!
//! One thread, one queue of events with a total order, and parts that cost time: processors, wires, buses, disks, file
//! servers. Ranks agree and walk with the same code as on a real machine; nothing of it knows that time is virtual.
//! A [`Rehearsal`] says which machine, how many ranks, and what they live through; its [`Outcome`] says how long it took
//! and who was busy. The same rehearsal gives the same outcome, byte for byte.
#![forbid(unsafe_code)]

mod allocation;
mod behind;
mod blocks;
mod calls;
mod disk;
mod drive;
mod files;
mod kernel;
mod limits;
mod machine;
mod messages;
mod metadata;
mod network;
mod order;
mod outcome;
mod placing;
mod rehearsal;
mod servers;
mod tally;
mod world;

pub use drive::DiskTimes;
pub use limits::room;
pub use machine::{Size, WhatIf, Work};
pub use metadata::Metadata;
pub use order::disk_order;
pub use outcome::{Busy, Disks, Outcome, Span, Spent};
pub use placing::DiskLayout;
pub use rehearsal::{Bring, Lived, Move, Part, Period, Rehearsal, Sink, Stage, Who};
pub use tally::{Calls, Tally};
