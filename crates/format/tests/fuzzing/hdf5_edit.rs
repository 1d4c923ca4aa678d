//! Changes of HDF5 files that exist.

use super::Input;
use super::hdf5_read::look_at_all;
use super::repairing::RepairingFile;
use hyperslab_format::Error;
use hyperslab_format::hdf5::{
    ChangedDataset, ChunkPlace, Dataset, DatasetStorage, Datatype, Hdf5Attribute, Hdf5Change, Hdf5Edit, Hdf5File,
    Hdf5Listing, MetadataSource, NewDataset, NewGroup, NewMember, NewStorage, ObjectKind, StoredValue,
};
use hyperslab_layout::ByteOrder;

/// Choices before the file.
const CHOICES: usize = 16;
const REAL: Datatype = Datatype::Float { bytes: 8, order: ByteOrder::Little };

pub(super) fn check(bytes: &[u8]) {
    let (choices, bytes) = bytes.split_at_checked(CHOICES).unwrap_or((bytes, &[]));
    let source = RepairingFile::new(bytes);
    let Ok(file) = source.answered(|| Hdf5File::open(&source, "f")) else { return };
    let all = look_at_all(&file, &source);
    if all.is_empty() {
        return;
    }
    let before = source.answered(|| file.listing(&source));
    let at = source.length().next_multiple_of(8);
    let Ok(change) = source.answered(|| edited(&file, &source, &all, Input::new(choices), at)) else { return };
    let original = source.bytes.borrow().clone();
    check_places(&change, &original);
    // Up to the first write in place, everything reads as before.
    source.bytes.borrow_mut().resize(at as usize, 0);
    source.bytes.borrow_mut().extend(&change.behind);
    if let Ok(listing) = &before {
        let now = Hdf5File::open(&source, "f").unwrap();
        assert_eq!(now, file);
        // What led behind the end before may lead somewhere now.
        let readable = |listing: &Hdf5Listing| -> Vec<Dataset> {
            listing.datasets.iter().filter_map(|one| one.dataset.clone().ok()).collect()
        };
        let now = now.listing(&source).unwrap();
        let (before, now) = (readable(listing), readable(&now));
        assert!(before.iter().all(|dataset| now.contains(dataset)), "it reads as before: {before:?}, {now:?}");
    }
    put(&source, change.in_place.iter());
    if let Ok(file) = Hdf5File::open(&source, "f") {
        look_at_all(&file, &source);
    }
    // Who looked has repaired checksums.
    source.bytes.borrow_mut().splice(..original.len(), original.iter().copied());
    put(&source, change.in_place.iter());
    put(&source, change.before.iter().rev());
    assert!(source.bytes.borrow().starts_with(&original), "what is taken back is as it was");
}

fn put<'a>(source: &RepairingFile, blocks: impl Iterator<Item = &'a (u64, Vec<u8>)>) {
    for (at, bytes) in blocks {
        source.bytes.borrow_mut()[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
    }
}

/// What is written in place lies in what was there, and what is said to have been there was.
fn check_places(change: &Hdf5Change, original: &[u8]) {
    assert_eq!(change.in_place.len(), change.before.len());
    for ((place, after), (same, before)) in change.in_place.iter().zip(&change.before) {
        assert_eq!((place, after.len()), (same, before.len()));
        let end = place.checked_add(after.len() as u64).unwrap();
        assert!(end <= original.len() as u64, "{} B at {place} in a file of {} B", after.len(), original.len());
        assert_eq!(before, &original[*place as usize..end as usize]);
    }
}

fn edited(
    file: &Hdf5File,
    source: &RepairingFile,
    all: &[(String, u64, ObjectKind)],
    mut input: Input,
    at: u64,
) -> Result<Hdf5Change, Error> {
    let mut edit = Hdf5Edit::of(file, source, at)?;
    for _ in 0..1 + input.below(3) {
        let (path, object, _) = &all[input.byte() as usize % all.len()];
        match input.below(6) {
            0 => drop(edit.add(&new(&mut input, path))?),
            1 => edit.delete(path)?,
            2 => edit.rename(path, ["other", "group/other", "a/b/c"][input.below(3) as usize])?,
            3 | 4 => {
                let set = [attribute(&mut input)];
                let (count, parity) = (input.below(2) as usize, input.below(3) as usize);
                edit.edit_attributes(path, &set[..count], &|name| name.len() % 3 == parity)?;
            }
            _ => {
                if let Ok(dataset) = file.dataset_at(source, *object) {
                    let DatasetStorage::Chunked { chunk, .. } = &dataset.storage else { continue };
                    let shape = dataset.shape.clone().unwrap_or_default();
                    edit.change(&changed(&mut input, *object, shape, chunk))?;
                }
            }
        }
    }
    edit.made()
}

fn attribute(input: &mut Input) -> Hdf5Attribute {
    let name = input.one_of(&["x", "units", "a longer name of an attribute"]).to_string();
    let (datatype, value) = match input.flag() {
        true => (REAL, StoredValue::Elements(vec![7; 8])),
        false => (Datatype::VariableText { utf8: true }, StoredValue::Texts(vec!["text".repeat(9).into()])),
    };
    Hdf5Attribute { name, datatype, shape: Some(Vec::new()), value }
}

/// A dataset or group, in a group that may be there.
fn new(input: &mut Input, path: &str) -> NewGroup {
    let name = input.one_of(&["new", "group", "d", ""]).to_string();
    let member = match input.flag() {
        true => NewMember::Group(NewGroup { name, attributes: vec![attribute(input)], ..NewGroup::default() }),
        false => NewMember::Dataset(NewDataset {
            name,
            shape: vec![4],
            limits: vec![None],
            datatype: REAL,
            fill: None,
            storage: NewStorage::Chunked { chunk: vec![2], places: Vec::new().into() },
            filters: Vec::new(),
            attributes: Vec::new(),
            dimensions: Vec::new(),
        }),
    };
    let above = path.rsplit('/').filter(|name| !name.is_empty());
    let root = NewGroup { members: vec![member], ..NewGroup::default() };
    above.fold(root, |inner, name| NewGroup {
        members: vec![NewMember::Group(NewGroup { name: name.into(), ..inner })],
        ..NewGroup::default()
    })
}

/// A dataset that grows, and gets some chunks.
fn changed(input: &mut Input, at: u64, mut shape: Vec<u64>, chunk: &[u64]) -> ChangedDataset {
    for extent in &mut shape {
        *extent = extent.saturating_add(input.below(8));
    }
    let count = shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).try_fold(1u64, u64::checked_mul);
    let count = count.unwrap_or(0);
    let step = 1 + input.below(9);
    let numbers = (0..input.below(4)).map(|number| input.below(3) + number * step.max(3));
    let places = numbers.filter(|number| *number < count);
    let place = |number| ChunkPlace { number, at: 8 * number, bytes: 8, lacks: 0 };
    ChangedDataset { at, shape, places: places.map(place).collect() }
}
