//! All stores of one real rank: which one serves a request follows from where its root lies.

use crate::desk::Desk;
use crate::posix::PosixStore;
use crate::wire::Bell;
use hyperslab_layout::Object;
use hyperslab_world::{BucketStore, Fault, MemoryTree, Outcome, Request, Root, Store, Ticket, TreeStore};
use std::sync::Arc;

/// Files of the file system, and of trees in memory; objects in buckets.
pub(crate) struct Stores {
    pub(crate) posix: PosixStore,
    memory: TreeStore,
    buckets: BucketStore,
    roots: Arc<[Root]>,
    bell: Bell,
    pub(crate) desk: Desk,
}

impl Stores {
    /// Stores that were given no roots yet, and no tree. The bell rings whenever a request is over.
    pub(crate) fn new(bell: Bell) -> Stores {
        Stores {
            posix: PosixStore::new(bell.clone()),
            memory: TreeStore::default(),
            buckets: BucketStore::default(),
            roots: [].into(),
            desk: Desk::new(bell.clone()),
            bell,
        }
    }

    /// Serves a tree, too, as long as somebody has it.
    pub(crate) fn mount(&mut self, tree: &MemoryTree) {
        self.memory.mount(tree);
    }

    /// The store in memory in which all lies that a request names, if one is.
    fn in_memory(&mut self, request: &Request) -> Option<&mut dyn Store> {
        let lies = |object: &Object, is_for: fn(&str) -> bool| {
            self.roots.get(object.root as usize).is_some_and(|root| is_for(&root.at))
        };
        let is_for = |is_for: fn(&str) -> bool| match request {
            Request::Sync { below } => !below.is_empty() && below.iter().all(|object| lies(object, is_for)),
            request => request.object().is_some_and(|object| lies(object, is_for)),
        };
        if is_for(TreeStore::is_for) {
            return Some(&mut self.memory);
        }
        if is_for(BucketStore::is_for) { Some(&mut self.buckets) } else { None }
    }
}

impl Store for Stores {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        match self.in_memory(&request) {
            Some(store) => {
                store.submit(ticket, request);
                self.bell.ring();
            }
            None => self.posix.submit(ticket, request),
        }
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        self.memory.poll(done);
        self.buckets.poll(done);
        self.posix.poll(done);
    }

    fn advance(&self) -> u64 {
        self.posix.advance().wrapping_add(self.desk.advance())
    }

    fn enter(&mut self, roots: Arc<[Root]>) {
        self.roots = roots.clone();
        self.memory.enter(roots.clone());
        self.buckets.enter(roots.clone());
        self.posix.enter(roots);
    }

    fn roots(&self) -> Arc<[Root]> {
        self.roots.clone()
    }

    fn release(&mut self) {
        self.posix.release();
    }

    fn leave_to_rank_0(&mut self, below: &Root) -> bool {
        self.posix.leave_to_rank_0(below)
    }

    fn pause(&mut self) {
        self.posix.pause();
    }

    fn replaces_by_syncs(&self) -> bool {
        self.roots.iter().all(|root| !TreeStore::is_for(&root.at) && !BucketStore::is_for(&root.at))
    }

    fn owes(&self, released: bool) -> bool {
        self.posix.owes(released)
    }

    fn cut(&mut self) {
        self.posix.cut();
    }
}
