//! Rank 0's part of the opening of a call: the target looks, chooses and begins, and all others are told.

use crate::alike::{Lying, groups, transfer};
use crate::repeats::{Earlier, Repeats};
use crate::request::ArrayRequest;
use crate::served;
use crate::target::{Nothing, Target};
use crate::telling::opened::{tell, tell_again};
use hyperslab_layout::{Casting, Policies, Stored};
use hyperslab_plan::Direction;
use hyperslab_walk::{Limits, Votes};
use hyperslab_world::Fault;
use std::sync::Arc;

/// What is asked of rank 0. It has nothing of the memory of arrays, since it may hang in storage and be given up.
pub(crate) struct Preparing {
    pub(crate) what: String,
    pub(crate) arrays: Arc<[ArrayRequest]>,
    pub(crate) lying: Lying,
    pub(crate) casting: Casting,
    pub(crate) moves: (Direction, Policies, u32),
    /// Where some ranks only serve: number of all ranks, and how long clients wait.
    pub(crate) servers: Option<(u32, Limits)>,
    pub(crate) repeats: Repeats,
}

impl Preparing {
    pub(crate) fn prepare(&self, target: &mut Box<dyn Target>, votes: Votes) -> Result<Vec<u8>, Fault> {
        let told = self.told(&mut **target, votes);
        told.map_err(|fault| {
            // Before any other rank hears of it: whoever looks at once finds nothing of it.
            std::mem::replace(target, Box::new(Nothing)).undo(false);
            fault.context(&self.what)
        })
    }

    fn told(&self, target: &mut dyn Target, votes: Votes) -> Result<Vec<u8>, Fault> {
        let stored = target.look(&|number| self.lying.of_array(number))?;
        if let Some(again) = self.again(target, &stored, votes) {
            return again;
        }
        for (request, stored) in self.arrays.iter().zip(&stored) {
            request.check_types(stored.element, self.moves.0, self.casting)?;
        }
        let mut groups = groups(&self.arrays, stored);
        let (wanted, taken) = transfer(&self.arrays, &groups, votes, self.moves)?;
        let wanted = Arc::new(if self.servers.is_some() { wanted } else { wanted.in_parts() });
        let laid: Vec<_> = taken.iter().map(|(of, _)| self.lying.of(of)).collect();
        let mut decision = target.choose(&wanted, &laid)?;
        let mut firsts: Vec<_> = groups.iter().map(|group| group.first.clone()).collect();
        let roots = target.begin(&mut firsts, &wanted, &mut decision.parameters)?;
        groups.iter_mut().zip(firsts).for_each(|(group, first)| group.first = first);
        let payload = tell(&decision, &roots, &target.beside(), &groups);
        let Some((ranks, limits)) = self.servers else { return Ok(payload) };
        // Servers are told the transfer itself, since they have no arguments to make it from.
        let told = Arc::new(transfer(&self.arrays, &groups, votes, self.moves)?.0).among(ranks);
        Ok(served::opening(&payload, &self.what, &told, limits))
    }

    /// The same where an earlier call comes again.
    fn again(&self, target: &mut dyn Target, stored: &[Stored], votes: Votes) -> Option<Result<Vec<u8>, Fault>> {
        if self.servers.is_some() {
            return None;
        }
        let mut kept = self.repeats.kept();
        let choose = |earlier: &Earlier| {
            let laid: Vec<_> = earlier.taken.iter().map(|(of, _)| self.lying.of(of)).collect();
            target.choose_again(&earlier.decision, &laid)
        };
        let (earlier, place, mut decision) = kept.like((&self.arrays, stored), (self.moves, votes), choose)?;
        earlier.move_to(&place);
        let mut firsts: Vec<_> = earlier.groups.iter().map(|group| group.first.clone()).collect();
        let begun = target.begin(&mut firsts, &earlier.transfer_of(&self.arrays), &mut decision.parameters);
        Some(begun.map(|roots| tell_again(earlier, &place, &decision, &roots)))
    }
}
