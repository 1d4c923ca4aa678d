//! Files of our own writer that change again and again, held against a plain map of what they have.

use super::Input;
use super::repairing::RepairingFile;
use hyperslab_format::hdf5::{
    Datatype, Hdf5Attribute, Hdf5Change, Hdf5Edit, Hdf5File, Hdf5Metadata, MetadataSource, NewDataset, NewGroup,
    NewMember, NewStorage, SUPERBLOCK_BYTES, StoredValue,
};
use hyperslab_layout::ByteOrder;
use std::collections::BTreeMap;

const NAMES: [&str; 6] = ["a", "b", "units", "a name that is longer than others", "ä", "zz"];
const REAL: Datatype = Datatype::Float { bytes: 8, order: ByteOrder::Little };
/// Changes of one file.
const CHANGES_MAX: u64 = 12;

/// An object by its path: whether it is a group, and its attributes.
type Model = BTreeMap<String, (bool, BTreeMap<String, Hdf5Attribute>)>;

pub(super) fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut model = Model::from([(String::new(), (true, BTreeMap::new()))]);
    let root = group(&mut input, "", 2, &mut model);
    let made = Hdf5Metadata::of(&root, SUPERBLOCK_BYTES).unwrap();
    let source = RepairingFile::new(&[made.superblock, made.bytes].concat());
    compare(&source, &model);
    for _ in 0..input.below(CHANGES_MAX) {
        let mut changed = model.clone();
        let Some(change) = edited(&source, &mut input, &mut changed) else { continue };
        apply(&source, &change);
        model = changed;
        compare(&source, &model);
    }
}

/// What is in a group, as deep as said.
fn group(input: &mut Input, path: &str, depth: u64, model: &mut Model) -> NewGroup {
    let mut group = NewGroup { attributes: attributes(input), ..NewGroup::default() };
    let own = group.attributes.iter().map(|one| (one.name.clone(), one.clone())).collect();
    model.insert(path.into(), (true, own));
    for name in NAMES.iter().take(input.below(4) as usize) {
        let inner = format!("{path}/{name}");
        if depth > 0 && input.flag() {
            let member = NewGroup { name: (*name).into(), ..self::group(input, &inner, depth - 1, model) };
            group.members.push(NewMember::Group(member));
            continue;
        }
        let dataset = dataset(input, name);
        let own = dataset.attributes.iter().map(|one| (one.name.clone(), one.clone())).collect();
        model.insert(inner, (false, own));
        group.members.push(NewMember::Dataset(dataset));
    }
    group
}

fn dataset(input: &mut Input, name: &str) -> NewDataset {
    let grows = input.flag();
    NewDataset {
        name: name.into(),
        shape: vec![4],
        limits: if grows { vec![None] } else { Vec::new() },
        datatype: REAL,
        fill: None,
        storage: match grows {
            true => NewStorage::Chunked { chunk: vec![2], places: Vec::new().into() },
            false => NewStorage::Contiguous(None),
        },
        filters: Vec::new(),
        attributes: attributes(input),
        dimensions: Vec::new(),
    }
}

fn attributes(input: &mut Input) -> Vec<Hdf5Attribute> {
    let count = input.below(NAMES.len() as u64) as usize;
    NAMES.iter().take(count).map(|name| attribute(input, name)).collect()
}

fn attribute(input: &mut Input, name: &str) -> Hdf5Attribute {
    let count = input.one_of(&[1, 0, 2, 5, 40, 9000]);
    let (datatype, value) = match input.below(3) {
        0 => (REAL, StoredValue::Elements(vec![input.byte(); 8 * count as usize])),
        1 => (Datatype::VariableText { utf8: true }, StoredValue::Texts(vec!["tä".repeat(3).into(); count as usize])),
        _ => {
            let base = Datatype::Integer { bytes: 2, signed: true, order: ByteOrder::Big };
            (base, StoredValue::Elements(vec![3; 2 * count as usize]))
        }
    };
    Hdf5Attribute { name: name.into(), datatype, shape: Some(vec![count]), value }
}

/// One change of the file, and of the model.
fn edited(source: &RepairingFile, input: &mut Input, model: &mut Model) -> Option<Hdf5Change> {
    let file = Hdf5File::open(source, "f").unwrap();
    let at = source.length().next_multiple_of(8);
    let mut edit = Hdf5Edit::of(&file, source, at).unwrap();
    let path = model.keys().nth(input.byte() as usize % model.len()).unwrap().clone();
    let name = input.one_of(&NAMES);
    let (is_group, inner) = (model[&path].0, format!("{path}/{name}"));
    match input.below(4) {
        0 if is_group => {
            let mut new = Model::new();
            let member = match input.flag() {
                true => NewMember::Group(NewGroup { name: name.into(), ..group(input, &inner, 1, &mut new) }),
                false => {
                    let made = dataset(input, name);
                    let own = made.attributes.iter().map(|one| (one.name.clone(), one.clone())).collect();
                    new.insert(inner.clone(), (false, own));
                    NewMember::Dataset(made)
                }
            };
            if model.contains_key(&inner) {
                return None;
            }
            let root = NewGroup { members: vec![member], ..NewGroup::default() };
            let above = path.rsplit('/').filter(|name| !name.is_empty());
            let root = above.fold(root, |inner, name| NewGroup {
                members: vec![NewMember::Group(NewGroup { name: name.into(), ..inner })],
                ..NewGroup::default()
            });
            edit.add(&root).unwrap();
            model.extend(new);
        }
        1 if !path.is_empty() => {
            edit.delete(&path).unwrap();
            model.retain(|other, _| !is_in(other, &path));
        }
        2 if !path.is_empty() => {
            let above = model.keys().nth(input.byte() as usize % model.len()).unwrap().clone();
            let to = format!("{above}/{name}");
            let renamed = edit.rename(&path, &to);
            let free = model[&above].0 && !model.contains_key(&to);
            assert_eq!(renamed.is_ok(), free, "{path} to {to}: {renamed:?}");
            // A group in itself is nowhere.
            if !free || is_in(&above, &path) {
                return None;
            }
            let moved: Vec<String> = model.keys().filter(|other| is_in(other, &path)).cloned().collect();
            for old in moved {
                let value = model.remove(&old).unwrap();
                model.insert(format!("{to}{}", &old[path.len()..]), value);
            }
        }
        _ => {
            let set = attributes(input);
            let gone = input.one_of(&NAMES);
            edit.edit_attributes(&path, &set, &|name| name == gone).unwrap();
            let own = &mut model.get_mut(&path).unwrap().1;
            own.remove(gone);
            own.extend(set.into_iter().map(|one| (one.name.clone(), one)));
        }
    }
    Some(edit.made().unwrap())
}

fn is_in(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn apply(source: &RepairingFile, change: &Hdf5Change) {
    let mut bytes = source.bytes.borrow_mut();
    let end = bytes.len().next_multiple_of(8);
    bytes.resize(end, 0);
    bytes.extend(&change.behind);
    for (at, after) in &change.in_place {
        bytes[*at as usize..*at as usize + after.len()].copy_from_slice(after);
    }
}

/// The file has what the model has.
fn compare(source: &RepairingFile, model: &Model) {
    let file = Hdf5File::open(source, "f").unwrap();
    let listing = file.listing(source).unwrap();
    let named = |all: &[Hdf5Attribute]| all.iter().map(|one| (one.name.clone(), one.clone())).collect();
    let mut found = Model::from([(String::new(), (true, named(&listing.attributes)))]);
    found.extend(listing.groups.iter().map(|one| (format!("/{}", one.path), (true, named(&one.attributes)))));
    found.extend(listing.datasets.iter().map(|one| (format!("/{}", one.path), (false, named(&one.attributes)))));
    assert_eq!(found, *model);
}
