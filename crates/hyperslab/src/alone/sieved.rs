//! Elements that lie as they are in a file, read with few requests.

use hyperslab_layout::{ElementType, Loop, Nest};
use hyperslab_pack::{Memory, copy};
use hyperslab_world::FileReader;
use std::sync::{Mutex, PoisonError};

/// What a request to a file in the page cache costs besides its bytes \[ns\].
const REQUEST_NS: f64 = 400.0;
/// What a byte out of the page cache costs, copied twice \[ns\].
const BYTE_NS: f64 = 0.15;
/// What would take longer goes through a collective transfer of this rank alone, which reads and copies at the same time \[ns\].
pub(super) const WORTH_NS: f64 = 30e6;
/// Most that is read at once beside the elements that are wanted \[B\].
const BETWEEN_BYTES: u64 = 4 << 20;

/// What is read at once and then copied from, at most, where it can be cut so: it stays near the processor meanwhile \[B\].
const NEAR_BYTES: u64 = 64 << 10;

/// Memory that is used again.
#[derive(Default)]
pub(super) struct Between(Mutex<Option<Memory>>);

impl Between {
    fn take(&self, bytes: u64) -> Option<Memory> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|memory| memory.bytes() >= bytes).or_else(|| Memory::for_vec(bytes.next_power_of_two()).ok())
    }

    fn put(&self, memory: Memory) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(memory);
    }
}

/// How elements are read: the loops from this one on by one request, from their first element to their last.
struct Sieving {
    from: usize,
    bytes: u64,
    ns: f64,
}

/// The cheapest way. Distances in the file are positive.
fn planned(nest: &Nest, element_bytes: u64) -> Option<Sieving> {
    let (mut bytes, mut requests) = (element_bytes, nest.elements() as f64);
    let plan =
        |from, bytes, requests: f64| Sieving { from, bytes, ns: requests * (REQUEST_NS + bytes as f64 * BYTE_NS) };
    let mut best = plan(nest.loops.len(), bytes, requests);
    for (at, each) in nest.loops.iter().enumerate().rev() {
        let step = u64::try_from(each.a).ok()?;
        bytes = bytes.saturating_add(step.saturating_mul(each.count.saturating_sub(1)));
        requests /= each.count as f64;
        if bytes > BETWEEN_BYTES && !is_dense(nest, at, element_bytes) {
            break;
        }
        let plan = plan(at, bytes, requests);
        if plan.ns < best.ns {
            best = plan;
        }
    }
    Some(best)
}

/// Whether the loops from this one on visit bytes that follow each other on both sides.
fn is_dense(nest: &Nest, from: usize, element_bytes: u64) -> bool {
    let mut bytes = element_bytes as i64;
    nest.loops[from..].iter().rev().all(|each| {
        let dense = each.a == bytes && each.b == bytes;
        bytes = bytes.saturating_mul(each.count as i64);
        dense
    })
}

/// What these elements cost, where they may be read here \[ns\].
pub(super) fn cost_ns(nest: &Nest, element_bytes: u64) -> Option<f64> {
    planned(&arranged(nest, element_bytes), element_bytes).map(|plan| plan.ns).filter(|ns| *ns <= WORTH_NS)
}

/// Reads the elements of a nest, whose side `a` is a file, into a memory. Nothing where that does not go well: who asks in the
/// usual way hears why.
pub(super) fn read(
    file: &dyn FileReader,
    nest: &Nest,
    from: ElementType,
    (to, to_type): (&Memory, ElementType),
    between: &Between,
) -> Option<()> {
    let nest = &arranged(nest, from.bytes());
    let plan = planned(nest, from.bytes())?;
    let direct = from == to_type && is_dense(nest, plan.from, from.bytes());
    let scratch = if direct { None } else { Some(between.take(plan.bytes)?) };
    let inner = Nest { a: 0, b: 0, loops: nest.loops[plan.from..].iter().copied().collect() };
    let mut odometer = OuterLoops::new(nest, plan.from);
    loop {
        let (a, b) = (u64::try_from(odometer.a).ok()?, odometer.b);
        let read = match &scratch {
            None => file.read_into(a, to, u64::try_from(b).ok()?, plan.bytes),
            Some(scratch) => file.read_into(a, scratch, 0, plan.bytes),
        };
        if read.ok()? < plan.bytes {
            return None;
        }
        if let Some(scratch) = &scratch {
            copy(&Nest { b, ..inner.clone() }, scratch, from, to, to_type).ok()?;
        }
        if !odometer.turn() {
            break;
        }
    }
    if let Some(scratch) = scratch {
        between.put(scratch);
    }
    Some(())
}

/// The same elements, with the loop of the longest distances in the file outermost, and long loops over what lies apart as two,
/// of which the inner one stays near the processor.
fn arranged(nest: &Nest, element_bytes: u64) -> Nest {
    let mut nest = nest.clone();
    nest.loops.sort_by_key(|each| std::cmp::Reverse(each.a));
    for at in (0..nest.loops.len()).rev() {
        let Loop { count, a, b } = nest.loops[at];
        let most = NEAR_BYTES / u64::try_from(a).unwrap_or(1).max(1);
        if count <= most || is_dense(&nest, at, element_bytes) {
            continue;
        }
        if let Some(part) = (2..=most.min(count / 2)).rev().find(|part| count.is_multiple_of(*part)) {
            nest.loops[at].count = part;
            nest.loops.insert(at, Loop { count: count / part, a: a * part as i64, b: b * part as i64 });
        }
    }
    nest
}

/// The outer loops of a nest, at one of their places.
struct OuterLoops<'a> {
    loops: &'a [Loop],
    at: Vec<u64>,
    a: i64,
    b: i64,
}

impl<'a> OuterLoops<'a> {
    fn new(nest: &'a Nest, outer: usize) -> OuterLoops<'a> {
        OuterLoops { loops: &nest.loops[..outer], at: vec![0; outer], a: nest.a, b: nest.b }
    }

    /// Goes on to the next place; says whether there is one.
    fn turn(&mut self) -> bool {
        for (each, at) in self.loops.iter().zip(&mut self.at).rev() {
            *at += 1;
            (self.a, self.b) = (self.a + each.a, self.b + each.b);
            if *at < each.count {
                return true;
            }
            let back = each.count as i64;
            (self.a, self.b) = (self.a - each.a * back, self.b - each.b * back);
            *at = 0;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::{ByteOrder, Kind};
    use hyperslab_world::{Fault, FileSeen};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A file of so many bytes, each the low byte of its own number, that counts requests.
    struct Counted(u64, AtomicUsize);

    impl FileReader for Counted {
        fn seen(&self) -> Result<FileSeen, Fault> {
            unreachable!("nobody looks")
        }

        fn read_into(&self, at: u64, memory: &Memory, to: u64, bytes: u64) -> Result<u64, Fault> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let end = (at + bytes).min(self.0);
            let part: Vec<u8> = (at..end.max(at)).map(|number| (number % 251) as u8).collect();
            memory.write_bytes(to, &part);
            Ok(part.len() as u64)
        }
    }

    fn pairs(nest: &Nest) -> Vec<(i64, i64)> {
        let mut all = vec![(nest.a, nest.b)];
        for each in &nest.loops {
            let along = |(a, b): (i64, i64)| (0..each.count as i64).map(move |i| (a + i * each.a, b + i * each.b));
            all = all.into_iter().flat_map(along).collect();
        }
        all
    }

    #[test]
    fn elements_arrive_whatever_the_loops_and_types() {
        let mut random = fastrand::Rng::with_seed(20_261_130);
        let big = ElementType { kind: Kind::UInt32, order: ByteOrder::Big };
        let little = ElementType { kind: Kind::UInt32, order: ByteOrder::Little };
        for _ in 0..2000 {
            let (mut loops, mut b) = (Vec::new(), 4);
            for _ in 0..random.usize(0..4) {
                let count = random.u64(1..6);
                loops.push(Loop { count, a: 4 * random.i64(1..300), b });
                b *= count as i64;
            }
            random.shuffle(&mut loops);
            let nest = Nest { a: random.i64(0..1000), b: 0, loops: loops.into_iter().collect() };
            let to = Memory::allocate(4 * nest.elements()).unwrap();
            let from = if random.bool() { big } else { little };
            let file = Counted(1 << 20, AtomicUsize::new(0));
            read(&file, &nest, from, (&to, little), &Between::default()).unwrap();
            for (a, b) in pairs(&nest) {
                let mut expected: Vec<u8> = (a..a + 4).map(|number| (number % 251) as u8).collect();
                if from == big {
                    expected.reverse();
                }
                assert_eq!(to.to_vec(b as u64, 4), expected, "{nest:?}");
            }
        }
    }

    #[test]
    fn neighbours_are_one_request_and_what_is_far_apart_is_not() {
        let element = ElementType::native(Kind::UInt32);
        let requests = |loops: &[Loop]| {
            let nest = Nest { a: 0, b: 0, loops: loops.iter().copied().collect() };
            let (to, file) = (Memory::allocate(4 * nest.elements()).unwrap(), Counted(u64::MAX, AtomicUsize::new(0)));
            read(&file, &nest, element, (&to, element), &Between::default()).unwrap();
            file.1.into_inner()
        };
        assert_eq!(requests(&[]), 1);
        assert_eq!(requests(&[Loop { count: 100, a: 4, b: 4 }]), 1);
        assert_eq!(requests(&[Loop { count: 100, a: 64, b: 4 }]), 1);
        assert_eq!(requests(&[Loop { count: 20, a: 1 << 20, b: 4 }]), 20);
        assert_eq!(requests(&[Loop { count: 20, a: 1 << 20, b: 40 }, Loop { count: 10, a: 8, b: 4 }]), 20);
    }

    #[test]
    fn a_file_that_ends_too_early_gives_nothing() {
        let element = ElementType::native(Kind::UInt32);
        let nest = Nest { a: 0, b: 0, loops: [Loop { count: 100, a: 4, b: 4 }].into_iter().collect() };
        let (to, file) = (Memory::allocate(400).unwrap(), Counted(399, AtomicUsize::new(0)));
        assert!(read(&file, &nest, element, (&to, element), &Between::default()).is_none());
    }
}
