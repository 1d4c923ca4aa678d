//! The roots that objects lie below: whether this node sees there what rank 0 sees, and where files go.

use super::permissions::{Like, Permissions};
use crate::below::{self, Spot};
use crate::doing::Doing;
use crate::likeness::Likeness;
use crate::regular;
use hyperslab_layout::Object;
use hyperslab_world::{Fault, FaultKind, METADATA_BYTES_MAX, Proof, Root, fingerprint};
use rustix::fd::OwnedFd;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Proofs that are remembered; more are looked at again.
const SEEN_MAX: usize = 1 << 16;
/// Directories kept open between requests.
const HELD_MAX: usize = 16;

#[derive(Default)]
pub(super) struct Grounds {
    /// By their numbers.
    roots: Arc<[Root]>,
    /// Of which all proofs were seen, so that nothing is asked for each request.
    proven: Vec<bool>,
    /// Proofs that were looked at and hold, by their openings.
    seen: BTreeSet<(u64, Proof)>,
    /// Directories that are in use.
    held: VecDeque<(PathBuf, Arc<OwnedFd>)>,
    /// Of roots that take the place of something, what files and directories in that are like.
    likes: Vec<(u32, Option<Likeness>, Option<Likeness>)>,
    /// What files become that are made in the place of others.
    permissions: Permissions,
}

impl Grounds {
    /// Forgets the roots before.
    pub(super) fn enter(&mut self, roots: Arc<[Root]>) {
        self.release();
        let seen = |root: &Root| root.proofs.iter().all(|proof| self.seen.contains(&(root.opening, proof.clone())));
        self.proven = roots.iter().map(seen).collect();
        self.roots = roots;
        self.likes.clear();
    }

    /// What a file of an object is like whose root takes the place of something, and its directory; looked at once.
    fn like(&mut self, object: &Object) -> Option<&(u32, Option<Likeness>, Option<Likeness>)> {
        let like = self.root(object)?.like.clone()?;
        if let Some(number) = self.likes.iter().position(|known| known.0 == object.root) {
            return self.likes.get(number);
        }
        let of = |path: &Path| {
            let spot = Spot::new(below::root(path.parent()?).ok()?, path.file_name()?);
            spot.likeness().ok().flatten()
        };
        let like = Path::new(&*like);
        let directory = like.parent().and_then(of).map(Likeness::of_root);
        self.likes.push((object.root, of(like).map(Likeness::writable), directory));
        self.likes.last()
    }

    /// Makes the file of a whole object: of a new one, or under a hidden name and with this path, of one that takes the place of
    /// another.
    pub(super) fn create(
        &mut self,
        object: &Object,
        spot: &Spot,
        (hidden, path): (Option<&Spot>, &Path),
    ) -> io::Result<File> {
        let at = (self.root(object).map_or(0, |root| root.opening), path.parent().unwrap_or(path));
        if let Some(hidden) = hidden {
            return self.permissions.create(hidden, &Like::Replaced(spot), at);
        }
        match self.like(object).and_then(|like| like.1.clone()) {
            Some(like) => self.permissions.create(spot, &Like::Known(&like), at),
            None => spot.create(),
        }
    }

    /// Holds no directory any more.
    pub(super) fn release(&mut self) {
        self.held.clear();
    }

    /// Whether a path lies below a root.
    pub(super) fn lie_above(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(&*root.at))
    }

    fn root(&self, object: &Object) -> Option<&Root> {
        self.roots.get(object.root as usize)
    }

    /// The directory that is the root of an object.
    pub(super) fn at(&self, object: &Object) -> Option<&Path> {
        self.root(object).map(|root| Path::new(&*root.at))
    }

    /// Absolute name of an object.
    pub(super) fn full(&self, object: &Object) -> String {
        Root::full_of(&self.roots, object)
    }

    /// What is left to be looked at.
    pub(super) fn unproven(&self, object: &Object) -> &[Proof] {
        let proven = self.proven.get(object.root as usize).is_none_or(|&proven| proven);
        self.root(object).filter(|_| !proven).map_or(&[], |root| &root.proofs)
    }

    /// Makes sure that this node sees what rank 0 sees.
    pub(super) fn prove(&mut self, object: &Object) -> Result<(), Fault> {
        let number = object.root as usize;
        match self.proven.get(number) {
            Some(true) => return Ok(()),
            Some(false) => {}
            None => return Err(rootless(object, self.proven.len())),
        }
        let root = self.roots[number].clone();
        for proof in root.proofs {
            if self.seen.contains(&(root.opening, proof.clone())) {
                continue;
            }
            look(&proof)?;
            if self.seen.len() >= SEEN_MAX {
                self.seen.clear();
            }
            self.seen.insert((root.opening, proof));
        }
        self.proven[number] = true;
        Ok(())
    }

    /// Where the file of an object goes. Directories are made below its root, never itself, and no link is followed there;
    /// those made are added to `new`.
    pub(super) fn spot(&mut self, object: &Object, path: &Path, new: &mut BTreeSet<PathBuf>) -> io::Result<Spot> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let last = path.file_name().ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        if let Some(held) = self.held(parent) {
            return Ok(Spot::new(held, last));
        }
        let root_like = self.root(object).is_some_and(|root| root.like.is_some());
        let directory = match self.root(object).filter(|_| !object.name.is_empty()) {
            Some(root) => {
                let root = PathBuf::from(&*root.at);
                let way = parent.strip_prefix(&root).unwrap_or(Path::new(""));
                let made = |number| {
                    new.insert(root.join(way.iter().take(number + 1).collect::<PathBuf>()));
                };
                let begin = match self.held(&root) {
                    Some(held) => held,
                    None => self.hold(&root, root_itself(&root)?),
                };
                let like = if root_like { self.like(object).and_then(|like| like.2.clone()) } else { None };
                below::make_way(begin, way, like.as_ref(), made)?
            }
            None => below::root(parent)?,
        };
        Ok(Spot::new(self.hold(parent, directory), last))
    }

    fn held(&self, path: &Path) -> Option<Arc<OwnedFd>> {
        self.held.iter().find(|held| held.0 == path).map(|held| held.1.clone())
    }

    /// Keeps a directory open, in place of the one that was opened first.
    fn hold(&mut self, path: &Path, directory: Arc<OwnedFd>) -> Arc<OwnedFd> {
        self.held.truncate(HELD_MAX - 1);
        self.held.push_front((path.into(), directory.clone()));
        directory
    }

    /// Where what replaces an object is made first, and its path.
    pub(super) fn beside(&self, object: &Object, path: &Path) -> (Option<io::Result<Spot>>, PathBuf) {
        match self.root(object).and_then(|root| root.via.as_deref()) {
            Some(via) => {
                let name = format!("{:016x}", fingerprint(path.as_os_str().as_encoded_bytes()));
                let target = Path::new(via).join(&name);
                (Some(root_itself(Path::new(via)).map(|directory| Spot::new(directory, OsStr::new(&name)))), target)
            }
            None => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let target = path.with_file_name(format!(".{name}.hyperslab-{}", std::process::id()));
                let spot = target
                    .parent()
                    .zip(target.file_name())
                    .map(|(parent, name)| below::root(parent).map(|directory| Spot::new(directory, name)));
                (spot, target)
            }
        }
    }
}

/// An object below no root that the store was given.
fn rootless(object: &Object, roots: usize) -> Fault {
    let text = format!("object '{object}' lies below root {}, but there are {roots}", object.root);
    Fault::new(FaultKind::Invalid, text)
}

/// A directory by its path, which is no link itself.
fn root_itself(path: &Path) -> io::Result<Arc<OwnedFd>> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return below::root(path) };
    below::descend(below::root(parent)?, Path::new(name))
}

fn look(proof: &Proof) -> Result<(), Fault> {
    let (name, expected) = match proof {
        Proof::Directory(name) => (name, "the directory that rank 0 made".to_string()),
        Proof::File(name) => (name, "the file that rank 0 made".into()),
        Proof::Length(name, bytes) => (name, format!("{bytes} B, as rank 0 sees it")),
        Proof::Stretch(name, ..) | Proof::Contents(name, _) => (name, "what rank 0 reads".into()),
    };
    let found = match proof {
        Proof::Directory(_) => std::fs::symlink_metadata(&**name).map(|found| (found.is_dir(), "no directory".into())),
        Proof::File(_) => std::fs::symlink_metadata(&**name).map(|found| (found.is_file(), "no file".into())),
        Proof::Length(_, bytes) => {
            std::fs::metadata(&**name).map(|found| (found.len() == *bytes, format!("{} B", found.len())))
        }
        Proof::Stretch(_, (from, to), hash) => regular::read(Path::new(&**name), 0, *to).map(|found| {
            let stretch = found.get(*from as usize..).unwrap_or_default();
            (fingerprint(stretch) == *hash, format!("other bytes from {from} to {to}"))
        }),
        Proof::Contents(_, hash) => regular::read(Path::new(&**name), 0, METADATA_BYTES_MAX)
            .map(|found| (fingerprint(&found) == *hash, format!("other contents, {} B", found.len()))),
    };
    match found {
        Ok((true, _)) => Ok(()),
        Ok((false, found)) => Err(differs(name, &expected, &found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(differs(name, &expected, &error.to_string()))
        }
        Err(error) => Err(Doing { verb: "reading", path: Path::new(&**name) }.failed("", &error)),
    }
}

fn differs(name: &str, expected: &str, found: &str) -> Fault {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let text = format!(
        "'{name}' on host '{host}' is not what rank 0 sees: expected {expected}, found {found}; the ranks do not share \
         this path, or somebody changed it meanwhile"
    );
    Fault::new(FaultKind::Storage, text)
        .hint("give a path on a file system that all nodes mount (not a node's own /tmp or /scratch)")
}
