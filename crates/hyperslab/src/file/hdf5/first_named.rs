//! Which array of a new netCDF-4 file was the first that has a dimension of some name in its group. Later ones have to agree with
//! it, and so with all others that have it: these do not have to be looked at.

use super::by_path::{above, group_of};
use std::collections::BTreeMap;

/// The path of an array, and names of its dimensions.
pub(super) type DimensionsNamed<'a> = (&'a str, &'a [Option<String>]);

/// Numbers of such arrays, by the path of the group and the name of the dimension.
#[derive(Debug, Default)]
pub(super) struct FirstNamed(BTreeMap<String, BTreeMap<String, usize>>);

impl FirstNamed {
    /// Of these arrays, which are all.
    pub(super) fn of<'a>(arrays: impl Iterator<Item = DimensionsNamed<'a>>) -> FirstNamed {
        let mut first = FirstNamed::default();
        arrays.enumerate().for_each(|(number, array)| first.note(number, array));
        first
    }

    /// Notes what an array has, which comes after all that were noted.
    pub(super) fn note(&mut self, number: usize, (path, names): DimensionsNamed) {
        let (group, _) = group_of(path);
        for name in names.iter().flatten() {
            self.0.entry(group.clone()).or_default().entry(name.clone()).or_insert(number);
        }
    }

    /// There are only so many arrays.
    pub(super) fn truncate(&mut self, arrays: usize) {
        self.0.values_mut().for_each(|named| named.retain(|_, number| *number < arrays));
    }

    /// The arrays with which new ones have to agree: those that first had dimensions which these have, or which are called like
    /// groups that these lie in.
    pub(super) fn beside<'a>(&self, new: impl Iterator<Item = DimensionsNamed<'a>>) -> Vec<usize> {
        let find = |group: &str, name: &str| self.0.get(group)?.get(name).copied();
        let mut found = Vec::new();
        for (path, names) in new {
            let (group, _) = group_of(path);
            found.extend(names.iter().flatten().filter_map(|name| find(&group, name)));
            found.extend(above(path).filter_map(|inside| {
                let (group, name) = group_of(inside);
                find(&group, name)
            }));
        }
        found
    }
}
