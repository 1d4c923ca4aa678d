//! Things that have paths, and are found by them.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

/// What has a path.
pub(super) trait HasPath {
    fn path(&self) -> &str;
    fn path_mut(&mut self) -> &mut String;
}

/// Some of them, in their order.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ByPath<T> {
    all: Vec<T>,
    numbers: HashMap<String, usize>,
    /// How many lie in a group, or in groups of it.
    below: HashMap<String, usize>,
}

impl<T> Default for ByPath<T> {
    fn default() -> ByPath<T> {
        ByPath { all: Vec::new(), numbers: HashMap::new(), below: HashMap::new() }
    }
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

    #[test]
    fn what_changes_is_found_where_it_is() {
        let mut all = ByPath::of(["a/b/c", "d", "a/e"].map(String::from).to_vec());
        assert_eq!(
            (all.number("d"), all.number("a"), all.has_below("a/b"), all.has_below("d")),
            (Some(1), None, true, false)
        );
        all.retain(|path| path != "a/b/c");
        assert_eq!((all.number("d"), all.number("a/e"), all.has_below("a/b")), (Some(0), Some(1), false));
        all.move_each(|path| *path = path.replace("a/", "f/g/"));
        assert_eq!((all.number("f/g/e"), all.has_below("f"), all.has_below("a")), (Some(1), true, false));
        all.truncate(1);
        assert_eq!((&all[..], all.has_below("f")), (&["d".to_string()][..], false));
        assert_eq!(above("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
