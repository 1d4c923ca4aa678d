//! Homes: where the hidden things of a store or file lie, and the list of their owners.

use super::owner::{Owner, is_token, lines};
use super::records::{FIRST, INSIDE, parts_of, unfinished_line};
use hyperslab_world::{Fault, FaultKind, Hold, Lock, Names, Then};
use std::sync::Arc;

/// Where the hidden things of a store or file lie.
#[derive(Clone)]
pub struct Home {
    /// Names in the directory in which the store or file lies, or in the store itself.
    pub names: Arc<dyn Names>,
    /// The store or file there: its name, or nothing for the store itself.
    pub base: String,
    /// What the names of hidden things begin with.
    pub(super) prefix: String,
    /// The directory in which they lie, if it is held.
    above: Option<(u64, u64)>,
}

/// A root, or a new file, that an owner has made.
pub(super) struct Made {
    pub(super) path: String,
    pub(super) found_by: FoundBy,
    /// Tells others that the owner lives.
    pub(super) lock: Box<dyn Lock>,
}

/// By what the next opening finds a root whose owner died.
pub(super) enum FoundBy {
    /// This line in the list of owners.
    Line(Vec<u8>),
    /// Of a file, the first of its two names, which is that of no other.
    FirstName,
}

impl Home {
    /// The same, where what is changed in the store is changed in the one that is held, also when another one has taken its
    /// place.
    pub(super) fn pinned(self, held: &Hold) -> Home {
        let pinned = self.names.pinned(&self.base, held);
        Home { names: pinned.unwrap_or(self.names), ..self }
    }

    /// Beside something of this name.
    pub fn beside(names: Arc<dyn Names>, name: &str) -> Home {
        Home { names: believing(names, name), base: name.into(), prefix: format!(".{name}.hyperslab-"), above: None }
    }

    /// Inside of a store.
    pub fn inside(names: Arc<dyn Names>) -> Home {
        Home { names: believing(names, ""), base: String::new(), prefix: format!("{INSIDE}/"), above: None }
    }

    /// Whether nobody else has taken the name of the list of owners, who may not change the store.
    pub fn can_list(&self) -> bool {
        self.names.check_believed(&self.owners()).is_ok()
    }

    /// The same, where what lies beside is made in the directory that is held, whatever becomes of its name.
    #[must_use]
    pub fn within(self, held: &Hold) -> Home {
        match self.names.pinned("", held) {
            Some(names) => Home { names, above: Some(held.identity), ..self },
            None => self,
        }
    }

    /// Whether the directory that is held has its name still.
    pub(super) fn check_above(&self) -> Result<(), Fault> {
        let Some(above) = self.above else { return Ok(()) };
        if self.names.identity("")? == Some(above) {
            return Ok(());
        }
        let text = format!("the directory '{}' was renamed, replaced or removed meanwhile", self.names.full(""));
        Err(Fault::new(FaultKind::Storage, text).hint("look at what is there now, and write it again"))
    }

    /// Where owners are listed.
    pub(super) fn owners(&self) -> String {
        format!("{}owners", self.prefix)
    }

    pub(super) fn root(&self, token: &str) -> String {
        format!("{}{token}", self.prefix)
    }

    /// Where a root goes before it is removed.
    pub(super) fn gone(&self, token: &str) -> String {
        format!("{}gone-{token}", self.prefix)
    }

    pub(super) fn is_inside(&self) -> bool {
        self.prefix.ends_with('/')
    }

    /// The name of something in the store.
    pub fn name(&self, below: &str) -> String {
        match (self.base.is_empty(), below.is_empty()) {
            (true, _) => below.into(),
            (_, true) => self.base.clone(),
            _ => format!("{}/{below}", self.base),
        }
    }

    /// Path of the store or file, for people.
    pub fn shown(&self) -> String {
        self.names.full(&self.base)
    }

    /// The first name of a new file.
    pub(super) fn first(&self) -> String {
        format!("{}{FIRST}", self.prefix)
    }

    /// Where that lies by which a root is found.
    pub(super) fn finder(&self, found_by: &FoundBy) -> String {
        match found_by {
            FoundBy::Line(_) => self.owners(),
            FoundBy::FirstName => self.first(),
        }
    }

    /// Takes away by what a root was found, which is gone.
    pub(super) fn forget(&self, made: &Made) -> Result<(), Fault> {
        match &made.found_by {
            FoundBy::Line(line) => self.strike(line),
            FoundBy::FirstName if self.has_first(made)? => {
                let remove = || self.names.remove(&self.first());
                remove().or_else(|_| remove())
            }
            FoundBy::FirstName => Ok(()),
        }
    }

    /// Whether a new file has its first name still. Where somebody removed that, it may be another's by now. In a directory that
    /// has its path no more, nobody has looked for it.
    pub(super) fn has_first(&self, made: &Made) -> Result<bool, Fault> {
        let is_first = matches!(made.found_by, FoundBy::FirstName);
        Ok(is_first && (has_its_name(&*made.lock)? || self.check_above().is_err()))
    }

    /// All hidden names of the file that has the first name, that name last.
    pub(super) fn names_with_first(&self) -> Result<Vec<String>, Fault> {
        let (names, first) = (&*self.names, self.first());
        let gone = || Fault::new(FaultKind::Outdated, format!("'{}' is gone", names.full(&first)));
        let identity = names.identity(&first)?.ok_or_else(gone)?;
        let is_hidden = |name: &String| {
            let token = name.strip_prefix(&*self.prefix);
            token.is_some_and(|token| is_token(token.strip_prefix("gone-").unwrap_or(token)))
        };
        let is_same = |name: &String| names.identity(name).is_ok_and(|found| found == Some(identity));
        let others = names.list("")?.into_iter().filter(|name| is_hidden(name) && is_same(name));
        Ok(others.chain([first.clone()]).collect())
    }

    /// Takes a line out of the list of owners, and those of which nothing is left.
    pub(super) fn strike(&self, line: &[u8]) -> Result<(), Fault> {
        // Names are looked for by paths, and say nothing of the list of a directory that has its path no more.
        let elsewhere = self.check_above().is_err();
        let is_there = |other: &[u8]| {
            // Of a line that was written by half nobody knows anything.
            let Some(line) = lines(other).pop() else { return false };
            if elsewhere || parts_of(&line) != self.names.parts() {
                return true;
            }
            let named = |owner: Owner| [self.root(&owner.token), self.gone(&owner.token)];
            Owner::of_line(&line).is_none_or(|owner| !named(owner).iter().all(|name| self.names.is_absent(name)))
        };
        let mut without = |before: Vec<u8>| {
            let all = before.split_inclusive(|&byte| byte == b'\n');
            all.filter(|&other| other != line && is_there(other)).flatten().copied().collect()
        };
        // What fails once may not fail twice, and what stays would be named for ever.
        let edited = self.names.edit(&self.owners(), &mut without, &mut || Ok(()));
        match edited.or_else(|_| self.names.edit(&self.owners(), &mut without, &mut || Ok(()))) {
            // A line without a root is passed over, and goes with the next owner that is dead. A list that is not believed has none of ours.
            Err(fault) if matches!(fault.kind, FaultKind::Timeout | FaultKind::Foreign) => Ok(()),
            struck => struck,
        }
    }

    /// Lists an update that did not end, and that nobody owns any more.
    pub(super) fn list_unfinished(&self, name: &str) -> Result<(), Fault> {
        let line = unfinished_line(name);
        let mut with = |mut before: Vec<u8>| {
            if !before.windows(line.len()).any(|other| other == line) {
                before.extend(&line);
            }
            before
        };
        self.names.edit(&self.owners(), &mut with, &mut || Ok(()))
    }

    /// Does something while nobody else does so who has the same home; which has an owner, so that its list is there.
    pub(super) fn alone(&self, then: Then) -> Result<(), Fault> {
        match self.names.edit(&self.owners(), &mut |before| before, &mut *then) {
            // Whoever is stopped while he has the list to himself keeps nobody from going on.
            Err(fault) if fault.kind == FaultKind::Timeout => then(),
            done => done,
        }
    }

    /// Removes something hidden: first out of sight, so that nobody finds half of it.
    pub(super) fn put_away(&self, name: &str) -> Result<(), Fault> {
        if !self.names.exists(name) {
            return Ok(());
        }
        let gone = self.gone(&self.names.token());
        self.names.rename(name, &gone)?;
        self.names.remove(&gone)
    }

    /// Removes the directory for hidden things inside of a store, if nothing is in it.
    pub(super) fn sweep(&self) {
        if self.is_inside() {
            self.names.remove_empty(INSIDE);
        }
    }
}

/// These names, where records are believed only if who made them could have changed what has this name.
fn believing(names: Arc<dyn Names>, data: &str) -> Arc<dyn Names> {
    names.believing(data).unwrap_or(names)
}

/// Whether the name by which something was locked still means it.
pub(super) fn has_its_name(lock: &dyn Lock) -> Result<bool, Fault> {
    // What fails once may not fail twice.
    lock.has_its_name().or_else(|_| lock.has_its_name())
}
