//! Carries typed expressions out, block by block.

use crate::arithmetic::{Cannot, ValueChange, change, choose, combine, compare};
use crate::lanes::{BlockValues, Pool};
use crate::refused::Refused;
use crate::tree::{Binary, Comparison};
use crate::typing::{Do, Operation, Typed};
use crate::weak::Weak;
use half::f16;
use hyperslab_layout::Kind;

/// How many elements are best evaluated at a time: so many that nothing else counts, so few that the processor's cache has
/// them all.
pub const BLOCK: usize = 4096;

/// Elements of one column, in the byte order of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// Their bytes, from the first one on.
    pub bytes: &'a [u8],
    /// Their type.
    pub kind: Kind,
    /// Bytes from one to the next \[B\].
    pub stride: usize,
}

impl<'a> Column<'a> {
    /// Elements one behind the other.
    pub fn dense(bytes: &'a [u8], kind: Kind) -> Column<'a> {
        Column { bytes, kind, stride: kind.bytes() as usize }
    }
}

/// Where the elements are that are evaluated: in a box, row by row, from one of its elements on.
#[derive(Clone, Copy, Debug)]
pub struct BoxPlace<'a> {
    /// Lowest index of the box in each dimension.
    pub origin: &'a [u64],
    /// Its extents.
    pub shape: &'a [u64],
    /// Number of the first element, in the row-major order of the box.
    pub first: u64,
}

impl BoxPlace<'_> {
    /// Appends the index of each of `count` elements in one dimension.
    fn indices(&self, dim: usize, count: usize, to: &mut Vec<i64>) {
        let inner: u64 = self.shape[dim + 1..].iter().product::<u64>().max(1);
        let (extent, origin) = (self.shape[dim].max(1), self.origin[dim]);
        let (mut index, mut left) = (self.first / inner % extent, inner - self.first % inner);
        let mut missing = count as u64;
        while missing > 0 {
            let run = left.min(missing);
            to.extend(std::iter::repeat_n((origin + index) as i64, run as usize));
            (missing, left) = (missing - run, inner);
            index = (index + 1) % extent;
        }
    }
}

/// Evaluates an expression again and again; what it needs for that it keeps.
pub struct Evaluator {
    typed: Typed,
    work: Operating,
    result: Option<BlockValues>,
}

/// What operations are carried out with.
#[derive(Default)]
struct Operating {
    pool: Pool,
    /// The values that each `in` is about, the innermost one last.
    here: Vec<BlockValues>,
    count: usize,
}

impl Typed {
    /// What evaluates it.
    pub fn evaluator(&self) -> Evaluator {
        Evaluator { typed: self.clone(), work: Operating::default(), result: None }
    }
}

impl Evaluator {
    /// The type of what it gives.
    pub fn kind(&self) -> Kind {
        self.typed.kind()
    }

    /// The value of each of `count` elements, whose columns are in the order in which the expression was typed. Those that
    /// it does not look at may be empty.
    ///
    /// # Errors
    /// When a value cannot be computed.
    pub fn evaluate(
        &mut self,
        columns: &[Column<'_>],
        place: BoxPlace<'_>,
        count: usize,
    ) -> Result<&BlockValues, Refused> {
        let Evaluator { typed, work, result } = self;
        if let Some(before) = result.take() {
            work.pool.give(before);
        }
        work.count = count;
        match work.values(&typed.root, columns, place) {
            Ok(lane) => Ok(result.insert(lane)),
            Err((Cannot::NegativePower, at)) => {
                work.here.clear();
                let what = "an integer is raised to a negative power, which gives no integer";
                Err(Refused::new(&typed.text, at, what).hint("make a float of one of them: `2.0 ** x`"))
            }
        }
    }
}

type NotComputed = (Cannot, std::ops::Range<usize>);

impl Operating {
    fn values(
        &mut self,
        operation: &Operation,
        columns: &[Column<'_>],
        place: BoxPlace<'_>,
    ) -> Result<BlockValues, NotComputed> {
        let kind = operation.kind;
        let mut lane = match &operation.what {
            Do::Cast(of) => {
                let from = self.values(of, columns, place)?;
                self.cast(from, kind)
            }
            Do::ValueChange(what, of) => {
                let mut lane = self.values(of, columns, place)?;
                change(*what, &mut lane);
                lane
            }
            Do::IsNan(of) => {
                let from = self.values(of, columns, place)?;
                self.are_nan(from)
            }
            Do::Choose(greater, a, b) => {
                let mut lane = self.values(a, columns, place)?;
                let other = self.values(b, columns, place)?;
                choose(*greater, kind, &mut lane, &other);
                self.pool.give(other);
                lane
            }
            Do::Combine(binary, a, b) => {
                let mut lane = self.values(a, columns, place)?;
                let other = self.values(b, columns, place)?;
                combine(*binary, &mut lane, &other).map_err(|cannot| (cannot, operation.at.clone()))?;
                self.pool.give(other);
                lane
            }
            Do::Compare(comparison, a, b) => return self.compared(*comparison, (a, b), columns, place),
            Do::In(of, items, negated) => {
                let of = self.values(of, columns, place)?;
                return self.are_in(of, (items, *negated), columns, place);
            }
            plain => return Ok(self.plain(plain, kind, columns, place)),
        };
        lane.narrow(kind);
        Ok(lane)
    }

    /// What is there already: columns, positions, constants.
    fn plain(&mut self, what: &Do, kind: Kind, columns: &[Column<'_>], place: BoxPlace<'_>) -> BlockValues {
        let count = self.count;
        let mut lane = self.pool.take(kind, count);
        match what {
            Do::Column(number) => {
                let Column { bytes, kind, stride } = columns[*number];
                lane.load(bytes, kind, stride, count);
            }
            Do::Position(dim) => {
                if let BlockValues::Signed(values) = &mut lane {
                    place.indices(*dim, count, values);
                }
            }
            Do::Constant(value) => constant(*value, kind, count, &mut lane),
            _ => {
                if let Some(here) = self.here.last() {
                    lane.append_cast(here);
                }
            }
        }
        lane
    }

    fn cast(&mut self, from: BlockValues, kind: Kind) -> BlockValues {
        let mut lane = self.pool.take(kind, self.count);
        if from.number() == lane.number() {
            self.pool.give(lane);
            return from;
        }
        lane.append_cast(&from);
        self.pool.give(from);
        lane
    }

    fn are_nan(&mut self, from: BlockValues) -> BlockValues {
        let mut lane = self.pool.take(Kind::Bool, self.count);
        if let BlockValues::Truths(truths) = &mut lane {
            match &from {
                BlockValues::Singles(values) => truths.extend(values.iter().map(|value| value.is_nan())),
                BlockValues::Doubles(values) => truths.extend(values.iter().map(|value| value.is_nan())),
                _ => truths.resize(self.count, false),
            }
        }
        self.pool.give(from);
        lane
    }

    fn are_in(
        &mut self,
        of: BlockValues,
        (items, negated): (&[Operation], bool),
        columns: &[Column<'_>],
        place: BoxPlace<'_>,
    ) -> Result<BlockValues, NotComputed> {
        self.here.push(of);
        let mut lane = self.pool.take(Kind::Bool, self.count);
        if let BlockValues::Truths(truths) = &mut lane {
            truths.resize(self.count, false);
        }
        for item in items {
            let equal = self.values(item, columns, place)?;
            // Between truth values this cannot fail.
            let _ = combine(Binary::Or, &mut lane, &equal);
            self.pool.give(equal);
        }
        if negated {
            change(ValueChange::Invert, &mut lane);
        }
        if let Some(of) = self.here.pop() {
            self.pool.give(of);
        }
        Ok(lane)
    }

    fn compared(
        &mut self,
        comparison: Comparison,
        (a, b): (&Operation, &Operation),
        columns: &[Column<'_>],
        place: BoxPlace<'_>,
    ) -> Result<BlockValues, NotComputed> {
        let a = self.values(a, columns, place)?;
        let b = self.values(b, columns, place)?;
        let mut lane = self.pool.take(Kind::Bool, self.count);
        if let BlockValues::Truths(truths) = &mut lane {
            compare(comparison, &a, &b, truths);
        }
        self.pool.give(a);
        self.pool.give(b);
        Ok(lane)
    }
}

/// One number, for each element.
fn constant(value: Weak, kind: Kind, count: usize, lane: &mut BlockValues) {
    match (lane, value) {
        (BlockValues::Truths(values), _) => values.resize(count, value.double() != 0.0),
        (BlockValues::Signed(values), Weak::Integer(value)) => values.resize(count, value as i64),
        (BlockValues::Unsigned(values), Weak::Integer(value)) => values.resize(count, value as u64),
        (BlockValues::Signed(values), Weak::Float(value)) => values.resize(count, value as i64),
        (BlockValues::Unsigned(values), Weak::Float(value)) => values.resize(count, value as u64),
        // From the whole number at once: rounding twice would give another one.
        (BlockValues::Singles(values), _) if kind == Kind::Float16 => {
            values.resize(count, f16::from_f64(value.double()).to_f32());
        }
        (BlockValues::Singles(values), _) => values.resize(count, value.double() as f32),
        (BlockValues::Doubles(values), _) => values.resize(count, value.double()),
    }
}
