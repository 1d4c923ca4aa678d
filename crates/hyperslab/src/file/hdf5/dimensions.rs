//! Dimensions of a netCDF-4 file that exists, as all ranks know them, for variables that are added to it.

use super::contents::{Hdf5, Hdf5Array, KnownDimension};
use hyperslab_format::hdf5::ListedDimension;
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
pub(super) fn hear(r: &mut Reader) -> Option<Vec<KnownDimension>> {
    let count = r.number()?;
    let one = |_| {
        let (group, name, length) = (r.text()?, r.text()?, r.number()?);
        Some(KnownDimension { group, name, length, unlimited: r.number()? == 1 })
    };
    (0..count).map(one).collect()
}

impl Hdf5 {
    /// The dimension of this name that an array with this path sees: its group's, or one of the groups above.
    fn dimension_seen(&self, path: &str, name: &str) -> Option<&KnownDimension> {
        let of_group = |group: &str| self.dimensions.iter().find(|one| one.group == group && one.name == name);
        let mut group = path.rsplit_once('/').map_or("/".into(), |(group, _)| format!("/{group}/"));
        loop {
            if let Some(found) = of_group(&group) {
                return Some(found);
            }
            let above = group.trim_end_matches('/');
            group = above[..=above.rfind('/')?].into();
        }
    }

    /// Whether an array with this path sees an unlimited dimension of this name.
    pub(super) fn sees_unlimited(&self, path: &str, name: &str) -> bool {
        match self.dimension_seen(path, name) {
            Some(known) => known.unlimited,
            None => self.options.unlimited.iter().any(|unlimited| unlimited == name),
        }
    }

    /// Refuses a new array that does not fit the dimensions of the file that its group has.
    pub(super) fn check_dimensions(&self, held: &Hdf5Array) -> Result<(), Fault> {
        let (path, shape) = (&held.array.name, &held.array.shape);
        for (name, &extent) in held.dimensions.iter().flatten().zip(shape) {
            let Some(name) = name else { continue };
            let Some(known) = self.dimension_seen(path, name) else { continue };
            let is_own = path.rsplit_once('/').map_or("/".into(), |(group, _)| format!("/{group}/")) == known.group;
            // Of a group above, another one of its own takes its place.
            if is_own && !known.unlimited && known.length != extent {
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
            let group = path.rsplit_once('/').map_or("/".into(), |(group, _)| format!("/{group}/"));
            let named: Vec<_> = held.dimensions.iter().flatten().zip(&held.array.shape).enumerate().collect();
            let named = named.into_iter().filter_map(|(d, (name, length))| {
                let unlimited = held.limits.get(d).is_some_and(Option::is_none);
                Some(KnownDimension { group: group.clone(), name: name.clone()?, length: *length, unlimited })
            });
            for one in named.collect::<Vec<_>>() {
                let seen = self.dimension_seen(&path, &one.name);
                let fits = |seen: &KnownDimension| {
                    seen.unlimited == one.unlimited && (one.unlimited || seen.length == one.length)
                };
                if !seen.is_some_and(|seen| seen.group == one.group || fits(seen)) {
                    self.dimensions.push(one);
                }
            }
        }
    }
}
