//! Headers: what they say, where variables lie, and what is refused.

use super::{Attribute, NetcdfHeader, NewVariable, Type, Version};
use crate::attribute::Attributes;
use hyperslab_layout::Kind;
use serde_json::{Value, json};
use std::sync::LazyLock;

static NOTHING: LazyLock<Attributes> = LazyLock::new(Attributes::new);

fn new<'a>(name: &'a str, shape: &'a [u64], kind: Kind, names: Option<&'a [Option<String>]>) -> NewVariable<'a> {
    NewVariable { name, shape, kind, dimension_names: names, attributes: &NOTHING, fill: None }
}

fn names(names: &[&str]) -> Vec<Option<String>> {
    names.iter().map(|name| Some((*name).into())).collect()
}

fn map(value: Value) -> Attributes {
    match value {
        Value::Object(map) => map.into_iter().collect(),
        _ => unreachable!("only objects are given"),
    }
}

/// `ncgen -k classic` makes these bytes of
/// `netcdf t { dimensions: d = 3 ; variables: short v(d) ; v:a = "hi" ; data: v = 1, 2, 3 ; }`, but for where data begin.
#[test]
fn a_header_is_what_the_specification_says() {
    let mut header = NetcdfHeader::new(Version::Classic, Vec::new());
    let attributes = map(json!({ "a": "hi" }));
    let d = names(&["d"]);
    let v = NewVariable { attributes: &attributes, ..new("v", &[3], Kind::Int16, Some(&d)) };
    header.add(&[v], None, Some(Version::Classic)).unwrap();
    header.variables[0].begin = 0x64;
    let words: [u32; 20] = [
        0x4344_4601, // CDF, version 1
        0,           // records
        0x0A,
        1,
        1,
        0x6400_0000,
        3, // a dimension called d, of 3
        0,
        0, // no attributes
        0x0B,
        1,
        1,
        0x7600_0000,
        1,
        0, // a variable called v, of one dimension, number 0
        0x0C,
        1,
        1,
        0x6100_0000,
        2, // an attribute called a, of characters
    ];
    let rest: [u32; 5] = [2, 0x6869_0000, 3, 8, 0x64]; // two of them: hi; shorts, 8 B, from here on
    let bytes: Vec<u8> = words.iter().chain(&rest).flat_map(|word| word.to_be_bytes()).collect();
    assert_eq!(header.to_bytes(), bytes);
    assert_eq!(NetcdfHeader::parse(&bytes, 0x6A, "t.nc").unwrap(), Some((header.clone(), bytes.len() as u64)));
    header.check_size(0x6A, "t.nc").unwrap();
    assert!(header.check_size(0x69, "t.nc").unwrap_err().is_corrupt());
    assert_eq!(header.padded_end(), 0x6C);
}

#[test]
fn records_are_padded_unless_there_is_one_slab_in_them() {
    let mut header = NetcdfHeader::new(Version::Offset64, Vec::new());
    let t = names(&["t", "x"]);
    header.add(&[new("a", &[2, 3], Kind::Int16, Some(&t))], Some("t"), None).unwrap();
    assert_eq!((header.record_bytes(), header.records), (Some(6), 2));
    assert_eq!(header.end(), header.variables[0].begin + 12);
    assert_eq!(header.padded_end(), header.end());
    assert_eq!(header.stored(&[0], &"f".into())[0].strides.record, None, "records without anything between them");
    header.back_to(0, 0);
    assert_eq!(header, NetcdfHeader::new(Version::Offset64, Vec::new()));
    let both = [new("a", &[2, 3], Kind::Int16, Some(&t)), new("b", &[2], Kind::Float64, Some(&t[..1]))];
    header.add(&both, Some("t"), None).unwrap();
    assert_eq!(header.record_bytes(), Some(16));
    let begins: Vec<u64> = header.variables.iter().map(|variable| variable.begin).collect();
    assert_eq!(begins[1], begins[0] + 8);
    assert_eq!(header.end(), begins[1] + 16 + 8);
    assert_eq!(header.stored(&[0], &"f".into())[0].strides.record, Some(16));
    header.grow(5, "f").unwrap();
    assert_eq!((header.shape(0), header.shape(1)), (vec![5, 3], vec![5]));
}

#[test]
fn what_was_built_is_what_is_parsed() {
    let attributes =
        map(json!({ "s": "text", "i": 7, "l": [1, 2, 3], "r": [0.5, 2], "big": 1_u64 << 40, "empty": "" }));
    let given = Attribute::of_values(&attributes, None).unwrap();
    for version in Version::ALL {
        let kept: Vec<Attribute> = given.iter().filter(|one| one.since() <= version).cloned().collect();
        let mut header = NetcdfHeader::new(version, kept);
        let (z, records) = (names(&["z"]), names(&["time", "z"]));
        let of = map(json!({ "valid_min": 1, "missing_value": 3, "units": "m" }));
        for kind in [Kind::Int8, Kind::Int32, Kind::Float32, Kind::Float64] {
            let variable = NewVariable { attributes: &of, ..new(kind.name(), &[4], kind, Some(&z)) };
            header.add(&[variable], None, Some(version)).unwrap();
        }
        let fill = 1.5_f32.to_ne_bytes();
        let growing = NewVariable { fill: Some(&fill), ..new("growing", &[0, 4], Kind::Float32, Some(&records)) };
        header.add(&[growing], Some("time"), Some(version)).unwrap();
        header.add(&[new("scalar", &[], Kind::Float64, None)], None, Some(version)).unwrap();
        header.grow(9, "f").unwrap();
        let bytes = header.to_bytes();
        for cut in 0..bytes.len() {
            assert_eq!(NetcdfHeader::parse(&bytes[..cut], 1 << 20, "f").unwrap(), None);
            assert!(NetcdfHeader::parse(&bytes[..cut], cut as u64, "f").unwrap_err().is_corrupt());
        }
        assert_eq!(NetcdfHeader::parse(&bytes, 1 << 20, "f").unwrap(), Some((header.clone(), bytes.len() as u64)));
        assert_eq!(header.fill(4), 1.5_f32.to_be_bytes());
        assert_eq!(header.fill(1), (-2_147_483_647_i32).to_be_bytes());
        let kinds: Vec<Type> = header.variables[0].attributes.iter().map(|attribute| attribute.kind).collect();
        assert!(kinds.contains(&Type::Byte) && kinds.contains(&Type::Char), "{kinds:?}");
    }
}

#[test]
fn the_oldest_version_that_has_room_is_taken() {
    let version_of = |kind: Kind, shape: &[u64]| {
        let mut header = NetcdfHeader::new(Version::Offset64, Vec::new());
        header.add(&[new("a", shape, kind, None)], None, None).map(|_| header.version)
    };
    assert_eq!(version_of(Kind::Float64, &[8]).unwrap(), Version::Offset64);
    assert_eq!(version_of(Kind::Int64, &[8]).unwrap(), Version::Data64);
    assert_eq!(version_of(Kind::Float64, &[1 << 29]).unwrap(), Version::Data64);
    assert_eq!(version_of(Kind::Int8, &[1 << 31]).unwrap(), Version::Data64);
    assert!(version_of(Kind::Complex64, &[8]).unwrap_err().is_unsupported());
    let mut header = NetcdfHeader::new(Version::Classic, Vec::new());
    for (kind, shape) in [(Kind::UInt8, 8), (Kind::Float64, 1 << 29)] {
        let error = header.add(&[new("a", &[shape], kind, None)], None, Some(Version::Classic)).unwrap_err();
        assert!(error.is_unsupported() && error.hint().unwrap().contains("NETCDF3_64BIT_DATA"), "{error}");
    }
    assert!(header.variables.is_empty() && header.dimensions.is_empty());
}

#[test]
fn what_has_no_place_is_refused_and_nothing_is_added() {
    let mut header = NetcdfHeader::new(Version::Offset64, Vec::new());
    let (t, tx, xt) = (names(&["t"]), names(&["t", "x"]), names(&["x", "t"]));
    header.add(&[new("a", &[4], Kind::Int32, Some(&names(&["x"])))], None, None).unwrap();
    let before = header.clone();
    for (wrong, expected) in [
        (new("a", &[4], Kind::Int32, None), "different names"),
        (new("b/c", &[4], Kind::Int32, None), "a name of at most"),
        (new("b", &[5], Kind::Int32, Some(&names(&["x"]))), "'x' of 4 indices"),
        (new("b", &[4], Kind::Int32, Some(&tx)), "a name for each of 1 dimensions"),
        (new("b", &[4, 4], Kind::Int32, Some(&xt)), "as the first of a variable"),
        (new("b", &[0], Kind::Int32, None), "extents of at least 1"),
        (new("b", &[2, 2], Kind::Bool, None), "integers, float32, float64 or characters"),
        (new("b", &[1 << 40, 1 << 40], Kind::Int32, None), "at most"),
    ] {
        let error = header.add(&[wrong], Some("t"), None).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(header, before);
    }
    let uneven = [new("p", &[2], Kind::Int32, Some(&t)), new("q", &[3], Kind::Int32, Some(&t))];
    header.add(&uneven, Some("t"), None).unwrap();
    assert_eq!((header.records, header.shape(1), header.is_arranged()), (3, vec![3], true));
    header.add(&[new("z", &[4], Kind::Int32, None)], None, None).unwrap();
    assert!(!header.is_arranged() && header.arrange().is_some() && header.is_arranged());
}

#[test]
fn attributes_without_a_place_are_refused() {
    for wrong in
        [json!({ "a": true }), json!({ "a": {} }), json!({ "a": ["x"] }), json!({ "a": null }), json!({ "a": "\0" })]
    {
        let error = Attribute::of_values(&map(wrong), None).unwrap_err();
        assert!(error.is_invalid() && error.object() == "a", "{error}");
    }
}

#[test]
fn the_number_of_records_may_be_open() {
    let mut header = NetcdfHeader::new(Version::Offset64, Vec::new());
    let t = names(&["t", "x"]);
    let both = [new("a", &[3, 3], Kind::Int16, Some(&t)), new("b", &[3], Kind::Float64, Some(&t[..1]))];
    header.add(&both, Some("t"), None).unwrap();
    let (end, mut bytes) = (header.end(), header.to_bytes());
    bytes[4..8].fill(0xFF);
    for (file, records) in [(end, 3), (end + 15, 3), (end + 16, 4), (end - 1, 2), (0, 0)] {
        let (parsed, _) = NetcdfHeader::parse(&bytes, file, "f").unwrap().unwrap();
        assert_eq!(parsed.records, records, "{file}");
    }
}

/// As in files of old writers, of which netCDF has the reference for its own tests.
#[test]
fn zeros_at_the_end_of_a_name_are_not_part_of_it() {
    let attributes = map(json!({ "plughXX": 1 }));
    let mut header = NetcdfHeader::new(Version::Classic, Attribute::of_values(&attributes, None).unwrap());
    let names = names(&["yyX"]);
    header.add(&[new("vX", &[3], Kind::Int16, Some(&names))], None, Some(Version::Classic)).unwrap();
    let bytes: Vec<u8> = header.to_bytes().into_iter().map(|byte| if byte == b'X' { 0 } else { byte }).collect();
    let (read, end) = NetcdfHeader::parse(&bytes, 1 << 20, "f").unwrap().unwrap();
    assert_eq!(end, bytes.len() as u64);
    assert_eq!((&*read.attributes[0].name, &*read.variables[0].name), ("plugh", "v"));
    assert_eq!(read.dimension_names(0), ["yy"]);
    assert_eq!(read.variables[0].begin, header.variables[0].begin);
}

/// Each byte of a header changed in some ways: an error or another header, and no panic; sizes that are not valid are never
/// allocated.
#[test]
fn damaged_headers_are_errors() {
    let mut header =
        NetcdfHeader::new(Version::Data64, Attribute::of_values(&map(json!({ "s": [1, 2] })), None).unwrap());
    let t = names(&["t", "x"]);
    let both = [new("a", &[3, 3], Kind::Int16, Some(&t)), new("b", &[3], Kind::UInt64, Some(&t[..1]))];
    header.add(&both, Some("t"), None).unwrap();
    let bytes = header.to_bytes();
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xFF] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            if let Ok(Some((parsed, _))) = NetcdfHeader::parse(&damaged, 1 << 20, "f") {
                for number in 0..parsed.variables.len() {
                    let stored = parsed.stored(&[number], &"f".into()).remove(0);
                    assert!(stored.end().is_some_and(|end| end <= 1 << 62), "{parsed:?}");
                }
            }
        }
    }
}
