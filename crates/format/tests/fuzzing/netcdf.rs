//! Headers of NetCDF classic files.

use hyperslab_format::attribute::Attributes;
use hyperslab_format::netcdf::{Attribute, NetcdfHeader, NewVariable};
use hyperslab_layout::Kind;

pub(super) fn check(bytes: &[u8]) {
    let length = bytes.len() as u64;
    for file_bytes in [length, 1 << 40] {
        let Ok(Some((header, end))) = NetcdfHeader::parse(bytes, file_bytes, "f") else { continue };
        assert!(end <= length);
        let prefix = &bytes[..end as usize];
        assert_eq!(NetcdfHeader::parse(prefix, file_bytes, "f").unwrap(), Some((header.clone(), end)));
        let half = NetcdfHeader::parse(&bytes[..end as usize - 1], file_bytes, "f");
        assert!(!matches!(half, Ok(Some(_))), "a header that is cut short is none");
        use_all(&header);
        grow(header, file_bytes);
    }
}

/// All that a header says.
fn use_all(header: &NetcdfHeader) {
    let end = header.end();
    assert!(header.padded_end() >= end);
    header.check_size(end, "f").unwrap();
    header.records_field();
    let records: Vec<usize> = header.record_variables().collect();
    header.record_bytes().expect("a header that is read has records of some size");
    for number in 0..header.variables.len() {
        assert_eq!(header.shape(number).len(), header.dimension_names(number).len());
        assert_eq!(header.is_record(number), records.contains(&number));
        assert_eq!(header.fill(number).len() as u64, header.element(number).bytes());
        assert_eq!(header.stored(&[number], &"f".into()).len(), 1);
        header.variables[number].attributes.iter().for_each(use_attribute);
    }
    header.attributes.iter().for_each(use_attribute);
}

fn use_attribute(attribute: &Attribute) {
    assert_eq!(attribute.bytes().len() as u64 % attribute.kind.bytes(), 0);
    attribute.to_value();
}

/// What is read is written and read again, also with another variable and more records.
fn grow(mut header: NetcdfHeader, file_bytes: u64) {
    let again = |header: &NetcdfHeader| {
        let written = header.to_bytes();
        let (found, end) = NetcdfHeader::parse(&written, file_bytes, "f").unwrap().unwrap();
        assert_eq!((&found, end), (header, written.len() as u64));
    };
    again(&header);
    let variables = header.variables.len();
    let attributes = Attributes::new();
    let new = NewVariable {
        name: "hyperslab",
        shape: &[3, 2],
        kind: Kind::Float32,
        dimension_names: None,
        attributes: &attributes,
        fill: None,
    };
    let records = header.records;
    if header.add(&[new], None, None).is_ok() {
        use_all(&header);
        header.arrange();
        again(&header);
        use_all(&header);
        header.back_to(variables, records);
        again(&header);
    }
    if header.grow(records.saturating_add(5), "f").is_ok() {
        use_all(&header);
    }
}
