//! Files of h5py, netCDF4-python and h5netcdf are read as they were written (`hdf5/make_fixtures.py`).
#![allow(clippy::disallowed_methods, reason = "tests may read files")]
#![allow(clippy::single_range_in_vec_init, reason = "a grid of one dimension has one range")]

#[path = "hdf5/whole.rs"]
mod whole;

use hyperslab_format::hdf5::{
    Chunk, ChunkIndex, Dataset, DatasetStorage, Datatype, Hdf5Attribute, Hdf5File, Link, LinkTarget, ObjectKind,
    StoredValue,
};
use std::io::Read;
use std::path::Path;
use whole::{InMemory, whole};

const VERSIONS: [&str; 3] = ["earliest", "v108", "latest"];

fn open(name: &str) -> (Hdf5File, InMemory) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/hdf5/fixtures/{name}.gz"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let source = InMemory::new(bytes);
    (Hdf5File::open(&source, name).unwrap(), source)
}

/// The address of an object by its path.
fn find(file: &Hdf5File, source: &InMemory, path: &str) -> u64 {
    path.split('/').fold(file.root(), |at, name| {
        let links = file.group_at(source, at).unwrap();
        let link = links.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("no {path}"));
        let LinkTarget::Object(at) = link.member else { panic!("{link:?}") };
        at
    })
}

fn dataset(file: &Hdf5File, source: &InMemory, path: &str) -> Dataset {
    file.dataset_at(source, find(file, source, path)).unwrap()
}

fn elements(file: &Hdf5File, source: &InMemory, path: &str) -> Vec<u8> {
    whole(file, source, &dataset(file, source, path), 1 << 24).unwrap()
}

/// What `make_fixtures.py` calls numbers, of 4 B each.
fn numbers(count: i32) -> Vec<i32> {
    (0..count).map(|i| 7 * i + 3).collect()
}

fn as_bytes(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn attributes(file: &Hdf5File, source: &InMemory, path: &str) -> Vec<(String, Result<Hdf5Attribute, String>)> {
    let found = file.attributes_at(source, find(file, source, path)).unwrap();
    found.into_iter().map(|(name, one)| (name, one.map_err(|error| error.to_string()))).collect()
}

#[test]
fn elements_of_all_types_are_known() {
    for version in VERSIONS {
        let (file, source) = open(&format!("types_{version}.h5"));
        for (name, code) in [
            ("n_int8", "|i1"),
            ("n_uint16", "<u2"),
            ("n_int32", ">i4"),
            ("n_int64", "<i8"),
            ("n_float16", "<f2"),
            ("n_float32", ">f4"),
            ("n_float64", "<f8"),
            ("n_complex64", "<c8"),
            ("truth", "|b1"),
            ("date", "<M8[ns]"),
            ("fields", "|V32[('a', '|u1'), ('', '|V7'), ('b', '>f8', (2,)), ('s', '|S3'), ('', '|V5')]"),
            ("scalar", "<f4"),
            ("compact", "<i4"),
        ] {
            let found = dataset(&file, &source, name);
            assert_eq!(found.datatype.element(name).unwrap().numpy(), code, "{name} {version}");
            let rest = name.starts_with("n_").then(|| vec![2, 3]);
            assert!(rest.is_none() || found.shape == rest && found.limits == [Some(2), Some(3)], "{found:?}");
        }
        let big: Vec<u8> = numbers(6).iter().flat_map(|number| number.to_be_bytes()).collect();
        assert_eq!(elements(&file, &source, "n_int32"), big);
        let long: Vec<u8> = numbers(6).iter().flat_map(|&number| f64::from(number).to_le_bytes()).collect();
        assert_eq!(elements(&file, &source, "n_float64"), long);
        assert_eq!(elements(&file, &source, "truth"), [1, 0, 1]);
        assert_eq!(elements(&file, &source, "compact"), as_bytes(&numbers(6)));
        assert!(matches!(dataset(&file, &source, "compact").storage, DatasetStorage::Compact { .. }));
        assert_eq!(elements(&file, &source, "nothing"), 2.5f64.to_le_bytes().repeat(4));
        let nothing = dataset(&file, &source, "nothing");
        assert!(matches!(nothing.storage, DatasetStorage::Contiguous { at: None, .. }), "{:?}", nothing.storage);
        assert_eq!(dataset(&file, &source, "null").shape, None);
        assert_eq!(dataset(&file, &source, "scalar").shape, Some(vec![]));
        let texts = dataset(&file, &source, "texts");
        assert_eq!(texts.datatype, Datatype::VariableText { utf8: true });
        assert_eq!(texts.datatype.element("texts").unwrap().numpy(), "|O16");
        let read = file.texts(&source, &elements(&file, &source, "texts")).unwrap();
        assert!(read.iter().all(|text| std::str::from_utf8(text).is_ok()) && !read.is_empty());
        assert!(file.texts(&source, &[8; 16]).unwrap_err().is_corrupt());
    }
    let (file, source) = open("complex.h5");
    assert_eq!(dataset(&file, &source, "c").datatype.element("c").unwrap().numpy(), "<c16");
    let parts: Vec<u8> = [1f64, 2., 3., -4.].iter().flat_map(|part| part.to_le_bytes()).collect();
    assert_eq!(elements(&file, &source, "c"), parts);
}

#[test]
fn attributes_are_read_and_one_that_is_not_hides_no_other() {
    for version in VERSIONS {
        let (file, source) = open(&format!("attributes_{version}.h5"));
        let few = attributes(&file, &source, "few");
        let names: Vec<&str> = few.iter().map(|(name, _)| name.as_str()).collect();
        let all = ["fixed", "fixed_texts", "lists", "mixed", "named", "null", "numbers", "text", "texts"];
        assert_eq!(names, all, "{version}");
        let get = |name: &str| few.iter().find(|(known, _)| known == name).unwrap().1.clone();
        let value = |name: &str| get(name).unwrap().value;
        assert_eq!(value("text"), StoredValue::Texts(vec!["größe".into()]));
        assert_eq!(value("texts"), StoredValue::Texts(vec![b"one".to_vec(), Vec::new(), b"three".to_vec()]));
        assert_eq!(value("fixed"), StoredValue::Elements(b"abc".to_vec()));
        assert_eq!(value("fixed_texts"), StoredValue::Elements(b"ab\0cde".to_vec()));
        assert_eq!(value("numbers"), StoredValue::Elements(vec![0, 3, 0, 10, 0, 17, 0, 24]));
        assert_eq!(get("numbers").unwrap().shape, Some(vec![2, 2]));
        assert_eq!((get("null").unwrap().shape, value("null")), (None, StoredValue::Elements(vec![])));
        assert_eq!(value("lists"), StoredValue::Lists(vec![vec![1, 0, 2, 0, 3, 0], vec![]]));
        assert_eq!(value("named"), StoredValue::Elements(as_bytes(&[0, 1])));
        assert_eq!(get("named").unwrap().datatype.element("named").unwrap().numpy(), "<i4");
        assert!(get("mixed").unwrap_err().contains("variable length"), "{version}");
        // Attributes that are counted come as they were made, others by name.
        let many = attributes(&file, &source, "many");
        for (position, (name, one)) in many.iter().enumerate() {
            let number = if version == "latest" { 19 - position } else { position };
            assert_eq!(*name, format!("a{number:02}"), "{version}");
            assert_eq!(one.clone().unwrap().value, StoredValue::Elements((number as u32).to_le_bytes().to_vec()));
        }
        assert_eq!(many.len(), 20);
        assert_eq!(file.kind_at(&source, find(&file, &source, "kind")).unwrap(), ObjectKind::Datatype);
        let kind = file.datatype_at(&source, find(&file, &source, "kind")).unwrap();
        assert_eq!(kind.element("kind").unwrap().numpy(), "<i4");
    }
}

#[test]
fn members_of_groups_are_listed() {
    for version in VERSIONS {
        let (file, source) = open(&format!("groups_{version}.h5"));
        let list = |path: &str| file.group_at(&source, find(&file, &source, path)).unwrap();
        let target = find(&file, &source, "few/target");
        let link = |name: &str, member| Link { name: name.into(), member };
        let external = LinkTarget::External { file: "other.h5".into(), path: "/x".into() };
        let few = [
            link("external", external),
            link("soft", LinkTarget::Soft("/few/target".into())),
            link("target", LinkTarget::Object(target)),
        ];
        assert_eq!(list("few"), few, "{version}");
        let many: Vec<Link> =
            (0..100).map(|number| link(&format!("m{number:02}"), LinkTarget::Object(target))).collect();
        assert_eq!(list("many"), many, "{version}");
        let ordered: Vec<String> = list("ordered").into_iter().map(|link| link.name).collect();
        assert_eq!(ordered, ["z", "a", "y"], "{version}");
        assert_eq!(file.kind_at(&source, target).unwrap(), ObjectKind::Group);
        assert!(file.dataset_at(&source, target).unwrap_err().is_corrupt());
    }
}

#[test]
fn chunks_of_all_indexes_are_found() {
    for version in VERSIONS {
        let (file, source) = open(&format!("chunks_{version}.h5"));
        for (case, count) in [("one", 20), ("fixed", 63), ("growing", 63), ("free", 63)] {
            for name in [case.to_owned(), format!("{case}_z")] {
                assert_eq!(elements(&file, &source, &name), as_bytes(&numbers(count)), "{name} {version}");
            }
        }
        assert_eq!(elements(&file, &source, "early"), as_bytes(&numbers(63)));
        assert_eq!(elements(&file, &source, "lacking"), as_bytes(&numbers(4)));
        let lacking = file.chunks(&source, &dataset(&file, &source, "lacking"), &[0..2]).unwrap();
        assert_eq!(lacking.iter().map(|chunk| chunk.lacks).collect::<Vec<_>>(), [0, 3]);
        let part = dataset(&file, &source, "part");
        assert_eq!(part.fill.as_deref(), Some(&[255; 4][..]));
        let expected = numbers(63).into_iter().enumerate().map(|(at, number)| {
            let (row, column) = (at / 9, at % 9);
            if (2..4).contains(&row) && (4..8).contains(&column) { number } else { -1 }
        });
        assert_eq!(elements(&file, &source, "part"), as_bytes(&expected.collect::<Vec<_>>()), "{version}");
        assert_eq!(file.chunks(&source, &part, &[0..9, 0..9]).unwrap().len(), 2);
        assert!(file.chunks(&source, &part, &[0..9]).unwrap_err().is_invalid());
        let index = |name: &str| match dataset(&file, &source, name).storage {
            DatasetStorage::Chunked { index, .. } => format!("{index:?}").split(' ').next().unwrap().to_owned(),
            other => panic!("{other:?}"),
        };
        let kinds = ["one", "fixed", "growing", "free", "early"].map(index);
        let new = ["Single", "FixedArray", "ExtensibleArray", "TreeV2", "Implicit"].map(String::from);
        assert_eq!(kinds, if version == "latest" { new } else { [(); 5].map(|()| "TreeV1".into()) });
    }
}

/// Every box of a small grid has the chunks that the whole has in it.
#[test]
fn boxes_have_their_part_of_an_index() {
    for version in VERSIONS {
        let (file, source) = open(&format!("chunks_{version}.h5"));
        for name in ["fixed", "growing_z", "free", "part", "early"] {
            let dataset = dataset(&file, &source, name);
            let all = file.chunks(&source, &dataset, &[0..9, 0..9]).unwrap();
            for (a, b, c, d) in (0..256).map(|n| (n % 4, n / 4 % 4, n / 16 % 4, n / 64)) {
                let (rows, columns) = (a..a + b, c..c + d);
                let mut expected = all.clone();
                expected.retain(|one| rows.contains(&one.coordinates[0]) && columns.contains(&one.coordinates[1]));
                let found = file.chunks(&source, &dataset, &[rows, columns]).unwrap();
                assert_eq!(found, expected, "{name} {version}");
            }
        }
    }
}

/// Pages of any size have each chunk once, in the order of the index; of those that are too many, none is given.
#[test]
fn chunks_are_found_page_by_page() {
    for version in VERSIONS {
        let (file, source) = open(&format!("chunks_{version}.h5"));
        for name in ["one", "fixed", "growing_z", "growing", "free", "free_z", "part", "early"] {
            let dataset = dataset(&file, &source, name);
            let ndim = dataset.shape.as_ref().unwrap().len();
            let whole: Vec<_> = (0..ndim).map(|_| 0..1 << 20).collect();
            let all = file.chunks(&source, &dataset, &whole).unwrap();
            for most in 1..=all.len() + 1 {
                let (mut found, mut pages) = (Vec::new(), 0);
                loop {
                    let after = found.last().map(|chunk: &Chunk| chunk.coordinates.clone());
                    let page = file.next_chunks(&source, &dataset, &whole, (after.as_deref(), most)).unwrap();
                    (pages, found) = (pages + 1, [found, page.clone()].concat());
                    if page.len() < most || pages > all.len() {
                        break;
                    }
                }
                assert_eq!(pages, all.len() / most + 1, "{name} {version} by {most}");
                found.sort_by(|one, other| one.coordinates.cmp(&other.coordinates));
                assert_eq!(found, all, "{name} {version} by {most}");
                let within = file.chunks_at_most(&source, &dataset, &whole, most).unwrap();
                assert_eq!(within, (all.len() <= most).then(|| all.clone()), "{name} {version}, at most {most}");
            }
        }
    }
}

#[test]
fn large_indexes_are_read_in_part() {
    let (file, source) = open("paged_fixed.h5");
    let fixed = dataset(&file, &source, "d");
    let find = |dataset: &Dataset, ranges: &[std::ops::Range<u64>], source: &InMemory, file: &Hdf5File| {
        source.read.set(0);
        let found = file.chunks(source, dataset, ranges).unwrap();
        (found.into_iter().map(|chunk| chunk.coordinates).collect::<Vec<_>>(), source.read.get())
    };
    let (all, _) = find(&fixed, &[0..300, 0..10], &source, &file);
    assert_eq!(all, [[250, 3], [250, 4], [251, 3], [251, 4], [299, 9]]);
    let (one, read) = find(&fixed, &[299..300, 0..10], &source, &file);
    assert_eq!(one, [[299, 9]]);
    assert!(read < 8000, "{read} B of an index of 24 kB");
    let (none, read) = find(&fixed, &[0..5, 0..10], &source, &file);
    assert!(none.is_empty() && read < 100, "a page that does not exist, {read} B");

    let (file, source) = open("paged_extensible.h5");
    let extensible = dataset(&file, &source, "d");
    assert!(matches!(extensible.storage, DatasetStorage::Chunked { index: ChunkIndex::ExtensibleArray { .. }, .. }));
    let (all, read) = find(&extensible, &[0..2, 0..66000], &source, &file);
    let expected = [0..0, 4000..4003, 5..8, 65990..66000];
    let places = [(0, &expected[1]), (1, &expected[2]), (1, &expected[3])];
    let places: Vec<Vec<u64>> =
        places.iter().flat_map(|(row, columns)| (*columns).clone().map(move |column| vec![*row, column])).collect();
    assert_eq!(all, places);
    let (part, less) = find(&extensible, &[1..2, 65995..66000], &source, &file);
    assert_eq!(part.len(), 5);
    assert!(less < read, "{less} B of {read} B");

    for version in VERSIONS {
        let (file, source) = open(&format!("tree_{version}.h5"));
        let tree = dataset(&file, &source, "d");
        assert_eq!(elements(&file, &source, "d"), (0..180).map(|i| (7 * i + 3) as u8).collect::<Vec<_>>());
        let (all, read) = find(&tree, &[0..90, 0..2], &source, &file);
        assert_eq!(all.len(), 180);
        let (part, less) = find(&tree, &[80..82, 0..2], &source, &file);
        assert_eq!(part, [[80, 0], [80, 1], [81, 0], [81, 1]]);
        assert!(less < read, "{less} B of {read} B");
    }
}

#[test]
fn user_blocks_move_all_addresses() {
    for version in VERSIONS {
        let (file, source) = open(&format!("user_block_{version}.h5"));
        assert_eq!((file.base(), file.end()), (512, source.bytes.len() as u64));
        assert_eq!(elements(&file, &source, "d"), as_bytes(&numbers(5)));
        let text = file.attributes_at(&source, file.root()).unwrap().swap_remove(0).1.unwrap().value;
        assert_eq!(text, StoredValue::Texts(vec!["behind a user block".into()]));
        // Whatever it is that was cut off.
        for length in [source.bytes.len() - 1, 600, 520, 100, 0] {
            let cut = InMemory::new(source.bytes[..length].to_vec());
            let error = Hdf5File::open(&cut, "cut.h5").unwrap_err();
            assert!(error.is_corrupt() && error.to_string().contains("'cut.h5'"), "{error}");
            assert!(length < 600 || error.hint().is_some_and(|hint| hint.contains("cut short")), "{error}");
        }
    }
}

#[test]
fn netcdf_files_are_read() {
    let floats: Vec<u8> = numbers(6).iter().flat_map(|&number| (number as f32).to_le_bytes()).collect();
    for name in ["netcdf4_python.nc", "h5netcdf.nc"] {
        let (file, source) = open(name);
        assert_eq!(elements(&file, &source, "t"), floats, "{name}");
        let found = attributes(&file, &source, "t");
        let get = |name: &str| found.iter().find(|(known, _)| known == name).unwrap().1.clone().unwrap();
        let units = match get("units").value {
            StoredValue::Texts(texts) => String::from_utf8(texts[0].clone()).unwrap(),
            StoredValue::Elements(bytes) => String::from_utf8(bytes).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(units, "K", "{name}");
        // Each dimension of a variable refers to its scale.
        let StoredValue::Lists(scales) = get("DIMENSION_LIST").value else { panic!("{name}") };
        let scale = u64::from_le_bytes(scales[1][..].try_into().unwrap()) + file.base();
        assert_eq!(scale, find(&file, &source, "x"), "{name}");
    }
    let (file, source) = open("netcdf4_python.nc");
    let found = dataset(&file, &source, "t");
    assert_eq!((found.shape, found.limits), (Some(vec![2, 3]), vec![None, Some(3)]));
    let names: Vec<String> = file.group_at(&source, file.root()).unwrap().into_iter().map(|link| link.name).collect();
    assert_eq!(names, ["time", "x", "t"]);
}

#[test]
fn virtual_datasets_are_described_only() {
    let (file, source) = open("virtual.h5");
    let found = dataset(&file, &source, "v");
    assert_eq!(found.shape, Some(vec![2]));
    assert_eq!(found.storage, DatasetStorage::Unsupported("a virtual dataset".into()));
    assert!(file.chunks(&source, &found, &[0..1]).unwrap_err().is_invalid());
}
