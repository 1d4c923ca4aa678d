//! Prints what HDF5 files hold, a line of JSON for each file: members, types, shapes, chunks, attributes, and the CRC-32 of
//! the elements of each dataset as stored.
//!
//! ```text
//! cargo run -p hyperslab-format --example hdf5_dump -- file.h5 other.h5
//! ```
#![allow(clippy::disallowed_methods, reason = "an example may read files")]

#[path = "../tests/hdf5/whole.rs"]
mod whole;

use hyperslab_format::Error;
use hyperslab_format::hdf5::{Dataset, DatasetStorage, Datatype, Hdf5File, LinkTarget, ObjectKind, StoredValue};
use serde_json::{Map, Value as Json, json};
use whole::{InMemory, whole};

/// Larger datasets are described only \[B\].
const DATASET_BYTES_MAX: u64 = 1 << 28;

fn main() {
    for path in std::env::args().skip(1) {
        let told = match std::fs::read(&path) {
            Ok(bytes) => file(&InMemory::new(bytes), &path).unwrap_or_else(|error| json!({"error": error.to_string()})),
            Err(error) => json!({"error": error.to_string()}),
        };
        println!("{}", json!({"path": path, "content": told}));
    }
}

fn file(source: &InMemory, path: &str) -> Result<Json, Error> {
    let file = Hdf5File::open(source, path)?;
    let mut objects = Map::new();
    let mut waiting = vec![("/".to_owned(), file.root())];
    while let Some((path, at)) = waiting.pop() {
        let told = object(&file, source, &path, at, &mut waiting);
        objects.insert(path, told.unwrap_or_else(|error| json!({"error": error.to_string()})));
    }
    Ok(json!({"base": file.base(), "version": file.version(), "objects": objects}))
}

fn object(
    file: &Hdf5File,
    source: &InMemory,
    path: &str,
    at: u64,
    waiting: &mut Vec<(String, u64)>,
) -> Result<Json, Error> {
    let attributes = attributes(file, source, at)?;
    match file.kind_at(source, at)? {
        ObjectKind::Group => {
            let mut links = Vec::new();
            for link in file.group_at(source, at)? {
                links.push(match &link.member {
                    LinkTarget::Object(member) => {
                        // Deep enough for files of tests, and an end for groups that contain themselves.
                        if path.len() < 200 {
                            waiting.push((format!("{}/{}", path.trim_end_matches('/'), link.name), *member));
                        }
                        json!([link.name, "hard"])
                    }
                    LinkTarget::Soft(to) => json!([link.name, "soft", to]),
                    LinkTarget::External { file, path } => json!([link.name, "external", file, path]),
                    LinkTarget::Unknown(kind) => json!([link.name, "unknown", kind]),
                });
            }
            Ok(json!({"kind": "group", "links": links, "attributes": attributes}))
        }
        ObjectKind::Dataset => dataset(file, source, &file.dataset_at(source, at)?, attributes),
        ObjectKind::Datatype => {
            Ok(json!({"kind": "datatype", "type": typed(&file.datatype_at(source, at)?), "attributes": attributes}))
        }
    }
}

fn dataset(file: &Hdf5File, source: &InMemory, dataset: &Dataset, attributes: Json) -> Result<Json, Error> {
    let (mut chunk, mut index, mut chunks) = (None, None, Vec::new());
    let layout = match &dataset.storage {
        DatasetStorage::Compact { .. } => "compact",
        DatasetStorage::Contiguous { .. } => "contiguous",
        DatasetStorage::Chunked { chunk: shape, index: found, .. } => {
            (chunk, index) = (Some(shape), Some(format!("{found:?}")));
            let all: Vec<_> = shape.iter().map(|_| 0..u64::MAX).collect();
            let found = file.chunks(source, dataset, &all)?;
            chunks = found.iter().map(|one| json!([one.coordinates, one.at, one.bytes, one.lacks])).collect();
            "chunked"
        }
        DatasetStorage::Unsupported(what) => what,
    };
    let crc = whole(file, source, dataset, DATASET_BYTES_MAX).map(|elements| {
        let mut crc = flate2::Crc::new();
        crc.update(&elements);
        crc.sum()
    });
    Ok(json!({
        "kind": "dataset", "type": typed(&dataset.datatype), "shape": dataset.shape, "limits": dataset.limits,
        "fill": dataset.fill, "layout": layout, "chunk": chunk, "index": index, "chunks": chunks,
        "filters": dataset.filters.iter().map(|one| json!([one.number, one.values, one.optional])).collect::<Vec<_>>(),
        "crc": crc.as_ref().ok(), "why": crc.as_ref().err(), "attributes": attributes,
    }))
}

fn typed(datatype: &Datatype) -> Json {
    match datatype.element("x") {
        Ok(element) => json!(element.numpy()),
        Err(error) => json!({"text": format!("{datatype:?}"), "error": error.found()}),
    }
}

fn attributes(file: &Hdf5File, source: &InMemory, at: u64) -> Result<Json, Error> {
    let mut all = Vec::new();
    for (name, attribute) in file.attributes_at(source, at)? {
        all.push(match attribute {
            Ok(found) => {
                let value = match &found.value {
                    StoredValue::Elements(bytes) => json!({"bytes": bytes}),
                    StoredValue::Texts(texts) => {
                        let texts: Vec<_> = texts.iter().map(|text| String::from_utf8_lossy(text)).collect();
                        json!({"texts": texts})
                    }
                    StoredValue::Lists(lists) => json!({"lists": lists}),
                };
                json!({"name": name, "type": typed(&found.datatype), "shape": found.shape, "value": value})
            }
            Err(error) => json!({"name": name, "error": error.to_string()}),
        });
    }
    Ok(all.into())
}
