//! The model: what a transfer costs on a machine, without carrying it out.
//!
//! ```text
//! programs of some ranks --> rounds of work --> times of rounds --> time of each rank   \   the largest
//!   (work.rs)                                    (costs.rs)         (pipeline.rs)        >  of these is
//!                                                                   busy shared things  /   the price
//! ```
//!
//! A few rounds of a few ranks stand for all, of servers from all over the file, else the first: what they do is read off
//! the very programs that would run, so a strategy has no second description. Each round's exchange and storage follow from
//! the numbers of a profile, with the delays of a server that waits for its clients (Chen et al. 1996, formula F11).
//! Rounds then overlap as far as slots allow. What ranks share (cores, links, the lock of a file, servers of files,
//! disks) may not be busy for longer than all takes; the busiest of these is the bottleneck.
//!
//! Arrays that are alike are priced once. Pieces without a closed form are priced as if each rank held as many as the
//! others, all as large as one of them (tiles.rs), since nobody knows all of them.

mod busy;
mod classes;
mod costs;
mod folios;
mod imagined;
mod look;
mod memories;
mod messages;
mod moved;
mod pipeline;
mod spread;
mod stretches;
mod terms;
#[cfg(test)]
mod tests;
mod tiles;
mod work;

use crate::strategy::Parameters;
use crate::transfer::Transfer;
use busy::Busy;
use classes::Class;
use costs::Costs;
use hyperslab_layout::Durability;
use memories::Memories;
use std::sync::Arc;
pub(crate) use terms::Priced;
pub use terms::{Effort, Machine, Memory, MemoryLayout, Phase, Price, Resource};

/// A transfer whose prices with several parameters are wanted.
pub(crate) struct Pricing<'a> {
    priced: Priced<'a>,
    transfer: &'a Arc<Transfer>,
    classes: Vec<Class>,
    memories: Vec<Memories>,
}

impl<'a> Pricing<'a> {
    pub(crate) fn new(priced: Priced<'a>, transfer: &'a Arc<Transfer>, memory: Memory<'a>) -> Pricing<'a> {
        let classes = classes::of(transfer, memory);
        let memories = classes.iter().map(|class| Memories::new(class, memory, priced)).collect();
        Pricing { priced, transfer, classes, memories }
    }

    /// One array of each kind: what cannot be done for all cannot be done for these.
    pub(crate) fn one_of_each(&self) -> Arc<Transfer> {
        let asks =
            self.classes.iter().filter_map(|class| self.transfer.asks.get(*class.members.first()?).cloned()).collect();
        Arc::new(Transfer { asks, ..self.transfer.of_no_array() })
    }

    /// What the transfer costs with these parameters, of which the strategy is feasible.
    pub(crate) fn price(&self, parameters: &Parameters, effort: Effort) -> Price {
        let costs = Costs::new(self.priced, self.transfer, parameters);
        let mut busy = Busy::default();
        let (mut exchange, mut storage, mut waited) = (0.0, 0.0, 0.0);
        let (mut buffer_bytes, mut touched_bytes, mut looked_at) = (0, 0, 0);
        for (class, memories) in self.classes.iter().zip(&self.memories) {
            let timed = pipeline::time(&costs, class, parameters, memories, effort, &mut busy);
            busy.end_class();
            exchange += timed.exchange_ns;
            storage += timed.storage_ns;
            waited += timed.waited_ns;
            buffer_bytes = buffer_bytes.max(timed.buffer_bytes);
            touched_bytes = touched_bytes.max(timed.touched_bytes);
            looked_at += timed.looked_at;
        }
        busy.servers_take(exchange + storage, waited);
        let (bottleneck, moving) = busy.busiest(&costs);
        // What is beyond the servers' own time is waited for where it belongs.
        let more = moving - (exchange + storage);
        let exchanging = match bottleneck {
            Resource::Client | Resource::Link => 1.0,
            Resource::Cores => exchange / (exchange + storage).max(1.0),
            _ => 0.0,
        };
        exchange += more * exchanging;
        storage += more * (1.0 - exchanging);
        storage += costs.beside_ns(self.transfer, parameters);
        // Before a later call makes it durable, this one ends and that one begins.
        let synced_at_end = self.transfer.policies.durability == Durability::Now;
        let between = if synced_at_end { 0.0 } else { 2.0 * costs.agreement_ns() };
        let synced = costs.write && self.transfer.policies.durability > Durability::Cached;
        let durable = if synced { busy.sync_ns(&costs, moving, between) } else { 0.0 };
        let (sync, later_ns) = if synced_at_end { (durable, 0.0) } else { (0.0, durable) };
        let open = costs.agreement_ns() + costs.preparing_ns(self.transfer, parameters);
        let close = costs.agreement_ns() + costs.publishing_ns();
        let phases = [open, exchange, storage, sync, close];
        let first_ns = costs.touching_ns(parameters, touched_bytes);
        Price { phases, resources: busy.all(&costs), bottleneck, buffer_bytes, later_ns, first_ns, looked_at }
    }
}
