//! Attempts: what is written and not yet published.
//!
//! All that an open store or file writes lies in one hidden root until it is published. The root has a random token in its
//! name, is made on rank 0 when something is first written, and goes away when the store is closed. Attempts are names in
//! it that never come again, so nobody ever writes into another one's: not a second program, not the other half of a job,
//! not a rank that was stopped and comes back after its attempt was given up.
//!
//! ```text
//! run.zarr/                             the store
//! .run.zarr.hyperslab-owners            a line of JSON for each root beside it: token, host, process
//! .run.zarr.hyperslab-TOKEN/            a root
//!     owner                             locked by the owner while he lives; the arrays that he updates in place
//!     1-step-0001/ 2-array-rho/         attempts; of what replaces an array, the name tells which: 2-array.INODE-rho
//!     3-updates/                        chunks that are to replace others
//!     4-several/rho, p                  new arrays of one call, made by the ranks that handle storage
//!     5-publish                         what one call publishes by several renames, until all are done
//! ```
//!
//! Where nothing can be made beside a store, all this lies below `.hyperslab` in it. A raw file is its own root.
//!
//! That is the way of places that can rename (`renaming.rs`). In an object store (`putting.rs`) only metadata are hidden:
//! chunks lie under their final keys, each put if absent and told by the attempt that it carries, and metadata take their
//! keys last. Targets do not ask which way it is (`way.rs`).
//!
//! Where there is no room for a root, things can still be removed (`removing.rs`).

mod clean;
mod home;
mod journal;
mod marker;
mod marks;
mod opening;
mod owner;
mod publish;
mod putting;
mod records;
mod recover;
mod removing;
mod renaming;
mod touched;
mod way;

pub use clean::Cleaned;
use clean::homes_of;
pub use home::Home;
use hyperslab_world::{Fault, FaultKind, Hold, Names, Proof, Publishing, Root};
pub use journal::Entry;
pub use marker::Marker;
pub use marks::{Change, Replacing, gone};
pub use opening::Opening;
use opening::TURNS_MAX;
pub use owner::is_token;
pub use publish::ReplacedFile;
use putting::ByMetadata;
use records::SEVERAL;
pub use records::{ARRAY, INSIDE, MARKER, STEP};
pub use recover::{Found, Whose, complete, drop_idle_marker, ended_by_others, was_left_torn};
pub use removing::Removed;
use renaming::ByRename;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
pub use touched::TouchedParts;
pub use way::{Growing, New};
use way::{PublishWay, Small};

/// The way of the place with these names.
fn way_of(names: &dyn Names) -> Arc<dyn PublishWay> {
    match names.publishing() {
        Publishing::Rename => Arc::new(ByRename),
        Publishing::Metadata(bucket) => Arc::new(ByMetadata::new(bucket)),
    }
}

/// What other owners left beside or in a store or file. That of `whose` is rolled forward or removed.
///
/// # Errors
/// When the storage refuses.
pub fn recover(home: &Home, whose: Whose) -> Result<Found, Fault> {
    way_of(&*home.names).recover(home, whose)
}

/// Removes what is hidden beside or in a store or file, but for what owners have who certainly live; or only says what
/// would be removed. Updates in place that did not end stay named, but nobody owns them any more.
///
/// # Errors
/// When there is nothing at the path, or the storage refuses.
pub fn clean(names: &dyn Names, dry_run: bool) -> Result<Vec<Cleaned>, Fault> {
    let mut cleaned = Vec::new();
    for home in homes_of(names)? {
        way_of(&*home.names).clean(&home, dry_run, &mut cleaned)?;
    }
    Ok(cleaned)
}

/// What an open store or file writes and has not yet published.
pub struct Attempts {
    inner: Opening,
    way: Arc<dyn PublishWay>,
}

impl Deref for Attempts {
    type Target = Opening;

    fn deref(&self) -> &Opening {
        &self.inner
    }
}

impl Attempts {
    /// For a store or file that was opened just now.
    pub fn new(home: Home, opening: u64, at_once: bool, durable: bool, held: Option<Hold>) -> Attempts {
        let way = way_of(&*home.names);
        Attempts { inner: Opening::new(home, opening, at_once, durable, held), way }
    }

    /// The same for the store that is held from now on.
    pub fn holding(mut self, held: Hold) -> Attempts {
        self.inner.home = self.inner.home.clone().pinned(&held);
        self.inner.held = Mutex::new(Some(held));
        self
    }

    /// Begins something new; gives the hidden name below which its metadata lie until it is published.
    ///
    /// # Errors
    /// When somebody else makes the same, in a place where that cannot be done beside each other.
    pub fn begin(&self, new: &New) -> Result<String, Fault> {
        self.way.begin(self, new)
    }

    /// Begins several new things of a group, of which each is a directory in the one that is given: it is made by whoever
    /// writes in it first. `None` where they must be begun one by one.
    ///
    /// # Errors
    /// When the storage refuses.
    pub fn begin_several(&self, group: &str) -> Result<Option<String>, Fault> {
        match self.names().publishing() {
            Publishing::Rename => self.directory(SEVERAL, group).map(Some),
            Publishing::Metadata(_) => Ok(None),
        }
    }

    /// Makes room for something new in what was begun and is hidden.
    ///
    /// # Errors
    /// When the storage refuses.
    pub fn renew(&self, hidden: &str) -> Result<(), Fault> {
        self.way.renew(self, hidden)
    }

    /// Whether something visible has this name; `key` is what lies in it, its metadata.
    ///
    /// # Errors
    /// When the storage does not tell.
    pub fn is_taken(&self, name: &str, key: &str) -> Result<bool, Fault> {
        self.way.is_taken(self, name, key)
    }

    /// Removes what was begun and never published, as far as that goes.
    pub fn discard(&self, hidden: &str) {
        self.way.discard(self, hidden);
    }

    /// Where the objects lie of what has this name, hidden or visible: what a rank that handles storage is told.
    pub fn ground(&self, name: &str) -> Root {
        self.way.ground(self, name)
    }

    /// Where objects lie that are replaced one by one, in a directory that exists.
    pub fn ground_in_place(&self, directory: &str, proof: Proof, via: &str) -> Root {
        let root = self.state().made.as_ref().map(|made| Proof::Directory(self.names().full(&made.path).into()));
        let via = Some(self.names().full(via).into());
        Root { via, proofs: root.into_iter().chain([proof]).collect(), ..self.ground(directory) }
    }

    /// Keeps others from changing something that is made longer, until the marker is dropped.
    ///
    /// # Errors
    /// When somebody else changes it, or nobody can know whether he lives.
    pub fn begin_growing(&self, growing: &Growing) -> Result<Marker, Fault> {
        self.while_there(self.way.begin_growing(self, growing))
    }

    /// Removes what earlier attempts to make something longer left of which readers see nothing: names in it that `is_seen`
    /// does not know.
    ///
    /// # Errors
    /// When the storage refuses.
    pub fn sweep(&self, name: &str, is_seen: &dyn Fn(&str) -> bool) -> Result<(), Fault> {
        self.way.sweep(self, name, is_seen)
    }

    /// Makes sure that units can be changed that readers may see of what has this name, or nobody sees it yet.
    ///
    /// # Errors
    /// When the place cannot do that so that each unit is old or new, and those who come late change nothing.
    pub fn check_changes(&self, name: &str, doing: &str) -> Result<(), Fault> {
        if self.way.changes_units(self, name) {
            return Ok(());
        }
        let text = format!("'{}' {doing}, which an object store cannot do", self.names().full(name));
        Err(Fault::new(FaultKind::Unsupported, text).hint(
            "there, new arrays and steps can be written, parts of what a step holds before it is published, and whole \
             chunks appended; write a new array or step, or give a path in a file system",
        ))
    }

    /// Takes things of the store out of sight, metadata first, and removes them.
    ///
    /// # Errors
    /// When the storage refuses.
    pub fn erase(&self, names: &[String], key: &str) -> Result<(), Fault> {
        self.while_there(self.way.erase(self, names, key))
    }

    /// What a small file is told by that readers see, so that it is replaced only as it was seen; `marked` says that a marker
    /// of ours keeps others from changing it.
    ///
    /// # Errors
    /// When the storage does not tell.
    pub fn seen(&self, name: &str, marked: bool) -> Result<String, Fault> {
        self.way.seen(self, name, marked)
    }

    /// Does again what relied on something that somebody else changed meanwhile, in the store that was opened.
    ///
    /// # Errors
    /// Those of what is done.
    pub fn until_up_to_date<T>(&self, mut run: impl FnMut() -> Result<T, Fault>) -> Result<T, Fault> {
        for _ in 1..TURNS_MAX {
            match run() {
                Err(fault) if fault.kind == FaultKind::Outdated => self.check_still_there()?,
                done => return done,
            }
        }
        run()
    }

    /// Replaces a small file that readers see and that was [seen](Attempts::seen) like this, if that holds when all is ready;
    /// its name is not yet durable then.
    ///
    /// # Errors
    /// When it has changed since, or the storage refuses.
    pub fn replace_if(
        &self,
        (name, seen): (&str, &str),
        bytes: &[u8],
        sync: bool,
        holds: impl FnOnce() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut holds = Some(holds);
        let mut holds = || holds.take().map_or(Ok(()), |holds| holds());
        self.while_there(self.way.replace(self, &Small { name, bytes, sync, seen }, &mut holds))
    }

    /// Replaces several small files that readers see and that were [seen](Attempts::seen), all or none: names, what they were
    /// seen as, and what they become. Nobody else may change them meanwhile.
    ///
    /// # Errors
    /// When the place cannot do that, or the storage refuses; then all are as they were.
    pub fn replace_all(
        &self,
        changes: &[(String, String, Vec<u8>)],
        sync: bool,
        holds: impl Fn() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if let [(name, seen, bytes)] = changes {
            return self.replace_if((name, seen), bytes, sync, holds);
        }
        let small: Vec<Small> = changes.iter().map(|(name, seen, bytes)| Small { name, bytes, sync, seen }).collect();
        self.while_there(self.way.replace_all(self, &small, &mut || holds()))
    }

    /// Replaces metadata of the store's that are there, by a change to their bytes; `None` leaves them.
    pub fn amend(&self, name: &str, change: impl Fn(&[u8]) -> Result<Option<Vec<u8>>, Fault>) -> Result<(), Fault> {
        let amended = self.until_up_to_date(|| {
            let seen = self.seen(name, false)?;
            let Some(bytes) = self.names().read(name)? else { return Ok(false) };
            let Some(changed) = change(&bytes)? else { return Ok(false) };
            self.replace_if((name, &seen), &changed, self.durable, || self.check_still_there()).map(|()| true)
        })?;
        if !amended {
            return Ok(());
        }
        let above = name.rsplit_once('/').map_or("", |(above, _)| above);
        if self.durable { self.names().sync(above) } else { Ok(()) }
    }

    /// Makes attempts visible, one after another. When one cannot be, those before it are taken back. After a death in
    /// between, the next opening makes the others visible too.
    ///
    /// # Errors
    /// When one cannot be.
    pub fn publish(&self, entries: &[Entry]) -> Result<(), Fault> {
        self.check_still_there()?;
        self.while_there(self.way.publish(self, entries))
    }

    /// What failed in a store that is not there any more failed for that.
    ///
    /// # Errors
    /// That, or what failed.
    pub fn while_there<T>(&self, done: Result<T, Fault>) -> Result<T, Fault> {
        done.map_err(|fault| match fault.kind {
            FaultKind::Unsynced => fault,
            _ => self.unless_replaced(fault),
        })
    }

    /// Ends the root and all that was not published.
    ///
    /// # Errors
    /// When something stays that was replaced, since it is not known that what replaced it is durable.
    pub fn end(&self) -> Result<(), Fault> {
        if self.lost.load(Ordering::SeqCst) {
            return Ok(());
        }
        if self.process != self.names().process().pid {
            return Ok(());
        }
        let rested = self.end_rest();
        let (made, kept) = {
            let mut state = self.state();
            state.updates = None;
            state.shown = None;
            (state.made.take(), std::mem::take(&mut state.kept))
        };
        let Some(made) = made else { return rested };
        let above: BTreeSet<String> = kept.into_iter().map(|(above, _)| above).collect();
        if above.iter().any(|above| self.names().sync(above).is_err()) {
            let text = format!(
                "what was replaced in '{}' is kept in '{}', since it is not known that what replaced it is durable",
                self.home.shown(),
                self.names().full(&made.path)
            );
            return Err(Fault::new(FaultKind::Unsynced, text)
                .hint("look at the disk; the next opening for writing removes what was kept"));
        }
        self.way.end_root(self, made).and(rested)
    }
}

impl Drop for Attempts {
    /// A store that nobody closed leaves nothing behind, where that waits for nothing far away.
    fn drop(&mut self) {
        if self.inner.at_once {
            let _ = self.end();
        }
    }
}
