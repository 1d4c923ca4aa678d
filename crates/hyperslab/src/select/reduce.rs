//! Sums, means, least and greatest values, counts and histograms of the elements for which an expression holds.
//!
//! Each chunk gives one part, on any rank, and the parts of all chunks are put together by one tree in the order of the
//! chunks. So the result is the same for any number of ranks and any budget, also where it is rounded.

use super::asked::{SELECT_BYTES, SelectReport, opened};
use super::grid::{GridUnit, SelectGrid};
use super::sharing::{concluded, not_understood};
use super::source::{Evaluated, SelectSource, array_names, refusal};
use crate::arrays::Arrays;
use crate::error::Error;
use crate::said::quoted;
use hyperslab_collective::{Compared, Packets};
use hyperslab_filter::{BLOCK, BlockValues, Expression, Parameter};
use hyperslab_layout::Kind;
use hyperslab_world::{Fault, FaultKind, Reader, Writer};

/// Most elements of a part. It does not depend on the memory that is given, since the order of a sum would.
const PART_ELEMENTS: u64 = 1 << 18;

/// How many sums go on at the same time in a block.
const LANES: usize = 8;

/// Most bins of a histogram.
const BINS_MAX: usize = 1 << 20;

/// What is made of elements.
#[derive(Clone, PartialEq, Debug)]
pub enum Reduction {
    /// How many there are.
    Count,
    /// Their sum: of integers modulo 2^64, of floats in 64 bits.
    Sum,
    /// Their mean, in 64 bits.
    Mean,
    /// The least one; NaN if one is NaN.
    Min,
    /// The greatest one; NaN if one is NaN.
    Max,
    /// How many lie between two edges that follow each other, the upper one of the last two included.
    Histogram(Vec<f64>),
}

impl Reduction {
    /// How it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Reduction::Count => "count",
            Reduction::Sum => "sum",
            Reduction::Mean => "mean",
            Reduction::Min => "min",
            Reduction::Max => "max",
            Reduction::Histogram(_) => "histogram",
        }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Reducing {
    /// What is made of them.
    pub reduction: Reduction,
    /// Of which values: the name of an array, or an expression.
    pub values: String,
    /// Of which elements: those for which this holds; all, if it is not given.
    pub condition: Option<String>,
    /// Values of names in the expressions.
    pub parameters: Vec<(String, Parameter)>,
    /// What each rank may use for buffers \[B\].
    pub memory_bytes: u64,
}

impl Reducing {
    /// Of all values.
    pub fn new(reduction: Reduction, values: impl Into<String>) -> Reducing {
        let (condition, parameters, memory_bytes) = (None, Vec::new(), SELECT_BYTES);
        Reducing { reduction, values: values.into(), condition, parameters, memory_bytes }
    }

    /// The same, of those elements for which this holds.
    #[must_use]
    pub fn of(self, condition: impl Into<String>) -> Reducing {
        Reducing { condition: Some(condition.into()), ..self }
    }
}

/// What came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Reduced {
    /// The number, or the numbers of a histogram.
    pub value: ReducedValue,
    /// Its type, where it is one number.
    pub kind: Kind,
    /// How many elements there were.
    pub count: u64,
    /// What it took on this rank.
    pub report: SelectReport,
}

/// A number, or several.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // each variant's name is its documentation
pub enum ReducedValue {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Counts(Vec<u64>),
}

/// What was made of a part.
#[derive(Clone, Copy, PartialEq, Debug)]
struct PartialResult {
    count: u64,
    value: PartialValue,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum PartialValue {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl PartialValue {
    fn bits(self) -> u64 {
        match self {
            PartialValue::Signed(value) => value as u64,
            PartialValue::Unsigned(value) => value,
            PartialValue::Float(value) => value.to_bits(),
        }
    }

    /// The value of the same type with these bits.
    fn like(self, bits: u64) -> PartialValue {
        match self {
            PartialValue::Signed(_) => PartialValue::Signed(bits as i64),
            PartialValue::Unsigned(_) => PartialValue::Unsigned(bits),
            PartialValue::Float(_) => PartialValue::Float(f64::from_bits(bits)),
        }
    }

    /// Nothing yet, of values of this kind.
    fn none(kind: Kind) -> PartialValue {
        match BlockValues::of_kind(kind) {
            BlockValues::Truths(_) | BlockValues::Signed(_) => PartialValue::Signed(0),
            BlockValues::Unsigned(_) => PartialValue::Unsigned(0),
            BlockValues::Singles(_) | BlockValues::Doubles(_) => PartialValue::Float(0.0),
        }
    }

    fn plus(self, other: PartialValue) -> PartialValue {
        match (self, other) {
            (PartialValue::Signed(a), PartialValue::Signed(b)) => PartialValue::Signed(a.wrapping_add(b)),
            (PartialValue::Unsigned(a), PartialValue::Unsigned(b)) => PartialValue::Unsigned(a.wrapping_add(b)),
            (PartialValue::Float(a), PartialValue::Float(b)) => PartialValue::Float(a + b),
            (same, _) => same,
        }
    }

    fn best(self, other: PartialValue, greater: bool) -> PartialValue {
        let takes = match (self, other) {
            (PartialValue::Signed(a), PartialValue::Signed(b)) => {
                if greater {
                    b > a
                } else {
                    b < a
                }
            }
            (PartialValue::Unsigned(a), PartialValue::Unsigned(b)) => {
                if greater {
                    b > a
                } else {
                    b < a
                }
            }
            (PartialValue::Float(a), PartialValue::Float(b)) => {
                !a.is_nan() && (b.is_nan() || if greater { b > a } else { b < a })
            }
            _ => false,
        };
        if takes { other } else { self }
    }
}

/// How two parts become one.
#[derive(Clone, Copy)]
enum Joining {
    Sum,
    Best(bool),
}

impl Joining {
    fn of(reduction: &Reduction) -> Joining {
        match reduction {
            Reduction::Min => Joining::Best(false),
            Reduction::Max => Joining::Best(true),
            _ => Joining::Sum,
        }
    }

    fn join(self, a: PartialResult, b: PartialResult) -> PartialResult {
        let count = a.count + b.count;
        match (a.count, b.count, self) {
            (0, _, _) => b,
            (_, 0, _) => a,
            (_, _, Joining::Sum) => PartialResult { count, value: a.value.plus(b.value) },
            (_, _, Joining::Best(greater)) => PartialResult { count, value: a.value.best(b.value, greater) },
        }
    }

    /// All parts as one, by a tree that follows from how many there are.
    fn tree(self, parts: &[PartialResult]) -> Option<PartialResult> {
        match parts {
            [] => None,
            [one] => Some(*one),
            _ => {
                let (low, high) = parts.split_at(parts.len().div_ceil(2));
                Some(self.join(self.tree(low)?, self.tree(high)?))
            }
        }
    }

    /// What a block of values gives, of those that count.
    fn block(self, lane: &BlockValues, truths: &[bool]) -> PartialResult {
        let count = truths.iter().filter(|&&truth| truth).count() as u64;
        macro_rules! of {
            ($values:expr, $as:ty, $value:path, $add:expr) => {{
                let values = || $values.iter().zip(truths).map(|(&value, &truth)| (<$as>::from(value), truth));
                let value = match self {
                    Joining::Sum => {
                        let mut sums = [<$as>::default(); LANES];
                        let add = $add;
                        values().enumerate().for_each(|(i, (value, truth))| {
                            let sum = &mut sums[i % LANES];
                            *sum = if truth { add(*sum, value) } else { *sum };
                        });
                        let [a, b, c, d, e, f, g, h] = sums;
                        $value(add(add(add(a, b), add(c, d)), add(add(e, f), add(g, h))))
                    }
                    Joining::Best(greater) => {
                        let mut all = values().filter(|(_, truth)| *truth).map(|(value, _)| $value(value));
                        let first = all.next().unwrap_or($value(<$as>::default()));
                        all.fold(first, |best, value| best.best(value, greater))
                    }
                };
                PartialResult { count, value }
            }};
        }
        match lane {
            BlockValues::Truths(values) => of!(values, i64, PartialValue::Signed, i64::wrapping_add),
            BlockValues::Signed(values) => of!(values, i64, PartialValue::Signed, i64::wrapping_add),
            BlockValues::Unsigned(values) => of!(values, u64, PartialValue::Unsigned, u64::wrapping_add),
            BlockValues::Singles(values) => of!(values, f64, PartialValue::Float, |a: f64, b: f64| a + b),
            BlockValues::Doubles(values) => of!(values, f64, PartialValue::Float, |a: f64, b: f64| a + b),
        }
    }
}

/// Counts values between edges, which rise.
fn count_between(edges: &[f64], lane: &BlockValues, truths: &[bool], counts: &mut [u64]) {
    let last = edges.len() - 1;
    for at in truths.iter().enumerate().filter(|(_, truth)| **truth).map(|(at, _)| at) {
        let Some(value) = lane.double(at).filter(|value| edges[0] <= *value && *value <= edges[last]) else { continue };
        let above = edges.partition_point(|edge| *edge <= value);
        counts[above.min(last) - 1] += 1;
    }
}

fn parsed(reducing: &Reducing) -> Result<(Expression, Expression), Fault> {
    let parse = |text: &str| Expression::parse(text).map_err(|refused| refusal(&refused));
    if let Reduction::Histogram(edges) = &reducing.reduction {
        // NaN is not above anything, either.
        let rise = edges.windows(2).all(|pair| pair[0] < pair[1]);
        if !rise || edges.len() < 2 || edges.len() > BINS_MAX {
            let text = format!("a histogram needs 2 to {BINS_MAX} edges that rise");
            return Err(Fault::new(FaultKind::Invalid, text));
        }
    }
    let condition = reducing.condition.as_deref().unwrap_or("True");
    Ok((parse(&reducing.values)?, parse(condition)?))
}

/// Makes one number, or a few, of the elements for which an expression holds, of what is open. Collective.
///
/// # Errors
/// The same on all ranks.
pub fn reduce_from(on: &dyn Arrays, reducing: &Reducing) -> Result<Reduced, Error> {
    let (comm, path) = (on.comm(), on.path());
    let what = format!("{} of '{}' from '{}'", reducing.reduction.name(), reducing.values, path.display());
    let (asked, key) = (reducing.clone(), format!("{reducing:?}"));
    let compared = Compared::of(("reduce", path.clone(), key), move || {
        let given = |name: &str, value: String| (name.to_string(), value);
        vec![
            given("operation", format!("{:?}", asked.reduction)),
            given("file or store", quoted(path.display())),
            given("values", quoted(&asked.values)),
            given("where", quoted(asked.condition.as_deref().unwrap_or_default())),
            given("parameters", format!("{:?}", asked.parameters)),
            given("memory", format!("{} B", asked.memory_bytes)),
        ]
    });
    let (values, condition) = opened(comm, &what, compared, parsed(reducing))?;
    let mut names = array_names(&values, &reducing.parameters);
    let more = array_names(&condition, &reducing.parameters);
    names.extend(more.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
    if names.is_empty() {
        // All ranks find this alike.
        return Err(Fault::new(FaultKind::Invalid, "no array is named").context(&what).into());
    }
    let source = SelectSource::look(on, names, "reduce")?;
    let reduced = Reducer::of(&source, reducing, (&values, &condition)).map_err(|fault| fault.context(&what))?;
    Ok(reduced.run(&what)?)
}

/// The parts of this rank, as they are made.
struct Reducer<'a> {
    source: &'a SelectSource<'a>,
    reduction: &'a Reduction,
    values: Evaluated,
    condition: Evaluated,
    kind: Kind,
    grid: SelectGrid,
    at_once: u64,
    parts: Vec<PartialResult>,
    counts: Vec<u64>,
    scratch: Vec<Vec<u8>>,
}

impl<'a> Reducer<'a> {
    fn of(
        source: &'a SelectSource<'a>,
        reducing: &'a Reducing,
        (values, condition): (&Expression, &Expression),
    ) -> Result<Reducer<'a>, Fault> {
        source.check()?;
        let typed = source.typed(values, &reducing.parameters)?;
        let deciding = source.typed(condition, &reducing.parameters)?.deciding();
        let deciding = deciding.map_err(|refused| refusal(&refused))?;
        let grid = SelectGrid::of_chunks(source.shape(), source.chunks(), PART_ELEMENTS);
        let needed = grid.elements_max().saturating_mul(source.element_bytes());
        if reducing.memory_bytes < needed {
            let text = format!("memory must be at least {needed} B here, got {} B", reducing.memory_bytes);
            return Err(
                Fault::new(FaultKind::Invalid, text).hint("each chunk is looked at as one, up to 2^18 elements")
            );
        }
        let at_once = grid.at_once(reducing.memory_bytes / source.element_bytes().max(1));
        let bins = if let Reduction::Histogram(edges) = &reducing.reduction { edges.len() - 1 } else { 0 };
        Ok(Reducer {
            source,
            reduction: &reducing.reduction,
            // As NumPy has it, a mean of integers is one of floats, whose sum does not wrap.
            kind: if reducing.reduction == Reduction::Mean { Kind::Float64 } else { typed.kind() },
            values: Evaluated::of(&typed),
            condition: Evaluated::of(&deciding),
            grid,
            at_once,
            parts: Vec::new(),
            counts: vec![0; bins],
            scratch: Vec::new(),
        })
    }

    fn look(&mut self, unit: &GridUnit, data: &[&[u8]]) -> Result<(), Fault> {
        let how = Joining::of(self.reduction);
        let mut part = PartialResult { count: 0, value: PartialValue::none(self.kind) };
        let elements = unit.elements() as usize;
        for first in (0..elements).step_by(BLOCK) {
            let block = (first, BLOCK.min(elements - first));
            let truths = self.condition.values(self.source, (unit, data), block, &mut self.scratch)?;
            let truths = truths.truths().unwrap_or_default();
            if !truths.contains(&true) {
                continue;
            }
            let lane = self.values.values(self.source, (unit, data), block, &mut self.scratch)?;
            if let Reduction::Histogram(edges) = self.reduction {
                count_between(edges, lane, truths, &mut self.counts);
                part.count += truths.iter().filter(|&&truth| truth).count() as u64;
            } else {
                let block = match (self.reduction, lane) {
                    (Reduction::Mean, BlockValues::Signed(_) | BlockValues::Unsigned(_) | BlockValues::Truths(_)) => {
                        let doubles = (0..lane.len()).map(|at| lane.double(at).unwrap_or_default());
                        how.block(&BlockValues::Doubles(doubles.collect()), truths)
                    }
                    _ => how.block(lane, truths),
                };
                part = how.join(part, block);
            }
        }
        self.parts.push(part);
        Ok(())
    }

    fn run(mut self, what: &str) -> Result<Reduced, Fault> {
        let comm = self.source.comm();
        let mine = self.grid.of_rank(comm.rank(), comm.size());
        let rounds = self.grid.len().div_ceil(u64::from(comm.size())).div_ceil(self.at_once);
        let elements = self.source.shape().iter().product();
        let mut report = SelectReport { elements, units: mine.end - mine.start, rounds, ..SelectReport::default() };
        let (mut failed, mut buffers) = (None, Vec::new());
        for round in 0..rounds {
            let first = (mine.start + round * self.at_once).min(mine.end);
            let last = (first + self.at_once).min(mine.end);
            let units: Vec<GridUnit> = (first..last).map(|number| self.grid.unit(number)).collect();
            let (mut data, read_bytes) = self.source.read(&units, &mut buffers)?;
            report.read_bytes += read_bytes;
            report.buffer_bytes = report.buffer_bytes.max(data.iter().flatten().map(Vec::len).sum::<usize>() as u64);
            for (number, unit) in units.iter().enumerate() {
                let of_unit: Vec<&[u8]> = data.iter().map(|array| array[number].as_slice()).collect();
                if failed.is_none() {
                    failed = self.look(unit, &of_unit).err();
                }
            }
            buffers.extend(data.drain(..).flatten());
        }
        let told = self.parts.iter().fold(Writer::default(), |w, part| w.number(part.count).number(part.value.bits()));
        let counts = self.counts.iter().fold(Writer::default(), |w, &count| w.number(count));
        let said = Writer::default().bytes(&told.0).bytes(&counts.0).0;
        if comm.rank() != 0 {
            report.sent_bytes += said.len() as u64;
        }
        let joined = |all: Packets| self.joined(all).ok_or_else(|| not_understood(what));
        let concluded = concluded(comm, what, failed.map_or(Ok(said), Err), joined)?;
        let mut reader = Reader::new(&concluded);
        let (count, bits) = (reader.number(), reader.number());
        let (count, bits) = count.zip(bits).ok_or_else(|| not_understood(what))?;
        let counts: Vec<u64> = std::iter::from_fn(|| reader.number()).collect();
        report.matches = count;
        let value = PartialValue::none(self.kind).like(bits);
        self.reduced(count, value, counts, report).map_err(|fault| fault.context(what))
    }

    /// On rank 0: what all parts give together.
    fn joined(&self, all: Packets) -> Option<Vec<u8>> {
        let (mut parts, mut counts) = (Vec::new(), vec![0_u64; self.counts.len()]);
        for (_, bytes) in all {
            let mut reader = Reader::new(&bytes);
            let (mut of_rank, mut counted) = (Reader::new(reader.bytes()?), Reader::new(reader.bytes()?));
            while let Some(count) = of_rank.number() {
                parts.push(PartialResult { count, value: PartialValue::none(self.kind).like(of_rank.number()?) });
            }
            for count in &mut counts {
                *count += counted.number()?;
            }
        }
        let none = PartialResult { count: 0, value: PartialValue::none(self.kind) };
        let part = Joining::of(self.reduction).tree(&parts).unwrap_or(none);
        let told = Writer::default().number(part.count).number(part.value.bits());
        Some(counts.into_iter().fold(told, Writer::number).0)
    }

    fn reduced(
        &self,
        count: u64,
        value: PartialValue,
        counts: Vec<u64>,
        report: SelectReport,
    ) -> Result<Reduced, Fault> {
        let plain = match value {
            PartialValue::Signed(value) => ReducedValue::Signed(value),
            PartialValue::Unsigned(value) => ReducedValue::Unsigned(value),
            PartialValue::Float(value) => ReducedValue::Float(value),
        };
        let double = match value {
            PartialValue::Signed(value) => value as f64,
            PartialValue::Unsigned(value) => value as f64,
            PartialValue::Float(value) => value,
        };
        let widest = match value {
            PartialValue::Signed(_) => Kind::Int64,
            PartialValue::Unsigned(_) => Kind::UInt64,
            PartialValue::Float(_) => Kind::Float64,
        };
        let (value, kind) = match self.reduction {
            Reduction::Count => (ReducedValue::Unsigned(count), Kind::UInt64),
            Reduction::Sum => (plain, widest),
            Reduction::Mean => (ReducedValue::Float(double / count as f64), Kind::Float64),
            Reduction::Histogram(_) => (ReducedValue::Counts(counts), Kind::UInt64),
            Reduction::Min | Reduction::Max if count > 0 => (plain, self.kind),
            Reduction::Min | Reduction::Max => {
                let text = format!("there is no element, and so no {}", self.reduction.name());
                return Err(Fault::new(FaultKind::Invalid, text).hint("count them first, with \"count\""));
            }
        };
        Ok(Reduced { value, kind, count, report })
    }
}
