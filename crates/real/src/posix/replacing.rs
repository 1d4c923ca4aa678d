//! Whole objects that take the place of others. Each is made under a hidden name and renamed over the old one, so that
//! readers see one or the other. Those that shall be durable on return wait for the next sync: one makes all of their bytes
//! durable, which must be on disk before names point to them; then all are renamed.

use super::grounds::Grounds;
use super::written::Written;
use crate::below::Spot;
use crate::doing::Doing;
use crate::sync::atomic::{AtomicU64, Ordering};
use hyperslab_layout::Object;
use hyperslab_world::Fault;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Those that wait.
#[derive(Default)]
pub(super) struct Successors(Vec<Successor>);

/// An object that was made and has not its name yet.
pub(super) struct Successor {
    object: Object,
    pub(super) hidden: PathBuf,
    path: PathBuf,
}

impl Successor {
    /// Where its name is made.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        self.path.parent().map(PathBuf::from)
    }
}

impl Successors {
    pub(super) fn wait(&mut self, object: &Object, hidden: PathBuf, path: PathBuf) {
        self.0.push(Successor { object: object.clone(), hidden, path });
    }

    /// Those of these paths, which do not wait any more.
    pub(super) fn take(&mut self, is_taken: impl Fn(&Path) -> bool) -> Vec<Successor> {
        self.0.extract_if(.., |one| is_taken(&one.path)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes those that never took their places.
    pub(super) fn give_up(&mut self, grounds: &Grounds, written: &mut Written) {
        for Successor { object, path, hidden } in self.0.drain(..) {
            written.forget(&hidden);
            if let Some(Ok(hidden)) = grounds.beside(&object, &path).0 {
                let _ = hidden.unlink();
            }
        }
    }
}

/// Lets what was made under a hidden name take the place of another.
pub(super) fn replace_by(hidden: &Spot, spot: &Spot, doing: &Doing) -> Result<(), Fault> {
    let placed = hidden.rename(spot).inspect_err(|_| drop(hidden.unlink()));
    placed.map_err(|error| doing.failed(" (rename into place)", &error))
}

/// Lets objects whose bytes are durable take the places of others; each counts as progress.
pub(super) fn replace_all(replacing: &[Successor], grounds: &mut Grounds, advance: &AtomicU64) -> Result<(), Fault> {
    for Successor { object, path, .. } in replacing {
        let doing = Doing { verb: "writing", path };
        let failed = |error: std::io::Error| doing.failed("", &error);
        let spot = grounds.spot(object, path, &mut BTreeSet::new()).map_err(failed)?;
        if let Some(hidden) = grounds.beside(object, path).0.transpose().map_err(failed)? {
            replace_by(&hidden, &spot, &doing)?;
            advance.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::PosixStore;
    use crate::wire::Bell;
    use hyperslab_layout::Durability;
    use hyperslab_world::{Request, Root, Store};

    /// The contents of `data` once these are done.
    fn after(store: &mut PosixStore, path: &std::path::Path, requests: impl IntoIterator<Item = Request>) -> Vec<u8> {
        for request in requests {
            let mut ended = Vec::new();
            store.submit(1, request);
            while ended.is_empty() {
                store.poll(&mut ended);
            }
            assert!(ended[0].1.is_ok(), "{ended:?}");
        }
        std::fs::read(path.join("data")).unwrap()
    }

    #[test]
    fn what_is_durable_at_once_takes_its_name_by_the_sync_and_what_was_given_up_never() {
        let path = std::env::temp_dir().join(format!("hyperslab-replacing-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let mut store = PosixStore::new(Bell::default());
        store.enter([Root::new(path.to_string_lossy())].into());
        let put = |byte: u8, durability: Durability| {
            let replace = byte > 0;
            Request::Put { object: "data".into(), bytes: vec![byte], replace, durability }
        };
        let sync = || Request::Sync { below: ["data".into()].into() };
        assert_eq!(after(&mut store, &path, [put(0, Durability::Now)]), [0]);
        assert_eq!(after(&mut store, &path, [put(1, Durability::Now)]), [0]);
        assert_eq!(after(&mut store, &path, [sync()]), [1]);
        assert_eq!(after(&mut store, &path, [put(2, Durability::Cached)]), [2]);
        assert_eq!(after(&mut store, &path, [put(3, Durability::Soon), sync()]), [3]);
        assert_eq!(after(&mut store, &path, [put(4, Durability::Now)]), [3]);
        store.release();
        assert_eq!(after(&mut store, &path, [sync()]), [3]);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1, "nothing hidden is left");
        drop(store);
        std::fs::remove_dir_all(&path).unwrap();
    }
}
