//! Writes HDF5 files for others to read: `hdf5_write DIRECTORY`. The referee `tests/hdf5/referee.py` reads what it made.

#![allow(clippy::disallowed_methods, reason = "a tool for tests, which is no rank")]

use hyperslab_format::hdf5::{
    ChunkPlace, Datatype, Filter, Hdf5Attribute, Hdf5Metadata, NewDataset, NewGroup, NewMember, NewStorage,
    StoredValue, TextEnd,
};
use hyperslab_layout::ByteOrder;
use std::fs;
use std::path::Path;

fn dataset(name: &str, shape: &[u64], storage: NewStorage) -> NewDataset {
    NewDataset {
        name: name.into(),
        shape: shape.to_vec(),
        limits: Vec::new(),
        datatype: Datatype::Float { bytes: 8, order: ByteOrder::Little },
        fill: None,
        storage,
        filters: Vec::new(),
        attributes: Vec::new(),
        dimensions: Vec::new(),
    }
}

fn text(name: &str, says: &str) -> Hdf5Attribute {
    Hdf5Attribute {
        name: name.into(),
        datatype: Datatype::VariableText { utf8: true },
        shape: Some(Vec::new()),
        value: StoredValue::Texts(vec![says.into()]),
    }
}

/// A file of these elements, from byte 64 on, and this metadata.
fn write(path: &Path, root: &NewGroup, data: &[u8]) {
    let metadata = Hdf5Metadata::of(root, 64 + data.len() as u64).expect("it can be made");
    let mut file = metadata.superblock;
    file.resize(64, 0);
    file.extend_from_slice(data);
    file.resize(file.len().next_multiple_of(8), 0);
    file.extend(metadata.bytes);
    fs::write(path, file).expect("it can be written");
}

fn place(number: u64, at: u64, bytes: u32) -> ChunkPlace {
    ChunkPlace { number, at, bytes, lacks: 0 }
}

/// Dimensions with and without variables, in two groups; one is unlimited.
fn netcdf() -> NewGroup {
    let mut rho = dataset("rho", &[4, 6], NewStorage::Contiguous(Some(64)));
    rho.attributes = vec![text("units", "kg/m³"), text("empty", "")];
    rho.dimensions = vec!["y".into(), "x".into()];
    let mut x = dataset("x", &[6], NewStorage::Contiguous(Some(64)));
    x.dimensions = vec!["x".into()];
    let mut y = dataset("y", &[4, 6], NewStorage::Contiguous(Some(64)));
    y.dimensions = vec!["z".into(), "x".into()];
    let places = [place(0, 64, 96), place(1, 160, 96)].into();
    let mut chunked = dataset("chunked", &[4, 6], NewStorage::Chunked { chunk: vec![2, 6], places });
    chunked.dimensions = vec!["t".into(), "x".into()];
    chunked.limits = vec![None, Some(6)];
    chunked.fill = Some(7f64.to_le_bytes().to_vec());
    let inner = NewGroup { name: "inner".into(), members: vec![NewMember::Dataset(chunked)], ..NewGroup::default() };
    let members = vec![NewMember::Dataset(rho), NewMember::Dataset(x), NewMember::Dataset(y), NewMember::Group(inner)];
    NewGroup { name: String::new(), attributes: vec![text("title", "a trial")], members, netcdf: true, classic: false }
}

fn many(count: usize) -> NewGroup {
    let one = |i| NewMember::Dataset(dataset(&format!("d{i}"), &[24], NewStorage::Contiguous(Some(64))));
    NewGroup { members: (0..count).map(one).collect(), ..NewGroup::default() }
}

/// Every seventh chunk is not there.
fn chunks(count: u64) -> NewGroup {
    let one = |number: u64| place(number, 64 + number % 24 * 8, 8);
    let places = (0..count).filter(|number| number % 7 != 3).map(one).collect();
    let storage = NewStorage::Chunked { chunk: vec![1], places };
    let mut one = dataset("c", &[count], storage);
    one.limits = vec![None];
    NewGroup { members: vec![NewMember::Dataset(one)], ..NewGroup::default() }
}

fn types() -> NewGroup {
    let mut group = NewGroup::default();
    let integer = |bytes, signed, order| Datatype::Integer { bytes, signed, order };
    for (name, datatype) in [
        ("i1", integer(1, true, ByteOrder::Little)),
        ("u8", integer(8, false, ByteOrder::Big)),
        ("f2", Datatype::Float { bytes: 2, order: ByteOrder::Little }),
        ("f4", Datatype::Float { bytes: 4, order: ByteOrder::Big }),
        ("s5", Datatype::Text { bytes: 5, end: TextEnd::Zeros, utf8: false }),
        ("o", Datatype::Opaque { bytes: 3, tag: "three".into() }),
    ] {
        let one = NewDataset { datatype, ..dataset(name, &[3], NewStorage::Contiguous(Some(64))) };
        group.members.push(NewMember::Dataset(one));
    }
    let storage = NewStorage::Chunked { chunk: vec![4, 6], places: [place(0, 64, 192)].into() };
    let mut shuffled = dataset("shuffled", &[4, 6], storage);
    shuffled.filters = vec![Filter { number: 2, name: String::new(), optional: false, values: vec![8] }];
    shuffled.limits = vec![Some(4), Some(6)];
    group.members.push(NewMember::Dataset(shuffled));
    group
}

fn main() {
    let directory = std::env::args().nth(1).expect("the name of a directory");
    let directory = Path::new(&directory);
    let numbers: Vec<u8> = (0..24).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    write(&directory.join("a.nc"), &netcdf(), &numbers);
    for count in [9, 2048, 4096, 4097, 20_000] {
        write(&directory.join(format!("many{count}.h5")), &many(count), &numbers);
    }
    for count in [1, 63, 64, 65, 4096, 4097, 1_000_000] {
        write(&directory.join(format!("chunks{count}.h5")), &chunks(count), &numbers);
    }
    write(&directory.join("types.h5"), &types(), &numbers);
}
