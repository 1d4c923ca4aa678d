//! A new file whose arrays came one after another is brought into the order that its format has, before it is seen or arrays of it
//! grow: rank 0 puts all that has to lie in order behind the end of the file, and then back to where it belongs. What a failure
//! leaves is done again; there is no second file, which others would have to know of.

use super::File;
use super::policy::COPY_BYTES;
use crate::course::{End, Publish};
use crate::error::Error;
use hyperslab_format::netcdf::{Arranged, Shifted};
use hyperslab_world::{Fault, FaultKind, Names, Root};

impl File {
    /// Brings the arrays of a new file into the order of its format, if they are not. Collective.
    pub(super) fn arrange(&self) -> Result<(), Error> {
        let Some(arranged) = self.unarranged() else { return Ok(()) };
        let path = self.path().display().to_string();
        // Rank 0 reads what others wrote, and writes over it: nothing of theirs may still be on its way.
        let below = Root::new(self.directory.full(self.object()));
        let sync = Some(below).filter(|_| !self.at_hand);
        let end = End { sync, ..End::of(format!("arranging the arrays of '{path}'"), "arrange", &path) };
        let file = self.clone();
        let moves = move || file.move_all(&arranged);
        self.comm.sync_and(end, self.target, Publish::by(false, moves))?;
        self.inside().form.is_arranged();
        Ok(())
    }

    fn unarranged(&self) -> Option<Arranged> {
        self.await_calls();
        if self.is_new() { self.inside().form.unarranged() } else { None }
    }

    /// Refuses to write to a file of which some lies in order and some does not, since that failed half way.
    pub(super) fn check_in_order(&self) -> Result<(), Fault> {
        if self.inside().aside.is_none() {
            return Ok(());
        }
        let text = format!("arranging the arrays of '{}' failed half way", self.path().display());
        Err(Fault::new(FaultKind::Storage, text).hint("make room; flush() or close() then ends it"))
    }

    /// Rank 0's part.
    fn move_all(&self, arranged: &Arranged) -> Result<(), Fault> {
        let (directory, name, (begin, end)) = (&*self.directory, self.object(), arranged.data);
        let (aside, done) = self.inside().aside.unwrap_or_else(|| {
            let length = directory.length(name).unwrap_or(0);
            (length.max(end).next_multiple_of(1 << 12), false)
        });
        if !done {
            directory.resize(name, aside + (end - begin))?;
            let mut order = Arranging { directory, name, aside: aside - begin };
            let ordered = order.put(arranged);
            if ordered.is_err() {
                // All is where it was.
                let _ = directory.resize(name, aside);
            }
            ordered?;
            self.inside().aside = Some((aside, true));
        }
        // Of what lay there before, nothing stays between the header and the data.
        directory.overwrite_part(name, 0, &vec![0; usize::try_from(begin).unwrap_or(0)])?;
        let mut at = 0;
        while at < end - begin {
            let part = read(directory, name, aside + at, COPY_BYTES.min(end - begin - at))?;
            directory.overwrite_part(name, begin + at, &part)?;
            at += part.len() as u64;
        }
        directory.resize(name, end)?;
        let mut inside = self.inside();
        (inside.aside, inside.begun) = (None, Some((Vec::new(), end)));
        Ok(())
    }
}

/// What is read and put in order.
struct Arranging<'a> {
    directory: &'a dyn Names,
    name: &'a str,
    /// How far behind its place each byte is put \[B\].
    aside: u64,
}

impl Arranging<'_> {
    fn put(&mut self, arranged: &Arranged) -> Result<(), Fault> {
        let Arranged { fixed, records, interleaved, .. } = arranged;
        fixed.iter().try_for_each(|moved| self.copy(moved.from, moved.to, moved.bytes))?;
        let Some(Shifted { to_step: record, count, .. }) = records.first().copied() else { return Ok(()) };
        if record.max(interleaved.1) > COPY_BYTES {
            return self.put_slabs(records);
        }
        let each = COPY_BYTES / record.max(interleaved.1).max(1);
        (0..count.div_ceil(each)).try_for_each(|turn| {
            let first = turn * each;
            self.put_records(arranged, (first, each.min(count - first)))
        })
    }

    /// Slabs so large that one after another is fast.
    fn put_slabs(&self, records: &[Shifted]) -> Result<(), Fault> {
        let slabs = records.iter().flat_map(|moved| (0..moved.count).map(move |n| (moved, n)));
        let mut all =
            slabs.map(|(moved, n)| (moved.from + n * moved.from_step, moved.to + n * moved.to_step, moved.bytes));
        all.try_for_each(|(from, to, bytes)| self.copy(from, to, bytes))
    }

    /// So many records from this one on: what lies between each other is read once, drafts one by one, and all is written at once.
    fn put_records(&self, arranged: &Arranged, (first, count): (u64, u64)) -> Result<(), Fault> {
        let Arranged { records, interleaved: (begin, old), .. } = arranged;
        let record = records.first().map_or(0, |moved| moved.to_step);
        let low = records.iter().map(|moved| moved.to).min().unwrap_or(0);
        // The last of a file may end with the last slab of it.
        let ends = |moved: &Shifted| moved.to - low + (count - 1) * record + moved.bytes;
        let mut new = vec![0; records.iter().map(ends).max().unwrap_or(0) as usize];
        let is_between = |moved: &Shifted| moved.from_step == *old && moved.from >= *begin && moved.from < begin + old;
        let between: Vec<&Shifted> = records.iter().filter(|moved| is_between(moved)).collect();
        let last = between.iter().map(|moved| moved.from - begin + moved.bytes).max();
        let together = last.map(|last| {
            let at = begin + first * old;
            read(self.directory, self.name, at, (count - 1) * old + last).map(|bytes| (at, bytes))
        });
        let together = together.transpose()?.unwrap_or_default();
        for moved in records {
            let own;
            let (at, bytes) = if is_between(moved) {
                (together.0, &together.1)
            } else {
                let at = moved.from + first * moved.from_step;
                own = read(self.directory, self.name, at, (count - 1) * moved.from_step + moved.bytes)?;
                (at, &own)
            };
            for n in 0..count {
                let from = (moved.from + (first + n) * moved.from_step - at) as usize;
                let to = (moved.to - low + n * record) as usize;
                new[to..][..moved.bytes as usize].copy_from_slice(&bytes[from..][..moved.bytes as usize]);
            }
        }
        self.directory.overwrite_part(self.name, self.aside + low + first * record, &new)
    }

    fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), Fault> {
        let mut at = 0;
        while at < bytes {
            let part = read(self.directory, self.name, from + at, COPY_BYTES.min(bytes - at))?;
            self.directory.overwrite_part(self.name, self.aside + to + at, &part)?;
            at += part.len() as u64;
        }
        Ok(())
    }
}

/// So many bytes of a file, all of them.
fn read(directory: &dyn Names, name: &str, at: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
    let part = directory.read_part(name, at, bytes)?.unwrap_or_default();
    if part.len() as u64 == bytes {
        return Ok(part);
    }
    let path = directory.full(name);
    let text = format!("'{path}' has no {bytes} B from byte {at} on, which were written to it");
    Err(Fault::new(FaultKind::Busy, text).about(path).hint("another program may have cut it: write it again"))
}
