//! Bytes on their way out of a whole object, which are summed as they pass: those of short runs are read many runs at a time.

use super::coalescing::is_in_order;
use super::content::{CHECKED_BLOCK_BYTES, Scratch, Source, Sum};
use super::mapped::Windows;
use crate::doing::Doing;
use hyperslab_pack::{copy, try_for_each_run};
use hyperslab_world::{Fault, FaultKind, Moves};
use std::fs::File;
use std::io;

/// Runs shorter than this are read together with those around them and then copied: a call for each would take longer \[B\].
const SHORT_RUN_BYTES: usize = 8 << 10;

/// Reads an object from its start to its end.
pub(super) struct ChecksumReader<'a> {
    file: &'a File,
    /// Whether bytes may be copied out of mappings, and those.
    maps: bool,
    mapped: Option<Windows<'a>>,
    doing: Doing<'a>,
    scratch: &'a mut Scratch,
    /// Bytes of its elements.
    bytes: u64,
    /// Up to where runs have their bytes, and what of those in `staged` comes next.
    at: u64,
    ahead: std::ops::Range<usize>,
    /// The checksum so far, when one is wanted.
    sum: Option<Sum>,
    calls: u64,
}

impl<'a> ChecksumReader<'a> {
    pub(super) fn new(
        file: &'a File,
        doing: Doing<'a>,
        scratch: &'a mut Scratch,
        (summed, maps): (bool, bool),
    ) -> ChecksumReader<'a> {
        let sum = summed.then(Sum::default);
        ChecksumReader { file, maps, mapped: None, doing, scratch, bytes: 0, at: 0, ahead: 0..0, sum, calls: 0 }
    }

    /// Reads all elements; gives their checksum, if it is wanted, and the number of calls.
    pub(super) fn whole(mut self, moves: &Moves) -> Result<(Option<u32>, u64), Fault> {
        self.bytes = moves.bytes();
        self.mapped = if self.maps { Windows::of(self.file, (0, self.bytes)) } else { None };
        if is_in_order(moves) {
            self.runs(moves)?;
        } else {
            let memory = self.scratch.whole(self.bytes)?;
            self.run(Source::of_memory(&memory, self.bytes)?).map_err(|error| self.doing.failed("", &error))?;
            for nest in moves.nests() {
                copy(&nest.swapped(), &memory, moves.there.element, &moves.memory, moves.here.element)
                    .map_err(|error| Fault::new(FaultKind::Invalid, error.to_string()))?;
            }
        }
        Ok((self.sum.map(|sum| sum.value()), self.calls))
    }

    fn runs(&mut self, moves: &Moves) -> Result<(), Fault> {
        for nest in moves.nests() {
            try_for_each_run(&nest, moves.there.element.bytes(), |memory, _, length| {
                let run = Source::new(moves, memory, length)?;
                let begun = self.at;
                self.run(run).map_err(|error| self.doing.failed(&format!(" ({length} B at offset {begun})"), &error))
            })?;
        }
        Ok(())
    }

    /// Gives a run the bytes that come next.
    fn run(&mut self, run: Source) -> io::Result<()> {
        let mut left = run;
        loop {
            left = self.take_ahead(left);
            if left.length() == 0 {
                return Ok(());
            }
            if left.length() >= SHORT_RUN_BYTES {
                return self.straight(left);
            }
            self.read_ahead()?;
        }
    }

    /// Gives a run what was read ahead; what is left of it has to be read.
    fn take_ahead(&mut self, run: Source) -> Source {
        let (now, left) = run.split_at(self.ahead.len());
        let from = self.ahead.start;
        now.copy_from(&self.scratch.staged[from..from + now.length()]);
        self.ahead.start += now.length();
        self.at += now.length() as u64;
        left
    }

    fn straight(&mut self, run: Source) -> io::Result<()> {
        for (_, block) in run.blocks(CHECKED_BLOCK_BYTES) {
            self.fill(block)?;
            self.sum.iter_mut().for_each(|sum| sum.add(block));
            self.at += block.length() as u64;
        }
        Ok(())
    }

    /// Gives a run the bytes that were not read yet.
    fn fill(&mut self, run: Source) -> io::Result<()> {
        self.calls += 1;
        if self.mapped.as_mut().is_some_and(|windows| windows.copy_to(&run, self.at).is_some()) {
            return Ok(());
        }
        self.mapped = None;
        run.read_at(self.file, self.at)
    }

    fn read_ahead(&mut self) -> io::Result<()> {
        let length = (self.bytes - self.at).clamp(1, CHECKED_BLOCK_BYTES) as usize;
        let staged = &mut self.scratch.staged;
        if staged.len() < length {
            staged.resize(length, 0);
        }
        let ahead = Source::of(&mut staged[..length]);
        self.fill(ahead)?;
        self.sum.iter_mut().for_each(|sum| sum.add(ahead));
        self.ahead = 0..length;
        Ok(())
    }
}
