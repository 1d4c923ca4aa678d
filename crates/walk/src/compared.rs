//! What ranks compare before anything happens: a number that stands for what each is asked for, and, where these differ, names
//! and values that say so. The number is made of values as they are, and nothing is written out for people unless somebody
//! has to read it: of small transfers in an open file there are thousands.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Names and values, as people read them.
pub type Fields = Vec<(String, String)>;

type Say = Arc<dyn Fn() -> Fields + Send + Sync>;

/// What must be equal on all ranks.
#[derive(Clone, Default)]
pub struct Compared {
    digest: Digest,
    /// Says the values, part by part.
    said: Vec<Say>,
}

impl Compared {
    /// A key that is equal where all that `say` says is, and different where something of it is.
    pub fn of(key: impl Hash, say: impl Fn() -> Fields + Send + Sync + 'static) -> Compared {
        Compared::default().and(key, say)
    }

    /// This, and that.
    #[must_use]
    pub fn and(mut self, key: impl Hash, say: impl Fn() -> Fields + Send + Sync + 'static) -> Compared {
        key.hash(&mut self.digest);
        self.said.push(Arc::new(say));
        self
    }

    /// This in front of that.
    #[must_use]
    pub(crate) fn before(self, mut others: Compared) -> Compared {
        let Compared { mut digest, mut said } = self;
        digest.write_u64(others.digest.0);
        said.append(&mut others.said);
        Compared { digest, said }
    }

    /// A number that is the same for equal values, on all ranks that run the same version.
    pub fn digest(&self) -> u64 {
        self.digest.0
    }

    /// All names and values.
    pub fn fields(&self) -> Fields {
        self.said.iter().flat_map(|say| say()).collect()
    }
}

/// Names and values that are written out already.
impl From<Fields> for Compared {
    fn from(fields: Fields) -> Compared {
        let mut compared = Compared::default();
        fields.hash(&mut compared.digest);
        compared.said.push(Arc::new(move || fields.clone()));
        compared
    }
}

impl fmt::Debug for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields().fmt(f)
    }
}

/// 64-bit FNV-1a, word by word: the same on all ranks, which the standard library promises of none of its own.
#[derive(Clone, Copy)]
struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn take(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
        // The product moves nothing down; without this, high bits of a word would never reach low ones.
        self.0 ^= self.0 >> 29;
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|&word| self.take(u64::from_le_bytes(word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.take(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn write_u64(&mut self, word: u64) {
        self.take(word);
    }

    fn write_u32(&mut self, word: u32) {
        self.take(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.take(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn fields(of: &[(&str, &str)]) -> Fields {
        of.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn what_differs_has_another_digest() {
        let all: Vec<Compared> = vec![
            fields(&[]).into(),
            fields(&[("", "")]).into(),
            fields(&[("a", "b")]).into(),
            fields(&[("ab", "")]).into(),
            fields(&[("a", "b"), ("c", "d")]).into(),
            fields(&[("a", "bc"), ("", "d")]).into(),
            fields(&[("c", "d"), ("a", "b")]).into(),
            Compared::of(("a", 1_u64), Vec::new),
            Compared::of(("a", 1_u64 << 63), Vec::new),
            Compared::of(("a", 1_u32), Vec::new).and(0_u8, Vec::new),
            Compared::of([1_u64, 2], Vec::new),
            Compared::of([2_u64, 1], Vec::new),
        ];
        let digests: BTreeSet<u64> = all.iter().map(Compared::digest).collect();
        assert_eq!(digests.len(), all.len());
        assert_eq!(Compared::from(fields(&[("a", "b")])).digest(), all[2].digest());
    }

    #[test]
    fn values_are_said_in_order() {
        let one = Compared::of(1, || fields(&[("a", "1")])).and(2, || fields(&[("b", "2")]));
        let all = Compared::from(fields(&[("number", "7")])).before(one);
        assert_eq!(all.fields(), fields(&[("number", "7"), ("a", "1"), ("b", "2")]));
    }
}
