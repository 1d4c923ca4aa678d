//! Metadata of Zarr, of version 3 and 2.

use hyperslab_format::zarr::{ArrayMetadata, Codecs, GroupMetadata, node_type, v2};

pub(super) fn check(bytes: &[u8]) {
    let _ = node_type(bytes, "x");
    if let Ok(group) = GroupMetadata::parse(bytes, "x") {
        assert_eq!(GroupMetadata::parse(&group.to_json(), "x").unwrap(), group);
    }
    if let Ok(array) = ArrayMetadata::parse(bytes, "x") {
        use_array(&array);
    }
    // Of version 2 there are two texts.
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let attributes = bytes.get(end + 1..);
    if let Ok(array) = v2::array(&bytes[..end], attributes, "x") {
        use_array(&array);
    }
    if let Ok(group) = v2::group(&bytes[..end], attributes, "x") {
        assert_eq!(GroupMetadata::parse(&group.to_json(), "x").unwrap(), group);
    }
    let value = serde_json::from_slice(bytes);
    if let Some(codecs) = value.ok().and_then(|value| Codecs::from_json(&value, "x").ok()) {
        let text = serde_json::from_str(&codecs.to_json()).unwrap();
        assert_eq!(Codecs::from_json(&text, "x").unwrap(), codecs);
    }
}

fn use_array(array: &ArrayMetadata) {
    array.check("x").unwrap();
    assert_eq!(array.fill_value.len() as u64, array.element.bytes());
    let grid = array.grid_shape();
    assert_eq!(grid.len(), array.chunk_shape.len());
    assert!(array.chunk_bytes() <= i64::MAX as u64);
    let reach: u64 = array.chunk_strides().iter().zip(&array.chunk_shape).map(|(step, count)| step * (count - 1)).sum();
    assert_eq!(reach + array.element.bytes(), array.chunk_bytes());
    array.chunk_key(&grid);
    array.stored_chunk_bytes();
    array.stored_element();
    array.coding(&array.fill_value);
    array.inner_chunk_shape();
    array.inner(&array.fill_value);
    array.codecs_json();
    let _ = array.codecs.decode(b"some bytes that are no chunk", array.chunk_bytes(), "x");
    if let Ok(written) = array.to_json("x") {
        assert_eq!(ArrayMetadata::parse(&written, "x").unwrap(), *array);
    }
}
