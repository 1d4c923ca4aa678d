//! Blocks of metadata, each read once in a call: files that lead in circles come to an end.

use super::fields::{FieldReader, Widths};
use super::heap_kept::GlobalHeaps;
use crate::error::{Context, Error};
use crate::hdf5::content::MetadataSource;
use crate::hdf5::lookup3::lookup3;
use crate::hdf5::policy::{BLOCK_BYTES_MAX, SLACK_BYTES, TIMES_MAX};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What reads the blocks of one call.
pub(super) struct Fetcher<'a> {
    source: &'a dyn MetadataSource,
    pub(super) widths: Widths,
    pub(super) context: Context<'a>,
    /// Bytes that were read so far \[B\].
    spent: Cell<u64>,
    entered: RefCell<HashSet<u64>>,
    kept: RefCell<HashMap<u64, Rc<[u8]>>>,
    /// Values of variable length, which other calls may have read.
    pub(super) heaps: Rc<RefCell<GlobalHeaps>>,
}

impl<'a> Fetcher<'a> {
    pub(super) fn new(source: &'a dyn MetadataSource, widths: Widths, context: Context<'a>) -> Self {
        let (entered, kept) = (RefCell::default(), RefCell::default());
        Fetcher { source, widths, context, spent: Cell::new(0), entered, kept, heaps: Rc::default() }
    }

    /// The same, which has what other calls have read of values of variable length.
    pub(super) fn sharing(self, heaps: &Rc<RefCell<GlobalHeaps>>) -> Self {
        Fetcher { heaps: heaps.clone(), ..self }
    }

    /// Length of the file \[B\].
    pub(super) fn file_bytes(&self) -> u64 {
        self.source.length()
    }

    /// Counts bytes that are taken from the file. Whoever takes more than it has, several times over, is led in circles.
    pub(super) fn spend(&self, bytes: u64) -> Result<(), Error> {
        let spent = self.spent.get().saturating_add(bytes);
        self.spent.set(spent);
        if spent <= self.file_bytes().saturating_mul(TIMES_MAX).saturating_add(SLACK_BYTES) {
            return Ok(());
        }
        Err(self.context.corrupt("metadata that are read once", format!("{spent} B of {}", self.file_bytes())))
    }

    /// These bytes.
    pub(super) fn bytes(&self, at: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        if at.checked_add(bytes).is_none_or(|end| end > self.file_bytes()) {
            let found = format!("a file of {} B", self.file_bytes());
            let error = self.context.corrupt(format!("metadata of {bytes} B at byte {at}"), found);
            return Err(error.with_hint("the file was cut short or is damaged"));
        }
        if bytes > BLOCK_BYTES_MAX {
            let expected = format!("metadata in blocks of at most {BLOCK_BYTES_MAX} B");
            return Err(self.context.unsupported(expected, format!("{bytes} B at byte {at}")));
        }
        self.spend(bytes)?;
        let read = self.source.read(at, bytes as usize)?;
        if read.len() as u64 == bytes {
            return Ok(read);
        }
        Err(self.context.corrupt(format!("{bytes} B at byte {at}"), format!("{} B", read.len())))
    }

    /// As many of these bytes as the file has: a guess at how long something is.
    pub(super) fn bytes_at_most(&self, at: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        let left = self.file_bytes().saturating_sub(at);
        self.bytes(at, if left == 0 { bytes } else { bytes.min(left) })
    }

    /// The same, of something that is found to be so long by what was guessed of it.
    pub(super) fn extended(&self, at: u64, mut guess: Vec<u8>, bytes: u64) -> Result<Vec<u8>, Error> {
        match bytes.checked_sub(guess.len() as u64) {
            None => guess.truncate(bytes as usize),
            Some(0) => (),
            Some(more) => guess.extend(self.bytes(at.saturating_add(guess.len() as u64), more)?),
        }
        Ok(guess)
    }

    /// A block of known length that begins with a signature.
    pub(super) fn block(&self, at: u64, bytes: u64, signature: &[u8; 4]) -> Result<Vec<u8>, Error> {
        let block = self.bytes(at, bytes)?;
        self.check_signature(at, &block, signature)?;
        Ok(block)
    }

    pub(super) fn check_signature(&self, at: u64, block: &[u8], signature: &[u8; 4]) -> Result<(), Error> {
        if block.starts_with(signature) {
            return Ok(());
        }
        let found = String::from_utf8_lossy(&block[..block.len().min(4)]).escape_default().to_string();
        let expected = format!("`{}` at byte {at}", String::from_utf8_lossy(signature));
        Err(self.context.corrupt(expected, format!("`{found}`")))
    }

    /// What is before the checksum at the end of a block, which is verified.
    pub(super) fn verified<'b>(&self, at: u64, block: &'b [u8]) -> Result<&'b [u8], Error> {
        let Some((body, stored)) = block.split_last_chunk::<4>() else {
            return Err(self.context.corrupt("a checksum of 4 B", format!("{} B at byte {at}", block.len())));
        };
        self.compare(at, u32::from_le_bytes(*stored), lookup3(body))?;
        Ok(body)
    }

    /// Compares a checksum with what it should be.
    pub(super) fn compare(&self, at: u64, stored: u32, computed: u32) -> Result<(), Error> {
        #[cfg(test)]
        if super::tests::checksums_are_ignored() {
            return Ok(());
        }
        if stored == computed {
            return Ok(());
        }
        let expected = format!("checksum {stored:#010x} as stored for the block at byte {at}");
        let error = self.context.corrupt(expected, format!("checksum {computed:#010x} of its bytes"));
        Err(error.with_hint("the file is damaged, or is being written: restore it from another copy"))
    }

    /// Notes that a node or a continuation is visited, which may happen once.
    pub(super) fn enter(&self, at: u64) -> Result<(), Error> {
        if self.entered.borrow_mut().insert(at) {
            return Ok(());
        }
        Err(self.context.corrupt("metadata without circles", format!("the block at byte {at} twice")))
    }

    /// What was kept for this address, or is made for it now.
    pub(super) fn kept(&self, at: u64, make: impl FnOnce() -> Result<Vec<u8>, Error>) -> Result<Rc<[u8]>, Error> {
        if let Some(known) = self.kept.borrow().get(&at) {
            return Ok(known.clone());
        }
        let made: Rc<[u8]> = make()?.into();
        self.kept.borrow_mut().insert(at, made.clone());
        Ok(made)
    }

    /// The fields of a block.
    pub(super) fn fields<'b>(&'b self, rest: &'b [u8], what: &'static str) -> FieldReader<'b> {
        FieldReader { rest, widths: self.widths, context: self.context, what }
    }
}
