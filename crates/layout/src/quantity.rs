//! Quantities for people: three significant digits, and one unit for all that stand in one table or line.

/// A unit in which several quantities are told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct InUnit {
    name: &'static str,
    one: f64,
}

const SECONDS: [InUnit; 4] = [unit("s", 1.0), unit("ms", 1e-3), unit("us", 1e-6), unit("ns", 1e-9)];
const BYTES: [InUnit; 5] = [
    unit("TiB", (1u64 << 40) as f64),
    unit("GiB", (1 << 30) as f64),
    unit("MiB", (1 << 20) as f64),
    unit("KiB", (1 << 10) as f64),
    unit("B", 1.0),
];

const fn unit(name: &'static str, one: f64) -> InUnit {
    InUnit { name, one }
}

/// The unit of the largest of them: what would be told as 1000 of a unit is 1 of the next.
fn of_largest(values: impl IntoIterator<Item = f64>, units: &[InUnit], least: InUnit) -> InUnit {
    let largest = values.into_iter().filter(|value| value.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()));
    if largest == 0.0 {
        return least;
    }
    units.iter().copied().find(|unit| largest >= 0.9995 * unit.one).unwrap_or(units[units.len() - 1])
}

impl InUnit {
    /// The unit for these times \[s\].
    pub fn of_seconds(values: impl IntoIterator<Item = f64>) -> InUnit {
        of_largest(values, &SECONDS, SECONDS[0])
    }

    /// The unit for these numbers of bytes \[B\].
    pub fn of_bytes(values: impl IntoIterator<Item = f64>) -> InUnit {
        of_largest(values, &BYTES, BYTES[BYTES.len() - 1])
    }

    /// A quantity, in seconds or bytes, in this unit.
    pub fn tell(self, value: f64) -> String {
        // Bytes are never parts of one.
        let text = if self.name == "B" { format!("{value:.0}") } else { number(value / self.one) };
        format!("{text} {}", self.name)
    }
}

/// A time by itself \[s\].
pub fn seconds(value: f64) -> String {
    InUnit::of_seconds([value]).tell(value)
}

/// A number of bytes by itself \[B\].
pub fn bytes(value: f64) -> String {
    InUnit::of_bytes([value]).tell(value)
}

/// A number with three significant digits.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { value.to_string() };
    }
    // As it is after rounding: 9.999 has two digits before the point.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let power = rounded.abs().log10().floor() as i32;
    if !(-5..9).contains(&power) {
        return format!("{rounded:e}");
    }
    if value.fract() == 0.0 && power < 3 {
        return format!("{value:.0}");
    }
    format!("{rounded:.*}", (2 - power).max(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_told() {
        let all = [0.0, 1.0, 1234.0, 12.345, 9.999, 0.001_234_56, 205.9, 999.6, 1e-9];
        let told = ["0", "1", "1230", "12.3", "10.0", "0.00123", "206", "1000", "1e-9"];
        assert_eq!(all.map(number), told);
    }

    #[test]
    fn a_column_has_one_unit() {
        let column = [0.2059, 1.25, 0.0004];
        let unit = InUnit::of_seconds(column);
        assert_eq!(column.map(|value| unit.tell(value)), ["0.206 s", "1.25 s", "0.000400 s"]);
        assert_eq!([0.2059, 0.3219, 72.5, 0.0].map(seconds), ["206 ms", "322 ms", "72.5 s", "0 s"]);
        let sizes = [0.0, 1000.0, 1536.0, 512.0 * 1048576.0, 1048575.9];
        assert_eq!(sizes.map(bytes), ["0 B", "1000 B", "1.50 KiB", "512 MiB", "1.00 MiB"]);
    }
}
