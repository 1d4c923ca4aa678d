//! Texts that people see: what files say never reaches a terminal as a command.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The same text, in which control characters but line breaks, and marks that hide text or turn its direction, are written as
/// escapes, as Python has them. Names in files may hold them.
pub fn legible(text: &str) -> Cow<'_, str> {
    without(text, is_obeyed)
}

/// The same on one line: no name can begin another one, which would be taken for a hint, or for what befell another rank.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    without(text, |c| is_obeyed(c) || c == '\n')
}

fn without(text: &str, is_left_out: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_left_out) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        let code = u32::from(c);
        match is_left_out(c) {
            false => shown.push(c),
            true if c == '\n' => shown.push_str("\\n"),
            true if code < 0x100 => drop(write!(shown, "\\x{code:02x}")),
            true if code < 0x1_0000 => drop(write!(shown, "\\u{code:04x}")),
            true => drop(write!(shown, "\\U{code:08x}")),
        }
    }
    Cow::Owned(shown)
}

/// Whether a terminal would do something else than show it.
fn is_obeyed(c: char) -> bool {
    let hidden = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    hidden || c.is_control() && c != '\n'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_as_text() {
        assert_eq!(
            legible("no array 'a\x1b[2J\u{9b}1m\u{7f}\r'\n  hint: none"),
            "no array 'a\\x1b[2J\\x9b1m\\x7f\\x0d'\n  hint: none"
        );
        assert_eq!(legible("a\u{202e}b\u{2066}c\u{e0041}"), "a\\u202eb\\u2066c\\U000e0041");
        assert_eq!(on_one_line("a\n  hint: b\x1b"), "a\\n  hint: b\\x1b");
        assert!(matches!(legible("höhe 温度 \\x1b"), Cow::Borrowed(_)));
    }
}
