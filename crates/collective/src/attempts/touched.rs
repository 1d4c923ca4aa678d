//! Which part of which arrays a change in place touches: its marker goes once all of that was written again.

use hyperslab_layout::{Section, Triplet};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Longest text that stands in a marker \[B\]: where a change touches more, only writing everything ends it.
const TEXT_BYTES_MAX: usize = 4096;
/// Its name in a line of a marker.
pub(super) const TOUCHED: &str = "touched";

/// By the names of arrays: what is written of each, or all of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TouchedParts(BTreeMap<String, Option<Section>>);

impl FromIterator<(String, Option<Section>)> for TouchedParts {
    fn from_iter<I: IntoIterator<Item = (String, Option<Section>)>>(arrays: I) -> TouchedParts {
        TouchedParts(arrays.into_iter().collect())
    }
}

impl TouchedParts {
    /// The names of the arrays.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether whatever writes all of this writes all of another one, too.
    pub fn covers(&self, other: &TouchedParts) -> bool {
        other.0.iter().all(|(name, theirs)| match (self.0.get(name), theirs) {
            (None, _) | (Some(Some(_)), None) => false,
            (Some(None), _) => true,
            (Some(Some(ours)), Some(theirs)) => {
                let dims = ours.dims.iter().zip(&theirs.dims);
                ours.dims.len() == theirs.dims.len() && dims.clone().all(|(ours, theirs)| is_inside(theirs, ours))
            }
        })
    }

    /// As the text in a line of a marker: a list of start, stride, count and block for each dimension.
    pub(super) fn text(&self) -> Option<String> {
        let triplet = |t: &Triplet| Value::from(vec![t.start, t.stride, t.count, t.block]);
        let array = |(name, section): (&String, &Option<Section>)| {
            let dims = section.as_ref().map(|section| section.dims.iter().map(triplet).collect::<Vec<_>>());
            (name.clone(), dims.map_or(Value::Null, Value::from))
        };
        let text = Value::Object(self.0.iter().map(array).collect::<Map<_, _>>()).to_string();
        (text.len() <= TEXT_BYTES_MAX).then_some(text)
    }

    /// What a line of a marker says, if it does.
    pub(super) fn of_line(line: &Map<String, Value>) -> Option<TouchedParts> {
        let Value::Object(arrays) = serde_json::from_str(line.get(TOUCHED)?.as_str()?).ok()? else { return None };
        let triplet = |numbers: &Value| {
            let numbers: Option<Vec<u64>> = numbers.as_array()?.iter().map(Value::as_u64).collect();
            let [start, stride, count, block] = numbers?[..] else { return None };
            Some(Triplet { start, stride, count, block })
        };
        let array = |(name, dims): (String, Value)| match dims {
            Value::Null => Some((name, None)),
            dims => Some((name, Some(Section { dims: dims.as_array()?.iter().map(triplet).collect::<Option<_>>()? }))),
        };
        arrays.into_iter().map(array).collect::<Option<_>>().map(TouchedParts)
    }
}

/// Whether all indices of one are among those of the other, as far as that is seen at once.
fn is_inside(one: &Triplet, other: &Triplet) -> bool {
    let end = |t: &Triplet| {
        let last = t.stride.checked_mul(t.count.checked_sub(1)?)?;
        t.start.checked_add(last)?.checked_add(t.block)
    };
    let is_dense = other.count <= 1 || other.stride == other.block;
    let within = || other.start <= one.start && end(one).zip(end(other)).is_some_and(|(one, other)| one <= other);
    one == other || one.count == 0 || one.block == 0 || is_dense && within()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::Triplet;

    fn some(dims: &[(u64, u64, u64, u64)]) -> Option<Section> {
        let dims = dims.iter().map(|&(start, stride, count, block)| Triplet { start, stride, count, block });
        Some(Section { dims: dims.collect() })
    }

    #[test]
    fn it_comes_back_from_a_line() {
        let touched: TouchedParts =
            [("a/b".to_string(), None), ("c\"".into(), some(&[(0, 3, 2, 1), (1, 1, 5, 1)]))].into_iter().collect();
        let mut line = Map::new();
        assert_eq!(TouchedParts::of_line(&line), None);
        line.insert(TOUCHED.into(), touched.text().unwrap().into());
        assert_eq!(TouchedParts::of_line(&line), Some(touched));
        for text in ["", "[]", "{\"a\": 7}", "{\"a\": [[1, 2, 3]]}", "{\"a\": [[1, 2, 3, -4]]}"] {
            line.insert(TOUCHED.into(), text.into());
            assert_eq!(TouchedParts::of_line(&line), None, "{text}");
        }
        let long: TouchedParts = (0..1000).map(|number| (format!("array {number}"), None)).collect();
        assert_eq!(long.text(), None, "only writing everything ends it");
    }

    /// Whatever is said to cover something does so element by element, in all small cases.
    #[test]
    fn what_covers_has_all_indices() {
        let mut triplets = Vec::new();
        for start in 0..3 {
            for block in 1..3 {
                for stride in block..4 {
                    triplets.extend((0..3).map(|count| Triplet { start, stride, count, block }));
                }
            }
        }
        let has = |t: &Triplet, index: u64| {
            (0..t.count).any(|n| (t.start + n * t.stride..).take(t.block as usize).any(|i| i == index))
        };
        let mut covered = 0;
        for ours in &triplets {
            for theirs in &triplets {
                let of = |t: &Triplet| TouchedParts::from_iter([("a".to_string(), Some(Section { dims: vec![*t] }))]);
                if of(ours).covers(&of(theirs)) {
                    covered += 1;
                    assert!((0..20).all(|i| !has(theirs, i) || has(ours, i)), "{ours:?} {theirs:?}");
                }
            }
        }
        assert!(covered > triplets.len() * 3);
        let whole = TouchedParts::from_iter([("a".to_string(), None)]);
        let part = TouchedParts::from_iter([("a".to_string(), some(&[(0, 1, 1, 5)]))]);
        let other = TouchedParts::from_iter([("b".to_string(), some(&[(0, 1, 1, 5)]))]);
        assert!(whole.covers(&part) && !part.covers(&whole) && !whole.covers(&other));
    }
}
