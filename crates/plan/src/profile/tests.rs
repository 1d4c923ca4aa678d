//! What a profile may say, and what is said about one that says something else.

#![allow(clippy::disallowed_methods, reason = "tests read the machines and the page that the repository holds")]

mod documents;
mod machines;
mod refusals;
