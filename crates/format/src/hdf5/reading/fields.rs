//! Fields of a block of metadata, one after another: numbers are little-endian, addresses and lengths as wide as the
//! superblock says.

use crate::error::{Context, Error};
use crate::hdf5::content::NOWHERE;

/// How wide addresses and lengths are \[B\], and where address 0 lies in the file \[B\].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Widths {
    pub(super) base: u64,
    pub(super) offset: u8,
    pub(super) length: u8,
}

/// What is left of a block.
#[derive(Clone, Copy)]
pub(super) struct FieldReader<'a> {
    pub(super) rest: &'a [u8],
    pub(super) widths: Widths,
    pub(super) context: Context<'a>,
    /// What is being read, for errors.
    pub(super) what: &'static str,
}

impl<'a> FieldReader<'a> {
    /// So many bytes.
    pub(super) fn take(&mut self, bytes: u64) -> Result<&'a [u8], Error> {
        let split = usize::try_from(bytes).ok().and_then(|bytes| self.rest.split_at_checked(bytes));
        let (taken, rest) = split.ok_or_else(|| {
            let found = format!("{} B where {bytes} B must follow", self.rest.len());
            self.context.corrupt(format!("a whole {}", self.what), found)
        })?;
        self.rest = rest;
        Ok(taken)
    }

    /// Leaves out so many bytes.
    pub(super) fn skip(&mut self, bytes: u64) -> Result<(), Error> {
        self.take(bytes).map(|_| ())
    }

    /// Leaves out all, or as many as there are.
    pub(super) fn skip_at_most(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes.min(self.rest.len())..];
    }

    /// A number of so many bytes, at most 8.
    pub(super) fn number(&mut self, bytes: u8) -> Result<u64, Error> {
        debug_assert!(bytes <= 8);
        let taken = self.take(bytes.into())?;
        Ok(taken.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn two(&mut self) -> Result<u16, Error> {
        Ok(self.number(2)? as u16)
    }

    pub(super) fn four(&mut self) -> Result<u32, Error> {
        Ok(self.number(4)? as u32)
    }

    /// A length, as wide as the file has them.
    pub(super) fn length(&mut self) -> Result<u64, Error> {
        self.number(self.widths.length)
    }

    /// An address, counted from the start of the file; nothing where it means nowhere.
    pub(super) fn address(&mut self) -> Result<Option<u64>, Error> {
        let number = self.number(self.widths.offset)?;
        if number == NOWHERE >> (64 - 8 * u32::from(self.widths.offset)) {
            return Ok(None);
        }
        let address = number.checked_add(self.widths.base).filter(|&at| at <= i64::MAX as u64);
        address.map(Some).ok_or_else(|| self.wrong("an address below 2^63", number.to_string()))
    }

    /// An address that must be somewhere.
    pub(super) fn place(&mut self) -> Result<u64, Error> {
        self.address()?.ok_or_else(|| self.wrong("an address", "none"))
    }

    /// Bytes up to a zero, which is left out.
    pub(super) fn until_zero(&mut self) -> Result<&'a [u8], Error> {
        let end = self.rest.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| self.wrong("a name that ends with a zero", "none"))?;
        let name = self.take(end as u64)?;
        self.skip(1)?;
        Ok(name)
    }

    /// Refuses what is no version of those known.
    pub(super) fn version(&mut self, known: std::ops::RangeInclusive<u8>) -> Result<u8, Error> {
        let version = self.byte()?;
        if known.contains(&version) {
            return Ok(version);
        }
        let expected = format!("version {} to {} of a {}", known.start(), known.end(), self.what);
        Err(self.context.unsupported(expected, format!("version {version}")))
    }

    /// An error about this block.
    pub(super) fn wrong(&self, expected: &str, found: impl Into<String>) -> Error {
        self.context.corrupt(format!("{expected} in a {}", self.what), found)
    }
}

/// Text up to the first zero; what is no UTF-8 is shown as such.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
