//! Selecting reads: the elements for which an expression holds, each on the rank that asks for it.
//!
//! Each rank reads units of whole chunks and evaluates the expression on what it has read, round by round within a budget of
//! memory. Only what matches travels: with how many elements each run of the grid has, so that a receiver can put what comes
//! from several ranks into file order. Where who gets what follows from the element, it leaves with each round. An even share
//! is known only when all have counted, so that what was found waits where it is until then.

mod asked;
mod found;
mod grid;
mod in_memory;
mod records;
mod reduce;
mod sharing;
mod source;

pub use asked::{ResultShare, SELECT_BYTES, SelectReport, Selection};
pub use hyperslab_filter::{Parameter, Scalar};
pub use in_memory::evaluate;
pub use reduce::{Reduced, ReducedValue, Reducing, Reduction, reduce_from};

use crate::arrays::Arrays;
use crate::comm::Comm;
use crate::error::Error;
use crate::said::{NOT_GIVEN, quoted};
use asked::{SELECT_BYTES_MIN, opened};
use found::{Arrived, Matches};
use grid::{GridUnit, SelectGrid};
use hyperslab_collective::Compared;
use hyperslab_filter::{BLOCK, Expression};
use hyperslab_layout::{ElementType, Kind};
use hyperslab_world::{Fault, FaultKind};
use sharing::{FileOrder, MatchOwners, collect, evenly};
use source::{Evaluated, SelectSource, array_names, refusal};

/// What this rank gets.
#[derive(Debug)]
pub struct SelectedElements {
    arrived: Vec<Arrived>,
    /// Which elements of what has arrived come first, next, ...
    order: Vec<sharing::MatchPiece>,
    columns: Vec<(String, ElementType)>,
    shape: Vec<u64>,
    count: u64,
    report: SelectReport,
}

impl SelectedElements {
    /// How many elements this rank got.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether it got none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Names and types of the columns: those of the arrays, then `positions` if they were asked for.
    pub fn columns(&self) -> &[(String, ElementType)] {
        &self.columns
    }

    /// Extents of the grid.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// What it took.
    pub fn report(&self) -> SelectReport {
        self.report
    }

    /// Bytes of a column \[B\].
    pub fn bytes(&self, column: usize) -> u64 {
        self.columns.get(column).map_or(0, |(_, element)| self.count * element.bytes())
    }

    /// Copies the values of a column, by its number, to the beginning of this memory, as an array of its type has them.
    pub fn copy_to(&self, column: usize, mut to: &mut [u8]) {
        let Some((_, element)) = self.columns.get(column) else { return };
        for piece in &self.order {
            let values = self.arrived[piece.arrived].values(column, element.bytes() as usize, piece.elements());
            let (now, rest) = to.split_at_mut(values.len().min(to.len()));
            now.copy_from_slice(&values[..now.len()]);
            to = rest;
        }
    }

    /// The values of a column as bytes.
    pub fn values(&self, column: usize) -> Vec<u8> {
        let mut values = vec![0; self.bytes(column) as usize];
        self.copy_to(column, &mut values);
        values
    }
}

/// What was parsed of what is asked.
struct Parsed {
    /// Arrays that are read: those that are columns come first.
    names: Vec<String>,
    columns: Vec<String>,
    expression: Expression,
    owner: Option<Expression>,
}

fn parsed(selection: &Selection) -> Result<Parsed, Fault> {
    let parse = |text: &str| Expression::parse(text).map_err(|refused| refusal(&refused));
    let expression = parse(&selection.expression)?;
    let owner = match &selection.share {
        ResultShare::Owner(text) => Some(parse(text)?),
        ResultShare::Even | ResultShare::Distribution(_) => None,
    };
    let columns = selection.columns.clone();
    let columns = columns.unwrap_or_else(|| array_names(&expression, &selection.parameters));
    let mut names = columns.clone();
    for expression in [&expression].into_iter().chain(&owner) {
        names.extend(array_names(expression, &selection.parameters));
    }
    let mut each = Vec::new();
    names.into_iter().for_each(|name| {
        if !each.contains(&name) {
            each.push(name)
        }
    });
    if each.is_empty() {
        let text = "neither the expression nor the columns name an array";
        return Err(Fault::new(FaultKind::Invalid, text).hint("name at least one array in columns"));
    }
    if selection.memory_bytes < SELECT_BYTES_MIN {
        let text = format!("memory must be at least {SELECT_BYTES_MIN} B, got {} B", selection.memory_bytes);
        return Err(Fault::new(FaultKind::Invalid, text));
    }
    Ok(Parsed { names: each, columns, expression, owner })
}

/// Reads the elements for which an expression holds, from what is open. Collective.
///
/// # Errors
/// The same on all ranks.
pub fn select_from(on: &dyn Arrays, selection: &Selection) -> Result<SelectedElements, Error> {
    let (comm, path) = (on.comm(), on.path());
    let what = format!("select from '{}'", path.display());
    let asked = selection.clone();
    let key = format!("{selection:?}");
    let compared = Compared::of(("select", path.clone(), key), move || {
        let Selection { expression, columns, positions, parameters, share, memory_bytes } = &asked;
        let given = |name: &str, value: String| (name.to_string(), value);
        vec![
            given("operation", "select".into()),
            given("file or store", quoted(path.display())),
            given("expression", quoted(expression)),
            given("columns", columns.as_ref().map_or(NOT_GIVEN.into(), |columns| quoted(columns.join(", ")))),
            given("positions", positions.to_string()),
            given("parameters", format!("{parameters:?}")),
            given("share", format!("{share:?}")),
            given("memory", format!("{memory_bytes} B")),
        ]
    });
    let parsed = opened(comm, &what, compared, parsed(selection))?;
    let source = SelectSource::look(on, parsed.names.clone(), "select")?;
    // All ranks look at the same, and find the same.
    let selecting = Selecting::of(&what, comm, &source, selection, &parsed).map_err(|fault| fault.context(&what))?;
    Ok(selecting.run()?)
}

/// A selection under way on this rank.
struct Selecting<'a> {
    what: &'a str,
    comm: &'a Comm,
    source: &'a SelectSource<'a>,
    grid: SelectGrid,
    /// Units that are looked at in a round.
    at_once: u64,
    found: Finding<'a>,
    even: bool,
}

impl<'a> Selecting<'a> {
    fn of(
        what: &'a str,
        comm: &'a Comm,
        source: &'a SelectSource<'a>,
        selection: &Selection,
        parsed: &Parsed,
    ) -> Result<Selecting<'a>, Fault> {
        source.check()?;
        let columns = parsed.columns.iter().map(|name| source.number(name).expect("it is among the names"));
        let columns: Vec<usize> = columns.collect();
        let filter = source.typed(&parsed.expression, &selection.parameters)?.deciding();
        let filter = filter.map_err(|refused| refusal(&refused))?;
        let owner = parsed.owner.as_ref().map(|owner| {
            let typed = source.typed(owner, &selection.parameters)?.counting();
            typed.map_err(|refused| refusal(&refused).context("owner"))
        });
        let destinations = MatchOwners::of(&selection.share, owner.transpose()?, source.shape(), comm.size())?;
        let destinations = destinations.on(comm.rank());
        let sizes = columns.iter().map(|&array| source.element(array).bytes() as usize);
        let sizes: Vec<usize> = sizes.chain(selection.positions.then_some(8)).collect();
        let record = sizes.iter().sum::<usize>() as u64;
        // What is read, what is found of it, what is sent and what arrives.
        let bytes = source.element_bytes() + 3 * record;
        let elements = (selection.memory_bytes / bytes.max(1)).max(1);
        let total: u64 = source.shape().iter().product();
        // Several units for each rank, so that all have about as much to do.
        let even = total.div_ceil(4 * u64::from(comm.size())).max(1 << 12);
        let grid = SelectGrid::joined(source.shape(), source.chunks(), elements.min(even));
        let at_once = grid.at_once(elements);
        let names = columns.iter().map(|&array| (source.names[array].clone(), source.element(array)));
        let position = selection.positions.then(|| ("positions".to_string(), ElementType::native(Kind::UInt64)));
        let found = Finding {
            source,
            arrays: columns.clone(),
            positions: selection.positions,
            filter: Evaluated::of(&filter),
            destinations,
            packets: Vec::new(),
            names: names.chain(position).collect(),
            sizes,
            scratch: Vec::new(),
            matching: Vec::new(),
            count: 0,
        };
        let even = selection.share == ResultShare::Even;
        Ok(Selecting { what, comm, source, grid, at_once, found, even })
    }

    /// How many rounds all ranks make: as many as that with the most units.
    fn rounds(&self) -> u64 {
        let most = self.grid.len().div_ceil(u64::from(self.comm.size()));
        most.div_ceil(self.at_once)
    }

    fn run(mut self) -> Result<SelectedElements, Fault> {
        let (rank, size) = (self.comm.rank(), self.comm.size());
        let mine = self.grid.of_rank(rank, size);
        let mut report = SelectReport { elements: self.source.shape().iter().product(), ..SelectReport::default() };
        (report.units, report.rounds) = (mine.end - mine.start, self.rounds());
        let (mut held, mut arrived, mut failed, mut buffers) = (Vec::new(), Vec::new(), None, Vec::new());
        let sizes = self.found.sizes.clone();
        for round in 0..report.rounds {
            let first = (mine.start + round * self.at_once).min(mine.end);
            let units: Vec<GridUnit> =
                (first..(first + self.at_once).min(mine.end)).map(|number| self.grid.unit(number)).collect();
            let (mut data, read_bytes) = self.source.read(&units, &mut buffers)?;
            report.read_bytes += read_bytes;
            let read: usize = data.iter().flatten().map(Vec::len).sum();
            for (number, unit) in units.iter().enumerate() {
                let of_unit: Vec<&[u8]> = data.iter().map(|array| array[number].as_slice()).collect();
                if failed.is_none() {
                    failed = self.found.look(&self.grid, unit, &of_unit).err();
                }
            }
            let packets = std::mem::take(&mut self.found.packets);
            let found: u64 = packets.iter().map(|(_, found)| found.bytes()).sum();
            report.buffer_bytes = report.buffer_bytes.max(read as u64 + found);
            buffers.extend(data.drain(..).flatten());
            if self.even {
                held.extend(packets.into_iter().map(|(_, found)| found));
            } else {
                let packets = failed.take().map_or(Ok(packets), Err);
                arrived.extend(collect(self.comm, self.what, packets, &sizes, (&mut report, read as u64))?);
            }
        }
        drop(buffers);
        let Finding { names, count, .. } = self.found;
        let grid = &self.grid;
        if self.even {
            let held = failed.take().map_or(Ok(held), Err);
            (arrived, report.matches) = evenly(self.comm, self.what, grid, held, &sizes, &mut report)?;
        } else {
            report.matches = sharing::total(self.comm, self.what, count)?;
        }
        let FileOrder { order, count } = sharing::ordered(grid, &arrived);
        let shape = self.source.shape().to_vec();
        Ok(SelectedElements { arrived, order, columns: names, shape, count, report })
    }
}

/// What finds elements in units.
struct Finding<'a> {
    source: &'a SelectSource<'a>,
    arrays: Vec<usize>,
    positions: bool,
    filter: Evaluated,
    destinations: MatchOwners,
    /// What was found in this round, by the rank that it is for.
    packets: Vec<(u32, Matches)>,
    names: Vec<(String, ElementType)>,
    sizes: Vec<usize>,
    scratch: Vec<Vec<u8>>,
    /// Numbers of the elements of a block that match.
    matching: Vec<u32>,
    count: u64,
}

impl Finding<'_> {
    /// Looks at the elements of a unit.
    fn look(&mut self, grid: &SelectGrid, unit: &GridUnit, data: &[&[u8]]) -> Result<(), Fault> {
        self.destinations.enter(unit);
        let elements = unit.elements() as usize;
        for first in (0..elements).step_by(BLOCK) {
            let count = BLOCK.min(elements - first);
            let lane = self.filter.values(self.source, (unit, data), (first, count), &mut self.scratch)?;
            self.matching.clear();
            let truths = lane.truths().unwrap_or_default().iter().zip(0..);
            self.matching.extend(truths.filter(|(truth, _)| **truth).map(|(_, number)| number));
            if self.matching.is_empty() {
                continue;
            }
            self.count += self.matching.len() as u64;
            let block = (first, count);
            let matching = std::mem::take(&mut self.matching);
            let sent = self.destinations.each(
                self.source,
                (unit, data),
                (block, &matching),
                &mut self.scratch,
                &mut |to, elements| {
                    let packet = match self.packets.iter().position(|(rank, _)| *rank == to) {
                        Some(known) => known,
                        None => {
                            self.packets.push((to, Matches::new(self.sizes.len())));
                            self.packets.len() - 1
                        }
                    };
                    let found = &mut self.packets[packet].1;
                    found.note_all(grid, unit, elements.iter().map(|&element| (first + element as usize) as u64));
                    for (column, (&array, &size)) in found.columns.iter_mut().zip(self.arrays.iter().zip(&self.sizes)) {
                        gather(column, &data[array][first * size..], elements, size);
                    }
                    if self.positions
                        && let Some(column) = found.columns.last_mut()
                    {
                        place(column, grid, unit, first, elements);
                    }
                },
            );
            self.matching = matching;
            sent?;
        }
        Ok(())
    }
}

/// Appends the values of these elements.
fn gather(to: &mut Vec<u8>, from: &[u8], elements: &[u32], size: usize) {
    fn each<const N: usize>(to: &mut Vec<u8>, from: &[u8], elements: &[u32]) {
        let (from, _) = from.as_chunks::<N>();
        to.reserve(N * elements.len());
        elements.iter().for_each(|&element| to.extend_from_slice(&from[element as usize]));
    }
    let (first, last) = (elements[0] as usize, elements[elements.len() - 1] as usize);
    if last - first + 1 == elements.len() {
        return to.extend(&from[first * size..(last + 1) * size]);
    }
    match size {
        1 => each::<1>(to, from, elements),
        2 => each::<2>(to, from, elements),
        4 => each::<4>(to, from, elements),
        8 => each::<8>(to, from, elements),
        16 => each::<16>(to, from, elements),
        _ => elements
            .iter()
            .for_each(|&element| to.extend(&from[element as usize * size..(element as usize + 1) * size])),
    }
}

/// Appends where these elements are, as numbers in file order.
fn place(to: &mut Vec<u8>, grid: &SelectGrid, unit: &GridUnit, first: usize, elements: &[u32]) {
    let length = grid.run_length(unit);
    let (mut start, mut run) = (0, u64::MAX);
    for &element in elements {
        let element = first as u64 + u64::from(element);
        if element / length != run {
            run = element / length;
            start = grid.position(unit, run * length);
        }
        to.extend((start + element % length).to_ne_bytes());
    }
}

/// The same calls for all that holds arrays.
macro_rules! calls_that_select {
    ($($holder:ident),*) => {$(
        impl crate::$holder {
            /// Reads the elements for which an expression holds. Collective.
            ///
            /// # Errors
            /// The same on all ranks: when the expression is refused, arrays have several shapes, an owner is no rank, or
            /// reading fails.
            pub fn select(&self, selection: &Selection) -> Result<SelectedElements, Error> {
                select_from(self, selection)
            }

            /// Makes one number, or a few, of the elements for which an expression holds. Collective.
            ///
            /// # Errors
            /// The same on all ranks, as of selecting; also when there is no such element, and the number would be none.
            pub fn reduce(&self, reducing: &Reducing) -> Result<Reduced, Error> {
                reduce_from(self, reducing)
            }
        }
    )*};
}

calls_that_select!(Store, File);
