//! HOW a transfer is done: a strategy compiles what is asked into one program per rank.
//!
//! A strategy is a pure function of the transfer, the parameters, the rank and where the rank's own elements lie. It
//! opens no file and sends no message. Programs are plain data, generated lazily: nobody holds the programs of all
//! ranks, and time and memory depend on a rank's own pieces.
#![forbid(unsafe_code)]

mod choose;
mod emit;
mod explain;
mod facts;
mod own;
mod price;
pub mod profile;
mod program;
mod rounds;
pub mod strategies;
mod transfer;
mod units;

pub use choose::{Candidate, Choice, Machine, Planner, Preference, Taken, Use};
pub use explain::{Counts, Explanation, Limits, Moved, Requests, Round, Share, Tally, explain, tally};
pub use facts::{Facts, Met, Mine, Overlap, Told};
pub use hyperslab_layout::Stored;
pub use price::{Effort, Laid, Memory, Phase, Price, Resource};
pub use program::{Action, After, Lane, Parts, Place, Program, Step, StepId, Whole};
pub use strategies::{Extent, Infeasible, Strategy, group_places, physical_order, shared_extent};
pub use transfer::{Ask, Direction, Exchange, Parameters, Spread, Transfer};
pub use units::{Touched, Unit, Units};
