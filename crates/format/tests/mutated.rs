//! Metadata that were damaged at random are refused or read, but never panic and never allocate by their claims.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use fastrand::Rng;
use hyperslab_format::zarr::{ArrayMetadata, GroupMetadata, Map, Value, node_type};
use std::path::Path;

fn sources() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/zarr");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let arrays = paths.iter().filter(|path| path.is_dir());
    arrays.map(|path| std::fs::read(path.join("zarr.json")).unwrap()).collect()
}

/// Parses as anything; whatever is accepted must be usable, and survive being written.
fn exercise(bytes: &[u8]) -> bool {
    let _ = node_type(bytes, "x");
    if let Ok(group) = GroupMetadata::parse(bytes, "x") {
        assert_eq!(GroupMetadata::parse(&group.to_json(), "x").unwrap(), group);
    }
    let Ok(array) = ArrayMetadata::parse(bytes, "x") else { return false };
    assert_eq!(array.fill_value.len() as u64, array.element.bytes());
    let grid = array.grid_shape();
    assert_eq!(grid.len(), array.chunk_shape.len());
    assert!(array.chunk_bytes() <= i64::MAX as u64);
    let reach: u64 = array.chunk_strides().iter().zip(&array.chunk_shape).map(|(step, count)| step * (count - 1)).sum();
    assert_eq!(reach + array.element.bytes(), array.chunk_bytes());
    array.chunk_key(&grid);
    let _ = array.codecs.decode(bytes, array.chunk_bytes(), "x");
    assert_eq!(ArrayMetadata::parse(&array.to_json("x").unwrap(), "x").unwrap(), array);
    true
}

fn mutate_bytes(random: &mut Rng, bytes: &mut Vec<u8>) {
    const SPICE: &[u8] = b"{}[]\",:0123456789.-+eE\\u nulltruefalseNaNInfinity\xff\x00";
    for _ in 0..random.usize(1..5) {
        let at = random.usize(..bytes.len());
        match random.u8(..4) {
            0 => bytes[at] = random.u8(..),
            1 => bytes[at] = SPICE[random.usize(..SPICE.len())],
            2 => bytes.insert(at, SPICE[random.usize(..SPICE.len())]),
            _ => {
                bytes.remove(at);
            }
        }
    }
    if random.u8(..8) == 0 {
        bytes.truncate(random.usize(..bytes.len()));
    }
}

/// Replaces one value somewhere in the tree by something valid in JSON but strange in its place.
fn mutate_value(random: &mut Rng, value: &mut Value) {
    let strange = [
        "0",
        "-1",
        "1e999",
        "18446744073709551615",
        "99999999999999999999",
        "null",
        "true",
        "[]",
        "{}",
        "\"\"",
        "[0]",
        "[1,0]",
        "\"0x7fc00001\"",
        "\"NaN\"",
        "\"bytes\"",
        "\"crc32c\"",
        "{\"name\": \"zstd\"}",
        "{\"must_understand\": false}",
        "[9223372036854775807, 9223372036854775807]",
        "\"complex64\"",
        "\"\u{1f600}\"",
    ];
    let children = match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    if children == 0 || random.u8(..6) == 0 {
        *value = serde_json::from_str(strange[random.usize(..strange.len())]).unwrap();
        return;
    }
    let child = random.usize(..children);
    match value {
        Value::Array(items) if random.u8(..6) == 0 => items.push(items[child].clone()),
        Value::Array(items) => mutate_value(random, &mut items[child]),
        Value::Object(members) => remove_or_mutate(random, members, child),
        _ => unreachable!("it has children"),
    }
}

fn remove_or_mutate(random: &mut Rng, members: &mut Map<String, Value>, child: usize) {
    let key = members.keys().nth(child).unwrap().clone();
    if random.u8(..10) == 0 {
        members.remove(&key);
    } else {
        mutate_value(random, &mut members[&key]);
    }
}

#[test]
fn damaged_text_never_panics() {
    let mut random = Rng::with_seed(1);
    let sources = sources();
    assert!(sources.len() >= 20);
    for _ in 0..6000 {
        let mut bytes = sources[random.usize(..sources.len())].clone();
        mutate_bytes(&mut random, &mut bytes);
        exercise(&bytes);
    }
}

#[test]
fn strange_values_never_panic() {
    let mut random = Rng::with_seed(2);
    let sources: Vec<Value> = sources().iter().filter_map(|bytes| serde_json::from_slice(bytes).ok()).collect();
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut value = sources[random.usize(..sources.len())].clone();
        mutate_value(&mut random, &mut value);
        accepted += u32::from(exercise(value.to_string().as_bytes()));
    }
    // Otherwise the walk above would prove nothing about what is accepted.
    assert!(accepted > 500, "{accepted} accepted");
}
