//! Writes that wait in the line. Where several small ones wait on all ranks, one behind another, they become one call: as
//! much as that saves of each call's own cost, nobody sees another difference. If it fails, each is carried out by itself.

use crate::array_write::{ArrayWrite, listed};
use crate::arrays::Arrays;
use crate::error::Error;
use crate::line::{Chore, Finished};
use crate::listing::UnderWay;
use crate::options::WriteOptions;
use hyperslab_collective::Report;
use hyperslab_layout::mesh::volume;
use hyperslab_plan::Parameters;
use hyperslab_world::{Fault, FaultKind};
use std::any::Any;
use std::collections::BTreeSet;

/// What requests write to.
pub(crate) trait Destination: Arrays + 'static {
    /// Whether the other one is the same, with the same room for buffers and copies.
    fn is_same(&self, other: &Self) -> bool;
}

/// How a write of these arrays is named.
pub(crate) fn said(to: &impl Destination, asks: &[ArrayWrite]) -> String {
    let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
    format!("write of {} to '{}'", listed(&names), to.path().display())
}

/// A write that waits.
pub(crate) struct QueuedWrite<D> {
    pub(crate) to: D,
    pub(crate) asks: Vec<ArrayWrite>,
    pub(crate) options: WriteOptions,
    /// What others see of it meanwhile, in a group.
    pub(crate) under_way: Option<UnderWay>,
}

impl<D: Destination> QueuedWrite<D> {
    /// Bytes of all ranks together, as they are in memory, and a page at least: so a call never becomes one of very many arrays,
    /// and looking for what joins it takes no longer than it \[B\].
    fn bytes(&self) -> u64 {
        let of = |ask: &ArrayWrite| {
            let element = ask.element().map_or(1, |element| element.bytes());
            volume(ask.holding.as_deref()?.shape())?.checked_mul(element)
        };
        self.asks.iter().fold(0, |sum, ask| sum.saturating_add(of(ask).unwrap_or(u64::MAX).max(4096)))
    }

    fn goes_with(&self, other: &QueuedWrite<D>) -> bool {
        self.to.is_same(&other.to) && self.options.goes_with(&other.options)
    }

    /// What the result of a call was says whether this is there.
    fn over(self, written: Result<Report, Error>, alone: bool) -> Result<Finished, Fault> {
        // One array that is visible but perhaps not durable is there.
        let unsynced = |error: &Error| error.kind() == FaultKind::Unsynced && alone && self.asks.len() == 1;
        if written.as_ref().err().is_none_or(unsynced)
            && let Some(under_way) = self.under_way
        {
            under_way.succeeded();
        }
        Ok((Vec::new(), written?))
    }
}

impl<D: Destination> Chore for QueuedWrite<D> {
    fn run(self: Box<Self>) -> Result<Finished, Fault> {
        let written = self.to.write(&self.asks, &self.options);
        self.over(written, true)
    }

    fn joins<'a>(&'a self, next: &mut dyn Iterator<Item = &'a dyn Chore>) -> usize {
        // As much as moves in one round. With dedicated servers, each is over for its caller when its data have left.
        let most = Parameters::default().subchunk_bytes;
        let mut bytes = self.bytes();
        if bytes > most || self.to.comm().servers() > 0 {
            return 0;
        }
        let mut names: BTreeSet<&str> = self.asks.iter().map(|ask| ask.name.as_str()).collect();
        let joins = |task: &&'a dyn Chore| {
            let Some(other) = (*task as &dyn Any).downcast_ref::<QueuedWrite<D>>() else { return false };
            bytes = bytes.saturating_add(other.bytes());
            bytes <= most && self.goes_with(other) && other.asks.iter().all(|ask| names.insert(&ask.name))
        };
        next.take_while(joins).count()
    }

    fn run_with(self: Box<Self>, next: Vec<Box<dyn Chore>>) -> Vec<Result<Finished, Fault>> {
        let next = next.into_iter().map(|task| (task as Box<dyn Any>).downcast::<QueuedWrite<D>>());
        let mut all: Vec<QueuedWrite<D>> = [*self].into_iter().chain(next.map(|one| *one.expect("joins"))).collect();
        let counts: Vec<usize> = all.iter().map(|one| one.asks.len()).collect();
        let options = all.iter().map(|one| (one.asks.len(), one.options.clone())).collect();
        let asks: Vec<ArrayWrite> = all.iter_mut().flat_map(|one| std::mem::take(&mut one.asks)).collect();
        let written = WriteOptions::together(options).and_then(|options| all[0].to.write(&asks, &options));
        let mut asks = asks.into_iter();
        for (one, count) in all.iter_mut().zip(counts) {
            one.asks = asks.by_ref().take(count).collect();
        }
        let again = |error: &Error| match error.kind() {
            // All is there, or nothing can be done any more.
            FaultKind::Unsynced | FaultKind::Poisoned | FaultKind::Timeout | FaultKind::Interrupted => false,
            _ => !all[0].to.comm().is_poisoned(),
        };
        if written.as_ref().err().is_some_and(again) {
            return all.into_iter().map(|one| Box::new(one).run()).collect();
        }
        let mut first = 0;
        let over = all.into_iter().map(|one| {
            let arrays = first..first + one.asks.len();
            first = arrays.end;
            let part = written.as_ref().map(|report| report.part(said(&one.to, &one.asks), arrays));
            one.over(part.map_err(Error::clone), false)
        });
        over.collect()
    }
}
