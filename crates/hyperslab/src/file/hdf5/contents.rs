//! What is in an HDF5 file, or will be.

use super::by_path::{ByPath, HasPath};
use super::elements::{Cut, ElementsAt};
use super::first_named::{DimensionsNamed, FirstNamed};
use super::held::HeldAttributes;
use super::known_dimensions::{KeptDimensions, SeenDimensions};
use super::policy::{DATA_AT, LARGE, PAGE};
use super::room::FreeRoom;
use crate::array_write::ArrayWrite;
use crate::error::format_fault;
use crate::file::edit::Edit;
use crate::file::form::{FileArray, Unread};
use crate::file::texts::is_text;
use crate::options::WriteOptions;
use hyperslab_format::attribute::Attributes;
use hyperslab_format::hdf5::{Datatype, Dialect, Hdf5Attribute, NewDataset, NewGroup, NewMember};
use hyperslab_layout::{ElementType, TextParts, tuple};
use hyperslab_world::{Fault, FaultKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What a new HDF5 file is.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Hdf5Options {
    /// Attributes of the file.
    pub attributes: Attributes,
    /// Whether it is one of netCDF-4: names of dimensions make dimensions.
    pub netcdf: bool,
    /// Whether a file of netCDF-4 keeps to the classic model, so that programs of netCDF-3 understand all of it.
    pub classic: bool,
    /// Names of dimensions that may grow without limit.
    pub unlimited: Vec<String>,
}

impl Hdf5Options {
    /// With these attributes of the file.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> Hdf5Options {
        self.attributes = attributes;
        self
    }

    /// As a netCDF-4 file.
    #[must_use]
    pub fn netcdf(mut self) -> Hdf5Options {
        self.netcdf = true;
        self
    }

    /// As a netCDF-4 file that keeps to the classic model.
    #[must_use]
    pub fn netcdf_classic(mut self) -> Hdf5Options {
        (self.netcdf, self.classic) = (true, true);
        self
    }

    /// With dimensions of these names that may grow without limit.
    #[must_use]
    pub fn unlimited(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Hdf5Options {
        self.unlimited = names.into_iter().map(Into::into).collect();
        self
    }

    pub(super) fn is_given(&self) -> bool {
        !self.attributes.is_empty() || !self.unlimited.is_empty()
    }

    pub(super) fn dialect(&self) -> Dialect {
        if self.netcdf { Dialect::Netcdf } else { Dialect::H5py }
    }
}

/// An array.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Hdf5Array {
    pub(super) array: FileArray,
    pub(super) place: ElementsAt,
    /// Where this opening has given it room, in one stretch \[B\].
    pub(super) room: Option<Range<u64>>,
    /// How many of its dimensions, the last ones, are those of arrays that are its elements in the file.
    pub(super) inner: usize,
    /// How far each dimension may grow; `None` without limit. Empty where nothing grows.
    pub(super) limits: Vec<Option<u64>>,
    /// One element for what was never written, as stored.
    pub(super) fill: Vec<u8>,
    /// Texts in an element that what is not part of them may follow.
    pub(super) texts: TextParts,
    pub(super) dimensions: Option<Vec<Option<String>>>,
    pub(super) attributes: HeldAttributes,
    /// Whether no group has it yet: in a new file always, in one that exists until it is written, or its step published.
    pub(super) is_new: bool,
}

/// A group that was made as such, or found.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct HeldGroup {
    pub(super) path: String,
    pub(super) attributes: HeldAttributes,
    pub(super) is_step: bool,
    /// As of an array.
    pub(super) is_new: bool,
}

impl HasPath for Hdf5Array {
    fn path(&self) -> &str {
        &self.array.name
    }

    fn path_mut(&mut self) -> &mut String {
        &mut self.array.name
    }
}

impl HasPath for HeldGroup {
    fn path(&self) -> &str {
        &self.path
    }

    fn path_mut(&mut self) -> &mut String {
        &mut self.path
    }
}

/// What is known of a file.
#[derive(Debug)]
pub(super) struct Hdf5 {
    pub(super) arrays: ByPath<Hdf5Array>,
    pub(super) attributes: HeldAttributes,
    /// Datasets that are no arrays, and why.
    pub(super) others: BTreeMap<String, Unread>,
    pub(super) groups: ByPath<HeldGroup>,
    /// How many groups and arrays at the begin are in the file, so that those that are new are not looked for among all.
    pub(super) settled: (usize, usize),
    /// Of a netCDF-4 file that exists, its dimensions.
    pub(super) dimensions: SeenDimensions,
    /// On rank 0, what of them is needed to add others, as long as no other program changes the file.
    pub(super) kept: KeptDimensions,
    /// Of a new netCDF-4 file, which arrays first have its dimensions.
    pub(super) first_named: FirstNamed,
    /// Numbers of the arrays that may grow, now or before they were as long as they may be.
    pub(super) limited: Vec<usize>,
    /// Whether some array has, or had, texts of any length.
    pub(super) has_texts: bool,
    /// Numbers of those that this opening has made longer.
    pub(super) grown: BTreeSet<usize>,
    /// Paths of steps that are not published.
    pub(super) steps: Vec<String>,
    pub(super) end: u64,
    /// What lies before the end and is used by nothing, as far as this opening knows.
    pub(super) free: FreeRoom,
    /// Whether any object may have several names: what is deleted by one of them is there by another.
    pub(super) has_further_names: bool,
    /// Of a file that exists, its first bytes, with which it says how far it goes.
    pub(super) superblock: Vec<u8>,
    /// Whether it exists, and is changed where it lies.
    pub(super) is_there: bool,
    pub(super) options: Hdf5Options,
}

impl Hdf5 {
    pub(super) fn new(options: Hdf5Options) -> Result<Hdf5, Fault> {
        // What cannot be stored is refused before anything is written.
        options.check_new()?;
        let attributes = options.stored(&options.attributes, None)?.into();
        Ok(Hdf5 {
            arrays: ByPath::default(),
            attributes,
            others: BTreeMap::new(),
            groups: ByPath::default(),
            settled: (0, 0),
            dimensions: SeenDimensions::default(),
            kept: KeptDimensions::default(),
            first_named: FirstNamed::default(),
            limited: Vec::new(),
            has_texts: false,
            grown: BTreeSet::new(),
            steps: Vec::new(),
            end: DATA_AT,
            free: FreeRoom::default(),
            has_further_names: false,
            superblock: Vec::new(),
            is_there: false,
            options,
        })
    }

    pub(super) fn push(&mut self, (ask, element): &(&ArrayWrite, ElementType), said: Said) -> Result<(), Fault> {
        let array = FileArray { name: ask.name.clone(), shape: ask.shape().to_vec(), element: *element };
        let Said { cut, limits, fill, dimensions, attributes, all_written } = said;
        let bytes = cut.as_ref().map_or_else(|| array.bytes(), |cut| cut.bytes_at_once(&array))?;
        // Small arrays of one type lie one behind the other without a gap, so that a call moves many as one.
        let alignment = if bytes >= LARGE { PAGE } else { element.alignment() };
        // What was there before would be seen in elements that no rank writes.
        let reused = if all_written { self.free.take(bytes, alignment) } else { None };
        let at = reused.unwrap_or(self.end.next_multiple_of(alignment));
        let end = at.checked_add(bytes).filter(|&end| end < 1 << 62).ok_or_else(|| {
            Fault::new(FaultKind::Invalid, format!("the file would be too large with array '{}'", array.name))
        })?;
        let place = cut.map_or(ElementsAt::At(at), |cut| cut.at(at));
        if !limits.is_empty() {
            self.limited.push(self.arrays.len());
        }
        let attributes = self.options.stored(&attributes, Some(array.element))?.into();
        let texts = TextParts::default();
        let (inner, room, is_new) = (0, Some(at..end), true);
        self.has_texts |= is_text(*element);
        self.arrays.push(Hdf5Array { array, place, room, inner, limits, fill, texts, dimensions, attributes, is_new });
        self.end = self.end.max(end);
        Ok(())
    }

    /// How far a new array may grow.
    pub(super) fn limits_of(
        &self,
        ask: &ArrayWrite,
        dimensions: Option<&[Option<String>]>,
        options: &WriteOptions,
    ) -> Result<Vec<Option<u64>>, Fault> {
        let shape = ask.shape();
        if let Some(given) = &options.maxshape {
            let fits = given.len() == shape.len();
            let below = given.iter().zip(shape).any(|(limit, extent)| limit.is_some_and(|limit| limit < *extent));
            if !fits || below {
                let said: Vec<String> =
                    given.iter().map(|limit| limit.map_or("None".into(), |limit| limit.to_string())).collect();
                let text = format!("maxshape of '{}' does not fit", ask.name);
                let expected = format!("a limit for each dimension of {}, none below its extent", tuple(shape));
                return Err(Fault::new(FaultKind::Invalid, text).expected(expected, tuple(&said).to_string()));
            }
            return Ok(given.clone());
        }
        let is_unlimited =
            |name: &Option<String>| name.as_ref().is_some_and(|name| self.sees_unlimited(&ask.name, name));
        let names = dimensions.unwrap_or_default();
        if names.len() != shape.len() || !names.iter().any(is_unlimited) {
            return Ok(Vec::new());
        }
        Ok(names.iter().zip(shape).map(|(name, extent)| Some(*extent).filter(|_| !is_unlimited(name))).collect())
    }

    /// Notes which arrays may grow, and have dimensions first, when others have other numbers than before.
    pub(super) fn note_limited(&mut self) {
        let limited = self.arrays.iter().enumerate().filter(|(_, held)| !held.limits.is_empty());
        self.limited = limited.map(|(number, _)| number).collect();
        self.grown.clear();
        self.note_first_named();
    }

    /// Notes which arrays have dimensions first, when others have other numbers or names than before.
    pub(super) fn note_first_named(&mut self) {
        if self.options.netcdf {
            self.first_named = FirstNamed::of(self.arrays.iter().map(Hdf5Array::named));
        }
    }

    /// Numbers of the variables of netCDF-4 that have fewer rows than another one of their group that grew by now, along the
    /// same dimension.
    pub(super) fn behind_others(&self) -> Vec<usize> {
        let records = |number: &usize| {
            let held = &self.arrays[*number];
            let dimension = held.dimensions.iter().flatten().next()?.as_deref()?;
            let (group, _) = held.array.name.rsplit_once('/').unwrap_or_default();
            Some(((group, dimension), held.array.shape[0]))
        };
        let mut longest = BTreeMap::new();
        for (along, rows) in self.grown.iter().filter(|_| self.options.netcdf).filter_map(records) {
            let most = longest.entry(along).or_insert(rows);
            *most = rows.max(*most);
        }
        let is_shorter = |number: &usize| {
            records(number).is_some_and(|(along, rows)| longest.get(&along).is_some_and(|most| rows < *most))
        };
        self.limited.iter().copied().filter(is_shorter).collect()
    }

    /// The tree of a new file, without steps that are not published; but for one that is published by this change.
    pub(super) fn tree(&self, published: Option<&Edit>) -> Result<NewGroup, Fault> {
        let step = published.and_then(HeldGroup::of_step);
        let is_seen = |path: &str| match (self.step_of(path), &step) {
            (None, _) => true,
            (Some(hidden), Some(step)) => hidden == step.path,
            (Some(_), None) => false,
        };
        let groups = self.groups.iter().filter(|group| is_seen(&group.path)).chain(&step);
        self.tree_of(groups, self.arrays.iter().filter(|held| is_seen(&held.array.name)))
    }

    /// The tree of these groups and arrays.
    pub(super) fn tree_of<'a>(
        &self,
        groups: impl Iterator<Item = &'a HeldGroup>,
        arrays: impl Iterator<Item = &'a Hdf5Array>,
    ) -> Result<NewGroup, Fault> {
        let attributes =
            |all: &Attributes| Hdf5Attribute::of_values(all, None, self.options.dialect()).map_err(format_fault);
        let Hdf5Options { netcdf, classic, .. } = self.options;
        let root = NewGroup { attributes: attributes(&self.attributes.get())?, netcdf, classic, ..NewGroup::default() };
        let mut tree = TreeDraft::of(root);
        for group in groups {
            tree.group(&group.path).attributes = attributes(&group.stored_attributes())?;
        }
        for held in arrays {
            let dataset = held.dataset(&self.options)?;
            let (above, _) = held.array.name.rsplit_once('/').unwrap_or_default();
            tree.group(above).members.push(NewMember::Dataset(dataset));
        }
        Ok(tree.made())
    }
}

/// Groups and datasets as a tree that is being made.
pub(super) struct TreeDraft {
    root: NewGroup,
    /// Of each group by its path, which member of the group above it is: those of many are not looked through.
    places: BTreeMap<String, usize>,
}

impl TreeDraft {
    pub(super) fn of(root: NewGroup) -> TreeDraft {
        TreeDraft { root, places: BTreeMap::new() }
    }

    /// The group with this path, made where it is missing.
    pub(super) fn group(&mut self, path: &str) -> &mut NewGroup {
        let TreeDraft { root, places } = self;
        let mut group = root;
        for (end, _) in path.match_indices('/').chain([(path.len(), "")]) {
            let within = &path[..end];
            let name = within.rsplit('/').next().unwrap_or_default();
            if name.is_empty() {
                continue;
            }
            let at = places.get(within).copied().unwrap_or_else(|| {
                group.members.push(NewMember::Group(NewGroup { name: name.into(), ..NewGroup::default() }));
                places.insert(within.to_string(), group.members.len() - 1);
                group.members.len() - 1
            });
            group = match &mut group.members[at] {
                NewMember::Group(inner) => inner,
                NewMember::Dataset(_) => unreachable!("it was noted as a group"),
            };
        }
        group
    }

    pub(super) fn made(self) -> NewGroup {
        self.root
    }
}

/// What is said of a new array.
pub(super) struct Said {
    /// Whether all its elements are written by the call that makes it.
    pub(super) all_written: bool,
    /// How it is cut into chunks, if it is.
    pub(super) cut: Option<Cut>,
    pub(super) limits: Vec<Option<u64>>,
    pub(super) fill: Vec<u8>,
    pub(super) dimensions: Option<Vec<Option<String>>>,
    pub(super) attributes: Attributes,
}

impl Hdf5Array {
    /// Its path, and names of its dimensions.
    pub(super) fn named(&self) -> DimensionsNamed<'_> {
        (&self.array.name, self.dimensions.as_deref().unwrap_or_default())
    }

    pub(super) fn dataset(&self, options: &Hdf5Options) -> Result<NewDataset, Fault> {
        let FileArray { name, shape, element } = &self.array;
        let made = Hdf5Attribute::of_values(&self.attributes.get(), Some(*element), options.dialect());
        let mut attributes = made.map_err(format_fault)?;
        let named = self.dimensions.as_ref().filter(|names| !options.netcdf && names.iter().any(Option::is_some));
        attributes.extend(named.map(|names| Hdf5Attribute::of_labels(names)));
        let names = self.dimensions.iter().flatten().enumerate();
        // Where some have no name, all of a netCDF file need one.
        let name_of = |(d, name): (usize, &Option<String>)| name.clone().unwrap_or_else(|| format!("dim_{d}"));
        Ok(NewDataset {
            name: name.rsplit('/').next().unwrap_or_default().into(),
            shape: shape.clone(),
            limits: self.limits.clone(),
            datatype: Datatype::of_element(*element, name).map_err(format_fault)?,
            fill: Some(self.fill.clone()).filter(|fill| fill.iter().any(|byte| *byte != 0)),
            storage: self.place.to_make(shape, element.bytes()),
            filters: self.place.filters(),
            attributes,
            dimensions: if options.netcdf { names.map(name_of).collect() } else { Vec::new() },
        })
    }
}

impl Hdf5Array {
    /// Its shape in the file.
    pub(super) fn own_shape(&self) -> &[u64] {
        &self.array.shape[..self.array.shape.len() - self.inner]
    }

    /// Whether it may become longer along its first dimension.
    pub(super) fn grows(&self) -> bool {
        self.limits.first().is_some_and(|limit| limit.is_none_or(|limit| limit > self.array.shape[0]))
    }
}
