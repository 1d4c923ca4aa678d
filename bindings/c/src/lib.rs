//! `libhyperslab`: the facade for C, and for all languages that call it. `include/hyperslab.h` says what each function does.
//!
//! This crate translates types and nothing else. What callers give crosses in `foreign.rs`, `options.rs`, `memory.rs` and `door/`, the only
//! files with unsafe code; `member.rs` has the one way in which calls are made, and in which they fail.
#![warn(unsafe_op_in_unsafe_fn)]
#![allow(unreachable_pub, reason = "C reaches functions by their names in the library")]

mod door;
mod failure;
mod foreign;
mod handles;
mod member;
mod memory;
mod numbers;
mod options;
