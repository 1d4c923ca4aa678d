//! WHICH values: a closed language of expressions over arrays of one grid. A text is parsed once, typed for the arrays that
//! it names, and evaluated block by block.
//!
//! ```
//! use hyperslab_filter::{BoxPlace, Column, Expression, Scalar};
//! use hyperslab_layout::Kind;
//! # fn main() -> Result<(), hyperslab_filter::Refused> {
//! let expression = Expression::parse("(rho > 0.5) & (i0 < last)")?;
//! assert_eq!(expression.names(), ["rho", "i0", "last"]);
//! let typed = expression.typed(&[("rho", Kind::Float64)], 1, &[("last", Scalar::weak_integer(3).into())])?;
//! let rho: Vec<u8> = [0.0, 1.0, 2.0, 3.0].iter().flat_map(|value: &f64| value.to_ne_bytes()).collect();
//! let place = BoxPlace { origin: &[0], shape: &[4], first: 0 };
//! let mut filter = typed.evaluator();
//! let found = filter.evaluate(&[Column::dense(&rho, Kind::Float64)], place, 4)?;
//! assert_eq!(found.truths(), Some(&[false, true, true, false][..]));
//! # Ok(())
//! # }
//! ```
//!
//! What a value is follows NumPy 2: types are promoted as arrays are, plain numbers in a text and plain parameters take the
//! type of what they meet (NEP 50), integers wrap, `//` and `%` floor, and integers with and without a sign are compared
//! exactly. An expression calls nothing, imports nothing and has no loops, so a text from anywhere can be evaluated.
//!
//! # Files
//!
//! `lexer.rs` and `parser.rs` make a tree (`tree.rs`) of a text, within limits of length and depth; `typing.rs` gives each node
//! a type and finds what the names mean; `promotion.rs` has NumPy's rules; `evaluate.rs` carries a typed tree out over
//! blocks, by the loops in `lanes.rs` and `arithmetic.rs`; `refused.rs` is an error with its place in the text.
#![forbid(unsafe_code)]

mod arithmetic;
mod evaluate;
mod lanes;
mod lexer;
mod parser;
mod promotion;
mod refused;
mod tree;
mod typing;
mod weak;

pub use evaluate::{BLOCK, BoxPlace, Column, Evaluator};
pub use lanes::BlockValues;
pub use lexer::TEXT_BYTES_MAX;
pub use parser::{DEPTH_MAX, Expression};
pub use promotion::promoted;
pub use refused::Refused;
pub use typing::{Parameter, Scalar, Typed};

#[cfg(test)]
mod tests;
