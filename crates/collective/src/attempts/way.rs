//! Ways in which what is written becomes visible: one for places that can rename, one for those that can put if absent. A
//! target begins something, writes where it is told, and publishes or discards it, and does not ask which way it is.

use super::clean::Cleaned;
use super::home::{Home, Made};
use super::journal::Entry;
use super::marker::Marker;
use super::opening::Opening;
use super::recover::{Found, Whose};
use hyperslab_world::{Fault, FaultKind, Root};

/// Something new that is begun.
pub struct New<'a> {
    /// What kind of thing it is, for people and for whoever finds it.
    pub kind: &'static str,
    /// Its name in the store, for people.
    pub of: &'a str,
    /// The name that it shall have, below the home.
    pub to: &'a str,
    /// What lies in it once it is there: its metadata.
    pub key: &'static str,
    /// Whether it may take the place of what has the name, and end attempts of others to make the same.
    pub overwrite: bool,
}

/// One way in which what is written becomes visible. What is begun is known by a hidden name, below which its metadata lie.
pub(super) trait PublishWay: Send + Sync {
    /// Ends a root, with all that was not published.
    fn end_root(&self, of: &Opening, made: Made) -> Result<(), Fault>;
    /// Whether something visible has this name.
    fn is_taken(&self, of: &Opening, name: &str, key: &str) -> Result<bool, Fault>;
    /// Begins something new; gives its hidden name.
    fn begin(&self, of: &Opening, new: &New) -> Result<String, Fault>;
    /// Makes room for something new in what was begun and is hidden.
    fn renew(&self, of: &Opening, hidden: &str) -> Result<(), Fault>;
    /// Where the objects lie of what has this name, hidden or visible; of what was begun, who writes them.
    fn ground(&self, of: &Opening, name: &str) -> Root;
    /// Makes what was begun visible, all or nothing.
    fn publish(&self, of: &Opening, entries: &[Entry]) -> Result<(), Fault>;
    /// Removes what was begun and never published, as far as that goes.
    fn discard(&self, of: &Opening, hidden: &str);
    /// Keeps others from making longer what has this name, until the marker is dropped.
    fn begin_growing(&self, of: &Opening, growing: &Growing) -> Result<Marker, Fault>;
    /// What can be changed where it lies, of what has this name: units as they are found, or only those that are new.
    fn changes_units(&self, of: &Opening, name: &str) -> bool;
    /// Removes what is hidden of what is made longer: all that `is_seen` does not know, of names in it.
    fn sweep(&self, of: &Opening, name: &str, is_seen: &dyn Fn(&str) -> bool) -> Result<(), Fault>;
    /// Takes things of the store, metadata first, out of sight and away.
    fn erase(&self, of: &Opening, names: &[String], key: &str) -> Result<(), Fault>;
    /// What tells a small file that readers see from what it becomes by a change, where the way needs to know; `marked` says
    /// that a marker keeps others from changing it.
    fn seen(&self, of: &Opening, name: &str, marked: bool) -> Result<String, Fault>;
    /// Replaces a small file that was seen like this, if that holds when all is ready.
    fn replace(&self, of: &Opening, small: &Small, holds: &mut dyn FnMut() -> Result<(), Fault>) -> Result<(), Fault>;
    /// Replaces several small files that were seen, all or none, if that holds when all is ready.
    fn replace_all(
        &self,
        of: &Opening,
        small: &[Small],
        holds: &mut dyn FnMut() -> Result<(), Fault>,
    ) -> Result<(), Fault>;
    /// What other owners left; that of `whose` is rolled forward or removed.
    fn recover(&self, home: &Home, whose: Whose) -> Result<Found, Fault>;
    /// Removes what is hidden, but for what owners have who live, or says what would be removed.
    fn clean(&self, home: &Home, dry_run: bool, cleaned: &mut Vec<Cleaned>) -> Result<(), Fault>;
}

/// The failure of a change to what is not as it was seen any more.
pub(super) fn outdated(name: &str) -> Fault {
    let text = format!("'{name}' was changed by somebody else meanwhile");
    Fault::new(FaultKind::Outdated, text).hint("look at it again, and repeat the call")
}

/// Something that is made longer.
pub struct Growing<'a> {
    /// Its marker.
    pub marker: &'a str,
    /// Its name in the store, for people.
    pub of: &'a str,
    /// Its name below the home.
    pub at: &'a str,
    /// Its metadata in it, which say how long it is.
    pub key: &'a str,
}

/// A small file that is to be replaced.
pub(super) struct Small<'a> {
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) sync: bool,
    pub(super) seen: &'a str,
}
