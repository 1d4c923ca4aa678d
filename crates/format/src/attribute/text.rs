//! Values as people read them: in messages, and where ranks compare what they were asked.

use super::plain::plain_values;
use super::policy::SHOWN_MAX;
use super::value::{AttributeValue, Elements, KeptValue, Texts};
use serde_json::Value as Json;

/// A value as Python shows it, with its type where it has one. Values that differ are shown differently.
pub fn shown(value: &AttributeValue) -> String {
    match value {
        AttributeValue::Plain(value) => shown_plain(value),
        AttributeValue::Elements(elements) => shown_elements(elements),
        AttributeValue::Texts(Texts { shape, texts }) => {
            let each: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            match shape.as_deref() {
                None => "no texts".into(),
                Some([]) => each.concat(),
                Some(shape) => format!("texts of shape {} [{}]", hyperslab_layout::tuple(shape), each.join(", ")),
            }
        }
        AttributeValue::Kept(KeptValue { what, .. }) => what.clone(),
    }
}

/// A number, text, list or mapping as Python shows it.
pub fn shown_plain(value: &Json) -> String {
    match value {
        Json::Null => "None".into(),
        Json::Bool(yes) => if *yes { "True" } else { "False" }.into(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => format!("'{text}'"),
        Json::Array(items) => format!("[{}]", items.iter().map(shown_plain).collect::<Vec<_>>().join(", ")),
        Json::Object(members) => {
            let member = |(name, of): (&String, &Json)| format!("'{name}': {}", shown_plain(of));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
    }
}

fn shown_elements(elements: &Elements) -> String {
    let Elements { of, shape, bytes } = elements;
    let kind = of.element().map_or_else(|| format!("bytes of {} B", of.bytes()), |element| element.to_string());
    let Some(shape) = shape else { return format!("no elements of type {kind}") };
    let size = if shape.is_empty() { String::new() } else { format!(" of shape {}", hyperslab_layout::tuple(shape)) };
    let plain = plain_values(elements).filter(|_| elements.each().nth(SHOWN_MAX).is_none());
    match plain.map(|plain| shown_plain(&plain)) {
        // NaNs differ in bits that are not shown.
        Some(text) if !text.contains("NaN") => format!("{kind}{size} {text}"),
        Some(text) => format!("{kind}{size} {text} (bits {:08x})", crc32c::crc32c(bytes)),
        None if bytes.len() <= SHOWN_MAX && of.element().is_none() => format!("{kind}{size} {}", quoted(bytes)),
        None => format!("{kind}{size} (bits {:08x})", crc32c::crc32c(bytes)),
    }
}

fn quoted(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => format!("'{text}'"),
        Err(_) => format!("b'{}'", text.escape_ascii()),
    }
}
