//! What ranks live through: one scene after another, each of which is a state machine over the seams.

use crate::machine::Size;
use crate::world::RankWorld;
use hyperslab_walk::{Awaited, Party};
use hyperslab_world::Fault;
use std::rc::Rc;

/// What a rank is at: a collective call, a walk, the program's own work. It is polled as a door polls it on a real machine,
/// whenever something has happened for the rank, and never blocks.
pub trait Task: Awaited {
    /// Goes on; says so once it is over.
    fn poll(&mut self, world: &mut RankWorld, party: &mut Party) -> Option<Result<(), Fault>>;

    /// In which of its scene's parts it is; this never falls.
    fn part(&self) -> usize {
        0
    }

    /// It cannot go on: the call has ended on all ranks with this failure.
    fn broken(&mut self, world: &mut RankWorld, party: &mut Party, fault: Fault) -> Fault {
        let _ = (world, party);
        fault
    }
}

/// Begins an scene on a rank, which leaves it out when this gives nothing.
pub type BeginScene = Rc<dyn Fn(&mut RankWorld, &mut Party) -> Result<Option<Box<dyn Task>>, Fault>>;

/// Something that ranks do. Each begins it when it has ended the scene before; nobody waits for the others but where the scene
/// itself does.
#[derive(Clone)]
pub struct Scene {
    /// How many parts it has, of each of which the outcome tells times.
    pub parts: usize,
    /// Begins it.
    pub begin: BeginScene,
}

impl Scene {
    /// An scene in so many parts.
    pub fn new(
        parts: usize,
        begin: impl Fn(&mut RankWorld, &mut Party) -> Result<Option<Box<dyn Task>>, Fault> + 'static,
    ) -> Scene {
        Scene { parts, begin: Rc::new(begin) }
    }
}

/// Who takes part in an scene; the others go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// All ranks.
    All,
    /// The ranks that do not only serve.
    Clients,
    /// One rank.
    Rank(u32),
}

impl Who {
    /// Whether this rank does.
    pub fn has(self, rank: u32, size: Size) -> bool {
        match self {
            Who::All => true,
            Who::Clients => rank < size.ranks - size.servers,
            Who::Rank(only) => rank == only,
        }
    }
}
