//! Files that zarr-python and NumPy wrote (see golden/make.py) mean here what they mean there.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use hyperslab_format::npy::{NpyHeader, prefix_bytes_needed};
use hyperslab_format::zarr::{
    ArrayMetadata, Blosc, BytesCodec, Codecs, Compressor, GroupMetadata, KeyEncoding, KeyStyle, NodeType, Separator,
    Shuffle, Value, consolidated, node_type,
};
use hyperslab_layout::{ByteOrder, Codec, ElementType, Kind};
use std::path::{Path, PathBuf};

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path)
}

fn bytes(path: &str) -> Vec<u8> {
    std::fs::read(golden(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn array(name: &str) -> ArrayMetadata {
    let key = format!("zarr/{name}/zarr.json");
    ArrayMetadata::parse(&bytes(&key), &key).unwrap()
}

fn expected() -> serde_json::Map<String, Value> {
    serde_json::from_slice(&bytes("expected.json")).unwrap()
}

/// The elements of a decoded chunk in row-major order of the array and little-endian, one at a time.
fn little_endian_rows(array: &ArrayMetadata, chunk: &[u8]) -> Vec<u8> {
    let strides = array.chunk_strides();
    let unit = array.element.swap_bytes() as usize;
    let mut out = Vec::new();
    for index in 0..array.chunk_shape.iter().product::<u64>() {
        let (mut rest, mut at) = (index, 0);
        for (length, stride) in array.chunk_shape.iter().zip(&strides).rev() {
            at += rest % length * stride;
            rest /= length;
        }
        for number in chunk[at as usize..][..array.element.bytes() as usize].chunks(unit) {
            match array.codecs.endian {
                ByteOrder::Little => out.extend(number),
                ByteOrder::Big => out.extend(number.iter().rev()),
            }
        }
    }
    out
}

/// A stored chunk, or shard, as its elements.
fn decoded(array: &ArrayMetadata, stored: &[u8], key: &str) -> Vec<u8> {
    match array.codecs.shard_codec(&array.chunk_shape, &stored_fill(array)) {
        Some(shards) => shards.decode(stored, array.chunk_bytes(), key).unwrap(),
        None => array.codecs.decode(stored, array.chunk_bytes(), key).unwrap(),
    }
}

fn stored_fill(array: &ArrayMetadata) -> Vec<u8> {
    let mut fill = array.fill_value.clone();
    if array.codecs.endian != ByteOrder::NATIVE {
        fill.reverse();
    }
    fill
}

#[test]
fn chunks_decode_to_the_values_written() {
    let mut chunks = 0;
    for (name, entry) in &expected() {
        let array = array(name);
        let expected = entry["attributes"].to_string().replace("\"NaN\"", "NaN");
        assert_eq!(
            Value::Object(array.attributes.clone()),
            hyperslab_format::json_from_text(&expected).unwrap(),
            "{name}"
        );
        let Some(key) = entry.get("key").and_then(Value::as_str) else { continue };
        assert_eq!(array.chunk_key(&vec![0; array.shape.len()]), key, "{name}");
        let stored = bytes(&format!("zarr/{name}/{key}"));
        let decoded = decoded(&array, &stored, key);
        let hex: String = little_endian_rows(&array, &decoded).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, entry["chunk"], "{name}");
        // Where nothing depends on a compressor's version, encoding gives the very bytes of zarr-python.
        if array.codecs.is_plain() {
            assert_eq!(array.codecs.encode(&decoded, key).unwrap(), stored, "{name}");
            assert_eq!(array.stored_chunk_bytes(), Some(stored.len() as u64), "{name}");
        }
        chunks += 1;
    }
    assert_eq!(chunks, 18);
}

/// Of every compressor and order, whatever the sizes of elements and chunks.
#[test]
fn chunks_of_blosc_decode_to_the_values_encoded() {
    let all = bytes("blosc.bin");
    let zstd = BytesCodec::Blosc(Blosc {
        compressor: Compressor::Zstd,
        level: 1,
        shuffle: Shuffle::No,
        element_bytes: 1,
        block_bytes: 0,
    });
    let codecs = Codecs { chain: vec![zstd], ..Codecs::plain(false) };
    let (mut rest, mut chunks) = (&all[..], 0);
    while let Some((header, behind)) = rest.split_first_chunk::<16>() {
        let [element, count, noise, stored] =
            [0, 4, 8, 12].map(|at| u32::from_le_bytes(header[at..at + 4].try_into().unwrap()));
        let byte =
            |k: u64| if noise == 1 { k.wrapping_mul(k).wrapping_mul(2_654_435_761) >> 13 } else { k / 9 + k % 5 * 40 };
        let expected: Vec<u8> = (0..u64::from(count)).map(|k| byte(k) as u8).collect();
        let (chunk, behind) = behind.split_at(stored as usize);
        let decoded = codecs.decode(chunk, count.into(), "c").unwrap();
        assert!(decoded == expected, "chunk {chunks}: elements of {element} B, header {:?}", &chunk[..16]);
        (rest, chunks) = (behind, chunks + 1);
    }
    assert_eq!(chunks, 180);
}

#[test]
fn metadata_say_what_was_asked_for() {
    let defaults = array("defaults");
    assert_eq!((&defaults.shape[..], &defaults.chunk_shape[..]), (&[5, 4][..], &[2, 3][..]));
    assert_eq!(defaults.element, Kind::Float64);
    assert_eq!(defaults.codecs.chain, [BytesCodec::Zstd { level: 0, checksum: false }]);
    assert_eq!(defaults.grid_shape(), [3, 2]);
    assert_eq!(defaults.key_encoding, KeyEncoding::default());
    assert_eq!(defaults.dimension_names, None);

    assert_eq!(array("crc32c").codecs.chain, [BytesCodec::Crc32c]);
    assert_eq!(array("big_endian").codecs.endian, ByteOrder::Big);
    let transposed = array("transposed");
    assert_eq!(transposed.codecs.order, [2, 0, 1]);
    assert_eq!(transposed.codecs.chain, [BytesCodec::Zstd { level: 7, checksum: true }, BytesCodec::Crc32c]);
    assert_eq!(array("gzip").codecs.chain, [BytesCodec::Gzip { level: 5 }]);

    assert_eq!(array("scalar").shape, [0_u64; 0]);
    assert_eq!((array("empty").shape, array("empty").chunk_shape), (vec![0, 5], vec![1, 5]));
    assert_eq!(array("named").dimension_names, Some(vec![Some("y".to_owned()), None]));
    let v2 = KeyEncoding { style: KeyStyle::V2, separator: Separator::Dot };
    assert_eq!(array("v2_keys").key_encoding, v2);
    assert_eq!(array("dotted").chunk_key(&[1]), "c.1");
}

#[test]
fn fill_values_are_those_of_zarr_python() {
    let complex = [f32::NAN.to_ne_bytes(), f32::NEG_INFINITY.to_ne_bytes()].concat();
    for (name, fill) in [
        ("crc32c", (-7_i32).to_ne_bytes().to_vec()),
        ("big_endian", 1.5_f32.to_ne_bytes().to_vec()),
        ("scalar", i64::MIN.to_ne_bytes().to_vec()),
        ("nan", 0x7fc0_0000_u32.to_ne_bytes().to_vec()),
        ("infinite", 0xfc00_u16.to_ne_bytes().to_vec()),
        ("complex", complex),
        ("bool", vec![1]),
        ("named", u64::MAX.to_ne_bytes().to_vec()),
        ("defaults", vec![0; 8]),
    ] {
        assert_eq!(array(name).fill_value, fill, "{name}");
    }
}

/// What we write, zarr-python would have written: the same members with the same values.
#[test]
fn written_metadata_equal_those_of_zarr_python() {
    for name in expected().keys().filter(|name| !["empty", "nan"].contains(&name.as_str())) {
        let theirs = bytes(&format!("zarr/{name}/zarr.json"));
        let ours = array(name).to_json(name).unwrap();
        assert_eq!(ArrayMetadata::parse(&ours, name).unwrap(), array(name));
        let mut theirs: Value = serde_json::from_slice(&theirs).unwrap();
        theirs.as_object_mut().unwrap().remove("storage_transformers");
        assert_eq!(serde_json::from_slice::<Value>(&ours).unwrap(), theirs, "{name}");
    }
}

#[test]
fn groups_are_told_from_arrays() {
    let root = bytes("zarr/zarr.json");
    assert_eq!(node_type(&root, "zarr.json").unwrap(), NodeType::Group);
    assert_eq!(node_type(&bytes("zarr/plain/zarr.json"), "plain").unwrap(), NodeType::Array);
    let group = GroupMetadata::parse(&root, "zarr.json").unwrap();
    assert_eq!(group.attributes["title"], "golden");
    assert!(group.extensions.is_empty());
    assert!(ArrayMetadata::parse(&root, "zarr.json").unwrap_err().to_string().contains("found a group"));
}

/// The consolidated metadata that zarr-python wrote come out of the nodes again.
#[test]
fn consolidated_metadata_are_those_of_zarr_python() {
    let root = bytes("nested/zarr.json");
    let paths = ["b", "a", "a/u", "a/deep", "a/deep/v", "a-1", "a-1/u", "empty"];
    let nodes = || paths.map(|path| (path.to_string(), bytes(&format!("nested/{path}/zarr.json"))));
    let stripped = consolidated::strip(&root, "zarr.json").unwrap().expect("it is consolidated");
    assert_eq!(consolidated::strip(&stripped, "zarr.json").unwrap(), None);
    let parsed = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    let mut without = parsed(&root);
    without.as_object_mut().unwrap().remove("consolidated_metadata");
    assert_eq!(parsed(&stripped), without);
    for group in [&stripped, &root] {
        let made = consolidated::consolidate(group, "zarr.json", nodes()).unwrap();
        assert_eq!(parsed(&made), parsed(&root));
    }
}

#[test]
fn what_is_no_number_is_read_and_written() {
    for (array, code) in [("datetime", "M8[s]"), ("structured", "V4[('a', '<i4')]")] {
        let key = format!("zarr/{array}/zarr.json");
        let read = ArrayMetadata::parse(&bytes(&key), &key).unwrap();
        assert_eq!(Some(read.element), ElementType::from_numpy(code).map(|element| element.kind), "{array}");
        let members = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
        let (theirs, ours) = (members(&bytes(&key)), members(&read.to_json(&key).unwrap()));
        for member in ["data_type", "fill_value", "shape"] {
            assert_eq!(ours[member], theirs[member], "{array}");
        }
    }
}

#[test]
fn npy_files_of_numpy_are_read_and_written_to_the_byte() {
    let little = |kind| ElementType { kind, order: ByteOrder::Little };
    let big = ElementType { kind: Kind::Int32, order: ByteOrder::Big };
    let fields = ElementType::from_numpy("V12[('a', '<i4'), ('b', '<f8')]").unwrap();
    let cases: [(&str, ElementType, bool, &[u64]); 7] = [
        ("c_f8", little(Kind::Float64), false, &[2, 3]),
        ("f_i4_big", big, true, &[2, 3]),
        ("scalar_c16", little(Kind::Complex128), false, &[]),
        ("empty_bool", little(Kind::Bool), false, &[0, 4]),
        ("one_u1", little(Kind::UInt8), false, &[3]),
        ("structured", fields, false, &[2]),
        ("version3", little(Kind::Float16), false, &[4]),
    ];
    for (name, element, fortran_order, shape) in cases {
        let file = bytes(&format!("npy/{name}.npy"));
        let (header, offset) = NpyHeader::parse(&file, name).unwrap();
        assert_eq!(header, NpyHeader { element, fortran_order, shape: shape.to_vec() }, "{name}");
        assert_eq!(prefix_bytes_needed(&file[..12], name).unwrap(), offset);
        assert_eq!(offset + header.data_bytes(name).unwrap(), file.len() as u64, "{name}");
        header.check_size(offset, file.len() as u64, name).unwrap();
        if name != "version3" {
            assert_eq!(header.to_bytes(), file[..offset as usize], "{name}");
        }
    }
    let error = NpyHeader::parse(&bytes("npy/object.npy"), "object").unwrap_err();
    assert!(error.to_string().contains("'|O'"), "{error}");
}
