//! Fields of structured types, as NumPy describes them: `[('a', '<i4'), ('b', '<f8', (2,))]`.

use crate::npy::literal::{Literal, literal};
use hyperslab_layout::{ByteOrder, ElementType, Kind, Opaque};

/// What a field holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FieldType {
    /// A number, a date or plain bytes.
    Element(ElementType),
    /// Text of so many bytes, which ends with the first zero; NumPy's code is `S`.
    Bytes(u32),
    /// Text of so many characters of 4 bytes, little-endian if so; NumPy's code is `U`.
    Characters(u32, bool),
    /// More fields.
    Fields(Vec<Field>),
}

/// A field; of a gap between fields, the name is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) holds: FieldType,
    /// Where each element holds an array, its shape.
    pub(crate) shape: Vec<u64>,
    /// How many fields are shown before it: fields are listed as they lie, perhaps not as they were declared.
    pub(crate) place: usize,
}

/// Fields that NumPy describes so; the error says what they cannot be.
pub(crate) fn fields_of_text(text: &str) -> Result<Vec<Field>, String> {
    fields_of(&literal(text)?)
}

/// The same, of a description that is parsed.
pub(crate) fn fields_of(described: &Literal) -> Result<Vec<Field>, String> {
    let Literal::Sequence(items) = described else { return Err("no list of fields".into()) };
    let (items, order) = match items.split_last() {
        Some((Literal::Sequence(last), fields)) if last.iter().all(|item| matches!(item, Literal::Number(_))) => {
            (fields, Some(extents(last)?))
        }
        _ => (items.as_slice(), None),
    };
    if items.is_empty() {
        return Err("no fields".into());
    }
    let mut fields = items.iter().map(Field::of).collect::<Result<Vec<_>, _>>()?;
    let mut named: Vec<&mut Field> = fields.iter_mut().filter(|field| !field.name.is_empty()).collect();
    let order = order.unwrap_or_else(|| (0..named.len() as u64).collect());
    let is_each_once = (0..named.len() as u64).all(|number| order.contains(&number));
    if order.len() != named.len() || !is_each_once {
        return Err("an order of fields that names each of them once".into());
    }
    order.iter().enumerate().for_each(|(place, &number)| named[number as usize].place = place);
    match name_twice(&fields) {
        Some(name) => Err(format!("two fields called '{name}'")),
        None => Ok(fields),
    }
}

/// A name that two fields have, which no library has a place for. Gaps have none.
pub(crate) fn name_twice(fields: &[Field]) -> Option<&str> {
    let mut names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1] && !pair[0].is_empty()).map(|pair| pair[0])
}

/// The element that holds these fields and nothing else.
pub(crate) fn structured(fields: &[Field]) -> Result<Kind, String> {
    let bytes = bytes_of(fields).and_then(|bytes| u32::try_from(bytes).ok()).ok_or("fields of 4 GiB or more")?;
    let opaque = Opaque::with_fields(bytes, &text_of(fields));
    opaque.map(Kind::Opaque).ok_or_else(|| "fields of no bytes".into())
}

/// How NumPy describes these fields; where they are shown in another order than that in which they lie, that order follows, in
/// numbers of fields as they lie.
pub(crate) fn text_of(fields: &[Field]) -> String {
    let one = |field: &Field| {
        let shape = match field.shape.as_slice() {
            [] => String::new(),
            shape => format!(", {}", hyperslab_layout::tuple(shape)),
        };
        format!("({}, {}{shape})", quoted(&field.name), field.holds.text())
    };
    let each = fields.iter().map(one).collect::<Vec<_>>().join(", ");
    let named = || fields.iter().filter(|field| !field.name.is_empty());
    if named().is_sorted_by_key(|field| field.place) {
        return format!("[{each}]");
    }
    let mut order: Vec<(usize, usize)> = named().enumerate().map(|(number, field)| (field.place, number)).collect();
    order.sort_unstable();
    let order: Vec<String> = order.iter().map(|(_, number)| number.to_string()).collect();
    format!("[{each}, [{}]]", order.join(", "))
}

/// Bytes of an element that has these fields and nothing else \[B\].
pub(crate) fn bytes_of(fields: &[Field]) -> Option<u64> {
    fields.iter().try_fold(0u64, |all, field| {
        let each = field.holds.bytes()?;
        all.checked_add(field.shape.iter().try_fold(each, |bytes, &extent| bytes.checked_mul(extent))?)
    })
}

/// A name as Python writes it. Names have no characters that it would not show.
fn quoted(name: &str) -> String {
    let quote = if name.contains('\'') && !name.contains('"') { '"' } else { '\'' };
    let mut text = String::from(quote);
    for character in name.chars() {
        if character == quote || character == '\\' {
            text.push('\\');
        }
        text.push(character);
    }
    text.push(quote);
    text
}

impl Field {
    fn of(described: &Literal) -> Result<Field, String> {
        let Literal::Sequence(parts) = described else { return Err(format!("no field {described:?}")) };
        let (name, holds, shape) = match parts.as_slice() {
            [Literal::Text(name), holds] => (name, holds, Vec::new()),
            [Literal::Text(name), holds, Literal::Sequence(shape)] => (name, holds, extents(shape)?),
            [Literal::Text(name), holds, Literal::Number(extent)] => (name, holds, vec![*extent]),
            _ => return Err("fields with titles".into()),
        };
        if name.chars().any(char::is_control) {
            return Err(format!("a field with control characters in its name {name:?}"));
        }
        let holds = match holds {
            Literal::Text(code) => {
                FieldType::of_code(code).ok_or_else(|| format!("a field '{name}' of type '{code}'"))?
            }
            nested => FieldType::Fields(fields_of(nested)?),
        };
        Ok(Field { name: name.clone(), holds, shape, place: 0 })
    }
}

fn extents(shape: &[Literal]) -> Result<Vec<u64>, String> {
    let extent = |item: &Literal| if let Literal::Number(extent) = item { Some(*extent) } else { None };
    shape.iter().map(extent).collect::<Option<_>>().ok_or_else(|| "a shape of something else than numbers".into())
}

impl FieldType {
    /// What NumPy calls so.
    pub(crate) fn of_code(code: &str) -> Option<FieldType> {
        let little = !code.starts_with('>');
        let plain = code.trim_start_matches(['<', '>', '=', '|']);
        let count = |text: &str| text.parse().ok().filter(|&count: &u32| count > 0);
        if let Some(text) = plain.strip_prefix('S') {
            return count(text).map(FieldType::Bytes);
        }
        if let Some(text) = plain.strip_prefix('U') {
            return count(text).map(|count| FieldType::Characters(count, little));
        }
        let element = ElementType::from_numpy(code)?;
        // NumPy has no codes for these.
        let named = element.kind == Kind::BFloat16
            || matches!(element.kind, Kind::Opaque(opaque) if opaque.float().is_some() || opaque.fields().is_some() || opaque.is_of_any_length());
        (!named).then_some(FieldType::Element(element))
    }

    /// Text as an element of its own.
    pub(crate) fn as_text(&self) -> Option<ElementType> {
        let (code, order) = match self {
            FieldType::Bytes(count) => (format!("S{count}"), ByteOrder::Little),
            FieldType::Characters(count, true) => (format!("U{count}"), ByteOrder::Little),
            FieldType::Characters(count, false) => (format!("U{count}"), ByteOrder::Big),
            FieldType::Element(_) | FieldType::Fields(_) => return None,
        };
        Some(ElementType { kind: Kind::Opaque(Opaque::from_code(&code)?), order })
    }

    fn text(&self) -> String {
        match self {
            FieldType::Element(element) => format!("'{}'", element.numpy()),
            FieldType::Bytes(count) => format!("'|S{count}'"),
            FieldType::Characters(count, little) => format!("'{}U{count}'", if *little { '<' } else { '>' }),
            FieldType::Fields(fields) => text_of(fields),
        }
    }

    fn bytes(&self) -> Option<u64> {
        match self {
            FieldType::Element(element) => Some(element.bytes()),
            FieldType::Bytes(count) => Some((*count).into()),
            FieldType::Characters(count, _) => Some(u64::from(*count) * 4),
            FieldType::Fields(fields) => bytes_of(fields),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_come_back() {
        for (text, bytes) in [
            ("[('a', '<i4'), ('b', '>f8')]", 12),
            ("[('a', '|i1'), ('', '|V7'), ('b', '<c16', (2, 3))]", 104),
            ("[('p', [('x', '<f4'), ('y', '<f4')], (3,)), ('t', '<M8[ns]')]", 32),
            ("[('s', '|S3'), ('u', '<U2'), ('v', '|V5')]", 16),
            ("[(\"it's\", '|b1'), ('größe', '<u2')]", 3),
            ("[('a\\\\b', '|b1')]", 1),
            ("[('a', '<i4'), ('', '|V4'), ('b', '<f8'), [1, 0]]", 16),
            ("[('p', [('x', '<f4'), ('y', '<f4'), [1, 0]])]", 8),
        ] {
            let fields = fields_of_text(text).unwrap();
            assert_eq!((text_of(&fields).as_str(), bytes_of(&fields)), (text, Some(bytes)));
            let Ok(Kind::Opaque(found)) = structured(&fields) else { panic!("{text}") };
            assert_eq!((found.fields(), u64::from(found.bytes())), (Some(text), bytes));
        }
    }

    #[test]
    fn others_are_refused() {
        for text in [
            "[]",
            "[('a', '|O')]",
            "[('a', 'bfloat16')]",
            "[('a', '<f16')]",
            "[(('title', 'a'), '<f4')]",
            "[('a', '<f4', ('b',))]",
            "[('a', '<f4'), ('b', '<f4'), ('a', '<f8')]",
            "[('p', [('x', '<f4'), ('x', '<f4')])]",
            "['a']",
            "[('a', '<i4'), [1]]",
            "[('a', '<i4'), [0, 0]]",
            "[[0]]",
            "'<f4'",
            "[('a', '|S0')]",
            "[('a', 'V4294967295', (2,))]",
        ] {
            assert!(fields_of_text(text).and_then(|fields| structured(&fields)).is_err(), "{text}");
        }
    }
}
