//! Datasets: their types, shapes, fill values, filters and where their elements lie (section IV.A).

use super::datatypes::datatype;
use super::fetch::Fetcher;
use super::header::{MessageKind, ObjectHeader, ObjectKind};
use super::layout::layout;
use super::messages::{Dataspace, body, dataspace, fill, filters};
use super::superblock::Hdf5File;
use crate::error::{Context, Error};
use crate::hdf5::content::{Dataset, DatasetStorage, MetadataSource};
use crate::hdf5::datatype::Datatype;
use crate::size::array_bytes;
use hyperslab_layout::tuple;

impl Hdf5File {
    /// The dataset whose header is at `address`. What cannot be read of it, but does not prevent its description, is said
    /// by [`DatasetStorage::Unsupported`] and [`Datatype::Unsupported`].
    ///
    /// # Errors
    /// When there is no dataset, or it is damaged.
    pub fn dataset_at(&self, source: &dyn MetadataSource, address: u64) -> Result<Dataset, Error> {
        let fetcher = Fetcher::new(source, self.widths, Context::new("read an HDF5 dataset of", &self.name));
        let header = ObjectHeader::read(&fetcher, address)?;
        if header.kind() != Some(ObjectKind::Dataset) {
            return Err(fetcher.context.corrupt(format!("a dataset at byte {address}"), "another object"));
        }
        let datatype = typed(&fetcher, &header)?;
        let space = shaped(&fetcher, &header)?;
        let shape = space.shape.as_deref();
        let bytes = array_bytes(shape.unwrap_or(&[0]), datatype.bytes().into()).ok_or_else(|| {
            let found = format!("{} of {} B each", tuple(shape.unwrap_or_default()), datatype.bytes());
            fetcher.context.corrupt("an array of less than 2^63 B", found)
        })?;
        let filters = match header.find(MessageKind::Filters) {
            Some(message) => filters(&mut fetcher.fields(&body(&fetcher, message)?, "filter pipeline message"))?,
            None => Vec::new(),
        };
        let storage = stored(&fetcher, &header, bytes, datatype.bytes())?;
        check(&fetcher, &storage, bytes, shape.map_or(0, <[u64]>::len))?;
        let fill = fill(&fetcher, &header)?;
        let fill = checked_fill(&fetcher, fill, &datatype)?;
        let Dataspace { shape, limits } = space;
        Ok(Dataset { at: address, datatype, shape, limits, fill, storage, filters })
    }

    /// The type with a name whose header is at `address`.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn datatype_at(&self, source: &dyn MetadataSource, address: u64) -> Result<Datatype, Error> {
        let fetcher = Fetcher::new(source, self.widths, Context::new("read an HDF5 type of", &self.name));
        typed(&fetcher, &ObjectHeader::read(&fetcher, address)?)
    }
}

fn typed(fetcher: &Fetcher, header: &ObjectHeader) -> Result<Datatype, Error> {
    let message = header.find(MessageKind::Datatype);
    let message = message.ok_or_else(|| fetcher.context.corrupt("an object with a type", "none"))?;
    datatype(&mut fetcher.fields(&body(fetcher, message)?, "datatype message"))
}

fn shaped(fetcher: &Fetcher, header: &ObjectHeader) -> Result<Dataspace, Error> {
    let message = header.find(MessageKind::Dataspace);
    let message = message.ok_or_else(|| fetcher.context.corrupt("an object with a shape", "none"))?;
    dataspace(&mut fetcher.fields(&body(fetcher, message)?, "dataspace message"))
}

fn stored(fetcher: &Fetcher, header: &ObjectHeader, bytes: u64, element_bytes: u32) -> Result<DatasetStorage, Error> {
    if header.find(MessageKind::External).is_some() {
        return Ok(DatasetStorage::Unsupported("elements in external files".into()));
    }
    let message = header.find(MessageKind::Layout);
    let message = message.ok_or_else(|| fetcher.context.corrupt("a dataset with a layout", "none"))?;
    if message.is_shared() {
        return Ok(DatasetStorage::Unsupported("a layout that is elsewhere".into()));
    }
    layout(&mut fetcher.fields(&message.body, "data layout message"), message.at, (bytes, element_bytes))
}

/// Compares what is stored with what there should be.
fn check(fetcher: &Fetcher, storage: &DatasetStorage, bytes: u64, ndim: usize) -> Result<(), Error> {
    let wrong = |found: String| Err(fetcher.context.corrupt(format!("{bytes} B of elements in the file"), found));
    match storage {
        &DatasetStorage::Compact { bytes: stored, .. } if stored < bytes => wrong(format!("{stored} B in a header")),
        &DatasetStorage::Contiguous { at: Some(at), bytes: stored } => {
            let file = fetcher.file_bytes();
            let inside = at.checked_add(stored).is_some_and(|end| end <= file);
            if inside && stored >= bytes { Ok(()) } else { wrong(format!("{stored} B at byte {at} of {file}")) }
        }
        DatasetStorage::Chunked { chunk, .. } if chunk.len() != ndim => {
            let expected = format!("chunks of {ndim} dimensions");
            Err(fetcher.context.corrupt(expected, format!("{} dimensions", chunk.len())))
        }
        _ => Ok(()),
    }
}

/// Values of variable length are no bytes to be copied.
fn checked_fill(fetcher: &Fetcher, fill: Option<Vec<u8>>, datatype: &Datatype) -> Result<Option<Vec<u8>>, Error> {
    let Some(fill) = fill.filter(|_| !datatype.has_variable()) else { return Ok(None) };
    if fill.len() == datatype.bytes() as usize {
        return Ok(Some(fill));
    }
    Err(fetcher.context.corrupt(format!("a fill value of {} B", datatype.bytes()), format!("{} B", fill.len())))
}
