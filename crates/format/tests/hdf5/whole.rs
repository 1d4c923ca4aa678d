//! Files in memory, and all elements of a dataset as they are stored, for tests.

use hyperslab_format::Error;
use hyperslab_format::hdf5::{Dataset, DatasetStorage, Hdf5File, MetadataSource, Pipeline};
use hyperslab_layout::Codec;
use std::cell::Cell;

/// A file in memory, which counts what is read of it.
pub(crate) struct InMemory {
    pub(crate) bytes: Vec<u8>,
    pub(crate) read: Cell<u64>,
    pub(crate) reads: Cell<u64>,
}

impl InMemory {
    pub(crate) fn new(bytes: Vec<u8>) -> InMemory {
        InMemory { bytes, read: Cell::new(0), reads: Cell::new(0) }
    }
}

impl MetadataSource for InMemory {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, at: u64, bytes: usize) -> Result<Vec<u8>, Error> {
        self.read.set(self.read.get() + bytes as u64);
        self.reads.set(self.reads.get() + 1);
        Ok(self.bytes[at as usize..at as usize + bytes].to_vec())
    }
}

/// Elements of a dataset of at most so many bytes, row-major, as stored.
pub(crate) fn whole(file: &Hdf5File, source: &InMemory, dataset: &Dataset, most: u64) -> Result<Vec<u8>, String> {
    let shape = dataset.shape.clone().unwrap_or_else(|| vec![0]);
    let each = u64::from(dataset.datatype.bytes());
    let bytes = shape.iter().product::<u64>() * each;
    if bytes > most {
        return Err(format!("{bytes} B"));
    }
    let fill = dataset.fill.clone().unwrap_or_else(|| vec![0; each as usize]);
    let mut all = fill.repeat((bytes / each) as usize);
    match &dataset.storage {
        DatasetStorage::Contiguous { at: None, .. } => (),
        DatasetStorage::Contiguous { at: Some(at), .. } | DatasetStorage::Compact { at, .. } => {
            all.copy_from_slice(&source.bytes[*at as usize..(*at + bytes) as usize]);
        }
        DatasetStorage::Chunked { chunk, .. } => {
            let pipeline = Pipeline::of(&dataset.filters, "dataset").map_err(|error| error.to_string())?;
            let chunk_bytes = chunk.iter().product::<u64>() * each;
            if chunk_bytes > most {
                return Err(format!("chunks of {chunk_bytes} B"));
            }
            let ranges: Vec<_> = shape.iter().zip(chunk).map(|(extent, chunk)| 0..extent.div_ceil(*chunk)).collect();
            for found in file.chunks(source, dataset, &ranges).map_err(|error| error.to_string())? {
                let stored = &source.bytes[found.at as usize..(found.at + found.bytes) as usize];
                let pipeline = pipeline.without(found.lacks);
                let plain = pipeline.decode(stored, chunk_bytes, "chunk").map_err(|error| error.to_string())?;
                place(&mut all, &plain, &shape, chunk, &found.coordinates, each);
            }
        }
        DatasetStorage::Unsupported(what) => return Err(what.clone()),
    }
    Ok(all)
}

/// Copies a chunk into its place, element by element.
fn place(all: &mut [u8], plain: &[u8], shape: &[u64], chunk: &[u64], at: &[u64], each: u64) {
    for (number, element) in plain.chunks_exact(each as usize).enumerate() {
        let (mut rest, mut index, mut stride, mut inside) = (number as u64, 0, 1, true);
        for dimension in (0..shape.len()).rev() {
            let along = at[dimension] * chunk[dimension] + rest % chunk[dimension];
            rest /= chunk[dimension];
            inside &= along < shape[dimension];
            index += along * stride;
            stride *= shape[dimension];
        }
        if inside {
            all[(index * each) as usize..][..each as usize].copy_from_slice(element);
        }
    }
}
