//! Why an expression is refused, and where in its text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// How many characters of a text are shown around the place.
const SHOWN: usize = 72;

/// That a text is no expression, or means nothing for these arrays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// What is wrong.
    pub what: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
    text: Arc<str>,
    at: Range<usize>,
}

impl Refused {
    pub(crate) fn new(text: &Arc<str>, at: Range<usize>, what: impl Into<String>) -> Refused {
        Refused { what: what.into(), hint: None, text: text.clone(), at }
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Refused {
        Refused { hint: Some(hint.into()), ..self }
    }

    /// Where in the text it is: the bytes from one place up to another.
    pub fn at(&self) -> Range<usize> {
        self.at.clone()
    }

    /// What is wrong, and below it the text with a mark under the place.
    pub fn message(&self) -> String {
        let (line, mark) = self.marked();
        format!("{}\n  {line}\n  {mark}", self.what)
    }

    /// The characters of the text around the place, and the mark below them.
    fn marked(&self) -> (String, String) {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let chars: Vec<(usize, char)> = self.text.char_indices().map(|(at, c)| (at, plain(c))).collect();
        let number = |at: usize| chars.partition_point(|(start, _)| *start < at);
        let (low, high) = (number(self.at.start), number(self.at.end).max(number(self.at.start) + 1));
        let first = low.saturating_sub(SHOWN / 2);
        let last = (first + SHOWN).min(chars.len());
        let (before, after) = (if first > 0 { "..." } else { "" }, if last < chars.len() { "..." } else { "" });
        let shown: String = chars[first.min(last)..last].iter().map(|(_, c)| c).collect();
        let width = high.min(last.max(low + 1)) - low;
        let mark = format!("{}{}", " ".repeat(before.len() + low - first), "^".repeat(width));
        (format!("{before}{shown}{after}"), mark)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        self.hint.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_lies_below_the_place() {
        let text: Arc<str> = "rho > ψ\t+ 1".into();
        let at = text.find('+').unwrap();
        let said = Refused::new(&text, at..at + 1, "no").hint("yes").to_string();
        assert_eq!(said, "no\n  rho > ψ + 1\n          ^\n  hint: yes");
        let end = Refused::new(&text, text.len()..text.len(), "no").message();
        assert_eq!(end, "no\n  rho > ψ + 1\n             ^");
    }

    #[test]
    fn of_long_texts_the_place_is_shown() {
        let text: Arc<str> = format!("{}?{}", "a".repeat(500), "b".repeat(500)).into();
        let said = Refused::new(&text, 500..501, "no").message();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[1].find('?'), lines[2].find('^'));
        assert!(lines[1].len() < 90, "{said}");
        let all = Refused::new(&text, 0..text.len(), "no").message();
        assert!(all.lines().all(|line| line.len() < 90), "{all}");
    }
}
