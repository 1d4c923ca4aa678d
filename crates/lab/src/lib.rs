//! The laboratory: what is asked about machines, and not of them. Transfers on machines that you do not have, the kernels
//! by which this one is measured, and the papers' results, which the Python package asks of both.
//!
//! The real and the imagined machine are both known only here. Whoever only moves arrays needs none of it.
#![forbid(unsafe_code)]

// How the files hang together: `simulate.rs` and `simulate/` turn what is asked in JSON into a rehearsal, and what came out
// into JSON. `imagined.rs` and `imagined/` run programs of the library on imagined machines. `calibrate.rs` and `calibrate/` time what a process or all ranks do, by programs that only exchange messages or
// only write; `hyperslab::binding::Measuring` is their door to a communicator.

pub mod calibrate;
pub mod imagined;
pub mod simulate;
