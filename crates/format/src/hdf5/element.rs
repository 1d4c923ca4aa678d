//! Which element of an array a type is, where it is one.

use super::datatype::{CompoundField, Datatype, TextEnd};
use crate::error::{Context, Error, excerpt};
use crate::fields::{self, FieldType};
use hyperslab_layout::{ByteOrder, ElementType, Kind, Opaque, TextFill, TextPart, TextParts};
use std::collections::BTreeSet;

impl Datatype {
    /// The element that arrays of this type have: numbers; truth values, which h5py stores as an enumeration of `FALSE` and
    /// `TRUE`; complex numbers, of HDF5 2.0 or as compounds of `r` and `i`; dates of NumPy; texts;
    /// structured types; other bytes.
    /// `name` is the name of the dataset in errors.
    ///
    /// # Errors
    /// When arrays cannot have such elements: lists of variable length, references.
    pub fn element(&self, name: &str) -> Result<ElementType, Error> {
        self.as_element().map_err(|found| {
            let error = Context::new("use HDF5 dataset", name).unsupported("elements of fixed size", found);
            error.with_hint("read it with h5py")
        })
    }

    /// The type of elements of arrays, as h5py stores them: truth values as an enumeration, complex numbers as a compound,
    /// dates as bytes with a tag. `name` is the name of the array in errors.
    ///
    /// # Errors
    /// When HDF5 has no such type, or no library yet that reads it.
    pub fn of_element(element: ElementType, name: &str) -> Result<Datatype, Error> {
        let order = element.order;
        let integer = |signed| Datatype::Integer { bytes: element.bytes() as u32, signed, order };
        let complex = |bytes: u32| Datatype::Compound {
            bytes: 2 * bytes,
            fields: [("r", 0), ("i", bytes)].map(|(name, offset)| part(name, offset, bytes, order)).into(),
        };
        Ok(match element.kind {
            Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64 => integer(true),
            Kind::UInt8 | Kind::UInt16 | Kind::UInt32 | Kind::UInt64 => integer(false),
            Kind::Float16 | Kind::Float32 | Kind::Float64 => Datatype::Float { bytes: element.bytes() as u32, order },
            Kind::Complex64 => complex(4),
            Kind::Complex128 => complex(8),
            Kind::Bool => Datatype::Enumeration {
                base: Box::new(integer(true)),
                members: vec![("FALSE".into(), vec![0]), ("TRUE".into(), vec![1])],
            },
            Kind::Opaque(opaque) if opaque.is_text() && opaque.swap_bytes() == 1 => {
                Datatype::Text { bytes: opaque.bytes(), end: TextEnd::Zeros, utf8: false }
            }
            Kind::Opaque(opaque) if opaque.is_text() => {
                let error = not_stored(&format!("{opaque} of 4 B (NumPy's type U)"), name);
                return Err(error.with_hint("store it in UTF-8: numpy.char.encode(array, \"utf-8\")"));
            }
            Kind::Opaque(opaque) if opaque.is_of_any_length() => Datatype::VariableText { utf8: true },
            Kind::Opaque(opaque) if opaque.float().is_none() && opaque.fields().is_none() => {
                let tag = if opaque.time().is_some() { format!("NUMPY:{}", element.numpy()) } else { String::new() };
                Datatype::Opaque { bytes: opaque.bytes(), tag }
            }
            Kind::Opaque(opaque) if opaque.float().is_none() => {
                let described = fields::fields_of_text(opaque.fields().unwrap_or_default());
                let made = described.and_then(|fields| compound(&fields, opaque.bytes(), name));
                return made.map_err(|found| not_stored(&found, name));
            }
            Kind::BFloat16 | Kind::Opaque(_) => return Err(not_stored(&element.to_string(), name)),
        })
    }

    /// The texts in an element behind whose values may lie what is not part of them.
    pub fn texts(&self) -> TextParts {
        let mut found = Vec::new();
        add_texts(self, 0, &[], &mut found);
        TextParts(found.into())
    }

    fn as_element(&self) -> Result<ElementType, String> {
        let native = |kind| ElementType { kind, order: ByteOrder::Little };
        let (kind, order) = match self {
            Datatype::Integer { bytes, signed, order } => (integer(*bytes, *signed)?, *order),
            Datatype::Float { bytes, order } => (float(*bytes), *order),
            Datatype::ShortFloat { kind, order } => (*kind, *order),
            Datatype::Complex(base) => complex(base).ok_or("complex numbers of other floats")?,
            Datatype::Opaque { bytes, tag } => return opaque(*bytes, tag),
            Datatype::Bits { bytes, order } => (integer(*bytes, false).unwrap_or(Kind::opaque(*bytes)), *order),
            Datatype::Enumeration { base, members } => {
                let is_truth = base.bytes() == 1 && is_truth(members);
                return if is_truth { Ok(native(Kind::Bool)) } else { base.as_element() };
            }
            Datatype::Compound { bytes, fields } => match halves(fields, *bytes) {
                Some((kind, order)) => (kind, order),
                None => return Ok(native(structured(fields, *bytes)?)),
            },
            Datatype::Text { bytes, .. } => return Ok(native(text(*bytes)?)),
            Datatype::VariableText { .. } => return Ok(native(reference(self.bytes())?)),
            Datatype::List(_) => return Err("lists of variable length".into()),
            Datatype::Array { shape, .. } => return Err(format!("arrays of shape {shape:?} as elements")),
            Datatype::ObjectReference | Datatype::RegionReference => return Err("references to objects".into()),
            Datatype::Unsupported { what, .. } => return Err(excerpt(what)),
        };
        Ok(ElementType { kind, order })
    }
}

fn not_stored(found: &str, name: &str) -> Error {
    let error = Context::new("store the HDF5 dataset", name).unsupported("elements that h5py reads", found);
    error.with_hint("a Zarr store has them")
}

/// Refuses elements that netCDF-4 has no type for: its libraries crash on some of them, and do not see others.
///
/// # Errors
/// With what can be stored instead.
pub fn check_netcdf_element(name: &str, element: ElementType) -> Result<(), Error> {
    let hint = match element.kind {
        kind if kind.is_integer() => return Ok(()),
        Kind::Float32 | Kind::Float64 => return Ok(()),
        Kind::Opaque(opaque) if opaque.is_text() && opaque.bytes() == 1 || opaque.is_reference() => return Ok(()),
        Kind::Opaque(opaque) if opaque.is_text() => {
            "split it into characters, with one dimension more: netCDF4.stringtochar(array.astype(\"S\"))"
        }
        Kind::Opaque(opaque) if opaque.time().is_some() => {
            "write array.view(\"int64\"), with the attribute units such as \"seconds since 1970-01-01\""
        }
        Kind::Opaque(opaque) if opaque.fields().is_some() => match netcdf_fields(opaque.fields().unwrap_or_default()) {
            Ok(true) => return Ok(()),
            _ => "write each field as a variable of its own, or into plain HDF5",
        },
        Kind::Bool => "write array.astype(\"int8\")",
        Kind::Float16 | Kind::BFloat16 => "write array.astype(\"float32\")",
        Kind::Opaque(opaque) if opaque.float().is_some() => "write array.astype(\"float32\")",
        _ => "write it as numbers, or into plain HDF5",
    };
    let context = Context::new("store the netCDF-4 variable", name);
    let expected =
        "integers, float32, float64, characters (S1), texts of variable length, or records of numbers and characters";
    Err(context.unsupported(expected, element.to_string()).with_hint(hint))
}

/// Whether netCDF-4 has all of these fields.
fn netcdf_fields(described: &str) -> Result<bool, String> {
    fn all(fields: &[fields::Field]) -> bool {
        fields.iter().all(|field| match &field.holds {
            _ if field.name.is_empty() => true,
            FieldType::Element(element) => {
                element.kind.is_integer() || matches!(element.kind, Kind::Float32 | Kind::Float64)
            }
            FieldType::Bytes(bytes) => *bytes == 1,
            FieldType::Characters(..) => false,
            // The library does not see records in records that have no name of their own in the file.
            FieldType::Fields(_) => false,
        })
    }
    Ok(all(&fields::fields_of_text(described)?))
}

/// Text that lies elsewhere.
fn reference(bytes: u32) -> Result<Kind, String> {
    let found = Opaque::from_code(&format!("O{bytes}")).map(Kind::Opaque);
    found.ok_or_else(|| "text of variable length".into())
}

/// Text of so many bytes.
fn text(bytes: u32) -> Result<Kind, String> {
    let found = Opaque::from_code(&format!("S{bytes}")).map(Kind::Opaque);
    found.ok_or_else(|| format!("text of {bytes} B"))
}

/// The fields of a structured type as they were declared, without its gaps.
fn compound(fields: &[fields::Field], bytes: u32, name: &str) -> Result<Datatype, String> {
    let (mut members, mut offset): (Vec<(usize, CompoundField)>, _) = (Vec::new(), 0u32);
    for field in fields {
        let base = match &field.holds {
            FieldType::Element(element) => {
                Datatype::of_element(*element, name).map_err(|error| error.found().to_string())?
            }
            FieldType::Bytes(bytes) => Datatype::Text { bytes: *bytes, end: TextEnd::Zeros, utf8: false },
            FieldType::Characters(..) => return Err(format!("text of NumPy's type U in field '{}'", field.name)),
            FieldType::Fields(inner) => compound(inner, fields::bytes_of(inner).unwrap_or(0) as u32, name)?,
        };
        let extents = field.shape.iter().map(|extent| u32::try_from(*extent).ok()).collect::<Option<Vec<_>>>();
        let shape = extents.ok_or_else(|| format!("an array of 2^32 or more in field '{}'", field.name))?;
        let datatype = if shape.is_empty() { base } else { Datatype::Array { shape, base: Box::new(base) } };
        let next = offset + datatype.bytes();
        if !field.name.is_empty() {
            members.push((field.place, CompoundField { name: field.name.clone(), offset, datatype }));
        }
        offset = next;
    }
    members.sort_by_key(|(place, _)| *place);
    Ok(Datatype::Compound { bytes, fields: members.into_iter().map(|(_, member)| member).collect() })
}

fn part(name: &str, offset: u32, bytes: u32, order: ByteOrder) -> CompoundField {
    CompoundField { name: name.into(), offset, datatype: Datatype::Float { bytes, order } }
}

fn integer(bytes: u32, signed: bool) -> Result<Kind, String> {
    Ok(match (bytes, signed) {
        (1, true) => Kind::Int8,
        (2, true) => Kind::Int16,
        (4, true) => Kind::Int32,
        (8, true) => Kind::Int64,
        (1, false) => Kind::UInt8,
        (2, false) => Kind::UInt16,
        (4, false) => Kind::UInt32,
        (8, false) => Kind::UInt64,
        _ => return Err(format!("integers of {bytes} B")),
    })
}

fn float(bytes: u32) -> Kind {
    match bytes {
        2 => Kind::Float16,
        4 => Kind::Float32,
        _ => Kind::Float64,
    }
}

/// Complex numbers of such parts.
fn complex(part: &Datatype) -> Option<(Kind, ByteOrder)> {
    match *part {
        Datatype::Float { bytes: 4, order } => Some((Kind::Complex64, order)),
        Datatype::Float { bytes: 8, order } => Some((Kind::Complex128, order)),
        _ => None,
    }
}

/// Compounds that are complex numbers, as h5py writes them.
fn halves(fields: &[CompoundField], bytes: u32) -> Option<(Kind, ByteOrder)> {
    let [real, imaginary] = fields else { return None };
    let named = real.name == "r" && imaginary.name == "i" && real.datatype == imaginary.datatype;
    let (kind, order) = complex(&real.datatype).filter(|_| named)?;
    let fits = real.offset == 0 && imaginary.offset * 2 == bytes && u64::from(bytes) == kind.bytes();
    fits.then_some((kind, order))
}

fn is_truth(members: &[(String, Vec<u8>)]) -> bool {
    let has = |name: &str, value: u8| members.iter().any(|(known, stored)| known == name && stored == &[value]);
    members.len() == 2 && has("FALSE", 0) && has("TRUE", 1)
}

/// Bytes with a tag. That of NumPy's types is their code, with a byte order.
fn opaque(bytes: u32, tag: &str) -> Result<ElementType, String> {
    let numpy = tag.strip_prefix("NUMPY:").and_then(ElementType::from_numpy);
    let dated = numpy.filter(|element| element.bytes() == u64::from(bytes) && element.kind.is_opaque());
    Ok(dated.unwrap_or(ElementType::native(Kind::opaque(bytes))))
}

/// A structured type, whose fields are listed in the order of their offsets, with gaps as fields without names, and are shown as
/// they are declared.
fn structured(members: &[CompoundField], bytes: u32) -> Result<Kind, String> {
    fields::structured(&listed(members, bytes)?)
}

fn listed(members: &[CompoundField], bytes: u32) -> Result<Vec<fields::Field>, String> {
    let mut order: Vec<(usize, &CompoundField)> = members.iter().enumerate().collect();
    order.sort_by_key(|(_, field)| field.offset);
    let gap = |bytes: u32| {
        let holds = FieldType::Element(ElementType::native(Kind::opaque(bytes)));
        fields::Field { name: String::new(), holds, shape: Vec::new(), place: 0 }
    };
    let (mut all, mut end, mut names) = (Vec::new(), 0, BTreeSet::new());
    for (place, member) in order {
        if !names.insert(&member.name) {
            return Err(format!("two fields called {:?}", excerpt(&member.name)));
        }
        let skipped = member.offset.checked_sub(end).ok_or("fields that lie in each other")?;
        if member.name.is_empty() || member.name.chars().any(char::is_control) {
            return Err(format!("a field called {:?}", excerpt(&member.name)));
        }
        if skipped > 0 {
            all.push(gap(skipped));
        }
        let mut shape = Vec::new();
        let holds = held(&member.datatype, &mut shape)?;
        all.push(fields::Field { name: member.name.clone(), holds, shape, place });
        end = member.offset.saturating_add(member.datatype.bytes());
    }
    match bytes.checked_sub(end).ok_or("fields behind their end")? {
        0 => (),
        rest => all.push(gap(rest)),
    }
    Ok(all)
}

/// Adds the texts in a type behind whose values may lie what is not part of them: those that a zero ends, and those that spaces
/// fill up. Around the type are these loops, and it begins at this byte of the element.
fn add_texts(datatype: &Datatype, at: u64, loops: &[(u64, u64)], found: &mut Vec<TextPart>) {
    match datatype {
        // Of one byte, nothing is behind the value.
        Datatype::Text { bytes: 1, end: TextEnd::Terminated, .. } | Datatype::Text { end: TextEnd::Zeros, .. } => (),
        Datatype::Text { bytes, end, .. } => {
            let end = if *end == TextEnd::Spaces { TextFill::Spaces } else { TextFill::Zero };
            found.push(TextPart { at, bytes: u64::from(*bytes), end, loops: loops.to_vec() });
        }
        Datatype::Array { shape, base } => {
            let count = shape.iter().fold(1u64, |count, extent| count.saturating_mul(u64::from(*extent)));
            add_texts(base, at, &[loops, &[(count, u64::from(base.bytes()))]].concat(), found);
        }
        Datatype::Compound { fields, .. } => {
            fields.iter().for_each(|field| add_texts(&field.datatype, at + u64::from(field.offset), loops, found));
        }
        _ => (),
    }
}

/// What a field holds; the extents of arrays are added to `shape`.
fn held(datatype: &Datatype, shape: &mut Vec<u64>) -> Result<FieldType, String> {
    Ok(match datatype {
        Datatype::Array { shape: extents, base } => {
            shape.extend(extents.iter().map(|&extent| u64::from(extent)));
            return held(base, shape);
        }
        Datatype::Text { bytes, .. } => FieldType::Bytes(*bytes),
        Datatype::VariableText { .. } => return Err("text of variable length in a record".into()),
        Datatype::Compound { bytes, fields } if halves(fields, *bytes).is_none() => {
            FieldType::Fields(listed(fields, *bytes)?)
        }
        other => {
            let element = other.as_element()?;
            match element.kind {
                Kind::BFloat16 => FieldType::Element(ElementType::native(Kind::opaque(2))),
                Kind::Opaque(opaque) if opaque.float().is_some() => {
                    FieldType::Element(ElementType::native(Kind::Opaque(Opaque::plain(opaque.bytes()))))
                }
                _ => FieldType::Element(element),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: Datatype = Datatype::Float { bytes: 4, order: ByteOrder::Big };

    fn field(name: &str, offset: u32, datatype: Datatype) -> CompoundField {
        CompoundField { name: name.into(), offset, datatype }
    }

    #[test]
    fn compounds_are_complex_or_structured() {
        let compound = |bytes, fields| Datatype::Compound { bytes, fields };
        let complex = compound(8, vec![field("r", 0, REAL), field("i", 4, REAL)]);
        assert_eq!(complex.element("d").unwrap().numpy(), ">c8");
        assert_eq!(Datatype::Complex(Box::new(REAL)).element("d").unwrap().numpy(), ">c8");
        let text = Datatype::Text { bytes: 3, end: TextEnd::Zeros, utf8: false };
        let array = Datatype::Array { shape: vec![2, 3], base: Box::new(complex.clone()) };
        let fields = vec![field("b", 12, text.clone()), field("a", 0, complex), field("c", 16, array)];
        let element = compound(72, fields).element("d").unwrap();
        let told =
            "|V72[('a', '>c8'), ('', '|V4'), ('b', '|S3'), ('', '|V1'), ('c', '>c8', (2, 3)), ('', '|V8'), [1, 0, 2]]";
        assert_eq!(element.numpy(), told);
        let over = compound(8, vec![field("a", 0, REAL), field("b", 2, REAL)]).element("d").unwrap_err();
        assert!(over.is_unsupported() && over.to_string().contains("fields that lie in each other"), "{over}");
        let twice = compound(8, vec![field("a", 0, REAL), field("a", 4, REAL)]).element("d").unwrap_err();
        assert!(twice.to_string().contains("two fields called \"a\""), "{twice}");
        assert_eq!(text.element("d").unwrap().numpy(), "|S3");
        let late = compound(12, vec![field("b", 8, REAL), field("a", 0, REAL)]).element("d").unwrap();
        assert_eq!(late.numpy(), "|V12[('a', '>f4'), ('', '|V4'), ('b', '>f4'), [1, 0]]");
        assert_eq!(Datatype::of_element(late, "d").unwrap().element("d").unwrap(), late);
    }

    #[test]
    fn texts_that_end_early_are_told() {
        let text = |end| Datatype::Text { bytes: 4, end, utf8: true };
        let array = Datatype::Array { shape: vec![2, 3], base: Box::new(text(TextEnd::Spaces)) };
        let fields =
            vec![field("a", 0, text(TextEnd::Zeros)), field("b", 4, text(TextEnd::Terminated)), field("c", 8, array)];
        let inner = Datatype::Compound { bytes: 32, fields };
        let found = Datatype::Array { shape: vec![5], base: Box::new(inner) }.texts();
        let part = |at, end, loops: &[(u64, u64)]| TextPart { at, bytes: 4, end, loops: loops.to_vec() };
        let expected = [part(4, TextFill::Zero, &[(5, 32)]), part(8, TextFill::Spaces, &[(5, 32), (6, 4)])];
        assert_eq!(*found.0, expected);
        assert!(Datatype::Text { bytes: 1, end: TextEnd::Terminated, utf8: false }.texts().is_empty());
    }

    #[test]
    fn elements_come_back() {
        for kind in Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::BFloat16)) {
            let element = ElementType { kind, order: ByteOrder::Little };
            let datatype = Datatype::of_element(element, "d").unwrap();
            assert_eq!(datatype.element("d").unwrap(), element);
            assert_eq!(u64::from(datatype.bytes()), element.bytes());
        }
        for code in [">f8", "<c16", "<M8[ns]", "|V12", "<m8[s]"] {
            let element = ElementType::from_numpy(code).unwrap();
            assert_eq!(Datatype::of_element(element, "d").unwrap().element("d").unwrap().numpy(), code);
        }
        let error = Datatype::of_element(ElementType::native(Kind::BFloat16), "d").unwrap_err();
        assert!(error.is_unsupported(), "{error}");
    }

    #[test]
    fn truth_and_dates_are_known() {
        let byte = Datatype::Integer { bytes: 1, signed: true, order: ByteOrder::Little };
        let truth = |last: u8| Datatype::Enumeration {
            base: Box::new(byte.clone()),
            members: vec![("FALSE".into(), vec![0]), ("TRUE".into(), vec![last])],
        };
        assert_eq!(truth(1).element("d").unwrap().numpy(), "|b1");
        let character = Datatype::Text { bytes: 1, end: TextEnd::Terminated, utf8: false };
        assert_eq!(character.element("d").unwrap().numpy(), "|S1");
        let bits = |bytes| Datatype::Bits { bytes, order: ByteOrder::Big }.element("d").unwrap().numpy();
        assert_eq!((bits(1), bits(2), bits(3)), ("|u1".into(), ">u2".into(), "|V3".into()));
        assert_eq!(truth(2).element("d").unwrap().numpy(), "|i1");
        let opaque = |tag: &str| Datatype::Opaque { bytes: 8, tag: tag.into() }.element("d").unwrap().numpy();
        assert_eq!(opaque("NUMPY:<M8[ns]"), "<M8[ns]");
        assert_eq!(opaque("NUMPY:|V8"), "|V8");
        assert_eq!(opaque("NUMPY:<f8"), "|V8");
        assert_eq!(opaque("other"), "|V8");
    }
}
