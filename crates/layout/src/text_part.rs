//! Texts of a fixed length inside of elements, and where their values end.

use std::sync::Arc;

/// A text in an element, or several at equal distances in nested loops.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TextPart {
    /// Its first byte in the element \[B\].
    pub at: u64,
    /// Its length \[B\].
    pub bytes: u64,
    /// What follows its value.
    pub end: TextFill,
    /// How often it is repeated, and how far apart these are \[B\], from the slowest to the fastest.
    pub loops: Vec<(u64, u64)>,
}

/// All texts of an element behind whose values may lie what is not part of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TextParts(pub Arc<[TextPart]>);

impl TextParts {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As bytes, which [`TextParts::from_bytes`] reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        let numbers = self.0.iter().flat_map(|TextPart { at, bytes, end, loops }| {
            let head = [*at, *bytes, u64::from(*end == TextFill::Spaces), loops.len() as u64];
            head.into_iter().chain(loops.iter().flat_map(|(count, step)| [*count, *step]))
        });
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    /// What these bytes say, if they make sense.
    pub fn from_bytes(bytes: &[u8]) -> Option<TextParts> {
        let (each, []) = bytes.as_chunks::<8>() else { return None };
        let mut numbers = each.iter().map(|number| u64::from_le_bytes(*number));
        let mut parts = Vec::new();
        while let Some(at) = numbers.next() {
            let (bytes, end) = (numbers.next()?, numbers.next()?);
            let end = if end == 1 { TextFill::Spaces } else { TextFill::Zero };
            let loops = (0..numbers.next()?).map(|_| numbers.next().zip(numbers.next())).collect::<Option<_>>()?;
            parts.push(TextPart { at, bytes, end, loops });
        }
        Some(TextParts(parts.into()))
    }

    /// Makes zeros of what is behind the values in an element; gives whether that changed anything.
    pub fn tidy(&self, element: &mut [u8]) -> bool {
        self.0.iter().fold(false, |changed, part| part.tidy(element) | changed)
    }
}

/// What follows the value of a text, up to its length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TextFill {
    /// A zero, and behind that anything.
    Zero,
    /// Spaces.
    Spaces,
}

impl TextPart {
    /// Makes zeros of what is behind the value, in an element; gives whether that changed anything.
    pub fn tidy(&self, element: &mut [u8]) -> bool {
        let count: u64 = self.loops.iter().map(|(count, _)| count).product();
        let mut changed = false;
        for number in 0..count {
            let (mut at, mut rest) = (self.at, number);
            for (count, step) in self.loops.iter().rev() {
                at += rest % count * step;
                rest /= count;
            }
            let Some(text) = element.get_mut(at as usize..(at + self.bytes) as usize) else { continue };
            let end = match self.end {
                TextFill::Zero => text.iter().position(|byte| *byte == 0),
                TextFill::Spaces => text.iter().rposition(|byte| *byte != b' ').map_or(Some(0), |last| Some(last + 1)),
            };
            let behind = &mut text[end.unwrap_or(self.bytes as usize)..];
            if behind.iter().any(|byte| *byte != 0) {
                behind.fill(0);
                changed = true;
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_the_value_becomes_zero() {
        let part = |at, bytes, end, loops: &[(u64, u64)]| TextPart { at, bytes, end, loops: loops.to_vec() };
        let tidied = |text: &[u8], part: &TextPart| {
            let mut element = text.to_vec();
            (part.tidy(&mut element), element)
        };
        let zero = part(1, 4, TextFill::Zero, &[]);
        assert_eq!(tidied(b"xab\0cx", &zero), (true, b"xab\0\0x".to_vec()));
        assert_eq!(tidied(b"xabcdx", &zero), (false, b"xabcdx".to_vec()));
        let spaces = part(0, 4, TextFill::Spaces, &[]);
        assert_eq!(tidied(b"a b ", &spaces), (true, b"a b\0".to_vec()));
        assert_eq!(tidied(b"    ", &spaces), (true, vec![0; 4]));
        let several = part(0, 2, TextFill::Spaces, &[(2, 6), (2, 3)]);
        assert_eq!(tidied(b"a .b .c .d .", &several), (true, b"a\0.b\0.c\0.d\0.".to_vec()));
        assert!(!part(4, 4, TextFill::Zero, &[]).tidy(&mut [0; 6]), "what lies outside stays");
        let all = TextParts([zero, several].into());
        assert_eq!(TextParts::from_bytes(&all.to_bytes()), Some(all.clone()));
        assert_eq!(TextParts::from_bytes(&all.to_bytes()[8..]), None);
        assert_eq!(TextParts::from_bytes(&[]), Some(TextParts::default()));
    }
}
