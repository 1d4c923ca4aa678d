//! All stores of one real rank: which one serves a request follows from the names of objects.

use crate::desk::Desk;
use crate::posix::PosixStore;
use crate::wire::Bell;
use hyperslab_world::{Fault, MemoryTree, Outcome, Request, Root, Store, Ticket, TreeStore};
use std::path::Path;
use std::sync::Arc;

/// Files of the file system, and of trees in memory.
pub(crate) struct Stores {
    pub(crate) posix: PosixStore,
    memory: TreeStore,
    bell: Bell,
    pub(crate) desk: Desk,
}

impl Stores {
    /// Files below `root`, and no tree yet. The bell rings whenever a request is over.
    pub(crate) fn new(root: &Path, bell: Bell) -> Stores {
        Stores {
            posix: PosixStore::new(root, bell.clone()),
            memory: TreeStore::default(),
            desk: Desk::new(bell.clone()),
            bell,
        }
    }

    /// Serves a tree, too, as long as somebody has it.
    pub(crate) fn mount(&mut self, tree: &MemoryTree) {
        self.memory.mount(tree);
    }
}

/// Whether all that a request names is in memory.
fn is_for_memory(request: &Request) -> bool {
    match request {
        Request::Sync { below } => below.iter().all(|name| TreeStore::is_for(name)),
        request => request.object().is_some_and(|name| TreeStore::is_for(name)),
    }
}

impl Store for Stores {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        if is_for_memory(&request) {
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
        self.posix.enter(roots);
    }

    fn release(&mut self) {
        self.posix.release();
    }

    fn cut(&mut self) {
        self.posix.cut();
    }
}
