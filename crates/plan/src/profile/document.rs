//! A profile's text as a flat list of dotted keys, and the reading of one after the other.

mod absent;

use super::error::{Fault, ProfileError};
use super::quantity::{self, Measure, describe};
use super::similar::closest;
use super::source::{Constant, source};
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Largest size \[B\] and count that a profile may hold: every whole number up to it is exact in floating point.
const LARGEST: f64 = (1_u64 << 53) as f64;

/// Edits between what is written and what may have been meant.
const EDITS: usize = 3;

/// The keys of a file, of which its reader asks one after the other.
pub(super) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    /// By dotted key, sections too.
    entries: BTreeMap<String, &'a Spanned<DeValue<'a>>>,
    /// Dotted keys that were asked for.
    asked: BTreeSet<&'static str>,
    /// Dotted keys and factors.
    scale: &'a [(String, f64)],
    constants: Vec<Constant>,
}

/// Whether a table is a number with its source, and not a section.
fn is_number(table: &DeTable<'_>) -> bool {
    table.contains_key("is") || table.contains_key("from")
}

impl<'a> Document<'a> {
    pub(super) fn new(file: &'a str, text: &'a str, root: &'a DeTable<'a>, scale: &'a [(String, f64)]) -> Document<'a> {
        let entries = BTreeMap::new();
        let mut document = Document { file, text, entries, asked: BTreeSet::new(), scale, constants: Vec::new() };
        document.enter("", root);
        document
    }

    fn enter(&mut self, path: &str, table: &'a DeTable<'a>) {
        for (key, value) in table {
            let key = if path.is_empty() { key.get_ref().to_string() } else { format!("{path}.{}", key.get_ref()) };
            self.entries.insert(key.clone(), value);
            if let DeValue::Table(inner) = value.get_ref()
                && !is_number(inner)
            {
                self.enter(&key, inner);
            }
        }
    }

    /// The error of a fault at a key.
    pub(super) fn error(&self, key: &str, fault: Fault) -> ProfileError {
        let line = self.entries.get(key).map(|value| line(self.text, value.span().start));
        fault.at(self.file, key, line)
    }

    /// Whether a section is there.
    pub(super) fn has(&self, section: &str) -> bool {
        self.entries.contains_key(section)
    }

    /// A name or a line of text, which is not empty.
    pub(super) fn words(&mut self, key: &'static str) -> Result<String, ProfileError> {
        match self.value(key, "a string", || "\"...\"".to_owned())? {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text.to_string()),
            other => Err(self.unexpected(key, "a string that is not empty", other, "")),
        }
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, key: &'static str) -> Result<bool, ProfileError> {
        match self.value(key, "true or false", || "true".to_owned())? {
            DeValue::Boolean(it) => Ok(*it),
            other => Err(self.unexpected(key, "true or false", other, "no quotes")),
        }
    }

    /// One of several words.
    pub(super) fn choice(&mut self, key: &'static str, words: &[&'static str]) -> Result<&'static str, ProfileError> {
        let expected = format!("one of {}", words.join(", "));
        let value = self.value(key, &expected, || format!("{:?}", words.first().unwrap_or(&"")))?;
        let DeValue::String(text) = value else { return Err(self.unexpected(key, &expected, value, "")) };
        words.iter().copied().find(|word| word == text).ok_or_else(|| {
            let hint = closest(text, words.iter().copied(), EDITS).map(|word| format!("did you mean {word:?}?"));
            self.unexpected(key, &expected, value, &hint.unwrap_or_default())
        })
    }

    /// A time, which may be zero \[ns\].
    pub(super) fn time(&mut self, key: &'static str) -> Result<f64, ProfileError> {
        self.number(key, Measure::Time, false)
    }

    /// A time per byte, which may be zero \[ns/B\].
    pub(super) fn byte_time(&mut self, key: &'static str) -> Result<f64, ProfileError> {
        self.number(key, Measure::ByteTime, false)
    }

    /// A share of something, which may be zero or more than all.
    pub(super) fn fraction(&mut self, key: &'static str) -> Result<f64, ProfileError> {
        self.number(key, Measure::Fraction, false)
    }

    /// A rate above zero \[B/s\].
    pub(super) fn rate(&mut self, key: &'static str) -> Result<f64, ProfileError> {
        self.number(key, Measure::Rate, true)
    }

    /// A size, which may be zero \[B\].
    pub(super) fn size(&mut self, key: &'static str) -> Result<u64, ProfileError> {
        let bytes = self.number(key, Measure::Size, false)?;
        self.whole(key, bytes, 0, LARGEST, " B")
    }

    /// A size above zero \[B\].
    pub(super) fn size_above_zero(&mut self, key: &'static str) -> Result<u64, ProfileError> {
        let bytes = self.number(key, Measure::Size, true)?;
        self.whole(key, bytes, 1, LARGEST, " B")
    }

    /// A count above zero.
    pub(super) fn count(&mut self, key: &'static str) -> Result<u32, ProfileError> {
        let number = self.number(key, Measure::Count, true)?;
        let whole = self.whole(key, number, 1, f64::from(u32::MAX), "")?;
        Ok(u32::try_from(whole).unwrap_or(u32::MAX))
    }

    /// The value of a key that was asked for.
    fn value(
        &mut self,
        key: &'static str,
        expected: &str,
        example: impl FnOnce() -> String,
    ) -> Result<&'a DeValue<'a>, ProfileError> {
        self.asked.insert(key);
        match self.entries.get(key) {
            Some(value) => Ok(value.get_ref()),
            None => Err(self.missing(key, expected, &example())),
        }
    }

    fn number(&mut self, key: &'static str, measure: Measure, above_zero: bool) -> Result<f64, ProfileError> {
        let value = self.value(key, measure.expected(), || numeral(measure))?;
        let (is, from) = parts(measure, value).map_err(|fault| self.error(key, fault))?;
        let number = quantity::read(measure, is).map_err(|fault| self.error(key, fault))?;
        let (origin, source) = source(from).map_err(|fault| self.error(key, fault))?;
        self.constants.push(Constant { key: key.to_owned(), text: written(is), origin, source });
        let factor: f64 = self.scale.iter().filter(|it| it.0 == key).map(|it| it.1).product();
        let fault = |found: String| {
            let text = format!("expected {}, found {found}", measure.expected());
            Err(self.error(key, Fault::new(text, measure.hint())))
        };
        match number * factor {
            _ if above_zero && number == 0.0 => fault("zero, which is impossible here".to_owned()),
            scaled if factor < 0.0 || !scaled.is_finite() || above_zero && scaled == 0.0 => {
                fault(format!("{} times {factor}", describe(is)))
            }
            scaled => Ok(scaled),
        }
    }

    /// A number rounded to a whole one.
    fn whole(&self, key: &str, number: f64, least: u64, most: f64, unit: &str) -> Result<u64, ProfileError> {
        if number > most {
            let text = format!("expected at most {most}{unit}, found {number}{unit}");
            return Err(self.error(key, Fault::new(text, "")));
        }
        Ok((number.round() as u64).max(least))
    }
}

/// The value and the source of a number.
fn parts<'a>(measure: Measure, value: &'a DeValue<'a>) -> Result<(&'a DeValue<'a>, &'a str), Fault> {
    let fault = |text| Fault::new(text, format!("a number is written as {}", numeral(measure)));
    let table = match value {
        DeValue::Table(table) if is_number(table) => table,
        DeValue::Table(_) => return Err(fault(format!("expected {}, found a section", measure.expected()))),
        bare => return Err(fault(format!("expected a number with its source, found {} alone", describe(bare)))),
    };
    if let Some(key) = table.keys().find(|key| !["is", "from"].contains(&key.get_ref().as_ref())) {
        return Err(fault(format!("expected `is` and `from`, found `{}` too", key.get_ref())));
    }
    match (table.get("is"), table.get("from").map(|from| from.get_ref())) {
        (None, _) => Err(fault("`is` is missing".to_owned())),
        (_, None) => Err(fault("`from` is missing".to_owned())),
        (Some(is), Some(DeValue::String(from))) => Ok((is.get_ref(), from)),
        (_, Some(from)) => Err(fault(format!("expected a string in `from`, found {}", describe(from)))),
    }
}

/// How a number is written.
fn numeral(measure: Measure) -> String {
    format!("{{ is = {}, from = \"paper: ...\" }}", measure.example())
}

/// A number as it is in the file, without quotes.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        _ => String::new(),
    }
}

/// The line of a byte, from 1.
pub(super) fn line(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|it| *it == b'\n').count()
}
