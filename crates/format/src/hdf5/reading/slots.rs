//! Where in a file what changes when a dataset grows: its shape, the address of its index of chunks, and the end of the file.

use super::fetch::Fetcher;
use super::header::{HeaderMessage, MessageKind, ObjectHeader};
use super::superblock::Hdf5File;
use crate::error::{Context, Error};
use crate::hdf5::content::MetadataSource;
use crate::hdf5::lookup3::lookup3;
use crate::hdf5::policy::SECTOR_BYTES;

/// A block of metadata as it is in the file, and as it shall be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::hdf5) struct ChangedBlock {
    pub(in crate::hdf5) at: u64,
    pub(in crate::hdf5) before: Vec<u8>,
    pub(in crate::hdf5) after: Vec<u8>,
    /// Whether it ends with a checksum of what is before that.
    checked: bool,
}

impl ChangedBlock {
    /// One that is replaced by what is made.
    pub(in crate::hdf5) fn of(at: u64, before: Vec<u8>, after: Vec<u8>) -> ChangedBlock {
        ChangedBlock { at, before, after, checked: false }
    }

    /// Whether a disk writes it whole or not at all.
    pub(in crate::hdf5) fn is_in_one_sector(&self) -> bool {
        let last = self.at + (self.after.len() as u64).max(1) - 1;
        self.at / SECTOR_BYTES == last / SECTOR_BYTES
    }

    /// Sets a number of 8 bytes at this place of the file, which is in the block.
    fn set(&mut self, at: u64, value: u64) {
        let begin = (at - self.at) as usize;
        self.after[begin..begin + 8].copy_from_slice(&value.to_le_bytes());
        if self.checked {
            let end = self.after.len() - 4;
            let checksum = lookup3(&self.after[..end]).to_le_bytes();
            self.after[end..].copy_from_slice(&checksum);
        }
    }
}

impl Hdf5File {
    /// The superblock, where it says that the file ends there \[B\].
    ///
    /// # Errors
    /// When its addresses are not those of a file without a user block.
    pub(in crate::hdf5) fn ending_at(&self, source: &dyn MetadataSource, end: u64) -> Result<ChangedBlock, Error> {
        self.superblock(source, end, false)
    }

    /// The same; where `forgets`, it no longer says where the links of the root lie, which old files say a second time there.
    pub(in crate::hdf5) fn superblock(
        &self,
        source: &dyn MetadataSource,
        end: u64,
        forgets: bool,
    ) -> Result<ChangedBlock, Error> {
        let context = Context::new("change HDF5 file", &self.name);
        if self.widths.base != 0 || self.widths.offset != 8 || self.widths.length != 8 {
            let expected = "addresses of 8 B from the start of the file";
            return Err(context.unsupported(expected, "others, or a user block"));
        }
        // Section II.A: behind the base address come that of free space, or of an extension, and the end.
        let (bytes, place, checked) = match self.version() {
            0 => (96, 40, false),
            1 => (100, 44, false),
            _ => (48, 28, true),
        };
        let before = Fetcher::new(source, self.widths, context).bytes(0, bytes)?;
        let mut block = ChangedBlock { at: 0, after: before.clone(), before, checked };
        block.set(place, end);
        if forgets && !checked {
            // What kind of copy it is, four bytes that are kept, and the copy (section III.C).
            block.after[bytes as usize - 24..].fill(0);
        }
        Ok(block)
    }

    /// Refuses files whose trees and tables have nodes of another size than libraries assume, which the superblock says.
    pub(in crate::hdf5) fn check_usual_trees(&self, source: &dyn MetadataSource) -> Result<(), Error> {
        let context = Context::new("change HDF5 file", &self.name);
        let fetcher = Fetcher::new(source, self.widths, context);
        let unusual = match self.version() {
            version @ (0 | 1) => {
                let block = fetcher.bytes(0, 26)?;
                let chunks = if version == 1 { &block[24..26] } else { &[32, 0] };
                block[16..20] != [4, 0, 16, 0] || chunks != [32, 0]
            }
            _ => {
                let extension = fetcher.fields(&fetcher.bytes(20, 8)?, "superblock").address()?;
                let header = extension.map(|at| ObjectHeader::read(&fetcher, at)).transpose()?;
                header.is_some_and(|header| header.find(MessageKind::TreeSizes).is_some())
            }
        };
        match unusual {
            false => Ok(()),
            true => {
                let expected = "trees whose nodes have the usual size";
                Err(context.unsupported(expected, "another one, which the file was set up with"))
            }
        }
    }

    /// The blocks of the header of a dataset in chunks, where it says that it has this shape, and its index this address, if
    /// it has another one.
    ///
    /// # Errors
    /// When its header has no place for that: it is older or newer than those with B-trees of version 1.
    pub(in crate::hdf5) fn header_with(
        &self,
        source: &dyn MetadataSource,
        dataset: u64,
        (shape, index): (&[u64], Option<u64>),
    ) -> Result<Vec<ChangedBlock>, Error> {
        let context = Context::new("change a dataset of HDF5 file", &self.name);
        let fetcher = Fetcher::new(source, self.widths, context);
        let header = ObjectHeader::read(&fetcher, dataset)?;
        let checked = fetcher.bytes(dataset, 4)? == b"OHDR";
        let refused = |expected: &str, found: &str| {
            let error = context.unsupported(expected.to_string(), found.to_string());
            error.with_hint("libver='latest' and newer indexes cannot be changed here: write a new file")
        };
        let own = |kind, what: &str| {
            let message = header.find(kind).filter(|message| !message.is_shared());
            message.ok_or_else(|| refused(what, "one that is elsewhere"))
        };
        let space = own(MessageKind::Dataspace, "a shape in the header")?;
        let first = space.at + if space.body.first() == Some(&1) { 8 } else { 4 };
        let layout = own(MessageKind::Layout, "a layout in the header")?;
        // Of version 4 and later, whose flags say that chunks at the edge have no filters: which these are changes with the shape.
        if matches!(layout.body[..], [4..=255, 2, flags, ..] if flags & 1 != 0) {
            return Err(refused("chunks with the same filters", "chunks at the edge without filters"));
        }
        let room = |message: &HeaderMessage, end: u64| end <= message.at + message.body.len() as u64;
        if !room(space, first + 8 * shape.len() as u64) {
            return Err(context.corrupt("a shape with all its extents", "a shorter one"));
        }
        // The index comes first: where the two are in different blocks, chunks that it has beyond the old shape are not seen.
        let mut changes = Vec::with_capacity(1 + shape.len());
        if let Some(index) = index {
            changes.push((layout.block, address(layout, &refused)?, index));
        }
        changes.extend(shape.iter().enumerate().map(|(d, extent)| (space.block, first + 8 * d as u64, *extent)));
        let mut blocks: Vec<ChangedBlock> = Vec::new();
        for ((at, bytes), place, value) in changes {
            if !blocks.iter().any(|block| block.at == at) {
                let before = fetcher.bytes(at, bytes)?;
                blocks.push(ChangedBlock { at, after: before.clone(), before, checked });
            }
            let block = blocks.iter_mut().find(|block| block.at == at).expect("it is there now");
            block.set(place, value);
        }
        Ok(blocks)
    }
}

/// Where the address of its index is in a layout that has a B-tree of version 1.
fn address(layout: &HeaderMessage, refused: &dyn Fn(&str, &str) -> Error) -> Result<u64, Error> {
    let at = match layout.body.first() {
        Some(1 | 2) => 8,
        Some(3) => 3,
        _ => return Err(refused("chunks in a B-tree of version 1", "a newer index of chunks")),
    };
    match layout.body.len() >= at + 8 {
        true => Ok(layout.at + at as u64),
        false => Err(refused("a layout with an address", "a shorter one")),
    }
}
