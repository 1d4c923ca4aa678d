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
//!     4-publish                         what one call publishes by several renames, until all are done
//! ```
//!
//! Where nothing can be made beside a store, all this lies below `.hyperslab` in it. A raw file is its own root.
//!
//! That is the way of places that can rename (`renaming.rs`). In an object store (`putting.rs`) only metadata are hidden:
//! chunks lie under their final keys, each put if absent and told by the attempt that it carries, and metadata take their
//! keys last. Targets do not ask which way it is (`way.rs`).

mod clean;
mod home;
mod journal;
mod marks;
mod owner;
mod publish;
mod putting;
mod records;
mod recover;
mod renaming;
mod way;

pub use clean::{Cleaned, clean};
pub use home::Home;
use hyperslab_world::{Fault, FaultKind, Hold, Lock, Locked, Names, Proof, Root, is_in_memory};
pub use journal::Entry;
pub use marks::{Change, Marker};
use owner::Owner;
pub use owner::is_token;
pub use records::{ARRAY, INSIDE, MARKER, STEP, is_torn};
use records::{OWNER, PARTS, UPDATES, shown};
pub use recover::{Found, Whose, complete, drop_idle_marker, recover};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub use way::{Growing, New};
use way::{Small, Way, way_of};

/// How often another owner may remove a directory in which this one makes something.
const TURNS_MAX: usize = 100;

/// What an open store or file writes and has not yet published.
pub struct Attempts {
    /// Where it lies.
    pub home: Home,
    /// A number that no other opening has.
    pub opening: u64,
    /// Whether names are asked for on the caller's own thread.
    at_once: bool,
    durable: bool,
    /// The store, so that it is noticed if another one takes its place. On rank 0.
    held: Option<Hold>,
    state: Mutex<State>,
    /// Whether it was given up, perhaps while its root is being made.
    lost: AtomicBool,
    last: AtomicU64,
    way: Arc<dyn Way>,
    /// A child of this process has a copy of all this, and must not end what is its parent's.
    process: u32,
}

#[derive(Default)]
struct State {
    made: Option<Made>,
    /// The directory for what replaces something.
    updates: Option<String>,
    /// Arrays that were updated in place, and whether readers may see a half of it.
    updated: BTreeSet<(String, bool)>,
    /// Stands for this opening in markers, where nothing hidden was made.
    token: Option<String>,
    /// What was replaced while it is not known that what replaced it is durable, and in which directory that is.
    kept: Vec<(String, String)>,
}

struct Made {
    path: String,
    line: Vec<u8>,
    /// Tells others that the owner lives.
    lock: Box<dyn Lock>,
}

impl Attempts {
    /// For a store or file that was opened just now.
    pub fn new(home: Home, opening: u64, at_once: bool, durable: bool, held: Option<Hold>) -> Attempts {
        let (process, way) = (home.names.process().pid, way_of(&*home.names));
        Attempts {
            home,
            opening,
            at_once,
            durable,
            held,
            state: Mutex::default(),
            lost: AtomicBool::new(false),
            last: AtomicU64::new(0),
            way,
            process,
        }
    }

    /// The same for the store that is held from now on.
    pub fn holding(mut self, held: Hold) -> Attempts {
        self.held = Some(held);
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> &dyn Names {
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
    fn root(&self) -> Result<String, Fault> {
        let mut state = self.state();
        if let Some(made) = &state.made {
            return Ok(made.path.clone());
        }
        let token = state.token.clone().unwrap_or_else(|| self.names().token());
        let made = self.way.make_root(self, &token)?;
        let path = made.path.clone();
        state.made = Some(made);
        drop(state);
        self.check_kept().map(|()| path)
    }

    /// Lets go of what was made when nobody waited for it any more.
    ///
    /// # Errors
    /// When that is so.
    fn check_kept(&self) -> Result<(), Fault> {
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
        let made = self.make(&token, |path, _| {
            self.names().create(path, header, bytes)?;
            match self.names().lock(path)? {
                Locked::Ours(lock) => Ok(lock),
                _ => Err(Fault::new(FaultKind::Exists, format!("'{path}' has another owner"))),
            }
        })?;
        self.state().made = Some(made);
        self.check_kept()
    }

    /// Gives a new raw file, as long as it is hidden, other first bytes.
    pub fn begin_file(&self, header: &[u8]) -> Result<(), Fault> {
        self.names().overwrite(&self.file(), header, false)
    }

    /// Makes a root and lists its owner, both while nobody else looks at the list: a root without its lock would be taken
    /// for that of a dead owner.
    fn make(&self, token: &str, make: impl Fn(&str, &[u8]) -> Result<Box<dyn Lock>, Fault>) -> Result<Made, Fault> {
        let parts = self.names().parts().to_string();
        let (path, line) = (self.home.root(token), Owner::of(token, self.names()).line(&[(PARTS, &*parts)]));
        for turn in 1.. {
            if self.home.is_inside() {
                self.names().make_new(INSIDE)?;
            }
            let mut made = None;
            let mut list = |mut before: Vec<u8>| {
                before.extend(&line);
                before
            };
            // Listed first: of what is not listed nobody would ever know.
            let mut then = || {
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
                (Ok(()), Some(lock)) => return Ok(Made { path, line, lock }),
                // Somebody removed the empty directory for hidden things.
                (Err(_), _) if self.home.is_inside() && !self.names().exists(INSIDE) && turn < TURNS_MAX => {}
                (edited, _) => {
                    self.names().discard(&path);
                    let _ = self.home.strike(&line);
                    edited?;
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

    /// A new directory, to be published with what is in it.
    pub fn directory(&self, what: &str, of: &str) -> Result<String, Fault> {
        let path = self.next(what, of)?;
        self.names().make_new(&path)?;
        Ok(path)
    }

    /// Begins something new; gives the hidden name below which its metadata lie until it is published.
    ///
    /// # Errors
    /// When somebody else makes the same, in a place where that cannot be done beside each other.
    pub fn begin(&self, new: &New) -> Result<String, Fault> {
        self.way.begin(self, new)
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

    /// The directory in which what replaces something is made, one for the life of the root: where somebody took it away,
    /// another one.
    pub fn updates(&self) -> Result<String, Fault> {
        let known = self.state().updates.clone();
        if let Some(known) = known.filter(|known| self.names().exists(known)) {
            return Ok(known);
        }
        let made = self.directory(UPDATES, "")?;
        self.state().updates = Some(made.clone());
        Ok(made)
    }

    /// Whether the store is still the one that was opened.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_still_there(&self) -> Result<(), Fault> {
        let Some(held) = &self.held else { return Ok(()) };
        if self.names().identity(&self.home.base).is_ok_and(|found| found == held.identity) {
            return Ok(());
        }
        let text = format!(
            "'{}' is not the one that was opened any more: it was renamed, replaced or removed meanwhile",
            self.home.shown()
        );
        Err(Fault::new(FaultKind::Storage, text).hint("look at what is there now, and open it again"))
    }

    /// The token of this opening.
    fn token(&self) -> String {
        let mut state = self.state();
        let of_root = state.made.as_ref().and_then(|made| made.path.strip_prefix(&self.home.prefix)).map(String::from);
        of_root.unwrap_or_else(|| state.token.get_or_insert_with(|| self.names().token()).clone())
    }

    /// Makes durable by what the next opening finds this root: the list, the root's name and what its owner noted.
    fn secure(&self) -> Result<(), Fault> {
        let root = self.state().made.as_ref().map(|made| made.path.clone());
        let Some(root) = root.filter(|_| self.durable) else { return Ok(()) };
        self.names().sync_files(&[self.home.owners(), format!("{root}/{OWNER}")])?;
        self.names().sync(&root)?;
        self.names().sync(root.rsplit_once('/').map_or("", |(above, _)| above))
    }

    /// Keeps others from changing something that is made longer, until the marker is dropped.
    ///
    /// # Errors
    /// When somebody else changes it, or nobody can know whether he lives.
    pub fn begin_growing(&self, growing: &Growing) -> Result<Marker, Fault> {
        self.way.begin_growing(self, growing)
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
        self.way.erase(self, names, key)
    }

    /// What a small file is told by that readers see, so that it is replaced only as it was seen.
    ///
    /// # Errors
    /// When the storage does not tell.
    pub fn seen(&self, name: &str) -> Result<String, Fault> {
        self.way.seen(self, name)
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
        self.way.replace(self, &Small { name, bytes, sync, seen }, &mut holds)
    }

    /// Replaces metadata of the store's that are there, by a change to their bytes; `None` leaves them.
    pub fn amend(&self, name: &str, change: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, Fault>) -> Result<(), Fault> {
        let seen = self.seen(name)?;
        let Some(bytes) = self.names().read(name)? else { return Ok(()) };
        let Some(changed) = change(&bytes)? else { return Ok(()) };
        self.replace_if((name, &seen), &changed, self.durable, || self.check_still_there())?;
        let above = name.rsplit_once('/').map_or("", |(above, _)| above);
        if self.durable { self.names().sync(above) } else { Ok(()) }
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

    /// Publishes a raw file: its hidden name is gone then, and so is its owner. What it replaces, if anything, nobody changes
    /// in place at this moment, who would have a marker of this name.
    pub fn publish_file(&self, replaces: bool, marker: &str) -> Result<(), Fault> {
        let (from, to) = (self.file(), self.home.base.clone());
        if self.durable {
            // Ranks sync what they write, and may have written nothing.
            self.names().sync_files(std::slice::from_ref(&from))?;
        }
        let taken = || {
            let text = format!("'{}' exists already: somebody else made it meanwhile", self.names().full(&to));
            Fault::new(FaultKind::Exists, text).hint("mode w replaces it")
        };
        let exists = replaces && self.names().exists(&to);
        let mut marked = None;
        let published = match exists {
            false => match self.names().rename_new(&from, &to) {
                Ok(false) if replaces => self.replace_file(&from, &to, marker).map(|marker| marked = marker),
                Ok(false) => Err(taken()),
                renamed => renamed.map(drop),
            },
            true => self.replace_file(&from, &to, marker).map(|marker| marked = marker),
        };
        // Of a file with parts in several directories, the first decides, and the others may have failed.
        self.unless_half(published).map_err(|fault| match fault.kind {
            FaultKind::Unsynced => {
                let owners = self.names().full(&self.home.owners());
                fault.also(format!("what is left to do is named in '{owners}'"))
            }
            _ => fault,
        })?;
        let synced = if self.durable { self.sync_published("", &to) } else { Ok(()) };
        // An update that did not end is replaced, too.
        let unmarked = marked.map_or(Ok(()), |marker| {
            let name = self.names().full(&marker.name);
            self.unmark(marker, false).map_err(|fault| {
                let what = format!("'{}' is published, but the marker of its update may stay", self.names().full(&to));
                let fault = fault.as_kind(FaultKind::Unsynced).context(what).about(&*name);
                fault.hint(format!("remove '{name}' if it is there and nobody changes the file"))
            })
        });
        let made = self.state().made.take();
        let struck = made.map_or(Ok(()), |made| self.home.strike(&made.line));
        synced.and(unmarked).and(struck.map_err(|fault| self.left_behind(&self.home.owners(), fault)))
    }

    /// Renames a file over another one, which nobody changes in place meanwhile. Gives its marker.
    fn replace_file(&self, from: &str, to: &str, marker: &str) -> Result<Option<Marker>, Fault> {
        let marked = self.mark_replaced(marker, to, false)?;
        if let Err(fault) = self.names().rename(from, to) {
            marked.into_iter().for_each(|marker| self.withdraw(marker));
            return Err(fault);
        }
        Ok(marked)
    }

    /// All is published, but something hidden could not be removed.
    pub fn left_behind(&self, name: &str, why: Fault) -> Fault {
        let (shown, name) = (self.home.shown(), self.names().full(name));
        let owners = self.names().full(&self.home.owners());
        let what = format!("'{shown}' is as it should be, but '{name}' is left behind, named in '{owners}'");
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
            state.updates = None;
        }
    }

    /// Ends the root and all that was not published.
    ///
    /// # Errors
    /// When something stays that was replaced, since it is not known that what replaced it is durable.
    pub fn end(&self) -> Result<(), Fault> {
        if self.lost.load(Ordering::SeqCst) {
            return Ok(());
        }
        let (made, kept) = {
            let mut state = self.state();
            state.updates = None;
            (state.made.take(), std::mem::take(&mut state.kept))
        };
        let Some(made) = made.filter(|_| self.process == self.names().process().pid) else { return Ok(()) };
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
        self.way.end_root(self, made)
    }
}

impl Drop for Attempts {
    /// A store that nobody closed leaves nothing behind, where that waits for nothing far away.
    fn drop(&mut self) {
        if self.at_once {
            let _ = self.end();
        }
    }
}
