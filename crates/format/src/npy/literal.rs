//! The Python dictionary in the header of a `.npy` file, and parts of it: parsed by hand, as nothing in a file may be
//! evaluated.

/// A value that such a dictionary may hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Literal {
    Text(String),
    Bool(bool),
    Number(u64),
    /// A tuple or a list.
    Sequence(Vec<Literal>),
}

/// How deep sequences may be nested. Descriptions of structured types need two for each level of fields.
const DEPTH_MAX: usize = 16;

/// Parses `{'key': value, ...}` with nothing but white space behind it. The error says what is wrong at which byte.
pub(super) fn dictionary(text: &str) -> Result<Vec<(String, Literal)>, String> {
    let mut parser = Parser { text, at: 0 };
    let mut items = Vec::new();
    parser.expect("{")?;
    while !parser.accept("}") {
        let key = parser.string()?;
        parser.expect(":")?;
        items.push((key, parser.value(0)?));
        if !parser.accept(",") {
            parser.expect("}")?;
            break;
        }
    }
    parser.skip_space();
    match parser.rest() {
        "" => Ok(items),
        _ => Err(parser.wrong("nothing behind the dictionary")),
    }
}

/// Parses a value that the text holds alone.
pub(crate) fn literal(text: &str) -> Result<Literal, String> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    parser.skip_space();
    if parser.rest().is_empty() { Ok(value) } else { Err(parser.wrong("nothing behind the value")) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn wrong(&self, expected: &str) -> String {
        format!("expected {expected} at byte {}", self.at)
    }

    /// Skips space, then `token` if it is next.
    fn accept(&mut self, token: &str) -> bool {
        self.skip_space();
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(self.wrong(&format!("`{token}`"))) }
    }

    /// A string in single or double quotes. Of escapes, only those of quotes and of the backslash occur in what NumPy
    /// writes for the types read here.
    fn string(&mut self) -> Result<String, String> {
        self.skip_space();
        let quote = match self.rest().as_bytes().first() {
            Some(b'\'') => '\'',
            Some(b'"') => '"',
            _ => return Err(self.wrong("a string")),
        };
        let (mut text, mut escaped) = (String::new(), false);
        for (at, character) in self.rest()[1..].char_indices() {
            match character {
                '\'' | '"' | '\\' if escaped => text.push(character),
                '\n' => break,
                _ if escaped => break,
                '\\' => {}
                end if end == quote => {
                    self.at += at + 2;
                    return Ok(text);
                }
                other => text.push(other),
            }
            escaped = character == '\\' && !escaped;
        }
        Err(self.wrong("a string without escapes of other characters that ends on its line"))
    }

    fn value(&mut self, depth: usize) -> Result<Literal, String> {
        self.skip_space();
        match self.rest().as_bytes().first() {
            Some(b'\'' | b'"') => self.string().map(Literal::Text),
            Some(b'(') => self.sequence("(", ")", depth),
            Some(b'[') => self.sequence("[", "]", depth),
            Some(b'0'..=b'9') => self.number(),
            _ if self.accept("True") => Ok(Literal::Bool(true)),
            _ if self.accept("False") => Ok(Literal::Bool(false)),
            _ => Err(self.wrong("a string, a number, a tuple, a list, True or False")),
        }
    }

    fn number(&mut self) -> Result<Literal, String> {
        let digits = self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest().len());
        let number = self.rest()[..digits].parse().map_err(|_| self.wrong("a number below 2^64"))?;
        self.at += digits;
        // Python 2 wrote long integers with a suffix.
        self.at += usize::from(self.rest().starts_with('L'));
        Ok(Literal::Number(number))
    }

    fn sequence(&mut self, open: &str, close: &str, depth: usize) -> Result<Literal, String> {
        if depth == DEPTH_MAX {
            return Err(self.wrong(&format!("at most {DEPTH_MAX} nested sequences")));
        }
        self.expect(open)?;
        let mut items = Vec::new();
        let mut ended_by_comma = true;
        while !self.accept(close) {
            if !ended_by_comma {
                return Err(self.wrong(&format!("`,` or `{close}`")));
            }
            items.push(self.value(depth + 1)?);
            ended_by_comma = self.accept(",");
        }
        // Parentheses without a comma make no tuple in Python.
        match (open, ended_by_comma, items.len()) {
            ("(", false, 1) => Ok(items.remove(0)),
            _ => Ok(Literal::Sequence(items)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_of_numpy_parse() {
        let items = dictionary("{'descr': '<f8', \"fortran_order\": False, 'shape': (2, 3L), }   \n").unwrap();
        let shape = Literal::Sequence(vec![Literal::Number(2), Literal::Number(3)]);
        assert_eq!(items[0], ("descr".to_owned(), Literal::Text("<f8".to_owned())));
        assert_eq!(items[1], ("fortran_order".to_owned(), Literal::Bool(false)));
        assert_eq!(items[2], ("shape".to_owned(), shape));
        assert_eq!(dictionary(" { } ").unwrap(), []);
        let nested = dictionary("{'descr': [('a', '<i4', (2,)), ('b', (1))], 'x': ()}").unwrap();
        assert!(matches!(&nested[0].1, Literal::Sequence(fields) if fields.len() == 2));
        assert_eq!(nested[1].1, Literal::Sequence(vec![]));
        assert_eq!(dictionary(r"{'a': 'b\'\\c'}").unwrap()[0].1, Literal::Text(r"b'\c".into()));
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for text in [
            "",
            "{",
            "{'a'}",
            "{'a': }",
            "{'a': 1 'b': 2}",
            "{'a': 1} x",
            "{'a': (1 2)}",
            "{'a': (1,}",
            "{'a': -1}",
            "{'a': 18446744073709551616}",
            "{'a': 'b\\x41'}",
            "{'a': 'b\\'",
            "{'a': __import__('os')}",
            "{'é",
        ] {
            let error = dictionary(text).unwrap_err();
            assert!(error.contains("at byte"), "{text}: {error}");
        }
        assert!(dictionary(&format!("{{'a': {}", "(".repeat(100_000))).is_err());
    }
}
