//! The machine imagined: the seams in virtual time.
//!
//! One thread, one queue of events with a total order, and parts that cost time: processors, wires, buses, disks, file
//! servers. Ranks agree and walk with the same code as on a real machine; nothing of it knows that time is virtual.
//! A [`Rehearsal`] says which machine, how many ranks, and what they live through; its [`Outcome`] says how long it took
//! and who was busy. The same rehearsal gives the same outcome, byte for byte.
//!
//! # Files
//!
//! `kernel.rs` keeps virtual time and the order of events; `machine.rs` is what they happen to. `world.rs` is a rank's
//! seams over it; `scene.rs` says what ranks can live through, `scenes.rs` has what is no collective call, and
//! `rehearsal.rs` runs ranks through all of it; `limits.rs` refuses what would need too much, and `faults.rs` lets things go wrong. `messages.rs` charges processors
//! and wires (`network.rs`) for messages. `names.rs` keeps names and small files, `contents.rs` bytes where any move, and
//! `desk.rs` charges for what is done to names. `files.rs` and `calls.rs` are files as callers see them, `servers.rs` what serves them, `blocks.rs` and `behind.rs` its caches, `drive.rs` the line before a
//! disk, `disk/` the disks themselves; `placing.rs`, `allocation.rs` and `order.rs` say where on them files lie.
#![forbid(unsafe_code)]

mod allocation;
mod behind;
mod blocks;
mod calls;
mod contents;
mod desk;
mod disk;
mod drive;
mod faults;
mod files;
mod kernel;
mod limits;
mod machine;
mod messages;
mod names;
mod network;
mod order;
mod outcome;
mod placing;
mod policy;
mod rehearsal;
mod scene;
mod scenes;
mod servers;
mod tally;
mod world;

pub use drive::DiskTimes;
pub use faults::{Faults, Harm, LifeEnd, Mishap, Seam};
pub use limits::room;
pub use machine::{Size, WhatIf, Work};
pub use names::SimNames;
pub use order::disk_order;
pub use outcome::{Busy, Disks, Outcome, Span, Spent};
pub use placing::DiskLayout;
pub use rehearsal::{Lived, Payload, Period, Rehearsal, SpanListener};
pub use scene::{BeginScene, Scene, Task, Who};
pub use scenes::{Bring, Move, Part};
pub use tally::{Calls, Tally};
pub use world::RankWorld;
