//! The canonical shape of a nest, and the odometer that walks it.
//!
//! Kernels see a [`Plane`]: the two innermost loops in one call, so that short inner loops do not pay for the
//! odometer each time. The remaining loops are counted here, without recursion.

use hyperslab_layout::{Loop, Loops, Nest};

/// Tiles of a transposing plane have sides of about this many bytes: a few cache lines in either
/// direction, and few enough in all to stay in the first-level cache.
pub(crate) const TILE_BYTES: u64 = 256;

/// Fewest and most items along the side of a tile.
pub(crate) const TILE_SIDES: (u64, u64) = (8, 64);

/// How many times longer than the side of a square a tile may be where the other loop is short.
pub(crate) const STRIP: u64 = 8;

/// The two innermost loops of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plane {
    /// The outer one of the two.
    pub(crate) rows: Loop,
    /// The innermost loop.
    pub(crate) columns: Loop,
}

/// A loop that runs once and so moves nowhere.
pub(crate) const ONCE: Loop = Loop { count: 1, a: 0, b: 0 };

/// Drops loops that repeat the same element, turns loops around so that no step on side `b` is negative, and
/// normalises. `None` when nothing is visited.
///
/// The order in which elements are visited is lost, which matters only where several elements go to one address.
pub(crate) fn canonical(nest: &Nest) -> Option<Nest> {
    let mut turned = Nest { a: nest.a, b: nest.b, loops: Loops::new() };
    for &Loop { count, a, b } in &nest.loops {
        let last = count.checked_sub(1)? as i64;
        if (a, b) == (0, 0) || last == 0 {
            continue;
        }
        if b < 0 || (b == 0 && a < 0) {
            turned.a += last * a;
            turned.b += last * b;
            turned.loops.push(Loop { count, a: -a, b: -b });
        } else {
            turned.loops.push(Loop { count, a, b });
        }
    }
    Some(turned.normalised())
}

/// Takes the innermost loops off a canonical nest as long as they continue one contiguous run on both sides, and
/// returns the length of that run \[B\]; elements have `bytes` bytes.
pub(crate) fn take_run(nest: &mut Nest, bytes: u64) -> u64 {
    let mut run = bytes;
    while let Some(&Loop { count, a, b }) = nest.loops.last() {
        if a != run as i64 || b != run as i64 {
            break;
        }
        run *= count;
        nest.loops.pop();
    }
    run
}

/// A canonical nest, split for a kernel, whose planes may be made ready for it.
pub(crate) struct Walk<P = Plane> {
    /// Together all of the nest. More than one where loops do not divide into tiles.
    parts: [Option<Part<P>>; 2],
    transposes: bool,
}

/// A nest whose innermost loops are planes beside each other, one unless they are tiles.
struct Part<P> {
    start: (i64, i64),
    outer: Loops,
    beside: Loop,
    plane: P,
    /// What is left of the columns, where they do not divide into tiles.
    rest: Option<P>,
}

impl Walk {
    /// Splits a canonical nest over items of `bytes` bytes.
    ///
    /// Its innermost loop is the one that is closest to contiguous on side `b`. When another loop is closer on side
    /// `a`, the copy transposes: that loop becomes the other side of the plane, which is then visited in tiles.
    pub(crate) fn new(nest: Nest, bytes: u64) -> Walk {
        let Nest { a, b, mut loops } = nest;
        let start = (a, b);
        let columns = loops.pop().unwrap_or(ONCE);
        let nearest = (0..loops.len()).min_by_key(|&i| loops[i].a.unsigned_abs());
        let transposes = nearest.filter(|&i| {
            let (rows, shorter) = (loops[i], loops[i].count.min(columns.count));
            rows.a.unsigned_abs() < columns.a.unsigned_abs() && shorter > 1 && bytes < TILE_BYTES
        });
        match transposes {
            Some(i) => {
                let (height, width) = tile_of(loops[i].count, columns.count, bytes);
                let tile = (height, width.min(columns.count));
                Walk { parts: in_strips(start, &loops, i, tile, columns), transposes: true }
            }
            None => {
                let plane = Plane { rows: loops.pop().unwrap_or(ONCE), columns };
                let part = Part { start, outer: loops, beside: ONCE, plane, rest: None };
                Walk { parts: [Some(part), None], transposes: false }
            }
        }
    }

    /// Whether the planes are tiles of a transposing copy.
    pub(crate) fn transposes(&self) -> bool {
        self.transposes
    }

    /// The same, with each kind of plane made ready.
    pub(crate) fn with<P>(self, make: impl Fn(Plane) -> P) -> Walk<P> {
        let made = |Part { start, outer, beside, plane, rest }: Part<Plane>| Part {
            start,
            outer,
            beside,
            plane: make(plane),
            rest: rest.map(&make),
        };
        Walk { parts: self.parts.map(|part| part.map(made)), transposes: self.transposes }
    }
}

impl<P> Walk<P> {
    /// Calls `f(a, b, plane)` for each plane, or each tile of one, with its first addresses.
    pub(crate) fn for_each_plane(&self, mut f: impl FnMut(i64, i64, &P)) {
        for Part { start, outer, beside, plane, rest } in self.parts.iter().flatten() {
            let mut odometer = Odometer::new(*start, outer);
            loop {
                let (mut a, mut b) = odometer.at;
                for _ in 0..beside.count {
                    f(a, b, plane);
                    (a, b) = (a + beside.a, b + beside.b);
                }
                if let Some(rest) = rest {
                    f(a, b, rest);
                }
                if !odometer.advance() {
                    break;
                }
            }
        }
    }
}

/// Rows and columns of a tile: a square, or, where one of the two loops is shorter than that, a strip of at most the
/// same area, so that calls remain few.
fn tile_of(rows: u64, columns: u64, bytes: u64) -> (u64, u64) {
    let side = (TILE_BYTES / bytes).clamp(TILE_SIDES.0, TILE_SIDES.1);
    let beside = |other: u64| (side * side / other.min(side)).min(STRIP * side);
    (beside(columns), beside(rows))
}

/// Makes loop `i` the rows of planes of at most `height` rows. The strips of such planes are counted where the loop
/// was, outside of loops that take shorter steps on side `b`: so what lies close together there is written together.
fn in_strips(
    start: (i64, i64),
    loops: &[Loop],
    i: usize,
    (height, width): (u64, u64),
    columns: Loop,
) -> [Option<Part<Plane>>; 2] {
    let rows = loops[i];
    let (beside, over) = (columns.count / width, columns.count % width);
    let beside = Loop { count: beside, a: columns.a * width as i64, b: columns.b * width as i64 };
    let (strips, rest) = (rows.count / height, rows.count % height);
    let part = |first: u64, strips: u64, height: u64| {
        let at = |start: i64, step: i64| start + first as i64 * step;
        let mut outer = Loops::from(loops);
        outer[i] = Loop { count: strips, a: rows.a * height as i64, b: rows.b * height as i64 };
        let tile =
            |width: u64| Plane { rows: Loop { count: height, ..rows }, columns: Loop { count: width, ..columns } };
        let start = (at(start.0, rows.a), at(start.1, rows.b));
        Part { start, outer, beside, plane: tile(width), rest: (over > 0).then(|| tile(over)) }
    };
    let entire = (strips > 0).then(|| part(0, strips, height));
    let remainder = (rest > 0).then(|| part(strips * height, 1, rest));
    [entire, remainder]
}

/// Counts through loops, keeping both addresses up to date.
pub(crate) struct Odometer<'a> {
    /// The current addresses.
    pub(crate) at: (i64, i64),
    loops: &'a [Loop],
    done: Vec<u64>,
}

impl<'a> Odometer<'a> {
    /// Starts at the given addresses; every loop must run at least once.
    pub(crate) fn new(start: (i64, i64), loops: &'a [Loop]) -> Odometer<'a> {
        Odometer { at: start, loops, done: vec![0; loops.len()] }
    }

    /// Moves on by one step, the last loop fastest. False when all loops have run.
    pub(crate) fn advance(&mut self) -> bool {
        for (l, done) in self.loops.iter().zip(&mut self.done).rev() {
            *done += 1;
            self.at = (self.at.0 + l.a, self.at.1 + l.b);
            if *done < l.count {
                return true;
            }
            *done = 0;
            self.at = (self.at.0 - l.a * l.count as i64, self.at.1 - l.b * l.count as i64);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(walk: &Walk) -> Vec<(i64, i64)> {
        let mut seen = Vec::new();
        walk.for_each_plane(|a, b, Plane { rows, columns }| {
            for r in 0..rows.count as i64 {
                for c in 0..columns.count as i64 {
                    seen.push((a + r * rows.a + c * columns.a, b + r * rows.b + c * columns.b));
                }
            }
        });
        seen.sort_unstable();
        seen
    }

    #[test]
    fn turned_loops_merge_into_one_run() {
        let loops = vec![Loop { count: 3, a: -8, b: -8 }, Loop { count: 2, a: 24, b: 24 }];
        let mut nest = canonical(&Nest { a: 16, b: 16, loops: loops.into() }).unwrap();
        assert_eq!(take_run(&mut nest, 8), 48);
        assert_eq!(nest, Nest::default());
    }

    #[test]
    fn zero_counts_visit_nothing_and_repeats_are_dropped() {
        let (nothing, again) = (Loop { count: 0, a: 8, b: 8 }, Loop { count: 9, a: 0, b: 0 });
        assert_eq!(canonical(&Nest { a: 0, b: 0, loops: vec![again, nothing].into() }), None);
        assert_eq!(
            canonical(&Nest { a: 1, b: 2, loops: vec![again].into() }),
            Some(Nest { a: 1, b: 2, loops: vec![].into() })
        );
    }

    #[test]
    fn planes_and_tiles_visit_every_element_once() {
        let loops = vec![
            Loop { count: 600, a: 8, b: 8 * 70 * 3 },
            Loop { count: 70, a: 8 * 600, b: 8 * 3 },
            Loop { count: 3, a: 8 * 42000, b: 8 },
        ];
        let nest = Nest { a: 40, b: 8, loops: loops.into() };
        let mut expected = Vec::new();
        for i in 0..600 {
            for j in 0..70 {
                for k in 0..3 {
                    expected.push((40 + 8 * (i + 600 * (j + 70 * k)), 8 + 8 * (k + 3 * (j + 70 * i))));
                }
            }
        }
        expected.sort_unstable();
        let walk = Walk::new(canonical(&nest).unwrap(), 8);
        assert!(walk.transposes(), "this nest transposes");
        assert_eq!(walk.parts.iter().flatten().count(), 2, "and its rows do not divide into tiles");
        assert_eq!(visited(&walk), expected);
    }

    #[test]
    fn the_loop_nearest_to_contiguous_on_a_joins_the_plane() {
        let loops =
            vec![Loop { count: 5, a: 8, b: 8000 }, Loop { count: 6, a: 400, b: 800 }, Loop { count: 7, a: 4000, b: 8 }];
        let walk = Walk::new(canonical(&Nest { a: 0, b: 0, loops: loops.into() }).unwrap(), 8);
        let parts: Vec<_> = walk.parts.iter().flatten().collect();
        let [Part { plane, beside, .. }] = parts[..] else { panic!("one part") };
        assert_eq!((beside.count, plane.rows.count, plane.columns.count), (1, 5, 7));
    }
}
