//! What is done to names and asked about files costs time: opening and the like, small files, and that all is on the disks.

use crate::calls::Range;
use crate::files::Job;
use crate::kernel::{Act, Resource, whole_ns};
use crate::machine::Machine;
use crate::names::Deed;
use hyperslab_world::{Fault, NamesChore, NamesSpan};
use std::collections::{BTreeMap, VecDeque};

/// What is asked about a file besides its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Metadata {
    /// Opening, making, renaming, removing.
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

/// What comes of work with names.
pub(crate) type DeskTold = Result<Vec<u8>, Fault>;

/// What one rank's desk is at.
#[derive(Default)]
pub(crate) struct DeskLine {
    /// What was done and is not paid for, and what came of it where somebody asks.
    waiting: VecDeque<(VecDeque<Deed>, Option<DeskTold>)>,
    busy: bool,
    /// Whether it answers no more.
    silent: bool,
    /// Syncs that are paid for, if somebody wants to know, and how long all took \[ns\].
    pub(crate) watched: bool,
    pub(crate) spent: Vec<NamesSpan>,
    pub(crate) synced_ns: u64,
}

impl DeskLine {
    pub(crate) fn is_idle(&self) -> bool {
        !self.busy && !self.silent && self.waiting.is_empty()
    }

    fn synced(&mut self, part: NamesSpan) {
        self.synced_ns += part.end_ns - part.begin_ns;
        if self.watched && part.end_ns > part.begin_ns {
            self.spent.push(part);
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
    /// Lets a rank's desk do nothing until a moment \[ns\], or for good.
    pub(crate) fn hold_desk(&mut self, rank: u32, until_ns: Option<u64>) {
        let line = &mut self.desks[rank as usize];
        if line.busy {
            return;
        }
        line.silent = true;
        if let Some(until) = until_ns {
            self.kernel.at(until, move |machine| {
                machine.desks[rank as usize].silent = false;
                machine.next_at_desk(rank);
            });
        }
    }

    /// A rank's desk has done something; `told` is given once that is paid for.
    pub(crate) fn at_desk(&mut self, rank: u32, deeds: Vec<Deed>, told: Option<DeskTold>) {
        let line = &mut self.desks[rank as usize];
        if line.is_idle() && deeds.is_empty() {
            // It took no time.
            self.mail[rank as usize].named = told.or(self.mail[rank as usize].named.take());
            return;
        }
        line.waiting.push_back((deeds.into(), told));
        self.next_at_desk(rank);
    }

    fn next_at_desk(&mut self, rank: u32) {
        let line = &mut self.desks[rank as usize];
        if line.busy || line.silent {
            return;
        }
        let Some((deeds, told)) = line.waiting.pop_front() else { return };
        line.busy = true;
        let then: Act<Machine> = Box::new(move |machine| {
            machine.desks[rank as usize].busy = false;
            machine.note(|| format!("{rank} did its work with names"));
            machine.post(rank, |mail| mail.named = told.or(mail.named.take()));
            machine.next_at_desk(rank);
        });
        self.pay(rank, deeds, then);
    }

    /// Lets the time of what was done pass, one thing after another.
    fn pay(&mut self, rank: u32, mut deeds: VecDeque<Deed>, then: Act<Machine>) {
        while let Some(deed) = deeds.pop_front() {
            let (kind, count) = match deed {
                Deed::Renamed(from, to) => {
                    self.files.rename(&from, &to);
                    continue;
                }
                Deed::Bytes(name, bytes, write) => {
                    let file = self.files.number(&name, bytes);
                    let range = Range { file, offset: 0, bytes, write, direct: false };
                    let go_on = Box::new(move |machine: &mut Machine| machine.pay(rank, deeds, then));
                    return self.plain_call(rank, range, go_on);
                }
                Deed::Sync => {
                    let begin_ns = self.kernel.now_ns();
                    let go_on = Box::new(move |machine: &mut Machine| {
                        let end_ns = machine.kernel.now_ns();
                        machine.desks[rank as usize].synced(NamesSpan { chore: NamesChore::Sync, begin_ns, end_ns });
                        machine.pay(rank, deeds, then);
                    });
                    return self.sync_of(rank, go_on);
                }
                Deed::Removed(name) => (Metadata::Open, 1 + self.files.remove(&name)),
                Deed::Open => (Metadata::Open, 1),
                Deed::Close => (Metadata::Close, 1),
                Deed::Query => (Metadata::Query, 1),
            };
            return self.metadata(kind, count, Box::new(move |machine| machine.pay(rank, deeds, then)));
        }
        then(self);
    }

    /// Opens, closes or asks about so many files, one after another: a delay of the caller's own for each, and the work of one
    /// manager for all ranks.
    pub(crate) fn metadata(&mut self, kind: Metadata, count: u64, then: Act<Machine>) {
        let costs = &self.profile.storage.metadata;
        let (own_ns, manager_ns) = match kind {
            Metadata::Open => (costs.open_ns, costs.open_manager_ns),
            Metadata::Close => (costs.close_ns, costs.close_manager_ns),
            Metadata::Query => (costs.query_ns, costs.query_manager_ns),
        };
        let (own_ns, manager_ns) = (own_ns * count as f64, manager_ns * count as f64);
        let began = self.kernel.now_ns();
        // Who has no business with the manager does not wait for those who have.
        let managed = if manager_ns > 0.0 { self.files.books.manager.take(began, manager_ns) } else { began };
        self.kernel.at(managed + whole_ns(own_ns), move |machine| {
            let ns = machine.kernel.now_ns() - began;
            (0..count).for_each(|_| machine.tally.call(kind.name(), 0, ns / count));
            then(machine);
        });
    }

    /// Makes what a rank wrote durable for a request.
    pub(crate) fn sync(&mut self, rank: u32, job: Job) {
        self.sync_of(rank, Box::new(move |machine| machine.end_job(rank, job)));
    }

    /// Makes what a rank wrote durable, on all servers that hold some of it.
    fn sync_of(&mut self, rank: u32, then: Act<Machine>) {
        let began = self.kernel.now_ns();
        let servers = self.files.take_touched(rank);
        let then: Act<Machine> = Box::new(move |machine| {
            let ns = machine.kernel.now_ns() - began;
            machine.tally.call("sync", 0, ns);
            then(machine);
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
