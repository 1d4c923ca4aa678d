//! Trees of expressions, as they are written.

use std::ops::Range;

/// A place in the text.
pub(crate) type TextRange = Range<usize>;

/// A part of an expression.
#[derive(Clone, Debug)]
pub(crate) struct SyntaxNode {
    pub(crate) at: TextRange,
    /// How many nodes are on the longest way down from here.
    pub(crate) depth: usize,
    pub(crate) what: Syntax,
}

#[derive(Clone, Debug)]
pub(crate) enum Syntax {
    Integer(i128),
    Float(f64),
    Truth(bool),
    Name(String),
    /// A field of a record.
    Field(Box<SyntaxNode>, String),
    Unary(Unary, Box<SyntaxNode>),
    Binary(Binary, Box<SyntaxNode>, Box<SyntaxNode>),
    /// Comparisons in a row: each value with the next one.
    Compare(Box<SyntaxNode>, Vec<(Comparison, SyntaxNode)>),
    /// Whether it is one of these, or is none of them.
    In(Box<SyntaxNode>, Vec<SyntaxNode>, bool),
    Call(Function, Vec<SyntaxNode>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unary {
    Minus,
    Plus,
    Invert,
    Not,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    BitAnd,
    BitOr,
    BitXor,
    And,
    Or,
}

impl Binary {
    /// How it is written.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::FloorDivide => "//",
            Binary::Remainder => "%",
            Binary::Power => "**",
            Binary::BitAnd => "&",
            Binary::BitOr => "|",
            Binary::BitXor => "^",
            Binary::And => "and",
            Binary::Or => "or",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    /// The one that holds for b and a where this one holds for a and b.
    pub(crate) fn turned(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessEqual => Comparison::GreaterEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterEqual => Comparison::LessEqual,
            same => same,
        }
    }

    /// Whether it holds for what compares so; of what does not compare (NaN), only that it is unequal.
    pub(crate) fn holds(self, ordering: Option<std::cmp::Ordering>) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        match self {
            Comparison::Equal => ordering == Some(Equal),
            Comparison::NotEqual => ordering != Some(Equal),
            Comparison::Less => ordering == Some(Less),
            Comparison::LessEqual => matches!(ordering, Some(Less | Equal)),
            Comparison::Greater => ordering == Some(Greater),
            Comparison::GreaterEqual => matches!(ordering, Some(Greater | Equal)),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    Abs,
    Min,
    Max,
    Sqrt,
    IsNan,
}

impl Function {
    pub(crate) const ALL: [(&str, Function); 5] = [
        ("abs", Function::Abs),
        ("min", Function::Min),
        ("max", Function::Max),
        ("sqrt", Function::Sqrt),
        ("isnan", Function::IsNan),
    ];

    /// Fewest and most arguments.
    pub(crate) fn arguments(self) -> (usize, usize) {
        match self {
            Function::Min | Function::Max => (2, usize::MAX),
            _ => (1, 1),
        }
    }
}
