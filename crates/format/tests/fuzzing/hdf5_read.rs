//! HDF5 files: all that is in them.

use super::repairing::RepairingFile;
use hyperslab_format::hdf5::{
    Chunk, Dataset, DatasetStorage, Dialect, Hdf5File, LinkTarget, MetadataSource, NamedAttribute, ObjectKind, Pipeline,
};
use hyperslab_layout::Codec;
use std::collections::BTreeSet;

/// Objects that are looked at; larger files have more of the same.
const OBJECTS_MAX: usize = 48;
/// Bytes of chunks that are decoded.
const CHUNK_BYTES_MAX: u64 = 1 << 16;

pub(super) fn check(bytes: &[u8]) {
    let source = RepairingFile::new(bytes);
    let Ok(file) = source.answered(|| Hdf5File::open(&source, "f")) else { return };
    assert!(file.end() <= source.length());
    look_at_all(&file, &source);
    if let Ok(listing) = source.answered(|| file.listing(&source)) {
        assert!(file.listing(&source).is_ok_and(|again| again == listing), "what is listed is listed again");
        listing.attributes.iter().for_each(|attribute| drop(attribute.to_value(Dialect::H5py)));
        for one in &listing.datasets {
            let Ok(dataset) = &one.dataset else { continue };
            dataset.datatype.element(&one.path).unwrap();
            Pipeline::of(&dataset.filters, &one.path).unwrap();
            let names = one.dimensions.as_ref().map_or(dataset.limits.len(), Vec::len);
            assert_eq!(names, dataset.shape.as_ref().unwrap().len());
        }
    }
}

/// Each object that hard links lead to, and its path.
pub(super) fn look_at_all(file: &Hdf5File, source: &RepairingFile) -> Vec<(String, u64, ObjectKind)> {
    let (mut left, mut seen, mut all) = (vec![(String::new(), file.root())], BTreeSet::new(), Vec::new());
    while let Some((path, at)) = left.pop().filter(|_| seen.len() < OBJECTS_MAX) {
        if !seen.insert(at) {
            continue;
        }
        if let Ok(attributes) = source.answered(|| file.attributes_at(source, at)) {
            look_at_attributes(file, source, at, attributes);
        }
        let Ok(kind) = source.answered(|| file.kind_at(source, at)) else { continue };
        match kind {
            ObjectKind::Group => {
                let Ok(links) = source.answered(|| file.group_at(source, at)) else { continue };
                for link in links {
                    if let LinkTarget::Object(inner) = link.member {
                        left.push((format!("{path}/{}", link.name), inner));
                    }
                }
            }
            ObjectKind::Dataset => {
                if let Ok(dataset) = source.answered(|| file.dataset_at(source, at)) {
                    look_at_dataset(file, source, &dataset);
                }
            }
            ObjectKind::Datatype => drop(source.answered(|| file.datatype_at(source, at))),
        }
        all.push((path, at, kind));
    }
    all
}

fn look_at_attributes(file: &Hdf5File, source: &RepairingFile, at: u64, mut found: Vec<NamedAttribute>) {
    while found.iter().any(|(_, one)| one.as_ref().is_err_and(|error| source.is_repaired(error))) {
        match source.answered(|| file.attributes_at(source, at)) {
            Ok(again) => found = again,
            Err(_) => return,
        }
    }
    for (name, attribute) in found.into_iter().filter_map(|(name, one)| Some((name, one.ok()?))) {
        assert_eq!(name, attribute.name);
        attribute.to_value(Dialect::Netcdf);
    }
}

fn look_at_dataset(file: &Hdf5File, source: &RepairingFile, dataset: &Dataset) {
    let _ = dataset.datatype.element("d");
    let each = u64::from(dataset.datatype.bytes());
    let Some(shape) = &dataset.shape else { return };
    assert_eq!(shape.len(), dataset.limits.len());
    if let Some(fill) = &dataset.fill {
        assert_eq!(fill.len() as u64, each);
    }
    let in_file = |at: u64, bytes: u64| at.checked_add(bytes).is_some_and(|end| end <= source.length());
    match &dataset.storage {
        DatasetStorage::Compact { at, bytes } | DatasetStorage::Contiguous { at: Some(at), bytes } => {
            assert!(in_file(*at, *bytes), "{dataset:?} in {} B", source.length());
        }
        DatasetStorage::Contiguous { at: None, .. } | DatasetStorage::Unsupported(_) => {}
        DatasetStorage::Chunked { chunk, .. } => {
            assert_eq!(shape.len(), chunk.len());
            let grid: Vec<_> = shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect();
            let whole: Vec<_> = grid.iter().map(|extent| 0..*extent).collect();
            let Ok(found) = source.answered(|| file.chunks(source, dataset, &whole)) else { return };
            assert!(found.is_sorted_by(|one, other| one.coordinates < other.coordinates));
            for one in &found {
                assert!(in_file(one.at, one.bytes), "{one:?}");
                assert!(one.coordinates.iter().zip(&grid).all(|(at, extent)| at < extent), "{one:?} of {grid:?}");
            }
            // A part of the grid has the chunks that the whole has there.
            let part: Vec<_> = grid.iter().map(|extent| extent / 3..extent - extent / 3).collect();
            if let Ok(some) = source.answered(|| file.chunks(source, dataset, &part)) {
                let is_in = |one: &&Chunk| one.coordinates.iter().zip(&part).all(|(at, range)| range.contains(at));
                assert!(found.iter().filter(is_in).eq(&some), "{some:?} of {found:?}");
            }
            let chunk_bytes = chunk.iter().try_fold(each, |all, extent| all.checked_mul(*extent));
            if let Some(chunk_bytes) = chunk_bytes.filter(|bytes| *bytes <= CHUNK_BYTES_MAX) {
                decode(source, dataset, &found, chunk_bytes);
            }
        }
    }
}

fn decode(source: &RepairingFile, dataset: &Dataset, found: &[Chunk], chunk_bytes: u64) {
    let Ok(pipeline) = Pipeline::of(&dataset.filters, "d") else { return };
    for one in found.iter().take(3) {
        let stored = source.read(one.at, one.bytes as usize).unwrap();
        if let Ok(plain) = pipeline.without(one.lacks).decode(&stored, chunk_bytes, "c") {
            assert_eq!(plain.len() as u64, chunk_bytes);
        }
    }
}
