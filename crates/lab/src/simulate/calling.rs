//! A collective call of a rehearsal: the one that ships, from its opening to its end.

use super::transfers::Moving;
use hyperslab_collective::{
    Arguments, ArrayRequest, Call, Compared, Decision, Each, InMemory, Selected, Target, predicted,
};
use hyperslab_layout::{Casting, Section, Stored};
use hyperslab_plan::{Parameters, Transfer};
use hyperslab_sim::{RankWorld, Scene, Size, Task};
use hyperslab_walk::{Awaited, Party, Waits};
use hyperslab_world::{Fault, Root, World};
use std::sync::Arc;

/// A call, as all ranks ask for it.
pub(super) struct CallOfAll {
    moving: Arc<Moving>,
    size: Size,
    arrays: Vec<ArrayRequest>,
}

impl CallOfAll {
    pub(super) fn of(moving: &Arc<Moving>, size: Size) -> CallOfAll {
        let (mut before, mut arrays) = (None, Vec::<ArrayRequest>::new());
        for ask in &moving.transfer.asks {
            // Arrays alike are held alike, which who compares them sees by the address.
            let distribution = ask.spread.regular().expect("spread in closed form");
            let holding = match before.replace(distribution) {
                Some(same) if same == distribution => arrays.last().and_then(|request| request.holding.clone()),
                _ => Some(Arc::new(distribution.clone().into())),
            };
            let whole = ask.section == Section::whole(&ask.stored.shape);
            let selected = if whole { Selected::Whole } else { Selected::Section(ask.section.clone()) };
            arrays.push(ArrayRequest { name: ask.name.clone(), selected, holding, memory: vec![ask.memory] });
        }
        CallOfAll { arrays, moving: moving.clone(), size }
    }

    /// What a rank asks for.
    fn arguments(&self, rank: u32) -> Arguments {
        let Moving { transfer, .. } = &*self.moving;
        let local = |number: usize| vec![self.moving.local(number, rank)];
        Arguments {
            what: format!("the call of stage {}", self.moving.stage),
            compared: Compared::default(),
            fault: None,
            direction: transfer.direction,
            arrays: self.arrays.clone(),
            locals: Some((0..self.arrays.len()).map(local).collect()),
            casting: Casting::Unsafe,
            policies: transfer.policies,
            // Of imagined memories nobody knows that they lie as one, so that arrays alike move one by one.
            together: true,
            target: (rank == 0).then(|| -> Box<dyn Target> { Box::new(OpenFiles(self.moving.clone())) }),
            publishes: false,
            at_once: true,
        }
    }
}

/// Files that all ranks have open, as MPI-IO has them: a call begins nothing in them and publishes nothing.
struct OpenFiles(Arc<Moving>);

impl Target for OpenFiles {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        Ok(self.0.transfer.asks.iter().map(|ask| ask.stored.clone()).collect())
    }

    fn choose(&mut self, _transfer: &Arc<Transfer>, _laid: &InMemory) -> Result<Decision, Fault> {
        let Moving { parameters, price, .. } = &*self.0;
        Ok(Decision {
            parameters: parameters.clone(),
            predicted: predicted(price),
            later: price.later_ns / 1e9,
            plan: 0,
        })
    }

    fn begin(
        &mut self,
        _stored: &mut [Stored],
        _transfer: &Arc<Transfer>,
        _parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        Ok(vec![Root::new("")])
    }
}

/// The call as an scene, in three parts: until all have agreed, while data move, and until all have agreed on how it went.
pub(super) fn calling(asked: CallOfAll) -> Scene {
    Scene::new(3, move |world, party| {
        let rank = party.rank();
        party.pace = world.pace(asked.moving.parameters.servers.contains(&rank));
        let call = Call::new(world, (rank, asked.size.ranks), asked.arguments(rank), hyperslab::binding::decode);
        Ok(Some(Box::new(Calling(call))))
    })
}

/// A collective call of one rank.
pub(super) struct Calling(pub(super) Call);

impl Task for Calling {
    fn poll(&mut self, world: &mut RankWorld, party: &mut Party) -> Option<Result<(), Fault>> {
        let world: &mut dyn World = world;
        self.0.poll(world, party).map(|done| done.map(drop))
    }

    fn broken(&mut self, world: &mut RankWorld, party: &mut Party, fault: Fault) -> Fault {
        self.0.broken(world, party, fault)
    }

    fn part(&self) -> usize {
        usize::from(self.0.opened().is_some()) + usize::from(self.0.left().is_some())
    }
}

impl Awaited for Calling {
    fn waits(&self) -> Waits {
        self.0.waits()
    }

    fn waits_for(&self) -> String {
        self.0.waits_for()
    }
}
