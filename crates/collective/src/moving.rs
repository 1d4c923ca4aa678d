//! What moves between the opening and the closing of a call: pieces that no closed form describes, then all elements.

use crate::holding::Exposure;
use crate::settling::Settling;
use hyperslab_layout::tuple;
use hyperslab_plan::{Beside, Direction, Facts, Overlap, Parameters, Program, Spread, Transfer};
use hyperslab_walk::trace::{Kind, Span};
use hyperslab_walk::{
    Awaited, Consensus, Indexed, Indexing, Party, PlacedChunk, Question, Telling, TellingPlaces, ToldPlaces, Waits,
    Walk, Walked,
};
use hyperslab_world::{Exposed, Fault, FaultKind, World};
use std::sync::Arc;

/// A rank's part of a transfer that all agreed on, under way.
pub struct Moving {
    what: String,
    transfer: Arc<Transfer>,
    parameters: Parameters,
    users: Vec<Exposed>,
    facts: Facts,
    stage: Stage,
    begin_ns: u64,
    /// Whether this rank has changed something that readers may have seen before.
    changed: bool,
    /// On rank 0, at the end: chunks that got room when they were encoded, and where that ends.
    placed: ToldPlaces,
}

enum Stage {
    /// All hear what some rank found in its own elements, before anybody writes.
    Vetting(Consensus),
    /// This rank tells of its pieces.
    Telling(Telling),
    /// All have told.
    Told(Consensus, Telling),
    /// All hear of pieces that overlap.
    Comparing(Consensus),
    /// This rank reads where the chunks lie that it will read.
    Indexing(Box<Indexing>),
    Walking(Walk),
    /// This rank closes what it wrote, where that may fail.
    Settling(Settling, Result<Walked, Fault>, Vec<PlacedChunk>),
    /// All that this rank does with storage is over.
    Walked(Result<Walked, Fault>, Vec<PlacedChunk>),
    /// This rank tells rank 0 where its chunks lie.
    TellingPlaces(TellingPlaces, Result<Walked, Fault>),
    Over,
}

impl Moving {
    /// Begins with these arrays and pieces, and what is written besides. `vetted` is what this rank found wrong with elements
    /// that it would write: all hear of it before bytes move, if they [may refuse](may_refuse) to.
    ///
    /// # Errors
    /// When an earlier failure ended the use of this party.
    pub fn begin(
        world: &mut dyn World,
        party: &mut Party,
        what: &str,
        (transfer, (users, mine)): (Arc<Transfer>, Exposure),
        vetted: Option<Fault>,
        (parameters, beside): (Parameters, Arc<[Beside]>),
    ) -> Result<Moving, Fault> {
        let begin_ns = world.clock().stamp_ns();
        let facts = Facts { beside, ..Facts::of_mine(mine) };
        let (what, stage) = (what.to_string(), Stage::Over);
        let placed = Default::default();
        let mut moving = Moving { what, transfer, parameters, users, facts, stage, begin_ns, changed: false, placed };
        moving.stage = if may_refuse(&moving.transfer) {
            let fault = vetted.map(|fault| fault.context(&moving.what));
            Stage::Vetting(party.open(moving.question(fault))?)
        } else {
            moving.tell(world, party)
        };
        Ok(moving)
    }

    fn question(&self, fault: Option<Fault>) -> Question {
        Question { what: self.what.clone(), fault, ..Question::default() }
    }

    /// Goes on. The outer error ended the call on all ranks, or is known to all; the inner one is this rank's.
    pub fn poll(&mut self, world: &mut dyn World, party: &mut Party) -> Option<Result<Result<Walked, Fault>, Fault>> {
        let nothing = &mut || Ok(Vec::new());
        loop {
            let next = match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Vetting(mut consensus) => match consensus.poll(world, party, nothing) {
                    Some(vetted) => vetted.map(|_| self.tell(world, party)),
                    None => return self.waits_on(Stage::Vetting(consensus)),
                },
                Stage::Telling(mut telling) => match telling.poll(party) {
                    true => {
                        let what = format!("exchange of pieces for {}", self.what);
                        let question = Question { what, ..Question::default() };
                        party.open(question).map(|consensus| Stage::Told(consensus, telling))
                    }
                    false => return self.waits_on(Stage::Telling(telling)),
                },
                Stage::Told(mut consensus, telling) => match consensus.poll(world, party, nothing) {
                    Some(told) => told.and_then(|_| self.hear(telling, party, world)),
                    None => return self.waits_on(Stage::Told(consensus, telling)),
                },
                Stage::Comparing(mut consensus) => match consensus.poll(world, party, nothing) {
                    Some(compared) => compared.map(|_| self.walk(world, party)),
                    None => return self.waits_on(Stage::Comparing(consensus)),
                },
                Stage::Indexing(mut indexing) => match indexing.poll(world, party) {
                    Some(indexed) => Ok(self.indexed(world, party, indexed)),
                    None => return self.waits_on(Stage::Indexing(indexing)),
                },
                Stage::Walking(mut walk) => match walk.poll(world, party) {
                    Some(walked) => Ok(self.walked_to_its_end(world, party, walk, walked)),
                    None => return self.waits_on(Stage::Walking(walk)),
                },
                Stage::Settling(mut settling, walked, placed) => match settling.poll(world) {
                    Some(settled) => Ok(Stage::Walked(walked.and_then(|walked| settled.map(|()| walked)), placed)),
                    None => return self.waits_on(Stage::Settling(settling, walked, placed)),
                },
                Stage::Walked(walked, placed) => {
                    end_requests(world, party, walked.is_err());
                    if self.room().is_none() {
                        return Some(Ok(walked));
                    }
                    let telling = TellingPlaces::new(world, party, &self.what, placed);
                    Ok(Stage::TellingPlaces(telling, walked))
                }
                Stage::TellingPlaces(mut telling, walked) => match telling.poll(world, party) {
                    Some(told) => return Some(told.map(|placed| self.placed_at(placed, walked))),
                    None => return self.waits_on(Stage::TellingPlaces(telling, walked)),
                },
                Stage::Over => return None,
            };
            match next {
                Ok(stage) => self.stage = stage,
                Err(fault) => return Some(Err(fault)),
            }
        }
    }

    /// The walk is over; what closing may still say comes before others are told.
    fn walked_to_its_end(
        &mut self,
        world: &mut dyn World,
        party: &Party,
        mut walk: Walk,
        walked: Result<Walked, Fault>,
    ) -> Stage {
        self.changed = walk.has_changed();
        match Settling::owed(world, party.is_server()) {
            Some(settling) => Stage::Settling(settling, walked, walk.take_placed()),
            None => Stage::Walked(walked, walk.take_placed()),
        }
    }

    /// From where on chunks get room when they are encoded, if they do.
    fn room(&self) -> Option<u64> {
        let written = self.transfer.direction == Direction::Write;
        self.transfer.asks.iter().find_map(|ask| ask.stored.allotted_from()).filter(|_| written)
    }

    /// On rank 0, after it is over: chunks that got room when they were encoded, and where that ends, if any did.
    pub(crate) fn take_placed(&mut self) -> ToldPlaces {
        std::mem::take(&mut self.placed)
    }

    /// Whether this rank has changed something that readers may have seen before.
    pub fn has_changed(&self) -> bool {
        self.changed
    }

    fn placed_at(&mut self, placed: ToldPlaces, walked: Result<Walked, Fault>) -> Result<Walked, Fault> {
        self.placed = placed;
        walked
    }

    fn waits_on<T>(&mut self, stage: Stage) -> Option<T> {
        self.stage = stage;
        None
    }

    /// Lets the ranks that handle storage know of pieces that no closed form describes.
    fn tell(&mut self, world: &mut dyn World, party: &mut Party) -> Stage {
        if self.transfer.asks.iter().all(|ask| ask.spread != Spread::Explicit) {
            return self.walk(world, party);
        }
        let told = self.facts.to_tell(&self.transfer, &self.parameters, party.rank());
        party.begin_part();
        Stage::Telling(Telling::new(world, party, told))
    }

    /// Refuses to write what several pieces hold.
    fn hear(&mut self, telling: Telling, party: &mut Party, world: &mut dyn World) -> Result<Stage, Fault> {
        for (from, told) in telling.heard(party).map_err(|fault| party.abandon(world, fault))? {
            self.facts.hear(from, told);
        }
        if self.transfer.direction == Direction::Read {
            return Ok(self.walk(world, party));
        }
        let overlap = self.facts.overlap(&self.transfer, &self.parameters);
        let fault = overlap.map(|overlap| overlapping(&self.what, &self.transfer, &overlap));
        party.open(self.question(fault)).map(Stage::Comparing)
    }

    /// Walks, once this rank knows where the chunks lie that it reads.
    fn walk(&mut self, world: &mut dyn World, party: &mut Party) -> Stage {
        let in_shards = self.transfer.asks.iter().any(|ask| ask.stored.shards().is_some());
        if in_shards && self.transfer.direction == Direction::Read {
            let facts = Arc::new(self.facts.clone());
            let program = self.program(party, &facts);
            let bytes_max = self.parameters.buffer_bytes_max;
            return Stage::Indexing(Box::new(Indexing::new(&self.transfer, program, bytes_max)));
        }
        self.indexed(world, party, Indexed::nothing(self.transfer.clone()))
    }

    fn program(&self, party: &Party, facts: &Arc<Facts>) -> Program {
        let views: Vec<_> = self.users.iter().map(|user| user.view.clone()).collect();
        let Moving { transfer, parameters, .. } = self;
        parameters.strategy.program(transfer, parameters, facts, party.rank(), &views)
    }

    fn indexed(&mut self, world: &mut dyn World, party: &mut Party, indexed: Indexed) -> Stage {
        let Indexed { transfer, walked, fault } = indexed;
        self.transfer = transfer;
        if let Some(trace) = &mut party.trace {
            trace.push(Span::plain(Kind::Plan, self.begin_ns, world.clock().stamp_ns()));
        }
        let facts = Arc::new(std::mem::take(&mut self.facts));
        // Who could not read an index reads nothing, and where no rank waits for messages of his, that is all.
        let is_idle = fault.is_some() && (party.size() <= 1 || self.parameters.strategy.is_own());
        let program = if is_idle { Program::idle() } else { self.program(party, &facts) };
        let names = self.transfer.asks.iter().map(|ask| ask.name.clone()).collect();
        party.begin_part();
        if let Some(from) = self.room() {
            party.give_room(world, from);
        }
        let walk = Walk::new(program, std::mem::take(&mut self.users)).with_names(names);
        Stage::Walking(walk.at(party.pace).after(walked, fault))
    }

    /// What this rank has done so far.
    pub fn walked(&self) -> Walked {
        if let Stage::Walking(walk) = &self.stage { walk.walked() } else { Walked::default() }
    }
}

impl Awaited for Moving {
    fn waits(&self) -> Waits {
        match &self.stage {
            Stage::Vetting(consensus) | Stage::Told(consensus, _) | Stage::Comparing(consensus) => consensus.waits(),
            Stage::Indexing(indexing) => indexing.waits(),
            Stage::Walking(walk) => walk.waits(),
            Stage::TellingPlaces(telling, _) => telling.waits(),
            Stage::Settling(settling, ..) => settling.waits(),
            Stage::Telling(_) | Stage::Walked(..) | Stage::Over => Waits::default(),
        }
    }

    fn waits_for(&self) -> String {
        let of_call = |text: String| format!("{}: {text}", self.what);
        match &self.stage {
            Stage::Vetting(consensus) | Stage::Told(consensus, _) | Stage::Comparing(consensus) => {
                consensus.waits_for()
            }
            Stage::Telling(telling) => of_call(telling.waits_for()),
            Stage::Indexing(indexing) => of_call(indexing.waits_for()),
            Stage::Walking(walk) => of_call(walk.waits_for()),
            Stage::TellingPlaces(telling, _) => telling.waits_for(),
            Stage::Settling(settling, ..) => of_call(settling.waits_for()),
            Stage::Walked(..) | Stage::Over => String::new(),
        }
    }
}

/// Lets storage close what it has open: all of it where the walk failed. A server does not hear when what it served is closed.
fn end_requests(world: &mut dyn World, party: &Party, failed: bool) {
    if failed || party.is_server() { world.store().release() } else { world.store().pause() }
}

/// Whether ranks agree once more before they write, on what each found in its own elements: where an array exists already,
/// of which rank 0 alone knew the type before. It follows from the transfer, since dedicated servers know nothing else.
pub(crate) fn may_refuse(transfer: &Transfer) -> bool {
    transfer.direction == Direction::Write
        && transfer.asks.iter().any(|ask| {
            let exists = ask.stored.is_replaced();
            let nan_matters = ask.memory.kind.has_nan() && ask.stored.element.kind.is_integer();
            exists && (nan_matters || ask.spread == Spread::Explicit)
        })
}

fn overlapping(what: &str, transfer: &Transfer, overlap: &Overlap) -> Fault {
    let Overlap { array, ranks: (first, second), .. } = overlap;
    let who = if first == second { format!("rank {first} twice") } else { format!("ranks {first} and {second}") };
    let (name, at) = (&transfer.asks[*array as usize].name, overlap.index(transfer));
    let text = format!("element {} of '{name}' would be written by {who}: their pieces overlap", tuple(&at));
    Fault::new(FaultKind::Invalid, text)
        .context(what)
        .hint("write each element once: leave the halo out of the pieces that are written")
}
