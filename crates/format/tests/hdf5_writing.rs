//! What is written is read back by the reader of this crate, which is tested with files of other libraries; h5py and netCDF4
//! read it in the tests of Python.

use hyperslab_format::attribute::{AttributeValue, Attributes};
use hyperslab_format::hdf5::{
    Chunk, ChunkPlace, DatasetStorage, Datatype, Dialect, Filter, Hdf5Attribute, Hdf5Change, Hdf5Edit, Hdf5File,
    Hdf5Metadata, MetadataSource, NewDataset, NewGroup, NewMember, NewStorage, SUPERBLOCK_BYTES,
};
use hyperslab_format::{Error, zarr};
use hyperslab_layout::{ByteOrder, ElementType, Kind};
use std::cell::Cell;

/// Bytes of a file, and how many were read.
struct Bytes(Vec<u8>, Cell<usize>);

impl MetadataSource for Bytes {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, at: u64, bytes: usize) -> Result<Vec<u8>, Error> {
        self.1.set(self.1.get() + bytes);
        let part = self.0.get(at as usize..at as usize + bytes);
        part.map(<[u8]>::to_vec).ok_or_else(|| Error::cut_short("bytes", bytes.to_string(), "fewer"))
    }
}

/// A file of this metadata, whose elements would end here.
fn file(root: &NewGroup, end: u64) -> Bytes {
    let metadata = Hdf5Metadata::of(root, end).unwrap();
    assert_eq!(metadata.superblock.len() as u64, SUPERBLOCK_BYTES);
    let mut bytes = metadata.superblock;
    bytes.resize(end.next_multiple_of(8) as usize, 0);
    bytes.extend(metadata.bytes);
    Bytes(bytes, Cell::new(0))
}

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

fn attributes(value: &serde_json::Value) -> Vec<Hdf5Attribute> {
    let all: Attributes = value.as_object().unwrap().clone().into_iter().collect();
    Hdf5Attribute::of_values(&all, None, Dialect::H5py).unwrap()
}

#[test]
fn groups_of_any_size_are_read_back() {
    for count in [0, 1, 9, 64, 65, 300, 4097, 20_000] {
        let one =
            |i: u64| NewMember::Dataset(dataset(&format!("d{i}"), &[i], NewStorage::Contiguous(Some(64 + 8 * i))));
        let root = NewGroup { members: (0..count).map(one).collect(), ..NewGroup::default() };
        let source = file(&root, 400_000);
        let found = Hdf5File::open(&source, "f").unwrap();
        let listing = found.listing(&source).unwrap();
        let mut numbers: Vec<u64> = Vec::new();
        for listed in &listing.datasets {
            let (number, dataset) = (listed.path[1..].parse().unwrap(), listed.dataset.as_ref().unwrap());
            assert_eq!(dataset.shape, Some(vec![number]));
            assert_eq!(dataset.storage, DatasetStorage::Contiguous { at: Some(64 + 8 * number), bytes: 8 * number });
            numbers.push(number);
        }
        // Links keep their order, wherever they lie.
        assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "{count}");
    }
}

/// A group with a dataset in it, as a step has.
fn step(name: &str) -> NewGroup {
    let inner = dataset("rho", &[4], NewStorage::Contiguous(None));
    let group = NewGroup { name: name.into(), members: vec![NewMember::Dataset(inner)], ..NewGroup::default() };
    NewGroup { members: vec![NewMember::Group(group)], ..NewGroup::default() }
}

fn changed(source: &Bytes, edit: impl FnOnce(&mut Hdf5Edit)) -> Hdf5Change {
    let found = Hdf5File::open(source, "f").unwrap();
    let mut edits = Hdf5Edit::of(&found, source, source.0.len().next_multiple_of(8) as u64).unwrap();
    edit(&mut edits);
    edits.made().unwrap()
}

/// Writes what is behind, and so many parts in place.
fn apply(source: &mut Bytes, change: &Hdf5Change, parts: usize) {
    let at = source.0.len().next_multiple_of(8);
    source.0.resize(at, 0);
    source.0.extend(&change.behind);
    for (at, bytes) in &change.in_place[..parts] {
        source.0[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
    }
}

fn names(source: &Bytes) -> Vec<String> {
    let found = Hdf5File::open(source, "f").unwrap();
    found.group_at(source, found.root()).unwrap().into_iter().map(|link| link.name).collect()
}

/// What is written and read for a step does not grow with the steps before it, and the step is there with the last write.
#[test]
fn a_step_costs_what_is_new_and_the_way_to_it() {
    let mut source = file(&NewGroup::default(), 1000);
    let (mut expected, mut costs) = (Vec::new(), Vec::new());
    for number in 0..5000u32 {
        // Names whose order is not that in which they come.
        let name = format!("{:08x}", number.wrapping_mul(2_654_435_761));
        source.1.set(0);
        let change = changed(&source, |edits| drop(edits.add(&step(&name)).unwrap()));
        let written = change.behind.len() + change.in_place.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        costs.push((written, source.1.get(), change.in_place.len()));
        if number % 97 == 0 || (60..70).contains(&number) {
            for parts in 0..change.in_place.len() {
                let mut torn = Bytes(source.0.clone(), Cell::new(0));
                apply(&mut torn, &change, parts);
                assert_eq!(names(&torn), expected, "{parts} parts of step {number}");
            }
        }
        apply(&mut source, &change, change.in_place.len());
        expected.push(name);
        if number % 97 == 0 || (60..70).contains(&number) {
            assert_eq!(names(&source), expected);
        }
    }
    let most = |range: std::ops::Range<usize>| {
        costs[range].iter().fold((0, 0), |most, cost| (most.0.max(cost.0), most.1.max(cost.1)))
    };
    let (few, many) = (most(100..600), most(4500..5000));
    // Trees have a level more.
    assert!(many.0 < few.0 * 2 && many.1 < few.1 * 2, "{few:?} B written and read, then {many:?}");
    assert!(many.0 < 10_000, "{many:?} B");
    let rewritten = costs[100..].iter().filter(|cost| cost.2 > 2).count();
    assert!(rewritten <= 10, "the header was written {rewritten} times");

    // By name, and all of it once more.
    let found = Hdf5File::open(&source, "f").unwrap();
    for name in expected.iter().step_by(61) {
        assert!(found.object_at(&source, &format!("{name}/rho")).unwrap().is_some(), "{name}");
        assert!(found.object_at(&source, &format!("{name}x")).unwrap().is_none(), "{name}");
    }
    // What is deleted and renamed goes, and the order of the others stays.
    let change = changed(&source, |edits| {
        edits.delete(&expected[17]).unwrap();
        edits.rename(&expected[3], "last").unwrap();
    });
    apply(&mut source, &change, change.in_place.len());
    expected.remove(17);
    expected.remove(3);
    expected.push("last".into());
    assert_eq!(names(&source), expected);
    let taken = Hdf5File::open(&source, "f").unwrap();
    let mut edits = Hdf5Edit::of(&taken, &source, source.0.len().next_multiple_of(8) as u64).unwrap();
    let again = NewGroup {
        members: vec![NewMember::Dataset(dataset("last", &[4], NewStorage::Contiguous(None)))],
        ..NewGroup::default()
    };
    assert!(edits.add(&again).unwrap_err().is_invalid(), "the name is taken");
}

/// What is read to list a file grows as what is in it does, also where attributes of all lie in one collection of values.
#[test]
fn a_list_of_twice_as_much_reads_twice_as_much() {
    let read = |count: u64| {
        let one = |i: u64| {
            let made = dataset(&format!("d{i}"), &[4], NewStorage::Contiguous(Some(64)));
            let attributes = attributes(&serde_json::json!({"text": format!("of {i}")}));
            NewMember::Dataset(NewDataset { dimensions: vec!["x".into()], attributes, ..made })
        };
        let source = file(&NewGroup { members: (0..count).map(one).collect(), ..NewGroup::default() }, 1000);
        let listing = Hdf5File::open(&source, "f").unwrap().listing(&source).unwrap();
        assert_eq!(listing.datasets.len() as u64, count);
        assert_eq!(listing.datasets[7].dimensions, Some(vec![Some("x".to_string())]));
        source.1.get() as f64
    };
    let [some, twice] = [2000, 4000].map(read);
    assert!(twice < 2.2 * some, "{some} B of 2,000 datasets, {twice} B of 4,000");
}

#[test]
fn chunks_are_found_again() {
    for (shape, chunk) in [
        (vec![1], vec![1]),
        (vec![64], vec![1]),
        (vec![65], vec![1]),
        (vec![4096], vec![1]),
        (vec![4097], vec![1]),
        (vec![70, 33, 5], vec![7, 2, 3]),
        (vec![300_000], vec![1]),
    ] {
        let grid: Vec<u64> =
            shape.iter().zip(&chunk).map(|(extent, chunk): (&u64, &u64)| extent.div_ceil(*chunk)).collect();
        let count: u64 = grid.iter().product();
        let place = |number: u64| match number % 7 {
            3 => None,
            lacks => {
                Some(ChunkPlace { number, at: 4096 + 16 * (number % 1000), bytes: 16, lacks: u32::from(lacks == 2) })
            }
        };
        let storage = NewStorage::Chunked { chunk: chunk.clone(), places: (0..count).filter_map(place).collect() };
        let mut one = dataset("c", &shape, storage);
        one.limits = vec![None; shape.len()];
        one.filters = vec![Filter { number: 1, name: String::new(), optional: true, values: vec![6] }];
        let root = NewGroup { members: vec![NewMember::Dataset(one)], ..NewGroup::default() };
        let source = file(&root, 32_768);
        let found = Hdf5File::open(&source, "f").unwrap();
        let listing = found.listing(&source).unwrap();
        let dataset = listing.datasets[0].dataset.as_ref().unwrap();
        let whole: Vec<_> = grid.iter().map(|extent| 0..*extent).collect();
        let chunks = found.chunks(&source, dataset, &whole).unwrap();
        let coordinates = |mut i: u64| {
            let mut at: Vec<u64> = grid.iter().rev().map(|extent| (i % extent, i /= extent).0).collect();
            at.reverse();
            at
        };
        let expected: Vec<Chunk> = (0..count)
            .filter_map(place)
            .map(|ChunkPlace { number, at, bytes, lacks }| Chunk {
                coordinates: coordinates(number),
                at,
                bytes: bytes.into(),
                lacks,
            })
            .collect();
        assert!(chunks == expected, "{shape:?} in {chunk:?}: {} chunks, not {}", chunks.len(), expected.len());
    }
}

#[test]
fn a_tree_whose_chunks_are_not_in_order_is_damaged() {
    // As after a damage to a key: of parts of the dataset, chunks would be missing.
    let place = |number: u64| ChunkPlace { number, at: 48, bytes: 8, lacks: 0 };
    let storage = NewStorage::Chunked { chunk: vec![1], places: [0, 1, 2, 3].map(place).into() };
    let mut one = dataset("c", &[8], storage);
    one.limits = vec![None];
    let root = NewGroup { members: vec![NewMember::Dataset(one)], ..NewGroup::default() };
    let mut source = file(&root, 56);
    let node = source.0.windows(4).position(|bytes| bytes == b"TREE").unwrap();
    for (second, is_right) in [(1, true), (5, false), (7, false), (1, true)] {
        // Behind the head, keys of 24 B, each with 8 B before its coordinates, and addresses of 8 B.
        source.0[node + 24 + 32 + 8] = second;
        let found = Hdf5File::open(&source, "f").unwrap();
        let dataset = found.dataset_named(&source, (None, "c")).unwrap();
        let chunks = found.chunks(&source, &dataset, std::slice::from_ref(&(0..8)));
        assert_eq!(chunks.as_ref().is_err_and(Error::is_corrupt), !is_right, "{chunks:?}");
    }
}

#[test]
fn attributes_and_types_come_back() {
    let said = serde_json::json!({"text": "ein Wört", "none": "", "n": -3, "list": [1.5, 2.0], "is": true, "names": ["a", "", "b"]});
    let typed = Kind::ALL.into_iter().filter(|kind| *kind != Kind::BFloat16).map(|kind| {
        let datatype = Datatype::of_element(ElementType { kind, order: ByteOrder::Big }, kind.name()).unwrap();
        let fill = Some(vec![0x3c; datatype.bytes() as usize]);
        let dataset = dataset(kind.name(), &[3], NewStorage::Contiguous(Some(64)));
        NewMember::Dataset(NewDataset { datatype, fill, attributes: attributes(&said), ..dataset })
    });
    let inner = NewGroup {
        name: "inner".into(),
        attributes: attributes(&said),
        members: typed.collect(),
        ..NewGroup::default()
    };
    let root =
        NewGroup { attributes: attributes(&said), members: vec![NewMember::Group(inner)], ..NewGroup::default() };
    let source = file(&root, 1000);
    let listing = Hdf5File::open(&source, "f").unwrap().listing(&source).unwrap();
    let shown = |attributes: &[Hdf5Attribute]| {
        let each: Attributes = attributes.iter().map(|one| (one.name.clone(), one.to_value(Dialect::H5py))).collect();
        serde_json::Value::Object(zarr::attributes_to_json(&each, None).unwrap())
    };
    assert_eq!(shown(&listing.attributes), said);
    assert_eq!(listing.groups.iter().map(|group| &*group.path).collect::<Vec<_>>(), ["inner"]);
    for listed in &listing.datasets {
        let dataset = listed.dataset.as_ref().unwrap();
        let element = dataset.datatype.element("d").unwrap();
        assert_eq!(listed.path, format!("inner/{}", element.kind.name()));
        assert_eq!(dataset.fill.as_ref().unwrap().len() as u64, element.bytes());
        assert_eq!(shown(&listed.attributes), said);
    }
}

#[test]
fn dimensions_are_those_of_netcdf() {
    let with = |name: &str, shape: &[u64], dimensions: &[&str]| {
        let made = dataset(name, shape, NewStorage::Contiguous(Some(64)));
        NewMember::Dataset(NewDataset { dimensions: dimensions.iter().map(ToString::to_string).collect(), ..made })
    };
    let inner = NewGroup {
        name: "inner".into(),
        members: vec![with("b", &[4, 7], &["x", "y"]), with("c", &[9], &["x"])],
        ..NewGroup::default()
    };
    // `z` is a dimension and a variable that is none of it.
    let members = vec![
        with("a", &[4, 6, 2], &["x", "y", "z"]),
        with("x", &[4], &["x"]),
        with("z", &[6], &["y"]),
        NewMember::Group(inner.clone()),
    ];
    // One that a group above has with another length is one of its own.
    let error = Hdf5Metadata::of(&NewGroup { members: members.clone(), ..NewGroup::default() }, 64).unwrap_err();
    assert!(error.to_string().contains("dimension 'x' of length 4"), "{error}");
    let mut members = members;
    members[3] = NewMember::Group(NewGroup { members: inner.members[..1].to_vec(), ..inner });
    let source = file(&NewGroup { members, ..NewGroup::default() }, 1000);
    let listing = Hdf5File::open(&source, "f").unwrap().listing(&source).unwrap();
    let found: Vec<(String, String)> = listing
        .datasets
        .iter()
        .map(|one| {
            let names = one.dimensions.as_ref().unwrap().iter().map(|name| name.clone().unwrap()).collect::<Vec<_>>();
            (one.path.clone(), names.join(" "))
        })
        .collect();
    let expected = [("a", "x y z"), ("x", "x"), ("z", "y"), ("inner/b", "x y")];
    assert_eq!(found, expected.map(|(path, names)| (path.to_string(), names.to_string())));
}

#[test]
fn what_has_no_place_is_refused() {
    let refused = |members: Vec<NewMember>| {
        let error = Hdf5Metadata::check(&NewGroup { members, ..NewGroup::default() }).unwrap_err();
        assert!(error.is_invalid(), "{error}");
        error.to_string()
    };
    let one = |name: &str| NewMember::Dataset(dataset(name, &[2], NewStorage::Contiguous(None)));
    for name in ["", ".", "a/b", "a\0b"] {
        assert!(refused(vec![one(name)]).contains("a name that is not empty"), "{name:?}");
    }
    assert!(refused(vec![one("a"), one("a")]).contains("one object of this name in group `/`"));
    let chunked = |shape: &[u64], chunk: &[u64], count| {
        let place = |number| ChunkPlace { number, at: 64, bytes: 8, lacks: 0 };
        let storage = NewStorage::Chunked { chunk: chunk.to_vec(), places: (0..count).map(place).collect() };
        NewMember::Dataset(dataset("c", shape, storage))
    };
    assert!(refused(vec![chunked(&[4], &[0], 1)]).contains("chunks of 1 to"));
    assert!(refused(vec![chunked(&[4], &[1 << 30], 1)]).contains("2^32 - 1 B"));
    assert!(refused(vec![chunked(&[4], &[2], 3)]).contains("places for some of 2 chunks"));
    assert!(refused(vec![chunked(&[], &[], 1)]).contains("chunks of 1 to"));
}

/// Attributes above 64 KiB lie in a heap, and others of their object with them; changes put them there and keep them there.
#[test]
fn large_attributes_come_back() {
    let of = |text: &str, count: usize| -> Vec<Hdf5Attribute> {
        let small = (0..count).map(|number| (format!("n{number}"), AttributeValue::from(number as i64)));
        let all: Attributes = small.chain([("large".to_string(), text.repeat(40_000).into())]).collect();
        Hdf5Attribute::of_values(&all, None, Dialect::Netcdf).unwrap()
    };
    for count in [0, 1, 40, 700] {
        let given = of("ab", count);
        let inner = NewGroup { name: "g".into(), attributes: given.clone(), ..NewGroup::default() };
        let data = NewDataset { attributes: given.clone(), ..dataset("d", &[3], NewStorage::Contiguous(Some(64))) };
        let members = vec![NewMember::Group(inner), NewMember::Dataset(data)];
        let mut source = file(&NewGroup { attributes: given.clone(), members, ..NewGroup::default() }, 1000);
        let found = |source: &Bytes, path: &str| -> Vec<Hdf5Attribute> {
            let file = Hdf5File::open(source, "f").unwrap();
            let at = file.object_at(source, path).unwrap().unwrap();
            file.attributes_at(source, at).unwrap().into_iter().map(|(_, one)| one.unwrap()).collect()
        };
        for path in ["", "g", "d"] {
            assert_eq!(found(&source, path), given, "{path} with {count}");
        }
        let change = |source: &mut Bytes, set: &[Hdf5Attribute], gone: &str| {
            let file = Hdf5File::open(source, "f").unwrap();
            let mut edit = Hdf5Edit::of(&file, source, (source.0.len() as u64).next_multiple_of(8)).unwrap();
            edit.edit_attributes("g", set, &|name| name == gone).unwrap();
            let change = edit.made().unwrap();
            apply(source, &change, change.in_place.len());
        };
        let small = |name: &str| {
            let all: Attributes = [(name, 7)].into_iter().collect();
            Hdf5Attribute::of_values(&all, None, Dialect::Netcdf).unwrap()
        };
        change(&mut source, &small("new"), "n0");
        let kept = given.iter().filter(|one| one.name != "n0").cloned();
        let expected: Vec<Hdf5Attribute> = kept.chain(small("new")).collect();
        assert_eq!(found(&source, "g"), expected);
        change(&mut source, &[], "large");
        assert!(found(&source, "g").iter().all(|one| one.name != "large"));
        change(&mut source, &of("xyz", 0), "");
        assert_eq!(found(&source, "g").last(), of("xyz", 0).last());
        assert_eq!(found(&source, "d"), given);
    }
}
