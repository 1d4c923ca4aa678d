//! Distributions: which rank holds which elements, in the words of High Performance Fortran.
//!
//! Source: HPF 1.0, DISTRIBUTE directive, rewritten with indices from 0. With extent N, P ranks along the mesh
//! dimension, and rank coordinate q:
//!
//! | dimension | owner of i | indices of q |
//! |---|---|---|
//! | BLOCK(m) | i div m | q*m .. min((q+1)*m, N) |
//! | BLOCK | as BLOCK(ceil(N/P)) | |
//! | GEN_BLOCK(n0, n1, ...) | the q with the sum of sizes before q <= i < that plus nq | that range |
//! | CYCLIC(k) | (i div k) mod P | runs of k, k*P apart, from q*k |
//! | * | every one | 0 .. N |
//!
//! Trailing ranks may hold less than others, or nothing. Mesh dimensions that no array dimension uses replicate.

use crate::mesh::{unravel, unravel_into, volume};
use crate::tuple;
use crate::{Holdings, IndexSet, Region};
use std::fmt;
use std::sync::Arc;

/// How one dimension is spread over a mesh dimension.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// BLOCK: equal blocks of ceil(N/P).
    Block,
    /// BLOCK(n): blocks of n; n*P must reach N.
    BlockOf(u64),
    /// GEN_BLOCK of HPF 2.0: a block for each mesh coordinate, of its own size, perhaps 0. Here are the ends of the blocks;
    /// [`Dim::blocks`] makes them of sizes.
    Blocks(Arc<[u64]>),
    /// CYCLIC(k): runs of k dealt round robin; CYCLIC is CYCLIC(1).
    Cyclic(u64),
    /// `*`: not distributed.
    Whole,
}

/// Most elements of an array.
const ELEMENTS_MAX: u64 = 1 << 60;
/// Sizes of uneven blocks that are told one by one.
const BLOCKS_TOLD_MAX: usize = 16;

impl Dim {
    /// Uneven blocks of these sizes, in the order of mesh coordinates; `None` when their sum does not fit into `u64`.
    pub fn blocks(sizes: &[u64]) -> Option<Dim> {
        let ends = sizes.iter().scan(0u64, |end, &size| Some(end.checked_add(size).inspect(|&sum| *end = sum)));
        ends.collect::<Option<Arc<[u64]>>>().map(Dim::Blocks)
    }

    /// The block of mesh coordinate `q`, of uneven blocks that end here.
    fn uneven(ends: &[u64], q: u64) -> (u64, u64) {
        let end = |i: usize| ends.get(i).or(ends.last()).copied().unwrap_or(0);
        (if q == 0 { 0 } else { end(q as usize - 1) }, end(q as usize))
    }
}

/// A number of things, and the verb: "1 kind is", "2 kinds are".
fn counted(count: usize, what: &str, one: &str, several: &str) -> String {
    if count == 1 { format!("1 {what} {one}") } else { format!("{count} {what}s {several}") }
}

impl Dim {
    /// Refuses blocks that do not fit an extent spread over so many ranks.
    fn check(&self, d: usize, extent: u64, ranks: u64) -> Result<(), String> {
        let fail = |text: String, hint: String| Err(format!("{text}\n  hint: {hint}"));
        let over = || counted(ranks as usize, "rank", "", "").trim_end().to_string();
        match self {
            Dim::BlockOf(0) | Dim::Cyclic(0) => {
                let kind = if matches!(self, Dim::Cyclic(_)) { "cyclic" } else { "block" };
                fail(format!("'{kind}(0)' of dimension {d} has blocks of nothing"), "give blocks of 1 or more".into())
            }
            Dim::BlockOf(n) if n.checked_mul(ranks).is_some_and(|reach| reach < extent) => fail(
                format!("'block({n})' over {} covers {} indices, but dimension {d} has {extent}", over(), n * ranks),
                format!("give 'block', or 'block({})' or more", extent.div_ceil(ranks)),
            ),
            Dim::Cyclic(k) if k.checked_mul(ranks).is_none() => {
                fail(format!("'cyclic({k})' over {} is too large for 64 bits", over()), "give smaller blocks".into())
            }
            Dim::Blocks(ends) if ends.len() as u64 != ranks => fail(
                format!(
                    "{} given for dimension {d}, which is spread over {}",
                    counted(ends.len(), "size", "is", "are"),
                    over()
                ),
                "give a size for each of these ranks, 0 for those that hold nothing".into(),
            ),
            Dim::Blocks(ends) if ends.last() != Some(&extent) => fail(
                format!(
                    "the sizes {} add up to {}, but dimension {d} has {extent} indices",
                    sizes(ends),
                    ends[ends.len() - 1]
                ),
                "give sizes that add up to the extent".into(),
            ),
            _ => Ok(()),
        }
    }
}

/// Sizes of uneven blocks that end here, at most some of them.
fn sizes(ends: &[u64]) -> String {
    let size = |q: usize| {
        let (low, high) = Dim::uneven(ends, q as u64);
        (high - low).to_string()
    };
    let said: Vec<String> = (0..ends.len().min(BLOCKS_TOLD_MAX)).map(size).collect();
    let more = if ends.len() > BLOCKS_TOLD_MAX { ", ..." } else { "" };
    format!("[{}{more}]", said.join(", "))
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Block => f.write_str("BLOCK"),
            Dim::BlockOf(n) => write!(f, "BLOCK({n})"),
            Dim::Blocks(ends) => {
                let size = |q: usize| {
                    let (low, high) = Dim::uneven(ends, q as u64);
                    (high - low).to_string()
                };
                let mut told: Vec<String> = (0..ends.len().min(BLOCKS_TOLD_MAX)).map(size).collect();
                if ends.len() > BLOCKS_TOLD_MAX {
                    // Who compares texts must still see any difference: FNV-1a over the ends.
                    let hash = |h: u64, &end: &u64| (h ^ end).wrapping_mul(0x0100_0000_01b3);
                    let hash = ends.iter().fold(0xcbf2_9ce4_8422_2325, hash);
                    told.push(format!("... {} blocks, hash {hash:x}", ends.len()));
                }
                write!(f, "GEN_BLOCK({})", told.join(", "))
            }
            Dim::Cyclic(1) => f.write_str("CYCLIC"),
            Dim::Cyclic(k) => write!(f, "CYCLIC({k})"),
            Dim::Whole => f.write_str("*"),
        }
    }
}

/// Why a distribution cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DistributionError(String);

impl fmt::Display for DistributionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DistributionError {}

/// A global index space spread over a mesh of ranks. Rank numbers are row-major mesh coordinates; ranks beyond the
/// mesh hold nothing.
///
/// Copies share what it is made of: hundreds of arrays in one call are spread alike.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Distribution {
    shape: Arc<[u64]>,
    mesh: Arc<[u64]>,
    dims: Arc<[Dim]>,
    /// Mesh dimension of each array dimension; `None` for `*`.
    over: Arc<[Option<usize>]>,
}

impl Distribution {
    /// Spreads `shape` over `mesh`. Dimensions other than `*` take the mesh dimensions in order.
    ///
    /// # Errors
    /// When numbers of dimensions do not fit, a mesh extent or a block size is 0, BLOCK(n) does not reach the extent, or
    /// sizes overflow.
    pub fn new(shape: &[u64], mesh: &[u64], dims: &[Dim]) -> Result<Self, DistributionError> {
        Distribution::spread(shape, mesh, dims, None)
    }

    /// The same, where dimensions other than `*` take these dimensions of the mesh, in this order. Mesh dimensions that
    /// nobody takes replicate.
    ///
    /// # Errors
    /// As [`Distribution::new`]; also when a mesh dimension is named twice or does not exist.
    pub fn over_mesh(shape: &[u64], mesh: &[u64], dims: &[Dim], over: &[usize]) -> Result<Self, DistributionError> {
        Distribution::spread(shape, mesh, dims, Some(over))
    }

    fn spread(shape: &[u64], mesh: &[u64], dims: &[Dim], over: Option<&[usize]>) -> Result<Self, DistributionError> {
        let fail = |text: String| Err(DistributionError(text));
        if dims.len() != shape.len() {
            let (given, ndim, shape) = (counted(dims.len(), "kind", "is", "are"), shape.len(), tuple(shape));
            return fail(format!(
                "{given} given, but the shape {shape} has {ndim} dimensions\n  hint: give one of 'block', 'block(n)', 'cyclic', 'cyclic(k)', '*' or a list of sizes for each dimension"
            ));
        }
        if mesh.contains(&0) || volume(mesh).is_none_or(|ranks| ranks > u64::from(u32::MAX)) {
            return fail(format!("the mesh {mesh} must have between 1 and {} ranks", u32::MAX, mesh = tuple(mesh)));
        }
        if volume(shape).is_none_or(|elements| elements > ELEMENTS_MAX) {
            return fail(format!("the shape {shape} has more than 2^60 elements", shape = tuple(shape)));
        }
        let over = assign(dims, mesh, over)?;
        for (d, (dim, &mesh_dim)) in dims.iter().zip(&over).enumerate() {
            let ranks = mesh_dim.map_or(1, |m| mesh[m]);
            dim.check(d, shape[d], ranks).map_err(DistributionError)?;
        }
        Ok(Distribution { shape: shape.into(), mesh: mesh.into(), dims: dims.into(), over: over.into() })
    }

    /// All of the array on each of `ranks` ranks.
    pub fn replicated(shape: &[u64], ranks: u64) -> Result<Self, DistributionError> {
        Distribution::new(shape, &[ranks], &vec![Dim::Whole; shape.len()])
    }

    /// So many arrays, each spread so, as one array with one dimension more, the slowest; `None` when it is too large.
    pub fn stacked(&self, arrays: u64) -> Option<Distribution> {
        let shape: Arc<[u64]> = [arrays].iter().chain(&*self.shape).copied().collect();
        let dims = [Dim::Whole].iter().chain(&*self.dims).cloned().collect();
        let over = [None].iter().chain(&*self.over).copied().collect();
        let fits = volume(&shape).is_some_and(|elements| elements <= ELEMENTS_MAX);
        fits.then(|| Distribution { shape, mesh: self.mesh.clone(), dims, over })
    }

    /// Global shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Mesh shape.
    pub fn mesh(&self) -> &[u64] {
        &self.mesh
    }

    /// Distribution of each dimension.
    pub fn dims(&self) -> &[Dim] {
        &self.dims
    }

    /// Mesh dimension of each array dimension.
    pub fn over(&self) -> &[Option<usize>] {
        &self.over
    }

    /// Number of ranks of the mesh.
    pub fn ranks(&self) -> u64 {
        self.mesh.iter().product()
    }

    /// Extents of the mesh dimensions that replicate.
    fn replicas(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.mesh.iter().copied().enumerate().filter(|(m, _)| !self.over.contains(&Some(*m)))
    }

    /// How many ranks hold each element.
    pub fn replication(&self) -> u64 {
        self.replicas().map(|(_, extent)| extent).product()
    }

    /// Indices of dimension `d` that mesh coordinate `q` holds.
    pub fn owned_dim(&self, d: usize, q: u64) -> IndexSet {
        let extent = self.shape[d];
        let ranks = self.over[d].map_or(1, |m| self.mesh[m]);
        match self.dims[d] {
            Dim::Whole => IndexSet::range(0, extent),
            Dim::Block => block(q, extent.div_ceil(ranks), extent),
            Dim::BlockOf(n) => block(q, n, extent),
            Dim::Blocks(ref ends) => {
                let (low, high) = Dim::uneven(ends, q);
                IndexSet::range(low, high)
            }
            Dim::Cyclic(k) => {
                let count = extent.saturating_sub(q * k).div_ceil(k * ranks);
                let all = IndexSet::progression(q * k, k, k * ranks, count).unwrap_or_default();
                all.intersect(&IndexSet::range(0, extent))
            }
        }
    }

    /// A mesh coordinate that holds as much of dimension `d` as any.
    pub fn fullest(&self, d: usize) -> u64 {
        let Dim::Blocks(ends) = &self.dims[d] else { return 0 };
        let size = |&q: &u64| {
            let (low, high) = Dim::uneven(ends, q);
            (high - low, std::cmp::Reverse(q))
        };
        (0..ends.len() as u64).max_by_key(size).unwrap_or(0)
    }

    /// The part of a rank that holds as much as any: coordinates are independent of each other.
    pub fn largest_part(&self) -> Region {
        Region { dims: (0..self.shape.len()).map(|d| self.owned_dim(d, self.fullest(d))).collect() }
    }

    /// Elements that `rank` holds; empty for ranks beyond the mesh.
    pub fn owned(&self, rank: u32) -> Region {
        if u64::from(rank) >= self.ranks() {
            return Region::empty(self.shape.len());
        }
        let at = unravel(u64::from(rank), &self.mesh);
        Region { dims: (0..self.shape.len()).map(|d| self.owned_dim(d, self.over[d].map_or(0, |m| at[m]))).collect() }
    }

    /// Mesh coordinates, along dimension `d`'s mesh dimension, of the ranks that hold an index in `low..high`. Of uneven
    /// blocks, some that hold nothing may be among them.
    fn coordinates(&self, d: usize, low: u64, high: u64) -> Coordinates {
        let ranks = self.over[d].map_or(1, |m| self.mesh[m]);
        let blocks = |n: u64| Coordinates::range(low / n, ((high - 1) / n + 1).min(ranks));
        match self.dims[d] {
            Dim::Whole => Coordinates::range(0, 1),
            Dim::Block => blocks(self.shape[d].div_ceil(ranks)),
            Dim::BlockOf(n) => blocks(n),
            Dim::Blocks(ref ends) => {
                let first = ends.partition_point(|&end| end <= low) as u64;
                let last = ends.partition_point(|&end| end < high) as u64;
                Coordinates::range(first, (last + 1).min(ranks))
            }
            Dim::Cyclic(k) => {
                let (first, last) = (low / k, (high - 1) / k);
                if last - first >= ranks {
                    return Coordinates::range(0, ranks);
                }
                let (first, last) = (first % ranks, last % ranks);
                if first <= last {
                    Coordinates::range(first, last + 1)
                } else {
                    Coordinates { before: last + 1, low: first, high: ranks }
                }
            }
        }
    }

    /// The indices of dimension `d` in `low..high` that mesh coordinate `q` holds.
    pub(crate) fn owned_within(&self, d: usize, q: u64, low: u64, high: u64) -> IndexSet {
        let extent = self.shape[d];
        let ranks = self.over[d].map_or(1, |m| self.mesh[m]);
        let clip = |(a, b): (u64, u64)| IndexSet::range(a.max(low), b.min(high));
        let block = |n: u64| clip((q.saturating_mul(n), (q + 1).saturating_mul(n).min(extent)));
        match self.dims[d] {
            Dim::Whole => clip((0, extent)),
            Dim::Block => block(extent.div_ceil(ranks)),
            Dim::BlockOf(n) => block(n),
            Dim::Blocks(ref ends) => clip(Dim::uneven(ends, q)),
            Dim::Cyclic(k) => IndexSet::clipped(q * k, k, k * ranks, low, high.min(extent)),
        }
    }

    /// The elements of a box that `rank` holds.
    pub fn piece(&self, rank: u32, bounds: &[(u64, u64)]) -> Region {
        if u64::from(rank) >= self.ranks() {
            return Region::empty(self.shape.len());
        }
        let mut coordinates = [0; 8];
        let mut more = Vec::new();
        let at = if self.mesh.len() <= 8 {
            &mut coordinates[..self.mesh.len()]
        } else {
            more.resize(self.mesh.len(), 0);
            &mut more[..]
        };
        unravel_into(u64::from(rank), &self.mesh, at);
        let within = |(d, &(low, high)): (usize, &(u64, u64))| {
            self.owned_within(d, self.over[d].map_or(0, |m| at[m]), low, high)
        };
        Region { dims: bounds.iter().enumerate().map(within).collect() }
    }

    /// Ranks that hold an element of the box, in rising order. Of replicated elements all holders are named, or
    /// only replica number `replica` modulo their number when one is asked for.
    pub fn owners(&self, bounds: &[(u64, u64)], replica: Option<u64>) -> Vec<u32> {
        self.holders(bounds, replica).filter(|&rank| !self.piece(rank, bounds).is_empty()).collect()
    }

    /// As [`Distribution::owners`], one by one; of uneven blocks, ranks that hold nothing may be among them.
    pub fn holders(&self, bounds: &[(u64, u64)], replica: Option<u64>) -> Holders {
        let empty = bounds.iter().any(|&(low, high)| low >= high);
        let mut choices: Vec<Coordinates> = self.mesh.iter().map(|&extent| Coordinates::range(0, extent)).collect();
        if empty {
            return Holders { mesh: [].into(), choices: Vec::new(), next: 0, total: 0 };
        }
        for (d, &(low, high)) in bounds.iter().enumerate() {
            if let Some(m) = self.over[d] {
                choices[m] = self.coordinates(d, low, high);
            }
        }
        if let Some(replica) = replica {
            let (at, extents): (Vec<usize>, Vec<u64>) = self.replicas().unzip();
            let chosen = unravel(replica % self.replication(), &extents);
            for (m, q) in at.into_iter().zip(chosen) {
                choices[m] = Coordinates::range(q, q + 1);
            }
        }
        let total = choices.iter().map(Coordinates::len).product();
        Holders { mesh: self.mesh.clone(), choices, next: 0, total }
    }

    /// As [`Distribution::holders`], each with what it holds, and without those that hold nothing.
    pub fn holdings(&self, bounds: &[(u64, u64)], replica: Option<u64>) -> Holdings {
        Holdings::new(self, bounds, self.holders(bounds, replica))
    }

    /// Which replica `rank` is, among [`Distribution::replication`]; 0 for ranks beyond the mesh.
    pub fn replica_of(&self, rank: u32) -> u64 {
        if u64::from(rank) >= self.ranks() {
            return 0;
        }
        let at = unravel(u64::from(rank), &self.mesh);
        self.replicas().fold(0, |number, (m, extent)| number * extent + at[m])
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(Dim::to_string).collect();
        write!(f, "{} as ({}) over mesh {}", tuple(&self.shape), dims.join(", "), tuple(&self.mesh))?;
        let natural: Vec<usize> = (0..self.over.iter().flatten().count()).collect();
        let used: Vec<usize> = self.over.iter().flatten().copied().collect();
        if used != natural { write!(f, " dimensions {used:?}") } else { Ok(()) }
    }
}

/// Some coordinates of a mesh dimension: `0..before` and, behind them, `low..high`.
#[derive(Clone, Copy, Debug)]
struct Coordinates {
    before: u64,
    low: u64,
    high: u64,
}

impl Coordinates {
    fn range(low: u64, high: u64) -> Coordinates {
        Coordinates { before: 0, low, high }
    }

    fn len(&self) -> u64 {
        self.before + self.high.saturating_sub(self.low)
    }

    fn get(&self, number: u64) -> u64 {
        if number < self.before { number } else { self.low + (number - self.before) }
    }
}

/// Ranks that hold something of a box, in rising order, in closed form.
#[derive(Clone, Debug)]
pub struct Holders {
    mesh: Arc<[u64]>,
    choices: Vec<Coordinates>,
    next: u64,
    total: u64,
}

impl Holders {
    /// How many there are in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many coordinates of mesh dimension `m` are among them.
    pub(crate) fn along(&self, m: usize) -> u64 {
        self.choices[m].len()
    }

    /// Coordinate number `number` of those of mesh dimension `m`.
    pub(crate) fn coordinate(&self, m: usize, number: u64) -> u64 {
        self.choices[m].get(number)
    }

    /// Holder number `number`.
    pub fn get(&self, mut number: u64) -> u32 {
        let (mut rank, mut weight) = (0, 1);
        for (choice, &extent) in self.choices.iter().zip(&*self.mesh).rev() {
            rank += choice.get(number % choice.len()) * weight;
            number /= choice.len();
            weight *= extent;
        }
        rank as u32
    }
}

impl Iterator for Holders {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        (self.next < self.total).then(|| {
            self.next += 1;
            self.get(self.next - 1)
        })
    }
}

fn block(q: u64, n: u64, extent: u64) -> IndexSet {
    IndexSet::range(q.saturating_mul(n).min(extent), (q + 1).saturating_mul(n).min(extent))
}

/// Gives each distributed dimension its mesh dimension.
fn assign(dims: &[Dim], mesh: &[u64], over: Option<&[usize]>) -> Result<Vec<Option<usize>>, DistributionError> {
    let distributed = dims.iter().filter(|&dim| *dim != Dim::Whole).count();
    let order: Vec<usize> = over.map_or_else(|| (0..distributed).collect(), <[usize]>::to_vec);
    let fail = |text: String, hint: &str| Err(DistributionError(format!("{text}\n  hint: {hint}")));
    let said = tuple(mesh);
    if order.len() != distributed {
        let named = counted(order.len(), "dimension", "is", "are");
        let spread = counted(distributed, "dimension", "is", "are");
        let text = format!("{spread} distributed, but {named} named by over");
        return fail(text, "name a dimension of the mesh for each distributed dimension");
    }
    if over.is_none() && distributed > mesh.len() {
        let spread = counted(distributed, "dimension", "is", "are");
        let text = format!("{spread} distributed, but the mesh {said} has {}", mesh.len());
        return fail(text, "give the mesh an extent for each of them, or give '*' for what is not distributed");
    }
    if let Some(missing) = order.iter().find(|&&m| m >= mesh.len()) {
        let text = format!("over names dimension {missing} of the mesh {said}, which has {}", mesh.len());
        return fail(text, "count dimensions of the mesh from 0");
    }
    if let Some(twice) = order.iter().enumerate().find_map(|(i, m)| order[..i].contains(m).then_some(m)) {
        let text = format!("over names dimension {twice} of the mesh {said} twice");
        return fail(text, "name another dimension of the mesh for each distributed dimension");
    }
    let mut next = order.into_iter();
    Ok(dims.iter().map(|dim| if *dim == Dim::Whole { None } else { next.next() }).collect())
}

/// All combinations of one value from each list, the last list fastest.
pub fn product<T: Clone>(lists: &[Vec<T>]) -> impl Iterator<Item = Vec<T>> + '_ {
    let total: usize = lists.iter().map(Vec::len).product();
    (0..total).map(move |mut number| {
        let mut choice: Vec<T> = Vec::with_capacity(lists.len());
        for list in lists.iter().rev() {
            choice.push(list[number % list.len()].clone());
            number /= list.len();
        }
        choice.reverse();
        choice
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(extent: u64, ranks: u64, dim: Dim) -> Vec<u64> {
        let distribution = Distribution::new(&[extent], &[ranks], &[dim]).unwrap();
        (0..ranks as u32).map(|rank| distribution.owned(rank).elements()).collect()
    }

    #[test]
    fn uneven_examples_of_the_reference() {
        let mut block = vec![3; 13];
        block.extend([1, 0, 0]);
        assert_eq!(counts(40, 16, Dim::Block), block);
        let mut cyclic = vec![3; 8];
        cyclic.extend([2; 8]);
        assert_eq!(counts(40, 16, Dim::Cyclic(1)), cyclic);
        let mut block = vec![7; 13];
        block.extend([6, 0, 0]);
        assert_eq!(counts(97, 16, Dim::Block), block);
        assert_eq!(counts(10000, 40, Dim::BlockOf(256))[39], 16);
    }

    #[test]
    fn stacked_arrays_are_each_spread_as_before() {
        let one = Distribution::over_mesh(&[7, 5], &[3, 2], &[Dim::Cyclic(2), Dim::Block], &[1, 0]).unwrap();
        let stacked = one.stacked(4).unwrap();
        assert_eq!((stacked.shape(), stacked.mesh(), stacked.ranks()), (&[4, 7, 5][..], &[3, 2][..], 6));
        for rank in 0..8 {
            let (all, each) = (stacked.owned(rank), one.owned(rank));
            if !each.is_empty() {
                assert_eq!((&all.dims[0], &all.dims[1..]), (&IndexSet::range(0, 4), &each.dims[..]));
            }
            assert_eq!(all.elements(), 4 * each.elements());
        }
        assert!(one.stacked(1 << 56).is_none());
    }

    /// HPF's formulas, element by element.
    fn owner(index: u64, extent: u64, ranks: u64, dim: &Dim) -> u64 {
        match dim {
            Dim::Block => index / extent.div_ceil(ranks),
            Dim::BlockOf(n) => index / n,
            Dim::Blocks(ends) => ends.iter().position(|&end| index < end).unwrap() as u64,
            Dim::Cyclic(k) => (index / k) % ranks,
            Dim::Whole => 0,
        }
    }

    /// Blocks of all kinds of sizes, also 0, that add up to the extent.
    fn uneven(extent: u64, ranks: u64, salt: u64) -> Dim {
        let mut rest = extent;
        let sizes = (0..ranks).map(|q| {
            let size = if q + 1 == ranks { rest } else { (rest * (q + salt) / (ranks + 2)).min(rest) };
            rest -= size;
            size
        });
        Dim::blocks(&sizes.collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn uneven_blocks_are_told_apart() {
        let dim = |sizes: &[u64]| Dim::blocks(sizes).unwrap().to_string();
        assert_eq!(dim(&[2, 0, 3]), "GEN_BLOCK(2, 0, 3)");
        let many: Vec<u64> = (0..100).collect();
        let mut other = many.clone();
        other.swap(70, 71);
        assert_ne!(dim(&many), dim(&other));
        assert!(dim(&many).contains("100 blocks"));
        assert_eq!(Dim::blocks(&[u64::MAX, 1]), None);
        let short = Distribution::new(&[6], &[3], &[Dim::blocks(&[2, 0, 3]).unwrap()]).unwrap_err();
        assert!(short.to_string().contains("add up to the extent"), "{short}");
    }

    #[test]
    fn all_small_distributions_follow_the_formulas() {
        for extent in 0..20 {
            for ranks in 1..6 {
                let mut dims = vec![Dim::Block, Dim::Cyclic(1), Dim::Cyclic(2), Dim::Cyclic(3), Dim::Cyclic(30)];
                dims.extend((1..8).filter(|n| n * ranks >= extent).map(Dim::BlockOf));
                dims.extend((0..4).map(|salt| uneven(extent, ranks, salt)));
                for dim in dims {
                    let distribution = Distribution::new(&[extent], &[ranks], std::slice::from_ref(&dim)).unwrap();
                    for q in 0..ranks {
                        let owned: Vec<u64> = distribution.owned_dim(0, q).iter().collect();
                        let expected: Vec<u64> = (0..extent).filter(|&i| owner(i, extent, ranks, &dim) == q).collect();
                        assert_eq!(owned, expected, "{dim} of {extent} over {ranks}, rank {q}");
                    }
                    let parts = (0..ranks).map(|q| distribution.owned(q as u32).elements());
                    assert_eq!(Some(distribution.largest_part().elements()), parts.max(), "{dim} of {extent}");
                    for low in 0..extent {
                        for high in low + 1..=extent {
                            let mut expected: Vec<u32> =
                                (low..high).map(|i| owner(i, extent, ranks, &dim) as u32).collect();
                            expected.sort_unstable();
                            expected.dedup();
                            assert_eq!(distribution.owners(&[(low, high)], None), expected);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn mesh_dimensions_left_over_replicate() {
        let d = Distribution::over_mesh(&[8, 4], &[2, 3], &[Dim::Block, Dim::Whole], &[0]).unwrap();
        assert_eq!(d.replication(), 3);
        assert_eq!(d.owned(0), d.owned(2));
        assert_eq!(d.owners(&[(0, 1), (0, 1)], None), [0, 1, 2]);
        assert_eq!(d.owners(&[(0, 1), (0, 1)], Some(4)), [1]);
        assert_eq!(d.owners(&[(0, 8), (0, 1)], Some(2)), [2, 5]);
        assert_eq!((0..7).map(|r| d.replica_of(r)).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
        assert!(d.owned(6).is_empty());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let new = |mesh: &[u64], dims: &[Dim], over| {
            Distribution::spread(&[10, 10], mesh, dims, over).unwrap_err().to_string()
        };
        assert!(new(&[2], &[Dim::Block], None).contains("1 kind is given, but the shape (10, 10) has 2"));
        assert!(
            new(&[2], &[const { Dim::Block }; 2], None)
                .contains("2 dimensions are distributed, but the mesh (2,) has 1")
        );
        assert!(
            new(&[2, 2], &[const { Dim::Block }; 2], Some(&[0, 0])).contains("dimension 0 of the mesh (2, 2) twice")
        );
        assert!(new(&[0, 2], &[const { Dim::Block }; 2], None).contains("between 1 and"));
        assert!(new(&[2, 2], &[Dim::Block, Dim::BlockOf(4)], None).contains("block(4)"));
        assert!(new(&[2, 2], &[Dim::Block, Dim::Cyclic(0)], None).contains("'cyclic(0)' of dimension 1"));
    }
}
