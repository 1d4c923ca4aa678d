//! How long things are busy that ranks share.

use super::costs::{Costs, Stored};
use super::messages::Message;
use super::moved::Moved;
use super::terms::Resource;
use super::work::Request;
use crate::profile::{Cache, Disk, Layout};
use hyperslab_layout::Object;
use std::collections::BTreeMap;

/// What a long request sends to the disk at a time \[B\].
const SENT_BYTES: f64 = (1 << 20) as f64;

/// A round of a rank, with what it costs.
pub(super) struct Costed<'a> {
    pub(super) rank: u32,
    /// Its number among those of the rank that were looked at.
    pub(super) number: usize,
    pub(super) messages: &'a [(Moved, Message)],
    pub(super) requests: &'a [Request],
    pub(super) stored: &'a [Stored],
    /// How many more messages there are, over these.
    pub(super) more: f64,
    /// The rank's own processor, for data, and for data and calls \[ns\].
    pub(super) exchange_ns: f64,
    pub(super) own_ns: f64,
    /// A core that waiting for the lock of a file keeps busy \[ns\].
    pub(super) spun_ns: f64,
    /// File servers on which the arrays lie.
    pub(super) servers: f64,
    /// Rounds, and ranks, for which it stands.
    pub(super) rounds: f64,
    pub(super) ranks: f64,
    /// What these exchange, and store, over what it seems.
    pub(super) share: f64,
    pub(super) stored_share: f64,
}

/// What is sent from the cache to the disk at once, where it shall be durable.
#[derive(Default)]
struct Sent {
    bytes: f64,
    /// Of these, what is sent last, when nothing moves beside it any more.
    last_bytes: f64,
    /// When the first is sent \[ns\].
    begun_ns: Option<f64>,
}

/// Busy times of shared things \[ns\].
#[derive(Default)]
pub(super) struct Busy {
    /// What a round of all servers asks of each client, and of the link of each node of clients.
    clients: BTreeMap<(usize, u32), f64>,
    client_links: BTreeMap<(usize, u32), f64>,
    /// The busiest client, and link of clients, of all rounds of the arrays before.
    client_ns: f64,
    client_link_ns: f64,
    /// Of nodes on which storage is handled: processors, links, disks.
    cores: BTreeMap<u32, f64>,
    links: BTreeMap<u32, f64>,
    disks: BTreeMap<u32, f64>,
    /// Of all nodes together: processors, disks.
    all_cores_ns: f64,
    /// Of this, what waiting for the locks of files keeps busy.
    spun_ns: f64,
    all_disks_ns: f64,
    /// What disks write only when it is made durable, and the last piece of all.
    tails: BTreeMap<u32, f64>,
    all_tails_ns: f64,
    last_ns: f64,
    /// File servers that a rank writes to.
    asked: f64,
    files: BTreeMap<Object, f64>,
    /// Files that are made, of all ranks together: nodes sync their own data, but names are made in one place.
    names_ns: f64,
    file_servers_ns: f64,
    /// Of nodes whose files are their own: serving them, and what else that processor does.
    serving: BTreeMap<u32, f64>,
    serving_besides: BTreeMap<u32, f64>,
    server_ns: f64,
    /// Of this, waiting for the locks of files.
    server_waits_ns: f64,
    /// The least that any rank exchanges before its storage has anything to do, or after that.
    alone_ns: Option<f64>,
    /// What processors of all ranks do in the first exchange of all that write.
    first_ns: f64,
    /// What is in the cache and must be made durable: files of their own, by the rank that wrote them and with the ranks for
    /// which it stands, and bytes, with what their folios take besides.
    chunks: BTreeMap<u32, (f64, f64)>,
    chunks_of_all: f64,
    synced_bytes: f64,
    sent: Sent,
}

impl Busy {
    /// Adds a round.
    pub(super) fn add(&mut self, costs: &Costs<'_>, round: &Costed<'_>) {
        let (node, all) = (costs.node(round.rank), round.rounds * round.ranks);
        let (exchanged, stored_all) = (all * round.share, all * round.stored_share);
        let stored_rounds = round.rounds * round.stored_share;
        *self.cores.entry(node).or_default() += round.spun_ns * stored_rounds;
        self.all_cores_ns += round.spun_ns * stored_all;
        self.spun_ns += round.spun_ns * stored_all;
        *self.cores.entry(node).or_default() += round.own_ns * round.rounds;
        self.all_cores_ns += round.own_ns * all;
        if costs.first_of_node(round.rank) {
            *self.serving_besides.entry(node).or_default() += round.own_ns * round.rounds;
        }
        let first = if costs.write && round.number == 0 { round.ranks * round.share } else { 0.0 };
        self.first_ns += round.exchange_ns * first;
        let (mut wire, mut pieces) = (0.0, 0.0);
        let messages = 1.0 + round.more;
        for (moved, message) in round.messages {
            let key = (round.number, moved.peer);
            *self.clients.entry(key).or_default() += message.array_ns * exchanged;
            self.all_cores_ns += message.array_ns * exchanged * messages;
            self.first_ns += message.array_ns * first * messages;
            if message.wire_ns > 0.0 {
                let key = (round.number, costs.node(moved.peer));
                *self.client_links.entry(key).or_default() += message.wire_ns * exchanged;
                wire += message.wire_ns * messages * round.share;
            }
        }
        for (request, stored) in round.requests.iter().zip(round.stored) {
            wire += stored.wire_ns * round.stored_share;
            match &request.file {
                Some(file) => *self.files.entry(file.clone()).or_default() += stored.lock_ns * stored_all,
                None if !request.write => {}
                None => {
                    let made = self.chunks.entry(round.rank).or_default();
                    *made = (made.0 + stored_rounds, round.ranks);
                    self.chunks_of_all += stored_all;
                    self.names_ns += stored.lock_ns * stored_all;
                }
            }
            if request.write && !costs.past_cache(request) {
                let bytes = costs.synced_bytes(request) * stored_all;
                self.synced_bytes += bytes;
                if costs.is_sent_on(request) {
                    self.sent.bytes += bytes;
                    self.sent.last_bytes = self.sent.last_bytes.max(request.bytes as f64 * first_piece(request));
                }
            }
            self.file_servers_ns += stored.server_ns * stored_all;
            *self.serving.entry(node).or_default() += stored.server_ns * stored_rounds;
            *self.disks.entry(node).or_default() += stored.disk_ns * stored_rounds;
            self.all_disks_ns += stored.disk_ns * stored_all;
            *self.tails.entry(node).or_default() += stored.tail_ns * stored_rounds;
            self.all_tails_ns += stored.tail_ns * stored_all;
            self.last_ns = self.last_ns.max(stored.last_ns);
            pieces += stored.pieces * stored_rounds;
        }
        *self.links.entry(node).or_default() += wire * round.rounds;
        self.asked = self.asked.max(pieces.min(round.servers));
    }

    /// That a rank exchanges for so long before its storage has anything to do, or after that; the first piece of what it
    /// then writes takes so long.
    pub(super) fn exchanges_alone(&mut self, ns: f64, piece_ns: f64) {
        let least = |known: Option<f64>, ns: f64| known.map_or(ns, |least| least.min(ns));
        self.alone_ns = Some(least(self.alone_ns, ns));
        self.sent.begun_ns = Some(least(self.sent.begun_ns, ns + piece_ns));
    }

    /// Ends the rounds of arrays that are alike.
    pub(super) fn end_class(&mut self) {
        let peaks = |loads: &mut BTreeMap<(usize, u32), f64>| {
            let mut peaks: BTreeMap<usize, f64> = BTreeMap::new();
            for ((number, _), ns) in std::mem::take(loads) {
                let peak = peaks.entry(number).or_default();
                *peak = peak.max(ns);
            }
            peaks.into_values().sum::<f64>()
        };
        self.client_ns += peaks(&mut self.clients);
        self.client_link_ns += peaks(&mut self.client_links);
    }

    /// That ranks that handle storage need so long, and wait for the locks of files in a part of it.
    pub(super) fn servers_take(&mut self, ns: f64, waits_ns: f64) {
        (self.server_ns, self.server_waits_ns) = (ns, waits_ns);
    }

    /// How long the busiest of each kind is busy, in the order of [`Resource::ALL`] \[ns\].
    pub(super) fn all(&self, costs: &Costs<'_>) -> [f64; Resource::ALL.len()] {
        let fullest = |of: &BTreeMap<u32, f64>| of.values().copied().fold(0.0, f64::max);
        // Who makes files beside others waits for them.
        let makers: f64 = self.chunks.values().map(|made| made.1).sum();
        let names_ns = self.names_ns * if makers > 1.0 { costs.beside_others() } else { 1.0 };
        let file = self.files.values().copied().fold(names_ns, f64::max);
        let mut all = [0.0; Resource::ALL.len()];
        all[Resource::Server as usize] = self.server_ns;
        all[Resource::Client as usize] = self.client_ns;
        all[Resource::Cores as usize] = self.cores_ns(costs);
        all[Resource::Link as usize] = fullest(&self.links).max(self.client_link_ns);
        all[Resource::File as usize] = file;
        all[Resource::FileServer as usize] = self.file_server_ns(costs);
        all[Resource::Disk as usize] = self.disk_ns(costs);
        all
    }

    /// How long the busiest file server works \[ns\].
    fn file_server_ns(&self, costs: &Costs<'_>) -> f64 {
        if costs.profile().storage.servers.layout != Layout::Local || self.file_servers_ns == 0.0 {
            return self.file_servers_ns;
        }
        let even = self.file_servers_ns / costs.nodes();
        let besides = |node: &u32| self.serving_besides.get(node).copied().unwrap_or(0.0);
        self.serving.iter().map(|(node, ns)| ns.max(even) + besides(node)).fold(0.0, f64::max)
    }

    /// How long the busiest disk works \[ns\].
    fn disk_ns(&self, costs: &Costs<'_>) -> f64 {
        busiest_disk(costs, &self.disks, self.all_disks_ns)
    }

    /// What of that may go on after the data have left, because caches hold so much \[ns\].
    fn later_ns(&self, costs: &Costs<'_>) -> f64 {
        let storage = &costs.profile().storage;
        match (&storage.cache, &storage.disk) {
            (
                Cache::WriteBehind { limit_bytes, .. },
                Disk::Rated { write_rate, .. } | Disk::Nvme { write_rate, .. },
            ) if costs.write && costs.measured().is_none() => {
                *limit_bytes as f64 * 1e9 / (write_rate * f64::from(storage.servers.disks))
            }
            _ => 0.0,
        }
    }

    /// The busiest of all while data move, and for how long \[ns\].
    pub(super) fn busiest(&self, costs: &Costs<'_>) -> (Resource, f64) {
        let mut all = self.all(costs);
        let disk = &mut all[Resource::Disk as usize];
        let later = self.later_ns(costs).max(busiest_disk(costs, &self.tails, self.all_tails_ns));
        *disk = (*disk - later).max(0.0);
        // Nobody asks storage for anything before the first exchange that ends, or after the last that begins. File servers
        // that are ranks have it in their own time.
        let alone_ns = self.alone_ns.unwrap_or(0.0).max(self.begun_ns(costs));
        for storage in [Resource::File, Resource::Disk] {
            let ns = &mut all[storage as usize];
            *ns += if *ns > 0.0 { alone_ns } else { 0.0 };
        }
        // Of equals the first, which is nearest to the user.
        let mut busiest = Resource::Server;
        for resource in Resource::ALL {
            if all[resource as usize] > all[busiest as usize] {
                busiest = resource;
            }
        }
        // A rank that waits for the lock of a file is not itself what all wait for.
        let ns = all[busiest as usize];
        if busiest == Resource::Server && all[Resource::File as usize] > 0.9 * ns {
            busiest = Resource::File;
        }
        (busiest, ns.max(self.crowded_ns(costs)))
    }

    /// How long the first exchange of all takes at least, where they share cores \[ns\].
    fn begun_ns(&self, costs: &Costs<'_>) -> f64 {
        if costs.crowded() { self.first_ns / costs.nodes() / costs.cores() } else { 0.0 }
    }

    /// How long it takes where ranks share cores: a rank that handles storage waits for a core while others have it, and
    /// others wait for that rank, the more the nearer both come to being busy all the time. Measured with 8 ranks on 2
    /// cores: 2 servers took 1.2 times as long as 8, which need the cores as long, and one 1.5 times. Those who wait for the lock
    /// of a file are not at work: what lets one in at a time is not made slower by others.
    fn crowded_ns(&self, costs: &Costs<'_>) -> f64 {
        if costs.measured().is_none() || !costs.crowded() {
            return 0.0;
        }
        let at_work_ns = (self.cores_ns(costs) - self.spun_ns / costs.nodes() / costs.cores()).max(0.0);
        (self.server_ns - self.server_waits_ns).hypot(at_work_ns)
    }

    /// How long the cores of the busiest node are busy \[ns\].
    fn cores_ns(&self, costs: &Costs<'_>) -> f64 {
        let fullest = self.cores.values().copied().fold(0.0, f64::max);
        (fullest / costs.cores()).max(self.all_cores_ns / costs.nodes() / costs.cores())
    }

    /// How long it takes until all is durable, after data have moved for so long, and something else was done \[ns\].
    pub(super) fn sync_ns(&self, costs: &Costs<'_>, moving_ns: f64, between_ns: f64) -> f64 {
        if costs.measured().is_some() {
            // Each rank asks for its own, beside the others, but the journal of their node is one.
            let most = self.chunks.values().map(|made| made.0).fold(0.0, f64::max);
            let files = (self.chunks_of_all / costs.nodes()).max(most) + self.files.len() as f64;
            let beside_ns = moving_ns - self.sent.begun_ns.unwrap_or(0.0).max(self.begun_ns(costs));
            let Sent { bytes, last_bytes, .. } = self.sent;
            // What all write may be less than it seems, and so less than a piece.
            let last_bytes = last_bytes.min(bytes);
            let sent = [(bytes - last_bytes, beside_ns.max(0.0)), (last_bytes, between_ns)];
            return costs.sync_ns(files, most, self.synced_bytes, sent);
        }
        // The last request is waited for in any case.
        let tails = busiest_disk(costs, &self.tails, self.all_tails_ns);
        let behind = (self.disk_ns(costs) - tails - moving_ns).max(0.0) + tails;
        let last = costs.flushing_ns(self.asked, self.last_ns);
        behind.max(last)
    }
}

/// The share of a request that is sent to the disk first.
pub(super) fn first_piece(request: &Request) -> f64 {
    if request.gaps == 0 { (SENT_BYTES / request.bytes.max(1) as f64).min(1.0) } else { 1.0 }
}

/// Of disks that are busy so long, by node and all together, the busiest \[ns\].
fn busiest_disk(costs: &Costs<'_>, by_node: &BTreeMap<u32, f64>, all: f64) -> f64 {
    let servers = &costs.profile().storage.servers;
    match servers.layout {
        Layout::Apart { .. } | Layout::Ranks { .. } => all,
        Layout::Local => {
            let fullest = by_node.values().copied().fold(0.0, f64::max);
            fullest.max(all / costs.nodes()) / f64::from(servers.disks)
        }
    }
}
