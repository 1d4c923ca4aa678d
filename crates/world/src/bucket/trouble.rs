//! What befalls the programs that use a bucket in memory: replies that are lost, requests that are late, and death.

use crate::Fault;
use crate::FaultKind;
use std::collections::BTreeMap;

/// What befalls one change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// It is carried out, but the reply is lost.
    Lost,
    /// The reply is lost, and it is carried out later, by [`ObjectMemory::deliver`](super::ObjectMemory::deliver).
    Late,
}

/// How a program dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Death {
    /// So many changes are still carried out.
    pub after: u64,
    /// Whether the change in which it dies is still under way, and carried out later.
    pub late: bool,
    /// Whether others can know that it is dead.
    pub known: bool,
}

/// A program that uses the bucket.
#[derive(Default)]
pub(super) struct BucketProgram {
    /// Changes so far.
    pub(super) changes: u64,
    pub(super) planned: BTreeMap<u64, Trouble>,
    /// Trouble by chance: so many of a thousand changes.
    pub(super) chance: Option<(fastrand::Rng, u32)>,
    pub(super) death: Option<Death>,
    pub(super) dead: bool,
    /// The change from which on it is stopped.
    pub(super) stops_at: Option<u64>,
    pub(super) stopped: bool,
    /// What it asked to change, in words.
    pub(super) log: Vec<String>,
}

/// What becomes of a change.
pub(super) enum Befalls {
    /// It is carried out now, and the reply comes or not.
    Now(bool),
    /// Later, without a reply.
    Later,
    /// Never.
    Never,
}

impl BucketProgram {
    /// What becomes of its next change.
    pub(super) fn next(&mut self, what: String) -> Befalls {
        if self.dead {
            return Befalls::Never;
        }
        let number = self.changes;
        if let Some(death) = self.death.filter(|death| death.after <= number) {
            self.dead = true;
            return if death.late { Befalls::Later } else { Befalls::Never };
        }
        self.changes += 1;
        self.log.push(what);
        let by_chance = self.chance.as_mut().and_then(|(random, of_thousand)| {
            (random.u32(0..1000) < *of_thousand).then(|| if random.bool() { Trouble::Lost } else { Trouble::Late })
        });
        match self.planned.remove(&number).or(by_chance) {
            None => Befalls::Now(true),
            Some(Trouble::Lost) => Befalls::Now(false),
            Some(Trouble::Late) => Befalls::Later,
        }
    }
}

/// The failure of a change without a reply.
pub(super) fn unanswered(what: &str) -> Fault {
    let text = format!("no reply came to {what}: it may have been done, and may yet be");
    Fault::new(FaultKind::Storage, text).hint("look at the object store and the way to it")
}
