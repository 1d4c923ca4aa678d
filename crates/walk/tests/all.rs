//! The tests of the walker, one binary: what they share is compiled and linked once, not for each.

mod common;

mod counting;
mod exhaustive;
mod failing;
mod indexing;
mod memory;
mod nan;
mod oracle;
mod overlap;
mod refusing;
mod seventh;
mod summed;
mod telling;
mod trace;
mod traffic;
