//! Where objects of a transfer lie, and by what a rank knows that it sees what rank 0 sees.

use crate::{Reader, Writer};
use hyperslab_layout::Object;
use std::sync::Arc;

/// A directory with objects in it, or one object. Rank 0 finds or makes it and tells the others, and a rank that handles
/// storage looks at the proofs before it touches the first object, once for each opening: the path may mean something else
/// on its node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root {
    /// Absolute name of the directory, or of the object, whose name below this root is empty then. What it begins with says in
    /// which place it lies (see [`Names`](crate::Names)). Directories are made below it, but never itself.
    pub at: Arc<str>,
    /// A directory in which what replaces an object is made before it takes the object's name.
    pub via: Option<Arc<str>>,
    /// A file in what it takes the place of, whose permissions its files have, and its directories those of the directory there.
    pub like: Option<Arc<str>>,
    /// The opening that it belongs to: a number that no other has.
    pub opening: u64,
    /// What rank 0 sees.
    pub proofs: Vec<Proof>,
    /// In a place that publishes by metadata: the attempt that writes, which its objects tell, and then those that are over
    /// and whose objects it may replace.
    pub attempts: Vec<Arc<str>>,
}

/// What must be the same on all ranks that handle storage.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Proof {
    /// A directory whose name has a token in it that no other has.
    Directory(Arc<str>),
    /// A file whose name has a token in it that no other has.
    File(Arc<str>),
    /// A file of this length \[B\].
    Length(Arc<str>, u64),
    /// A file of which these bytes, the first and one past the last \[B\], have this [`fingerprint`].
    Stretch(Arc<str>, (u64, u64), u64),
    /// A small file whose contents have this [`fingerprint`].
    Contents(Arc<str>, u64),
}

impl Proof {
    /// Path of what is looked at.
    pub fn path(&self) -> &str {
        match self {
            Proof::Directory(path)
            | Proof::File(path)
            | Proof::Length(path, _)
            | Proof::Stretch(path, ..)
            | Proof::Contents(path, _) => path,
        }
    }
}

/// 64-bit FNV-1a of some bytes: tells two different files apart, but for an accident in 10^19, or an attack.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Most roots or proofs that are believed.
const COUNT_MAX: u64 = 1 << 24;

impl Root {
    /// One of which nothing is to be proven, since whoever uses it knows what it is.
    pub fn new(at: impl Into<Arc<str>>) -> Root {
        Root { at: at.into(), via: None, like: None, opening: 0, proofs: Vec::new(), attempts: Vec::new() }
    }

    /// Absolute name of an object below it.
    pub fn full(&self, name: &str) -> String {
        match (name.is_empty(), self.at.is_empty() || self.at.ends_with('/')) {
            (true, _) => self.at.to_string(),
            (_, true) => format!("{}{name}", self.at),
            _ => format!("{}/{name}", self.at),
        }
    }

    /// Absolute name of an object below one of these. Where nobody says what the roots are, it has its own name below the
    /// first, and with the number in front below others.
    pub fn full_of(roots: &[Root], object: &Object) -> String {
        match (roots.get(object.root as usize), object.root) {
            (Some(root), _) => root.full(&object.name),
            (None, 0) => object.name.to_string(),
            (None, number) => format!("{number}:{}", object.name),
        }
    }

    /// Roots as bytes for another rank.
    pub fn encode(roots: &[Root]) -> Vec<u8> {
        let said = |w: Writer, kind, name: &str, numbers: [u64; 3]| {
            numbers.into_iter().fold(w.number(kind).bytes(name.as_bytes()), Writer::number)
        };
        let one = |w: Writer, root: &Root| {
            let w = [Some(&root.at), root.via.as_ref(), root.like.as_ref()]
                .into_iter()
                .fold(w, |w, name| w.bytes(name.map_or("", |name| name).as_bytes()));
            let w = w.number(root.opening).number(root.proofs.len() as u64);
            let w = root.proofs.iter().fold(w, |w, proof| match proof {
                Proof::Directory(name) => said(w, 0, name, [0; 3]),
                Proof::File(name) => said(w, 1, name, [0; 3]),
                Proof::Length(name, bytes) => said(w, 2, name, [0, *bytes, 0]),
                Proof::Stretch(name, (from, to), hash) => said(w, 3, name, [*from, *to, *hash]),
                Proof::Contents(name, hash) => said(w, 4, name, [0, 0, *hash]),
            });
            let w = w.number(root.attempts.len() as u64);
            root.attempts.iter().fold(w, |w, attempt| w.bytes(attempt.as_bytes()))
        };
        roots.iter().fold(Writer::default().number(roots.len() as u64), one).0
    }

    /// Reads what [`Root::encode`] made.
    pub fn decode(bytes: &[u8]) -> Option<Vec<Root>> {
        let mut r = Reader::new(bytes);
        let count = r.number().filter(|&count| count <= COUNT_MAX)?;
        (0..count).map(|_| Root::read(&mut r)).collect()
    }

    fn read(r: &mut Reader) -> Option<Root> {
        let at: Arc<str> = r.text()?.into();
        let via = Some(r.text()?).filter(|via| !via.is_empty()).map(Arc::from);
        let like = Some(r.text()?).filter(|like| !like.is_empty()).map(Arc::from);
        let opening = r.number()?;
        let count = r.number().filter(|&count| count <= COUNT_MAX)?;
        let proof = |_| {
            let (kind, name) = (r.number()?, r.text()?);
            let (from, bytes, hash) = (r.number()?, r.number()?, r.number()?);
            Some(match kind {
                0 => Proof::Directory(name.into()),
                1 => Proof::File(name.into()),
                2 => Proof::Length(name.into(), bytes),
                3 => Proof::Stretch(name.into(), (from, bytes), hash),
                4 => Proof::Contents(name.into(), hash),
                _ => return None,
            })
        };
        let proofs = (0..count).map(proof).collect::<Option<_>>()?;
        let count = r.number().filter(|&count| count <= COUNT_MAX)?;
        let attempts = (0..count).map(|_| r.text().map(Arc::from)).collect::<Option<_>>()?;
        Some(Root { at, via, like, opening, proofs, attempts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_travel_unchanged_and_broken_ones_are_refused() {
        let name = |name: &str| Arc::from(name);
        let proofs = vec![
            Proof::Directory(name("/a/t")),
            Proof::File(name("/a/y")),
            Proof::Length(name("/a/x"), 9),
            Proof::Stretch(name("/a/n"), (8, 128), 5),
            Proof::Contents(name("/a/z"), 7),
        ];
        let via = Some("/a/t/1".into());
        let roots = vec![
            Root { via, like: Some("/a/s/x".into()), opening: u64::MAX, proofs, ..Root::new("/a/b") },
            Root { opening: 1, attempts: vec![name("t-1"), name("t-0")], ..Root::new("/ψ") },
        ];
        let bytes = Root::encode(&roots);
        assert_eq!(Root::decode(&bytes), Some(roots));
        for end in 0..bytes.len() {
            assert_eq!(Root::decode(&bytes[..end]), None, "{end} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn fingerprints_are_those_of_fnv() {
        assert_eq!(fingerprint(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
