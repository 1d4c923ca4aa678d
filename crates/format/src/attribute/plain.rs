//! Values without a type, and what elements are in JSON.

use super::policy::EMPTY_ROWS_MAX;
use super::value::{AttributeValue, Elements, ValueType, in_order};
use crate::words::odd_number;
use half::{bf16, f16};
use hyperslab_layout::{ByteOrder, ElementType, Kind};
use serde_json::{Number, Value as Json};

/// Plain values in an array, row after row.
pub(crate) struct PlainArray<'a> {
    pub(crate) shape: Vec<u64>,
    each: Vec<&'a Json>,
}

/// What all values of a plain array are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlainKind {
    Truth,
    /// Integers from this one to that one.
    Integer(i128, i128),
    Real,
    Text,
}

/// The array that a plain value is: lists in lists are dimensions. `None` of mappings, of nothing, of unlike values, and of rows
/// that are not equally long.
pub(crate) fn typed(value: &Json) -> Option<(PlainArray<'_>, PlainKind)> {
    let (mut shape, mut each) = (Vec::new(), vec![value]);
    while let Some(Json::Array(first)) = each.first() {
        shape.push(first.len() as u64);
        let rows = each.iter().map(|row| row.as_array().filter(|row| row.len() == first.len()));
        each = rows.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    }
    let kind = kind_of(&each)?;
    Some((PlainArray { shape, each }, kind))
}

fn kind_of(each: &[&Json]) -> Option<PlainKind> {
    if !each.is_empty() && each.iter().all(|value| value.is_boolean()) {
        return Some(PlainKind::Truth);
    }
    if !each.is_empty() && each.iter().all(|value| value.is_string()) {
        return Some(PlainKind::Text);
    }
    let numbers = each.iter().map(|value| if let Json::Number(number) = value { Some(number) } else { None });
    let numbers = numbers.collect::<Option<Vec<&Number>>>()?;
    let integers = numbers.iter().map(|number| integer(number)).collect::<Option<Vec<i128>>>();
    if let Some((least, most)) = integers.and_then(|all| Some((*all.iter().min()?, *all.iter().max()?))) {
        return Some(PlainKind::Integer(least, most));
    }
    numbers.iter().all(|number| real(number).is_some()).then_some(PlainKind::Real)
}

/// An integer of any type; `None` of what is written with a fraction.
fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// A number as a float64, `None` where it has none near it: integers that no type holds, and what would become infinite.
fn real(number: &Number) -> Option<f64> {
    let text = number.as_str();
    let found: f64 = text.parse().ok()?;
    let is_whole = text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    let fits = integer(number).is_some() || !is_whole;
    (fits && (found.is_finite() || odd_number(text).is_some())).then_some(found)
}

impl<'a> PlainArray<'a> {
    /// The values as elements of this type, where each is one.
    pub(crate) fn elements(&self, element: ElementType) -> Option<Elements> {
        let mut bytes = Vec::with_capacity(self.each.len() * element.bytes() as usize);
        for value in &self.each {
            bytes.extend(in_order(&one(element.kind, value)?, element));
        }
        Elements::new(ValueType::Element(element), Some(self.shape.clone()), bytes)
    }

    /// The texts that the values are.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a str> {
        self.each.iter().filter_map(|value| value.as_str())
    }
}

/// One native element of a plain value: a number that the kind has, however it is written.
fn one(kind: Kind, value: &Json) -> Option<Vec<u8>> {
    let number = match value {
        Json::Bool(truth) => &Number::from(u8::from(*truth)),
        Json::Number(number) => number,
        _ => return None,
    };
    // What a kind has no room for does not become infinite.
    let finite =
        |bytes: Vec<u8>, is_finite: bool| real(number).filter(|real| is_finite || !real.is_finite()).map(|_| bytes);
    match kind {
        Kind::Float64 => real(number).map(|real| real.to_ne_bytes().into()),
        Kind::Float32 => {
            real(number).map(|real| real as f32).and_then(|n| finite(n.to_ne_bytes().into(), n.is_finite()))
        }
        Kind::Float16 => real(number).map(f16::from_f64).and_then(|n| finite(n.to_ne_bytes().into(), n.is_finite())),
        Kind::BFloat16 => real(number).map(bf16::from_f64).and_then(|n| finite(n.to_ne_bytes().into(), n.is_finite())),
        Kind::Complex64 => Some([one(Kind::Float32, value)?, vec![0; 4]].concat()),
        Kind::Complex128 => Some([one(Kind::Float64, value)?, vec![0; 8]].concat()),
        Kind::Opaque(_) => None,
        kind => {
            let whole = || real(number).filter(|real| real.fract() == 0.0).map(|real| real as i128);
            let found = integer(number).or_else(whole)?;
            let bits = if kind == Kind::Bool { 1 } else { 8 * kind.bytes() as u32 };
            let signed = matches!(kind, Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64);
            let range = if signed { -1_i128 << (bits - 1)..1_i128 << (bits - 1) } else { 0..1_i128 << bits };
            let little = ElementType { kind, order: ByteOrder::Little };
            range.contains(&found).then(|| in_order(&found.to_le_bytes()[..kind.bytes() as usize], little))
        }
    }
}

impl AttributeValue {
    /// The number that it is, if it is one real number that a float64 can be.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            AttributeValue::Plain(Json::Number(number)) => number.as_str().parse().ok(),
            AttributeValue::Elements(elements) if elements.shape.as_ref().is_some_and(Vec::is_empty) => {
                let json = plain_values(elements)?;
                if let Json::Number(number) = json { number.as_str().parse().ok() } else { None }
            }
            _ => None,
        }
    }

    /// The integer that it is, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            AttributeValue::Plain(value) => value.as_i64(),
            AttributeValue::Elements(elements) => plain_values(elements)?.as_i64(),
            _ => None,
        }
    }
}

impl AttributeValue {
    /// The elements that it is: of a plain value, truth values, integers of 64 bits, or float64. `None` of texts, of what is only
    /// kept, and of plain values that are no array of numbers.
    pub fn to_elements(&self) -> Option<Elements> {
        match self {
            AttributeValue::Elements(elements) => Some(elements.clone().native()),
            AttributeValue::Plain(value) => {
                let (array, kind) = typed(value)?;
                let kind = match kind {
                    PlainKind::Truth => Kind::Bool,
                    PlainKind::Integer(_, most) if most > i128::from(i64::MAX) => Kind::UInt64,
                    PlainKind::Integer(..) => Kind::Int64,
                    PlainKind::Real => Kind::Float64,
                    PlainKind::Text => return None,
                };
                array.elements(ElementType::native(kind))
            }
            AttributeValue::Texts(_) | AttributeValue::Kept(_) => None,
        }
    }

    /// The same elements as another kind of real numbers, where each of them is one.
    pub fn to_elements_of(&self, kind: Kind) -> Option<Elements> {
        let elements = self.to_elements()?;
        let element = ElementType::native(kind);
        if elements.of == ValueType::Element(element) {
            return Some(elements);
        }
        typed(&plain_values(&elements)?)?.0.elements(element)
    }

    /// The texts that it is, and their shape. `None` where it is no text.
    pub fn to_texts(&self) -> Option<(Vec<u64>, Vec<Vec<u8>>)> {
        match self {
            AttributeValue::Plain(value) => {
                let (array, _) = typed(value).filter(|(_, kind)| *kind == PlainKind::Text)?;
                Some((array.shape.clone(), array.texts().map(|text| text.as_bytes().to_vec()).collect()))
            }
            AttributeValue::Texts(texts) => Some((texts.shape.clone()?, texts.texts.clone())),
            AttributeValue::Elements(elements @ Elements { of: ValueType::Bytes(_), .. }) => {
                let text = |bytes: &[u8]| {
                    bytes[..bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)].to_vec()
                };
                Some((elements.shape.clone()?, elements.each().map(text).collect()))
            }
            AttributeValue::Elements(_) | AttributeValue::Kept(_) => None,
        }
    }
}

/// Elements as JSON: numbers and truth values, in lists of lists where there are dimensions. `None` where JSON has no such values.
pub(crate) fn plain_values(elements: &Elements) -> Option<Json> {
    let ValueType::Element(element) = elements.of else { return None };
    if element.kind.is_opaque() || element.kind.is_complex() {
        return None;
    }
    let each = elements.each().map(|stored| plain_of(element.kind, &in_order(stored, element)));
    rows(each.collect::<Option<Vec<_>>>()?, elements.shape.as_ref()?)
}

/// A native number as JSON has it.
fn plain_of(kind: Kind, native: &[u8]) -> Option<Json> {
    let real = match kind {
        Kind::Float16 => f16::from_ne_bytes(*native.first_chunk()?).to_f64(),
        Kind::BFloat16 => bf16::from_ne_bytes(*native.first_chunk()?).to_f64(),
        Kind::Float32 => f32::from_ne_bytes(*native.first_chunk()?).into(),
        Kind::Float64 => f64::from_ne_bytes(*native.first_chunk()?),
        Kind::Bool => return Some((*native.first()? != 0).into()),
        _ => return Some(integer_of(kind, native)),
    };
    Some(Json::Number(number_of(real)))
}

/// A native integer as JSON has it.
fn integer_of(kind: Kind, native: &[u8]) -> Json {
    let mut bytes = [0; 8];
    let little = in_order(native, ElementType { kind, order: ByteOrder::Little });
    bytes[..little.len()].copy_from_slice(&little);
    let (bits, unused) = (u64::from_le_bytes(bytes), 64 - 8 * little.len() as u32);
    let signed = matches!(kind, Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64);
    if signed { (((bits << unused) as i64) >> unused).into() } else { bits.into() }
}

/// A float as a number of JSON, or as one of the words that Python writes for those that are none.
pub(crate) fn number_of(real: f64) -> Number {
    let word = if real.is_nan() {
        "NaN"
    } else if real > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    Number::from_f64(real).or_else(|| odd_number(word)).expect("the words are known")
}

/// A list of lists, as deep as there are dimensions.
pub(crate) fn rows(each: Vec<Json>, shape: &[u64]) -> Option<Json> {
    // Of nothing, there may be as many rows as a file says.
    let lists =
        shape.iter().take_while(|extent| **extent > 0).try_fold(1u64, |all, extent| all.checked_mul(*extent))?;
    let fits = !each.is_empty() || lists <= EMPTY_ROWS_MAX;
    fits.then(|| nested(each, shape))?
}

fn nested(mut each: Vec<Json>, shape: &[u64]) -> Option<Json> {
    Some(match shape {
        [] => each.pop()?,
        [0, ..] => Json::Array(Vec::new()),
        [_] => Json::Array(each),
        [count, inner @ ..] => {
            let length = each.len() / *count as usize;
            let row = |number: usize| nested(each[number * length..(number + 1) * length].to_vec(), inner);
            Json::Array((0..*count as usize).map(row).collect::<Option<Vec<_>>>()?)
        }
    })
}
