//! What of an HDF5 file can be changed besides elements: attributes, groups, names, shapes; and what becomes visible with a step.

use super::by_path::above;
use super::contents::{Hdf5, Hdf5Array, HeldGroup, TreeDraft};
use super::elements::ElementsAt;
use super::held::{HeldAttributes, STEP};
use super::known_dimensions::KeptDimensions;
use super::told::Bytes;
use crate::error::format_fault;
use crate::file::edit::Edit;
use crate::file::form::{ChangeFile, FileChange};
use hyperslab_format::attribute::{AttributeEdit, Attributes};
use hyperslab_format::hdf5::{
    ChangedDataset, Hdf5Attribute, Hdf5Change, Hdf5Edit, Hdf5File, NewGroup, NewMember, OF_DIMENSIONS,
};
use hyperslab_layout::tuple;
use hyperslab_world::{Fault, FaultKind, Names};

/// Whether one path is the other, or lies below it.
pub(super) fn is_in(path: &str, group: &str) -> bool {
    path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What is written to a file that exists, so that it has changed; new metadata begin behind its end, at this address or later.
pub(super) fn change(
    (directory, name): (&dyn Names, &str),
    at: u64,
    kept: &KeptDimensions,
    edit: impl FnOnce(&mut Hdf5Edit) -> Result<(), hyperslab_format::Error>,
) -> Result<FileChange, Fault> {
    let source = Bytes::of_change(directory, name, directory.length(name).unwrap_or(0));
    let made = || {
        let file = Hdf5File::open(&source, &directory.full(name))?;
        let mut edits = Hdf5Edit::of(&file, &source, at)?.knowing(kept.take());
        edit(&mut edits)?;
        edits.made()
    };
    let Hdf5Change { behind, in_place, before, found } = made().map_err(format_fault)?;
    kept.put(found);
    Ok(FileChange { at, behind, in_place, before })
}

impl HeldGroup {
    /// A group with these attributes.
    pub(super) fn found(path: &str, attributes: HeldAttributes, is_step: bool) -> HeldGroup {
        HeldGroup { path: path.into(), attributes, is_step, is_new: false }
    }

    /// The group of a step that is published by a change, if one is.
    pub(super) fn of_step(edit: &Edit) -> Option<HeldGroup> {
        let Edit::Publish { step, attributes } = edit else { return None };
        Some(HeldGroup { path: step.clone(), attributes: attributes.clone().into(), is_step: true, is_new: true })
    }

    /// Its attributes as they are stored.
    pub(super) fn stored_attributes(&self) -> Attributes {
        let mut attributes = self.attributes.get();
        if self.is_step {
            attributes.set(STEP, 1);
        }
        attributes
    }
}

impl Hdf5 {
    /// Whether it is a file that exists.
    pub(super) fn exists(&self) -> bool {
        self.is_there
    }

    /// The step that is not published yet in which a path lies.
    pub(super) fn step_of(&self, path: &str) -> Option<&str> {
        self.steps.iter().map(String::as_str).find(|step| is_in(path, step))
    }

    /// The groups below a path, which ends with a slash or is empty, that can be seen.
    pub(super) fn groups_seen(&self, within: &str) -> impl Iterator<Item = &HeldGroup> {
        let below = self.groups.numbers_in(within).into_iter().map(|number| &self.groups[number]);
        below.filter(|group| self.step_of(&group.path).is_none())
    }

    /// Notes the groups that a path leads through, which are made with what it leads to.
    pub(super) fn note_groups(&mut self, path: &str) {
        for group in above(path) {
            // That of a step comes when it is published.
            if self.groups.number(group).is_none() && !self.steps.iter().any(|step| step == group) {
                self.groups
                    .push(HeldGroup { is_new: true, ..HeldGroup::found(group, HeldAttributes::default(), false) });
            }
        }
    }

    /// Whether a path leads to something, or will.
    fn is_taken(&self, path: &str) -> bool {
        let is_array = self.arrays.number(path).is_some() || self.arrays.has_below(path);
        let is_group = self.groups.number(path).is_some() || self.groups.has_below(path);
        is_array || is_group || self.steps.iter().chain(self.others.keys()).any(|taken| is_in(taken, path))
    }

    /// Refuses the name of a new array that is that of a group, or lies in what is no group.
    pub(super) fn check_no_group(&self, name: &str) -> Result<(), Fault> {
        let is_group = self.groups.number(name).is_some() || self.groups.has_below(name);
        let is_group = is_group || self.steps.iter().any(|step| step == name);
        let is_other = |other: &String| is_in(other, name) || is_in(name, other);
        if !is_group && !self.others.keys().any(is_other) {
            return Ok(());
        }
        let text = format!("'{name}' would be or lie in something else that the file has under this name");
        Err(Fault::new(FaultKind::Exists, text).hint("choose another name"))
    }

    /// Refuses a path that cannot be that of something new.
    fn check_free(&self, path: &str) -> Result<(), Fault> {
        if self.is_taken(path) {
            let text = format!("'{path}' exists already");
            return Err(Fault::new(FaultKind::Exists, text).hint("choose another name, or delete it first"));
        }
        self.check_path(path)
    }

    /// The number of an array, if there is one of this name; else there must be a group.
    fn known(&self, path: &str) -> Result<Option<usize>, Fault> {
        let array = self.arrays.number(path);
        if array.is_some() || self.groups.number(path).is_some() && self.step_of(path).is_none() {
            return Ok(array);
        }
        let text = format!("there is no array or group '{path}'");
        Err(Fault::new(FaultKind::NotFound, text).hint("list what there is with arrays() and groups()"))
    }

    /// What other programs rely on in files of netCDF-4 is not changed here.
    fn check_not_netcdf(&self, doing: &str) -> Result<(), Fault> {
        if !self.options.netcdf || !self.exists() {
            return Ok(());
        }
        let text = format!("{doing} a netCDF-4 file that exists is not supported: its dimensions refer to each other");
        Err(Fault::new(FaultKind::Unsupported, text)
            .hint("arrays can be added, and grow, and attributes change; or write a new file"))
    }

    fn attributes_of(&self, set: &Attributes, of: Option<usize>) -> Result<Vec<Hdf5Attribute>, Fault> {
        let element = of.map(|number| self.arrays[number].array.element);
        let stored = if self.options.classic { self.options.stored(set, element)? } else { set.clone() };
        Hdf5Attribute::of_values(&stored, element, self.options.dialect()).map_err(format_fault)
    }

    /// A change on rank 0, where the file exists.
    pub(super) fn by(
        &self,
        edit: impl FnOnce(&mut Hdf5Edit) -> Result<(), hyperslab_format::Error> + Send + 'static,
    ) -> Option<ChangeFile> {
        let (end, kept) = (self.end, self.kept.clone());
        self.exists().then(|| -> ChangeFile {
            Box::new(move |directory, name| {
                // Behind its end may lie what ranks of a program that died still write.
                let end = end.max(directory.length(name).unwrap_or(0)).next_multiple_of(8);
                change((directory, name), end, &kept, edit)
            })
        })
    }

    /// The tree of what a file that exists does not have yet, and that can be seen, or will be when this step is published.
    pub(super) fn new_tree(&self, step: Option<&str>) -> Result<TreeDraft, Fault> {
        let is_meant = |path: &str| match (self.step_of(path), step) {
            (None, None) => true,
            (Some(hidden), Some(step)) => hidden == step,
            _ => false,
        };
        let mut tree = TreeDraft::of(NewGroup { netcdf: self.options.netcdf, ..NewGroup::default() });
        let (groups, arrays) = (&self.groups[self.settled.0..], &self.arrays[self.settled.1..]);
        for group in groups.iter().filter(|group| group.is_new && is_meant(&group.path)) {
            tree.group(&group.path).attributes = self.attributes_of(&group.stored_attributes(), None)?;
        }
        for held in arrays.iter().filter(|held| held.is_new && is_meant(&held.array.name)) {
            let (above, _) = held.array.name.rsplit_once('/').unwrap_or_default();
            tree.group(above).members.push(NewMember::Dataset(held.dataset(&self.options)?));
        }
        Ok(tree)
    }

    /// What was new is in the file now, and is looked up by its name.
    pub(super) fn settle(&mut self) {
        let steps = std::mem::take(&mut self.steps);
        let hidden = |path: &str| steps.iter().any(|step| is_in(path, step));
        let (groups, arrays) = self.settled;
        for group in self.groups[groups..].iter_mut().filter(|group| !hidden(&group.path)) {
            group.is_new = false;
        }
        for held in self.arrays[arrays..].iter_mut().filter(|held| held.is_new && !hidden(&held.array.name)) {
            held.is_new = false;
            held.place = match std::mem::replace(&mut held.place, ElementsAt::Named) {
                ElementsAt::Grid { chunk, .. } => {
                    ElementsAt::Chunked { chunk, filters: Default::default(), header: None }
                }
                ElementsAt::InRoom { chunk, filters, .. } => ElementsAt::Chunked { chunk, filters, header: None },
                _ => ElementsAt::Named,
            };
        }
        self.steps = steps;
        let groups = self.groups[groups..].iter().take_while(|group| !group.is_new).count() + groups;
        let arrays = self.arrays[arrays..].iter().take_while(|held| !held.is_new).count() + arrays;
        self.settled = (groups, arrays);
    }

    /// How the file changes; what lies in a step that is not published changes with that, and nowhere else before.
    pub(super) fn changing(&self, edit: &Edit) -> Result<Option<ChangeFile>, Fault> {
        let change = self.change_in_file(edit)?;
        Ok(change.filter(|_| edit.path().is_none_or(|path| self.step_of(path).is_none())))
    }

    fn change_in_file(&self, edit: &Edit) -> Result<Option<ChangeFile>, Fault> {
        match edit {
            Edit::Attributes { of, edit } => self.changing_attributes(of, edit),
            Edit::Delete(path) => {
                self.known(path)?;
                self.check_not_netcdf("deleting from")?;
                let path = path.clone();
                Ok(self.by(move |edits| edits.delete(&path)))
            }
            Edit::Rename { from, to } => {
                self.known(from)?;
                self.check_not_netcdf("renaming in")?;
                self.check_free(to)?;
                if self.step_of(from) != self.step_of(to) {
                    let text = format!("'{from}' cannot be moved into a step that is not published, or out of one");
                    return Err(Fault::new(FaultKind::Unsupported, text).hint("rename it when the step has ended"));
                }
                let (above, _) = to.rsplit_once('/').unwrap_or_default();
                if is_in(above, from) {
                    return Err(Fault::new(FaultKind::Invalid, format!("'{from}' cannot be moved into itself"))
                        .hint("choose a name outside of it"));
                }
                let in_step = self.step_of(above).is_some();
                if !above.is_empty() && !in_step && self.known(above)?.is_some() {
                    return Err(Fault::new(FaultKind::Invalid, format!("'{above}' is an array, and no group")));
                }
                let (from, to) = (from.clone(), to.clone());
                Ok(self.by(move |edits| edits.rename(&from, &to)))
            }
            Edit::Resize { name, shape } => self.resizing(name, shape),
            Edit::Group { name, attributes, may_exist } => {
                if *may_exist && self.groups.number(name).is_some() {
                    let set = AttributeEdit::setting(attributes.clone());
                    return if set.set.is_empty() { Ok(None) } else { self.changing_attributes(name, &set) };
                }
                self.check_free(name)?;
                self.options.check_no_groups(name)?;
                let mut tree = TreeDraft::of(NewGroup::default());
                tree.group(name).attributes = self.attributes_of(attributes, None)?;
                let root = tree.made();
                Ok(self.by(move |edits| edits.add(&root).map(drop)))
            }
            Edit::Begin(step) => {
                if self.step_of(step).is_some_and(|other| other != step) {
                    return Err(Fault::new(FaultKind::Unsupported, "a step cannot hold another step"));
                }
                self.options.check_no_groups(step)?;
                self.check_free(step).map(|()| None)
            }
            Edit::Publish { step, .. } => {
                let group = HeldGroup::of_step(edit).expect("it is one of a step");
                let mut tree = self.new_tree(Some(step))?;
                tree.group(step).attributes = self.attributes_of(&group.stored_attributes(), None)?;
                let root = tree.made();
                Ok(self.by(move |edits| edits.add(&root).map(drop)))
            }
            Edit::GiveUp(_) => Ok(None),
        }
    }

    fn changing_attributes(&self, of: &str, edit: &AttributeEdit) -> Result<Option<ChangeFile>, Fault> {
        let array = if of.is_empty() { None } else { self.known(of)? };
        let set = self.attributes_of(&edit.set, array)?;
        let (path, AttributeEdit { clear, removed, .. }) = (of.to_string(), edit.clone());
        let goes = move |name: &str| {
            let is_shown = !OF_DIMENSIONS.contains(&name) && name != STEP;
            is_shown && (clear || removed.iter().any(|removed| removed == name))
        };
        Ok(self.by(move |edits| edits.edit_attributes(&path, &set, &goes)))
    }

    /// Only what has chunks can have another shape, and none is taken away.
    fn resizing(&self, name: &str, shape: &[u64]) -> Result<Option<ChangeFile>, Fault> {
        let Some(number) = self.known(name)? else {
            return Err(Fault::new(FaultKind::Invalid, format!("'{name}' is a group, which has no shape")));
        };
        let Hdf5Array { array, place, inner, limits, .. } = &self.arrays[number];
        let most = |d: usize| limits.get(d).copied().unwrap_or(Some(array.shape[d])).unwrap_or(u64::MAX >> 2);
        let fits = shape.len() == array.shape.len()
            && shape.iter().enumerate().all(|(d, extent)| (array.shape[d]..=most(d)).contains(extent));
        if !fits {
            let text = format!("'{name}' cannot have the shape {}", tuple(shape));
            let limit = |d| if most(d) == u64::MAX >> 2 { "without limit".into() } else { most(d).to_string() };
            let limits: Vec<String> = (0..array.shape.len()).map(limit).collect();
            let expected = format!("from {} up to {}", tuple(&array.shape), tuple(&limits));
            return Err(Fault::new(FaultKind::Invalid, text).expected(expected, tuple(shape).to_string()).hint(
                "maxshape= says how far an array may grow when it is made; h5py makes one smaller, on one rank",
            ));
        }
        if shape == array.shape || array.shape.is_empty() {
            return Ok(None);
        }
        let (at, path, shape) = (place.header(), name.to_string(), shape[..shape.len() - inner].to_vec());
        Ok(self.by(move |edits| edits.change_named(&path, at, |at| ChangedDataset { at, shape, places: Vec::new() })))
    }

    pub(super) fn has_changed_by(&mut self, edit: &Edit) -> Vec<usize> {
        match edit {
            Edit::Attributes { of, edit } => self.apply(of, edit),
            Edit::Delete(path) => return self.forget(path),
            Edit::Rename { from, to } => {
                let moved = |path: &mut String| {
                    if is_in(path, from) {
                        *path = format!("{to}{}", &path[from.len()..]);
                    }
                };
                self.arrays.move_each(moved);
                self.groups.move_each(moved);
                self.note_first_named();
            }
            Edit::Resize { name, shape } => {
                if let Some(held) = self.arrays.get_mut(name) {
                    held.place.count_again(&held.array.shape, shape);
                    held.array.shape.clone_from(shape);
                }
            }
            Edit::Group { name, attributes, .. } => {
                self.note_groups(&format!("{name}/"));
                self.apply(name, &AttributeEdit::setting(attributes.clone()));
                if self.exists() {
                    self.settle();
                }
            }
            Edit::Begin(step) => self.steps.push(step.clone()),
            Edit::Publish { step, .. } => {
                self.steps.retain(|open| open != step);
                HeldGroup::of_step(edit).into_iter().for_each(|group| self.groups.push(group));
                if self.exists() {
                    self.settle();
                }
            }
            Edit::GiveUp(step) => {
                if self.steps.contains(step) {
                    self.steps.retain(|open| open != step);
                    return self.forget(step);
                }
            }
        }
        Vec::new()
    }

    /// Forgets what a path leads to; gives the numbers of the arrays among it.
    fn forget(&mut self, path: &str) -> Vec<usize> {
        self.groups.retain(|group| !is_in(&group.path, path));
        let gone = (0..self.arrays.len()).filter(|number| is_in(&self.arrays[*number].array.name, path)).collect();
        self.arrays.retain(|held| !is_in(&held.array.name, path));
        self.settled = (0, 0);
        self.note_limited();
        gone
    }

    /// Attributes of something have changed so, as they are read from now on.
    fn apply(&mut self, path: &str, edit: &AttributeEdit) {
        let element = self.arrays.number(path).map(|number| self.arrays[number].array.element);
        let set = self.options.stored(&edit.set, element).unwrap_or_else(|_| edit.set.clone());
        if let Some(attributes) = self.attributes_at(path) {
            let mut known = attributes.get();
            AttributeEdit { set, ..edit.clone() }.apply(&mut known);
            *attributes = known.into();
        }
    }

    /// Attributes of an array, a group that was made, or the file.
    fn attributes_at(&mut self, path: &str) -> Option<&mut HeldAttributes> {
        if path.is_empty() {
            return Some(&mut self.attributes);
        }
        if let Some(held) = self.arrays.get_mut(path) {
            return Some(&mut held.attributes);
        }
        self.groups.get_mut(path).map(|group| &mut group.attributes)
    }
}
