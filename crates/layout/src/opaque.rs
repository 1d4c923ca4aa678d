//! Elements that are no numbers: dates, structured types, floats of 8 bits, plain bytes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

/// An element that moves as it is and becomes nothing else. Two are the same type when their codes are.
///
/// The code is NumPy's, without a byte order: `M8[ns]` and `m8[10s]` are dates and times, `V12` plain bytes,
/// `V12[('a', '<i4'), ('b', '<f8')]` is a structured type with its fields, and floats of 8 bits have the names of the
/// package ml_dtypes, such as `float8_e5m2`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Opaque {
    bytes: u32,
    /// Whether all bytes are one number, of which a change of byte order reverses the bytes.
    ordered: bool,
    /// Empty for plain bytes.
    code: &'static str,
}

/// Names of floats of 8 bits, in the package ml_dtypes and in Zarr.
const FLOATS: [&str; 8] = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
];

/// Units of dates and times in NumPy.
const UNITS: [&str; 13] = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];

impl Opaque {
    /// Plain bytes.
    pub const fn plain(bytes: u32) -> Opaque {
        Opaque { bytes, ordered: false, code: "" }
    }

    /// A date or a time of which nothing else is known: 8 bytes that have an order.
    pub const fn ordered() -> Opaque {
        Opaque { bytes: 8, ordered: true, code: "" }
    }

    /// The type with this code, which has no byte order in front; none where there is no such code.
    pub fn from_code(code: &str) -> Option<Opaque> {
        if FLOATS.contains(&code) {
            return Some(Opaque { bytes: 1, ordered: false, code: kept(code) });
        }
        if let Some(unit) = code.strip_prefix("M8").or(code.strip_prefix("m8")) {
            return is_unit(unit).then(|| Opaque { bytes: 8, ordered: true, code: kept(code) });
        }
        let size = code.strip_prefix('V')?;
        let (size, fields) = size.split_at(size.find('[').unwrap_or(size.len()));
        let bytes = size.parse().ok().filter(|&bytes| bytes > 0 && size.bytes().all(|digit| digit.is_ascii_digit()))?;
        let code = if fields.is_empty() { "" } else { kept(code) };
        Some(Opaque { bytes, ordered: false, code })
    }

    /// The code of so many bytes that have these fields, as NumPy describes them: `[('a', '<i4'), ('b', '<f8')]`.
    pub fn with_fields(bytes: u32, fields: &str) -> Option<Opaque> {
        Opaque::from_code(&format!("V{bytes}{fields}")).filter(|found| found.fields().is_some())
    }

    /// Size of an element \[B\].
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// Whether its bytes have an order, little or big.
    pub const fn is_ordered(self) -> bool {
        self.ordered
    }

    /// Its code without a byte order.
    pub fn code(self) -> String {
        if self.code.is_empty() { format!("V{}", self.bytes) } else { self.code.to_owned() }
    }

    /// The fields of a structured type, as NumPy describes them.
    pub fn fields(self) -> Option<&'static str> {
        self.code.strip_prefix('V').and_then(|code| code.find('[').map(|at| &code[at..]))
    }

    /// Of a date (`M8`) or a time (`m8`), which of both it is and its unit, such as `ns`, `10s` or nothing.
    pub fn time(self) -> Option<(&'static str, &'static str)> {
        let (kind, unit) = self.code.split_at_checked(2).filter(|_| self.ordered)?;
        Some((kind, unit.trim_matches(['[', ']'])))
    }

    /// The name of a float of 8 bits.
    pub fn float(self) -> Option<&'static str> {
        Some(self.code).filter(|code| FLOATS.contains(code))
    }
}

/// Whether this is the unit of a date: nothing, `[ns]`, `[10s]`.
fn is_unit(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else { return text.is_empty() };
    let unit = inside.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let count = &inside[..inside.len() - unit.len()];
    // NumPy writes no count of one, and has one spelling for each.
    let counted =
        count.is_empty() || count.parse::<u32>().is_ok_and(|n| n > 1 && n < 1 << 31) && !count.starts_with('0');
    counted && UNITS.contains(&unit)
}

/// The same text for the life of the process, so that a type of elements can be copied like a number. A program has a
/// handful of them.
fn kept(code: &str) -> &'static str {
    static CODES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut codes = CODES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = codes.get(code) {
        return known;
    }
    let code: &'static str = Box::leak(code.into());
    codes.insert(code);
    code
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((kind, unit)) = self.time() {
            f.write_str(if kind == "M8" { "datetime64" } else { "timedelta64" })?;
            return if unit.is_empty() { Ok(()) } else { write!(f, "[{unit}]") };
        }
        if let Some(fields) = self.fields() {
            return match fields.char_indices().nth(160) {
                Some((end, _)) => write!(f, "structured elements {}...", &fields[..end]),
                None => write!(f, "structured elements {fields}"),
            };
        }
        match self.float() {
            Some(name) => f.write_str(name),
            None => write!(f, "opaque elements of {} B", self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        for (code, bytes, ordered, shown) in [
            ("V12", 12, false, "opaque elements of 12 B"),
            ("M8[ns]", 8, true, "datetime64[ns]"),
            ("m8[10s]", 8, true, "timedelta64[10s]"),
            ("M8", 8, true, "datetime64"),
            ("float8_e4m3fn", 1, false, "float8_e4m3fn"),
            ("V4[('a', '<i4')]", 4, false, "structured elements [('a', '<i4')]"),
        ] {
            let found = Opaque::from_code(code).unwrap();
            assert_eq!((found.code().as_str(), found.bytes(), found.is_ordered()), (code, bytes, ordered));
            assert_eq!((found.to_string().as_str(), Opaque::from_code(code)), (shown, Some(found)));
        }
        assert_eq!(Opaque::from_code("V12"), Some(Opaque::plain(12)));
        assert_ne!(Opaque::from_code("V8[('a', '<f8')]"), Opaque::from_code("V8"));
        assert_eq!(Opaque::with_fields(4, "[('a', '<i4')]").unwrap().fields(), Some("[('a', '<i4')]"));
        assert_eq!(Opaque::with_fields(4, ""), None);
    }

    #[test]
    fn other_texts_are_no_types() {
        for code in
            ["", "V", "V0", "V+3", "V99999999999", "M8[]", "M8[1s]", "M8[00s]", "M8[x]", "M8ns", "float8", "S5", "f8"]
        {
            assert_eq!(Opaque::from_code(code), None, "{code}");
        }
    }
}
