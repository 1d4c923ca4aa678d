//! Who gets which of the elements that were found, and how they get there.

use super::asked::{ResultShare, SelectReport};
use super::found::{Arrived, Matches, RunOf};
use super::grid::{GridUnit, SelectGrid};
use super::source::{Evaluated, SelectSource};
use crate::comm::Comm;
use hyperslab_collective::{Compared, Packets};
use hyperslab_filter::Typed;
use hyperslab_layout::mesh::unravel;
use hyperslab_layout::{Distribution, tuple};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Reader, Writer};
use std::ops::Range;

/// Bytes that were found which are gathered before they leave, where they wait for all ranks to have counted \[B\].
const GATHERED_BYTES: u64 = 8 << 20;

/// An element of a run: where the run begins, and how many elements that were found come before it in the run.
type Bound = (u64, u64);

/// The place behind all elements.
const END: Bound = (u64::MAX, u64::MAX);

/// What takes elements of a block that are for one rank.
type Taking<'a> = dyn FnMut(u32, &[u32]) + 'a;

/// For which rank an element is.
pub(crate) struct MatchOwners {
    by: By,
    ranks: u32,
    /// Elements of a block, by the rank that they are for.
    groups: Vec<Vec<u32>>,
}

enum By {
    /// It stays where it was found.
    Finder(u32),
    /// What each index of a unit adds to the number of the rank, dimension by dimension.
    Distribution(Box<Distribution>, Vec<Vec<u32>>),
    Owner(Box<Evaluated>),
}

impl MatchOwners {
    pub(crate) fn of(
        share: &ResultShare,
        owner: Option<Typed>,
        shape: &[u64],
        ranks: u32,
    ) -> Result<MatchOwners, Fault> {
        let by = match (share, owner) {
            (ResultShare::Distribution(distribution), _) => {
                let wrong = |text: &str| Err(Fault::new(FaultKind::Invalid, text));
                if distribution.shape() != shape {
                    let fault = Fault::new(FaultKind::Invalid, "the distribution is of another grid");
                    return Err(fault.expected(
                        format!("shape {}", tuple(shape)),
                        format!("shape {}", tuple(distribution.shape())),
                    ));
                }
                if distribution.ranks() > u64::from(ranks) {
                    return wrong("the distribution is over more ranks than the communicator has");
                }
                if distribution.replication() > 1 {
                    return wrong("the distribution gives elements to several ranks, and each is selected once");
                }
                By::Distribution(Box::new(distribution.clone()), Vec::new())
            }
            (_, Some(owner)) => By::Owner(Box::new(Evaluated::of(&owner))),
            (_, None) => By::Finder(u32::MAX),
        };
        Ok(MatchOwners { by, ranks, groups: vec![Vec::new(); ranks as usize] })
    }

    /// The same on this rank.
    pub(crate) fn on(mut self, rank: u32) -> MatchOwners {
        if let By::Finder(finder) = &mut self.by {
            *finder = rank;
        }
        self
    }

    /// The next elements are of this unit.
    pub(crate) fn enter(&mut self, unit: &GridUnit) {
        let By::Distribution(distribution, tables) = &mut self.by else { return };
        tables.clear();
        let mesh = distribution.mesh();
        for (dim, (&low, &extent)) in unit.origin.iter().zip(&unit.shape).enumerate() {
            let mut table = vec![0; extent as usize];
            if let Some(along) = distribution.over()[dim] {
                let stride: u64 = mesh[along + 1..].iter().product();
                for coordinate in 0..mesh[along] {
                    let owned = distribution.owned_dim(dim, coordinate).within(low, low + extent);
                    owned.iter().for_each(|index| table[(index - low) as usize] = (coordinate * stride) as u32);
                }
            }
            tables.push(table);
        }
    }

    /// Gives each rank those of the elements of a block of a unit that are for it.
    pub(crate) fn each(
        &mut self,
        source: &SelectSource<'_>,
        (unit, data): (&GridUnit, &[&[u8]]),
        ((first, count), elements): ((usize, usize), &[u32]),
        scratch: &mut Vec<Vec<u8>>,
        take: &mut Taking<'_>,
    ) -> Result<(), Fault> {
        let groups = &mut self.groups;
        match &mut self.by {
            By::Finder(rank) => {
                take(*rank, elements);
                return Ok(());
            }
            By::Distribution(_, tables) => {
                for &element in elements {
                    let mut number = (first as u64) + u64::from(element);
                    let mut rank = 0;
                    for (table, &extent) in tables.iter().zip(&unit.shape).rev() {
                        rank += table[(number % extent) as usize];
                        number /= extent;
                    }
                    groups[rank as usize].push(element);
                }
            }
            By::Owner(owner) => {
                let lane = owner.values(source, (unit, data), (first, count), scratch)?;
                for &element in elements {
                    let value = lane.integer(element as usize);
                    let rank = value.and_then(|value| u32::try_from(value).ok()).filter(|&rank| rank < self.ranks);
                    let Some(rank) = rank else {
                        groups.iter_mut().for_each(Vec::clear);
                        return Err(no_rank(unit, first as u64 + u64::from(element), value, self.ranks));
                    };
                    groups[rank as usize].push(element);
                }
            }
        }
        for (rank, group) in groups.iter_mut().enumerate().filter(|(_, group)| !group.is_empty()) {
            take(rank as u32, group);
            group.clear();
        }
        Ok(())
    }
}

fn no_rank(unit: &GridUnit, element: u64, value: Option<i64>, ranks: u32) -> Fault {
    let at: Vec<u64> = unravel(element, &unit.shape).iter().zip(&unit.origin).map(|(at, low)| at + low).collect();
    let value = value.map_or("more than any rank".to_string(), |value| value.to_string());
    let text = format!("the owner of element {} is {value}, and ranks are 0 to {}", tuple(&at), ranks - 1);
    Fault::new(FaultKind::Invalid, text).hint("bring it into range: `owner % ranks`, or min(owner, ranks - 1)")
}

/// Sends what was found to the ranks that it is for, and takes what is for this one, while so many other bytes are in buffers.
/// Collective.
pub(crate) fn collect(
    comm: &Comm,
    what: &str,
    packets: Result<Vec<(u32, Matches)>, Fault>,
    sizes: &[usize],
    (report, beside): (&mut SelectReport, u64),
) -> Result<Vec<Arrived>, Fault> {
    let found: u64 = packets.iter().flatten().map(|(_, found)| found.bytes()).sum();
    let packets: Result<Packets, Fault> =
        packets.map(|packets| packets.into_iter().map(|(to, found)| (to, found.to_bytes())).collect());
    let bytes = |packet: &(u32, Vec<u8>)| packet.1.len() as u64;
    let away = packets.iter().flatten().filter(|packet| packet.0 != comm.rank()).map(bytes);
    report.sent_bytes += away.sum::<u64>();
    let encoded: u64 = packets.iter().flatten().map(bytes).sum();
    report.buffer_bytes = report.buffer_bytes.max(beside + found + encoded);
    let delivered = comm.deliver(what, Compared::default(), packets)?;
    let arrived = delivered.into_iter().map(|(from, bytes)| {
        Arrived::of(bytes, sizes).ok_or_else(|| {
            Fault::new(FaultKind::Peer, format!("what rank {from} selected cannot be decoded")).context(what)
        })
    });
    arrived.collect()
}

/// Lets rank 0 see what each rank has to say, and tells all what it makes of that. Collective.
pub(crate) fn concluded(
    comm: &Comm,
    what: &str,
    mine: Result<Vec<u8>, Fault>,
    conclude: impl FnOnce(Packets) -> Result<Vec<u8>, Fault>,
) -> Result<Vec<u8>, Fault> {
    let all = comm.deliver(what, Compared::default(), mine.map(|mine| vec![(0, mine)]))?;
    let question = Question { what: what.to_string(), ..Question::default() };
    comm.agree(question, || conclude(all))
}

/// That a rank has sent something else than it should.
pub(crate) fn not_understood(what: &str) -> Fault {
    Fault::new(FaultKind::Peer, "what ranks have counted cannot be decoded").context(what)
}

/// How many elements all ranks have found. Collective.
pub(crate) fn total(comm: &Comm, what: &str, count: u64) -> Result<u64, Fault> {
    let told = concluded(comm, what, Ok(Writer::default().number(count).0), |all| {
        let counts = all.iter().map(|(_, bytes)| Reader::new(bytes).number());
        let total: Option<u64> = counts.sum();
        Ok(Writer::default().number(total.ok_or_else(|| not_understood(what))?).0)
    })?;
    Reader::new(&told).number().ok_or_else(|| not_understood(what))
}

/// Shares evenly what ranks have found, in file order, and takes the share of this one; with how many there are in all. Collective.
pub(crate) fn evenly(
    comm: &Comm,
    what: &str,
    grid: &SelectGrid,
    held: Result<Vec<Matches>, Fault>,
    sizes: &[usize],
    report: &mut SelectReport,
) -> Result<(Vec<Arrived>, u64), Fault> {
    let held = held.map(gathered);
    let mine = held.as_ref().map(|held| said(grid, held)).map_err(Clone::clone);
    let told = concluded(comm, what, mine, |all| bounds(grid, all, comm.size()).ok_or_else(|| not_understood(what)))?;
    let (total, rounds, bounds) = decoded(&told).ok_or_else(|| not_understood(what))?;
    let mut arrived = Vec::new();
    let mut held = held.unwrap_or_default().into_iter();
    // In the whole file, what a rank has found lies in one stretch.
    let (in_order, mut before) = (grid.is_in_order(), None);
    for _ in 0..rounds {
        let found = held.next().unwrap_or_default();
        let mut packets: Vec<(u32, Matches)> = Vec::new();
        let mut element = 0;
        for run in &found.runs {
            let start = grid.run_start(run.number);
            let (start, mut at) = if in_order { *before.get_or_insert((start, 0)) } else { (start, 0) };
            let end = at + run.count;
            while at < end {
                let to = bounds.partition_point(|bound| *bound <= (start, at)) as u32;
                let next =
                    bounds.get(to as usize).filter(|bound| bound.0 == start).map_or(end, |bound| bound.1.min(end));
                if packets.last().is_none_or(|packet| packet.0 != to) {
                    let known = packets.iter().position(|packet| packet.0 == to);
                    let packet = known.map_or_else(|| (to, Matches::new(sizes.len())), |known| packets.remove(known));
                    packets.push(packet);
                }
                if let Some((_, packet)) = packets.last_mut() {
                    packet.append(&found, *run, element..element + (next - at), sizes);
                }
                (element, at) = (element + (next - at), next);
            }
            if in_order {
                before = Some((start, end));
            }
        }
        drop(found);
        arrived.extend(collect(comm, what, Ok(packets), sizes, (report, 0))?);
    }
    Ok((arrived, total))
}

/// What was found, in fewer and larger parts.
fn gathered(held: Vec<Matches>) -> Vec<Matches> {
    let mut all: Vec<Matches> = Vec::new();
    for found in held.into_iter().filter(|found| !found.is_empty()) {
        match all.last_mut() {
            Some(last) if last.bytes() + found.bytes() <= GATHERED_BYTES => {
                last.runs.extend(&found.runs);
                last.columns.iter_mut().zip(&found.columns).for_each(|(to, from)| to.extend(from));
            }
            _ => all.push(found),
        }
    }
    all
}

/// What a rank says of what it has found: in how many parts, and how many elements in which run; where units in order are the
/// file, the first run stands for all.
fn said(grid: &SelectGrid, held: &[Matches]) -> Vec<u8> {
    let mut runs = Matches::new(0);
    for run in held.iter().flat_map(|found| &found.runs) {
        match runs.runs.last_mut().filter(|_| grid.is_in_order()) {
            Some(first) => first.count += run.count,
            None => runs.note(run.number, run.count),
        }
    }
    Writer::default().number(held.len() as u64).bytes(&runs.to_bytes()).0
}

/// On rank 0: how many elements there are, in how many parts most of a rank leave, and where each rank but the first begins: with
/// which element of a run that begins where.
fn bounds(grid: &SelectGrid, all: Packets, ranks: u32) -> Option<Vec<u8>> {
    let (mut runs, mut rounds) = (Vec::new(), 0);
    for (_, bytes) in all {
        let mut reader = Reader::new(&bytes);
        rounds = rounds.max(reader.number()?);
        let arrived = Arrived::of(reader.bytes()?.to_vec(), &[])?;
        runs.extend(arrived.runs.into_iter().map(|RunOf { number, count }| (grid.run_start(number), count)));
    }
    runs.sort_unstable();
    let total: u64 = runs.iter().map(|run| run.1).sum();
    let ranks = u64::from(ranks);
    // As numpy.array_split has it: the first ones have one more.
    let begins = |rank: u64| total / ranks * rank + rank.min(total % ranks);
    let mut told = Writer::default().number(total).number(rounds);
    let (mut each, mut before) = (runs.iter().peekable(), 0);
    for bound in (1..ranks).map(begins) {
        while each.peek().is_some_and(|run| before + run.1 <= bound) {
            before += each.next()?.1;
        }
        let (start, at) = each.peek().map_or(END, |run| (run.0, bound - before));
        told = told.number(start).number(at);
    }
    Some(told.0)
}

fn decoded(told: &[u8]) -> Option<(u64, u64, Vec<Bound>)> {
    let mut reader = Reader::new(told);
    let (total, rounds) = (reader.number()?, reader.number()?);
    let mut bounds = Vec::new();
    while let Some(start) = reader.number() {
        bounds.push((start, reader.number()?));
    }
    Some((total, rounds, bounds))
}

/// Elements of a message, one behind the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MatchPiece {
    /// Number of the message.
    pub(crate) arrived: usize,
    first: u64,
    count: u64,
}

impl MatchPiece {
    pub(crate) fn elements(&self) -> Range<u64> {
        self.first..self.first + self.count
    }
}

/// What has arrived, in file order.
pub(crate) struct FileOrder {
    pub(crate) order: Vec<MatchPiece>,
    pub(crate) count: u64,
}

pub(crate) fn ordered(grid: &SelectGrid, arrived: &[Arrived]) -> FileOrder {
    let mut pieces = Vec::new();
    let mut count = 0;
    for (number, message) in arrived.iter().enumerate() {
        let mut first = 0;
        for run in &message.runs {
            pieces.push((grid.run_start(run.number), MatchPiece { arrived: number, first, count: run.count }));
            first += run.count;
        }
        count += first;
    }
    pieces.sort_by_key(|piece| piece.0);
    let mut order: Vec<MatchPiece> = Vec::new();
    for (_, piece) in pieces {
        match order.last_mut() {
            Some(last) if last.arrived == piece.arrived && last.first + last.count == piece.first => {
                last.count += piece.count;
            }
            _ => order.push(piece),
        }
    }
    FileOrder { order, count }
}
