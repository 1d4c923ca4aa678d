//! Lists of runs: element maps and nested-batched requests as index sets with positions.
//!
//! A rank may hold any elements in any order: run after run of its memory is a run of the global index space (PIO's
//! maps of elements, Galley's batched requests, offset and length lists). Sorted by global index, and with regular
//! repetitions folded into one entry, such a list is a region and a view like any other.

use crate::IndexSet;
use crate::axis::{Axis, Listed};
use crate::index_set::{RUNS_MIN, Term};
use crate::places::ListedPlaces;

/// Parts of a list that are looked at to see whether it follows a pattern.
const SAMPLES: usize = 16;
/// Runs of as many elements or more are worth a nest each.
const SHORT_RUN: u64 = 256;

/// Whether so many runs of so many elements together are better handled as a list than each by itself: they are many, and short.
pub fn are_many_and_short(runs: usize, elements: u64) -> bool {
    runs >= RUNS_MIN && elements / (runs as u64) < SHORT_RUN
}

/// Indices that are held, none of them twice, and where each lies.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The indices.
    pub set: IndexSet,
    /// Their positions in the rank's memory.
    pub axis: Axis,
}

/// The layers of a list of runs `(first index, length, position in memory)`.
///
/// One layer is enough unless an index is listed more than once, as readers may; then each layer holds it once.
/// Returns `None` when an index or a position does not fit, or more than `most` layers are needed.
pub fn layers(runs: impl IntoIterator<Item = (u64, u64, u64)>, most: usize) -> Option<Vec<Layer>> {
    let mut sorted = Vec::new();
    for (start, len, at) in runs {
        let fits = |first: u64| first.checked_add(len).is_some_and(|end| end < 1 << 62);
        if len > 0 && !(fits(start) && fits(at)) {
            return None;
        }
        if len > 0 {
            sorted.push((start, len, at));
        }
    }
    sorted.sort_unstable();
    if let Some(layer) = scattered(&sorted) {
        return Some(vec![layer]);
    }
    let mut layers: Vec<Vec<Listed>> = Vec::new();
    for (start, len, at) in sorted {
        let free = layers.iter().position(|layer| layer.last().is_none_or(|last| last.term.end() <= start));
        match free {
            Some(free) => append(&mut layers[free], start, len, at as i64),
            None if layers.len() == most => return None,
            None => layers.push(vec![single(start, len, at as i64)]),
        }
    }
    layers.into_iter().map(Layer::of).collect()
}

/// The one layer of sorted runs that are many, short, and follow no pattern. Whether they do is seen in some of them.
fn scattered(sorted: &[(u64, u64, u64)]) -> Option<Layer> {
    let total: u64 = sorted.iter().map(|run| run.1).fold(0, u64::saturating_add);
    if !are_many_and_short(sorted.len(), total) {
        return None;
    }
    let sample =
        sorted.chunks(sorted.len().div_ceil(SAMPLES).max(RUNS_MIN)).map(|part| &part[..part.len().min(RUNS_MIN)]);
    let (mut runs, mut entries) = (0, 0);
    for part in sample {
        let mut list = Vec::new();
        part.iter().for_each(|&(start, len, at)| append(&mut list, start, len, at as i64));
        (runs, entries) = (runs + part.len(), entries + list.len());
    }
    if entries * 4 < runs {
        return None;
    }
    let set = IndexSet::of_runs(sorted.iter().map(|run| (run.0, run.1)))?;
    Some(Layer { set, axis: Axis::Scattered(ListedPlaces::of_runs(sorted)?.into()) })
}

impl Layer {
    fn of(list: Vec<Listed>) -> Option<Layer> {
        let runs = list.iter().flat_map(|Listed { term, .. }| {
            let Term { start, len, step, count } = *term;
            (0..count).map(move |number| (start + number * step, len))
        });
        // What touches in the index space is one run there, wherever it lies in memory.
        Some(Layer { set: IndexSet::of_runs(runs)?, axis: Axis::Listed(list.into()) })
    }
}

fn single(start: u64, len: u64, at: i64) -> Listed {
    Listed { term: Term { start, len, step: len, count: 1 }, at, at_step: 0 }
}

/// Adds a run behind the last entry, or to it when it continues it.
fn append(list: &mut Vec<Listed>, start: u64, len: u64, at: i64) {
    let Some(last) = list.last_mut() else {
        list.push(single(start, len, at));
        return;
    };
    let term = &mut last.term;
    if term.count == 1 && start == term.end() && at == last.at + term.len as i64 {
        (term.len, term.step) = (term.len + len, term.len + len);
        return;
    }
    let step = start - (term.end() - term.len);
    let at_step = at - (last.at + (term.count as i64 - 1) * last.at_step);
    if len == term.len && (term.count == 1 || step == term.step && at_step == last.at_step) {
        (term.step, term.count, last.at_step) = (step, term.count + 1, at_step);
    } else {
        list.push(single(start, len, at));
    }
}

#[cfg(test)]
mod tests {
    use super::Layer;
    use crate::{Axis, IndexSet};
    use crate::{ElementType, Kind, Region, View, dense_strides, nests};

    /// Layers of runs that lie one after another.
    fn layers(runs: impl IntoIterator<Item = (u64, u64)>) -> Option<Vec<Layer>> {
        let mut at = 0u64;
        let placed = runs.into_iter().map(|(start, len)| {
            at += len;
            (start, len, at - len)
        });
        super::layers(placed, 64)
    }

    #[test]
    fn regular_lists_are_short() {
        let every_fourth = layers((0..1000).map(|i| (3 + 4 * i, 1))).unwrap();
        assert_eq!((every_fourth.len(), every_fourth[0].set.terms().len()), (1, 1));
        let backwards = layers((0..1000).rev().map(|i| (2 * i, 1))).unwrap();
        let Axis::Listed(list) = &backwards[0].axis else { panic!("listed") };
        assert_eq!((list.len(), list[0].at, list[0].at_step), (1, 999, -1));
        assert_eq!(layers((0..1000).map(|i| (i, 1))).unwrap()[0].set, IndexSet::range(0, 1000));
        // Runs that touch in the index space, but not in memory, are one run of the set all the same.
        assert_eq!(layers((0..1000).rev().map(|i| (i, 1))).unwrap()[0].set, IndexSet::range(0, 1000));
        assert_eq!(layers((0..5).map(|_| (7, 2))).unwrap().len(), 5);
        assert!(layers([(u64::MAX, 2)]).is_none());
        assert!(super::layers((0..5).map(|i| (7, 2, 2 * i)), 4).is_none());
    }

    #[test]
    fn every_listed_element_lies_where_the_list_says() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..500 {
            let extent = random.u64(1..60);
            let mut runs: Vec<(u64, u64)> = (0..random.u64(0..20))
                .map(|i| if random.bool() { (i * 3 % extent, 2) } else { (random.u64(0..extent), random.u64(0..4)) })
                .collect();
            if random.bool() {
                random.shuffle(&mut runs);
            }
            let element = ElementType::native(Kind::Int32);
            let mut expected: Vec<(i64, i64)> = Vec::new();
            for (start, len) in &runs {
                expected
                    .extend((0..*len).map(|j| (start + j) as i64 * 4).zip((expected.len()..).map(|n| n as i64 * 4)));
            }
            expected.sort_unstable();
            let file = View::held(&Region::whole(&[100]), 0, &dense_strides(&[100], &[0], 4), element);
            let mut found = Vec::new();
            for layer in layers(runs).unwrap() {
                let here = View { base: 0, axes: vec![(layer.axis, 4)], element };
                // In two parts, as pieces of units are.
                for (low, high) in [(0, 17), (17, 100)] {
                    let region =
                        Region { dims: [layer.set.intersect(&IndexSet::range(low, high))].into_iter().collect() };
                    for nest in nests(&region, &file, &here) {
                        let counts: Vec<u64> = nest.loops.iter().map(|l| l.count).collect();
                        for number in 0..nest.elements() {
                            let at = crate::mesh::unravel(number, &counts);
                            let sum = |f: fn(&crate::Loop) -> i64| {
                                at.iter().zip(&nest.loops).map(|(&i, l)| i as i64 * f(l)).sum::<i64>()
                            };
                            found.push((nest.a + sum(|l| l.a), nest.b + sum(|l| l.b)));
                        }
                    }
                }
            }
            found.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}
