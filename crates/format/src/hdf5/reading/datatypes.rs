//! Datatype messages (section IV.A.2.d).

use super::fields::{FieldReader, text};
use crate::error::Error;
use crate::hdf5::datatype::{CompoundField, Datatype, TextEnd};
use crate::hdf5::policy::TYPE_DEPTH_MAX;
use hyperslab_layout::{ByteOrder, Kind, Opaque};

/// The first 8 bytes of a type.
struct Start {
    version: u8,
    class: u8,
    /// 24 bits, whose meaning depends on the class.
    bits: u32,
    bytes: u32,
}

impl Start {
    fn order(&self) -> ByteOrder {
        if self.bits & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big }
    }
}

/// The type at the start of these fields.
pub(super) fn datatype(fields: &mut FieldReader) -> Result<Datatype, Error> {
    nested(fields, 0)
}

fn nested(fields: &mut FieldReader, depth: u32) -> Result<Datatype, Error> {
    if depth > TYPE_DEPTH_MAX {
        return Err(fields.context.unsupported(format!("types nested {TYPE_DEPTH_MAX} deep at most"), "deeper ones"));
    }
    let first = fields.byte()?;
    let start = Start { version: first >> 4, class: first & 15, bits: fields.number(3)? as u32, bytes: fields.four()? };
    if !(1..=5).contains(&start.version) {
        let found = format!("version {}", start.version);
        return Err(fields.context.unsupported("version 1 to 5 of a datatype message", found));
    }
    if start.bytes == 0 {
        return Err(fields.wrong("elements of some bytes", format!("class {} of 0 B", start.class)));
    }
    let bytes = start.bytes;
    match start.class {
        0 => integer(fields, &start),
        1 => float(fields, &start),
        2 => {
            fields.skip(2)?;
            Ok(Datatype::Unsupported { bytes, what: "a time".into() })
        }
        3 => fixed_text(fields, &start),
        4 => bits(fields, &start),
        5 => {
            let tag = text(fields.take(u64::from(start.bits & 0xff).next_multiple_of(8))?);
            Ok(Datatype::Opaque { bytes, tag })
        }
        6 => compound(fields, &start, depth),
        7 => Ok(reference(&start)),
        8 => enumeration(fields, &start, depth),
        9 => variable(fields, &start, depth),
        10 => array(fields, &start, depth),
        11 => complex(fields, &start, depth),
        class => Err(fields.context.unsupported("a known class of types", format!("class {class}"))),
    }
}

fn integer(fields: &mut FieldReader, start: &Start) -> Result<Datatype, Error> {
    let (offset, precision) = (fields.two()?, fields.two()?);
    let &Start { bytes, bits, .. } = start;
    if offset != 0 || u32::from(precision) != bytes.saturating_mul(8) {
        let what = format!("an integer of {precision} bits in {bytes} B");
        return Ok(Datatype::Unsupported { bytes, what });
    }
    Ok(Datatype::Integer { bytes, signed: bits & 8 != 0, order: start.order() })
}

/// Where the parts of a float are \[bit\]: size, sign, exponent and its size, fraction and its size, bias of the exponent.
type FloatParts = (u32, u32, u8, u8, u8, u8, u32);

fn float(fields: &mut FieldReader, start: &Start) -> Result<Datatype, Error> {
    let (offset, precision) = (fields.two()?, fields.two()?);
    let [exponent, exponent_size, fraction, fraction_size] =
        [fields.byte()?, fields.byte()?, fields.byte()?, fields.byte()?];
    let bias = fields.four()?;
    let &Start { bytes, bits, .. } = start;
    let parts: FloatParts = (bytes, bits >> 8 & 0xff, exponent, exponent_size, fraction, fraction_size, bias);
    // The leading one of fractions is left out, all bits are used, and the order of bytes is not that of a VAX.
    let usual = bits >> 4 & 3 == 2 && offset == 0 && u32::from(precision) == bytes.saturating_mul(8) && bits & 64 == 0;
    let order = start.order();
    Ok(match parts {
        (2, 15, 10, 5, 0, 10, 15) | (4, 31, 23, 8, 0, 23, 127) | (8, 63, 52, 11, 0, 52, 1023) if usual => {
            Datatype::Float { bytes, order }
        }
        (2, 15, 7, 8, 0, 7, 127) if usual => Datatype::ShortFloat { kind: Kind::BFloat16, order },
        (1, 7, 2, 5, 0, 2, 15) if usual => match Opaque::from_code("float8_e5m2") {
            Some(opaque) => Datatype::ShortFloat { kind: Kind::Opaque(opaque), order },
            None => Datatype::Unsupported { bytes, what: "a float of 8 bits".into() },
        },
        _ => {
            let what = format!("a float of {precision} bits in {bytes} B, {exponent_size} of them for the exponent");
            Datatype::Unsupported { bytes, what }
        }
    })
}

fn fixed_text(fields: &FieldReader, start: &Start) -> Result<Datatype, Error> {
    let utf8 = is_utf8(start.bits >> 4 & 15);
    let end = match start.bits & 15 {
        0 => TextEnd::Terminated,
        1 => TextEnd::Zeros,
        2 => TextEnd::Spaces,
        other => return Err(fields.context.unsupported("text with a known end", format!("padding {other}"))),
    };
    Ok(Datatype::Text { bytes: start.bytes, end, utf8 })
}

/// Character sets are ASCII and UTF-8; others are read as the latter, which checks what it finds.
fn is_utf8(set: u32) -> bool {
    set != 0
}

fn bits(fields: &mut FieldReader, start: &Start) -> Result<Datatype, Error> {
    let (offset, precision) = (fields.two()?, fields.two()?);
    let bytes = start.bytes;
    if offset != 0 || u32::from(precision) != bytes.saturating_mul(8) {
        return Ok(Datatype::Unsupported { bytes, what: format!("a field of {precision} bits in {bytes} B") });
    }
    Ok(Datatype::Bits { bytes, order: start.order() })
}

fn compound(fields: &mut FieldReader, start: &Start, depth: u32) -> Result<Datatype, Error> {
    let count = start.bits & 0xffff;
    let mut members = Vec::new();
    for _ in 0..count {
        let member = member(fields, start, depth)?;
        let end = u64::from(member.offset) + u64::from(member.datatype.bytes());
        if end > start.bytes.into() {
            let found = format!("`{}` up to byte {end}", crate::error::excerpt(&member.name));
            return Err(fields.wrong(&format!("fields within {} B", start.bytes), found));
        }
        members.push(member);
    }
    Ok(Datatype::Compound { bytes: start.bytes, fields: members })
}

fn member(fields: &mut FieldReader, start: &Start, depth: u32) -> Result<CompoundField, Error> {
    let name = name(fields, start.version)?;
    // From version 3 on, as few bytes as the size of the compound has.
    let width = if start.version < 3 { 4 } else { 4 - start.bytes.leading_zeros() as u8 / 8 };
    let offset = fields.number(width)? as u32;
    let mut shape = Vec::new();
    if start.version == 1 {
        let ndim = usize::from(fields.byte()?);
        fields.skip(11)?;
        let extents = [fields.four()?, fields.four()?, fields.four()?, fields.four()?];
        shape = extents.get(..ndim).ok_or_else(|| fields.wrong("4 dimensions at most", ndim.to_string()))?.to_vec();
    }
    let mut datatype = nested(fields, depth + 1)?;
    if !shape.is_empty() {
        datatype = Datatype::Array { shape, base: Box::new(datatype) };
        check_array(fields, &datatype)?;
    }
    Ok(CompoundField { name, offset, datatype })
}

/// A name that ends with a zero, and up to version 2 with as many as make it a multiple of 8 B.
fn name(fields: &mut FieldReader, version: u8) -> Result<String, Error> {
    let name = fields.until_zero()?;
    if version < 3 {
        let used = name.len() + 1;
        fields.skip((used.next_multiple_of(8) - used) as u64)?;
    }
    Ok(text(name))
}

fn reference(start: &Start) -> Datatype {
    match (start.bits & 15, start.bytes) {
        (0, 8) => Datatype::ObjectReference,
        (1, 12) => Datatype::RegionReference,
        (kind, bytes) => Datatype::Unsupported { bytes, what: format!("a reference of kind {kind} in {bytes} B") },
    }
}

fn enumeration(fields: &mut FieldReader, start: &Start, depth: u32) -> Result<Datatype, Error> {
    let base = nested(fields, depth + 1)?;
    if base.bytes() != start.bytes {
        let found = format!("{} B of {} B", start.bytes, base.bytes());
        return Err(fields.wrong("enumerations as long as their numbers", found));
    }
    let count = start.bits & 0xffff;
    let names = (0..count).map(|_| name(fields, start.version)).collect::<Result<Vec<_>, _>>()?;
    let member = |name| Ok((name, fields.take(start.bytes.into())?.to_vec()));
    let members = names.into_iter().map(member).collect::<Result<_, Error>>()?;
    Ok(Datatype::Enumeration { base: Box::new(base), members })
}

fn variable(fields: &mut FieldReader, start: &Start, depth: u32) -> Result<Datatype, Error> {
    let base = nested(fields, depth + 1)?;
    let bytes = start.bytes;
    // A count, an address of the usual width and a number: others would be told apart by nobody.
    if bytes != 16 || fields.widths.offset != 8 {
        return Ok(Datatype::Unsupported { bytes, what: format!("values of variable length in {bytes} B") });
    }
    Ok(match start.bits & 15 {
        0 => Datatype::List(Box::new(base)),
        1 => Datatype::VariableText { utf8: is_utf8(start.bits >> 8 & 15) },
        kind => Datatype::Unsupported { bytes, what: format!("values of variable length of kind {kind}") },
    })
}

fn array(fields: &mut FieldReader, start: &Start, depth: u32) -> Result<Datatype, Error> {
    let ndim = fields.byte()?;
    if start.version < 3 {
        fields.skip(3)?;
    }
    let shape = (0..ndim).map(|_| fields.four()).collect::<Result<_, _>>()?;
    if start.version < 3 {
        fields.skip(4 * u64::from(ndim))?;
    }
    let array = Datatype::Array { shape, base: Box::new(nested(fields, depth + 1)?) };
    if check_array(fields, &array)? == start.bytes {
        return Ok(array);
    }
    Err(fields.wrong("arrays as long as their elements", format!("{} B in {} B", array.bytes(), start.bytes)))
}

/// Size of an array, which must fit its field \[B\].
fn check_array(fields: &FieldReader, array: &Datatype) -> Result<u32, Error> {
    let Datatype::Array { shape, base } = array else { return Ok(array.bytes()) };
    let bytes = shape.iter().try_fold(base.bytes(), |bytes, &extent| bytes.checked_mul(extent));
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| fields.wrong("arrays below 4 GiB", format!("{shape:?}")))
}

/// A complex number of version 5: its real and its imaginary part, of one type.
fn complex(fields: &mut FieldReader, start: &Start, depth: u32) -> Result<Datatype, Error> {
    let base = nested(fields, depth + 1)?;
    let (bytes, form) = (start.bytes, start.bits >> 1 & 3);
    if base.bytes().checked_mul(2) != Some(bytes) || form != 0 {
        return Ok(Datatype::Unsupported { bytes, what: format!("a complex number of form {form} in {bytes} B") });
    }
    Ok(Datatype::Complex(Box::new(base)))
}
