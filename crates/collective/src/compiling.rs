//! What a rank makes of what rank 0 told: the transfer, and where its elements lie in this rank's memory.

use crate::Decode;
use crate::alike::{Group, Parts, Taken, transfer};
use crate::array::LocalArray;
use crate::casting::check_cast;
use crate::decision::Decision;
use crate::destinations::destinations;
use crate::holding::{Exposure, Ownership, Part, number_parts};
use crate::moving::may_refuse;
use crate::repeats::Repeats;
use crate::request::ArrayRequest;
use crate::telling::opened::{Again, Announced, hear, hear_again};
use hyperslab_layout::{Casting, Policies, TextParts};
use hyperslab_plan::{Direction, Transfer, TransferArray};
use hyperslab_walk::{Agreed, Votes};
use hyperslab_world::{Fault, FaultKind};
use std::sync::Arc;

/// What a rank has asked for, and with what.
pub(crate) struct Compiling<'a> {
    pub(crate) arrays: &'a [ArrayRequest],
    /// Which way, what is promised of what is written, and how many ranks ask.
    pub(crate) moves: (Direction, Policies, u32),
    pub(crate) casting: Casting,
    pub(crate) together: bool,
    /// This rank, and how many there are that ask.
    pub(crate) at: (u32, u32),
    pub(crate) decode: Decode,
    pub(crate) repeats: &'a Repeats,
    /// Whether dedicated servers handle storage.
    pub(crate) served: bool,
}

/// What to keep of a call that may come again.
pub(crate) type News = (Vec<Group>, Vec<Taken>, Votes);

/// Its parts where they are known before it is known how arrays are stored, and its arrays.
pub(crate) type Brought = (Option<Parts>, Option<Vec<Vec<LocalArray>>>);

/// An array that texts are read into, and where they are in its elements.
pub(crate) type ReadTexts = (LocalArray, TextParts);

/// What a rank moves.
pub(crate) struct Compiled {
    pub(crate) transfer: Arc<Transfer>,
    pub(crate) opening: Announced,
    pub(crate) exposure: Exposure,
    /// What is wrong with elements that would take the place of others.
    pub(crate) vetted: Option<Fault>,
    /// What is wrong with this rank's own arrays; it takes part all the same and says so at the end.
    pub(crate) fault: Option<Fault>,
    /// The arrays that it moves from or to.
    pub(crate) given: Vec<LocalArray>,
    /// Of each array of the transfer, the number of the first array of the call that it is, and how many elements of it are here.
    pub(crate) firsts: Vec<usize>,
    pub(crate) moved: Vec<u64>,
    pub(crate) texts: Vec<ReadTexts>,
    pub(crate) news: Option<News>,
}

impl Compiling<'_> {
    /// Makes of what rank 0 told what this rank moves.
    pub(crate) fn compile(&self, agreed: &Agreed, brought: Brought) -> Result<Compiled, Fault> {
        if let Some(again) = hear_again(&agreed.payload) {
            let (opening, transfer, taken) = self.recall(again).ok_or_else(senseless)?;
            return self.place(opening, transfer, &taken, brought);
        }
        let (opening, groups) = hear(&agreed.payload, self.decode, self.arrays.len()).ok_or_else(senseless)?;
        let (transfer, taken) = transfer(self.arrays, &groups, agreed.votes, self.moves)?;
        let transfer = Arc::new(if self.served { transfer } else { transfer.in_parts() });
        let may_repeat = !self.served && opening.beside.is_empty() && opening.decision.parameters.order.is_empty();
        let news = (may_repeat && !may_refuse(&transfer)).then(|| (groups, taken.clone(), agreed.votes));
        Ok(Compiled { news, ..self.place(opening, transfer, &taken, brought)? })
    }

    /// What an earlier call compiled, which comes again.
    fn recall(&self, again: Again) -> Option<(Announced, Arc<Transfer>, Vec<Taken>)> {
        let Again { number, place, costs, roots } = again;
        let mut kept = self.repeats.kept();
        let earlier = kept.take_up(number)?;
        earlier.move_to(&place);
        let decision = Decision::from_costs(costs, earlier.decision.parameters.clone())?;
        let opening = Announced { decision, roots, beside: [].into() };
        Some((opening, earlier.transfer_of(self.arrays), earlier.taken.clone()))
    }

    /// Where the elements of a transfer lie in this rank's memory.
    fn place(
        &self,
        opening: Announced,
        transfer: Arc<Transfer>,
        taken: &[Taken],
        (known, locals): Brought,
    ) -> Result<Compiled, Fault> {
        let direction = self.moves.0;
        let vetted = may_refuse(&transfer).then(|| self.vet(&transfer, taken, locals.as_deref())).flatten();
        let unfit = |((of, _), ask): (&Taken, &TransferArray)| {
            let check = |request: &ArrayRequest| request.check_types(ask.stored.element, direction, self.casting);
            self.arrays[of.clone()].iter().find_map(|request| check(request).err())
        };
        let mut fault = None;
        if direction == Direction::Read {
            fault = taken.iter().zip(&transfer.asks).find_map(unfit);
        }
        let in_stretch = known.is_some();
        let (parts, given) = match known {
            Some(parts) => (parts, locals.unwrap_or_default().into_iter().flatten().collect()),
            None => {
                let into: Option<Vec<LocalArray>> = locals.map(|locals| locals.into_iter().flatten().collect());
                let each = taken.iter().zip(&transfer.asks);
                let wanted = each.flat_map(|((of, holding), ask)| {
                    self.arrays[of.clone()].iter().map(|request| (&*request.name, ask.memory, &**holding))
                });
                let (parts, given, unfit) = destinations(wanted, into.as_deref(), self.at)?;
                fault = fault.or(unfit);
                (Parts::new(self.arrays, parts, self.together), given)
            }
        };
        let placed = |((of, holding), ask): (&Taken, &TransferArray)| {
            let parts = holding.place(&ask.name, parts.of(of)?).unwrap_or_else(|unfit| {
                fault.get_or_insert(unfit);
                if direction == Direction::Write { holding.clashing() } else { Vec::new() }
            });
            // What was exposed before it was known from where to where all ranks reach.
            let low = ask.section.dims.first().filter(|_| in_stretch).map(|triplet| triplet.start);
            Ok(match low {
                Some(low) => parts.into_iter().map(|part| part.in_stretch(low, holding)).collect(),
                None => parts,
            })
        };
        let placed: Vec<Vec<Part>> = taken.iter().zip(&transfer.asks).map(placed).collect::<Result<_, Fault>>()?;
        let moved = placed.iter().map(|parts| parts.iter().map(Part::elements).sum()).collect();
        let texts = if direction == Direction::Read { self.texts(&transfer, taken, &given) } else { Vec::new() };
        let (exposure, firsts) = (number_parts(placed), taken.iter().map(|(of, _)| of.start).collect());
        Ok(Compiled { transfer, opening, exposure, vetted, fault, given, firsts, moved, texts, news: None })
    }

    /// The arrays of those given that texts are read into, which are tidied at the end.
    fn texts(&self, transfer: &Transfer, taken: &[Taken], given: &[LocalArray]) -> Vec<ReadTexts> {
        if transfer.asks.iter().all(|ask| ask.stored.texts.is_empty()) {
            return Vec::new();
        }
        let (mut rest, mut all) = (given.iter(), Vec::new());
        for ((of, holding), ask) in taken.iter().zip(&transfer.asks) {
            let count = of.len() * holding.local_shapes(self.at.0).len();
            let same = |array: &&LocalArray| array.element == ask.stored.element && !ask.stored.texts.is_empty();
            all.extend(rest.by_ref().take(count).filter(same).map(|array| (array.clone(), ask.stored.texts.clone())));
        }
        all
    }

    /// What this rank finds wrong with elements that would take the place of others.
    fn vet(
        &self,
        transfer: &Transfer,
        taken: &[(std::ops::Range<usize>, Arc<Ownership>)],
        locals: Option<&[Vec<LocalArray>]>,
    ) -> Option<Fault> {
        let mut each = taken.iter().zip(&transfer.asks).filter(|(_, ask)| ask.stored.is_replaced());
        each.find_map(|((of, _), ask)| {
            let stored = ask.stored.element;
            let mut arrays = of.clone().filter_map(|i| Some((&self.arrays[i].name, locals?.get(i)?)));
            arrays.find_map(|(name, locals)| check_cast(name, locals, stored, self.casting).err())
        })
    }
}

fn senseless() -> Fault {
    Fault::new(FaultKind::Peer, "what rank 0 told of a transfer cannot be decoded")
}
