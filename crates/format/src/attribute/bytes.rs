//! Attributes as bytes that one rank sends to others: no file has them so.

use super::value::{AttributeValue, Attributes, Elements, KeptValue, Texts, ValueType};
use crate::words::from_text;

impl Attributes {
    /// All of them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        number(&mut out, self.len());
        for (name, value) in self.iter() {
            part(&mut out, name.as_bytes());
            match value {
                AttributeValue::Plain(value) => {
                    out.push(0);
                    part(&mut out, value.to_string().as_bytes());
                }
                AttributeValue::Elements(Elements { of, shape, bytes }) => {
                    out.push(1);
                    dimensions(&mut out, shape.as_deref());
                    part(&mut out, of.numpy().as_bytes());
                    let members = if let ValueType::Enumeration(_, members) = of { members.as_slice() } else { &[] };
                    number(&mut out, members.len());
                    for (name, value) in members {
                        part(&mut out, name.as_bytes());
                        part(&mut out, value);
                    }
                    part(&mut out, bytes);
                }
                AttributeValue::Texts(Texts { shape, texts }) => {
                    out.push(2);
                    dimensions(&mut out, shape.as_deref());
                    number(&mut out, texts.len());
                    texts.iter().for_each(|text| part(&mut out, text));
                }
                AttributeValue::Kept(KeptValue { what, shape }) => {
                    out.push(3);
                    dimensions(&mut out, shape.as_deref());
                    part(&mut out, what.as_bytes());
                }
            }
        }
        out
    }

    /// What [`Attributes::to_bytes`] made; `None` where it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Attributes> {
        let mut r = EncodedParts(bytes);
        let count = r.number()?;
        let all = (0..count).map(|_| Some((r.text()?, r.value()?))).collect::<Option<Attributes>>()?;
        r.0.is_empty().then_some(all)
    }
}

fn number(out: &mut Vec<u8>, number: usize) {
    out.extend((number as u64).to_le_bytes());
}

fn part(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn dimensions(out: &mut Vec<u8>, shape: Option<&[u64]>) {
    number(out, shape.map_or(usize::MAX, <[u64]>::len));
    shape.into_iter().flatten().for_each(|extent| out.extend(extent.to_le_bytes()));
}

/// What is left of the bytes.
struct EncodedParts<'a>(&'a [u8]);

impl<'a> EncodedParts<'a> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn part(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (part, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(part)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.part()?.to_vec()).ok()
    }

    /// A shape, or that there is none.
    fn dimensions(&mut self) -> Option<Option<Vec<u64>>> {
        match self.number()? {
            u64::MAX => Some(None),
            count => (0..count).map(|_| self.number()).collect::<Option<_>>().map(Some),
        }
    }

    fn value(&mut self) -> Option<AttributeValue> {
        let (kind, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(match kind {
            0 => AttributeValue::Plain(from_text(std::str::from_utf8(self.part()?).ok()?)?),
            1 => {
                let (shape, code) = (self.dimensions()?, self.text()?);
                let count = self.number()?;
                let members = (0..count).map(|_| Some((self.text()?, self.part()?.to_vec())));
                let of = ValueType::from_numpy(&code, members.collect::<Option<_>>()?)?;
                AttributeValue::Elements(Elements::new(of, shape, self.part()?.to_vec())?)
            }
            2 => {
                let (shape, count) = (self.dimensions()?, self.number()?);
                let texts = (0..count).map(|_| Some(self.part()?.to_vec())).collect::<Option<_>>()?;
                AttributeValue::Texts(Texts { shape, texts })
            }
            3 => AttributeValue::Kept(KeptValue { shape: self.dimensions()?, what: self.text()? }),
            _ => return None,
        })
    }
}
