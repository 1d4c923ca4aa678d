//! The member "data_type": numbers by their names, and what is no number.
//!
//! Follows the Zarr core specification and the registry zarr-extensions. Structured types are written as `structured`,
//! which zarr-python 3.1 reads and writes; `struct`, which the registry has for new arrays, is read as well.

use super::json::{Named, text};
use super::policy::ELEMENT_BYTES_MAX;
use super::text_type::{self, DATA_TYPE};
use crate::error::{Context, Error, excerpt};
use crate::fields::{Field, FieldType, fields_of_text, name_twice, structured};
use hyperslab_layout::{ByteOrder, ElementType, Kind, Opaque};
use serde_json::{Value, json};

/// What elements are, as the metadata of an array say it.
pub(super) fn parse(value: Value, context: Context) -> Result<Kind, Error> {
    if matches!(&value, Value::String(name) if name == DATA_TYPE) || value["name"] == DATA_TYPE {
        let named = Named::parse(value, "data_type", context)?;
        return named.finish(context).map(|()| text_type::kind());
    }
    match field_type(value, context)? {
        FieldType::Element(element) => Ok(element.kind),
        FieldType::Fields(fields) => {
            structured(&fields).map_err(|wrong| context.unsupported("a data_type with fields", wrong))
        }
        text => text.as_text().map(|element| element.kind).ok_or_else(|| context.unsupported("a data_type", "no text")),
    }
}

/// What a field is called whose bytes are in the other order. No metadata of others have it: v3 has no such fields, and what is
/// read of v2 is said by it.
const BIG: &str = "hyperslab.big_endian";

/// The same as the metadata say it, or what Zarr has no name for.
pub(super) fn to_value(kind: Kind) -> Result<Value, String> {
    let Kind::Opaque(opaque) = kind else { return Ok(kind.name().into()) };
    match opaque.fields() {
        Some(fields) => structured_value(&fields_of_text(fields)?),
        None => Ok(opaque_value(opaque)),
    }
}

/// Refuses a type for which v3 has no name.
pub(super) fn check_named(kind: Kind) -> Result<(), String> {
    fn check(fields: &[Field]) -> Result<(), String> {
        fields.iter().try_for_each(|field| match &field.holds {
            FieldType::Element(ElementType { kind, order }) if kind.swap_bytes() > 1 && *order == ByteOrder::Big => {
                Err(format!("the big-endian field '{}'", field.name))
            }
            FieldType::Characters(_, false) => Err(format!("the big-endian field '{}'", field.name)),
            FieldType::Fields(fields) => check(fields),
            _ => Ok(()),
        })
    }
    let Kind::Opaque(opaque) = kind else { return Ok(()) };
    opaque.fields().map_or(Ok(()), |fields| check(&fields_of_text(fields)?))
}

fn structured_value(fields: &[Field]) -> Result<Value, String> {
    if !fields.iter().is_sorted_by_key(|field| field.place) {
        return Err("fields in another order than that in which they lie".into());
    }
    let pair = |field: &Field| {
        let Field { name, holds, shape, .. } = field;
        let what = match holds {
            _ if name.is_empty() => return Err("gaps between fields".into()),
            _ if !shape.is_empty() => return Err(format!("the field '{name}', which holds arrays")),
            FieldType::Element(ElementType { kind, order }) if kind.swap_bytes() > 1 && *order == ByteOrder::Big => {
                json!({"name": BIG, "configuration": {"data_type": to_value(*kind)?}})
            }
            FieldType::Characters(count, false) => {
                let of = sized("fixed_length_utf32", u64::from(*count) * 4);
                json!({"name": BIG, "configuration": {"data_type": of}})
            }
            FieldType::Element(element) => to_value(element.kind)?,
            FieldType::Bytes(count) => sized("null_terminated_bytes", u64::from(*count)),
            FieldType::Characters(count, true) => sized("fixed_length_utf32", u64::from(*count) * 4),
            FieldType::Fields(fields) => structured_value(fields)?,
        };
        Ok(json!([name, what]))
    };
    let fields = fields.iter().map(pair).collect::<Result<Vec<_>, String>>()?;
    Ok(json!({"name": "structured", "configuration": {"fields": fields}}))
}

fn opaque_value(opaque: Opaque) -> Value {
    if opaque.is_of_any_length() {
        return DATA_TYPE.into();
    }
    if opaque.is_text() {
        let name = if opaque.swap_bytes() == 1 { "null_terminated_bytes" } else { "fixed_length_utf32" };
        return sized(name, opaque.bytes().into());
    }
    if let Some((kind, unit)) = opaque.time() {
        let name = if kind == "M8" { "numpy.datetime64" } else { "numpy.timedelta64" };
        let digits = unit.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(0);
        let (count, unit) = unit.split_at(digits);
        let unit = if unit.is_empty() { "generic" } else { unit };
        return json!({"name": name, "configuration":
            {"unit": unit, "scale_factor": count.parse::<u32>().unwrap_or(1)}});
    }
    opaque.float().map_or_else(|| sized("raw_bytes", opaque.bytes().into()), Value::from)
}

fn sized(name: &str, bytes: u64) -> Value {
    json!({"name": name, "configuration": {"length_bytes": bytes}})
}

fn field_type(value: Value, context: Context) -> Result<FieldType, Error> {
    let mut named = Named::parse(value, "data_type", context)?;
    if let Some(kind) = Kind::from_name(&named.name) {
        named.finish(context)?;
        return Ok(FieldType::Element(ElementType { kind, order: ByteOrder::Little }));
    }
    let name = named.name.clone();
    let found = match name.as_str() {
        "numpy.datetime64" => time("M8", &mut named, context)?,
        "numpy.timedelta64" => time("m8", &mut named, context)?,
        "raw_bytes" => plain(length(&mut named, 1, context)?),
        "null_terminated_bytes" => FieldType::Bytes(length(&mut named, 1, context)?),
        "fixed_length_utf32" => FieldType::Characters(length(&mut named, 4, context)?, true),
        BIG => match field_type(named.take("data_type").unwrap_or_default(), context)? {
            FieldType::Element(element) => FieldType::Element(ElementType { order: ByteOrder::Big, ..element }),
            FieldType::Characters(count, _) => FieldType::Characters(count, false),
            _ => return Err(unknown(BIG, context)),
        },
        "structured" | "struct" => FieldType::Fields(fields(&mut named, context)?),
        other => match (bits(other), Opaque::from_code(other).filter(|opaque| opaque.float().is_some())) {
            (Some(bytes), _) => plain(bytes),
            (None, Some(float)) => FieldType::Element(ElementType::native(Kind::Opaque(float))),
            (None, None) => return Err(unknown(other, context)),
        },
    };
    named.finish(context)?;
    Ok(found)
}

fn unknown(name: &str, context: Context) -> Error {
    let hint = match name {
        "bytes" | "variable_length_bytes" => "write bytes of a fixed length, or texts",
        _ => "convert the array to one of the supported data types",
    };
    let expected = "data_type bool, int8 to int64, uint8 to uint64, float16 to float64, bfloat16, complex64, complex128, \
                    float8_*, numpy.datetime64, numpy.timedelta64, fixed_length_utf32, null_terminated_bytes, structured, raw_bytes or string";
    context.unsupported(expected, format!("'{}'", excerpt(name))).with_hint(hint)
}

fn plain(bytes: u32) -> FieldType {
    FieldType::Element(ElementType::native(Kind::opaque(bytes)))
}

/// The size of plain bytes as the core specification names them: `r` and a number of bits.
fn bits(name: &str) -> Option<u32> {
    let bits: u32 = name.strip_prefix('r').filter(|digits| !digits.starts_with('+'))?.parse().ok()?;
    (bits > 0 && bits.is_multiple_of(8)).then_some(bits / 8)
}

/// The member "length_bytes", in units of so many bytes.
fn length(named: &mut Named, unit: u64, context: Context) -> Result<u32, Error> {
    let value = named.take("length_bytes").unwrap_or(Value::Null);
    let length = value.as_u64().filter(|bytes| *bytes > 0 && bytes.is_multiple_of(unit));
    length.and_then(|bytes| u32::try_from(bytes / unit).ok()).ok_or_else(|| {
        let expected = format!("length_bytes of '{}' as a multiple of {unit}", named.name);
        context.corrupt(expected, text(&value))
    })
}

fn time(code: &str, named: &mut Named, context: Context) -> Result<FieldType, Error> {
    let (unit, count) = (named.take("unit").unwrap_or_default(), named.take("scale_factor").unwrap_or_default());
    let code = match (unit.as_str(), count.as_u64()) {
        (Some("generic"), Some(1)) => Some(code.to_owned()),
        (Some(unit), Some(count)) => {
            // Both letters that people take for the Greek one.
            let unit = if matches!(unit, "\u{b5}s" | "\u{3bc}s") { "us" } else { unit };
            let count = if count == 1 { String::new() } else { count.to_string() };
            Some(format!("{code}[{count}{unit}]"))
        }
        _ => None,
    };
    let found = code.and_then(|code| Opaque::from_code(&code)).ok_or_else(|| {
        let expected = format!("a unit and a scale_factor of '{}'", named.name);
        context.corrupt(expected, format!("{} and {}", text(&unit), text(&count)))
    })?;
    Ok(FieldType::Element(ElementType { kind: Kind::Opaque(found), order: ByteOrder::Little }))
}

/// Refuses elements so large that one alone takes much memory: a few bytes of metadata can ask for 4 GiB.
pub(super) fn check_size(kind: Kind, context: Context) -> Result<(), Error> {
    match kind.bytes() {
        0..=ELEMENT_BYTES_MAX => Ok(()),
        bytes => Err(context.unsupported(format!("elements of at most {ELEMENT_BYTES_MAX} B"), format!("{bytes} B"))),
    }
}

/// Fields as pairs of name and type, or as objects with "name" and "data_type".
fn fields(named: &mut Named, context: Context) -> Result<Vec<Field>, Error> {
    let value = named.take("fields").unwrap_or(Value::Null);
    let wrong = || context.corrupt("fields as a list of names and data types", text(&value));
    let one = |item: &Value| {
        let (name, of) = match item {
            Value::Array(pair) if pair.len() == 2 => (&pair[0], &pair[1]),
            Value::Object(_) => (&item["name"], &item["data_type"]),
            _ => return Err(wrong()),
        };
        let name = name.as_str().filter(|name| !name.is_empty() && !name.chars().any(char::is_control));
        let name = name.ok_or_else(wrong)?.to_owned();
        let holds = field_type(of.clone(), context)?;
        if let FieldType::Element(ElementType { kind, .. }) = holds {
            let small = matches!(kind, Kind::Opaque(opaque) if opaque.float().is_some());
            if kind == Kind::BFloat16 || small {
                return Err(context.unsupported("fields of types that NumPy has", kind.to_string()));
            }
        }
        Ok(Field { name, holds, shape: Vec::new(), place: 0 })
    };
    let fields = value.as_array().filter(|fields| !fields.is_empty()).ok_or_else(wrong)?;
    let fields = fields.iter().map(one).collect::<Result<Vec<_>, Error>>()?;
    if name_twice(&fields).is_some() { Err(wrong()) } else { Ok(fields) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: Value) -> Result<Kind, Error> {
        parse(value, Context::new("read", "a/zarr.json"))
    }

    fn kind(code: &str) -> Kind {
        ElementType::from_numpy(code).unwrap().kind
    }

    #[test]
    fn types_come_back() {
        let time = |name: &str, unit: &str, count: u32| json!({"name": name, "configuration": {"unit": unit, "scale_factor": count}});
        let fields = json!([["a", "int32"], ["p", {"name": "structured", "configuration": {"fields": [["x", "float32"]]}}],
            ["s", sized("null_terminated_bytes", 3)], ["u", sized("fixed_length_utf32", 8)],
            ["t", time("numpy.datetime64", "s", 1)]]);
        for (code, value) in [
            ("<f4", json!("float32")),
            ("M8[ns]", time("numpy.datetime64", "ns", 1)),
            ("m8[10s]", time("numpy.timedelta64", "s", 10)),
            ("m8", time("numpy.timedelta64", "generic", 1)),
            ("V5", sized("raw_bytes", 5)),
            ("S5", sized("null_terminated_bytes", 5)),
            ("U5", sized("fixed_length_utf32", 20)),
            ("float8_e4m3fn", json!("float8_e4m3fn")),
            (
                "V27[('a', '<i4'), ('p', [('x', '<f4')]), ('s', '|S3'), ('u', '<U2'), ('t', '<M8[s]')]",
                json!({"name": "structured", "configuration": {"fields": fields}}),
            ),
        ] {
            assert_eq!(to_value(kind(code)), Ok(value.clone()));
            assert_eq!(parsed(value).unwrap(), kind(code), "{code}");
        }
        let object = json!({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int8"}]}});
        assert_eq!(parsed(object).unwrap(), kind("V1[('a', '|i1')]"));
        assert_eq!(parsed(json!("r24")).unwrap(), kind("V3"));
        assert_eq!(parsed(time("numpy.datetime64", "\u{b5}s", 1)).unwrap(), kind("M8[us]"));
    }

    #[test]
    fn what_zarr_has_no_name_for_is_said() {
        for (code, said) in
            [("V8[('a', '<i4', (2,))]", "'a', which holds arrays"), ("V12[('a', '<i4'), ('', '|V8')]", "gaps")]
        {
            assert!(to_value(kind(code)).unwrap_err().contains(said), "{code}");
        }
        for code in ["V4[('a', '>i4')]", "V5[('b', '|i1'), ('x', [('a', '>U1')])]"] {
            assert!(check_named(kind(code)).unwrap_err().contains("big-endian field 'a'"), "{code}");
            assert_eq!(parsed(to_value(kind(code)).unwrap()).unwrap(), kind(code));
        }
        assert_eq!(check_named(kind("V4[('a', '<i4')]")), Ok(()));
    }

    #[test]
    fn nonsense_is_refused() {
        let fields = |fields: Value| json!({"name": "structured", "configuration": {"fields": fields}});
        for value in [
            json!("r12"),
            json!("r0"),
            json!("r+8"),
            json!("float8"),
            json!("bytes"),
            json!({"name": "string", "configuration": {"length": 1}}),
            sized("raw_bytes", 0),
            sized("fixed_length_utf32", 6),
            sized("null_terminated_bytes", 0),
            json!({"name": "raw_bytes", "configuration": {"length_bytes": 4, "more": 1}}),
            json!({"name": "numpy.datetime64", "configuration": {"unit": "fortnight", "scale_factor": 1}}),
            json!({"name": "numpy.datetime64", "configuration": {"unit": "generic", "scale_factor": 2}}),
            json!({"name": "numpy.datetime64"}),
            fields(json!([])),
            fields(json!([["a", "string"]])),
            fields(json!([["", "int8"]])),
            fields(json!([["a", "int8"], ["a", "int8"]])),
            fields(json!([["a"]])),
            fields(json!([["a", "bfloat16"]])),
            fields(json!([["a", "float8_e5m2"]])),
            fields(json!([["a", sized("raw_bytes", u64::from(u32::MAX))], ["b", "int8"]])),
        ] {
            assert!(parsed(value.clone()).is_err(), "{value}");
        }
    }
}
