//! The functions of the header. Each takes what crosses the border, and makes a call of the library.
//!
//! In all of them, the caller keeps the contract of the header: pointers that are not null point to what it says.
#![allow(clippy::missing_safety_doc, reason = "the header is their page, and its contract that of all of them")]

mod attributes;
mod comm;
mod dist;
mod errors;
mod fortran;
mod group;
mod moving;
