//! A call that ends something: makes durable what was written, on all ranks, and then lets rank 0 publish.

use crate::agreement::{Agreement, Begin};
use crate::served;
use crate::settling::Settling;
use hyperslab_plan::{Action, After, Program, Step};
use hyperslab_walk::{Awaited, Party, Question, Waits, Walk, Walked};
use hyperslab_world::{Fault, Root, Work, World};

/// Such a call, under way on one rank.
pub struct Ending {
    question: Option<Question>,
    /// Below which everything is made durable that this rank wrote.
    below: Option<Root>,
    publish: Option<(Work, bool)>,
    /// Whether publishing makes all of it durable that lies where rank 0 reaches it.
    publishing_syncs: bool,
    stage: Stage,
}

enum Stage {
    New,
    /// Servers, who wrote, make durable what they wrote.
    Told(Agreement),
    Syncing(Walk),
    /// This rank closes what it wrote, where that may fail.
    Settling(Settling),
    Agreeing(Agreement),
    Over,
}

impl Ending {
    /// A call that makes durable what was written below a root, if one is given, and in which rank 0 does `publish` then, at
    /// once or not.
    pub fn new(question: Question, below: Option<Root>, publish: Option<(Work, bool)>) -> Ending {
        let question = Question { stores: publish.is_some(), ..question };
        Ending { question: Some(question), below, publish, publishing_syncs: false, stage: Stage::New }
    }

    /// The same where publishing makes durable what lies below the root, as far as rank 0 reaches it.
    #[must_use]
    pub fn synced_by_publishing(self, syncs: bool) -> Ending {
        Ending { publishing_syncs: syncs, ..self }
    }

    /// Goes on; gives the outcome, the same on all ranks, once it is over.
    pub fn poll(&mut self, world: &mut dyn World, party: &mut Party) -> Option<Result<(), Fault>> {
        loop {
            let next = match &mut self.stage {
                Stage::New => self.begin(world, party),
                Stage::Told(agreement) => {
                    let agreed = agreement.poll(world, party)?;
                    agreed.and_then(|_| self.settle(world, party))
                }
                Stage::Syncing(walk) => {
                    let walked = walk.poll(world, party)?;
                    self.note(walked.map(drop));
                    self.settle(world, party)
                }
                Stage::Settling(settling) => {
                    let settled = settling.poll(world)?;
                    self.note(settled);
                    self.agree(world, party)
                }
                Stage::Agreeing(agreement) => {
                    let agreed = agreement.poll(world, party)?;
                    self.stage = Stage::Over;
                    return Some(agreed.map(drop));
                }
                Stage::Over => return None,
            };
            match next {
                Ok(stage) => self.stage = stage,
                Err(fault) => {
                    self.stage = Stage::Over;
                    return Some(Err(fault));
                }
            }
        }
    }

    fn begin(&mut self, world: &mut dyn World, party: &mut Party) -> Result<Stage, Fault> {
        let question = self.question.as_ref().expect("it was not asked yet");
        let sync = self.below.clone().filter(|_| party.poisoned().is_none());
        match sync {
            Some(below) if served::has_servers(party) => {
                Agreement::tell(party, question.clone(), served::syncing(&below)).map(Stage::Told)
            }
            // All of one host wait for the disk once.
            Some(below)
                if question.fault.is_none() && self.publishing_syncs && world.store().leave_to_rank_0(&below) =>
            {
                self.settle(world, party)
            }
            Some(below) if question.fault.is_none() => {
                party.begin_part();
                Ok(Stage::Syncing(syncing(world, below)))
            }
            _ => self.settle(world, party),
        }
    }

    /// Closes what was written, after it was synced.
    fn settle(&mut self, world: &mut dyn World, party: &mut Party) -> Result<Stage, Fault> {
        match Settling::owed(world, true) {
            Some(settling) => Ok(Stage::Settling(settling)),
            None => self.agree(world, party),
        }
    }

    fn note(&mut self, ended: Result<(), Fault>) {
        let question = self.question.as_mut().expect("it was not asked yet");
        question.fault = question.fault.take().or(ended.err());
    }

    fn agree(&mut self, world: &mut dyn World, party: &mut Party) -> Result<Stage, Fault> {
        // What is closed, removed or unmounted then must not be held.
        world.store().release();
        let question = self.question.take().expect("it is asked once");
        let begin = self.publish.take().map(|publish| -> Begin { Box::new(move |_| publish) });
        Agreement::open(party, question, begin).map(Stage::Agreeing)
    }

    /// What this rank has done so far.
    pub fn walked(&self) -> Walked {
        if let Stage::Syncing(walk) = &self.stage { walk.walked() } else { Walked::default() }
    }
}

impl Awaited for Ending {
    fn waits(&self) -> Waits {
        match &self.stage {
            Stage::Told(agreement) | Stage::Agreeing(agreement) => agreement.waits(),
            Stage::Syncing(walk) => walk.waits(),
            Stage::Settling(settling) => settling.waits(),
            Stage::New | Stage::Over => Waits::default(),
        }
    }

    fn waits_for(&self) -> String {
        match &self.stage {
            Stage::Told(agreement) | Stage::Agreeing(agreement) => agreement.waits_for(),
            Stage::Syncing(walk) => {
                let what = self.question.as_ref().map_or("sync", |question| &question.what);
                format!("{what}: {}", walk.waits_for())
            }
            Stage::Settling(settling) => {
                let what = self.question.as_ref().map_or("end", |question| &question.what);
                format!("{what}: {}", settling.waits_for())
            }
            Stage::New | Stage::Over => String::new(),
        }
    }
}

/// Makes durable what this rank wrote to objects below a root.
pub fn syncing(world: &mut dyn World, below: Root) -> Walk {
    world.store().enter([below].into());
    let step = Step { id: 0, round: 0, after: After::none(), action: Action::Sync { below: ["".into()].into() } };
    Walk::new(Program { lanes: vec![Box::new(std::iter::once(step))], ..Program::idle() }, Vec::new())
}
