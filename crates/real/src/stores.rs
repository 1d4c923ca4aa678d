//! All stores of one real rank: which one serves a request follows from where its root lies.

use crate::desk::Desk;
use crate::posix::PosixStore;
use crate::wire::Bell;
use hyperslab_layout::Object;
use hyperslab_world::{Fault, MemoryTree, Outcome, Request, Root, Store, Ticket, TreeStore};
use std::sync::Arc;

/// Files of the file system, and of trees in memory.
pub(crate) struct Stores {
    pub(crate) posix: PosixStore,
    memory: TreeStore,
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
            roots: [].into(),
            desk: Desk::new(bell.clone()),
            bell,
        }
    }

    /// Serves a tree, too, as long as somebody has it.
    pub(crate) fn mount(&mut self, tree: &MemoryTree) {
        self.memory.mount(tree);
    }

    /// Whether all that a request names is in memory.
    fn is_for_memory(&self, request: &Request) -> bool {
        let lies_in_memory =
            |object: &Object| self.roots.get(object.root as usize).is_some_and(|root| TreeStore::is_for(&root.at));
        match request {
            Request::Sync { below } => below.iter().all(lies_in_memory),
            request => request.object().is_some_and(lies_in_memory),
        }
    }
}

impl Store for Stores {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        if self.is_for_memory(&request) {
            self.memory.submit(ticket, request);
            self.bell.ring();
        } else {
            self.posix.submit(ticket, request);
        }
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        self.memory.poll(done);
        self.posix.poll(done);
    }

    fn advance(&self) -> u64 {
        self.posix.advance().wrapping_add(self.desk.advance())
    }

    fn enter(&mut self, roots: Arc<[Root]>) {
        self.roots = roots.clone();
        self.memory.enter(roots.clone());
        self.posix.enter(roots);
    }

    fn roots(&self) -> Arc<[Root]> {
        self.roots.clone()
    }

    fn release(&mut self) {
        self.posix.release();
    }

    fn cut(&mut self) {
        self.posix.cut();
    }
}
