//! Writes what fuzzers begin with into `corpus/`: files of the tests, and what our own writers make.
//!
//!     cargo run --example seeds

use hyperslab_format::hdf5::{
    StoredValue, ChunkPlace, Datatype, Filter, Hdf5Attribute, Hdf5Metadata, NewDataset, NewGroup, NewMember,
    NewStorage, SUPERBLOCK_BYTES,
};
use hyperslab_format::zarr::v2;
use hyperslab_layout::ByteOrder;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = root.join("../crates");
    let seeds = Seeds(root.join("corpus"));
    for (name, _) in hyperslab_fuzz::targets() {
        fs::create_dir_all(seeds.0.join(name)).unwrap();
        for folder in fs::read_dir(&crates).unwrap() {
            let cases = folder.unwrap().path().join("tests/fuzzing/cases").join(name);
            files(&cases).iter().for_each(|path| seeds.put(name, &fs::read(path).unwrap()));
        }
    }
    let golden = crates.join("format/tests/golden");
    for path in files(&golden.join("npy")) {
        seeds.put("npy", &fs::read(path).unwrap());
    }
    for path in files(&golden.join("zarr")).into_iter().chain(files(&golden.join("nested"))) {
        let text = fs::read(&path).unwrap();
        if path.ends_with("zarr.json") {
            seeds.put("zarr_meta", &text);
            seeds.put("zarr_edit", &[b"\x0f", &*text].concat());
        } else if text.len() < 4096 {
            seeds.put("zarr_chunk", &[b"\x01\x01\x01\x00\x40\x00", &*text].concat());
            seeds.put("zarr_shard", &text);
        }
    }
    zarr_v2(&seeds);
    netcdf(&seeds);
    hdf5(&seeds, &crates.join("format/tests/hdf5/fixtures"));
    for path in files(&root.join("../machines")) {
        seeds.put("profile", &fs::read(path).unwrap());
    }
    seeds.put("profile", hyperslab_plan::profile::BUILT_IN.as_bytes());
    attempts(&seeds);
    filters(&seeds);
    (0..8).for_each(|seed| {
        seeds.put("hdf5_model", &(0..200).map(|n| (n * (2 * seed + 3) / 7) as u8).collect::<Vec<_>>())
    });
}

/// All files below a folder, if it is there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

struct Seeds(PathBuf);

impl Seeds {
    fn put(&self, target: &str, bytes: &[u8]) {
        let name = format!("seed-{:08x}", crc32c::crc32c(bytes));
        fs::write(self.0.join(target).join(name), bytes).unwrap();
    }
}

fn zarr_v2(seeds: &Seeds) {
    for (dtype, compressor) in [
        ("\"<f8\"", "null"),
        ("\"|b1\"", r#"{"id": "zlib", "level": 1}"#),
        (r#"[["a", "<i4"], ["b", "|S3"]]"#, r#"{"id": "zstd", "level": 3}"#),
        ("\">u2\"", r#"{"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}"#),
        ("\"<M8[ns]\"", "null"),
    ] {
        let array = format!(
            r#"{{"zarr_format": 2, "shape": [10, 3], "chunks": [5, 3], "dtype": {dtype}, "compressor": {compressor},
            "fill_value": null, "order": "F", "filters": null, "dimension_separator": "/"}}"#
        );
        v2::array(array.as_bytes(), None, "x").unwrap();
        seeds.put("zarr_meta", array.as_bytes());
        let attributes = r#"{"_ARRAY_DIMENSIONS": ["x", "y"], "n": [1, NaN]}"#;
        seeds.put("zarr_meta", format!("{array}\0{attributes}").as_bytes());
    }
    seeds.put("zarr_meta", b"{\"zarr_format\": 2}\0{\"a\": 1}");
}

fn netcdf(seeds: &Seeds) {
    use hyperslab_format::netcdf::{NetcdfHeader, NewVariable, Version};
    use hyperslab_format::attribute::Attributes;
    use serde_json::Value;
    use hyperslab_layout::Kind;
    let attributes: Attributes =
        [("units", Value::from("m")), ("n", Value::from(vec![1, 2]))].into_iter().collect();
    let names = [Some("time".to_string()), Some("x".to_string())];
    let variable = |name, kind, fill| NewVariable {
        name,
        shape: &[4, 3],
        kind,
        dimension_names: Some(&names),
        attributes: &attributes,
        fill,
    };
    for version in [Version::Classic, Version::Offset64, Version::Data64] {
        for unlimited in [None, Some("time")] {
            let mut header = NetcdfHeader::new(version, Vec::new());
            let new = [variable("a", Kind::Float64, None), variable("b", Kind::Int16, Some(&[1, 2]))];
            for count in 0..=new.len() {
                header.add(&new[..count], unlimited, None).unwrap();
                seeds.put("netcdf", &header.to_bytes());
                header.back_to(0, 0);
            }
        }
    }
}

fn hdf5(seeds: &Seeds, fixtures: &Path) {
    for path in files(fixtures) {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
        if bytes.len() <= 1 << 16 {
            put_hdf5(seeds, &bytes);
        }
    }
    let real = Datatype::Float { bytes: 8, order: ByteOrder::Little };
    let text = Datatype::VariableText { utf8: true };
    let attribute = |name: &str, datatype: &Datatype, value| Hdf5Attribute {
        name: name.into(),
        datatype: datatype.clone(),
        shape: Some(Vec::new()),
        value,
    };
    let attributes = vec![
        attribute("x", &real, StoredValue::Elements(vec![1; 8])),
        attribute("units", &text, StoredValue::Texts(vec!["m".into()])),
    ];
    let dataset = |name: &str, storage: NewStorage, filters: Vec<Filter>| {
        let grows = matches!(storage, NewStorage::Chunked { .. });
        NewMember::Dataset(NewDataset {
            name: name.into(),
            shape: vec![6, 4],
            limits: if grows { vec![None, Some(4)] } else { Vec::new() },
            datatype: real.clone(),
            fill: Some(vec![2; 8]),
            storage,
            filters,
            attributes: attributes.clone(),
            dimensions: Vec::new(),
        })
    };
    let deflate = Filter { number: 1, name: String::new(), optional: true, values: vec![6] };
    let places: Vec<_> = (0..5).map(|number| ChunkPlace { number, at: 64, bytes: 9, lacks: 0 }).collect();
    let chunked = NewStorage::Chunked { chunk: vec![2, 2], places: places.into() };
    let inner = NewGroup {
        name: "group".into(),
        attributes: attributes.clone(),
        members: vec![dataset("c", chunked.clone(), vec![deflate.clone()])],
        ..NewGroup::default()
    };
    for members in [
        vec![],
        vec![dataset("a", NewStorage::Contiguous(None), vec![])],
        vec![dataset("c", chunked, vec![deflate]), NewMember::Group(inner)],
    ] {
        let root = NewGroup { members, ..NewGroup::default() };
        let made = Hdf5Metadata::of(&root, SUPERBLOCK_BYTES).unwrap();
        put_hdf5(seeds, &[made.superblock, made.bytes].concat());
    }
}

/// Of one file, with several choices of changes.
fn put_hdf5(seeds: &Seeds, bytes: &[u8]) {
    seeds.put("hdf5_read", bytes);
    for choice in 0..6 {
        let choices = [0, 3 * choice + 1, choice, 1, choice, 1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 5];
        seeds.put("hdf5_edit", &[&choices[..], bytes].concat());
    }
}

fn attempts(seeds: &Seeds) {
    let owner =
        r#"{"token":"0123456789abcdef0123456789abcdef","host":"h","boot":"","pid_namespace":1,"pid":1,"started":1}"#;
    let journal = r#"{"from":"1-array-new","to":"new","replaces":false}
{"over":"7","from":"2-array.7-rho","to":"rho","replaces":true}"#;
    let update = owner.replace("\"host\"", "\"update\":\"rho\",\"host\"");
    for torn in ["\"readers\":\"torn\"", "\"readers\":\"whole\""] {
        let marker = format!("{},{torn}}}\n", &owner[..owner.len() - 1]);
        let parts = [owner, &update, journal, &marker, owner, &marker].map(|part| format!("{part}\n").into_bytes());
        seeds.put("attempts", &parts.join(&0xff));
    }
}

/// Chunks by each filter that is written here, told in the way that the target reads.
fn filters(seeds: &Seeds) {
    use hyperslab_format::hdf5::Pipeline;
    use hyperslab_layout::Codec;
    let plain: Vec<u8> = (0..64).map(|number| number / 5).collect();
    for (choice, number, value) in [(0, 1, 6), (1, 2, 8), (2, 3, 0), (5, 32004, 16), (7, 32015, 3)] {
        let filter = Filter { number, name: String::new(), optional: false, values: vec![value] };
        let stored = Pipeline::of(&[filter], "d").unwrap().encode(&plain, "c").unwrap();
        seeds.put("hdf5_filters", &[&[1, choice, 1, value as u8, 0, 0, 64, 0][..], &stored].concat());
    }
}
