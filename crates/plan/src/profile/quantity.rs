//! Values with units.
//!
//! A time, a size, a rate or a time per byte is a string such as `"45 us"`; a count is an integer and a fraction a number,
//! both without a unit. A time per byte may also be given by the rate that it amounts to.

use super::error::Fault;
use toml::de::DeValue;

/// What a number measures; its base unit is what [`read`] gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    /// \[ns\]
    Time,
    /// \[B\]
    Size,
    /// \[B/s\]
    Rate,
    /// \[ns/B\]
    ByteTime,
    /// How many.
    Count,
    /// A share of something.
    Fraction,
}

type Unit = (&'static str, f64);

const KIB: f64 = 1024.0;
/// Bytes of a bit.
const BIT: f64 = 1.0 / 8.0;
/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

const TIMES: &[Unit] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", SECOND)];
const SIZES: &[Unit] = &[
    ("B", 1.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", KIB),
    ("MiB", KIB * KIB),
    ("GiB", KIB * KIB * KIB),
    ("TiB", KIB * KIB * KIB * KIB),
];
const RATES: &[Unit] = &[
    ("B/s", 1.0),
    ("KB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("KiB/s", KIB),
    ("MiB/s", KIB * KIB),
    ("GiB/s", KIB * KIB * KIB),
    ("Mbit/s", 1e6 * BIT),
    ("Gbit/s", 1e9 * BIT),
];
const BYTE_TIMES: &[Unit] = &[("ns/B", 1.0), ("us/B", 1e3)];

impl Measure {
    /// What was expected, with an example.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Measure::Time => "a time such as \"45 us\"",
            Measure::Size => "a size such as \"64 KiB\"",
            Measure::Rate => "a rate such as \"35 MB/s\"",
            Measure::ByteTime => "a time per byte such as \"5 ns/B\", or a rate",
            Measure::Count => "a whole number such as 4",
            Measure::Fraction => "a number without unit such as 0.5",
        }
    }

    /// An example of it, as TOML.
    pub(super) fn example(self) -> &'static str {
        match self {
            Measure::Time => "\"45 us\"",
            Measure::Size => "\"64 KiB\"",
            Measure::Rate => "\"35 MB/s\"",
            Measure::ByteTime => "\"5 ns/B\"",
            Measure::Count => "4",
            Measure::Fraction => "0.5",
        }
    }

    /// What it is, in a word or two.
    fn noun(self) -> &'static str {
        match self {
            Measure::Time => "time",
            Measure::Size => "size",
            Measure::Rate => "rate",
            Measure::ByteTime => "time per byte",
            Measure::Count => "count",
            Measure::Fraction => "fraction",
        }
    }

    fn units(self) -> &'static [Unit] {
        match self {
            Measure::Time => TIMES,
            Measure::Size => SIZES,
            Measure::Rate => RATES,
            Measure::ByteTime => BYTE_TIMES,
            Measure::Count | Measure::Fraction => &[],
        }
    }

    fn unit(self, name: &str) -> Option<f64> {
        self.units().iter().find(|unit| unit.0 == name).map(|unit| unit.1)
    }

    /// A line for people: which units there are.
    pub(super) fn hint(self) -> String {
        let names = |units: &[Unit]| units.iter().map(|unit| unit.0).collect::<Vec<_>>().join(" ");
        match self {
            Measure::Count | Measure::Fraction => format!("a {} has no unit and no quotes", self.noun()),
            Measure::ByteTime => format!("units are {}, or of a rate {}", names(BYTE_TIMES), names(RATES)),
            _ => format!("units of a {} are {}", self.noun(), names(self.units())),
        }
    }
}

/// The value in base units: finite, not negative.
pub(super) fn read(measure: Measure, value: &DeValue<'_>) -> Result<f64, Fault> {
    let fault = |what: &str| {
        Fault::new(format!("expected {}, found {}{what}", measure.expected(), describe(value)), measure.hint())
    };
    let number = match (measure, value) {
        (Measure::Count, DeValue::Integer(_)) => plain(value),
        (Measure::Fraction, DeValue::Integer(_) | DeValue::Float(_)) => plain(value),
        (Measure::Count | Measure::Fraction, _) => return Err(fault("")),
        (_, DeValue::Integer(_) | DeValue::Float(_)) => return Err(fault(", which has no unit")),
        (_, DeValue::String(text)) => with_unit(measure, text).map_err(|what| fault(&what))?,
        _ => return Err(fault("")),
    };
    match number {
        number if number.is_nan() => Err(fault(", which is no number")),
        number if number.is_infinite() => Err(fault(", which is not finite")),
        number if number < 0.0 => Err(fault(", which is negative")),
        number => Ok(number),
    }
}

/// A number without unit; not a number if it cannot be read.
fn plain(value: &DeValue<'_>) -> f64 {
    match value {
        DeValue::Integer(it) => i128::from_str_radix(it.as_str(), it.radix()).map_or(f64::NAN, |it| it as f64),
        DeValue::Float(it) => it.as_str().parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}

/// A number with its unit, or what is wrong with it.
fn with_unit(measure: Measure, text: &str) -> Result<f64, String> {
    let text = text.trim();
    let end = text.find(char::is_whitespace).or_else(|| text.find(|it: char| it.is_alphabetic()));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let (number, unit): (Result<f64, _>, _) = (number.parse(), unit.trim());
    let Ok(number) = number else { return Err(", which does not begin with a number".to_owned()) };
    if unit.is_empty() {
        return Err(", which has no unit".to_owned());
    }
    match (measure.unit(unit), Measure::Rate.unit(unit)) {
        (Some(factor), _) => Ok(number * factor),
        (None, Some(factor)) if measure == Measure::ByteTime => Ok(SECOND / (number * factor)),
        _ => Err(
            match [Measure::Time, Measure::Size, Measure::Rate, Measure::ByteTime]
                .into_iter()
                .find(|it| it.unit(unit).is_some())
            {
                Some(other) => format!(", which is a {}", other.noun()),
                None => format!(", whose unit `{unit}` is unknown"),
            },
        ),
    }
}

/// A value as it is told in an error.
pub(super) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(it) => format!("{it:?}"),
        DeValue::Integer(it) => format!("the integer {it}"),
        DeValue::Float(it) => format!("the number {it}"),
        DeValue::Boolean(it) => format!("the boolean {it}"),
        DeValue::Datetime(it) => format!("the date {it}"),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(measure: Measure, toml: &str) -> Result<f64, String> {
        let value = DeValue::parse(toml).map_err(|error| error.to_string())?;
        read(measure, value.get_ref()).map_err(|fault| fault.at("f", "k", None).to_string())
    }

    #[test]
    fn every_unit_has_its_value() {
        for (measure, text, value) in [
            (Measure::Time, "45 us", 45e3),
            (Measure::Time, "1.5ms", 1.5e6),
            (Measure::Time, "0 s", 0.0),
            (Measure::Size, "8 KiB", 8192.0),
            (Measure::Size, "2 MB", 2e6),
            (Measure::Size, "1 TiB", 1_099_511_627_776.0),
            (Measure::Rate, "200e6 B/s", 2e8),
            (Measure::Rate, "10 MiB/s", 10_485_760.0),
            (Measure::Rate, "100 Mbit/s", 12.5e6),
            (Measure::Rate, "800 Gbit/s", 1e11),
            (Measure::ByteTime, "5 ns/B", 5.0),
            (Measure::ByteTime, "1 us/B", 1e3),
            (Measure::ByteTime, "25 MB/s", 40.0),
        ] {
            assert_eq!(of(measure, &format!("{text:?}")), Ok(value), "{text}");
        }
        assert_eq!(of(Measure::Count, "0x10"), Ok(16.0));
        assert_eq!(of(Measure::Fraction, "0.25"), Ok(0.25));
        assert_eq!(of(Measure::Fraction, "1"), Ok(1.0));
    }

    #[test]
    fn what_is_not_a_quantity_says_so() {
        for (measure, toml, said) in [
            (Measure::Time, "45", "a time such as \"45 us\", found the integer 45, which has no unit"),
            (Measure::Time, "\"45\"", "found \"45\", which has no unit"),
            (Measure::Time, "\"45 MB\"", "found \"45 MB\", which is a size"),
            (Measure::Size, "\"45 us\"", "expected a size such as \"64 KiB\", found \"45 us\", which is a time"),
            (Measure::Rate, "\"5 ns/B\"", "which is a time per byte"),
            (Measure::Rate, "\"5 mb/s\"", "whose unit `mb/s` is unknown"),
            (Measure::Time, "\"five us\"", "does not begin with a number"),
            (Measure::Time, "\"\"", "does not begin with a number"),
            (Measure::Time, "\"-1 us\"", "which is negative"),
            (Measure::Time, "\"nan us\"", "which is no number"),
            (Measure::Time, "\"inf us\"", "which is not finite"),
            (Measure::Time, "\"1e308 s\"", "which is not finite"),
            (Measure::ByteTime, "\"0 MB/s\"", "which is not finite"),
            (Measure::Time, "true", "found the boolean true"),
            (Measure::Count, "\"4\"", "a whole number such as 4, found \"4\""),
            (Measure::Count, "4.0", "found the number 4.0"),
            (Measure::Count, "-4", "which is negative"),
            (Measure::Fraction, "nan", "which is no number"),
            (Measure::Fraction, "-inf", "which is not finite"),
        ] {
            let error = of(measure, toml).expect_err(toml);
            assert!(error.contains(said), "{error}");
            assert!(error.contains("\n  hint: "), "{error}");
        }
        assert!(of(Measure::Time, "\"4 B\"").is_err_and(|it| it.ends_with("hint: units of a time are ns us ms s")));
    }
}
