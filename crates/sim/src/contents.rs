//! The bytes of files, where payloads carry any.

use crate::names::Directories;
use hyperslab_world::{Fault, MemoryStore, MemoryTree, Outcome, Request, Root, Store, TreeStore};
use std::sync::Arc;

/// What keeps the bytes of files.
pub(crate) enum FileBytes {
    /// Objects by name.
    Objects(MemoryStore),
    /// The files that names are of, through a store for each rank.
    Tree(Directories, Vec<TreeStore>),
    /// Of these only small ones, which are given by their bytes: payloads are lengths.
    Small(Box<FileBytes>),
}

impl FileBytes {
    pub(crate) fn in_tree(directories: Directories, tree: &MemoryTree, ranks: u32) -> FileBytes {
        let store = |_| {
            let mut store = TreeStore::default();
            store.mount(tree);
            store
        };
        FileBytes::Tree(directories, (0..ranks).map(store).collect())
    }

    /// Objects of a rank's further requests lie below these.
    pub(crate) fn enter(&mut self, rank: u32, roots: &Arc<[Root]>) {
        match self {
            FileBytes::Objects(store) => store.enter(roots.clone()),
            FileBytes::Tree(directories, stores) => {
                let at = |root: &Root| Root { at: directories.in_tree(&root.at).into(), via: None, ..root.clone() };
                stores[rank as usize].enter(roots.iter().map(at).collect());
            }
            FileBytes::Small(files) => files.enter(rank, roots),
        }
    }

    /// Does what a rank asked for.
    pub(crate) fn apply(&mut self, rank: u32, request: Request) -> Option<Result<Outcome, Fault>> {
        let store: &mut dyn Store = match self {
            FileBytes::Objects(store) => store,
            FileBytes::Tree(_, stores) => &mut stores[rank as usize],
            FileBytes::Small(files) => {
                let is_small = matches!(&request, Request::Put { bytes, .. } if !bytes.is_empty());
                return is_small.then(|| files.apply(rank, request)).flatten();
            }
        };
        store.submit(0, request);
        let mut done = Vec::new();
        store.poll(&mut done);
        done.pop().map(|(_, outcome)| outcome)
    }
}
