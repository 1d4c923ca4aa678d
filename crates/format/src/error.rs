//! The one error of this crate.

use std::fmt;

/// Why something could not be named, parsed, built, encoded or decoded.
///
/// Its text says what was asked, of which object, what was expected and what was found, and ends with a line
/// `hint: ...` where there is something to try.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    reason: Reason,
    asked: &'static str,
    object: String,
    expected: String,
    found: String,
    hint: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Corrupt,
    Unsupported,
    Invalid,
}

impl Error {
    /// Whether stored bytes are damaged or do not follow their format.
    pub fn is_corrupt(&self) -> bool {
        self.0.reason == Reason::Corrupt
    }

    /// Whether the bytes follow their format, but use a part of it that is not supported here.
    pub fn is_unsupported(&self) -> bool {
        self.0.reason == Reason::Unsupported
    }

    /// Whether an argument of the caller was wrong.
    pub fn is_invalid(&self) -> bool {
        self.0.reason == Reason::Invalid
    }

    /// The object that it is about: the name or key that the caller gave.
    pub fn object(&self) -> &str {
        &self.0.object
    }

    /// What could not be done, with which object.
    pub fn cannot(&self) -> String {
        format!("cannot {} '{}'", self.0.asked, self.0.object)
    }

    /// What was expected.
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// What was found instead.
    pub fn found(&self) -> &str {
        &self.0.found
    }

    /// What to try, if there is something.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// That the bytes of a file, which a parser asked for, cannot be read, and why.
    pub fn unreadable(object: &str, why: impl Into<String>) -> Error {
        Context::new("read", object).corrupt("its bytes", why)
    }

    /// That a file has fewer bytes than what it says of itself.
    pub fn cut_short(object: &str, expected: impl Into<String>, found: impl Into<String>) -> Error {
        Context::new("read", object).corrupt(expected, found)
    }

    /// The same error with a hint.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { expected, found, hint, .. } = &*self.0;
        write!(f, "{}: expected {expected}, found {found}", self.cannot())?;
        match hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// What is being asked of which object: the half of an error that is known before anything goes wrong.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// Completes the sentence "cannot ... `object`".
    pub(crate) asked: &'static str,
    pub(crate) object: &'a str,
}

impl<'a> Context<'a> {
    pub(crate) fn new(asked: &'static str, object: &'a str) -> Self {
        Context { asked, object }
    }

    pub(crate) fn corrupt(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        self.error(Reason::Corrupt, expected.into(), found.into())
    }

    pub(crate) fn unsupported(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        self.error(Reason::Unsupported, expected.into(), found.into())
    }

    pub(crate) fn invalid(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        self.error(Reason::Invalid, expected.into(), found.into())
    }

    /// Of so many stored bytes, which a decoder could not read for this cause; that there is no memory says nothing of them.
    pub(crate) fn undecoded(&self, what: &str, stored: usize, cause: &std::io::Error) -> Error {
        let cause_text = cause.to_string();
        if cause.kind() == std::io::ErrorKind::OutOfMemory || cause_text.contains("not enough memory") {
            let found = format!("none left to decode {stored} B");
            return self.invalid("memory", found).with_hint("let the process have more of it, or store smaller chunks");
        }
        self.corrupt(what, format!("{stored} B that do not decode: {cause_text}"))
    }

    fn error(&self, reason: Reason, expected: String, found: String) -> Error {
        let object = self.object.to_owned();
        Error(Box::new(Inner { reason, asked: self.asked, object, expected, found, hint: None }))
    }
}

/// At most 80 characters of `text`, so that a hostile file cannot fill the screen; control characters are escaped.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARACTERS_MAX: usize = 80;
    let mut short: String = text.chars().take(CHARACTERS_MAX).flat_map(printable).collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        short.push_str("...");
    }
    short
}

fn printable(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_of_which_expected_found_hint() {
        let context = Context::new("read array metadata of", "rho/zarr.json");
        let error = context.unsupported("a codec", "`blosc`").with_hint("write without it");
        let text =
            "cannot read array metadata of 'rho/zarr.json': expected a codec, found `blosc`\nhint: write without it";
        assert_eq!(error.to_string(), text);
        assert!(error.is_unsupported());
        assert!(!error.is_corrupt());
        assert!(!error.is_invalid());
        assert_eq!(error.object(), "rho/zarr.json");
        assert_eq!(error.hint(), Some("write without it"));
    }

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(excerpt(&"x".repeat(1000)).len(), 83);
        assert_eq!(excerpt(&"é".repeat(80)), "é".repeat(80));
    }
}
