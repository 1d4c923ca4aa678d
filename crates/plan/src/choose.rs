//! The planner: enumerates candidates, prices them, and takes the cheapest.
//!
//! 1. What the user forces is taken; only what he leaves open is chosen.
//! 2. Each strategy is priced with the parameters that suit it. Those that cannot carry out the transfer say why not.
//! 3. The strategies that come near the best are varied, one parameter after another: number of servers, size of
//!    subchunks, slots, runs that go straight. What gets cheaper is kept.
//! 4. Of candidates as cheap as the best, as far as the model can tell, the simplest is taken; on a real machine, direct I/O
//!    must be clearly cheaper. The first time counts what buffers cost that are new; when a transfer comes again, it does not.
//!
//! Looking at programs takes time, so there is an allowance of steps that follows from the price itself: at most about
//! 2 % of what the transfer takes, or 1 ms. Where that ends a search early, it goes on when the transfer comes again, for
//! 2 % of what it has taken in all. The planner knows no clock; the same questions get the same answers.

mod again;
mod candidates;
mod choice;
mod layouts;
mod margins;
mod search;
mod servers;
mod why;

pub use choice::{Candidate, Choice, NodeBudget, Preference};
pub use layouts::{Taken, Use};
pub(crate) use margins::NEAR;
pub use search::Planner;
pub(crate) use servers::spread as evenly;
pub(crate) use why::unit_of;

#[cfg(test)]
mod tests;
