//! From a text to a tree: signs bind as in Python.

use crate::lexer::{Token, tokens};
use crate::refused::Refused;
use crate::tree::{Binary, Comparison, Function, Syntax, SyntaxNode, TextRange, Unary};
use std::sync::Arc;

/// How deep an expression may nest.
pub const DEPTH_MAX: usize = 200;

/// An expression, as it was written.
#[derive(Clone, Debug)]
pub struct Expression {
    pub(crate) text: Arc<str>,
    pub(crate) root: SyntaxNode,
    names: Vec<String>,
}

impl Expression {
    /// Parses a text.
    ///
    /// # Errors
    /// When it is no expression.
    pub fn parse(text: &str) -> Result<Expression, Refused> {
        let text: Arc<str> = text.into();
        let tokens = tokens(&text)?;
        let mut parser = ExpressionParser { text: &text, tokens, next: 0, depth: 0 };
        let root = parser.binary(0)?;
        if *parser.peek() != Token::End {
            return Err(parser.unexpected("an operator, or the end of the expression"));
        }
        let mut names = Vec::new();
        collect_names(&root, &mut names);
        Ok(Expression { text, root, names })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names in it, each once, in the order in which they come first: of arrays, parameters and positions.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

fn collect_names(node: &SyntaxNode, names: &mut Vec<String>) {
    match &node.what {
        Syntax::Name(name) => {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Syntax::Field(of, _) | Syntax::Unary(_, of) => collect_names(of, names),
        Syntax::Binary(_, a, b) => [a, b].into_iter().for_each(|part| collect_names(part, names)),
        Syntax::Compare(first, rest) => {
            collect_names(first, names);
            rest.iter().for_each(|(_, part)| collect_names(part, names));
        }
        Syntax::In(of, items, _) => {
            collect_names(of, names);
            items.iter().for_each(|part| collect_names(part, names));
        }
        Syntax::Call(_, parts) => parts.iter().for_each(|part| collect_names(part, names)),
        Syntax::Integer(_) | Syntax::Float(_) | Syntax::Truth(_) => {}
    }
}

/// Levels at which signs bind, as in Python.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARE: u8 = 4;
const UNARY: u8 = 10;
const POWER: u8 = 11;

fn binary_of(token: &Token) -> Option<(Binary, u8)> {
    let (Token::Sign(sign) | Token::Word(sign)) = token else { return None };
    Some(match *sign {
        "or" => (Binary::Or, OR),
        "and" => (Binary::And, AND),
        "|" => (Binary::BitOr, 5),
        "^" => (Binary::BitXor, 6),
        "&" => (Binary::BitAnd, 7),
        "+" => (Binary::Add, 8),
        "-" => (Binary::Subtract, 8),
        "*" => (Binary::Multiply, 9),
        "/" => (Binary::Divide, 9),
        "//" => (Binary::FloorDivide, 9),
        "%" => (Binary::Remainder, 9),
        "**" => (Binary::Power, POWER),
        _ => return None,
    })
}

fn comparison_of(token: &Token) -> Option<Comparison> {
    let Token::Sign(sign) = token else { return None };
    Some(match *sign {
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterEqual,
        _ => return None,
    })
}

struct ExpressionParser<'a> {
    text: &'a Arc<str>,
    tokens: Vec<(Token, TextRange)>,
    next: usize,
    depth: usize,
}

impl ExpressionParser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn span(&self) -> TextRange {
        self.tokens[self.next].1.clone()
    }

    /// Takes a token; the end stays.
    fn take(&mut self) -> (Token, TextRange) {
        let taken = self.tokens[self.next].clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        taken
    }

    /// Takes this sign if it comes next.
    fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Token::Sign(next) | Token::Word(next) if *next == sign);
        if is {
            self.take();
        }
        is
    }

    fn unexpected(&self, wanted: &str) -> Refused {
        let at = self.span();
        match self.peek() {
            Token::End => Refused::new(self.text, at, format!("{wanted} is missing here")),
            Token::Sign("=") => {
                Refused::new(self.text, at, "'=' assigns, which expressions do not").hint("compare with ==")
            }
            Token::Sign("!") => Refused::new(self.text, at, "'!' stands alone").hint("write ~ or not, or !="),
            _ => Refused::new(self.text, at.clone(), format!("'{}' stands where {wanted} must be", &self.text[at])),
        }
    }

    fn node(&self, at: TextRange, below: usize, what: Syntax) -> Result<SyntaxNode, Refused> {
        if below >= DEPTH_MAX {
            return Err(self.too_deep(at));
        }
        Ok(SyntaxNode { at, depth: below + 1, what })
    }

    fn too_deep(&self, at: TextRange) -> Refused {
        Refused::new(self.text, at, format!("the expression nests deeper than {DEPTH_MAX} levels"))
            .hint("write `x in [1, 2, 3]` for many comparisons with ==")
    }

    /// What binds at this level or more tightly.
    fn binary(&mut self, level: u8) -> Result<SyntaxNode, Refused> {
        if self.depth >= DEPTH_MAX {
            return Err(self.too_deep(self.span()));
        }
        self.depth += 1;
        let parsed = self.binary_within(level);
        self.depth -= 1;
        parsed
    }

    fn binary_within(&mut self, level: u8) -> Result<SyntaxNode, Refused> {
        let mut left = self.prefix(level)?;
        loop {
            if level <= COMPARE && self.compares() {
                left = self.comparisons(left)?;
            } else if let Some((sign, binds)) = binary_of(self.peek()).filter(|(_, binds)| *binds >= level) {
                self.take();
                // What stands behind ** may have a sign of its own, and ** binds to the right.
                let right = self.binary(if sign == Binary::Power { UNARY } else { binds + 1 })?;
                let (at, below) = (left.at.start..right.at.end, left.depth.max(right.depth));
                left = self.node(at, below, Syntax::Binary(sign, left.into(), right.into()))?;
            } else {
                return Ok(left);
            }
        }
    }

    fn compares(&self) -> bool {
        let not_in = *self.peek() == Token::Word("not") && self.tokens[self.next + 1].0 == Token::Word("in");
        comparison_of(self.peek()).is_some() || *self.peek() == Token::Word("in") || not_in
    }

    fn comparisons(&mut self, first: SyntaxNode) -> Result<SyntaxNode, Refused> {
        if comparison_of(self.peek()).is_none() {
            let negated = self.takes("not");
            self.takes("in");
            let (items, end) = self.items()?;
            let (at, below) = (first.at.start..end, items.iter().map(|item| item.depth).max().unwrap_or(0));
            let below = below.max(first.depth);
            return self.node(at, below, Syntax::In(first.into(), items, negated));
        }
        let (start, mut end, mut below, mut rest) = (first.at.start, first.at.end, first.depth, Vec::new());
        while let Some(comparison) = comparison_of(self.peek()) {
            self.take();
            let next = self.binary(COMPARE + 1)?;
            (end, below) = (next.at.end, below.max(next.depth));
            rest.push((comparison, next));
        }
        // All must hold, which is as deep as they are many.
        self.node(start..end, below + rest.len(), Syntax::Compare(first.into(), rest))
    }

    /// What stands behind `in`: a list in brackets, or the name of a parameter that is one.
    fn items(&mut self) -> Result<(Vec<SyntaxNode>, usize), Refused> {
        let close = match self.peek() {
            Token::Sign("[") => "]",
            Token::Sign("(") => ")",
            Token::Name(..) => {
                let name = self.atom()?;
                let end = name.at.end;
                return Ok((vec![name], end));
            }
            _ => return Err(self.unexpected("a list such as [1, 2, 3], or a parameter that is one")),
        };
        self.take();
        self.list(close)
    }

    /// What stands between here and a closing sign, separated by commas; and where that ends.
    fn list(&mut self, close: &'static str) -> Result<(Vec<SyntaxNode>, usize), Refused> {
        let mut items = Vec::new();
        loop {
            let end = self.span().end;
            if self.takes(close) {
                return Ok((items, end));
            }
            items.push(self.binary(0)?);
            if !self.takes(",") && *self.peek() != Token::Sign(close) {
                return Err(self.unexpected(&format!("',' or '{close}'")));
            }
        }
    }

    fn prefix(&mut self, level: u8) -> Result<SyntaxNode, Refused> {
        let (sign, binds) = match self.peek() {
            Token::Word("not") if level <= NOT => (Unary::Not, NOT),
            Token::Sign("-") => (Unary::Minus, UNARY),
            Token::Sign("+") => (Unary::Plus, UNARY),
            Token::Sign("~") => (Unary::Invert, UNARY),
            _ => return self.postfix(),
        };
        let start = self.take().1.start;
        let of = self.binary(binds)?;
        self.node(start..of.at.end, of.depth, Syntax::Unary(sign, of.into()))
    }

    /// A value, and fields of it.
    fn postfix(&mut self) -> Result<SyntaxNode, Refused> {
        let mut of = self.atom()?;
        loop {
            let field = if self.takes(".") {
                false
            } else if self.takes("[") {
                true
            } else {
                return Ok(of);
            };
            let Token::Name(name, _) = self.peek().clone() else {
                let wanted = if field { "the name of a field in quotes" } else { "the name of a field" };
                return Err(self.unexpected(wanted));
            };
            let mut end = self.take().1.end;
            if field {
                end = self.span().end;
                if !self.takes("]") {
                    return Err(self.unexpected("']'"));
                }
            }
            let at = of.at.start..end;
            of = self.node(at, of.depth, Syntax::Field(of.into(), name))?;
        }
    }

    fn atom(&mut self) -> Result<SyntaxNode, Refused> {
        let at = self.span();
        let what = match self.peek().clone() {
            Token::Integer(value) => Syntax::Integer(value),
            Token::Float(value) => Syntax::Float(value),
            Token::Word("True") => Syntax::Truth(true),
            Token::Word("False") => Syntax::Truth(false),
            Token::Name(name, quoted) => {
                let called = !quoted && self.tokens[self.next + 1].0 == Token::Sign("(");
                if called {
                    return self.call(&name);
                }
                Syntax::Name(name)
            }
            Token::Sign("(") => {
                self.take();
                let inner = self.binary(0)?;
                if !self.takes(")") {
                    return Err(self.unexpected("')'"));
                }
                return Ok(inner);
            }
            _ => return Err(self.unexpected("a number, a name or '('")),
        };
        self.take();
        self.node(at, 0, what)
    }

    fn call(&mut self, name: &str) -> Result<SyntaxNode, Refused> {
        let at = self.take().1;
        let Some((_, function)) = Function::ALL.into_iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = Function::ALL.iter().map(|(name, _)| *name).collect();
            let what = format!("'{name}' is no function of expressions");
            return Err(Refused::new(self.text, at, what).hint(format!("there are {}", known.join(", "))));
        };
        self.take();
        let (parts, end) = self.list(")")?;
        let (fewest, most) = function.arguments();
        if parts.len() < fewest || parts.len() > most {
            let wanted = if most == 1 { "one argument".into() } else { format!("at least {fewest} arguments") };
            let what = format!("'{name}' takes {wanted}, and is given {}", parts.len());
            return Err(Refused::new(self.text, at.start..end, what));
        }
        let below = parts.iter().map(|part| part.depth).max().unwrap_or(0);
        self.node(at.start..end, below + parts.len(), Syntax::Call(function, parts))
    }
}
