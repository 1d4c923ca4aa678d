//! The attribute that says which elements mean nothing.

use super::fill::{fill_from_json, fill_to_json};
use super::json::text;
use crate::attribute::{AttributeValue, Elements, number_of};
use crate::base64;
use crate::error::{Context, Error};
use crate::words::odd_number;
use hyperslab_layout::{ElementType, Kind};
use serde_json::{Map, Value};

/// `_FillValue` of arrays of floats, as xarray has it in Zarr v3: the bytes of a float64 in base64, of complex numbers a
/// list of two. What is no number stays as it is. `name` is that of the array, for errors.
///
/// # Errors
/// When it is NaN or infinite, and the elements cannot be.
pub(super) fn encode_fill_attribute(kind: Kind, attributes: &mut Map<String, Value>, name: &str) -> Result<(), Error> {
    let Some(value) = attributes.get_mut(FILL_ATTRIBUTE) else { return Ok(()) };
    *value = worded(value);
    let wide = match kind {
        Kind::Float16 | Kind::BFloat16 | Kind::Float32 | Kind::Float64 => Kind::Float64,
        Kind::Complex64 | Kind::Complex128 => Kind::Complex128,
        _ if matches!(value.as_str(), Some("NaN" | "Infinity" | "-Infinity")) => {
            let context = Context::new("use the attribute _FillValue of", name);
            return Err(context.invalid(format!("a value of {kind}"), text(value)));
        }
        _ => return Ok(()),
    };
    // As elements have it, so that it equals them.
    let narrow = fill_from_json(kind, value, FILL_ATTRIBUTE).ok().and_then(|bytes| fill_to_json(kind, &bytes));
    let Ok(bytes) = fill_from_json(wide, narrow.as_ref().unwrap_or(value), FILL_ATTRIBUTE) else { return Ok(()) };
    let encoded = |native: &[u8]| {
        let bits = f64::from_ne_bytes(*native.first_chunk().unwrap_or(&[0; 8])).to_bits();
        Value::from(base64::encode(&bits.to_le_bytes()))
    };
    *value = if wide == Kind::Float64 { encoded(&bytes) } else { bytes.chunks(8).map(encoded).collect() };
    Ok(())
}

/// The same value with those numbers as words that JSON does not have.
fn worded(value: &Value) -> Value {
    match value {
        Value::Number(number) if odd_number(number.as_str()).is_some() => number.as_str().into(),
        Value::Array(items) => items.iter().map(worded).collect(),
        other => other.clone(),
    }
}

/// The reverse, as far as it is one: the number that the attribute is.
pub(super) fn decode_fill_attribute(kind: Kind, value: &Value) -> Option<AttributeValue> {
    let is_float = match kind {
        Kind::Opaque(opaque) => opaque.float().is_some(),
        kind => kind.has_nan(),
    };
    let one = |value: &Value| {
        let text = value.as_str()?;
        let bits = || Some(f64::from_le_bytes(base64::decode(text)?.try_into().ok()?));
        odd_number(text).and_then(|number| number.as_str().parse().ok()).or_else(bits)
    };
    let number = |value: &Value| one(value).or_else(|| value.as_f64());
    let wide = |kind, bytes: &[u8]| AttributeValue::Elements(Elements::one(ElementType::native(kind), bytes));
    match value {
        _ if !is_float => None,
        Value::Array(parts) => match parts.as_slice() {
            [real, imaginary] if kind.is_complex() => {
                let parts = [number(real)?.to_ne_bytes(), number(imaginary)?.to_ne_bytes()].concat();
                Some(wide(Kind::Complex128, &parts))
            }
            parts => {
                let numbers = parts.iter().map(|part| number(part).map(|part| Value::Number(number_of(part))));
                numbers.collect::<Option<Vec<_>>>().map(|numbers| Value::Array(numbers).into())
            }
        },
        text => one(text).map(|real| wide(Kind::Float64, &real.to_ne_bytes())),
    }
}

/// What elements are that mean nothing, to CF and xarray.
pub(super) const FILL_ATTRIBUTE: &str = "_FillValue";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_attribute_is_that_of_xarray() {
        let encoded = |kind, value: Value| {
            let mut attributes = json!({"_FillValue": value, "units": "K"}).as_object().unwrap().clone();
            encode_fill_attribute(kind, &mut attributes, "rho").unwrap();
            attributes["_FillValue"].clone()
        };
        assert_eq!(encoded(Kind::Float32, json!("NaN")), json!("AAAAAAAA+H8="));
        assert_eq!(encoded(Kind::Float64, json!(-9999)), json!("AAAAAICHw8A="));
        assert_eq!(encoded(Kind::Float32, json!(0.1)), encoded(Kind::Float64, json!(f64::from(0.1_f32))));
        assert_eq!(encoded(Kind::Complex64, json!([1.0, "NaN"])), json!(["AAAAAAAA8D8=", "AAAAAAAA+H8="]));
        let mut nan = json!({"_FillValue": "NaN"}).as_object().unwrap().clone();
        let error = encode_fill_attribute(Kind::Int16, &mut nan, "rho").unwrap_err();
        assert!(error.to_string().contains("int16"), "{error}");
        assert_eq!(encoded(Kind::Int16, json!(-1)), json!(-1));
        assert_eq!(encoded(Kind::Float32, json!("AAAAAAAA+H8=")), json!("AAAAAAAA+H8="));
    }
}
