//! Which elements each rank holds, as the oracle knows it: by distributions, in boxes, in lists.

use super::oracle;
use hyperslab_layout::{Distribution, IndexSet, Region};
use hyperslab_plan::Direction;

/// How the plan knows of a piece.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// From a distribution, which says that the rank holds this.
    Regular(Region),
    /// As a box.
    Box,
    /// As lists of runs, one for each dimension.
    List,
    /// As runs that repeat at several levels, of one dimension.
    Nest(IndexSet),
}

/// Elements of a section's index space that lie in one box of memory: for each dimension, which index is at which
/// position.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) order: Vec<Vec<u64>>,
    pub(crate) known: Known,
}

/// Pieces of one array, of each rank.
pub(crate) type Pieces = Vec<Vec<Piece>>;

impl Piece {
    pub(crate) fn shape(&self) -> Vec<u64> {
        self.order.iter().map(|order| order.len() as u64).collect()
    }

    /// What a rank holds in a distribution.
    pub(crate) fn regular(d: &Distribution, rank: u32) -> Piece {
        let owned = oracle::owned(d.shape(), d.dims(), d.mesh(), d.over(), u64::from(rank));
        let order = owned.unwrap_or_else(|| vec![Vec::new(); d.shape().len().max(1)]);
        Piece { order, known: Known::Regular(d.owned(rank)) }
    }

    pub(crate) fn boxed(bounds: &[(u64, u64)]) -> Piece {
        Piece { order: bounds.iter().map(|&(low, high)| (low..high).collect()).collect(), known: Known::Box }
    }

    pub(crate) fn list(order: Vec<Vec<u64>>) -> Piece {
        Piece { order, known: Known::List }
    }

    /// What lies in these bounds of random runs that repeat at several levels.
    fn nest(random: &mut fastrand::Rng, low: u64, high: u64) -> Piece {
        let (mut span, mut levels) = (random.u64(1..4), Vec::new());
        let run = span;
        for _ in 0..random.usize(2..4) {
            let (count, step) = (random.u64(1..4), span + random.u64(0..3));
            span += (count - 1) * step;
            levels.insert(0, (count, step));
        }
        let start = random.u64(0..=high);
        let mut all = vec![start];
        for &(count, step) in &levels {
            all = all.iter().flat_map(|&from| (0..count).map(move |i| from + i * step)).collect();
        }
        let inside = all.iter().flat_map(|&from| from..from + run).filter(|at| (low..high).contains(at)).collect();
        let set = IndexSet::nested(start, run, &levels).expect("it rises").within(low, high);
        Piece { order: vec![inside], known: Known::Nest(set) }
    }

    /// All elements, in the order of memory.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Vec<u64>> + '_ {
        let at = |place: Vec<u64>| place.iter().zip(&self.order).map(|(&p, order)| order[p as usize]).collect();
        oracle::indices(&self.shape()).into_iter().map(at)
    }
}

/// Cuts a sequence into runs and puts these into another order.
fn reorder(random: &mut fastrand::Rng, indices: &[u64]) -> Vec<u64> {
    let mut runs: Vec<Vec<u64>> = Vec::new();
    let long = random.u64(1..6);
    for &index in indices {
        match runs.last_mut() {
            Some(run) if (run.len() as u64) < long => run.push(index),
            _ => runs.push(vec![index]),
        }
    }
    match random.u8(0..4) {
        0 => {}
        1 => runs.reverse(),
        _ => random.shuffle(&mut runs),
    }
    runs.concat()
}

/// Random pieces: disjoint for a write, overlapping as they like for a read. Some elements belong to nobody, some ranks
/// hold nothing.
pub(crate) fn any_pieces(random: &mut fastrand::Rng, shape: &[u64], ranks: u32, direction: Direction) -> Pieces {
    let mut holders: Vec<u32> = (0..ranks).collect();
    random.shuffle(&mut holders);
    holders.truncate(random.usize(1..=holders.len()));
    let mut all = vec![Vec::new(); ranks as usize];
    if direction == Direction::Read {
        for rank in holders {
            all[rank as usize] = (0..random.u8(0..5)).map(|_| any_piece(random, shape)).collect();
        }
        return all;
    }
    let any = |random: &mut fastrand::Rng| holders[random.usize(0..holders.len())] as usize;
    for bounds in any_boxes(random, shape) {
        if random.u8(0..6) == 0 {
            continue;
        }
        if let (&[(low, high)], 0) = (&bounds[..], random.u8(0..3)) {
            all[any(random)].push(Piece::nest(random, low, high));
            continue;
        }
        if shape.is_empty() || random.u8(0..3) > 0 {
            all[any(random)].push(Piece::boxed(&bounds));
            continue;
        }
        // Element by element along one dimension.
        let d = random.usize(0..shape.len());
        let mut deal = vec![Vec::new(); random.usize(1..5)];
        for index in bounds[d].0..bounds[d].1 {
            let to = random.usize(0..deal.len());
            deal[to].push(index);
        }
        for indices in deal {
            let mut order: Vec<Vec<u64>> = bounds.iter().map(|&(low, high)| (low..high).collect()).collect();
            order[d] = indices;
            let order = order.iter().map(|indices| reorder(random, indices)).collect();
            all[any(random)].push(Piece::list(order));
        }
    }
    all
}

/// The whole, cut a few times.
fn any_boxes(random: &mut fastrand::Rng, shape: &[u64]) -> Vec<Vec<(u64, u64)>> {
    let mut boxes: Vec<Vec<(u64, u64)>> = vec![shape.iter().map(|&n| (0, n)).collect()];
    for _ in 0..if shape.is_empty() { 0 } else { random.u8(0..8) } {
        let (i, d) = (random.usize(0..boxes.len()), random.usize(0..shape.len()));
        let (low, high) = boxes[i][d];
        let cut = random.u64(low..=high);
        let mut upper = boxes[i].clone();
        boxes[i][d].1 = cut;
        upper[d].0 = cut;
        boxes.push(upper);
    }
    boxes
}

/// Any box, or any list, in which elements of one dimension may repeat.
pub(crate) fn any_piece(random: &mut fastrand::Rng, shape: &[u64]) -> Piece {
    let bounds: Vec<(u64, u64)> = shape
        .iter()
        .map(|&n| {
            let (a, b) = (random.u64(0..=n), random.u64(0..=n));
            if random.u8(0..4) == 0 { (0, n) } else { (a.min(b), a.max(b)) }
        })
        .collect();
    if let (&[(low, high)], 0) = (&bounds[..], random.u8(0..3)) {
        return Piece::nest(random, low, high);
    }
    if shape.is_empty() || random.bool() {
        return Piece::boxed(&bounds);
    }
    let mut order: Vec<Vec<u64>> =
        bounds.iter().map(|&(low, high)| reorder(random, &(low..high).collect::<Vec<_>>())).collect();
    let d = random.usize(0..shape.len());
    if shape[d] > 0 {
        let runs = (0..random.u8(0..6)).flat_map(|_| {
            let start = random.u64(0..shape[d]);
            start..(start + random.u64(1..5)).min(shape[d])
        });
        order[d] = runs.collect();
    }
    Piece::list(order)
}
