//! Fields of records, as NumPy describes their types: `[('a', '<i4'), ('b', '<f8')]`.

use hyperslab_layout::ElementType;

/// Deepest records in records.
const DEPTH_MAX: usize = 16;

/// A field of a record that is one number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordField {
    /// Its name, after those of the fields around it.
    pub(crate) path: String,
    pub(crate) element: ElementType,
    /// Where it lies in the record \[B\].
    pub(crate) offset: usize,
}

/// The fields that are numbers. Those that are not are passed over; behind what is no description there are none.
pub(crate) fn fields_of(description: &str) -> Vec<RecordField> {
    let mut found = Vec::new();
    let _ = Description(description).list("", 0, 0, &mut found);
    found
}

struct Description<'a>(&'a str);

impl<'a> Description<'a> {
    fn takes(&mut self, sign: char) -> bool {
        let rest = self.0.trim_start();
        let is = rest.starts_with(sign);
        self.0 = if is { &rest[sign.len_utf8()..] } else { rest };
        is
    }

    /// A text in quotes, in which a backslash stands before a sign that means itself.
    fn text(&mut self) -> Option<String> {
        let rest = self.0.trim_start();
        let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let (mut text, mut escaped) = (String::new(), false);
        for (at, sign) in rest.char_indices().skip(1) {
            if !escaped && sign == quote {
                self.0 = &rest[at + sign.len_utf8()..];
                return Some(text);
            }
            escaped = !escaped && sign == '\\';
            if !escaped {
                text.push(sign);
            }
        }
        None
    }

    fn number(&mut self) -> Option<usize> {
        let rest = self.0.trim_start();
        let end = rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len());
        self.0 = &rest[end..];
        rest[..end].parse().ok()
    }

    /// A list of fields, from this place in the record on; gives where it ends.
    fn list(&mut self, above: &str, start: usize, depth: usize, found: &mut Vec<RecordField>) -> Option<usize> {
        if !self.takes('[') || depth > DEPTH_MAX {
            return None;
        }
        let mut at = start;
        loop {
            if self.takes(']') {
                return Some(at);
            }
            if self.takes('[') {
                // In which order fields are shown.
                self.0 = &self.0[self.0.find(']')? + 1..];
                continue;
            }
            if self.takes(',') {
                continue;
            }
            at = self.field(above, at, depth, found)?;
        }
    }

    fn field(&mut self, above: &str, at: usize, depth: usize, found: &mut Vec<RecordField>) -> Option<usize> {
        if !self.takes('(') {
            return None;
        }
        let name = self.text()?;
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        if !self.takes(',') {
            return None;
        }
        let before = found.len();
        let end = if self.0.trim_start().starts_with('[') {
            self.list(&path, at, depth + 1, found)?
        } else {
            let element = ElementType::from_numpy(&self.text()?)?;
            if !name.is_empty() {
                found.push(RecordField { path, element, offset: at });
            }
            at.checked_add(usize::try_from(element.bytes()).ok()?)?
        };
        let mut count = 1_usize;
        if self.takes(',') && self.takes('(') {
            while !self.takes(')') {
                if !self.takes(',') {
                    count = count.checked_mul(self.number()?)?;
                }
            }
            // A field of several numbers is none.
            found.truncate(before);
        }
        self.takes(')').then(|| (end - at).checked_mul(count)?.checked_add(at))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_numpy_has_them() {
        let text = "[('a', '<i4'), ('', '|V4'), ('in', [('x', '>f8'), (\"it's\", '|u1')]), ('v', '<f4', (2, 3)), ('z', '<u2'), [1, 0]]";
        let found: Vec<(String, String, usize)> =
            fields_of(text).into_iter().map(|field| (field.path, field.element.numpy(), field.offset)).collect();
        let expected = [("a", "<i4", 0), ("in.x", ">f8", 8), ("in.it's", "|u1", 16), ("z", "<u2", 41)];
        let expected = expected.map(|(path, kind, offset)| (path.to_string(), kind.to_string(), offset));
        assert_eq!(found, expected);
        for end in 0..text.len() {
            let _ = fields_of(&text[..end]);
        }
        assert!(fields_of(&"[('a', ".repeat(1000)).is_empty());
    }
}
