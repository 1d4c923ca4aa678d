//! An explanation for people.

use super::{Explanation, Requests, Round, Share};
use crate::choose::{evenly, unit_of};
use crate::price::{Phase, Resource};
use crate::strategies::Servers;
use crate::strategy::{Parameters, Role, Sequence};
use crate::transfer::{Direction, Exchange, TransferArray};
use hyperslab_layout::quantity::{InUnit, bytes};
use hyperslab_layout::tuple;
use std::fmt::{self, Display, Formatter};

/// Arrays and servers that are named one by one.
const NAMED_MAX: usize = 8;

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.asked(f)?;
        self.chosen(f)?;
        self.rounds(f)?;
        self.requests(f)?;
        self.shares(f)
    }
}

/// A number and what it counts, which ends with an s unless it is one.
fn some(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn list<T: Display>(all: &[T]) -> String {
    let mut told: Vec<String> = all.iter().take(NAMED_MAX).map(T::to_string).collect();
    if all.len() > NAMED_MAX {
        told.push(format!("... and {} more", all.len() - NAMED_MAX));
    }
    told.join(", ")
}

impl Explanation {
    fn writes(&self) -> bool {
        self.transfer.direction == Direction::Write
    }

    fn asked(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let asks = &self.transfer.asks;
        let (verb, ranks) = (if self.writes() { "write" } else { "read" }, u64::from(self.transfer.ranks));
        let (arrays, stored) = (some(asks.len() as u64, "array"), self.transfer.stored_bytes() as f64);
        writeln!(f, "{verb} {arrays}, {} in storage, {}", bytes(stored), some(ranks, "rank"))?;
        asks.iter().take(NAMED_MAX).try_for_each(|ask| writeln!(f, "  {}", Asked(ask)))?;
        if asks.len() > NAMED_MAX {
            writeln!(f, "  ... and {} more arrays", asks.len() - NAMED_MAX)?;
        }
        Ok(())
    }

    fn chosen(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let p = &self.choice.parameters;
        writeln!(f, "\nstrategy {}", p.strategy)?;
        writeln!(f, "  why: {}", self.choice.why)?;
        writeln!(f, "  servers: {}", if self.all_serve() { "all ranks".into() } else { list(&self.server_list()) })?;
        if p.strategy.spec().exchanges.len() > 1 {
            let between = if p.exchange == Exchange::All { "all ranks" } else { "ranks that share extents" };
            writeln!(f, "  data cross between {between}")?;
        }
        if !p.order.is_empty() && p.strategy.order() == Sequence::Disk {
            let runs: Vec<String> = p.order.iter().map(|(first, count)| format!("{first}+{count}")).collect();
            writeln!(f, "  order of groups on the disk (first+count): {}", list(&runs))?;
        }
        writeln!(
            f,
            "  buffers: {} of a server, subchunks of at most {}, at most {} on a rank",
            some(if p.role() == Role::Root { 1 } else { p.slots.into() }, "slot"),
            bytes(p.subchunk_bytes as f64),
            bytes(p.buffer_bytes_max as f64)
        )?;
        self.priced(f)?;
        writeln!(f, "other strategies")?;
        for (strategy, infeasible) in &self.others {
            match infeasible {
                None => writeln!(f, "  {strategy}: possible")?,
                Some(no) => writeln!(f, "  {strategy}: not possible: {}", no.reason)?,
            }
        }
        Ok(())
    }

    /// What was compared.
    fn priced(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let price = &self.choice.price;
        let all = &self.choice.candidates;
        // All times of an explanation are told in one unit, also those in the reason.
        let unit = unit_of(price);
        let seconds = |ns: f64| unit.tell(ns / 1e9);
        let room = InUnit::of_bytes(all.iter().take(NAMED_MAX).map(|one| one.parameters.subchunk_bytes as f64));
        let phase = |phase: Phase| format!("{} {}", phase.name(), seconds(price.phase(phase)));
        let phases: Vec<String> = Phase::ALL.into_iter().map(phase).collect();
        writeln!(f, "  predicted: {} = {}", seconds(price.ns()), phases.join(" + "))?;
        if price.later_ns > 0.0 {
            writeln!(
                f,
                "  to be durable later, when the file is closed or the step published: {}",
                seconds(price.later_ns)
            )?;
        }
        let busy = Resource::ALL.into_iter().filter(|&resource| price.resources[resource as usize] > 0.0);
        let busy: Vec<String> =
            busy.map(|resource| format!("{resource} {}", seconds(price.resources[resource as usize]))).collect();
        writeln!(f, "  busy: {}", busy.join(", "))?;
        writeln!(f, "candidates, the cheapest first: by what is predicted, and by new memory, which is touched once")?;
        writeln!(
            f,
            "  {:<16} {:>7} {:>10} {:>5} {:>10} {:>10} {:>10} {:>10} {:>10}  bound by",
            "strategy", "servers", "subchunk", "slots", "predicted", "exchange", "storage", "sync", "new memory"
        )?;
        for one in all.iter().take(NAMED_MAX) {
            let (p, price) = (&one.parameters, &one.price);
            let servers = match Servers::of(p, self.transfer.ranks) {
                Servers::All(_) if p.role() == Role::Holders => "sharers".into(),
                Servers::All(_) => "all".into(),
                Servers::Listed(list) => list.len().to_string(),
            };
            let [exchange, storage] = [Phase::Exchange, Phase::Storage].map(|phase| seconds(price.phase(phase)));
            // Candidates are compared by all that they cost, now and later.
            let sync = seconds(price.phase(Phase::Sync) + price.later_ns);
            let mark = if *p == self.choice.parameters { "*" } else { " " };
            writeln!(
                f,
                "{mark} {:<16} {servers:>7} {:>10} {:>5} {:>10} {exchange:>10} {storage:>10} {sync:>10} {:>10}  {}{}",
                p.strategy.name(),
                room.tell(p.subchunk_bytes as f64),
                p.slots,
                seconds(price.whole_ns()),
                seconds(price.first_ns),
                price.bottleneck,
                elsewhere(p, self.transfer.ranks)
            )?;
        }
        if all.len() > NAMED_MAX {
            writeln!(f, "  ... and {} more", all.len() - NAMED_MAX)?;
        }
        Ok(())
    }

    fn all_serve(&self) -> bool {
        matches!(Servers::of(&self.choice.parameters, self.transfer.ranks), Servers::All(_))
    }

    fn server_list(&self) -> Vec<u32> {
        Servers::of(&self.choice.parameters, self.transfer.ranks).iter().collect()
    }

    fn rounds(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rank = if self.writes() { "from rank" } else { "to rank" };
        writeln!(f, "\n{:>7} {:>8} {rank:>10} {:>8} {:>13} {:>15}", "round", "server", "pieces", "elements", "bytes")?;
        for Round { round, server, peers, more } in &self.rounds {
            for peer in peers {
                let own = if peer.rank == *server { "  its own" } else { "" };
                let c = peer.counts;
                let (pieces, elements, bytes) = (c.pieces, c.elements, c.bytes);
                writeln!(f, "{round:>7} {server:>8} {:>10} {pieces:>8} {elements:>13} {bytes:>15}{own}", peer.rank)?;
            }
            let (ranks, c) = *more;
            if ranks > 0 {
                let (pieces, elements, bytes) = (c.pieces, c.elements, c.bytes);
                let told = format!("{ranks} more");
                writeln!(f, "{round:>7} {server:>8} {told:>10} {pieces:>8} {elements:>13} {bytes:>15}")?;
            }
        }
        if self.more_rounds > 0 {
            writeln!(f, "  ... and {}", some(self.more_rounds, "more round"))?;
        }
        Ok(())
    }

    fn requests(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:>7} {:>8} {:>8} {:>10} {:>15} {:>8}",
            "server", "reads", "writes", "extents", "bytes", "objects"
        )?;
        for Requests { rank, reads, writes, extents, bytes, objects, cut } in &self.servers {
            writeln!(f, "{rank:>7} {reads:>8} {writes:>8} {extents:>10} {bytes:>15} {objects:>8}{}", beginning(*cut))?;
        }
        if self.more_servers > 0 {
            writeln!(f, "  ... and {}", some(self.more_servers, "more server"))?;
        }
        Ok(())
    }

    fn shares(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:>7} {:>8} {:>23} {:>23} {:>23}",
            "", "", "messages and bytes", "messages and bytes", "buffers"
        )?;
        writeln!(f, "{:>7} {:>8} {:>23} {:>23} {:>23}", "rank", "steps", "sent", "received", "slots x bytes")?;
        for Share { rank, steps, cut, sent, received, slots, slot_bytes } in &self.ranks {
            let messages = |(number, counts): &(u64, super::Counts)| format!("{number} {:>15}", counts.bytes);
            let (sent, received, buffers) = (messages(sent), messages(received), format!("{slots} x {slot_bytes}"));
            writeln!(f, "{rank:>7} {steps:>8} {sent:>23} {received:>23} {buffers:>23}{}", beginning(*cut))?;
        }
        let more = u64::from(self.transfer.ranks) - self.ranks.len() as u64;
        if more > 0 {
            writeln!(f, "  ... and {}", some(more, "more rank"))?;
        }
        Ok(())
    }
}

/// What to say of a rank of whose program only the beginning was counted.
fn beginning(cut: bool) -> &'static str {
    if cut { "  and more, not counted" } else { "" }
}

/// An array of the transfer on one line.
struct Asked<'a>(&'a TransferArray);

impl Display for Asked<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let TransferArray { name, section, spread, memory, stored } = self.0;
        let natural: Vec<usize> = (0..stored.shape.len()).collect();
        let order = match stored.order() {
            order if *order == natural => "row-major".to_string(),
            order if order.iter().rev().eq(&natural) => "column-major".to_string(),
            order => format!("dimensions {order} from the slowest to the fastest", order = tuple(order)),
        };
        let place = match (stored.object(), stored.chunk()) {
            (Some((object, offset)), _) => format!("file '{object}' from byte {offset}, {order}"),
            (None, chunk) => {
                let encoded = match () {
                    () if stored.codec().is_some() => ", encoded",
                    () if stored.has_trailer() => ", with checksums",
                    () if stored.summed_bytes().is_some() => ", with checksums, in parts",
                    () => "",
                };
                let (new, chunk) = (if stored.makes_objects() { "new " } else { "" }, chunk.unwrap_or_default());
                format!("{new}chunks {chunk}, {order}{encoded}", chunk = tuple(chunk))
            }
        };
        let (memory, element, shape) = (memory.to_string(), stored.element.to_string(), &stored.shape);
        let element = if memory == element { element } else { format!("{element} ({memory} in memory)") };
        write!(f, "{name}{section} of {shape} {element} in {place}: {spread}", shape = tuple(shape))
    }
}

/// Which ranks serve, of few, where these are not at equal distances.
fn elsewhere(parameters: &Parameters, ranks: u32) -> String {
    match Servers::of(parameters, ranks) {
        Servers::Listed(list) if list.len() <= NAMED_MAX && *list != *evenly(list.len() as u32, ranks) => {
            let names: Vec<String> = list.iter().map(u32::to_string).collect();
            format!(", by {}", names.join(", "))
        }
        _ => String::new(),
    }
}
