//! Words and signs of a text.

use crate::refused::Refused;
use crate::tree::TextRange;
use std::sync::Arc;

/// Longest text of an expression \[B\].
pub const TEXT_BYTES_MAX: usize = 1 << 14;

/// Signs, those first that begin with others.
const SIGNS: [&str; 25] = [
    "**", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "<", ">", "&", "|", "^", "~", "(", ")", "[", "]", ",",
    ".", "!", "=",
];

/// Words that are no names.
const WORDS: [&str; 6] = ["and", "or", "not", "in", "True", "False"];

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Token {
    Integer(i128),
    Float(f64),
    /// A name; whether it was in quotes.
    Name(String, bool),
    Word(&'static str),
    Sign(&'static str),
    End,
}

/// All tokens of a text, with their places; the last one is its end.
pub(crate) fn tokens(text: &Arc<str>) -> Result<Vec<(Token, TextRange)>, Refused> {
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("the expression has {} B, and at most {TEXT_BYTES_MAX} B are parsed", text.len());
        let hint = "bind long lists of numbers as a parameter: `id in wanted`, with wanted=[...]";
        return Err(Refused::new(text, 0..1, what).hint(hint));
    }
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, bytes) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            number(text, at)?
        } else if first.is_alphabetic() || first == '_' {
            word(rest)
        } else if matches!(first, '"' | '\'' | '`') {
            quoted(text, at, first)?
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| {
                let what = format!("{first:?} means nothing in an expression");
                Refused::new(text, at..at + first.len_utf8(), what)
                    .hint("put names of arrays with other characters than letters, digits and _ in quotes")
            })?;
            (Token::Sign(sign), sign.len())
        };
        all.push((token, at..at + bytes));
        at += bytes;
    }
    all.push((Token::End, at..at));
    Ok(all)
}

fn word(rest: &str) -> (Token, usize) {
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let name = &rest[..end];
    let word = WORDS.into_iter().find(|word| *word == name);
    (word.map_or_else(|| Token::Name(name.to_string(), false), Token::Word), end)
}

fn quoted(text: &Arc<str>, at: usize, quote: char) -> Result<(Token, usize), Refused> {
    let inner = &text[at + 1..];
    match inner.find(quote) {
        Some(0) => Err(Refused::new(text, at..at + 2, "a name is missing between the quotes")),
        Some(end) => Ok((Token::Name(inner[..end].to_string(), true), end + 2)),
        None => Err(Refused::new(text, at..at + 1, format!("this {quote} has no partner"))),
    }
}

fn number(text: &Arc<str>, at: usize) -> Result<(Token, usize), Refused> {
    let rest = &text[at..];
    let prefix = rest.get(..2).map(str::to_ascii_lowercase);
    let radix = match prefix.as_deref() {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 10,
    };
    let (mut end, mut is_float) = (if radix == 10 { 0 } else { 2 }, false);
    let bytes = rest.as_bytes();
    while let Some(&byte) = bytes.get(end) {
        let exponent = radix == 10 && matches!(bytes.get(end.wrapping_sub(1)), Some(b'e' | b'E'));
        match byte {
            b'.' | b'e' | b'E' if radix == 10 => is_float = true,
            b'+' | b'-' if exponent => {}
            _ if byte.is_ascii_alphanumeric() || byte == b'_' => {}
            _ => break,
        }
        end += 1;
    }
    let written = rest[..end].replace('_', "");
    let wrong = |what: &str| Refused::new(text, at..at + end, format!("'{}' {what}", &rest[..end]));
    if is_float {
        // Rust would read `inf` and `nan`, too, which do not begin with a digit.
        let value = written.parse::<f64>().map_err(|_| wrong("is no number"))?;
        return Ok((Token::Float(value), end));
    }
    let digits = if radix == 10 { &written[..] } else { &written[2..] };
    match i128::from_str_radix(digits, radix) {
        Ok(value) => Ok((Token::Integer(value), end)),
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => Err(wrong("is too large")),
        Err(_) => Err(wrong("is no number")),
    }
}
