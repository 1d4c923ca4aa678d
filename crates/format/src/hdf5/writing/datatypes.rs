//! Types of elements as bytes (section IV.A.2.d of the specification).

use crate::error::{Context, Error};
use crate::hdf5::datatype::{CompoundField, Datatype, TextEnd};
use hyperslab_layout::{ByteOrder, Kind};

/// Bytes of a reference to an object, and of a list of variable length as an element has it \[B\].
const REFERENCE_BYTES: u32 = 8;
const VARIABLE_BYTES: u32 = 16;

/// The message of a type. What is made of other types is of version 3, so that names and offsets take no more than they need.
pub(super) fn encoded(datatype: &Datatype, context: &Context) -> Result<Vec<u8>, Error> {
    Ok(match datatype {
        Datatype::Integer { bytes, signed, order } => {
            let bits = big(*order) | u32::from(*signed) << 3;
            [head(1, 0, bits, *bytes), number(*bytes)].concat()
        }
        Datatype::Bits { bytes, order } => [head(1, 4, big(*order), *bytes), number(*bytes)].concat(),
        Datatype::Float { bytes, order } => {
            let (exponent, bias) = match bytes {
                2 => (5, 15),
                4 => (8, 127),
                8 => (11, 1023),
                _ => return Err(context.invalid("a float of 2, 4 or 8 B", format!("one of {bytes} B"))),
            };
            float(*bytes, *order, exponent, bias)
        }
        Datatype::ShortFloat { kind: Kind::BFloat16, order } => float(2, *order, 8, 127),
        Datatype::Text { bytes, end, utf8 } => head(1, 3, text_end(*end) | u32::from(*utf8) << 4, *bytes),
        Datatype::Opaque { bytes, tag } => {
            let mut tag = tag.clone().into_bytes();
            tag.resize((tag.len() + 1).next_multiple_of(8), 0);
            if tag.len() > 248 {
                return Err(context.invalid("a tag of at most 247 B", format!("{} B", tag.len())));
            }
            [head(1, 5, tag.len() as u32, *bytes), tag].concat()
        }
        Datatype::Compound { bytes, fields } => compound(*bytes, fields, context)?,
        Datatype::ObjectReference => head(1, 7, 0, REFERENCE_BYTES),
        Datatype::Enumeration { base, members } => {
            let count = counted(members.len(), context)?;
            let mut made = [head(3, 8, count, base.bytes()), encoded(base, context)?].concat();
            members.iter().for_each(|(name, _)| made.extend([name.as_bytes(), b"\0"].concat()));
            members.iter().for_each(|(_, value)| made.extend(value));
            made
        }
        Datatype::VariableText { utf8 } => {
            let one = Datatype::Text { bytes: 1, end: TextEnd::Terminated, utf8: *utf8 };
            [head(1, 9, 1 | u32::from(*utf8) << 8, VARIABLE_BYTES), encoded(&one, context)?].concat()
        }
        Datatype::List(base) => [head(1, 9, 0, VARIABLE_BYTES), encoded(base, context)?].concat(),
        Datatype::Array { shape, base } => {
            let mut made = head(3, 10, 0, datatype.bytes());
            made.push(shape.len() as u8);
            shape.iter().for_each(|extent| made.extend(extent.to_le_bytes()));
            made.extend(encoded(base, context)?);
            made
        }
        Datatype::ShortFloat { .. }
        | Datatype::Complex(_)
        | Datatype::RegionReference
        | Datatype::Unsupported { .. } => {
            return Err(context.unsupported("a type that HDF5 1.8 has", format!("{datatype:?}")));
        }
    })
}

fn compound(bytes: u32, fields: &[CompoundField], context: &Context) -> Result<Vec<u8>, Error> {
    let mut made = head(3, 6, counted(fields.len(), context)?, bytes);
    for field in fields {
        made.extend(field.name.as_bytes());
        made.push(0);
        made.extend(&field.offset.to_le_bytes()[..offset_bytes(bytes)]);
        made.extend(encoded(&field.datatype, context)?);
    }
    Ok(made)
}

/// What a type begins with: its class, the version of its form, bits of its class, and its size.
fn head(version: u8, class: u8, bits: u32, bytes: u32) -> Vec<u8> {
    let mut made = vec![version << 4 | class];
    made.extend(&bits.to_le_bytes()[..3]);
    made.extend(bytes.to_le_bytes());
    made
}

/// All bits count.
fn number(bytes: u32) -> Vec<u8> {
    [[0, 0], (bytes as u16 * 8).to_le_bytes()].concat()
}

/// A float of IEEE 754: sign, exponent, and a mantissa whose first bit is implied.
fn float(bytes: u32, order: ByteOrder, exponent: u8, bias: u32) -> Vec<u8> {
    let bits = bytes as u8 * 8;
    let mantissa = bits - 1 - exponent;
    let class = big(order) | 2 << 4 | u32::from(bits - 1) << 8;
    let mut made = [head(1, 1, class, bytes), number(bytes)].concat();
    made.extend([mantissa, exponent, 0, mantissa]);
    made.extend(bias.to_le_bytes());
    made
}

fn big(order: ByteOrder) -> u32 {
    u32::from(order == ByteOrder::Big)
}

fn text_end(end: TextEnd) -> u32 {
    match end {
        TextEnd::Terminated => 0,
        TextEnd::Zeros => 1,
        TextEnd::Spaces => 2,
    }
}

/// Bytes of the offset of a field: as many as the size of the compound has.
fn offset_bytes(bytes: u32) -> usize {
    (bytes.max(1).ilog2() / 8 + 1) as usize
}

fn counted(count: usize, context: &Context) -> Result<u32, Error> {
    match count {
        1..=65_535 => Ok(count as u32),
        _ => Err(context.invalid("1 to 65535 fields or names", count.to_string())),
    }
}
