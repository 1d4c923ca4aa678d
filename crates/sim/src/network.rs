//! The wire: which links a message takes, and when its bytes are where.
//!
//! Links are reserved in the order in which messages leave. Bytes flow on as they come (cut-through), so that a message on
//! an idle way needs the latency and its length over the slowest link. A torus is wormhole-routed: a message holds all
//! links of its way, first along its row, then along its column, from when the last of them is free.

use crate::kernel::{Resource, whole_ns};
use hyperslab_plan::profile::{Network as Wire, Topology};

/// Messages up to this length pass between others, without being waited for or waiting: questions, answers, signals \[B\].
const SHORT_BYTES: u64 = 256;

/// When a message left its node, and when it is all there \[ns\].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Passage {
    pub(crate) left_ns: u64,
    pub(crate) arrived_ns: u64,
}

/// Links and their state.
pub(crate) struct Network {
    wire: Wire,
    /// Rate of each node's link \[B/s\].
    rates: Vec<f64>,
    out: Vec<Resource>,
    into: Vec<Resource>,
    /// Of a fat tree: links above each leaf, up and down. Of a torus: from each place in four directions. Of Ethernet:
    /// the medium.
    shared: Vec<Resource>,
    /// Whether messages take no time.
    instant: bool,
    /// Bytes that crossed.
    pub(crate) bytes: u64,
}

impl Network {
    /// A network of nodes whose links have these rates \[B/s\].
    pub(crate) fn new(wire: &Wire, rates: Vec<f64>, instant: bool) -> Network {
        let nodes = rates.len();
        let shared = match &wire.topology {
            Topology::Switch => 0,
            Topology::Ethernet => 1,
            Topology::FatTree { nodes_per_leaf, .. } => nodes.div_ceil(*nodes_per_leaf as usize) * 2,
            Topology::Torus { shape, .. } => shape.0 as usize * shape.1 as usize * 4,
        };
        let links = |count| vec![Resource::default(); count];
        Network {
            wire: wire.clone(),
            rates,
            out: links(nodes),
            into: links(nodes),
            shared: links(shared),
            instant,
            bytes: 0,
        }
    }

    /// When a short message that leaves now arrives; `None` for others.
    pub(crate) fn short(&mut self, now_ns: u64, from: usize, to: usize, bytes: u64) -> Option<u64> {
        if self.instant || from == to || bytes > SHORT_BYTES {
            return None;
        }
        self.bytes += bytes;
        let routers = match self.wire.topology {
            Topology::Torus { shape, router_ns } => router_ns * torus_way(shape, from, to).len() as f64,
            _ => 0.0,
        };
        let rate = self.rates[from].min(self.rates[to]);
        Some(now_ns + whole_ns(self.wire.latency_ns + routers + bytes as f64 * 1e9 / rate))
    }

    /// Sends bytes from one node to another.
    pub(crate) fn send(&mut self, now_ns: u64, from: usize, to: usize, bytes: u64) -> Passage {
        if from == to {
            return Passage { left_ns: now_ns, arrived_ns: now_ns };
        }
        self.bytes += bytes;
        if self.instant {
            return Passage { left_ns: now_ns, arrived_ns: now_ns };
        }
        let time = |rate: f64| bytes as f64 * 1e9 / rate;
        let latency = whole_ns(self.wire.latency_ns);
        match self.wire.topology.clone() {
            Topology::Torus { shape, router_ns } => {
                let way = torus_way(shape, from, to);
                let held = time(self.rates[from].min(self.rates[to])) + router_ns * way.len() as f64;
                let links = [&self.out[from], &self.into[to]].into_iter().chain(way.iter().map(|&l| &self.shared[l]));
                let start = links.map(Resource::free_ns).max().unwrap_or(0).max(now_ns);
                for link in way {
                    self.shared[link].take(start, held);
                }
                self.out[from].take(start, held);
                let end = self.into[to].take(start, held);
                Passage { left_ns: end, arrived_ns: end + latency }
            }
            Topology::Ethernet => {
                let end = self.shared[0].take(now_ns, time(self.wire.link_rate));
                Passage { left_ns: end, arrived_ns: end + latency }
            }
            Topology::Switch => self.through(now_ns, (from, to), bytes, &[]),
            Topology::FatTree { nodes_per_leaf, taper } => {
                let (a, b) = (from / nodes_per_leaf as usize, to / nodes_per_leaf as usize);
                let above = self.wire.link_rate * f64::from(nodes_per_leaf) * taper;
                let way = [(2 * a, above), (2 * b + 1, above)];
                self.through(now_ns, (from, to), bytes, if a == b { &[] } else { &way })
            }
        }
    }

    /// Along the sender's link, links in between with their rates, and the receiver's link, as the bytes come.
    fn through(&mut self, now_ns: u64, (from, to): (usize, usize), bytes: u64, between: &[(usize, f64)]) -> Passage {
        let time = |rate: f64| bytes as f64 * 1e9 / rate;
        let left = self.out[from].take(now_ns, time(self.rates[from]));
        // The first byte is ahead of the last by as long as the link took.
        let mut first = left - whole_ns(time(self.rates[from])).min(left);
        let mut last = left;
        for &(link, rate) in between {
            let end = self.shared[link].take(first, time(rate));
            (first, last) = (end - whole_ns(time(rate)).min(end), last.max(end));
        }
        first += whole_ns(self.wire.latency_ns);
        last += whole_ns(self.wire.latency_ns);
        let end = self.into[to].take(first, time(self.rates[to]));
        Passage { left_ns: left, arrived_ns: last.max(end) }
    }

    /// How long the busiest link was at work, and its name.
    pub(crate) fn busiest(&self) -> (u64, String) {
        let named =
            |kind: &'static str| move |(number, link): (usize, &Resource)| (link.busy_ns, format!("{kind} {number}"));
        let out = self.out.iter().enumerate().map(named("link out of node"));
        let into = self.into.iter().enumerate().map(named("link into node"));
        let shared = self.shared.iter().enumerate().map(named("shared link"));
        out.chain(into).chain(shared).max_by_key(|link| link.0).unwrap_or_default()
    }
}

/// The links of the shortest way in a torus, along the row first: four of each place, east, west, south, north.
fn torus_way((rows, columns): (u32, u32), from: usize, to: usize) -> Vec<usize> {
    let place = |node: usize| ((node as u32 / columns) % rows, node as u32 % columns);
    let ((mut row, mut column), (to_row, to_column)) = (place(from), place(to));
    let mut way = Vec::new();
    let mut step = |at: &mut u32, to: u32, size: u32, (forth, back): (u32, u32), number: &dyn Fn(u32) -> u32| {
        let ahead = (to + size - *at) % size;
        let forwards = ahead <= size - ahead;
        while *at != to {
            way.push((number(*at) * 4 + if forwards { forth } else { back }) as usize);
            *at = (*at + if forwards { 1 } else { size - 1 }) % size;
        }
    };
    step(&mut column, to_column, columns, (0, 1), &|column| row * columns + column);
    step(&mut row, to_row, rows, (2, 3), &|row| row * columns + to_column);
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(topology: Topology, nodes: usize) -> Network {
        let wire = Wire { topology, latency_ns: 1000.0, link_rate: 1e9 };
        Network::new(&wire, vec![1e9; nodes], false)
    }

    #[test]
    fn a_message_on_an_idle_way_needs_latency_and_length() {
        for topology in [
            Topology::Switch,
            Topology::Ethernet,
            Topology::FatTree { nodes_per_leaf: 2, taper: 1.0 },
            Topology::Torus { shape: (2, 2), router_ns: 0.0 },
        ] {
            let mut network = network(topology.clone(), 4);
            assert_eq!(network.send(7, 0, 3, 5000).arrived_ns, 7 + 5000 + 1000, "{topology:?}");
        }
    }

    #[test]
    fn only_what_is_shared_is_waited_for() {
        let ends = |topology, pairs: [(usize, usize); 2]| {
            let mut network = network(topology, 16);
            pairs.map(|(from, to)| network.send(0, from, to, 1000).arrived_ns)
        };
        assert_eq!(ends(Topology::Switch, [(0, 1), (2, 3)]), [2000, 2000]);
        assert_eq!(ends(Topology::Switch, [(0, 1), (2, 1)]), [2000, 3000]);
        assert_eq!(ends(Topology::Ethernet, [(0, 1), (2, 3)]), [2000, 3000]);
        let tree = Topology::FatTree { nodes_per_leaf: 4, taper: 0.25 };
        assert_eq!(ends(tree.clone(), [(0, 1), (2, 3)]), [2000, 2000]);
        assert_eq!(ends(tree, [(0, 4), (1, 5)]), [2000, 3000]);
        let torus = Topology::Torus { shape: (4, 4), router_ns: 0.0 };
        assert_eq!(ends(torus.clone(), [(0, 2), (1, 3)]), [2000, 3000]);
        assert_eq!(ends(torus, [(0, 2), (4, 6)]), [2000, 2000]);
    }

    #[test]
    fn the_shorter_way_round_a_torus() {
        assert_eq!(torus_way((6, 6), 0, 5), [1]);
        // One east from place 0, then two south from places 1 and 7.
        assert_eq!(torus_way((6, 6), 0, 13), [0, 4 + 2, 28 + 2]);
        assert!(torus_way((6, 6), 9, 9).is_empty());
    }
}
