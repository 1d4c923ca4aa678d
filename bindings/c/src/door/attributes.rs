//! Attributes and lists of names, in this rank's memory. All of this is local.

use crate::foreign::{copied, element, freed, given, handle, numbers, room, several, text, texts};
use crate::handles::{AttributesHandle, NamesHandle};
use crate::member::border;
use crate::numbers;
use crate::options::{NDIM_MAX, extents};
use hyperslab::{AttributeValue, Elements, Error, Texts, ValueType};
use std::ffi::{c_char, c_int, c_void};

/// How many names there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_names_count(names: *const NamesHandle) -> i64 {
    // SAFETY: as the header asks.
    unsafe { names.as_ref() }.map_or(0, |names| names.0.len() as i64)
}

/// One of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_names_get(names: *const NamesHandle, number: i64) -> *const c_char {
    // SAFETY: as the header asks.
    let names = unsafe { names.as_ref() };
    let name = names.zip(usize::try_from(number).ok()).and_then(|(names, number)| names.0.get(number));
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// Frees a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_names_free(names: *mut NamesHandle) {
    // SAFETY: as the header asks.
    border(|| unsafe { freed(names) });
}

/// Attributes, as yet none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_attributes_create(attributes: *mut *mut AttributesHandle) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        unsafe { handle(attributes) }?.put(AttributesHandle::default());
        Ok(())
    })
}

/// Frees them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_attributes_free(attributes: *mut AttributesHandle) {
    // SAFETY: as the header asks.
    border(|| unsafe { freed(attributes) });
}

/// Sets one of them.
unsafe fn set(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: impl FnOnce() -> Result<AttributeValue, Error>,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (attributes, name) = unsafe { (room("attributes", attributes)?, text("the name of an attribute", name)?) };
        attributes.0.set(name, value()?);
        Ok(())
    })
}

/// To elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_attributes_set(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    kind: i32,
    ndim: i32,
    shape: *const i64,
    data: *const c_void,
) -> c_int {
    let value = || {
        // SAFETY: as the header asks.
        let (element, shape) =
            unsafe { (element(kind, std::ptr::null())?, numbers("the shape of an attribute", shape, ndim.into())?) };
        let bytes = shape.iter().try_fold(element.bytes(), |bytes, extent| bytes.checked_mul(*extent));
        let bytes = bytes.and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(-1);
        // SAFETY: as the header asks, there are so many bytes.
        let bytes = unsafe { several("bytes of an attribute", data.cast::<u8>(), bytes) }?;
        let elements = Elements::new(ValueType::Element(element), Some(shape), bytes.to_vec());
        elements.map(AttributeValue::Elements).ok_or_else(|| Error::invalid("an attribute is larger than memory"))
    };
    // SAFETY: as the header asks.
    unsafe { set(attributes, name, value) }
}

/// To a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_attributes_set_text(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe { set(attributes, name, || Ok(AttributeValue::text(text("a text", value)?.as_bytes().to_vec()))) }
}

/// To texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_attributes_set_texts(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    count: i64,
    values: *const *const c_char,
) -> c_int {
    let value = || {
        // SAFETY: as the header asks.
        let texts = unsafe { texts("texts", values, count) }?;
        let texts: Vec<Vec<u8>> = texts.into_iter().map(|text| text.as_bytes().to_vec()).collect();
        Ok(AttributeValue::Texts(Texts { shape: Some(vec![texts.len() as u64]), texts }))
    };
    // SAFETY: as the header asks.
    unsafe { set(attributes, name, value) }
}

/// Names of all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_attributes_names(
    attributes: *const AttributesHandle,
    names: *mut *mut NamesHandle,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (place, attributes) = unsafe { (handle(names)?, given("attributes", attributes)?) };
        place.put(attributes.0.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>().into());
        Ok(())
    })
}

/// The value of one.
unsafe fn found<'a>(
    attributes: *const AttributesHandle,
    name: *const c_char,
) -> Result<(&'a AttributeValue, &'a str), Error> {
    // SAFETY: as the header asks.
    let (attributes, name) = unsafe { (given("attributes", attributes)?, text("the name of an attribute", name)?) };
    Ok((numbers::value(&attributes.0, name)?, name))
}

/// Its type and shape.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_attributes_type(
    attributes: *const AttributesHandle,
    name: *const c_char,
    kind: *mut i32,
    ndim: *mut i32,
    shape: *mut i64,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (number, found) = numbers::type_of(unsafe { found(attributes, name) }?.0);
        let mut all = [0; NDIM_MAX];
        extents(&found, &mut all)?;
        // SAFETY: as the header asks, there is room for these.
        unsafe {
            *room("the room for a type", kind)? = number;
            *room("the room for a number", ndim)? = found.len() as i32;
            room("the room for a shape", shape)?;
            std::ptr::copy_nonoverlapping(all.as_ptr(), shape, found.len());
        }
        Ok(())
    })
}

/// Its numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_attributes_get(
    attributes: *const AttributesHandle,
    name: *const c_char,
    kind: i32,
    count: i64,
    data: *mut c_void,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let ((value, name), element) = unsafe { (found(attributes, name)?, element(kind, std::ptr::null())?) };
        let count = u64::try_from(count).map_err(|_| Error::invalid(format!("there is no room for {count} values")))?;
        let bytes = numbers::numbers(value, name, element.kind, count)?;
        if !bytes.is_empty() {
            // SAFETY: as the header asks, there is room for so many values.
            unsafe {
                room("the room for values", data)?;
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast(), bytes.len());
            }
        }
        Ok(())
    })
}

/// One of its texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_attributes_get_text(
    attributes: *const AttributesHandle,
    name: *const c_char,
    number: i64,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (value, name) = unsafe { found(attributes, name) }?;
        let text = numbers::text(value, name, number)?;
        // SAFETY: as the header asks, there is room for so many bytes; a length may be left out.
        unsafe {
            let whole = copied(&text, buffer, size);
            if let Some(length) = length.as_mut() {
                *length = whole;
            }
        }
        Ok(())
    })
}
