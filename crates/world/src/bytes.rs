//! Numbers, texts and sets of indices in messages between ranks, little-endian.

use hyperslab_layout::{IndexSet, Level, Nested};

/// In place of the number of parts of a set: it is a list of runs.
const RUNS: u64 = u64::MAX;
/// The bit of a byte of a short number that says that more follow.
const MORE: u8 = 1 << 7;

/// Builds a message.
#[derive(Default, Debug)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// A message that begins with this byte.
    pub fn tagged(tag: u8) -> Writer {
        Writer(vec![tag])
    }

    /// Appends a number.
    #[must_use]
    pub fn number(mut self, value: u64) -> Writer {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends bytes with their length.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Writer {
        self.0.extend((bytes.len() as u64).to_le_bytes());
        self.0.extend(bytes);
        self
    }

    /// Appends a number, the smaller the shorter: seven bits a byte.
    fn short(&mut self, mut value: u64) {
        while value >= u64::from(MORE) {
            self.0.push(value as u8 | MORE);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Appends a set of indices: parts that repeat regularly, each with its levels; or, where nothing does, runs, each by how
    /// far it lies behind the one before it, and its length.
    #[must_use]
    pub fn set(mut self, set: &IndexSet) -> Writer {
        if let Some(runs) = set.scattered_runs() {
            self = self.number(RUNS).number(runs.len() as u64);
            let mut last = 0;
            for (low, high) in runs {
                self.short(low - last);
                self.short(high - low);
                last = high;
            }
            return self;
        }
        let w = self.number(set.parts().count() as u64);
        set.parts().fold(w, |w, Nested { start, len, levels }| {
            let w = w.number(start).number(len).number(levels.len() as u64);
            levels.iter().fold(w, |w, level| w.number(level.count).number(level.step))
        })
    }
}

/// Takes a message apart. Every method gives `None` when the message ends too early.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the start of these bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// One byte.
    pub fn tag(&mut self) -> Option<u8> {
        let (&tag, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(tag)
    }

    /// A number.
    pub fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_at_checked(8)?;
        self.0 = rest;
        Some(u64::from_le_bytes(number.try_into().ok()?))
    }

    /// Bytes with their length.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A text with its length.
    pub fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    /// A set of indices.
    pub fn set(&mut self) -> Option<IndexSet> {
        let parts = self.number()?;
        if parts == RUNS {
            return self.runs();
        }
        let part = |r: &mut Self| {
            let (start, len) = (r.number()?, r.number()?);
            let levels = r.number()?;
            let level = |r: &mut Self| Some(Level { count: r.number()?, step: r.number()? });
            Some(Nested { start, len, levels: (0..levels).map(|_| level(r)).collect::<Option<_>>()? })
        };
        IndexSet::of_parts((0..parts).map(|_| part(self)).collect::<Option<Vec<_>>>()?)
    }

    fn short(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.tag()?;
            value |= u64::from(byte & !MORE).checked_shl(shift)?;
            if byte & MORE == 0 {
                return Some(value);
            }
            shift += 7;
        }
    }

    fn runs(&mut self) -> Option<IndexSet> {
        let (count, mut last) = (self.number()?, 0_u64);
        let run = |_| {
            let (gap, len) = (self.short()?, self.short()?);
            let low = last.checked_add(gap)?;
            last = low.checked_add(len)?;
            Some((low, len))
        };
        let mut whole = true;
        let set = IndexSet::of_runs((0..count).map(run).map_while(|run| {
            whole &= run.is_some();
            run
        }))?;
        whole.then_some(set)
    }

    /// What is left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}
