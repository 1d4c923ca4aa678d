//! Dimensions of a netCDF-4 file that exists, as all ranks know them, for variables that are added to it.

use super::by_path::group_of;
use super::contents::{Hdf5, Hdf5Array};
use super::known_dimensions::{KnownDimension, SeenDimensions};
use crate::error::format_fault;
use hyperslab_format::hdf5::{Hdf5Metadata, ListedDimension};
use hyperslab_layout::tuple;
use hyperslab_world::{Fault, FaultKind, Reader, Writer};

/// What ranks are told of those that a file has.
pub(super) fn tell(w: Writer, listed: &[ListedDimension]) -> Writer {
    listed.iter().fold(w.number(listed.len() as u64), |w, one| {
        let w = w.bytes(one.group.as_bytes()).bytes(one.name.as_bytes());
        w.number(one.length).number(one.unlimited.into())
    })
}

/// What was [told](tell).
pub(super) fn hear(r: &mut Reader) -> Option<SeenDimensions> {
    let mut all = SeenDimensions::default();
    for _ in 0..r.number()? {
        let (group, name, length) = (r.text()?, r.text()?, r.number()?);
        all.add(group, name, KnownDimension { length, unlimited: r.number()? == 1 });
    }
    Some(all)
}

/// Each number once, in ascending order.
fn unique(mut numbers: Vec<usize>) -> Vec<usize> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl Hdf5 {
    /// Whether an array with this path sees an unlimited dimension of this name.
    pub(super) fn sees_unlimited(&self, path: &str, name: &str) -> bool {
        match self.dimensions.seen(&group_of(path).0, name) {
            Some((_, known)) => known.unlimited,
            None => self.options.unlimited.iter().any(|unlimited| unlimited == name),
        }
    }

    /// Refuses arrays from this number on that cannot be stored as they are, or do not fit the dimensions that the file has.
    pub(super) fn check_new(&self, first: usize) -> Result<(), Fault> {
        let new = &self.arrays[first..];
        new.iter().try_for_each(|held| self.check_dimensions(held))?;
        if !self.options.netcdf || self.exists() {
            return self.check_tree(&[], &[], new);
        }
        // A group that is called like a dimension is one of its neighbours.
        let called = |held: &Hdf5Array| {
            let within = held.array.name.rsplit_once('/').map_or(String::new(), |(group, _)| format!("{group}/"));
            let names = held.dimensions.iter().flatten().flatten().map(move |name| format!("{within}{name}"));
            names.collect::<Vec<_>>()
        };
        let groups = new.iter().flat_map(called).filter_map(|path| self.groups.number(&path)).collect();
        self.check_tree(&unique(groups), &unique(self.first_named.beside(new.iter().map(Hdf5Array::named))), new)
    }

    /// Refuses what cannot be stored of groups and arrays by their numbers, and of new arrays.
    fn check_tree(&self, groups: &[usize], beside: &[usize], new: &[Hdf5Array]) -> Result<(), Fault> {
        let groups = groups.iter().map(|number| &self.groups[*number]);
        let beside = beside.iter().map(|number| &self.arrays[*number]);
        Hdf5Metadata::check(&self.tree_of(groups, beside.chain(new))?).map_err(format_fault)
    }

    /// Refuses a new array that does not fit the dimensions of the file that its group has.
    pub(super) fn check_dimensions(&self, held: &Hdf5Array) -> Result<(), Fault> {
        let (path, shape) = (&held.array.name, &held.array.shape);
        let (group, last) = group_of(path);
        let first = held.dimensions.as_ref().and_then(|names| names.first()).and_then(Option::as_deref);
        if shape.len() > 1 && first == Some(last) && self.dimensions.of_group(&group, last).is_some() {
            let text = format!("'{path}' has several dimensions, and one of its own name, which the file has already");
            let expected = "one dimension for a variable that is called like a dimension of the file";
            return Err(Fault::new(FaultKind::Unsupported, text)
                .expected(expected, tuple(shape).to_string())
                .hint("give the array or the dimension another name"));
        }
        for (name, &extent) in held.dimensions.iter().flatten().zip(shape) {
            let Some(name) = name else { continue };
            // Of a group above, another one of its own takes its place.
            let Some(known) = self.dimensions.of_group(&group, name) else { continue };
            if !known.unlimited && known.length != extent {
                let text = format!("dimension '{name}' of array '{path}' has another length in the file");
                return Err(Fault::new(FaultKind::Invalid, text)
                    .expected(format!("{} along it", known.length), tuple(shape).to_string())
                    .hint("give the dimension another name"));
            }
        }
        Ok(())
    }

    /// Notes those that arrays from this number on have brought.
    pub(super) fn note_dimensions(&mut self, first: usize) {
        for number in first..self.arrays.len() {
            let held = &self.arrays[number];
            let path = held.array.name.clone();
            let group = group_of(&path).0;
            let named: Vec<_> = held.dimensions.iter().flatten().zip(&held.array.shape).enumerate().collect();
            let named = named.into_iter().filter_map(|(d, (name, length))| {
                let unlimited = held.limits.get(d).is_some_and(Option::is_none);
                Some((name.clone()?, KnownDimension { length: *length, unlimited }))
            });
            for (name, one) in named.collect::<Vec<_>>() {
                let fits = |seen: KnownDimension| {
                    seen.unlimited == one.unlimited && (one.unlimited || seen.length == one.length)
                };
                if !self.dimensions.seen(&group, &name).is_some_and(|(of, seen)| of == group || fits(seen)) {
                    self.dimensions.add(group.clone(), name, one);
                }
            }
        }
    }
}
