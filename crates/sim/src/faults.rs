//! What goes wrong in a rehearsal: requests that fail, come late or are lost, ranks that stall or die. A seed draws it, so
//! that it goes wrong again.

use hyperslab_walk::Limits;
use std::fmt;

/// A seam of a rank at which something goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seam {
    /// Its requests to files.
    Store,
    /// Its changes of names.
    Names,
    /// Its messages of agreements.
    Signals,
    /// Its messages with data.
    Pieces,
}

/// What goes wrong there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harm {
    /// The request fails, and does nothing. A message does not: it is late instead.
    Fails,
    /// It is done so much later \[ns\]; of messages with data, so are all that follow to the same rank.
    Late(u64),
    /// It is never answered. A message of agreements is not lost: its sender stalls instead. A message with data is, and all that
    /// follow to the same rank: the way there is cut.
    Lost,
    /// The rank stops for so long, and comes back \[ns\].
    Stalls(u64),
    /// The rank ends.
    Dies,
}

/// That something goes wrong at one request of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mishap {
    /// The rank.
    pub rank: u32,
    /// Of which requests.
    pub seam: Seam,
    /// At which of them, from 0 on.
    pub nth: u64,
    /// What.
    pub harm: Harm,
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mishap { rank, nth, .. } = self;
        let (one, done) = match self.seam {
            Seam::Store => ("request to files", "answered"),
            Seam::Names => ("change of names", "answered"),
            Seam::Signals => ("message of agreements", "delivered"),
            Seam::Pieces => ("message with data", "delivered"),
        };
        let seconds = |ns: u64| ns as f64 / 1e9;
        match self.harm {
            Harm::Fails => write!(f, "{one} {nth} of rank {rank} fails"),
            Harm::Late(ns) => write!(f, "{one} {nth} of rank {rank} is {done} {:.1} s late", seconds(ns)),
            Harm::Lost => write!(f, "{one} {nth} of rank {rank} is never {done}"),
            Harm::Stalls(ns) => write!(f, "rank {rank} stalls for {:.1} s at its {one} {nth}", seconds(ns)),
            Harm::Dies => write!(f, "rank {rank} dies at its {one} {nth}"),
        }
    }
}

/// All that goes wrong, and how long ranks wait.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Faults {
    /// What.
    pub mishaps: Vec<Mishap>,
    /// Limits on waiting, which hold only where something goes wrong: without, ranks wait as long as it takes.
    pub limits: Limits,
}

impl Faults {
    /// One or two mishaps of so many ranks, as a seed draws them. Delays are some parts of the limits, or go beyond them.
    pub fn drawn(seed: u64, ranks: u32, limits: Limits) -> Faults {
        let mut random = fastrand::Rng::with_seed(seed ^ 0xFA_0175);
        let longest = limits.storage.max(limits.progress).max(limits.arrival).as_nanos() as u64;
        let mut mishap = || {
            let seam = [Seam::Store, Seam::Names, Seam::Signals, Seam::Pieces][random.usize(0..4)];
            // Names are rank 0's business.
            let rank = if seam == Seam::Names { 0 } else { random.u32(0..ranks) };
            // Mostly at the first of them, but up to the 23rd.
            let below = random.u64(1..24);
            let nth = random.u64(0..below);
            let ns = random.u64(1..longest * 5 / 4);
            let harm = [Harm::Fails, Harm::Late(ns), Harm::Lost, Harm::Stalls(ns), Harm::Dies][random.usize(0..5)];
            let harm = match (seam, harm) {
                (Seam::Signals | Seam::Pieces, Harm::Fails) => Harm::Late(ns),
                (Seam::Signals, Harm::Lost) => Harm::Stalls(ns),
                (_, harm) => harm,
            };
            Mishap { rank, seam, nth, harm }
        };
        let first = mishap();
        let more = mishap();
        let mishaps = if seed.is_multiple_of(3) { vec![first, more] } else { vec![first] };
        Faults { mishaps, limits }
    }
}

/// What is still to go wrong on a rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upcoming {
    mishaps: Vec<Mishap>,
    /// Requests so far, by seam.
    counts: [u64; 4],
}

impl Upcoming {
    pub(crate) fn of(faults: &Faults, rank: u32) -> Upcoming {
        let of = |mishap: &&Mishap| mishap.rank == rank;
        Upcoming { mishaps: faults.mishaps.iter().filter(of).copied().collect(), counts: [0; 4] }
    }

    /// What goes wrong at the next request, if anything.
    pub(crate) fn next(&mut self, seam: Seam) -> Option<Mishap> {
        let nth = self.counts[seam as usize];
        self.counts[seam as usize] += 1;
        self.mishaps.iter().find(|mishap| mishap.seam == seam && mishap.nth == nth).copied()
    }
}

/// How the life of a rank ended where something went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LifeEnd {
    /// It came to the end of all scenes.
    Through,
    /// A call failed, in this scene.
    Failed(usize, hyperslab_world::Fault),
    /// It died.
    Dead,
}
