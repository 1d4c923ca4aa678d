//! What is wrong with a profile.

use std::fmt;

/// Why a profile was refused.
///
/// Its text names the file, the dotted key, what was expected and what was found, the line if there is one, and ends with
/// a line `hint: ...` where there is something to try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProfileError {
    file: String,
    key: String,
    line: Option<usize>,
    fault: Fault,
}

/// A fault whose place is not known yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    text: String,
    hint: String,
}

impl Fault {
    /// What is wrong, and what to do about it; the latter may be empty.
    pub(super) fn new(text: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault { text: text.into(), hint: hint.into() }
    }

    /// The fault of `key`, which is empty for the file as a whole.
    pub(super) fn at(self, file: &str, key: &str, line: Option<usize>) -> ProfileError {
        ProfileError { file: file.to_owned(), key: key.to_owned(), line, fault: self }
    }
}

impl ProfileError {
    /// The dotted key that it is about; empty if it is about the whole file.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What to try; empty if there is nothing.
    pub fn hint(&self) -> &str {
        &self.fault.hint
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}", self.fault.text)?;
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        if !self.fault.hint.is_empty() {
            write!(f, "\n  hint: {}", self.fault.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProfileError {}
