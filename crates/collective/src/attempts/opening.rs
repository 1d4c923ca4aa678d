//! Openings: what an open store or file has hidden, its root and its owner, whichever way things become visible.

use super::home::{FoundBy, Home, Made, has_its_name};
use super::marker::Marker;
use super::owner::Owner;
use super::records::{INSIDE, OWNER, PARTS, UPDATES, shown};
use super::recover::{Whose, recover_first};
use hyperslab_world::{Claim, Fault, FaultKind, Hold, Lock, Locked, Names, Publishing, is_in_memory};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A failure, unless it says that a record is not believed, which is passed over then.
pub(super) fn unless_foreign(fault: Fault) -> Result<(), Fault> {
    if fault.kind == FaultKind::Foreign { Ok(()) } else { Err(fault) }
}

/// How often another owner may remove a directory in which this one makes something.
pub(super) const TURNS_MAX: usize = 100;

/// One opening of a store or file: its root, its owner, and what is noted of it.
pub struct Opening {
    /// Where it lies.
    pub home: Home,
    /// A number that no other opening has.
    pub opening: u64,
    /// Whether names are asked for on the caller's own thread.
    pub(super) at_once: bool,
    pub(super) durable: bool,
    /// The store, so that it is noticed if another one takes its place. On rank 0.
    pub(super) held: Mutex<Option<Hold>>,
    pub(super) state: Mutex<State>,
    /// Whether it was given up, perhaps while its root is being made.
    pub(super) lost: AtomicBool,
    /// Whether whoever opened it is done with it.
    over: AtomicBool,
    pub(super) last: AtomicU64,
    /// A child of this process has a copy of all this, and must not end what is its parent's.
    pub(super) process: u32,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) made: Option<Made>,
    /// The directory for what replaces something.
    pub(super) updates: Option<String>,
    /// Arrays that were updated in place, and whether readers may see a half of it.
    pub(super) updated: BTreeSet<(String, bool)>,
    /// Stands for this opening in markers, where nothing hidden was made.
    pub(super) token: Option<String>,
    /// The marker of a file, between two changes of it.
    pub(super) resting: Option<Marker>,
    /// What was replaced while it is not known that what replaced it is durable, and in which directory that is.
    pub(super) kept: Vec<(String, String)>,
    /// The lock of a new file that has its name, and that its owner goes on with.
    pub(super) shown: Option<Box<dyn Lock>>,
}

impl Opening {
    /// Of a store or file that was opened just now.
    pub(super) fn new(home: Home, opening: u64, at_once: bool, durable: bool, held: Option<Hold>) -> Opening {
        let home = held.iter().fold(home, |home, held| home.pinned(held));
        let process = home.names.process().pid;
        Opening {
            home,
            opening,
            at_once,
            durable,
            held: Mutex::new(held),
            state: Mutex::default(),
            lost: AtomicBool::new(false),
            over: AtomicBool::new(false),
            last: AtomicU64::new(0),
            process,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn names(&self) -> &dyn Names {
        &*self.home.names
    }

    /// Whether work with so many names is done on the caller's thread.
    pub fn at_once(&self, names: usize) -> bool {
        const NAMES_MAX: usize = 64;
        self.at_once && names <= NAMES_MAX
    }

    /// The same of work that makes names durable, and waits for a disk, which may take long: then a thread of its own costs
    /// little.
    pub fn at_once_durable(&self, names: usize) -> bool {
        let waits = self.durable && !is_in_memory(&self.names().full(""));
        self.at_once(names) && !waits
    }

    /// The root, which is made if it is not there.
    pub(super) fn root(&self) -> Result<String, Fault> {
        let mut state = self.state();
        if let Some(made) = &state.made {
            return Ok(made.path.clone());
        }
        let token = state.token.clone().unwrap_or_else(|| self.names().token());
        let made = self.make_root(&token)?;
        let path = made.path.clone();
        state.made = Some(made);
        drop(state);
        self.check_kept().map(|()| path)
    }

    /// Makes a root, locks what says who owns it, and lists it, where it is not found otherwise.
    fn make_root(&self, token: &str) -> Result<Made, Fault> {
        let make = |path: &str, line: &[u8]| match self.names().claim(&format!("{path}/{OWNER}"), line, false)? {
            Claim::New(lock) => Ok(lock),
            _ => Err(Fault::new(FaultKind::Exists, format!("'{path}' has another owner"))),
        };
        if let Publishing::Metadata(_) = self.names().publishing() {
            let (path, line) = (self.home.root(token), Owner::of(token, self.names()).line(&[]));
            return make(&path, &line).map(|lock| Made { path, found_by: FoundBy::Line(line), lock });
        }
        self.make(token, |path, line| match self.names().make_new_like(path, &self.home.base)? {
            true => make(path, line),
            false => Err(Fault::new(FaultKind::Exists, format!("another program made '{}'", self.names().full(path)))),
        })
    }

    /// Whoever opened it is done with it.
    pub fn is_done(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Whether this process has it open still, and has not given it up.
    pub fn is_at_work(&self) -> bool {
        let is_over = self.over.load(Ordering::SeqCst) || self.lost.load(Ordering::SeqCst);
        !is_over && self.process == self.names().process().pid
    }

    /// Lets go of what was made when nobody waited for it any more.
    ///
    /// # Errors
    /// When that is so.
    pub fn check_kept(&self) -> Result<(), Fault> {
        if !self.lost.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.let_go();
        let text = format!("writing to '{}' was given up meanwhile", self.home.shown());
        Err(Fault::new(FaultKind::Poisoned, text)
            .hint("open it again; on a fresh communicator, if a limit was reached"))
    }

    /// The hidden name of a new raw file, which is not there before [`Attempts::make_file`].
    pub fn file(&self) -> String {
        self.home.root(&self.token())
    }

    /// Makes a new raw file under its hidden name.
    pub fn make_file(&self, header: &[u8], bytes: u64) -> Result<(), Fault> {
        let token = self.token();
        let listed = |path: &str, _: &[u8]| {
            self.names().create_like(path, header, bytes, &self.home.base)?;
            match self.names().lock(path)? {
                Locked::Ours(lock) => Ok(lock),
                _ => Err(Fault::new(FaultKind::Exists, format!("'{path}' has another owner"))),
            }
        };
        let made = match self.make_first(&token, header, bytes)? {
            Some(made) => made,
            None => self.make(&token, listed)?,
        };
        self.state().made = Some(made);
        self.check_kept()
    }

    /// Makes a new file that needs no line in the list of owners, where a free lock says that its owner is dead: first under a name
    /// by which the next opening finds it, then also under the one that nobody else was ever given. `None` where somebody else
    /// has that first name, or files have one name each.
    fn make_first(&self, token: &str, header: &[u8], bytes: u64) -> Result<Option<Made>, Fault> {
        let (names, path, first) = (self.names(), self.home.root(token), self.home.first());
        // Only on a file system of this host does a free lock always say that its owner is dead.
        if !self.at_once || !names.has_links() || self.home.is_inside() || names.exists(&first) {
            return Ok(None);
        }
        let lock = match names.claim(&first, header, false) {
            Ok(Claim::New(lock)) => lock,
            Ok(Claim::Busy(_)) => return Ok(None),
            // Of one who died just now, or of this one, who could not see that he had made it; or of somebody who is not believed.
            other => {
                let failed = other.map(drop).or_else(unless_foreign);
                let _ = recover_first(&self.home, Whose::Dead);
                return if names.exists(&first) { Ok(None) } else { failed.map(|()| None) };
            }
        };
        let made = Made { path, found_by: FoundBy::FirstName, lock };
        let long = if bytes > header.len() as u64 { made.lock.cut(bytes) } else { Ok(()) };
        let linked = long.and_then(|()| Ok(made.lock.keeps_others_out() && names.link(&first, &made.path)?));
        // Where somebody removed the first name meanwhile, what was linked may be another's.
        let is_linked = matches!(linked, Ok(true));
        if is_linked && has_its_name(&*made.lock).unwrap_or(false) {
            return Ok(Some(made));
        }
        let unlinked = if is_linked { names.remove(&made.path) } else { Ok(()) };
        match (linked, self.home.forget(&made).and(unlinked)) {
            (Err(fault), Err(why)) => {
                Err(fault.also(format!("'{}' is left behind: {}", names.full(&first), why.text())))
            }
            (Err(fault), Ok(())) | (Ok(_), Err(fault)) => Err(fault),
            (Ok(_), Ok(())) => Ok(None),
        }
    }

    /// Gives a new raw file, as long as it is hidden, other first bytes.
    pub fn begin_file(&self, header: &[u8]) -> Result<(), Fault> {
        self.names().overwrite(&self.file(), header, false)
    }

    /// Gives a new raw file of so many bytes, as long as it is hidden, more of them.
    pub fn end_file(&self, length: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.names().resize(&self.file(), length + bytes.len() as u64)?;
        self.names().overwrite_part(&self.file(), length, bytes)
    }

    /// Makes a root and lists its owner, both while nobody else looks at the list: a root without its lock would be taken
    /// for that of a dead owner.
    pub(super) fn make(
        &self,
        token: &str,
        make: impl Fn(&str, &[u8]) -> Result<Box<dyn Lock>, Fault>,
    ) -> Result<Made, Fault> {
        let parts = self.names().parts().to_string();
        let (path, line) = (self.home.root(token), Owner::of(token, self.names()).line(&[(PARTS, &*parts)]));
        for turn in 1.. {
            if self.home.is_inside() {
                self.names().make_new_like(INSIDE, &self.home.base)?;
                self.names().check_believed(INSIDE)?;
            }
            let (mut made, mut listed_first) = (None, false);
            let mut list = |mut before: Vec<u8>| {
                before.extend(&line);
                before
            };
            // Listed first: of what is not listed nobody would ever know.
            let mut then = || {
                listed_first = true;
                made = Some(make(&path, &line)?);
                Ok(())
            };
            let listed = match self.names().edit(&self.home.owners(), &mut list, &mut then) {
                // Whoever is stopped while he has the list to himself keeps nobody from making something new.
                Err(fault) if fault.kind == FaultKind::Timeout => {
                    self.names().append(&self.home.owners(), &line).and_then(|()| then())
                }
                listed => listed,
            };
            match (listed, made) {
                (Ok(()), Some(lock)) => return Ok(Made { path, found_by: FoundBy::Line(line), lock }),
                // Somebody removed the empty directory for hidden things.
                (Err(_), _) if self.home.is_inside() && !self.names().exists(INSIDE) && turn < TURNS_MAX => {}
                (edited, _) => {
                    if self.names().check_believed(&path).is_ok() {
                        self.names().discard(&path);
                    }
                    let owners = || self.names().full(&self.home.owners());
                    // By its line, the next opening finds what stays.
                    let stays = listed_first && !self.names().is_absent(&path);
                    let struck = if stays { Ok(()) } else { self.home.strike(&line) };
                    edited.map_err(|fault| match struck {
                        Ok(()) if stays => fault.also(format!(
                            "'{}' may be left behind, named in '{}'",
                            self.names().full(&path),
                            owners()
                        )),
                        Ok(()) => fault,
                        // It could not even be made.
                        Err(_) if self.names().is_absent(&self.home.owners()) => fault,
                        Err(why) => fault.also(format!("'{}' is left behind: {}", owners(), why.text())),
                    })?;
                }
            }
        }
        unreachable!("the last turn returns")
    }

    /// A name in the root that never comes again; `what` and `of` tell people what lies there.
    pub fn next(&self, what: &str, of: &str) -> Result<String, Fault> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(format!("{}/{number}-{what}-{}", self.root()?, shown(of)))
    }

    /// A new directory that is to replace something, with its permissions.
    ///
    /// # Errors
    /// When the storage refuses.
    pub fn directory_like(&self, what: &str, of: &str, like: &str) -> Result<String, Fault> {
        let path = self.next(what, of)?;
        self.names().make_new_like(&path, like)?;
        self.names().take_mode(like, &path)?;
        Ok(path)
    }

    /// A new directory, to be published with what is in it.
    pub fn directory(&self, what: &str, of: &str) -> Result<String, Fault> {
        let path = self.next(what, of)?;
        self.names().make_new(&path)?;
        Ok(path)
    }

    /// The directory in which what replaces something is made, one for the life of the root: where somebody took it away,
    /// another one.
    pub fn updates(&self) -> Result<String, Fault> {
        let known = self.state().updates.clone();
        if let Some(known) = known.filter(|known| self.names().exists(known)) {
            return Ok(known);
        }
        let made = self.next(UPDATES, "")?;
        self.names().make_new_like(&made, &self.home.base)?;
        self.state().updates = Some(made.clone());
        Ok(made)
    }

    /// Whether a lock is kept on a file that was shown, which keeps out others who heed it.
    pub fn keeps_shown(&self) -> bool {
        self.state().shown.as_ref().is_some_and(|lock| lock.keeps_others_out())
    }

    /// Whether the store is still the one that was opened.
    ///
    /// # Errors
    /// When it is not, or nobody can look.
    pub fn check_still_there(&self) -> Result<(), Fault> {
        if self.is_still_there()? { Ok(()) } else { Err(self.replaced()) }
    }

    /// The same as an answer.
    ///
    /// # Errors
    /// When nobody can look.
    pub fn is_still_there(&self) -> Result<bool, Fault> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|held| held.identity);
        Ok(held.is_none() || self.names().identity(&self.home.base)? == held)
    }

    fn replaced(&self) -> Fault {
        let text = format!(
            "'{}' is not the one that was opened any more: it was renamed, replaced or removed meanwhile",
            self.home.shown()
        );
        // To repeat the call would not help.
        Fault::new(FaultKind::Storage, text).hint("look at what is there now, and open it again")
    }

    /// What failed in a store that is not there any more failed for that.
    pub fn unless_replaced(&self, fault: Fault) -> Fault {
        if matches!(self.is_still_there(), Ok(false)) { self.replaced() } else { fault }
    }

    /// The token of this opening.
    pub(super) fn token(&self) -> String {
        let mut state = self.state();
        let of_root = state.made.as_ref().and_then(|made| made.path.strip_prefix(&self.home.prefix)).map(String::from);
        of_root.unwrap_or_else(|| state.token.get_or_insert_with(|| self.names().token()).clone())
    }

    /// Makes durable by what the next opening finds this root: the list, the root's name and what its owner noted.
    pub(super) fn secure(&self) -> Result<(), Fault> {
        let root = self.state().made.as_ref().map(|made| made.path.clone());
        let Some(root) = root.filter(|_| self.durable) else { return Ok(()) };
        self.names().sync_files(&[self.home.owners(), format!("{root}/{OWNER}")])?;
        self.names().sync(&root)?;
        self.names().sync(root.rsplit_once('/').map_or("", |(above, _)| above))
    }

    /// Makes the name of what was published durable.
    ///
    /// # Errors
    /// When that cannot be known, though it is visible.
    pub fn sync_published(&self, above: &str, published: &str) -> Result<(), Fault> {
        self.names().sync(above).map_err(|fault| {
            let published = self.names().full(published);
            let what = format!(
                "'{published}' is published, whole and visible, but it is not known whether it survives a loss of power"
            );
            fault
                .as_kind(FaultKind::Unsynced)
                .context(what)
                .about(published)
                .hint("look at the disk; do not write it again under the same name")
        })
    }

    /// The same of all of these names, once for each directory.
    pub(super) fn sync_all_published<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<(), Fault> {
        let above = |name: &'a str| name.rsplit_once('/').map_or("", |(above, _)| above);
        let directories: BTreeMap<&str, &str> = names.map(|name| (above(name), name)).collect();
        directories.iter().try_for_each(|(above, published)| self.sync_published(above, published))
    }

    /// Puts things out of sight, in this order, and removes them when it is durable that nothing leads there: after a loss of
    /// power some of one would be gone, and its name there.
    ///
    /// # Errors
    /// When one is there still.
    pub(super) fn put_out_of_sight(&self, names: &[&String]) -> Result<(), Fault> {
        let mut hidden = Vec::with_capacity(names.len());
        for name in names {
            let erased = self.next("erased", name)?;
            self.names().rename(name, &erased)?;
            hidden.push(erased);
        }
        if self.durable {
            self.sync_all_published(names.iter().map(|name| name.as_str()))?;
        }
        hidden.iter().try_for_each(|erased| self.names().remove(erased))
    }

    /// All is published, but something hidden could not be removed.
    pub fn left_behind(&self, name: &str, why: Fault) -> Fault {
        let (shown, name) = (self.home.shown(), self.names().full(name));
        // Where there is such a list.
        let listed = Some(self.home.owners()).filter(|owners| self.names().exists(owners));
        let named = listed.map_or(String::new(), |owners| format!(", named in '{}'", self.names().full(&owners)));
        let what = format!("'{shown}' is as it should be, but '{name}' is left behind{named}");
        why.as_kind(FaultKind::Unsynced)
            .context(what)
            .about(name)
            .hint(format!("'hyperslab clean {shown}' removes it, or the next opening to write"))
    }

    /// Gives up the root with all in it, after a failure of which nobody knows who still writes: its lock is free from now
    /// on, and the next opening removes it.
    pub fn let_go(&self) {
        self.lost.store(true, Ordering::SeqCst);
        // Who is at work with it, and perhaps hangs, does so when he is done.
        if let Ok(mut state) = self.state.try_lock() {
            state.made = None;
            state.shown = None;
            state.updates = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attempts;
    use super::*;
    use hyperslab_world::{MemoryTree, TreeDeed, Witness};
    use std::sync::Arc;

    /// One who makes what is about to be made, and whom nobody believes.
    struct Faster(MemoryTree);

    impl Witness for Faster {
        fn before(&self, deed: TreeDeed) -> Result<(), Fault> {
            let is_root = deed.name.starts_with(".a.zarr.hyperslab-") && !deed.name.contains('/');
            let owner = format!("{}/owner", deed.name);
            if deed.verb == "making directory" && is_root {
                self.0.make(deed.name)?;
                self.0.write(&owner, b"his", false)?;
            }
            match deed.verb == "believing" && is_root && self.0.exists(&owner) {
                true => Err(Fault::new(FaultKind::Foreign, "it is his")),
                false => Ok(()),
            }
        }
    }

    #[test]
    fn a_root_that_somebody_else_was_faster_to_make_is_not_used_and_stays() {
        let tree = MemoryTree::new();
        tree.make("a.zarr").unwrap();
        let seen = tree.watched(Arc::new(Faster(tree.clone())));
        let attempts = Attempts::new(Home::beside(seen.at(&seen.full("")), "a.zarr"), 1, true, false, None);
        let fault = attempts.directory("step", "s").unwrap_err();
        assert_eq!(fault.kind, FaultKind::Exists, "{fault}");
        let files: Vec<_> = tree.files().into_iter().filter(|file| file.0.ends_with("/owner")).collect();
        assert!(files.len() == 1 && files[0].1 == b"his", "{files:?}");
    }
}
