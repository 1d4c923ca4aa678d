//! What a transfer would do, without doing it.

use super::shapes::{Open, reshaped};
use super::shards::{choose_shards, new_array};
use super::stored::{stored, stored_to_read};
use crate::error::Error;
use crate::options::WriteOptions;
use crate::planning::said_of_chunks;
use hyperslab_collective::{Ownership, checked_section, listed, natural_chunks, number_parts};
use hyperslab_format::raw::Order;
use hyperslab_format::zarr::ArrayMetadata;
use hyperslab_layout::mesh::{balanced, volume};
use hyperslab_layout::{Dim, Distribution, Durability, ElementType, Policies, Section, tuple};
use hyperslab_plan::{
    Choice, Direction, Explanation, Facts, Limits, Machine, Planner, Preference, Stored, Strategy, Transfer,
    TransferArray, explain as explain_transfer,
};
use hyperslab_world::{Fault, FaultKind};
use std::borrow::Cow;
use std::sync::Arc;

/// Where the arrays would be stored.
#[derive(Clone, Debug)]
pub enum Layout {
    /// In a Zarr store, as new arrays are.
    Zarr(Box<WriteOptions>),
    /// One after another in a raw file.
    Raw {
        /// Order of the elements of each array.
        order: Order,
        /// Bytes before the first array \[B\].
        header_bytes: u64,
    },
}

/// A transfer that is to be explained.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Names of the arrays, all of them held alike.
    pub names: Vec<String>,
    /// How the ranks hold them: one distribution for all, or what each rank holds, by rank.
    pub held: Vec<Ownership>,
    /// Type of the elements in memory.
    pub element: ElementType,
    /// A section of existing arrays of this shape; without it, whole arrays move.
    pub section: Option<(Section, Vec<u64>)>,
    /// Where they are stored.
    pub layout: Layout,
    /// Which way.
    pub direction: Direction,
    /// These ranks and no others are servers; the rule names some when not given.
    pub servers: Option<Vec<u32>>,
    /// What the user wants himself.
    pub hints: Preference,
    /// What the machine is.
    pub machine: Machine,
    /// How much is shown.
    pub limits: Limits,
}

/// Tells how a transfer would be done: the strategy chosen and why, and who moves what.
///
/// # Errors
/// When the arrays cannot be, pieces or sections do not fit them or each other, or no strategy fits.
pub fn explain(planned: &Planned) -> Result<Explanation, Error> {
    let size = planned.size()?;
    let profile = crate::profile::at_hand();
    let planner = Planner { profile: &profile, machine: planned.machine, strategies: &Strategy::ALL };
    let (mut transfer, said) = planned.transfer(size, &planner)?;
    // Before elements are numbered in another way.
    let fits = |held: &Ownership| planned.names.iter().try_for_each(|name| held.check(name, size));
    planned.held.iter().try_for_each(fits)?;
    let (held, run) = listed(&mut transfer.asks, planned.held.clone());
    let parts = |rank: u32| {
        let held = held.get(rank as usize).unwrap_or(&held[0]);
        let imagined = planned.names.iter().map(|name| held.imagined(name, planned.element, (rank, size)));
        imagined.collect::<Result<Vec<_>, Fault>>().map(number_parts)
    };
    let transfer = Arc::new(transfer);
    let refuse = |no: hyperslab_plan::Infeasible| Error::invalid(no.reason).with_hint(no.hint);
    let hints = planned.hints();
    let mut choice: Choice = planner.choose(&transfer, &hints, &|_| run.clone()).map_err(refuse)?;
    choice.why += &said;
    let regular = planned.held[0].regular().is_some();
    let facts = if regular { Vec::new() } else { all_facts(&transfer, &choice, size, parts)? };
    // What one rank cannot hold of a distribution, none can; explicit pieces were all looked at above.
    parts(0)?;
    let views = |rank: u32| {
        let users = parts(rank).map(|(users, _)| users).unwrap_or_default();
        users.into_iter().map(|user| user.view).collect()
    };
    Ok(explain_transfer(&transfer, &choice, planned.limits, &facts, views))
}

/// What all ranks know of explicit pieces, once they have told.
fn all_facts(
    transfer: &Arc<Transfer>,
    choice: &Choice,
    size: u32,
    parts: impl Fn(u32) -> Result<hyperslab_collective::Exposure, Fault>,
) -> Result<Vec<Arc<Facts>>, Fault> {
    let mine = (0..size).map(|rank| parts(rank).map(|(_, mine)| mine)).collect::<Result<Vec<_>, _>>()?;
    let all = Facts::of_all(transfer, &choice.parameters, mine);
    for facts in &all {
        if let Some(overlap) = facts.overlap(transfer, &choice.parameters) {
            let name = &transfer.asks[overlap.array as usize].name;
            let ((a, b), at) = (overlap.ranks, overlap.index(transfer));
            let text = format!("ranks {a} and {b} both write element {} of '{name}'", tuple(&at));
            return Err(Fault::new(FaultKind::Invalid, text).hint("let one rank write each element"));
        }
    }
    Ok(all.into_iter().map(Arc::new).collect())
}

impl Planned {
    /// Number of ranks.
    fn size(&self) -> Result<u32, Fault> {
        let ask =
            |text: String| Err(Fault::new(FaultKind::Invalid, text).hint("name arrays, and say how they are held"));
        if self.names.is_empty() {
            return ask("there is no array to explain".into());
        }
        match self.held.as_slice() {
            [] => ask("nobody holds anything".into()),
            [Ownership::Regular(distribution)] => Ok(distribution.ranks() as u32),
            held => {
                let alike = |h: &Ownership| h.regular().is_none() && h.shape() == held[0].shape();
                match held.iter().position(|h| !alike(h)) {
                    Some(rank) => {
                        let shapes = format!("rank {rank} holds {}, rank 0 {}", held[rank], held[0]);
                        ask(format!("pieces of each rank's own must be of one global shape: {shapes}"))
                    }
                    None => Ok(held.len() as u32),
                }
            }
        }
    }

    fn hints(&self) -> Preference {
        Preference { server_ranks: self.servers.clone(), ..self.hints.clone() }
    }

    /// What moves, and a word on the chunks that were chosen.
    fn transfer(&self, size: u32, planner: &Planner<'_>) -> Result<(Transfer, String), Fault> {
        let held = &self.held[0];
        let shape = self.section.as_ref().map_or(held.shape(), |(_, shape)| shape);
        let mut end = 0;
        let mut asks = Vec::with_capacity(self.names.len());
        let mut shaped = None;
        for (name, root) in self.names.iter().zip(0..) {
            let section = self.section.as_ref().map(|(section, _)| section);
            let section = checked_section(name, section, shape, held.shape())?;
            let stored = match &self.layout {
                Layout::Zarr(new) => {
                    if shaped.is_none() {
                        shaped = Some(self.shaped(name, shape, size, new, planner)?);
                    }
                    let (metadata, _) = shaped.as_ref().expect("made for the first array, which all are like");
                    match self.direction {
                        Direction::Write => stored(metadata, root, self.is_new()),
                        Direction::Read => stored_to_read(metadata, root),
                    }
                }
                Layout::Raw { order, header_bytes } => {
                    let (stored, bytes) = self.in_file(name, shape, *order, header_bytes.saturating_add(end))?;
                    end += bytes;
                    stored
                }
            };
            asks.push(TransferArray {
                name: name.clone(),
                section,
                spread: held.spread(),
                memory: self.element,
                stored,
            });
        }
        let transfer = Transfer { direction: self.direction, asks, ranks: size, policies: written(self.direction) };
        // As a call does without dedicated servers, which are not explained.
        Ok((transfer.in_parts(), shaped.map(|(_, said)| said).unwrap_or_default()))
    }

    /// Whether arrays are made by what is explained.
    fn is_new(&self) -> bool {
        self.section.is_none() && self.direction == Direction::Write
    }

    /// What the arrays are on disk, whose chunks were chosen when they were written whole; and a word on these.
    fn shaped(
        &self,
        name: &str,
        shape: &[u64],
        size: u32,
        new: &WriteOptions,
        planner: &Planner<'_>,
    ) -> Result<(ArrayMetadata, String), Fault> {
        let kind = new.element.map_or(self.element.kind, |element| element.kind);
        new.check(name, shape)?;
        let whole = self.whole(shape, size)?;
        // What is wanted of reading or changing an array was not wanted of writing it.
        let hints = if self.is_new() { self.hints() } else { Preference::default() };
        let chunks = new.chunks.clone().unwrap_or_else(|| natural_chunks(&whole, kind.bytes()));
        let metadata = new_array(name, shape, kind, &chunks, new)?;
        let ask = TransferArray {
            name: name.to_string(),
            section: Section::whole(shape),
            spread: whole.spread(),
            memory: self.element,
            stored: stored(&metadata, 0, true),
        };
        let open = Open {
            metadata: &metadata,
            ask,
            arrays: self.names.len(),
            laid: None,
            hints,
            ranks: size,
            policies: written(Direction::Write),
        };
        // Calls choose chunks so, too: where they will be read is not known.
        let planner = &Planner { machine: Machine { maps_files: false, ..planner.machine }, ..*planner };
        let taken = planner.cheapest_layout(&chunks, &open.ladders(new), |chunk| open.uses(new, chunk));
        let mut said = said_of_chunks(name, &taken, &chunks);
        let mut metadata = reshaped(&metadata, taken.chunk);
        let (natural, budget) = (natural_chunks(&whole, kind.bytes()), self.hints.buffer_bytes_max);
        let chosen = choose_shards(&open, new, &metadata, &natural, budget, |one| planner.can(one));
        if let Some((made, saved)) = chosen {
            (metadata, said) = (made, said + &saved);
        }
        Ok((metadata, if self.is_new() { said } else { String::new() }))
    }

    /// How the stored arrays may have been held by those who wrote them whole.
    fn whole(&self, shape: &[u64], size: u32) -> Result<Cow<'_, Ownership>, Fault> {
        if self.section.is_none() {
            return Ok(Cow::Borrowed(&self.held[0]));
        }
        let mesh = balanced(size.into(), shape.len().max(1));
        let dims = vec![Dim::Block; shape.len()];
        let blocks = Distribution::new(shape, &mesh, &dims);
        blocks.map(|d| Cow::Owned(d.into())).map_err(|error| Fault::said_by(FaultKind::Invalid, error))
    }

    fn in_file(&self, name: &str, shape: &[u64], order: Order, offset: u64) -> Result<(Stored, u64), Fault> {
        let element = ElementType::native(self.element.kind);
        let bytes = volume(shape).and_then(|elements| elements.checked_mul(element.bytes())).filter(|&b| b < 1 << 60);
        let bytes = bytes.ok_or_else(|| {
            Fault::new(
                FaultKind::Invalid,
                format!("array '{name}' of shape {shape} is too large", shape = tuple(shape)),
            )
        })?;
        Ok((Stored::in_file(shape, element, "file", offset).ordered(order.of_dimensions(shape.len())), bytes))
    }
}

/// What is explained is made durable unless somebody says otherwise, when it is published.
fn written(direction: Direction) -> Policies {
    Policies::of(if direction == Direction::Write { Durability::Soon } else { Durability::Cached })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(held: Vec<Ownership>, layout: Layout) -> Planned {
        Planned {
            names: vec!["a".into(), "b".into()],
            held,
            element: ElementType::native(hyperslab_layout::Kind::Float64),
            section: None,
            layout,
            direction: Direction::Write,
            servers: None,
            hints: Preference::default(),
            machine: Machine { ranks_per_node: 4, cores_per_node: 4, maps_files: false },
            limits: Limits::default(),
        }
    }

    fn blocks() -> Ownership {
        Distribution::new(&[16, 16], &[2, 2], &[const { Dim::Block }; 2]).unwrap().into()
    }

    #[test]
    fn arrays_lie_one_after_another_in_a_raw_file() {
        let layout = Layout::Raw { order: Order::ColumnMajor, header_bytes: 100 };
        let text =
            explain(&Planned { servers: Some(vec![3, 1]), ..planned(vec![blocks()], layout) }).unwrap().to_string();
        assert!(text.contains("from byte 100, column-major"), "{text}");
        assert!(text.contains("from byte 2148, column-major"), "{text}");
        assert!(text.contains("servers: 3, 1\n"), "{text}");
    }

    #[test]
    fn pieces_of_each_rank_are_explained_for_all() {
        let rank = |boxes: Vec<Vec<(u64, u64)>>| Ownership::Boxes { shape: vec![4, 4], boxes };
        let held = vec![rank(vec![vec![(0, 2), (0, 4)]]), rank(vec![vec![(2, 4), (0, 2)], vec![(2, 4), (2, 4)]])];
        let told = explain(&planned(held.clone(), Layout::Zarr(Box::default()))).unwrap();
        let moved: u64 = told.rounds.iter().flat_map(|round| &round.peers).map(|peer| peer.counts.elements).sum();
        assert_eq!(moved, 32, "{told}");
        let mut overlapping = held;
        overlapping[1] = rank(vec![vec![(1, 3), (0, 2)]]);
        let refused = explain(&planned(overlapping, Layout::Zarr(Box::default()))).unwrap_err().to_string();
        assert!(refused.contains("ranks 0 and 1 both write element (1, 0) of 'a'"), "{refused}");
        let mixed = explain(&planned(vec![rank(Vec::new()), blocks()], Layout::Zarr(Box::default())));
        assert!(mixed.unwrap_err().to_string().contains("one global shape"));
    }

    #[test]
    fn a_section_of_an_existing_array_is_updated() {
        let section = Section { dims: vec![hyperslab_layout::Triplet { start: 1, stride: 2, count: 16, block: 1 }; 2] };
        let one =
            Planned { section: Some((section, vec![40, 40])), ..planned(vec![blocks()], Layout::Zarr(Box::default())) };
        let told = explain(&one).unwrap();
        assert!(told.servers.iter().any(|requests| requests.reads > 0), "chunks are changed, not replaced: {told}");
        let small = Planned { section: one.section.clone().map(|(section, _)| (section, vec![20, 40])), ..one };
        assert!(explain(&small).unwrap_err().to_string().contains("ends at 32"));
    }
}
