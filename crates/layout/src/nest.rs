//! Loop nests: how the elements of a piece are visited at two addresses at once.
//!
//! Gathering, scattering, reading and writing are all the same walk: for each element of a piece, an address
//! on side `a` and an address on side `b`, each affine in a few loop counters. A side may be a user's array, a
//! buffer slot, or a stored object (then the address is an offset in it).

use smallvec::SmallVec;

/// One loop of a nest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loop {
    /// How often it runs; at least 1 in a nest that visits anything.
    pub count: u64,
    /// Step of the address on side `a` \[B\].
    pub a: i64,
    /// Step of the address on side `b` \[B\].
    pub b: i64,
}

/// Loops of a nest, of which there are few.
pub type Loops = SmallVec<[Loop; 4]>;

/// Nested loops over the elements of a piece. The last loop is the innermost. No loops at all visit one element.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Nest {
    /// First address on side `a` \[B\], relative to its base.
    pub a: i64,
    /// First address on side `b` \[B\], relative to its base.
    pub b: i64,
    /// The loops, outermost first.
    pub loops: Loops,
}

impl Nest {
    /// Number of elements visited.
    pub fn elements(&self) -> u64 {
        self.loops.iter().map(|l| l.count).product()
    }

    /// All pairs of addresses, sorted: what tests compare.
    #[cfg(test)]
    pub(crate) fn visited(nests: impl Iterator<Item = Nest>) -> Vec<(i64, i64)> {
        let mut out = Vec::new();
        for nest in nests {
            let counts: Vec<u64> = nest.loops.iter().map(|l| l.count).collect();
            for number in 0..nest.elements() {
                let at = crate::mesh::unravel(number, &counts);
                let sum = |f: fn(&Loop) -> i64| at.iter().zip(&nest.loops).map(|(&i, l)| i as i64 * f(l)).sum::<i64>();
                out.push((nest.a + sum(|l| l.a), nest.b + sum(|l| l.b)));
            }
        }
        out.sort_unstable();
        out
    }

    /// The same walk with the two sides exchanged.
    pub fn swapped(&self) -> Nest {
        let loops = self.loops.iter().map(|l| Loop { count: l.count, a: l.b, b: l.a }).collect();
        Nest { a: self.b, b: self.a, loops }
    }

    /// Lowest and one-past-highest byte touched on side `a` when elements there have `bytes` bytes, or `None` when
    /// nothing is visited.
    pub fn hull_a(&self, bytes: u64) -> Option<(i64, i64)> {
        hull(self.a, self.loops.iter().map(|l| (l.count, l.a)), bytes)
    }

    /// As [`Nest::hull_a`], for side `b`.
    pub fn hull_b(&self, bytes: u64) -> Option<(i64, i64)> {
        hull(self.b, self.loops.iter().map(|l| (l.count, l.b)), bytes)
    }

    /// Into how many runs it falls that are contiguous on both sides, whose elements have so many bytes.
    pub fn runs(&self, a_bytes: u64, b_bytes: u64) -> u64 {
        let (mut a, mut b) = (a_bytes as i64, b_bytes as i64);
        let mut inner = self.loops.iter().rev().skip_while(|l| {
            let follows = l.count == 1 || l.a == a && l.b == b;
            if follows {
                (a, b) = (a * l.count as i64, b * l.count as i64);
            }
            follows
        });
        let first = inner.next().map_or(1, |l| l.count);
        first * inner.map(|l| l.count).product::<u64>()
    }

    /// Length of the runs that lie together on side `a`, in whatever order its loops are taken, where elements have so many
    /// bytes \[B\].
    pub fn run_bytes_a(&self, bytes: u64) -> u64 {
        self.run_bytes(bytes, |l| l.a)
    }

    /// The same on side `b`.
    pub fn run_bytes_b(&self, bytes: u64) -> u64 {
        self.run_bytes(bytes, |l| l.b)
    }

    fn run_bytes(&self, bytes: u64, step: impl Fn(&Loop) -> i64) -> u64 {
        let mut run = bytes;
        // A loop whose steps are as long as a run continues it. There are few loops, so that looking is quicker than sorting.
        while let Some(longer) = self.loops.iter().find(|l| l.count > 1 && step(l).unsigned_abs() == run) {
            run *= longer.count;
        }
        run
    }

    /// Drops loops that run once, orders the rest so that the steps on side `b` fall from the outside to the inside
    /// (steps on `a` decide ties), and merges neighbours that continue each other on both sides.
    pub fn normalised(mut self) -> Nest {
        self.loops.retain(|l| l.count != 1);
        self.loops.sort_by_key(|l| std::cmp::Reverse((l.b.unsigned_abs(), l.a.unsigned_abs())));
        self.loops.dedup_by(|inner, outer| {
            let continues = outer.a == inner.a * inner.count as i64 && outer.b == inner.b * inner.count as i64;
            if continues {
                *outer = Loop { count: outer.count * inner.count, ..*inner };
            }
            continues
        });
        self
    }
}

fn hull(base: i64, loops: impl Iterator<Item = (u64, i64)>, bytes: u64) -> Option<(i64, i64)> {
    let (mut low, mut high) = (base, base);
    for (count, step) in loops {
        let reach = (count.checked_sub(1)?) as i64 * step;
        if reach < 0 {
            low += reach;
        } else {
            high += reach;
        }
    }
    Some((low, high + bytes as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_side_do_not_ask_for_the_other() {
        // A transposed matrix of 3 x 5: on each side rows lie together, of the other side columns.
        let transposed =
            Nest { a: 0, b: 0, loops: vec![Loop { count: 3, a: 40, b: 8 }, Loop { count: 5, a: 8, b: 24 }].into() };
        assert_eq!((transposed.run_bytes_a(8), transposed.run_bytes_b(8)), (120, 120));
        let part =
            Nest { a: 0, b: 0, loops: vec![Loop { count: 3, a: 80, b: 8 }, Loop { count: 5, a: 8, b: 48 }].into() };
        assert_eq!((part.run_bytes_a(8), part.run_bytes_b(8)), (40, 24));
        assert_eq!(Nest { a: 0, b: 0, loops: vec![].into() }.run_bytes_a(4), 4);
    }

    #[test]
    fn runs_are_contiguous_on_both_sides() {
        let runs = |loops: &[(u64, i64, i64)]| {
            let loops = loops.iter().map(|&(count, a, b)| Loop { count, a, b }).collect();
            Nest { a: 0, b: 0, loops }.runs(8, 4)
        };
        assert_eq!(runs(&[]), 1);
        assert_eq!(runs(&[(5, 8, 4)]), 1);
        assert_eq!(runs(&[(3, 40, 20), (5, 8, 4)]), 1);
        assert_eq!(runs(&[(3, 48, 20), (5, 8, 4)]), 3);
        assert_eq!(runs(&[(3, 40, 20), (5, 192, 4)]), 15);
        assert_eq!(runs(&[(2, 100, 100), (1, 7, 7), (5, 8, 4)]), 2);
    }
}
