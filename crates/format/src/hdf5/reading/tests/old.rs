//! Messages of versions that libraries of today no longer write.

use crate::error::{Context, Error};
use crate::hdf5::content::{ChunkIndex, DatasetStorage, MetadataSource};
use crate::hdf5::datatype::{CompoundField, Datatype};
use crate::hdf5::reading::datatypes::datatype;
use crate::hdf5::reading::fetch::Fetcher;
use crate::hdf5::reading::fields::{FieldReader, Widths};
use crate::hdf5::reading::header::{HeaderMessage, MessageKind, ObjectHeader};
use crate::hdf5::reading::layout::layout;
use crate::hdf5::reading::messages::{dataspace, fill, filters};
use hyperslab_layout::ByteOrder;

const WIDTHS: Widths = Widths { base: 512, offset: 4, length: 4 };

fn fields(rest: &[u8]) -> FieldReader<'_> {
    FieldReader { rest, widths: WIDTHS, context: Context { asked: "read", object: "x" }, what: "message" }
}

struct Nothing;

impl MetadataSource for Nothing {
    fn length(&self) -> u64 {
        0
    }
    fn read(&self, _: u64, _: usize) -> Result<Vec<u8>, Error> {
        unreachable!("nothing is read of an empty file")
    }
}

/// Little-endian numbers, each with its width.
fn message(parts: &[(u64, usize)]) -> Vec<u8> {
    parts.iter().flat_map(|(number, width)| number.to_le_bytes()[..*width].to_vec()).collect()
}

#[test]
fn layouts_of_versions_1_and_2() {
    // Version, extents, class, reserved; address; extents.
    let contiguous = message(&[(1, 1), (2, 1), (1, 1), (0, 5), (100, 4), (3, 4), (5, 4)]);
    assert_eq!(
        layout(&mut fields(&contiguous), 0, (60, 4)).unwrap(),
        DatasetStorage::Contiguous { at: Some(612), bytes: 60 }
    );
    let chunked = message(&[(2, 1), (3, 1), (2, 1), (0, 5), (u64::MAX, 4), (3, 4), (5, 4), (8, 4)]);
    let none = DatasetStorage::Chunked { chunk: vec![3, 5], index: ChunkIndex::Empty, plain_edges: false };
    assert_eq!(layout(&mut fields(&chunked), 0, (0, 8)).unwrap(), none);
    assert!(layout(&mut fields(&chunked), 0, (0, 4)).unwrap_err().is_corrupt());
    let compact = message(&[(1, 1), (1, 1), (0, 1), (0, 5), (2, 4), (2, 4), (0x0201, 2)]);
    assert_eq!(layout(&mut fields(&compact), 100, (2, 1)).unwrap(), DatasetStorage::Compact { at: 116, bytes: 2 });
    let future = layout(&mut fields(&[6, 1]), 0, (2, 1)).unwrap();
    assert_eq!(future, DatasetStorage::Unsupported("a layout of version 6".into()));
}

#[test]
fn fill_values_of_old_messages() {
    let value = |kind: MessageKind, body: &[u8]| {
        let message =
            HeaderMessage { kind: kind as u16, flags: 0, order: None, body: body.to_vec(), at: 0, block: (0, 0) };
        let fetcher = Fetcher::new(&Nothing, WIDTHS, Context { asked: "read", object: "x" });
        fill(&fetcher, &ObjectHeader { messages: vec![message], version: 1, counted: false, first: (Vec::new(), 0) })
            .unwrap()
    };
    assert_eq!(value(MessageKind::FillOld, &[2, 0, 0, 0, 7, 8]), Some(vec![7, 8]));
    assert_eq!(value(MessageKind::FillOld, &[0, 0, 0, 0]), None);
    assert_eq!(value(MessageKind::Fill, &[1, 2, 0, 1, 1, 0, 0, 0, 9]), Some(vec![9]));
    assert_eq!(value(MessageKind::Fill, &[1, 2, 0, 0, 1, 0, 0, 0, 9]), None);
    assert_eq!(value(MessageKind::Fill, &[2, 2, 0, 0]), None);
    assert_eq!(value(MessageKind::Fill, &[3, 0b10_1001, 1, 0, 0, 0, 9]), Some(vec![9]));
    assert_eq!(value(MessageKind::Fill, &[3, 0b01_1001]), None);
}

/// A compound of version 1: a field may have up to four extents of its own.
#[test]
fn compounds_of_version_1_hold_arrays() {
    let byte = [(0x10, 1), (8, 3), (1, 4), (0, 2), (8, 2)];
    let member = |name: u64, offset: u64, ndim: u64| {
        let head = [(name, 8), (offset, 4), (ndim, 1), (0, 3), (0, 4), (0, 4), (2, 4), (3, 4), (0, 4), (0, 4)];
        [&head[..], &byte].concat()
    };
    let start = [(0x16, 1), (2, 3), (7, 4)];
    let whole = message(&[&start[..], &member(u64::from(b'a'), 0, 0), &member(u64::from(b'b'), 1, 2)].concat());
    let byte = Datatype::Integer { bytes: 1, signed: true, order: ByteOrder::Little };
    let array = Datatype::Array { shape: vec![2, 3], base: Box::new(byte.clone()) };
    let field = |name: &str, offset, datatype| CompoundField { name: name.into(), offset, datatype };
    let expected = Datatype::Compound { bytes: 7, fields: vec![field("a", 0, byte), field("b", 1, array)] };
    assert_eq!(datatype(&mut fields(&whole)).unwrap(), expected);
    for length in 0..whole.len() {
        assert!(datatype(&mut fields(&whole[..length])).unwrap_err().is_corrupt(), "{length}");
    }
}

#[test]
fn types_are_not_nested_for_ever() {
    // Arrays of one array of one array ...
    let nested = [0x3a, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0].repeat(100);
    assert!(datatype(&mut fields(&nested)).unwrap_err().is_unsupported());
}

#[test]
fn short_floats_are_known() {
    let float = |bytes: u64, sign: u64, exponent, exponent_bits, fraction_bits, bias| {
        let bits: u64 = sign << 8 | 0x20;
        let head = [(0x11, 1), (bits, 3), (bytes, 4), (0, 2), (8 * bytes, 2)];
        let parts = [(exponent, 1), (exponent_bits, 1), (0, 1), (fraction_bits, 1), (bias, 4)];
        datatype(&mut fields(&message(&[&head[..], &parts].concat()))).unwrap().element("x").map(|found| found.numpy())
    };
    assert_eq!(float(2, 15, 10, 5, 10, 15).unwrap(), "<f2");
    assert_eq!(float(2, 15, 7, 8, 7, 127).unwrap(), "<bfloat16");
    assert_eq!(float(1, 7, 2, 5, 2, 15).unwrap(), "|float8_e5m2");
    assert!(float(1, 7, 3, 4, 3, 7).unwrap_err().to_string().contains("a float of 8 bits in 1 B"));
}

#[test]
fn spaces_and_filters_of_version_1() {
    let space = dataspace(&mut fields(&message(&[(1, 1), (1, 1), (1, 1), (0, 5), (3, 4), (u64::MAX, 4)]))).unwrap();
    assert_eq!((space.shape, space.limits), (Some(vec![3]), vec![None]));
    let shrunk = dataspace(&mut fields(&message(&[(1, 1), (1, 1), (1, 1), (0, 5), (3, 4), (2, 4)])));
    assert!(shrunk.unwrap_err().is_corrupt());
    let name = u64::from_le_bytes(*b"deflate\0");
    let one = [(1, 2), (8, 2), (1, 2), (1, 2), (name, 8), (6, 4), (0, 4)];
    let found = filters(&mut fields(&message(&[&[(1, 1), (1, 1), (0, 6)][..], &one].concat()))).unwrap();
    assert_eq!((found[0].number, found[0].name.as_str(), found[0].optional), (1, "deflate", true));
    assert_eq!(found[0].values, [6]);
}
