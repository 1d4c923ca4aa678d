//! Index sets of one dimension in closed form.
//!
//! HPF ownership, sections, chunks and all their intersections are sets of indices that repeat: a few
//! progressions of runs describe them, however many elements they hold. CYCLIC over 8-byte elements costs four
//! numbers here, not a million runs.
//!
//! ```text
//! term { start: 2, len: 3, step: 5, count: 3 }   . . x x x . . x x x . . x x x .
//! ```
//!
//! What a box of several dimensions is in a file of one repeats at several levels; see [`Nested`].

mod nested;
mod scattered;
mod term;

use crate::ordered::{Enumerated, Finger, Sorted, Spanned};
use nested::Nests;
pub use nested::{Level, Nested};
pub(crate) use scattered::RUNS_MIN;
pub use scattered::ScatteredRuns;
use scattered::{ListPart, Scattered};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
pub use term::Term;
pub(crate) use term::Terms;
use term::folded;

/// Disjoint terms, sorted by their first index; runs of a term that touch are one run. One term, as nearly always, is
/// held in place; more are shared by all copies of the set.
#[derive(Clone, Debug, Default)]
enum Kept {
    #[default]
    None,
    One(Term),
    Several(Arc<Several>),
}

/// What takes more than one term.
#[derive(Debug)]
enum Several {
    Terms(Sorted<Term>),
    /// Runs that repeat at several levels.
    Nested(Nests),
    /// Runs that follow no pattern.
    Scattered(Scattered),
}

impl Several {
    fn terms(&self) -> &[Term] {
        match self {
            Several::Terms(list) => list.entries(),
            Several::Nested(nests) => nests.terms(),
            Several::Scattered(list) => list.terms(),
        }
    }
}

impl PartialEq for Several {
    fn eq(&self, other: &Several) -> bool {
        match (self, other) {
            (Several::Terms(one), Several::Terms(other)) => one == other,
            (Several::Nested(one), Several::Nested(other)) => one == other,
            (Several::Scattered(one), Several::Scattered(other)) => one == other,
            (Several::Scattered(list), Several::Terms(terms)) | (Several::Terms(terms), Several::Scattered(list)) => {
                list.equals(terms.entries())
            }
            _ => false,
        }
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        match (self, other) {
            (Kept::None, Kept::None) => true,
            (Kept::One(one), Kept::One(other)) => one == other,
            (Kept::Several(one), Kept::Several(other)) => Arc::ptr_eq(one, other) || one == other,
            // Part of a list may repeat where the whole does not.
            (Kept::One(term), Kept::Several(several)) | (Kept::Several(several), Kept::One(term)) => {
                matches!(&**several, Several::Scattered(list) if list.equals(&[*term]))
            }
            _ => false,
        }
    }
}

/// A finite set of indices of one dimension.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct IndexSet(Kept);

impl Eq for IndexSet {}

impl Hash for IndexSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal sets may have been made apart, and look different.
        (self.len(), self.hull()).hash(state);
    }
}

/// What tells sets apart without looking at all of their parts: copies of a set have the same. Sets that are alive at the
/// same time and have the same are equal; equal ones that were made apart may differ in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SetId {
    /// No index.
    Empty,
    /// One term.
    Term(Term),
    /// More, which all copies share.
    List(usize),
    /// The part of a list between two indices.
    Part(usize, u64, u64),
}

impl IndexSet {
    /// What tells it apart from others.
    pub fn id(&self) -> SetId {
        match &self.0 {
            Kept::None => SetId::Empty,
            Kept::One(term) => SetId::Term(*term),
            Kept::Several(several) => match &**several {
                Several::Scattered(list) => {
                    let (all, low, high) = list.id();
                    SetId::Part(all, low, high)
                }
                Several::Terms(_) | Several::Nested(_) => SetId::List(Arc::as_ptr(several).addr()),
            },
        }
    }

    /// The set without indices.
    pub fn empty() -> IndexSet {
        IndexSet::default()
    }

    /// The union of terms that have no index in common, which are sorted first. Equal sets of terms have one form, whoever
    /// made them.
    pub(crate) fn of_terms(terms: &mut [Term]) -> IndexSet {
        for term in &mut *terms {
            *term = Term::new(term.start, term.len, term.step, term.count);
        }
        terms.sort_unstable();
        IndexSet(match terms {
            [] => Kept::None,
            [term] => Kept::One(*term),
            _ => Kept::Several(Arc::new(match Scattered::of_terms(terms) {
                Some(list) => Several::Scattered(list),
                None => Several::Terms(Sorted::new((&*terms).into())),
            })),
        })
    }

    /// Indices `low..high`.
    pub fn range(low: u64, high: u64) -> IndexSet {
        IndexSet(Term::run(low, high).map_or(Kept::None, Kept::One))
    }

    /// The progression of `count` runs of `len` indices that start `step` apart.
    ///
    /// Returns `None` when runs would overlap or the last index does not fit into `u64`.
    pub fn progression(start: u64, len: u64, step: u64, count: u64) -> Option<IndexSet> {
        if len == 0 || count == 0 {
            return Some(IndexSet::empty());
        }
        if count > 1 && step < len {
            return None;
        }
        let reach = if count == 1 { 0 } else { (count - 1).checked_mul(step)? };
        start.checked_add(reach)?.checked_add(len)?;
        Some(IndexSet(Kept::One(Term::new(start, len, if count == 1 { len } else { step }, count))))
    }

    /// Runs of `len` indices, the first from `start` on, that repeat at each of these levels: how often and how far apart, the
    /// outermost first.
    ///
    /// Returns `None` when what repeats would reach into its next repetition, or an index does not fit into `u64`.
    pub fn nested(start: u64, len: u64, levels: &[(u64, u64)]) -> Option<IndexSet> {
        if len == 0 || levels.iter().any(|level| level.0 == 0) {
            return Some(IndexSet::empty());
        }
        let levels = levels.iter().map(|&(count, step)| Level { count, step });
        Some(Nests::set(vec![Nested::new(start, len, levels)?]))
    }

    /// The union of such runs, as [`IndexSet::parts`] gives them.
    ///
    /// Returns `None` when some of them have an index in common, or come in another order.
    pub fn of_parts(parts: impl IntoIterator<Item = Nested>) -> Option<IndexSet> {
        let made = parts.into_iter().map(|part| Nested::new(part.start, part.len, part.levels.into_iter()));
        let made: Vec<Nested> = made.collect::<Option<_>>()?;
        let apart = made.windows(2).all(|pair| pair[0].end() <= pair[1].start);
        if apart {
            return Some(Nests::set(made));
        }
        let mut terms: Vec<Term> = made.iter().map(Nested::term).collect::<Option<_>>()?;
        Some(IndexSet::of_terms(&mut terms))
    }

    fn of_part(part: ListPart) -> IndexSet {
        match part {
            ListPart::Few(mut terms) => IndexSet::of_terms(&mut terms),
            ListPart::List(list) => IndexSet(Kept::Several(Arc::new(Several::Scattered(list)))),
        }
    }

    fn of_nests(nests: Nests) -> IndexSet {
        IndexSet(Kept::Several(Arc::new(Several::Nested(nests))))
    }

    /// It in parts that repeat regularly, sorted by first index.
    pub fn parts(&self) -> impl Iterator<Item = Nested> + '_ {
        let (nested, terms) = match self.nests() {
            Some(nests) => (nests.parts(), &[][..]),
            None => (&[][..], self.terms()),
        };
        let plain = |term: &Term| {
            let levels = (term.count > 1).then_some(Level { count: term.count, step: term.step });
            Nested { start: term.start, len: term.len, levels: levels.into_iter().collect() }
        };
        nested.iter().cloned().chain(terms.iter().map(plain))
    }

    /// The set with all indices lower by so much, which none is below.
    #[must_use]
    pub fn lowered(&self, by: u64) -> IndexSet {
        if by == 0 {
            return self.clone();
        }
        let lower = |start: u64| start.saturating_sub(by);
        match self.nests() {
            Some(nests) => {
                let parts = nests.parts().iter();
                Nests::set(parts.map(|part| Nested { start: lower(part.start), ..part.clone() }).collect())
            }
            None => {
                let terms = self.terms().iter().map(|term| Term { start: lower(term.start), ..*term });
                IndexSet::of_terms(&mut terms.collect::<Terms>())
            }
        }
    }

    /// The part in `low..high` of the endless progression of runs of `len` indices that start `step` apart.
    pub(crate) fn clipped(start: u64, len: u64, step: u64, low: u64, high: u64) -> IndexSet {
        if high <= start.max(low) {
            return IndexSet::empty();
        }
        if step == len {
            return IndexSet::range(start.max(low), high);
        }
        IndexSet::clip(&Term { start, len, step, count: u64::MAX }, low, high)
    }

    /// The part of a term inside `low..high`, which meets its hull.
    fn clip(term: &Term, low: u64, high: u64) -> IndexSet {
        match term.clip(low, high) {
            [None, None, None] => IndexSet::empty(),
            [Some(term), None, None] | [None, Some(term), None] | [None, None, Some(term)] => {
                IndexSet(Kept::One(Term::new(term.start, term.len, term.step, term.count)))
            }
            parts => IndexSet::of_terms(&mut parts.into_iter().flatten().collect::<Terms>()),
        }
    }

    /// Its terms, sorted by first index. Of what repeats at several levels they are made when first asked for, one for each
    /// repetition of the level before the last: ask only for those of a part of it, as of [`IndexSet::within`].
    pub fn terms(&self) -> &[Term] {
        match &self.0 {
            Kept::None => &[],
            Kept::One(term) => std::slice::from_ref(term),
            Kept::Several(several) => several.terms(),
        }
    }

    /// Whether it has more levels than a term has.
    pub fn repeats_at_levels(&self) -> bool {
        self.nests().is_some()
    }

    fn nests(&self) -> Option<&Nests> {
        match &self.0 {
            Kept::Several(several) => match &**several {
                Several::Nested(nests) => Some(nests),
                Several::Terms(_) | Several::Scattered(_) => None,
            },
            Kept::None | Kept::One(_) => None,
        }
    }

    fn scattered(&self) -> Option<&Scattered> {
        match &self.0 {
            Kept::Several(several) => match &**several {
                Several::Scattered(list) => Some(list),
                Several::Terms(_) | Several::Nested(_) => None,
            },
            Kept::None | Kept::One(_) => None,
        }
    }

    /// Its runs, each by its first index and one past the last, where they follow no pattern.
    pub fn scattered_runs(&self) -> Option<ScatteredRuns<'_>> {
        self.scattered().map(Scattered::runs)
    }

    /// The position of an index that it holds, and how many indices follow each other from there on.
    pub(crate) fn run_at(&self, finger: &mut Finger, index: u64) -> (u64, u64) {
        if let Some(list) = self.scattered() {
            return list.run_at(finger, index);
        }
        let position = self.below_from(finger, index);
        let run = match self.nests() {
            Some(nests) => nests.run_from(finger, index),
            None => self.near(finger, index, index + 1).iter().find_map(|term| term.run_from(index)).unwrap_or(1),
        };
        (position, run)
    }

    /// Number of indices.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Kept::None => 0,
            Kept::One(term) => term.elements(),
            Kept::Several(several) => match &**several {
                Several::Terms(list) => list.elements(),
                Several::Nested(nests) => nests.len(),
                Several::Scattered(list) => list.len(),
            },
        }
    }

    /// Whether it has no index.
    pub fn is_empty(&self) -> bool {
        matches!(self.0, Kept::None)
    }

    /// Lowest index and one past the highest; `None` when empty.
    pub fn hull(&self) -> Option<(u64, u64)> {
        match &self.0 {
            Kept::None => None,
            Kept::One(term) => Some((term.start, term.end())),
            Kept::Several(several) => match &**several {
                Several::Terms(list) => list.hull(),
                Several::Nested(nests) => nests.hull(),
                Several::Scattered(list) => Some(list.hull()),
            },
        }
    }

    /// The range it is, when it is one range; the empty set is `0..0`.
    pub fn as_range(&self) -> Option<(u64, u64)> {
        match &self.0 {
            Kept::None => Some((0, 0)),
            Kept::One(term) if term.count == 1 => Some((term.start, term.end())),
            _ => None,
        }
    }

    /// How many of its indices are below `index`: the local position of an index that it holds.
    pub fn below(&self, index: u64) -> u64 {
        self.below_from(&mut Finger::default(), index)
    }

    /// The same, looked for from where the finger is.
    #[inline]
    pub(crate) fn below_from(&self, finger: &mut Finger, index: u64) -> u64 {
        match &self.0 {
            Kept::None => 0,
            Kept::One(term) => term.count_below(index),
            Kept::Several(several) => match &**several {
                Several::Terms(list) => list.below(finger, index),
                Several::Nested(nests) => nests.below(finger, index),
                Several::Scattered(list) => list.below(finger, index),
            },
        }
    }

    /// Whether it holds `index`.
    pub fn contains(&self, index: u64) -> bool {
        self.below(index + 1) > self.below(index)
    }

    /// The index at local position `position`, counted in rising order.
    pub fn select(&self, position: u64) -> Option<u64> {
        match &self.0 {
            Kept::None => None,
            Kept::One(term) => (position < term.elements()).then(|| Enumerated::select(term, position)),
            Kept::Several(several) => match &**several {
                Several::Terms(list) => list.select(position),
                Several::Nested(nests) => nests.select(position),
                Several::Scattered(list) => list.select(position),
            },
        }
    }

    /// Its terms that may have an index in `low..high`, and a few others, looked for from where the finger is.
    pub(crate) fn near(&self, finger: &mut Finger, low: u64, high: u64) -> &[Term] {
        match &self.0 {
            Kept::Several(several) if let Several::Terms(list) = &**several => list.near(finger, low, high),
            Kept::Several(several) if let Several::Scattered(list) = &**several => finger.near(list.terms(), low, high),
            _ => self.terms(),
        }
    }

    /// Indices in both.
    pub fn intersect(&self, other: &IndexSet) -> IndexSet {
        if matches!(self.0, Kept::Several(_)) && self.id() == other.id() {
            return self.clone();
        }
        if self.nests().is_some() || other.nests().is_some() {
            return self.intersect_nests(other);
        }
        match (self.scattered(), other.scattered()) {
            (Some(one), Some(other)) => IndexSet::of_runs(one.meetings(other)).unwrap_or_default(),
            (Some(list), None) if let Some((low, high)) = other.as_range() => IndexSet::of_part(list.within(low, high)),
            (None, Some(list)) if let Some((low, high)) = self.as_range() => IndexSet::of_part(list.within(low, high)),
            _ => self.intersect_terms(other),
        }
    }

    /// The same term by term: each with those near it.
    fn intersect_terms(&self, other: &IndexSet) -> IndexSet {
        let (few, many) = if self.terms().len() <= other.terms().len() { (self, other) } else { (other, self) };
        let (mut terms, mut finger) = (Terms::new(), Finger::default());
        for a in few.terms() {
            for b in many.near(&mut finger, a.start, a.end()) {
                a.intersect_into(b, &mut terms);
            }
        }
        IndexSet::of_terms(&mut terms)
    }

    /// The same where one of them at least repeats at several levels: term by term, of what both reach over.
    fn intersect_nests(&self, other: &IndexSet) -> IndexSet {
        let (Some((a, b)), Some((c, d))) = (self.hull(), other.hull()) else { return IndexSet::empty() };
        let (low, high) = (a.max(c), b.min(d));
        let (one, two) = (self.within(low, high), other.within(low, high));
        match (one.as_range(), two.as_range()) {
            (Some((low, high)), _) => two.within(low, high),
            (_, Some((low, high))) => one.within(low, high),
            (None, None) => one.intersect_terms(&two),
        }
    }

    /// Indices in `low..high`.
    pub fn within(&self, low: u64, high: u64) -> IndexSet {
        match &self.0 {
            Kept::One(term) if term.count == 1 => IndexSet::range(term.start.max(low), term.end().min(high)),
            Kept::One(term) if term.start >= low && term.end() <= high => self.clone(),
            Kept::One(term) if term.start < high && term.end() > low && low < high => IndexSet::clip(term, low, high),
            Kept::None | Kept::One(_) => IndexSet::empty(),
            Kept::Several(several) => match &**several {
                Several::Terms(list) if list.hull().is_some_and(|(first, end)| low <= first && end <= high) => {
                    self.clone()
                }
                Several::Terms(_) => self.intersect_terms(&IndexSet::range(low, high)),
                Several::Scattered(list) if (low..=high).contains(&list.hull().0) && list.hull().1 <= high => {
                    self.clone()
                }
                Several::Scattered(list) => IndexSet::of_part(list.within(low, high)),
                Several::Nested(nests) => nests.within(low, high),
            },
        }
    }

    /// The union of sets that have no index in common.
    pub fn union_of_disjoint(sets: Vec<IndexSet>) -> IndexSet {
        let mut terms: Vec<Term> = sets.iter().flat_map(IndexSet::terms).copied().collect();
        IndexSet::of_terms(&mut terms)
    }

    /// The union of runs `(start, length)` in rising order, none of which overlaps the next. Runs that follow each other
    /// regularly become one term.
    ///
    /// Returns `None` when a run begins before the one before it ends, or reaches beyond `u64`.
    pub fn of_runs(runs: impl IntoIterator<Item = (u64, u64)>) -> Option<IndexSet> {
        folded(runs).map(|mut terms| IndexSet::of_terms(&mut terms))
    }

    /// Whether it has an index in `low..high`.
    pub fn meets(&self, low: u64, high: u64) -> bool {
        match self.nests() {
            Some(nests) => low < high && nests.meets(low, high),
            None if let Some(list) = self.scattered() => {
                let mut finger = Finger::default();
                low < high && list.below(&mut finger, low) < list.below(&mut finger, high)
            }
            None => {
                let near = || self.near(&mut Finger::default(), low, high).iter();
                low < high && near().any(|term| term.count_below(high) > term.count_below(low))
            }
        }
    }

    /// Its lowest index that is at least `index`.
    pub fn at_or_after(&self, index: u64) -> Option<u64> {
        match &self.0 {
            Kept::One(term) => term.at_or_after(index),
            Kept::None => None,
            Kept::Several(several) => match &**several {
                Several::Terms(list) => {
                    // Behind one that begins later than what was found, all do.
                    let mut lowest = u64::MAX;
                    for term in list.near(&mut Finger::default(), index, u64::MAX) {
                        if term.start >= lowest {
                            break;
                        }
                        lowest = term.at_or_after(index).map_or(lowest, |found| found.min(lowest));
                    }
                    (lowest < u64::MAX).then_some(lowest)
                }
                Several::Nested(nests) => nests.at_or_after(index),
                Several::Scattered(list) => list.select(list.below(&mut Finger::default(), index)),
            },
        }
    }

    /// All indices in rising order; for tests, printing and small sets.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map(|position| self.select(position).expect("position below len"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(term: &Term) -> Vec<u64> {
        (0..term.count)
            .flat_map(|i| (0..term.len).map(move |j| (i, j)))
            .map(|(i, j)| term.start + i * term.step + j)
            .collect()
    }

    fn small_terms() -> Vec<Term> {
        let mut terms = Vec::new();
        for start in 0..5 {
            for len in 1..4 {
                for step in len..len + 4 {
                    for count in 1..4 {
                        terms.push(Term { start, len, step: if count == 1 { len } else { step }, count });
                    }
                }
            }
        }
        terms.dedup();
        terms
    }

    #[test]
    fn all_small_intersections_equal_the_elementwise_ones() {
        let terms = small_terms();
        for a in &terms {
            for b in &terms {
                check(a, b);
            }
        }
    }

    fn check(a: &Term, b: &Term) {
        let (ea, eb) = (elements(a), elements(b));
        let expected: Vec<u64> = ea.iter().copied().filter(|x| eb.contains(x)).collect();
        let both = IndexSet::of_terms(&mut [*a]).intersect(&IndexSet::of_terms(&mut [*b]));
        let found: Vec<u64> = both.iter().collect();
        assert_eq!(found, expected, "{a:?} {b:?} -> {both:?}");
        assert_eq!(both.len(), expected.len() as u64, "{a:?} {b:?} -> {both:?}");
        for x in 0..30 {
            assert_eq!(both.contains(x), expected.contains(&x));
            assert_eq!(both.below(x), expected.iter().filter(|&&e| e < x).count() as u64);
            assert_eq!(both.at_or_after(x), expected.iter().copied().filter(|&e| e >= x).min(), "{both:?} from {x}");
        }
    }

    #[test]
    fn random_larger_intersections_equal_the_elementwise_ones() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let mut term = || {
                let len = random.u64(1..9);
                let count = random.u64(1..40);
                let step = if count == 1 { len } else { len + random.u64(0..12) };
                Term { start: random.u64(0..50), len, step, count }
            };
            let (a, b) = (term(), term());
            let (ea, eb) = (elements(&a), elements(&b));
            let expected: Vec<u64> = ea.iter().copied().filter(|x| eb.binary_search(x).is_ok()).collect();
            let both = IndexSet::of_terms(&mut [a]).intersect(&IndexSet::of_terms(&mut [b]));
            assert_eq!(both.iter().collect::<Vec<_>>(), expected, "{a:?} {b:?} -> {both:?}");
        }
    }

    #[test]
    fn runs_make_the_set_that_they_say() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..2000 {
            let regular = random.bool();
            let (len, gap) = (random.u64(1..4), random.u64(0..3));
            let mut next = 0;
            let runs: Vec<(u64, u64)> = (0..random.u64(0..30))
                .map(|_| {
                    let (gap, len) = if regular { (gap, len) } else { (random.u64(0..3), random.u64(0..4)) };
                    next += gap + len;
                    (next - len, len)
                })
                .collect();
            let set = IndexSet::of_runs(runs.clone()).unwrap();
            let expected: Vec<u64> = runs.iter().flat_map(|&(start, len)| start..start + len).collect();
            assert_eq!(set.iter().collect::<Vec<_>>(), expected, "{runs:?} -> {set:?}");
            assert!(!regular || set.terms().len() <= 1, "{runs:?} -> {set:?}");
            for low in 0..40 {
                for high in low..40 {
                    let found: Vec<u64> = set.intersect(&IndexSet::range(low, high)).iter().collect();
                    let expected: Vec<u64> = expected.iter().copied().filter(|x| (low..high).contains(x)).collect();
                    assert_eq!(found, expected, "{runs:?} in {low}..{high}");
                    assert_eq!(set.meets(low, high), !expected.is_empty());
                }
            }
        }
        assert_eq!(IndexSet::of_runs([(3, 2), (4, 1)]), None);
        assert_eq!(IndexSet::of_runs([(u64::MAX, 2)]), None);
    }

    #[test]
    fn cyclic_sets_stay_small() {
        let a = IndexSet::progression(3, 1, 7, 1 << 40).unwrap();
        let b = IndexSet::progression(5, 1, 11, 1 << 40).unwrap();
        let both = a.intersect(&b);
        assert_eq!(both.terms().len(), 1);
        assert_eq!(both.terms()[0].step, 77);
    }

    #[test]
    fn runs_that_touch_become_one_run() {
        assert_eq!(IndexSet::progression(2, 3, 3, 4), Some(IndexSet::range(2, 14)));
        assert_eq!(IndexSet::progression(0, 3, 2, 2), None);
        assert_eq!(IndexSet::progression(u64::MAX, 1, 1, 1), None);
    }
}
