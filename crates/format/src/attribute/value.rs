//! What attributes are.

use hyperslab_layout::ElementType;
use indexmap::IndexMap;
use serde_json::Value as Json;

/// Attributes of something, by their names, in their order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Attributes(IndexMap<String, AttributeValue>);

/// The value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub enum AttributeValue {
    /// What has no type but that of JSON: a text, a number (also NaN and infinity), a truth value, a list, a mapping, nothing.
    Plain(Json),
    /// Elements of one type.
    Elements(Elements),
    /// Texts in an array, or one that is not UTF-8.
    Texts(Texts),
    /// What is kept where it is and can be written nowhere else.
    Kept(KeptValue),
}

/// Elements of one type, in an array.
#[derive(Clone, PartialEq, Debug)]
pub struct Elements {
    /// Their type.
    pub of: ValueType,
    /// The shape, empty for one element; `None` where there are none, and no shape either (HDF5 calls that a null dataspace).
    pub shape: Option<Vec<u64>>,
    /// The elements, in the order of bytes that the type says.
    pub bytes: Vec<u8>,
}

/// A type of values.
#[derive(Clone, PartialEq, Debug)]
pub enum ValueType {
    /// A number, a truth value, a date, a record, or bytes that mean nothing here.
    Element(ElementType),
    /// Text in so many bytes, of no known character set, filled up with zeros: NumPy's `S`.
    Bytes(u32),
    /// An integer whose values have names.
    Enumeration(ElementType, Vec<(String, Vec<u8>)>),
}

/// Texts in an array; UTF-8, but for those of others.
#[derive(Clone, PartialEq, Debug)]
pub struct Texts {
    /// The shape, as that of [`Elements`].
    pub shape: Option<Vec<u64>>,
    /// The texts.
    pub texts: Vec<Vec<u8>>,
}

/// What is not understood, or means something only where it is.
#[derive(Clone, PartialEq, Debug)]
pub struct KeptValue {
    /// What it is: `a reference to an object`.
    pub what: String,
    /// Its shape, as that of [`Elements`].
    pub shape: Option<Vec<u64>>,
}

impl ValueType {
    /// Size of an element \[B\].
    pub fn bytes(&self) -> u64 {
        match self {
            ValueType::Element(element) | ValueType::Enumeration(element, _) => element.bytes(),
            ValueType::Bytes(bytes) => u64::from(*bytes),
        }
    }

    /// The type of each element, where it is no text.
    pub fn element(&self) -> Option<ElementType> {
        match self {
            ValueType::Element(element) | ValueType::Enumeration(element, _) => Some(*element),
            ValueType::Bytes(_) => None,
        }
    }

    /// NumPy's code, such as `<f8` or `|S3`.
    pub fn numpy(&self) -> String {
        match self {
            ValueType::Element(element) | ValueType::Enumeration(element, _) => element.numpy(),
            ValueType::Bytes(bytes) => format!("|S{bytes}"),
        }
    }

    /// The type that NumPy calls so, with names of values if it is an enumeration.
    pub fn from_numpy(code: &str, members: Vec<(String, Vec<u8>)>) -> Option<ValueType> {
        if let Some(bytes) = code.strip_prefix("|S").or_else(|| code.strip_prefix('S')) {
            return bytes.parse().ok().filter(|bytes| *bytes > 0).map(ValueType::Bytes);
        }
        let element = ElementType::from_numpy(code)?;
        Some(if members.is_empty() { ValueType::Element(element) } else { ValueType::Enumeration(element, members) })
    }
}

impl Elements {
    /// Elements of a type in an array of this shape; `None` where there are not as many bytes.
    pub fn new(of: ValueType, shape: Option<Vec<u64>>, bytes: Vec<u8>) -> Option<Elements> {
        let count = shape.as_ref().map_or(Some(0), |shape| crate::size::array_bytes(shape, of.bytes()))?;
        (count == bytes.len() as u64).then_some(Elements { of, shape, bytes })
    }

    /// One number in the byte order of this machine.
    pub fn one(element: ElementType, native: &[u8]) -> Elements {
        debug_assert_eq!(element.bytes(), native.len() as u64);
        Elements { of: ValueType::Element(element), shape: Some(Vec::new()), bytes: in_order(native, element) }
    }

    /// The same numbers in the order of bytes of this machine; what is no number stays as it is.
    pub fn native(self) -> Elements {
        let ValueType::Element(element) = self.of else { return self };
        let native = ElementType::native(element.kind);
        if element == native || element.kind.is_opaque() {
            return self;
        }
        let bytes = in_order(&self.bytes, element);
        Elements { of: ValueType::Element(native), bytes, ..self }
    }

    /// Each element, in the order of bytes of its type.
    pub fn each(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.of.bytes().max(1) as usize)
    }
}

impl Attributes {
    /// None.
    pub fn new() -> Attributes {
        Attributes::default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of one.
    pub fn get(&self, name: &str) -> Option<&AttributeValue> {
        self.0.get(name)
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sets one, in its place where it is there, else behind the others.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<AttributeValue>) {
        self.0.insert(name.into(), value.into());
    }

    /// Takes one away.
    pub fn remove(&mut self, name: &str) -> Option<AttributeValue> {
        self.0.shift_remove(name)
    }

    /// Names and values, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &AttributeValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl std::ops::Index<&str> for Attributes {
    type Output = AttributeValue;

    fn index(&self, name: &str) -> &AttributeValue {
        &self.0[name]
    }
}

impl<N: Into<String>, V: Into<AttributeValue>> FromIterator<(N, V)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(all: I) -> Attributes {
        Attributes(all.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl IntoIterator for Attributes {
    type Item = (String, AttributeValue);
    type IntoIter = indexmap::map::IntoIter<String, AttributeValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl AttributeValue {
    /// A text, perhaps in another encoding than UTF-8.
    pub fn text(bytes: Vec<u8>) -> AttributeValue {
        match String::from_utf8(bytes) {
            Ok(text) => AttributeValue::Plain(text.into()),
            Err(other) => AttributeValue::Texts(Texts { shape: Some(Vec::new()), texts: vec![other.into_bytes()] }),
        }
    }

    /// The text that it is, if it is one in UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        if let AttributeValue::Plain(value) = self { value.as_str() } else { None }
    }
}

impl<T: Into<Json>> From<T> for AttributeValue {
    fn from(value: T) -> AttributeValue {
        AttributeValue::Plain(value.into())
    }
}

/// What becomes of attributes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AttributeEdit {
    /// Whether all that are there go first.
    pub clear: bool,
    /// Those that go.
    pub removed: Vec<String>,
    /// Those that are set, and to what.
    pub set: Attributes,
}

impl AttributeEdit {
    /// One that sets these and leaves the others.
    pub fn setting(set: Attributes) -> AttributeEdit {
        AttributeEdit { set, ..AttributeEdit::default() }
    }

    /// Changes attributes.
    pub fn apply(&self, attributes: &mut Attributes) {
        let stays = |name: &String| !self.clear && !self.removed.contains(name) && !self.set.has(name);
        attributes.0.retain(|name, _| stays(name));
        attributes.0.extend(self.set.clone());
    }
}

/// An element in the order of its type, of one in the order of this machine; or the reverse.
pub(crate) fn in_order(one: &[u8], element: ElementType) -> Vec<u8> {
    let mut one = one.to_vec();
    if element.order != hyperslab_layout::ByteOrder::NATIVE {
        one.chunks_exact_mut(element.kind.swap_bytes().max(1) as usize).for_each(<[u8]>::reverse);
    }
    one
}
