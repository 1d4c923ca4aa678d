//! Ranks that see one place by several clients, each with caches of its own.
//!
//! On file systems that are not coherent, what one client did is seen by another one late, and sometimes old data are read without
//! an error. So everything that a program does there goes by one client, that of rank 0: rank 0 finds and tells what
//! is there, and ranks on his node handle storage for all (Panda's servers as a necessity). A rank may read by itself where this
//! program has written nothing, as old as the file system shows it.
//!
//! Whether ranks have one client is found by the opening, in one more agreement, and only where the place is not coherent: each
//! rank compares the client that rank 0 told with its own, which the system's table of mounts tells without a question
//! to the file system.

use crate::policy::{ONE_CLIENT_SERVERS, WRITTEN_PLACES_MAX};
use hyperslab_plan::{Infeasible, Preference, Role};
use hyperslab_world::{Fault, FaultKind, Mount, Names};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places that are not coherent in which this process has opened something to write, with ranks at several clients.
static WRITTEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn written() -> MutexGuard<'static, BTreeSet<String>> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this program has written to a place, to something in it, or to something that it lies in.
fn was_written(place: &str) -> bool {
    let lies_in =
        |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let places = written();
    places.len() >= WRITTEN_PLACES_MAX || places.iter().any(|at| lies_in(place, at) || lies_in(at, place))
}

/// How the ranks of a communicator see something that is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankMounts {
    /// The mount of rank 0, where ranks have several.
    apart: Option<Arc<Mount>>,
    /// So many ranks have that of rank 0, counted from him: those of his node, as launchers number them.
    alike: u32,
    /// Whether this rank has that of rank 0.
    with_root: bool,
    /// Where it lies.
    place: Arc<str>,
}

impl RankMounts {
    /// Whether this rank has the mount of rank 0.
    pub(crate) fn is_same(of_root: &Mount, names: &dyn Names) -> bool {
        names.mount().is_some_and(|mine| mine.number == of_root.number)
    }

    /// Of something at this place, which is perhaps written, where ranks are apart from this mount, if they are; so many of the
    /// first ones have that of rank 0.
    pub(crate) fn new(
        apart: Option<Mount>,
        alike: u32,
        with_root: bool,
        (place, writes): (String, bool),
    ) -> RankMounts {
        if apart.is_some() && writes {
            let mut places = written();
            if places.len() < WRITTEN_PLACES_MAX {
                places.insert(place.clone());
            }
        }
        RankMounts { apart: apart.map(Arc::new), alike, with_root, place: place.into() }
    }

    /// Whether ranks have several clients.
    pub(crate) fn are_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// Whether this rank would not see what others of the program have done.
    pub(crate) fn hide_from_here(&self) -> bool {
        self.apart.is_some() && !self.with_root && was_written(&self.place)
    }

    /// Refuses that this rank reads something by itself that the program may have changed by another client.
    pub(crate) fn check_alone(&self, what: &str) -> Result<(), Fault> {
        let Some(mount) = self.apart.as_ref().filter(|_| self.hide_from_here()) else { return Ok(()) };
        let text = format!(
            "{what} of '{}' by this rank alone: this program has written there by another client of {} ({}), and this \
             rank's client may show what was there before",
            self.place, mount.kind, mount.strength
        );
        Err(Fault::new(FaultKind::Unsupported, text).hint(
            "read it together, with read(), which all ranks call; docs/clusters.md says what this file system shows",
        ))
    }

    /// What is wanted of the planner, with storage in the hands of rank 0 where ranks have several clients.
    pub(crate) fn narrow(&self, wanted: Preference) -> Result<Preference, Infeasible> {
        let Some(mount) = &self.apart else { return Ok(wanted) };
        if let Some(strategy) = wanted.strategy.filter(|strategy| strategy.spec().role == Role::Own) {
            return Err(Infeasible {
                reason: format!(
                    "by '{strategy}' each rank goes by its own client of {} ({}), and those do not see what others write",
                    mount.kind, mount.strength
                ),
                hint: "leave the choice of the strategy open: one client handles storage for all ranks".into(),
            });
        }
        let servers = wanted.servers.unwrap_or(ONE_CLIENT_SERVERS).clamp(1, self.alike.max(1));
        Ok(Preference { server_ranks: Some((0..servers).collect()), servers: None, exchange: None, ..wanted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_world::Strength;

    #[test]
    fn a_group_of_a_store_that_was_written_counts_as_written() {
        let mount = || Some(Mount { number: 1, strength: Strength::Timeouts, kind: "fuse.sshfs".into() });
        let opened = |place: &str, writes| RankMounts::new(mount(), 1, false, (place.to_string(), writes));
        let before = opened("/p/run.zarr/sub", false);
        assert!(before.check_alone("read 'a'").is_ok());
        let writer = opened("/p/run.zarr", true);
        assert!(writer.check_alone("read 'a'").is_err() && before.check_alone("read 'a'").is_err());
        assert!(opened("/p", false).check_alone("read 'a'").is_err(), "what it lies in");
        assert!(opened("/p/run.zarr2", false).check_alone("read 'a'").is_ok());
        assert!(RankMounts::new(mount(), 1, true, ("/p/run.zarr".into(), false)).check_alone("read 'a'").is_ok());
    }
}
