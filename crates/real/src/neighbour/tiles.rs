//! Cutting a nest into tiles that fit a small buffer.
//!
//! Loops are ordered by their step in the peer's memory. From the innermost outwards they fall into three groups:
//!
//! ```text
//!   outer loops      one turn a tile
//!   listed loops     one span a turn, side by side in the buffer      (the outermost may be split among tiles)
//!   loops in a span  one stretch of the peer's memory, with its gaps, copied as it is
//! ```

use hyperslab_layout::{Loop, Loops, Nest};

/// Visits the turns of some loops: the offsets of both sides, the last loop running fastest.
pub(super) struct Walk<'a> {
    loops: &'a [Loop],
    at: Vec<u64>,
    next: Option<(i64, i64)>,
}

impl<'a> Walk<'a> {
    /// Starts at the offsets `a` and `b`. No loops at all have one turn.
    pub(super) fn new(loops: &'a [Loop], a: i64, b: i64) -> Self {
        let any = loops.iter().all(|l| l.count > 0);
        Walk { loops, at: vec![0; loops.len()], next: any.then_some((a, b)) }
    }
}

impl Iterator for Walk<'_> {
    type Item = (i64, i64);

    fn next(&mut self) -> Option<(i64, i64)> {
        let here = self.next?;
        let (mut a, mut b) = here;
        self.next = None;
        for (l, at) in self.loops.iter().zip(&mut self.at).rev() {
            if *at + 1 < l.count {
                *at += 1;
                self.next = Some((a + l.a, b + l.b));
                break;
            }
            a -= *at as i64 * l.a;
            b -= *at as i64 * l.b;
            *at = 0;
        }
        Some(here)
    }
}

/// The same elements with rising steps on side `a`, its largest outermost, and what continues merged.
pub(super) fn in_order_of_a(mut nest: Nest) -> Nest {
    for l in nest.loops.iter_mut().filter(|l| l.a < 0) {
        let turns = l.count as i64 - 1;
        nest.a += turns * l.a;
        nest.b += turns * l.b;
        (l.a, l.b) = (-l.a, -l.b);
    }
    nest.swapped().normalised().swapped()
}

/// A tile: what to copy as it is, and how the elements lie in the buffer then.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Tile {
    /// Side `a` is the peer's memory, side `b` the buffer; each turn is one span.
    pub(super) spans: Nest,
    /// Length of each span \[B\].
    pub(super) span_bytes: u64,
    /// Side `a` is the buffer, side `b` the local memory; each turn is one element.
    pub(super) elements: Nest,
}

/// The loop that is split among tiles.
#[derive(Clone, Copy, Debug)]
struct Split {
    of: Loop,
    /// Its turns in a tile; in the last one it may have fewer.
    turns: u64,
    /// Whether its turns lie in one span, or else are spans of their own.
    in_span: bool,
}

/// How a nest is cut.
#[derive(Debug)]
pub(super) struct Tiling {
    a: i64,
    b: i64,
    outer: Loops,
    split: Option<Split>,
    listed: Loops,
    inner: Loops,
    span_bytes: u64,
}

impl Tiling {
    /// Cuts a nest that is [`in_order_of_a`] into tiles of at most `tile_bytes` (or one element). Gaps of up to
    /// `gap_bytes` in the peer's memory are copied along.
    pub(super) fn new(nest: &Nest, element_bytes: u64, tile_bytes: u64, gap_bytes: u64) -> Tiling {
        let mut outer = nest.loops.clone();
        let (mut inner, mut listed, mut split) = (Loops::new(), Loops::new(), None);
        let mut span_bytes = element_bytes;
        while let Some(&of) = outer.last().filter(|l| l.a as u64 <= span_bytes + gap_bytes) {
            outer.pop();
            let longer = (of.count - 1).saturating_mul(of.a as u64).saturating_add(span_bytes);
            if longer > tile_bytes {
                // The step is not 0 here, or the span would not have grown beyond the tile.
                let turns = tile_bytes.saturating_sub(span_bytes) / (of.a as u64).max(1) + 1;
                split = Some(Split { of, turns, in_span: true });
                break;
            }
            inner.insert(0, of);
            span_bytes = longer;
        }
        let mut bytes = span_bytes;
        while split.is_none()
            && let Some(of) = outer.pop()
        {
            if bytes.saturating_mul(of.count) > tile_bytes {
                split = Some(Split { of, turns: (tile_bytes / bytes).max(1), in_span: false });
            } else {
                bytes *= of.count;
                listed.insert(0, of);
            }
        }
        Tiling { a: nest.a, b: nest.b, outer, split, listed, inner, span_bytes }
    }

    /// All tiles, one after the other.
    pub(super) fn tiles(&self) -> impl Iterator<Item = Tile> {
        let (count, turns) = self.split.map_or((1, 1), |split| (split.of.count, split.turns));
        let (step_a, step_b) = self.split.map_or((0, 0), |split| (split.of.a, split.of.b));
        Walk::new(&self.outer, self.a, self.b).flat_map(move |(a, b)| {
            (0..count).step_by(turns as usize).map(move |first| {
                let start = (a + first as i64 * step_a, b + first as i64 * step_b);
                self.tile(start, turns.min(count - first))
            })
        })
    }

    /// The tile that starts at these offsets and has so many turns of the split loop.
    fn tile(&self, (a, b): (i64, i64), turns: u64) -> Tile {
        let (mut listed, mut inner, mut span_bytes) = (self.listed.clone(), self.inner.clone(), self.span_bytes);
        if let Some(Split { of, in_span, .. }) = self.split {
            let part = Loop { count: turns, ..of };
            if in_span {
                inner.insert(0, part);
                span_bytes += (turns - 1) * of.a as u64;
            } else {
                listed.insert(0, part);
            }
        }
        let (mut spans, mut elements) = (Loops::new(), inner);
        let mut dense = span_bytes as i64;
        for l in listed.iter().rev() {
            spans.insert(0, Loop { count: l.count, a: l.a, b: dense });
            elements.insert(0, Loop { count: l.count, a: dense, b: l.b });
            dense *= l.count as i64;
        }
        let (spans, elements) = (Nest { a, b: 0, loops: spans }, Nest { a: 0, b, loops: elements });
        Tile { spans, span_bytes, elements }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn nest(loops: &[(u64, i64, i64)]) -> Nest {
        Nest { a: 1000, b: 50, loops: loops.iter().map(|&(count, a, b)| Loop { count, a, b }).collect() }
    }

    /// Where each local element comes from, through the tiles and the buffer.
    fn through_tiles(tiling: &Tiling, tile_bytes: u64) -> BTreeMap<i64, i64> {
        let mut origin = BTreeMap::new();
        for tile in tiling.tiles() {
            let mut buffer = BTreeMap::new();
            for (remote, at) in Walk::new(&tile.spans.loops, tile.spans.a, tile.spans.b) {
                assert!(at as u64 + tile.span_bytes <= tile_bytes.max(8));
                buffer.extend((0..tile.span_bytes as i64).map(|byte| (at + byte, remote + byte)));
            }
            for (at, local) in Walk::new(&tile.elements.loops, tile.elements.a, tile.elements.b) {
                assert_eq!(buffer[&at] + 7, buffer[&(at + 7)], "an element is whole");
                assert_eq!(origin.insert(local, buffer[&at]), None, "an element arrives once");
            }
        }
        origin
    }

    #[test]
    fn walks_run_the_last_loop_fastest() {
        let loops = nest(&[(2, 100, 8), (3, -1, 16)]).loops;
        let expected = [(5, 0), (4, 16), (3, 32), (105, 8), (104, 24), (103, 40)];
        assert_eq!(Walk::new(&loops, 5, 0).collect::<Vec<_>>(), expected);
        assert_eq!(Walk::new(&[], 5, 0).collect::<Vec<_>>(), [(5, 0)]);
        assert_eq!(Walk::new(&nest(&[(3, 1, 1), (0, 1, 1)]).loops, 5, 0).count(), 0);
    }

    #[test]
    fn tiles_bring_every_element_from_its_place() {
        let cases: [&[(u64, i64, i64)]; 7] = [
            &[],
            &[(40, 8, 8)],
            &[(7, 24, 8), (3, 8, 56)],
            &[(5, 8, 400), (10, 400, 8), (3, 80, -4000)],
            &[(6, -64, 8), (4, 8, 48)],
            &[(3, 1000, 8), (5, 100, 24), (2, 16, 120)],
            &[(4, 0, 8), (9, 16, 32)],
        ];
        for loops in cases {
            let nest = nest(loops);
            let expected: BTreeMap<_, _> = Walk::new(&nest.loops, nest.a, nest.b).map(|(a, b)| (b, a)).collect();
            assert_eq!(expected.len() as u64, nest.elements());
            for tile_bytes in [1, 8, 20, 64, 100, 1000, 1 << 20] {
                for gap_bytes in [0, 8, 100, 5000] {
                    let tiling = Tiling::new(&in_order_of_a(nest.clone()), 8, tile_bytes, gap_bytes);
                    let case = format!("{loops:?}, tiles of {tile_bytes}, gaps of {gap_bytes}");
                    assert_eq!(through_tiles(&tiling, tile_bytes), expected, "{case}");
                }
            }
        }
    }

    #[test]
    fn gaps_are_copied_along_only_when_allowed() {
        let strided = in_order_of_a(nest(&[(100, 32, 8)]));
        let spans = |gap| {
            let tile = Tiling::new(&strided, 8, 1 << 18, gap).tiles().next().unwrap();
            (tile.spans.elements(), tile.span_bytes)
        };
        assert_eq!(spans(23), (100, 8));
        assert_eq!(spans(24), (1, 99 * 32 + 8));
    }
}
