//! Things that have paths, and are found by them.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

/// What has a path.
pub(super) trait HasPath {
    fn path(&self) -> &str;
    fn path_mut(&mut self) -> &mut String;
}

/// Some of them, in their order.
#[derive(Clone, Debug)]
pub(super) struct ByPath<T> {
    all: Vec<T>,
    /// Their numbers in the order of their paths, once that was asked for.
    sorted: OnceCell<Vec<usize>>,
    numbers: HashMap<String, usize>,
    /// How many lie in a group, or in groups of it.
    below: HashMap<String, usize>,
}

impl<T> Default for ByPath<T> {
    fn default() -> ByPath<T> {
        ByPath { all: Vec::new(), sorted: OnceCell::new(), numbers: HashMap::new(), below: HashMap::new() }
    }
}

/// The group that an array with this path lies in, as dimensions say it, and its name there.
pub(super) fn group_of(path: &str) -> (String, &str) {
    path.rsplit_once('/').map_or(("/".into(), path), |(group, name)| (format!("/{group}/"), name))
}

/// Paths of the groups that a path leads through.
pub(super) fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(move |(end, _)| &path[..end])
}

impl<T: HasPath> ByPath<T> {
    /// These.
    pub(super) fn of(all: Vec<T>) -> ByPath<T> {
        let mut made = ByPath::default();
        all.into_iter().for_each(|one| made.push(one));
        made
    }

    pub(super) fn push(&mut self, one: T) {
        self.sorted.take();
        self.numbers.insert(one.path().to_string(), self.all.len());
        for group in above(one.path()) {
            // Most are there: a copy of the name is made once.
            match self.below.get_mut(group) {
                Some(count) => *count += 1,
                None => drop(self.below.insert(group.to_string(), 1)),
            }
        }
        self.all.push(one);
    }

    /// Keeps the first so many.
    pub(super) fn truncate(&mut self, count: usize) {
        if count < self.all.len() {
            let mut all = std::mem::take(self).all;
            all.truncate(count);
            *self = ByPath::of(all);
        }
    }

    /// Keeps those that are such.
    pub(super) fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        let mut all = std::mem::take(self).all;
        all.retain(stays);
        *self = ByPath::of(all);
    }

    /// Gives them other paths.
    pub(super) fn move_each(&mut self, moved: impl Fn(&mut String)) {
        let mut all = std::mem::take(self).all;
        all.iter_mut().for_each(|one| moved(one.path_mut()));
        *self = ByPath::of(all);
    }

    /// The number of what has this path.
    pub(super) fn number(&self, path: &str) -> Option<usize> {
        self.numbers.get(path).copied()
    }

    /// Whether anything lies below this path.
    pub(super) fn has_below(&self, path: &str) -> bool {
        self.below.contains_key(path)
    }

    /// Numbers of what lies in a group or in groups of it, in their order. The path of the group ends with a slash, or is empty:
    /// then it is all. Of a group of a few among many thousands, only those few are looked at.
    pub(super) fn numbers_in(&self, within: &str) -> Vec<usize> {
        if within.is_empty() {
            return (0..self.all.len()).collect();
        }
        if !self.has_below(within.trim_end_matches('/')) {
            return Vec::new();
        }
        let sorted = self.sorted.get_or_init(|| {
            let mut sorted: Vec<usize> = (0..self.all.len()).collect();
            sorted.sort_unstable_by_key(|&number| self.all[number].path());
            sorted
        });
        let begin = sorted.partition_point(|&number| self.all[number].path() < within);
        let inside = sorted[begin..].iter().copied().take_while(|&number| self.all[number].path().starts_with(within));
        let mut found: Vec<usize> = inside.collect();
        found.sort_unstable();
        found
    }

    /// What has this path, to be changed but for its path.
    pub(super) fn get_mut(&mut self, path: &str) -> Option<&mut T> {
        let number = self.number(path)?;
        Some(&mut self.all[number])
    }
}

impl<T> Deref for ByPath<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.all
    }
}

/// To change what they are; their paths are changed by [`ByPath::move_each`] only.
impl<T> DerefMut for ByPath<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl HasPath for String {
        fn path(&self) -> &str {
            self
        }

        fn path_mut(&mut self) -> &mut String {
            self
        }
    }

    /// A path that counts who looks at it.
    struct Seen<'a>(String, &'a std::cell::Cell<usize>);

    impl HasPath for Seen<'_> {
        fn path(&self) -> &str {
            self.1.set(self.1.get() + 1);
            &self.0
        }

        fn path_mut(&mut self) -> &mut String {
            &mut self.0
        }
    }

    /// Who opens each of many groups looks at few of the others, once they are in order.
    #[test]
    fn of_many_groups_few_are_looked_at() {
        let looks = std::cell::Cell::new(0);
        let made = |number: usize| Seen(format!("g{number:05}/{}", number % 7), &looks);
        let all = ByPath::of((0..10_000).map(made).collect());
        assert_eq!(all.numbers_in("g00000/"), [0]);
        looks.set(0);
        for number in 0..10_000 {
            assert_eq!(all.numbers_in(&format!("g{number:05}/")), [number]);
        }
        assert!(looks.get() < 10_000 * 20, "{} looks for 10,000 groups", looks.get());
    }

    #[test]
    fn what_changes_is_found_where_it_is() {
        let mut all = ByPath::of(["a/b/c", "d", "a/e"].map(String::from).to_vec());
        assert_eq!(
            (all.number("d"), all.number("a"), all.has_below("a/b"), all.has_below("d")),
            (Some(1), None, true, false)
        );
        assert_eq!(
            (all.numbers_in(""), all.numbers_in("a/"), all.numbers_in("a/b/")),
            (vec![0, 1, 2], vec![0, 2], vec![0])
        );
        assert_eq!((all.numbers_in("d/"), all.numbers_in("a/e/")), (vec![], vec![]));
        all.push("a/b.x".into());
        assert_eq!((all.numbers_in("a/"), all.numbers_in("a/b/")), (vec![0, 2, 3], vec![0]));
        all.truncate(3);
        all.retain(|path| path != "a/b/c");
        assert_eq!((all.number("d"), all.number("a/e"), all.has_below("a/b")), (Some(0), Some(1), false));
        all.move_each(|path| *path = path.replace("a/", "f/g/"));
        assert_eq!((all.number("f/g/e"), all.has_below("f"), all.has_below("a")), (Some(1), true, false));
        all.truncate(1);
        assert_eq!((&all[..], all.has_below("f")), (&["d".to_string()][..], false));
        assert_eq!(above("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
