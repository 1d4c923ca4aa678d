//! Gives each node of a tree a type, as NumPy would, and finds what its names mean.

use crate::arithmetic::{SHORT_CUTS, ValueChange};
use crate::parser::Expression;
use crate::promotion::{NumberClass, bounds, class, promoted, real_of};
use crate::refused::Refused;
use crate::tree::{Binary, Comparison, Function, Syntax, SyntaxNode, TextRange, Unary};
use crate::weak::{self, Weak};
use hyperslab_layout::Kind;
use std::cmp::Ordering;
use std::sync::Arc;

/// Most operations of an expression: values between two comparisons are computed for both.
const OPERATIONS_MAX: usize = 1 << 14;

/// A number, or a truth value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scalar {
    pub(crate) value: Weak,
    /// Its type, where it has one of its own; else it takes that of what it meets.
    pub(crate) kind: Option<Kind>,
}

impl Scalar {
    /// A plain integer, which takes the type of what it meets.
    pub fn weak_integer(value: i128) -> Scalar {
        Scalar { value: Weak::Integer(value), kind: None }
    }

    /// A plain float, which takes the type of what it meets.
    pub fn weak_float(value: f64) -> Scalar {
        Scalar { value: Weak::Float(value), kind: None }
    }

    /// A truth value.
    pub fn truth(value: bool) -> Scalar {
        Scalar { value: Weak::Integer(value.into()), kind: Some(Kind::Bool) }
    }

    /// An integer of this type, or nothing if it does not fit or the type is none of integers.
    pub fn integer(value: i128, kind: Kind) -> Option<Scalar> {
        let (low, high) = bounds(kind)?;
        (low <= value && value <= high).then_some(Scalar { value: Weak::Integer(value), kind: Some(kind) })
    }

    /// A float of this type, or nothing if the type is none of floats.
    pub fn float(value: f64, kind: Kind) -> Option<Scalar> {
        (class(kind)? == NumberClass::Real).then_some(Scalar { value: Weak::Float(value), kind: Some(kind) })
    }
}

/// What a name stands for that is no array.
#[derive(Clone, PartialEq, Debug)]
pub enum Parameter {
    /// One number or truth value.
    One(Scalar),
    /// Several, for `in`.
    Several(Vec<Scalar>),
}

impl From<Scalar> for Parameter {
    fn from(scalar: Scalar) -> Parameter {
        Parameter::One(scalar)
    }
}

/// An operation, with the type of what it gives.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) at: TextRange,
    pub(crate) kind: Kind,
    pub(crate) what: Do,
}

#[derive(Clone, Debug)]
pub(crate) enum Do {
    Column(usize),
    Position(usize),
    /// The values that the innermost `in` is about.
    Here,
    Constant(Weak),
    Cast(Box<Operation>),
    ValueChange(ValueChange, Box<Operation>),
    IsNan(Box<Operation>),
    /// The smaller one, or the greater one.
    Choose(bool, Box<Operation>, Box<Operation>),
    Combine(Binary, Box<Operation>, Box<Operation>),
    Compare(Comparison, Box<Operation>, Box<Operation>),
    /// Whether it is one of these, in their order; or is none of them.
    In(Box<Operation>, Vec<Operation>, bool),
}

/// An expression for arrays of known types.
#[derive(Clone, Debug)]
pub struct Typed {
    pub(crate) text: Arc<str>,
    pub(crate) root: Operation,
}

impl Expression {
    /// Gives each part a type, where these are the columns, each an array or a field of one by its path, of arrays of so
    /// many dimensions.
    ///
    /// # Errors
    /// When a name means nothing, or an operation is not for these types.
    pub fn typed(
        &self,
        columns: &[(&str, Kind)],
        ndim: usize,
        parameters: &[(&str, Parameter)],
    ) -> Result<Typed, Refused> {
        let Expression { text, root, .. } = self;
        let mut typing = Typing { text, columns, ndim, parameters, operations: 0 };
        let value = typing.value(root)?;
        let root = typing.strong(value, root)?;
        Ok(Typed { text: text.clone(), root })
    }
}

impl Typed {
    /// The type of what it gives.
    pub fn kind(&self) -> Kind {
        self.root.kind
    }

    /// The same, if it gives truth values.
    ///
    /// # Errors
    /// When it gives anything else.
    pub fn deciding(self) -> Result<Typed, Refused> {
        if self.kind() == Kind::Bool {
            return Ok(self);
        }
        let what = format!("the expression gives {}, not truth values", self.kind());
        Err(Refused::new(&self.text, 0..self.text.len(), what).hint("compare it with something: `... != 0`"))
    }

    /// The same, if it gives integers.
    ///
    /// # Errors
    /// When it gives anything else.
    pub fn counting(self) -> Result<Typed, Refused> {
        if matches!(class(self.kind()), Some(NumberClass::Signed | NumberClass::Unsigned)) {
            return Ok(self);
        }
        let what = format!("the expression gives {}, not integers", self.kind());
        Err(Refused::new(&self.text, 0..self.text.len(), what).hint("divide by // for numbers of bins"))
    }

    /// Which of the columns it looks at.
    pub fn columns(&self) -> Vec<usize> {
        let mut found = Vec::new();
        self.root.collect(&mut found);
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl Operation {
    fn collect(&self, found: &mut Vec<usize>) {
        match &self.what {
            Do::Column(number) => found.push(*number),
            Do::Position(_) | Do::Constant(_) | Do::Here => {}
            Do::Cast(of) | Do::ValueChange(_, of) | Do::IsNan(of) | Do::In(of, ..) => of.collect(found),
            Do::Choose(_, a, b) | Do::Combine(_, a, b) | Do::Compare(_, a, b) => {
                a.collect(found);
                b.collect(found);
            }
        }
    }
}

/// What a part of an expression is: a plain number that has no type yet, or values of one.
enum TypedValue {
    Weak(Weak),
    Strong(Operation),
}

struct Typing<'a> {
    text: &'a Arc<str>,
    columns: &'a [(&'a str, Kind)],
    ndim: usize,
    parameters: &'a [(&'a str, Parameter)],
    operations: usize,
}

impl Typing<'_> {
    fn refused(&self, node: &SyntaxNode, what: impl Into<String>) -> Refused {
        Refused::new(self.text, node.at.clone(), what)
    }

    fn operation(&mut self, node: &SyntaxNode, kind: Kind, what: Do) -> Result<Operation, Refused> {
        self.operations += 1;
        if self.operations > OPERATIONS_MAX {
            return Err(self.refused(node, format!("the expression has more than {OPERATIONS_MAX} operations")));
        }
        Ok(Operation { at: node.at.clone(), kind, what })
    }

    fn value(&mut self, node: &SyntaxNode) -> Result<TypedValue, Refused> {
        match &node.what {
            Syntax::Integer(value) => Ok(TypedValue::Weak(Weak::Integer(*value))),
            Syntax::Float(value) => Ok(TypedValue::Weak(Weak::Float(*value))),
            Syntax::Truth(value) => {
                let constant = Do::Constant(Weak::Integer((*value).into()));
                self.operation(node, Kind::Bool, constant).map(TypedValue::Strong)
            }
            Syntax::Name(_) | Syntax::Field(..) => self.named(node),
            Syntax::Unary(unary, of) => self.unary(node, *unary, of),
            Syntax::Binary(binary, a, b) => self.binary(node, *binary, (a, b)),
            Syntax::Compare(first, rest) => self.comparisons(node, first, rest).map(TypedValue::Strong),
            Syntax::In(of, items, negated) => self.is_in(node, of, (items, *negated)).map(TypedValue::Strong),
            Syntax::Call(function, parts) => self.call(node, *function, parts).map(TypedValue::Strong),
        }
    }

    /// A name, or a field of a record: parameters come first, then columns, then positions.
    fn named(&mut self, node: &SyntaxNode) -> Result<TypedValue, Refused> {
        let Some(path) = path_of(node) else {
            return Err(self.refused(node, "only an array of records has fields"));
        };
        let column = self.columns.iter().position(|(name, _)| *name == path);
        if let Some((_, parameter)) = self.parameters.iter().find(|(name, _)| *name == path) {
            if column.is_some() {
                let what = format!("'{path}' is both an array and a parameter");
                return Err(self.refused(node, what).hint("give the parameter another name"));
            }
            return match parameter {
                Parameter::One(scalar) => self.scalar(node, scalar),
                Parameter::Several(_) => {
                    let what = format!("'{path}' is a list, which can stand behind `in` only");
                    Err(self.refused(node, what))
                }
            };
        }
        if let Some(number) = column {
            let kind = self.columns[number].1;
            if class(kind).is_none() {
                let what = format!("'{path}' has elements of type {kind}, with which expressions do not compute");
                let hint = "bool, integers and float16, float32 and float64 can be in expressions";
                return Err(self.refused(node, what).hint(hint));
            }
            return self.operation(node, kind, Do::Column(number)).map(TypedValue::Strong);
        }
        let position = path.strip_prefix('i').and_then(|digits| digits.parse::<usize>().ok());
        match position.filter(|position| path == format!("i{position}")) {
            Some(dim) if dim < self.ndim => {
                self.operation(node, Kind::Int64, Do::Position(dim)).map(TypedValue::Strong)
            }
            Some(dim) => {
                let what = format!("'{path}' is a position in dimension {dim}, but the arrays have {}", self.ndim);
                Err(self.refused(node, what))
            }
            None => {
                let what = format!("'{path}' is no array, no parameter and no position");
                let hint = "bind parameters by name; put names of arrays that have other signs in quotes";
                Err(self.refused(node, what).hint(hint))
            }
        }
    }

    fn scalar(&mut self, node: &SyntaxNode, scalar: &Scalar) -> Result<TypedValue, Refused> {
        match scalar.kind {
            None => Ok(TypedValue::Weak(scalar.value)),
            Some(kind) => self.operation(node, kind, Do::Constant(scalar.value)).map(TypedValue::Strong),
        }
    }

    /// A value with a type: of a plain number, that which an array of it would have.
    fn strong(&mut self, value: TypedValue, node: &SyntaxNode) -> Result<Operation, Refused> {
        match value {
            TypedValue::Strong(operation) => Ok(operation),
            TypedValue::Weak(weak) => {
                let kind = weak.kind();
                self.constant(node, weak, kind)
            }
        }
    }

    /// A plain number as one of this type.
    fn constant(&mut self, node: &SyntaxNode, weak: Weak, kind: Kind) -> Result<Operation, Refused> {
        if let (Weak::Integer(value), Some((low, high))) = (weak, bounds(kind))
            && !(low..=high).contains(&value)
        {
            let what = format!("the integer {value} does not fit into {kind}");
            return Err(self.refused(node, what).hint(format!("{kind} holds {low} to {high}")));
        }
        self.operation(node, kind, Do::Constant(weak))
    }

    /// The same values as another type.
    fn cast(&mut self, operation: Operation, kind: Kind, node: &SyntaxNode) -> Result<Operation, Refused> {
        if operation.kind == kind { Ok(operation) } else { self.operation(node, kind, Do::Cast(operation.into())) }
    }

    /// The type that two values have together, where at least one has a type.
    fn together(&self, a: &TypedValue, b: &TypedValue, node: &SyntaxNode) -> Result<Kind, Refused> {
        let met = |kind: Kind, weak: &Weak| match (class(kind), weak) {
            (Some(NumberClass::Real), _) | (Some(NumberClass::Signed | NumberClass::Unsigned), Weak::Integer(_)) => {
                kind
            }
            (_, Weak::Integer(_)) => Kind::Int64,
            (_, Weak::Float(_)) => Kind::Float64,
        };
        Ok(match (a, b) {
            (TypedValue::Strong(a), TypedValue::Strong(b)) => match promoted(a.kind, b.kind) {
                Some(kind) => kind,
                None => return Err(self.refused(node, format!("{} and {} have no type in common", a.kind, b.kind))),
            },
            (TypedValue::Strong(a), TypedValue::Weak(b)) => met(a.kind, b),
            (TypedValue::Weak(a), TypedValue::Strong(b)) => met(b.kind, a),
            (TypedValue::Weak(a), TypedValue::Weak(b)) => {
                if a.is_float() || b.is_float() {
                    Kind::Float64
                } else {
                    Kind::Int64
                }
            }
        })
    }

    /// A value as one of this type.
    fn made(&mut self, value: TypedValue, kind: Kind, node: &SyntaxNode) -> Result<Operation, Refused> {
        match value {
            TypedValue::Strong(operation) => self.cast(operation, kind, node),
            TypedValue::Weak(weak) => self.constant(node, weak, kind),
        }
    }

    fn unary(&mut self, node: &SyntaxNode, unary: Unary, of: &SyntaxNode) -> Result<TypedValue, Refused> {
        let value = self.value(of)?;
        let operation = match value {
            TypedValue::Weak(weak) => {
                return match unary {
                    Unary::Minus => Ok(TypedValue::Weak(weak.minus())),
                    Unary::Plus => Ok(TypedValue::Weak(weak)),
                    Unary::Invert | Unary::Not => {
                        Err(self.refused(node, "a plain number is no truth value").hint("write True or False"))
                    }
                };
            }
            TypedValue::Strong(operation) => operation,
        };
        let (kind, class) = (operation.kind, class(operation.kind));
        let what = match (unary, class) {
            (Unary::Minus | Unary::Plus, Some(NumberClass::Truth)) => {
                let what = "truth values have no sign";
                return Err(self.refused(node, what).hint("write ~ for those that are not"));
            }
            (Unary::Invert, Some(NumberClass::Real))
            | (Unary::Not, Some(NumberClass::Real | NumberClass::Signed | NumberClass::Unsigned)) => {
                let what = format!("{kind} is no truth value");
                return Err(self.refused(node, what).hint("compare it first, in parentheses: `~(x > 0)`"));
            }
            (Unary::Plus, _) => return Ok(TypedValue::Strong(operation)),
            (Unary::Minus, _) => Do::ValueChange(ValueChange::Minus, operation.into()),
            (Unary::Invert | Unary::Not, _) => Do::ValueChange(ValueChange::Invert, operation.into()),
        };
        self.operation(node, kind, what).map(TypedValue::Strong)
    }

    fn binary(
        &mut self,
        node: &SyntaxNode,
        binary: Binary,
        (first, second): (&SyntaxNode, &SyntaxNode),
    ) -> Result<TypedValue, Refused> {
        let (a, b) = (self.value(first)?, self.value(second)?);
        if let (TypedValue::Weak(a), TypedValue::Weak(b)) = (&a, &b) {
            return weak::combine(binary, *a, *b).map(TypedValue::Weak).map_err(|why| self.refused(node, why));
        }
        let together = self.together(&a, &b, node)?;
        let of_class = class(together);
        let raised = match (&b, binary, of_class) {
            (TypedValue::Weak(exponent), Binary::Power, Some(NumberClass::Real)) => Some(exponent.double()),
            _ => None,
        };
        let wrong = |hint: &str| {
            let what = format!("'{}' is not for {together}", binary.sign());
            self.refused(node, what).hint(hint)
        };
        let kind = match (binary, of_class) {
            (Binary::And | Binary::Or, Some(NumberClass::Truth)) => together,
            (Binary::And | Binary::Or, _) => return Err(wrong("compare values first: `a > 0 and b > 0`")),
            (Binary::BitAnd | Binary::BitOr | Binary::BitXor, Some(NumberClass::Real)) => {
                return Err(wrong("& and | bind more tightly than comparisons: write `(a > 0) & (b > 0)`"));
            }
            (Binary::Subtract, Some(NumberClass::Truth)) => return Err(wrong("write a & ~b, or a ^ b")),
            (Binary::Divide, Some(NumberClass::Truth | NumberClass::Signed | NumberClass::Unsigned)) => Kind::Float64,
            (Binary::FloorDivide | Binary::Remainder | Binary::Power, Some(NumberClass::Truth)) => Kind::Int8,
            _ => together,
        };
        let a = self.made(a, kind, first)?;
        if let Some(exponent) = raised
            && SHORT_CUTS.contains(&exponent)
        {
            return self
                .operation(node, kind, Do::ValueChange(ValueChange::Raise(exponent), a.into()))
                .map(TypedValue::Strong);
        }
        let b = self.made(b, kind, second)?;
        self.operation(node, kind, Do::Combine(binary, a.into(), b.into())).map(TypedValue::Strong)
    }

    fn comparisons(
        &mut self,
        node: &SyntaxNode,
        first: &SyntaxNode,
        rest: &[(Comparison, SyntaxNode)],
    ) -> Result<Operation, Refused> {
        let (mut before, mut all) = (first, None);
        for (comparison, next) in rest {
            let (a, b) = (self.value(before)?, self.value(next)?);
            let one = self.comparison(node, *comparison, (before, a), (next, b))?;
            all = Some(match all {
                None => one,
                Some(all) => self.operation(node, Kind::Bool, Do::Combine(Binary::And, Box::new(all), one.into()))?,
            });
            before = next;
        }
        all.ok_or_else(|| self.refused(node, "there is nothing to compare"))
    }

    fn comparison(
        &mut self,
        node: &SyntaxNode,
        comparison: Comparison,
        (first, a): (&SyntaxNode, TypedValue),
        (second, b): (&SyntaxNode, TypedValue),
    ) -> Result<Operation, Refused> {
        let truth = |holds: bool| Do::Constant(Weak::Integer(holds.into()));
        let (a, b, comparison) = match (a, b) {
            (TypedValue::Weak(a), TypedValue::Weak(b)) => {
                return self.operation(node, Kind::Bool, truth(comparison.holds(a.ordering(b))));
            }
            (a @ TypedValue::Weak(_), b @ TypedValue::Strong(_)) => (b, a, comparison.turned()),
            (a, b) => (a, b, comparison),
        };
        // A plain integer that does not fit is below or above all values.
        if let (TypedValue::Strong(of), TypedValue::Weak(Weak::Integer(value))) = (&a, &b)
            && let Some((low, high)) = bounds(of.kind)
            && !(low..=high).contains(value)
        {
            let ordering = if *value > high { Ordering::Less } else { Ordering::Greater };
            return self.operation(node, Kind::Bool, truth(comparison.holds(Some(ordering))));
        }
        let integers = |of: &TypedValue| match of {
            TypedValue::Strong(of) => matches!(class(of.kind), Some(NumberClass::Signed | NumberClass::Unsigned)),
            TypedValue::Weak(_) => false,
        };
        let (a, b) = if integers(&a) && integers(&b) {
            (self.strong(a, first)?, self.strong(b, second)?)
        } else {
            let kind = self.together(&a, &b, node)?;
            (self.made(a, kind, first)?, self.made(b, kind, second)?)
        };
        self.operation(node, Kind::Bool, Do::Compare(comparison, a.into(), b.into()))
    }

    fn is_in(
        &mut self,
        node: &SyntaxNode,
        of: &SyntaxNode,
        (items, negated): (&[SyntaxNode], bool),
    ) -> Result<Operation, Refused> {
        let list = match items {
            [SyntaxNode { what: Syntax::Name(name), .. }] => self.parameters.iter().find_map(|(known, parameter)| {
                if let Parameter::Several(list) = parameter { (known == name).then_some(list) } else { None }
            }),
            _ => None,
        };
        let value = self.value(of)?;
        let of_all = self.strong(value, of)?;
        let mut equal = Vec::new();
        // The values are computed once; each comparison of them is one with what is there already.
        let here = |operation: &Operation| Operation { at: of.at.clone(), kind: operation.kind, what: Do::Here };
        let count = list.map_or(items.len(), Vec::len);
        for number in 0..count {
            let item_node = if list.is_some() { &items[0] } else { &items[number] };
            let item = match list {
                Some(list) => self.scalar(item_node, &list[number])?,
                None => self.value(item_node)?,
            };
            let here = TypedValue::Strong(here(&of_all));
            equal.push(self.comparison(node, Comparison::Equal, (of, here), (item_node, item))?);
        }
        self.operation(node, Kind::Bool, Do::In(of_all.into(), equal, negated))
    }

    fn call(&mut self, node: &SyntaxNode, function: Function, parts: &[SyntaxNode]) -> Result<Operation, Refused> {
        let first = self.value(&parts[0])?;
        match function {
            Function::Abs | Function::Sqrt | Function::IsNan => {
                let of = self.strong(first, &parts[0])?;
                let kind = of.kind;
                match function {
                    Function::Abs => self.operation(node, kind, Do::ValueChange(ValueChange::Abs, of.into())),
                    Function::IsNan => self.operation(node, Kind::Bool, Do::IsNan(of.into())),
                    _ => {
                        let real = real_of(kind).unwrap_or(Kind::Float64);
                        let of = self.cast(of, real, node)?;
                        self.operation(node, real, Do::ValueChange(ValueChange::Sqrt, of.into()))
                    }
                }
            }
            Function::Min | Function::Max => {
                let (mut before, mut least) = (&parts[0], first);
                for part in &parts[1..] {
                    let next = self.value(part)?;
                    let kind = self.together(&least, &next, node)?;
                    let (a, b) = (self.made(least, kind, before)?, self.made(next, kind, part)?);
                    let choose = Do::Choose(function == Function::Max, a.into(), b.into());
                    (before, least) = (part, TypedValue::Strong(self.operation(node, kind, choose)?));
                }
                self.strong(least, node)
            }
        }
    }
}

/// The name of an array or of a field of one: `a`, `a.b`.
fn path_of(node: &SyntaxNode) -> Option<String> {
    match &node.what {
        Syntax::Name(name) => Some(name.clone()),
        Syntax::Field(of, field) => Some(format!("{}.{field}", path_of(of)?)),
        _ => None,
    }
}
