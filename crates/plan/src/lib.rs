//! HOW a transfer is done: a strategy compiles what is asked into one program per rank.
//!
//! A strategy is one file with a [`Spec`]: what it is called, who handles storage in which order, what it begins with and
//! varies, whether it can carry out a transfer, and its programs. Planner, model, explain and help are given a list of them
//! and ask. A program is a pure function of the transfer, the parameters, the rank and where the rank's own elements lie. It
//! opens no file and sends no message. Programs are plain data, generated lazily: nobody holds the programs of all
//! ranks, and time and memory depend on a rank's own pieces.
//!
//! # Files
//!
//! A transfer is cut into *units* (`units.rs`), chunks of a chunked array or subchunks of a file, numbered alike on every
//! rank. Strategies differ in who handles which unit, in which order, and past which caches; see the table. How one unit
//! gets from storage into a slot and back is shared (`emit.rs`): neighbours in a file, like small arrays stored together,
//! lie in a slot as they do there, and move by one step; what covers short runs (`emit/cover.rs`) is read, changed and
//! written. `rounds.rs` and `rounds/` are what all strategies with servers share: the sequence of groups (`course.rs`), a
//! client's lane, a server's lane; `own.rs` is what those share in which each rank handles storage for itself. `price.rs`
//! and `price/` are the model: `work.rs` reads the first rounds of a few ranks off their programs, `costs.rs` says what
//! single things cost on a machine, `messages.rs` what messages do, `imagined.rs` what requests cost on one that is
//! described and not measured, `spread.rs` at how many file servers they meet, `moved.rs`, `stretches.rs` and
//! `folios.rs` what of a copy or a write the processor's and the system's cache feel, `look.rs` holds what was seen of
//! a few ranks against what moves in all, `pipeline.rs` overlaps rounds, `busy.rs` adds up what ranks share,
//! `classes.rs` finds arrays that are alike,
//! `tiles.rs` is what pieces that no closed form describes are taken for. `choose.rs` and `choose/` enumerate, price and
//! take candidates, and shapes of chunks (`choose/layouts.rs`). `explain.rs` walks the programs of some ranks and tells
//! what they do; `tests/explained` keeps the texts for small cases. `benches/scale.rs` measures what a program costs one
//! rank of 100,000: units that a piece touches (`units/touched.rs`) and ranks that share a unit
//! (`layout/src/holdings.rs`) are odometers, never lists.
//!
//! | strategy | who handles a unit | in the order of |
//! | --- | --- | --- |
//! | root-gather | rank 0, one slot | the file |
//! | independent | each rank its own pieces, exactly | the file |
//! | data-sieving | each rank its own pieces, and the holes between them where nobody else writes | the file |
//! | two-phase | aggregators, each a contiguous domain; or one of the ranks that share the unit | the file, domain beside domain |
//! | server-directed | servers in turn | the file |
//! | disk-directed | servers in turn, by direct I/O | the disk |
//!
//! `delivering.rs` is what ranks do that send each other bytes, with no storage in between.
//!
//! `profile.rs` and `profile/` are the schema of machine profiles: what the simulator runs on.
#![forbid(unsafe_code)]

mod apart;
mod beside;
mod choose;
mod delivering;
mod emit;
mod explain;
mod facts;
mod own;
mod parts;
mod price;
pub mod profile;
mod program;
mod rough;
mod rounds;
pub mod strategies;
mod strategy;
mod telling;
mod transfer;
mod units;

pub use choose::{Candidate, Choice, NodeBudget, Planner, Preference, Taken, Use};
pub use delivering::{Parcel, delivering, parcel_view};
pub use explain::{Counts, Explanation, Limits, Moved, Requests, Round, Share, Tally, explain, tally};
pub use facts::{Beside, Facts, Met, Mine, Told};
pub use hyperslab_layout::Stored;
pub use price::{Effort, Machine, Memory, MemoryLayout, Phase, Price, Resource};
pub use program::{Action, After, ChunkOf, Lane, Parts, Place, Program, Step, StepId, Whole};
pub use strategies::{Extent, group_places, physical_order, shared_extent};
pub use strategy::{Compile, Infeasible, Parameters, Role, Sequence, Spec, Strategy};
pub use telling::Overlap;
pub use transfer::{Direction, Exchange, Spread, Transfer, TransferArray, begins_page};
pub use units::{Touched, Unit, Units};
