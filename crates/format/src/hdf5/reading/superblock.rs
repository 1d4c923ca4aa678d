//! The superblock: where everything begins (section II.A).

use super::fetch::Fetcher;
use super::fields::Widths;
use super::header::ObjectHeader;
use crate::error::{Context, Error};
use crate::hdf5::content::MetadataSource;
use std::sync::Arc;

/// What every HDF5 file begins with, behind its user block, if it has one.
pub const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// What the superblock of a file says. All addresses of this crate are counted from the start of the file, user block
/// included; those within the elements of a dataset, such as references, from [`Hdf5File::base`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hdf5File {
    pub(super) name: Arc<str>,
    pub(super) widths: Widths,
    version: u8,
    root: u64,
    end: u64,
}

/// The parts of a superblock, with addresses as stored.
struct Superblock {
    version: u8,
    widths: Widths,
    stored_base: u64,
    end: u64,
    root: u64,
    extension: Option<u64>,
    driver: bool,
}

impl Hdf5File {
    /// Reads the superblock of the file called `name`, whose length must be at least what it says.
    ///
    /// # Errors
    /// When it is no HDF5 file, was cut short, or is of a kind that is not supported.
    pub fn open(source: &dyn MetadataSource, name: &str) -> Result<Hdf5File, Error> {
        let context = Context::new("open HDF5 file", name);
        let none = Widths { base: 0, offset: 8, length: 8 };
        let found = Superblock::parse(&Fetcher::new(source, none, context))?;
        // The end is counted from the start of the file, by the base address that the superblock has itself.
        let end = found.end.checked_sub(found.stored_base).and_then(|bytes| bytes.checked_add(found.widths.base));
        let end = end.ok_or_else(|| context.corrupt("an end behind the base address", found.end.to_string()))?;
        if source.length() < end {
            let error = context.corrupt(format!("a file of {end} B"), format!("{} B", source.length()));
            return Err(error.with_hint("the file was cut short: copy it again, or write it again"));
        }
        if found.driver {
            return Err(context.unsupported("a file by itself", "one of several files that belong together"));
        }
        let Superblock { version, widths, root, .. } = found;
        let fetcher = Fetcher::new(source, widths, context);
        if let Some(extension) = found.extension {
            ObjectHeader::read(&fetcher, extension)?.check_extension(context)?;
        }
        Ok(Hdf5File { name: name.into(), widths, version, root, end })
    }

    /// The name that it was opened with, for errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Version of its superblock: 0 and 1 of files for all libraries, 2 and 3 of files for newer ones.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Size of its user block \[B\], at which stored addresses count as 0.
    pub fn base(&self) -> u64 {
        self.widths.base
    }

    /// Address of the header of its first group \[B\].
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Where its metadata and elements end \[B\].
    pub fn end(&self) -> u64 {
        self.end
    }
}

impl Superblock {
    fn parse(fetcher: &Fetcher) -> Result<Superblock, Error> {
        let base = find(fetcher)?;
        let bytes = fetcher.bytes_at_most(base, 128)?;
        let mut fields = fetcher.fields(&bytes, "superblock");
        fields.skip(SIGNATURE.len() as u64)?;
        let version = fields.version(0..=3)?;
        if version < 2 {
            return Superblock::parse_old(fetcher, &bytes, base);
        }
        let (offset, length, status) = (fields.byte()?, fields.byte()?, fields.byte()?);
        let widths = checked_widths(fetcher, base, offset, length)?;
        fields.widths = Widths { base: 0, ..widths };
        let stored_base = fields.number(offset)?;
        fields.widths = widths;
        let extension = fields.address()?;
        let end = fields.number(offset)?;
        let root = fields.place()?;
        let used = bytes.len() - fields.rest.len();
        fetcher.verified(base, &bytes[..bytes.len().min(used + 4)])?;
        if version == 3 && status & 5 != 0 {
            let error = fetcher.context.unsupported("a file that was closed", "one that is open for writing");
            return Err(error.with_hint("close it; if its writer is gone, `h5clear --status` marks it as closed"));
        }
        Ok(Superblock { version, widths, stored_base, end, root, extension, driver: false })
    }

    /// Versions 0 and 1, which have no checksum.
    fn parse_old(fetcher: &Fetcher, bytes: &[u8], base: u64) -> Result<Superblock, Error> {
        let mut fields = fetcher.fields(bytes, "superblock");
        fields.skip(SIGNATURE.len() as u64)?;
        let version = fields.byte()?;
        fields.skip(4)?;
        let (offset, length) = (fields.byte()?, fields.byte()?);
        let widths = checked_widths(fetcher, base, offset, length)?;
        // Ranks of trees and flags; the rank of chunk indexes is new in version 1. Nodes say how full they are.
        fields.skip(if version == 1 { 13 } else { 9 })?;
        let stored_base = fields.number(offset)?;
        fields.widths = widths;
        fields.address()?;
        let end = fields.number(offset)?;
        let driver = fields.address()?.is_some();
        fields.skip(offset.into())?;
        let root = fields.place()?;
        Ok(Superblock { version, widths, stored_base, end, root, extension: None, driver })
    }
}

fn checked_widths(fetcher: &Fetcher, base: u64, offset: u8, length: u8) -> Result<Widths, Error> {
    if [offset, length].iter().all(|bytes| [2, 4, 8].contains(bytes)) {
        return Ok(Widths { base, offset, length });
    }
    let found = format!("{offset} B and {length} B");
    Err(fetcher.context.unsupported("addresses and lengths of 2, 4 or 8 B", found))
}

/// Where the signature is: at the start, or behind a user block of 512 B, 1024 B, 2048 B and so on.
fn find(fetcher: &Fetcher) -> Result<u64, Error> {
    let mut at = 0u64;
    while at.checked_add(8).is_some_and(|end| end <= fetcher.file_bytes()) {
        if fetcher.bytes(at, 8)? == SIGNATURE {
            return Ok(at);
        }
        at = if at == 0 { 512 } else { at.saturating_mul(2) };
    }
    let found = format!("{} B without the signature of one", fetcher.file_bytes());
    Err(fetcher.context.corrupt("an HDF5 file", found))
}
