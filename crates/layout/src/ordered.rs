//! Lists in order: sorted once, then searched.
//!
//! Element maps, boxes in number and lists of indices have as many entries as a rank has runs. Looking at all entries for
//! each of them grows with the square. So entries rise: those that a question is about are found by halving, and sums tell
//! how many indices lie before each.
//!
//! ```text
//! entries    3..5   8..9   9..12   20..21
//! before     0      2      3       6
//! ```
//!
//! Questions mostly rise, too, as when two lists are gone through at once. Each is answered from the place of the one before
//! (J. L. Bentley and A. C. Yao, An almost optimal algorithm for unbounded searching, 1976), so that both lists together
//! cost a number of steps in proportion to their lengths.

use crate::counted::look;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

/// An entry of a list: some indices.
pub(crate) trait Spanned {
    /// The lowest.
    fn first(&self) -> u64;
    /// One past the highest.
    fn end(&self) -> u64;
}

/// An entry of a set, which has no index in common with the others.
pub(crate) trait Enumerated: Spanned {
    /// Number of indices.
    fn elements(&self) -> u64;
    /// How many of its indices are below `index`.
    fn below(&self, index: u64) -> u64;
    /// The index at this position, which there is.
    fn select(&self, position: u64) -> u64;
}

/// A place in a list, from which the next search begins.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Finger(usize);

impl Finger {
    /// At this place.
    pub(crate) fn from(place: usize) -> Finger {
        Finger(place)
    }

    /// How many entries at the start of the list are as `before` says; behind the first that is not, none may be.
    pub(crate) fn find<T>(&mut self, list: &[T], before: impl Fn(&T) -> bool) -> usize {
        let before = |entry: &T| {
            look();
            before(entry)
        };
        let at = self.0.min(list.len());
        let (mut low, mut high, mut step) = (at, at, 1);
        while high < list.len() && before(&list[high]) {
            low = high + 1;
            high = (low + step).min(list.len());
            step *= 2;
        }
        while low > 0 && !before(&list[low - 1]) {
            high = low - 1;
            low = high.saturating_sub(step);
            step *= 2;
        }
        self.0 = low + list[low..high].partition_point(before);
        self.0
    }

    /// The entries that may hold an index in `low..high`, of a list in which none begins before the one before it ends.
    pub(crate) fn near<'a, T: Spanned>(&mut self, list: &'a [T], low: u64, high: u64) -> &'a [T] {
        let from = self.find(list, |entry| entry.end() <= low);
        let rest = &list[from..];
        &rest[..Finger::default().find(rest, |entry| entry.first() < high)]
    }
}

/// Entries of a set, sorted by their first index.
#[derive(Debug)]
pub(crate) struct Sorted<P> {
    entries: Box<[P]>,
    elements: u64,
    end: u64,
    /// Whether some entry begins before one before it ends, as where two progressions cross.
    woven: bool,
    /// Made when first asked for: most sets are cut out of another one, moved and forgotten.
    sums: OnceLock<Sums>,
}

/// What lies before each entry.
#[derive(Debug)]
struct Sums {
    /// How many indices the entries before it have.
    elements: Box<[u64]>,
    /// Up to where the entries up to it reach; empty unless the list is woven, since then it is where each ends.
    reach: Box<[u64]>,
}

impl<P: Enumerated> Sorted<P> {
    /// Of entries sorted by their first index.
    pub(crate) fn new(entries: Box<[P]>) -> Sorted<P> {
        let (mut elements, mut end, mut woven) = (0, 0, false);
        for entry in &entries {
            woven |= entry.first() < end;
            end = entry.end().max(end);
            elements += entry.elements();
        }
        Sorted { entries, elements, end, woven, sums: OnceLock::new() }
    }

    /// The entries.
    pub(crate) fn entries(&self) -> &[P] {
        &self.entries
    }

    /// Number of indices.
    pub(crate) fn elements(&self) -> u64 {
        self.elements
    }

    /// Lowest index and one past the highest; `None` when there is none.
    pub(crate) fn hull(&self) -> Option<(u64, u64)> {
        Some((self.entries.first()?.first(), self.end))
    }

    /// Whether to look at all of it costs less than to search and to keep sums.
    fn is_short(&self) -> bool {
        self.entries.len() < 4
    }

    fn sums(&self) -> &Sums {
        self.sums.get_or_init(|| {
            let (mut elements, mut end) = (0, 0);
            let before = |entry: &P| {
                elements += entry.elements();
                elements - entry.elements()
            };
            let elements = self.entries.iter().map(before).collect();
            let reach = |entry: &P| {
                end = entry.end().max(end);
                end
            };
            let reach = if self.woven { self.entries.iter().map(reach).collect() } else { Box::default() };
            Sums { elements, reach }
        })
    }

    /// The number of the first entry that may hold an index from `low` on.
    fn from(&self, finger: &mut Finger, low: u64) -> usize {
        match self.woven {
            false => finger.find(&self.entries, |entry| entry.end() <= low),
            true => finger.find(&self.sums().reach, |&reach| reach <= low),
        }
    }

    /// The entries that may hold an index in `low..high`.
    pub(crate) fn near(&self, finger: &mut Finger, low: u64, high: u64) -> &[P] {
        if self.is_short() {
            return &self.entries;
        }
        let rest = &self.entries[self.from(finger, low)..];
        &rest[..Finger::default().find(rest, |entry| entry.first() < high)]
    }

    /// How many indices are below `index`.
    pub(crate) fn below(&self, finger: &mut Finger, index: u64) -> u64 {
        if self.is_short() {
            return self.entries.iter().map(|entry| entry.below(index)).sum();
        }
        let from = self.from(finger, index);
        let Some(before) = self.sums().elements.get(from) else { return self.elements };
        let cut = self.entries[from..].iter().take_while(|entry| entry.first() < index);
        before + cut.map(|entry| entry.below(index)).sum::<u64>()
    }

    /// The index at this position, counted in rising order.
    pub(crate) fn select(&self, position: u64) -> Option<u64> {
        if position >= self.elements {
            return None;
        }
        if !self.woven && self.is_short() {
            let mut before = 0;
            let holds = |entry: &&P| {
                before += entry.elements();
                position < before
            };
            let entry = self.entries.iter().find(holds)?;
            return Some(entry.select(position + entry.elements() - before));
        }
        if !self.woven {
            let before = &self.sums().elements;
            let entry = before.partition_point(|&before| before <= position) - 1;
            return Some(self.entries[entry].select(position - before[entry]));
        }
        let (mut low, mut high) = self.hull()?;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.below(&mut Finger::default(), middle) <= position {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

impl<P: PartialEq> PartialEq for Sorted<P> {
    fn eq(&self, other: &Sorted<P>) -> bool {
        self.entries == other.entries
    }
}

impl<P: Eq> Eq for Sorted<P> {}

impl<P: Hash> Hash for Sorted<P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.entries.hash(state);
    }
}

#[cfg(test)]
mod tests;
