use super::*;
use hyperslab_layout::{ByteOrder, Kind};

fn header(shape: &[u64], fortran_order: bool) -> NpyHeader {
    let element = ElementType { kind: Kind::Float64, order: ByteOrder::Big };
    NpyHeader { element, fortran_order, shape: shape.to_vec() }
}

/// A file of `version` with this text as its header.
fn file(version: u8, text: &str) -> Vec<u8> {
    let mut bytes = [MAGIC, &[version, 0]].concat();
    match version {
        1 => bytes.extend_from_slice(&(text.len() as u16).to_le_bytes()),
        _ => bytes.extend_from_slice(&(text.len() as u32).to_le_bytes()),
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[test]
fn headers_round_trip_in_multiples_of_64() {
    for shape in [&[] as &[u64], &[5], &[2, 3], &[0, 4], &[1; 64], &[u64::MAX >> 4]] {
        for fortran_order in [false, true] {
            let header = header(shape, fortran_order);
            let mut bytes = header.to_bytes();
            assert_eq!(bytes.len() % 64, 0);
            assert_eq!(bytes.last(), Some(&b'\n'));
            assert_eq!(prefix_bytes_needed(&bytes[..12], "a.npy").unwrap(), bytes.len() as u64);
            let offset = bytes.len() as u64;
            bytes.extend_from_slice(b"elements");
            assert_eq!(NpyHeader::parse(&bytes, "a.npy").unwrap(), (header, offset));
        }
    }
}

#[test]
fn every_kind_and_version_is_read() {
    for kind in Kind::ALL {
        let header = NpyHeader { element: ElementType::native(kind), fortran_order: true, shape: vec![3] };
        if kind == Kind::BFloat16 {
            let error = header.data_bytes("a.npy").unwrap_err();
            assert!(error.is_unsupported() && error.to_string().contains("bfloat16"), "{error}");
            assert!(NpyHeader::parse(&header.to_bytes(), "a.npy").unwrap_err().is_unsupported());
            continue;
        }
        assert_eq!(NpyHeader::parse(&header.to_bytes(), "a.npy").unwrap().0, header);
    }
    for version in 1..=3 {
        let bytes = file(version, "{'descr': '>f8', 'fortran_order': False, 'shape': (2,), }\n");
        assert_eq!(NpyHeader::parse(&bytes, "a.npy").unwrap(), (header(&[2], false), bytes.len() as u64));
    }
}

#[test]
fn unsupported_types_are_refused_by_name() {
    for (descr, name) in [
        ("'|O'", "'|O'"),
        ("[('a', '<i4'), ('b', '|O')]", "'b' of type '|O'"),
        ("[('a', 'float8_e5m2')]", "float8_e5m2"),
        ("'float8_e5m2'", "float8_e5m2"),
        ("'V4[('", "V4["),
        ("'<f16'", "'<f16'"),
        ("'é'", "'é'"),
        ("''", "''"),
    ] {
        let bytes = file(3, &format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}"));
        let error = NpyHeader::parse(&bytes, "a.npy").unwrap_err();
        assert!(error.is_unsupported(), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn what_is_no_number_comes_back() {
    for (descr, name) in [
        ("'<M8[s]'", "<M8[s]"),
        ("'>m8[10ns]'", ">m8[10ns]"),
        ("'|V8'", "|V8"),
        ("[('a', '<i4'), ('b', '>f8', (2,))]", "|V20[('a', '<i4'), ('b', '>f8', (2,))]"),
        ("[('größe', '|i1'), ('', '|V7')]", "|V8[('größe', '|i1'), ('', '|V7')]"),
    ] {
        let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}");
        let (header, _) = NpyHeader::parse(&file(3, &text), "a.npy").unwrap();
        assert_eq!(header.element.numpy(), name);
        let bytes = header.to_bytes();
        assert_eq!((bytes[6], bytes.len() % 64), (if text.is_ascii() { 1 } else { 3 }, 0));
        assert_eq!(NpyHeader::parse(&bytes, "a.npy").unwrap(), (header, bytes.len() as u64));
    }
    let latin: Vec<u8> = "{'descr': [('gr\u{f6}sse', '|i1')], 'fortran_order': False, 'shape': (), }"
        .chars()
        .map(|character| character as u8)
        .collect();
    let bytes = [MAGIC, &[1, 0], &(latin.len() as u16).to_le_bytes(), &latin].concat();
    assert_eq!(NpyHeader::parse(&bytes, "a.npy").unwrap().0.element.numpy(), "|V1[('grösse', '|i1')]");
    let small = NpyHeader { element: ElementType::from_numpy("float8_e5m2").unwrap(), ..header(&[2], false) };
    assert!(small.data_bytes("a.npy").unwrap_err().to_string().contains("float8_e5m2"));
}

#[test]
fn damaged_headers_are_refused() {
    let good = header(&[2, 3], false).to_bytes();
    for length in 0..good.len() {
        assert!(NpyHeader::parse(&good[..length], "a.npy").unwrap_err().is_corrupt());
    }
    for text in [
        "{'descr': '<f8', 'fortran_order': False}",
        "{'descr': '<f8', 'shape': (2,)}",
        "{'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (2,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 2}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ('2',)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'x': 1}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,)}",
    ] {
        assert!(NpyHeader::parse(&file(1, text), "a.npy").unwrap_err().is_corrupt(), "{text}");
    }
    let huge = [MAGIC, &[2, 0], &[0xff; 4]].concat();
    assert!(prefix_bytes_needed(&huge, "a.npy").unwrap_err().is_unsupported());
    assert!(prefix_bytes_needed(b"\x93NUMPY\x09\x00", "a.npy").unwrap_err().is_unsupported());
    assert!(prefix_bytes_needed(b"PK\x03\x04", "a.npz").unwrap_err().hint().unwrap().contains("npz"));
}

#[test]
fn sizes_of_files_are_checked() {
    let header = header(&[2, 3], false);
    assert_eq!(header.data_bytes("a.npy").unwrap(), 48);
    header.check_size(128, 176, "a.npy").unwrap();
    header.check_size(128, 180, "a.npy").unwrap();
    let text = header.check_size(128, 175, "a.npy").unwrap_err().to_string();
    assert!(text.contains("176 B"), "{text}");
    assert!(text.contains("175 B"), "{text}");
}

#[test]
fn mutated_headers_never_panic() {
    let mut random = fastrand::Rng::with_seed(5);
    let good = header(&[20, 30], true).to_bytes();
    let spice = b"{}()[]'\",:L \\\n0919TrueFalse\xff\xc3|<>=O";
    for _ in 0..20_000 {
        let mut bad = good.clone();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bad.len());
            match random.u8(..4) {
                0 => bad[at] = random.u8(..),
                1 => bad[at] = spice[random.usize(..spice.len())],
                2 => bad.insert(at, spice[random.usize(..spice.len())]),
                _ => {
                    bad.remove(at);
                }
            }
        }
        if let Ok((header, offset)) = NpyHeader::parse(&bad, "a.npy") {
            assert!(header.data_bytes("a.npy").is_ok());
            assert!(offset <= bad.len() as u64);
        }
    }
}

/// NumPy leaves room for the axis that can grow, which is the last one in Fortran order.
#[test]
fn the_growing_axis_has_room() {
    let mut shape = vec![1; 12];
    shape[0] = 1_000_000_000;
    let sizes = |shape: &[u64]| [true, false].map(|fortran_order| header(shape, fortran_order).to_bytes().len());
    assert_eq!(sizes(&shape), [192, 128]);
    shape.reverse();
    assert_eq!(sizes(&shape), [128, 192]);
}
