//! Elements that were found, on their way: how many in which run of the grid, and their values, column by column.

use super::grid::{GridUnit, SelectGrid};
use std::ops::Range;

/// So many elements of one run of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RunOf {
    /// Number of the run.
    pub(crate) number: u64,
    /// How many elements of it.
    pub(crate) count: u64,
}

/// Elements, in the order in which units were looked at.
#[derive(Clone, Default, Debug)]
pub(crate) struct Matches {
    pub(crate) runs: Vec<RunOf>,
    pub(crate) columns: Vec<Vec<u8>>,
}

/// Set in a byte: what follows it is not short.
const LONG: u8 = 0xff;

impl Matches {
    pub(crate) fn new(columns: usize) -> Matches {
        Matches { runs: Vec::new(), columns: vec![Vec::new(); columns] }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Bytes that it takes in memory \[B\].
    pub(crate) fn bytes(&self) -> u64 {
        (size_of::<RunOf>() * self.runs.len() + self.columns.iter().map(Vec::len).sum::<usize>()) as u64
    }

    /// Notes more elements of a run.
    pub(crate) fn note(&mut self, number: u64, count: u64) {
        match self.runs.last_mut() {
            Some(last) if last.number == number => last.count += count,
            _ => self.runs.push(RunOf { number, count }),
        }
    }

    /// Notes the elements of a block, by their numbers in the unit, which rise.
    pub(crate) fn note_all(&mut self, grid: &SelectGrid, unit: &GridUnit, elements: impl Iterator<Item = u64>) {
        let length = grid.run_length(unit);
        let (mut run, mut end, mut count) = (0, 0, 0);
        for element in elements {
            if element >= end {
                if count > 0 {
                    self.note(grid.run_number(unit, run), count);
                }
                (run, count) = (element / length, 0);
                end = (run + 1) * length;
            }
            count += 1;
        }
        if count > 0 {
            self.note(grid.run_number(unit, run), count);
        }
    }

    /// Appends elements of another one: those of `range` in its order, which are these of its run.
    pub(crate) fn append(&mut self, from: &Matches, run: RunOf, range: Range<u64>, sizes: &[usize]) {
        self.note(run.number, range.end - range.start);
        for ((to, from), size) in self.columns.iter_mut().zip(&from.columns).zip(sizes) {
            to.extend(&from[range.start as usize * size..range.end as usize * size]);
        }
    }

    /// Bytes of a message: the runs, then the values.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut runs = Vec::new();
        let mut next = 0;
        for run in &self.runs {
            // Most runs lie close behind the one before, with few elements. Runs of one unit rise; those of the next lie behind.
            let gap = run.number.wrapping_sub(next);
            match (u8::try_from(gap), u8::try_from(run.count)) {
                (Ok(gap @ ..15), Ok(count @ 1..16)) => runs.push(gap << 4 | count),
                _ => {
                    runs.push(LONG);
                    short(&mut runs, gap);
                    short(&mut runs, run.count);
                }
            }
            next = run.number.wrapping_add(1);
        }
        let mut bytes = Vec::with_capacity(8 + runs.len() + self.columns.iter().map(Vec::len).sum::<usize>());
        bytes.extend((runs.len() as u64).to_le_bytes());
        bytes.extend(runs);
        self.columns.iter().for_each(|column| bytes.extend(column));
        bytes
    }
}

/// Appends a number, seven bits a byte.
fn short(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn long(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = *bytes.next()?;
        value |= u64::from(byte & 127).checked_shl(shift)?;
        if byte < 128 {
            return Some(value);
        }
        shift += 7;
    }
}

/// A message that has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) runs: Vec<RunOf>,
    bytes: Vec<u8>,
    /// Where each column begins.
    columns: Vec<usize>,
}

impl Arrived {
    /// Takes a message apart; nothing if it is none.
    pub(crate) fn of(bytes: Vec<u8>, sizes: &[usize]) -> Option<Arrived> {
        let (head, rest) = bytes.split_at_checked(8)?;
        let length = usize::try_from(u64::from_le_bytes(head.try_into().ok()?)).ok()?;
        let mut coded = rest.get(..length)?.iter();
        let (mut runs, mut next, mut total) = (Vec::new(), 0_u64, 0_u64);
        while let Some(&byte) = coded.next() {
            let (gap, count) = match byte {
                LONG => (long(&mut coded)?, long(&mut coded)?),
                byte => (u64::from(byte >> 4), u64::from(byte & 15)),
            };
            let number = next.wrapping_add(gap);
            runs.push(RunOf { number, count });
            (next, total) = (number.wrapping_add(1), total.checked_add(count)?);
        }
        let (mut columns, mut at) = (Vec::new(), 8 + length);
        for size in sizes {
            columns.push(at);
            at = at.checked_add(usize::try_from(total).ok()?.checked_mul(*size)?)?;
        }
        (at == bytes.len()).then_some(Arrived { runs, bytes, columns })
    }

    /// The values of a column, from one element on, so many.
    pub(crate) fn values(&self, column: usize, size: usize, elements: Range<u64>) -> &[u8] {
        let start = self.columns[column];
        &self.bytes[start + elements.start as usize * size..start + elements.end as usize * size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_what_was_sent() {
        let mut rng = fastrand::Rng::with_seed(4);
        for _ in 0..300 {
            let mut found = Matches::new(2);
            let mut number = 0;
            for _ in 0..rng.u64(0..50) {
                number += [0, 1, 14, 15, 16, 1 << 40][rng.usize(..6)];
                let count = [1, 15, 16, 1000][rng.usize(..4)];
                found.note(number, count);
                (0..count).for_each(|_| found.columns[0].extend(rng.u64(..).to_ne_bytes()));
                (0..count).for_each(|_| found.columns[1].push(rng.u8(..)));
                number += 1;
            }
            let bytes = found.to_bytes();
            let arrived = Arrived::of(bytes.clone(), &[8, 1]).unwrap();
            let count = found.columns[1].len() as u64;
            assert_eq!(arrived.runs, found.runs);
            assert_eq!(arrived.values(0, 8, 0..count), found.columns[0]);
            assert_eq!(arrived.values(1, 1, 0..count), found.columns[1]);
            // Whatever else arrives is refused, or has as many values as it says.
            for _ in 0..20 {
                let mut bent = bytes.clone();
                let at = rng.usize(..bent.len());
                bent[at] ^= 1 << rng.u8(..8);
                bent.truncate(rng.usize(at..=bent.len()));
                let _ = Arrived::of(bent, &[8, 1]);
            }
        }
    }
}
