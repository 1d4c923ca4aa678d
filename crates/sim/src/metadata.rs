//! What is asked of files besides their bytes: opening and the like, and that all is on the disks.

use crate::files::Job;
use crate::kernel::{Act, Resource, whole_ns};
use crate::machine::Machine;
use std::collections::BTreeMap;

/// What is asked about a file besides its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metadata {
    /// Opening, or creating.
    Open,
    /// Closing.
    Close,
    /// Its size and the like.
    Query,
}

impl Metadata {
    const fn name(self) -> &'static str {
        match self {
            Metadata::Open => "open",
            Metadata::Close => "close",
            Metadata::Query => "query",
        }
    }
}

/// What is under way besides bytes.
#[derive(Default)]
pub(crate) struct Books {
    /// Serves metadata for all.
    pub(crate) manager: Resource,
    /// Syncs under way: servers that have not answered, and what follows.
    syncs: BTreeMap<u64, (usize, Act<Machine>)>,
    next_sync: u64,
}

impl Machine {
    /// Opens, closes or asks about a file: a delay of the caller's own, and the work of one manager for all.
    pub(crate) fn metadata(&mut self, kind: Metadata, rank: u32) {
        let costs = &self.profile.storage.metadata;
        let (own_ns, manager_ns) = match kind {
            Metadata::Open => (costs.open_ns, costs.open_manager_ns),
            Metadata::Close => (costs.close_ns, costs.close_manager_ns),
            Metadata::Query => (costs.query_ns, costs.query_manager_ns),
        };
        let began = self.kernel.now_ns();
        // Who has no business with the manager does not wait for those who have.
        let managed = if manager_ns > 0.0 { self.files.books.manager.take(began, manager_ns) } else { began };
        self.kernel.at(managed + whole_ns(own_ns), move |machine| {
            let ns = machine.kernel.now_ns() - began;
            machine.tally.call(kind.name(), 0, ns);
            machine.post(rank, |mail| mail.woken = true);
        });
    }

    /// Makes what a rank wrote durable, on all servers that hold some of it.
    pub(crate) fn sync(&mut self, rank: u32, job: Job) {
        let began = self.kernel.now_ns();
        let servers = self.files.take_touched(rank);
        let then: Act<Machine> = Box::new(move |machine| {
            let ns = machine.kernel.now_ns() - began;
            machine.tally.call("sync", 0, ns);
            machine.end_job(rank, job);
        });
        if servers.is_empty() {
            return then(self);
        }
        let number = self.files.books.next_sync;
        self.files.books.next_sync += 1;
        self.files.books.syncs.insert(number, (servers.len(), then));
        for server in servers {
            self.ask_flush(rank, server, Box::new(move |machine| machine.end_sync(number)));
        }
    }

    /// A server has made its part durable.
    fn end_sync(&mut self, number: u64) {
        let Some((left, _)) = self.files.books.syncs.get_mut(&number) else { return };
        *left -= 1;
        if *left == 0
            && let Some((_, then)) = self.files.books.syncs.remove(&number)
        {
            then(self);
        }
    }

    fn ask_flush(&mut self, rank: u32, server: u32, then: Act<Machine>) {
        if self.server_node(server) == self.node(rank) {
            return self.flush(server, then);
        }
        self.ask_server(rank, server, 0, move |machine| {
            machine.flush(server, Box::new(move |machine| machine.answer(rank, server, 0, then)));
        });
    }
}
