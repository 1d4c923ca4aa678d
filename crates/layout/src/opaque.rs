//! Elements that are no numbers: dates, texts of a fixed length, structured types, floats of 8 bits, plain bytes.

use crate::policy::SLOT_END;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

/// An element that moves as it is and becomes nothing else. Two are the same type when their codes are.
///
/// The code is NumPy's, without a byte order: `M8[ns]` and `m8[10s]` are dates and times, `S12` is text of 12 bytes and `U12`
/// of 12 characters of 4 bytes each, which zeros fill up, `O16` is a text of any length, of which 16 bytes say where it lies,
/// `T12` is one on its way to a file, in a slot of 12 bytes ([`slot_of`]), `V12` are plain bytes, `V12[('a', '<i4'), ('b', '<f8')]` is a
/// structured type with its fields, and floats of 8 bits have the names of the package ml_dtypes, such as `float8_e5m2`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Opaque {
    bytes: u32,
    /// Size of the units whose bytes a change of byte order reverses \[B\]; 1 where there is no order.
    unit: u8,
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
        Opaque { bytes, unit: 1, code: "" }
    }

    /// Something in units of 4 or 8 bytes that have an order, of which nothing else is known.
    pub const fn ordered(bytes: u32, unit: u8) -> Opaque {
        Opaque { bytes, unit, code: "" }
    }

    /// The type with this code, which has no byte order in front; none where there is no such code.
    pub fn from_code(code: &str) -> Option<Opaque> {
        if FLOATS.contains(&code) {
            return Some(Opaque { bytes: 1, unit: 1, code: kept(code) });
        }
        if let Some(unit) = code.strip_prefix("M8").or(code.strip_prefix("m8")) {
            return is_unit(unit).then(|| Opaque { bytes: 8, unit: 8, code: kept(code) });
        }
        let count = |digits: &str| {
            let plain = digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.starts_with('0');
            digits.parse::<u32>().ok().filter(|_| plain)
        };
        if let Some(bytes) = code.strip_prefix('S') {
            return count(bytes).map(|bytes| Opaque { bytes, unit: 1, code: kept(code) });
        }
        if let Some(bytes) = code.strip_prefix('O') {
            return count(bytes).map(|bytes| Opaque { bytes, unit: 1, code: kept(code) });
        }
        if let Some(bytes) = code.strip_prefix('T') {
            return count(bytes).map(|bytes| Opaque { bytes, unit: 1, code: kept(code) });
        }
        if let Some(characters) = code.strip_prefix('U') {
            let bytes = count(characters)?.checked_mul(4)?;
            return Some(Opaque { bytes, unit: 4, code: kept(code) });
        }
        let size = code.strip_prefix('V')?;
        let (size, fields) = size.split_at(size.find('[').unwrap_or(size.len()));
        let bytes = size.parse().ok().filter(|&bytes| bytes > 0 && size.bytes().all(|digit| digit.is_ascii_digit()))?;
        let code = if fields.is_empty() { "" } else { kept(code) };
        Some(Opaque { bytes, unit: 1, code })
    }

    /// The code of so many bytes that have these fields, as NumPy describes them: `[('a', '<i4'), ('b', '<f8')]`.
    pub fn with_fields(bytes: u32, fields: &str) -> Option<Opaque> {
        Opaque::from_code(&format!("V{bytes}{fields}")).filter(|found| found.fields().is_some())
    }

    /// Size of an element \[B\].
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// Size of the units whose bytes have an order, little or big \[B\]; 1 where there is none.
    pub const fn swap_bytes(self) -> u32 {
        self.unit as u32
    }

    /// Whether it is text of a fixed length, in bytes (NumPy's `S`) or in characters of 4 bytes (`U`).
    pub fn is_text(self) -> bool {
        self.code.starts_with(['S', 'U'])
    }

    /// Its code without a byte order.
    pub fn code(self) -> String {
        if self.code.is_empty() { format!("V{}", self.bytes) } else { self.code.to_owned() }
    }

    /// The fields of a structured type, as NumPy describes them.
    pub fn fields(self) -> Option<&'static str> {
        self.code.strip_prefix('V').and_then(|code| code.find('[').map(|at| &code[at..]))
    }

    /// Whether it is a text of any length that lies elsewhere: what moves says where.
    pub fn is_reference(self) -> bool {
        self.code.starts_with('O')
    }

    /// Slots of so many bytes, at least 1, for texts of any length.
    pub fn slots(bytes: u32) -> Opaque {
        Opaque { bytes: bytes.max(1), unit: 1, code: kept(&format!("T{}", bytes.max(1))) }
    }

    /// Whether it is a text of any length in a slot ([`slot_of`]).
    pub fn is_slot(self) -> bool {
        self.code.starts_with('T')
    }

    /// Whether it is a text of any length, which lies elsewhere or in a slot.
    pub fn is_of_any_length(self) -> bool {
        self.is_reference() || self.is_slot()
    }

    /// Whether the fields of a structured type, or of one in it, are shown in another order than that in which they lie.
    pub fn is_reordered(self) -> bool {
        self.code.contains("), [")
    }

    /// Of a date (`M8`) or a time (`m8`), which of both it is and its unit, such as `ns`, `10s` or nothing.
    pub fn time(self) -> Option<(&'static str, &'static str)> {
        let (kind, unit) = self.code.split_at_checked(2).filter(|_| self.unit == 8)?;
        Some((kind, unit.trim_matches(['[', ']'])))
    }

    /// The name of a float of 8 bits.
    pub fn float(self) -> Option<&'static str> {
        Some(self.code).filter(|code| FLOATS.contains(code))
    }
}

/// A text in a slot of so many bytes, of which it leaves at least one free: behind it come a byte that no text has, and zeros.
pub fn slot_of(text: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let mut slot = text.to_vec();
    slot.push(SLOT_END);
    (slot.len() <= bytes).then(|| {
        slot.resize(bytes, 0);
        slot
    })
}

/// The text in a slot; that of one that was never filled is empty.
pub fn text_of_slot(slot: &[u8]) -> &[u8] {
    let end = slot.iter().rposition(|byte| *byte == SLOT_END);
    &slot[..end.unwrap_or(0)]
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
        if self.is_of_any_length() {
            return f.write_str("text of variable length");
        }
        if self.is_text() {
            let (size, of) = (&self.code[1..], if self.unit == 1 { "B" } else { "characters" });
            return write!(f, "text of {size} {of}");
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
        for (code, bytes, unit, shown) in [
            ("V12", 12, 1, "opaque elements of 12 B"),
            ("M8[ns]", 8, 8, "datetime64[ns]"),
            ("m8[10s]", 8, 8, "timedelta64[10s]"),
            ("M8", 8, 8, "datetime64"),
            ("S12", 12, 1, "text of 12 B"),
            ("U3", 12, 4, "text of 3 characters"),
            ("O16", 16, 1, "text of variable length"),
            ("T12", 12, 1, "text of variable length"),
            ("float8_e4m3fn", 1, 1, "float8_e4m3fn"),
            ("V4[('a', '<i4')]", 4, 1, "structured elements [('a', '<i4')]"),
        ] {
            let found = Opaque::from_code(code).unwrap();
            assert_eq!((found.code().as_str(), found.bytes(), found.swap_bytes()), (code, bytes, unit));
            assert_eq!((found.to_string().as_str(), Opaque::from_code(code)), (shown, Some(found)));
        }
        assert_eq!(Opaque::from_code("V12"), Some(Opaque::plain(12)));
        assert_ne!(Opaque::from_code("V8[('a', '<f8')]"), Opaque::from_code("V8"));
        assert_eq!(Opaque::with_fields(4, "[('a', '<i4')]").unwrap().fields(), Some("[('a', '<i4')]"));
        assert_eq!(Opaque::with_fields(4, ""), None);
        let ordered = |fields| Opaque::with_fields(8, fields).unwrap().is_reordered();
        assert!(ordered("[('a', '<i4'), ('b', '<i4'), [1, 0]]") && !ordered("[('a', [('b', '<i4')]), ('c', '<i4')]"));
    }

    #[test]
    fn slots_hold_texts_that_end_anyhow() {
        assert_eq!((Opaque::slots(5), Opaque::slots(0).bytes()), (Opaque::from_code("T5").unwrap(), 1));
        for text in ["", "a", "a\0", "größe", "\0\0"] {
            let slot = slot_of(text.as_bytes(), 9).unwrap();
            assert_eq!((slot.len(), text_of_slot(&slot)), (9, text.as_bytes()));
        }
        assert_eq!((slot_of(b"abc", 3), slot_of(b"abc", 4).unwrap().len()), (None, 4));
        assert_eq!((text_of_slot(&[0; 4]), text_of_slot(&[])), (&b""[..], &b""[..]));
    }

    #[test]
    fn other_texts_are_no_types() {
        for code in [
            "",
            "V",
            "V0",
            "V+3",
            "V99999999999",
            "M8[]",
            "M8[1s]",
            "M8[00s]",
            "M8[x]",
            "M8ns",
            "float8",
            "S",
            "S0",
            "S+5",
            "U99999999999",
            "U1073741824",
            "f8",
        ] {
            assert_eq!(Opaque::from_code(code), None, "{code}");
        }
    }
}
