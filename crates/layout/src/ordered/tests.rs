//! Sets and views of lists: against plain loops over their elements, and how their costs grow.

use super::Finger;
use crate::counted::looks;
use crate::{ElementType, IndexSet, Kind, Region, Triplet, View, layers, nests};
use std::collections::BTreeSet;

const ELEMENT: ElementType = ElementType::native(Kind::UInt8);

#[test]
fn a_finger_finds_what_halving_finds_wherever_it_is() {
    for many in 0..40_usize {
        let list: Vec<usize> = (0..many).collect();
        for place in 0..many + 3 {
            for bound in 0..=many {
                let mut finger = Finger(place);
                assert_eq!(finger.find(&list, |&entry| entry < bound), bound, "{many} from {place}");
                assert_eq!(finger.0, bound);
            }
        }
    }
}

/// Runs that have no index in common, in rising order, with gaps of all sizes: also between 2^40 and more.
fn runs(random: &mut fastrand::Rng, most: u64) -> Vec<(u64, u64)> {
    let (mut at, huge) = (0, random.u8(0..3) == 0);
    let same = random.u8(0..3) == 0;
    let (len, gap) = (random.u64(1..4), random.u64(0..4));
    let mut made = Vec::new();
    for _ in 0..random.u64(0..most) {
        let irregular = !same || random.u8(0..8) == 0;
        let (len, gap) = if irregular { (random.u64(1..4), random.u64(0..6)) } else { (len, gap) };
        at += gap + if huge && random.u8(0..4) == 0 { random.u64(0..1 << 40) } else { 0 };
        made.push((at, len));
        at += len;
    }
    made
}

/// A set and its indices: rising runs, progressions that cross each other, or runs at several levels one behind the other.
fn some_set(random: &mut fastrand::Rng) -> (IndexSet, BTreeSet<u64>) {
    match random.u8(0..4) {
        0 => {
            // Progressions with one step, each of a residue class of its own.
            let step = random.u64(8..20);
            let mut classes: Vec<u64> = (0..step).collect();
            random.shuffle(&mut classes);
            let count = random.usize(1..8);
            let sets: Vec<IndexSet> = classes[..count]
                .iter()
                .map(|class| {
                    let (start, many) = (class + step * random.u64(0..20), random.u64(1..12));
                    IndexSet::progression(start, 1, step, many).unwrap()
                })
                .collect();
            let all = sets.iter().flat_map(|set| set.iter().collect::<Vec<_>>()).collect();
            (IndexSet::union_of_disjoint(sets), all)
        }
        1 => {
            let (mut parts, mut all, mut at) = (Vec::new(), BTreeSet::new(), 0);
            for _ in 0..random.u64(1..9) {
                at += random.u64(0..30);
                let levels = [(random.u64(1..4), 12), (random.u64(1..4), 3)];
                let set = IndexSet::nested(at, random.u64(1..3), &levels).unwrap();
                at = set.hull().unwrap().1;
                for i in 0..levels[0].0 {
                    for j in 0..levels[1].0 {
                        let start = set.hull().unwrap().0 + i * 12 + j * 3;
                        all.extend(start..start + set.len() / levels[0].0 / levels[1].0);
                    }
                }
                parts.extend(set.parts());
            }
            (IndexSet::of_parts(parts).unwrap(), all)
        }
        _ => {
            let runs = runs(random, 60);
            let all = runs.iter().flat_map(|&(start, len)| start..start + len).collect();
            (IndexSet::of_runs(runs).unwrap(), all)
        }
    }
}

/// An index near those of a set.
fn near(random: &mut fastrand::Rng, all: &BTreeSet<u64>) -> u64 {
    let (low, high) = (all.first().copied().unwrap_or(0), all.last().copied().unwrap_or(0));
    let some = all.iter().nth(random.usize(0..all.len().max(1))).copied().unwrap_or(0);
    match random.u8(0..4) {
        0 => random.u64(low..high + 4),
        _ => (some + random.u64(0..5)).saturating_sub(2),
    }
}

fn indices(set: &IndexSet) -> Vec<u64> {
    set.iter().collect()
}

#[test]
fn sets_of_many_parts_say_what_their_elements_say() {
    let mut random = fastrand::Rng::with_seed(41);
    let (mut many, mut woven) = (0, 0);
    for _ in 0..3000 {
        let (set, all) = some_set(&mut random);
        many += u32::from(set.terms().len() > 3);
        woven += u32::from(set.terms().windows(2).any(|pair| pair[1].start < pair[0].end()));
        assert_eq!(indices(&set), all.iter().copied().collect::<Vec<_>>());
        assert_eq!(set.len(), all.len() as u64);
        assert_eq!(set.is_empty(), all.is_empty());
        assert_eq!(set.hull(), all.first().map(|&first| (first, all.last().unwrap() + 1)));
        let mut finger = Finger::default();
        for _ in 0..12 {
            let (one, other) = (near(&mut random, &all), near(&mut random, &all));
            let (low, high) = (one.min(other), one.max(other));
            let inside: Vec<u64> = all.range(low..high).copied().collect();
            assert_eq!(set.below(one), all.range(..one).count() as u64, "{set:?} below {one}");
            assert_eq!(set.below_from(&mut finger, one), set.below(one));
            assert_eq!(set.contains(one), all.contains(&one));
            assert_eq!(set.at_or_after(one), all.range(one..).next().copied());
            assert_eq!(set.meets(low, high), !inside.is_empty());
            let part = set.within(low, high);
            assert_eq!(indices(&part), inside, "{set:?} in {low}..{high}");
            // One form, however it was made.
            assert_eq!(part.len(), inside.len() as u64);
            assert_eq!(set.select(all.len() as u64), None);
        }
        let (other, more) = some_set(&mut random);
        let both = set.intersect(&other);
        assert_eq!(indices(&both), all.intersection(&more).copied().collect::<Vec<_>>(), "{set:?} and {other:?}");
        assert_eq!(other.intersect(&set), both);
        assert_eq!(set.intersect(&set), set);
    }
    assert!(many > 1000 && woven > 200, "{many} long, {woven} woven");
}

/// Elements in an order of their own, and where each lies: those of one rank, of some that share an index space.
fn maps(random: &mut fastrand::Rng, ranks: usize) -> Vec<Vec<(u64, u64)>> {
    let mut all = runs(random, 80);
    if random.bool() {
        // As single elements.
        all = all.iter().flat_map(|&(start, len)| (start..start + len).map(|index| (index, 1))).collect();
    }
    if random.u8(0..4) > 0 {
        random.shuffle(&mut all);
    }
    let mut of_ranks = vec![Vec::new(); ranks];
    for run in all {
        // Some hold nothing; and some elements are held by none.
        let rank = random.usize(0..ranks + 1);
        of_ranks.get_mut(rank % ranks.max(2)).into_iter().for_each(|map| map.push(run));
    }
    of_ranks
}

fn placed(runs: &[(u64, u64)]) -> Vec<(u64, u64, u64)> {
    let mut at = 0;
    let place = |&(start, len): &(u64, u64)| {
        at += len;
        (start, len, at - len)
    };
    runs.iter().map(place).collect()
}

/// The addresses that the nests of a region visit in two views.
fn visited(region: &Region, a: &View, b: &View) -> Vec<(i64, i64)> {
    let mut found = Vec::new();
    for nest in nests(region, a, b) {
        let counts: Vec<u64> = nest.loops.iter().map(|l| l.count).collect();
        for number in 0..nest.elements() {
            let at = crate::mesh::unravel(number, &counts);
            let reach =
                |f: fn(&crate::Loop) -> i64| at.iter().zip(&nest.loops).map(|(&i, l)| i as i64 * f(l)).sum::<i64>();
            found.push((nest.a + reach(|l| l.a), nest.b + reach(|l| l.b)));
        }
    }
    found.sort_unstable_by_key(|pair| pair.1);
    found
}

fn one_dim(set: IndexSet) -> Region {
    Region { dims: [set].into_iter().collect() }
}

#[test]
fn element_maps_lie_where_their_lists_say_in_memory_messages_and_files() {
    let mut random = fastrand::Rng::with_seed(43);
    for _ in 0..1500 {
        for map in maps(&mut random, 3) {
            let placed = placed(&map);
            let made = layers(placed.iter().copied(), 4).unwrap();
            assert!(made.len() <= 1, "no element is held twice");
            let mut expected: Vec<(u64, i64)> = placed
                .iter()
                .flat_map(|&(start, len, at)| (0..len).map(move |j| (start + j, (at + j) as i64)))
                .collect();
            expected.sort_unstable();
            let Some(layer) = made.into_iter().next() else {
                assert!(expected.is_empty());
                continue;
            };
            let memory = View { base: 5, axes: vec![(layer.axis.clone(), 4)], element: ELEMENT };
            let triplet = Triplet::whole(1 << 50);
            let file = View { base: 0, axes: vec![(crate::Axis::Selected(triplet, 0), 1)], element: ELEMENT };
            assert_eq!(indices(&layer.set), expected.iter().map(|e| e.0).collect::<Vec<_>>());
            // In parts, as the units of a file are.
            let mut edges: Vec<u64> = (0..random.usize(0..4))
                .map(|_| expected[random.usize(0..expected.len())].0 + random.u64(0..2))
                .chain([0, 1 << 50])
                .collect();
            edges.sort_unstable();
            for pair in edges.windows(2) {
                let region = one_dim(layer.set.within(pair[0], pair[1]));
                let inside: Vec<&(u64, i64)> = expected.iter().filter(|e| (pair[0]..pair[1]).contains(&e.0)).collect();
                let in_file: Vec<(i64, i64)> = inside.iter().map(|e| (e.1 * 4 + 5, e.0 as i64)).collect();
                assert_eq!(visited(&region, &memory, &file), in_file, "{map:?}");
                let packed = View::held(&region, 0, &[1], ELEMENT);
                let in_turn: Vec<(i64, i64)> = inside.iter().zip(0..).map(|(e, at)| (e.1 * 4 + 5, at)).collect();
                assert_eq!(visited(&region, &memory, &packed), in_turn, "{map:?}");
                let unpacked: Vec<(i64, i64)> = inside.iter().zip(0..).map(|(e, at)| (at, e.0 as i64)).collect();
                assert_eq!(visited(&region, &packed, &file), unpacked, "{map:?}");
            }
        }
    }
}

/// How many terms are looked at for each element, when so many are handled as calls do.
fn looks_each(elements: u64, work: impl Fn(&mut fastrand::Rng, u64)) -> f64 {
    let before = looks();
    work(&mut fastrand::Rng::with_seed(elements), elements);
    (looks() - before) as f64 / elements as f64
}

/// Elements of an index space twice as large, in random order.
fn shuffled(random: &mut fastrand::Rng, elements: u64) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = (0..2 * elements).map(|index| (index, 1)).collect();
    random.shuffle(&mut all);
    all.truncate(elements as usize);
    all
}

/// A map of elements through all that a call does with it: cut at the edges of units, packed and unpacked.
fn map_of(runs: &[(u64, u64)], unit: u64) {
    let layer = layers(placed(runs), 4).unwrap().remove(0);
    let (low, high) = layer.set.hull().unwrap();
    let memory = View { base: 0, axes: vec![(layer.axis, 1)], element: ELEMENT };
    let file = View { base: 0, axes: vec![(crate::Axis::Selected(Triplet::whole(high), 0), 1)], element: ELEMENT };
    let mut next = layer.set.at_or_after(low);
    while let Some(at) = next {
        let (from, to) = (at / unit * unit, (at / unit + 1) * unit);
        let region = one_dim(layer.set.within(from, to));
        let packed = View::held(&region, 0, &[1], ELEMENT);
        assert!(nests(&region, &memory, &packed).count() > 0);
        assert!(nests(&region, &packed, &file).count() > 0);
        next = layer.set.at_or_after(to);
    }
}

/// No cost grows faster than elements: when there are sixteen times as many, each costs at most a few more looks, as those of
/// halving.
#[test]
fn costs_of_lists_follow_their_elements() {
    type Work = fn(&mut fastrand::Rng, u64);
    let lists: [(&str, Work); 7] = [
        ("a map in random order, one unit", |random, n| map_of(&shuffled(random, n), 1 << 40)),
        ("a map in random order, units of 64", |random, n| map_of(&shuffled(random, n), 64)),
        ("runs of 4 in random order", |random, n| {
            let mut runs: Vec<(u64, u64)> = shuffled(random, n / 4).iter().map(|run| (run.0 * 4, 4)).collect();
            random.shuffle(&mut runs);
            map_of(&runs, 4096);
        }),
        ("two lists at once", |random, n| {
            let [one, other] = [(); 2].map(|()| layers(placed(&shuffled(random, n)), 4).unwrap().remove(0).set);
            assert!(!one.intersect(&other).is_empty());
        }),
        ("a list and a progression", |random, n| {
            let list = layers(placed(&shuffled(random, n)), 4).unwrap().remove(0).set;
            let even = IndexSet::progression(0, 1, 2, n).unwrap();
            assert!(!list.intersect(&even).is_empty() && !even.intersect(&list).is_empty());
            assert!(list.intersect(&IndexSet::progression(1, 1, 1 << 20, 1 << 40).unwrap()).len() <= n);
        }),
        ("positions", |random, n| {
            let list = layers(placed(&shuffled(random, n)), 4).unwrap().remove(0).set;
            (0..n).for_each(|position| assert_eq!(list.below(list.select(position).unwrap()), position));
        }),
        ("long progressions at odd places, which are not packed", |random, n| {
            let one = |at| IndexSet::progression(256 * at + random.u64(..9), 1, 3, 64).unwrap();
            let list = IndexSet::union_of_disjoint((0..n / 64).map(one).collect());
            (0..n).for_each(|position| assert_eq!(list.below(list.select(position).unwrap()), position));
        }),
    ];
    for (what, work) in lists {
        let (few, many) = (looks_each(1 << 12, work), looks_each(1 << 16, work));
        println!("{what}: {few:.1} looks an element, {many:.1} of sixteen times as many");
        assert!(many <= few * 1.15_f64.powi(4), "{what}: {few:.1} looks an element, {many:.1} of 16 times as many");
    }
}
