//! What netCDF-4 adds: dimensions, as datasets that say that they are one, and references between them and what they measure.
//!
//! Facts are those of the appendix "File Format Specifications" of the netCDF User's Guide and of HDF5's "Dimension Scale
//! Specification": a dimension is a dataset of the attribute `CLASS`; a dataset lists those of its dimensions in
//! `DIMENSION_LIST`, and each of them has in `REFERENCE_LIST` who does. A dimension without a variable is a dataset whose `NAME` says
//! so; a variable that has the name of a dimension and is none gets another name.

use super::heap::Heap;
use super::new::{NewDataset, NewGroup, NewMember, NewStorage};
use crate::error::{Context, Error};
use crate::hdf5::attributes::{CLASSIC_MODEL, USED_BY};
use crate::hdf5::content::{Hdf5Attribute, ListedDimension, StoredValue};
use crate::hdf5::datatype::{CompoundField, Datatype, TextEnd};
use hyperslab_layout::ByteOrder;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Most datasets that a dimension names: more do not fit into an attribute. Readers find dimensions by the other list.
pub(in crate::hdf5) const USES_MAX: usize = 4000;
/// What the name of a variable begins with that is called like a dimension of its group and is none.
pub(in crate::hdf5) const NO_COORDINATE: &str = "_nc4_non_coord_";
/// What the name of a dimension says that has no variable; its length follows, in ten places.
pub(in crate::hdf5) const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable.";

/// Which dataset a dimension is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ScaleAt {
    /// That whose header has this number in the order in which headers are made.
    New(usize),
    /// One of the file, whose header has this address.
    There(u64),
}

/// What an attribute holds: a value, or references to datasets, by the numbers of their headers.
pub(super) enum AttributeContent {
    Given(StoredValue),
    /// Of each dimension, the dataset that it is.
    Dimensions(Vec<ScaleAt>),
    /// Which dataset has it as which dimension.
    Uses(Vec<(usize, u32)>),
}

/// An attribute that is to be made.
pub(super) struct NewAttribute {
    pub(super) name: String,
    pub(super) datatype: Datatype,
    pub(super) shape: Option<Vec<u64>>,
    content: AttributeContent,
}

impl NewAttribute {
    pub(super) fn of(attribute: &Hdf5Attribute) -> NewAttribute {
        let Hdf5Attribute { name, datatype, shape, value } = attribute.clone();
        NewAttribute { name, datatype, shape, content: AttributeContent::Given(value) }
    }

    /// Its elements as they are stored; what has variable length is kept in the heap, which begins at this address.
    pub(super) fn elements(&self, heap: &mut Heap, heap_at: u64, headers: &[u64]) -> Vec<u8> {
        let header = |number: &usize| headers.get(*number).copied().unwrap_or(0).to_le_bytes();
        match &self.content {
            AttributeContent::Given(StoredValue::Elements(bytes)) => bytes.clone(),
            AttributeContent::Given(StoredValue::Texts(texts)) => {
                texts.iter().flat_map(|text| heap.keep(text, text.len() as u32, heap_at)).collect()
            }
            AttributeContent::Given(StoredValue::Lists(lists)) => {
                let one = match &self.datatype {
                    Datatype::List(base) => base.bytes().max(1) as usize,
                    _ => 1,
                };
                lists.iter().flat_map(|list| heap.keep(list, (list.len() / one) as u32, heap_at)).collect()
            }
            AttributeContent::Dimensions(scales) => {
                let address = |scale: &ScaleAt| match scale {
                    ScaleAt::New(number) => header(number),
                    ScaleAt::There(at) => at.to_le_bytes(),
                };
                scales.iter().flat_map(|scale| heap.keep(&address(scale), 1, heap_at)).collect()
            }
            AttributeContent::Uses(uses) => {
                let one = |(dataset, dimension): &(usize, u32)| {
                    [&header(dataset)[..], &dimension.to_le_bytes(), &[0; 4]].concat()
                };
                uses.iter().flat_map(one).collect()
            }
        }
    }
}

/// A group with all that netCDF-4 adds.
pub(super) struct Scaled<'a> {
    pub(super) attributes: Vec<NewAttribute>,
    pub(super) members: Vec<(String, ScaledMember<'a>)>,
}

pub(super) enum ScaledMember<'a> {
    Group(Scaled<'a>),
    Dataset(Box<ScaledDataset<'a>>),
}

/// A dataset with all that netCDF-4 adds.
pub(super) struct ScaledDataset<'a> {
    pub(super) dataset: Cow<'a, NewDataset>,
    pub(super) attributes: Vec<NewAttribute>,
}

/// A dimension.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Dimension {
    length: u64,
    unlimited: bool,
    place: ScaleAt,
    /// Whether there is a variable of it.
    has_variable: bool,
    /// Which of the datasets that are made have it, as which of their dimensions.
    uses: Vec<(usize, u32)>,
    /// Its number among all.
    id: i32,
}

/// Dimensions by the path of their group and their name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::hdf5) struct KnownDimensions {
    all: Vec<Dimension>,
    by_group: BTreeMap<String, BTreeMap<String, usize>>,
    /// The number that the next one gets.
    next_id: i32,
    /// How many of them, the first ones, the file has.
    there: usize,
    /// Those that are made now, by group and name.
    new: Vec<(String, String, usize)>,
    /// Those that datasets have that are made now.
    used: BTreeSet<usize>,
}

impl KnownDimensions {
    /// Those of a file.
    pub(in crate::hdf5) fn of(listed: &[ListedDimension]) -> KnownDimensions {
        let mut known = KnownDimensions::default();
        for one in listed {
            let ListedDimension { length, unlimited, at, has_variable, .. } = *one;
            known.add(&one.group, &one.name, (length, unlimited), ScaleAt::There(at));
            let added = known.all.last_mut().expect("it was added");
            added.has_variable = has_variable;
            added.id = one.id.unwrap_or(added.id);
        }
        // netCDF finds dimensions by their numbers, and leaves out none.
        let most = listed.iter().filter_map(|one| one.id).max();
        known.next_id = known.next_id.max(most.map_or(0, |most| most.saturating_add(1)));
        known.are_there();
        known
    }

    /// What was made is in the file.
    pub(in crate::hdf5) fn are_there(&mut self) {
        self.there = self.all.len();
        self.new.clear();
    }

    fn add(&mut self, group: &str, name: &str, (length, unlimited): (u64, bool), place: ScaleAt) {
        let number = self.all.len();
        self.by_group.entry(group.to_string()).or_default().insert(name.to_string(), number);
        self.new.push((group.to_string(), name.to_string(), number));
        let (uses, id, has_variable) = (Vec::new(), self.next_id, false);
        self.all.push(Dimension { length, unlimited, place, has_variable, uses, id });
        self.next_id += 1;
    }

    /// What was made has these addresses. Gives which datasets have dimensions of the file, by the addresses of both, as which of
    /// theirs. (A dimension that is made names only those that were made with it.)
    pub(super) fn are_made(&mut self, headers: &[u64]) -> Vec<(u64, Vec<(u64, u32)>)> {
        let address = |number: usize| headers.get(number).copied().unwrap_or(0);
        for (_, _, number) in std::mem::take(&mut self.new) {
            if let ScaleAt::New(header) = self.all[number].place {
                self.all[number].place = ScaleAt::There(address(header));
            }
        }
        let mut used = Vec::new();
        for number in std::mem::take(&mut self.used) {
            let one = &mut self.all[number];
            let uses = std::mem::take(&mut one.uses).into_iter().map(|(dataset, d)| (address(dataset), d));
            if let ScaleAt::There(at) = one.place
                && number < self.there
            {
                used.push((at, uses.collect()));
            }
        }
        used
    }

    /// Notes that a dataset that is made has a dimension, as which of its own.
    fn is_used(&mut self, at: usize, by: (usize, u32), length: u64) {
        let dimension = &mut self.all[at];
        dimension.uses.push(by);
        dimension.length = dimension.length.max(length);
        self.used.insert(at);
    }

    /// Whether the object of this name and address in a group is a dimension that has no variable.
    pub(in crate::hdf5) fn is_bare(&self, group: &str, name: &str, at: u64) -> bool {
        let own = self.own(group, name).map(|number| &self.all[number]);
        own.is_some_and(|own| own.place == ScaleAt::There(at) && !own.has_variable)
    }

    /// The dimension of this name in a group has a variable from now on.
    pub(in crate::hdf5) fn gets_variable(&mut self, group: &str, name: &str) {
        if let Some(own) = self.own(group, name) {
            self.all[own].has_variable = true;
        }
    }

    /// The dimension of this name that a group defines.
    fn own(&self, group: &str, name: &str) -> Option<usize> {
        self.by_group.get(group)?.get(name).copied()
    }

    /// The dimension of this name that a group sees, if it is as long; its own first, then those above.
    fn seen(&self, group: &str, name: &str, length: u64, unlimited: bool) -> Option<usize> {
        let mut path = group;
        loop {
            let found = self.own(path, name);
            let fits = |&one: &usize| {
                let known = &self.all[one];
                known.unlimited == unlimited && (unlimited || known.length == length)
            };
            if found.is_some() && (path == group || found.as_ref().is_some_and(fits)) {
                return found;
            }
            path = path.trim_end_matches('/');
            path = &path[..path.rfind('/')? + 1];
        }
    }
}

/// The same tree with what makes it a netCDF-4 file, where any dataset has names of dimensions.
pub(super) fn with_scales(root: &NewGroup) -> Result<Scaled<'_>, Error> {
    let mut known = KnownDimensions::default();
    number(root, "/", &mut known, &mut 0)?;
    let mut made = scaled(root, "/", &known, &mut 0);
    if root.netcdf {
        made.attributes.push(text("_NCProperties", concat!("version=2,hyperslab=", env!("CARGO_PKG_VERSION"))));
    }
    if root.classic {
        made.attributes.push(integers(CLASSIC_MODEL, &[1], Some(Vec::new())));
    }
    Ok(made)
}

/// The same of what is added to a group of a file, which lies at this path with a `/` at its end and is not made itself.
pub(super) fn with_scales_there<'a>(
    group: &'a NewGroup,
    path: &str,
    known: &mut KnownDimensions,
) -> Result<Scaled<'a>, Error> {
    number_members(group, path, known, &mut 0)?;
    Ok(scaled_members(group, path, known, &mut 0))
}

/// Dimensions that a group must define, in the order in which its datasets name them: in a group each name has one length.
fn new_dimensions(group: &NewGroup, path: &str, known: &KnownDimensions) -> Result<Vec<(String, u64, bool)>, Error> {
    let mut named: Vec<(String, u64, bool)> = Vec::new();
    let mut at: BTreeMap<&str, usize> = BTreeMap::new();
    for dataset in group.members.iter().filter_map(as_dataset).filter(|dataset| !dataset.dimensions.is_empty()) {
        let context = Context::new("give dimensions to", &dataset.name);
        if dataset.dimensions.len() != dataset.shape.len() {
            let expected = format!("{} names of dimensions", dataset.shape.len());
            return Err(context.invalid(expected, dataset.dimensions.len().to_string()));
        }
        for (d, (name, &length)) in dataset.dimensions.iter().zip(&dataset.shape).enumerate() {
            let unlimited = dataset.limits.get(d).is_some_and(Option::is_none);
            if name.is_empty() || name.contains(['/', '\0']) {
                return Err(context.invalid("a name of a dimension that is not empty, without `/`", name.as_str()));
            }
            let number = *at.entry(name).or_insert_with(|| {
                named.push((name.clone(), length, unlimited));
                named.len() - 1
            });
            let (_, other, others) = &mut named[number];
            if unlimited && *others {
                // What has fewer along it counts as filled up.
                *other = length.max(*other);
            } else if (*other, *others) != (length, unlimited) {
                let expected = format!("dimension '{name}' of length {other}{}", said(*others));
                return Err(context.invalid(expected, format!("length {length}{}", said(unlimited))));
            }
        }
    }
    for (name, length, unlimited) in &named {
        let own = known.own(path, name).map(|at| &known.all[at]);
        if let Some(other) = own.filter(|own| own.unlimited != *unlimited || !unlimited && own.length != *length) {
            let context = Context::new("use the dimension", name);
            let expected = format!("length {}{}", other.length, said(other.unlimited));
            return Err(context.invalid(expected, format!("length {length}{}", said(*unlimited))));
        }
    }
    named.retain(|(name, length, unlimited)| known.seen(path, name, *length, *unlimited).is_none());
    let is_group = |name: &str| group.members.iter().any(|one| as_dataset(one).is_none() && one.name() == name);
    if let Some((name, ..)) = named.iter().find(|(name, ..)| is_group(name)) {
        let error = Context::new("make the dimension", name).invalid("a name that is free", "a group of this name");
        return Err(error.with_hint("give the dimension another name"));
    }
    Ok(named)
}

fn said(unlimited: bool) -> &'static str {
    if unlimited { ", unlimited" } else { "" }
}

fn as_dataset(member: &NewMember) -> Option<&NewDataset> {
    match member {
        NewMember::Dataset(dataset) => Some(dataset),
        NewMember::Group(_) => None,
    }
}

/// Whether a dataset is the variable of a dimension that its group defines.
fn is_coordinate(dataset: &NewDataset) -> bool {
    dataset.dimensions.first() == Some(&dataset.name)
}

/// Numbers headers in the order in which they will be made, and notes dimensions and their uses.
fn number(group: &NewGroup, path: &str, known: &mut KnownDimensions, next: &mut usize) -> Result<(), Error> {
    *next += 1;
    number_members(group, path, known, next)
}

fn number_members(group: &NewGroup, path: &str, known: &mut KnownDimensions, next: &mut usize) -> Result<(), Error> {
    let new = new_dimensions(group, path, known)?;
    for (name, length, unlimited) in &new {
        known.add(path, name, (*length, *unlimited), ScaleAt::New(usize::MAX));
    }
    // Those without a variable come first.
    let coordinates = coordinates(group);
    let first = known.all.len() - new.len();
    for (at, _) in new.iter().enumerate().filter(|(_, (name, ..))| !coordinates.contains(name.as_str())) {
        known.all[first + at].place = ScaleAt::New(*next);
        *next += 1;
    }
    for member in &group.members {
        match member {
            NewMember::Group(inner) => number(inner, &format!("{path}{}/", inner.name), known, next)?,
            NewMember::Dataset(dataset) => {
                let own = known.own(path, &dataset.name);
                if let Some(own) = own.filter(|_| is_coordinate(dataset)) {
                    if let ScaleAt::There(_) = known.all[own].place {
                        let context = Context::new("make the HDF5 dataset", &dataset.name);
                        let found = "a dimension of this name, which is in the file without a variable";
                        return Err(context.unsupported("a variable of a new dimension", found));
                    }
                    known.all[own].place = ScaleAt::New(*next);
                    known.all[own].has_variable = true;
                }
                let is_scale = own.is_some() && is_coordinate(dataset);
                for (d, (name, &length)) in dataset.dimensions.iter().zip(&dataset.shape).enumerate() {
                    let unlimited = dataset.limits.get(d).is_some_and(Option::is_none);
                    let at = known.seen(path, name, length, unlimited);
                    if let Some(at) = at.filter(|_| !is_scale) {
                        known.is_used(at, (*next, d as u32), length);
                    }
                }
                *next += 1;
            }
        }
    }
    Ok(())
}

/// Names of the dimensions of a group that have a variable in it.
fn coordinates(group: &NewGroup) -> BTreeSet<&str> {
    let datasets = group.members.iter().filter_map(as_dataset);
    datasets.filter(|dataset| is_coordinate(dataset)).map(|dataset| dataset.name.as_str()).collect()
}

fn scaled<'a>(group: &'a NewGroup, path: &str, known: &KnownDimensions, next: &mut usize) -> Scaled<'a> {
    *next += 1;
    scaled_members(group, path, known, next)
}

fn scaled_members<'a>(group: &'a NewGroup, path: &str, known: &KnownDimensions, next: &mut usize) -> Scaled<'a> {
    let mut made = Scaled { attributes: group.attributes.iter().map(NewAttribute::of).collect(), members: Vec::new() };
    // In the order of their numbers.
    let new = known.new.iter().filter(|(group, ..)| group == path).map(|(_, name, at)| (name, &known.all[*at]));
    for (name, dimension) in new.filter(|(_, dimension)| !dimension.has_variable) {
        debug_assert!(matches!(dimension.place, ScaleAt::New(number) if number == *next));
        *next += 1;
        let dataset = ScaledDataset { dataset: Cow::Owned(without_variable(name, dimension)), attributes: Vec::new() };
        let says = format!("{NO_VARIABLE}{:10}", dimension.length);
        made.members.push((name.clone(), ScaledMember::Dataset(Box::new(as_scale(dataset, dimension, &says)))));
    }
    for member in &group.members {
        let node = match member {
            NewMember::Group(inner) => {
                let node = scaled(inner, &format!("{path}{}/", inner.name), known, next);
                (inner.name.clone(), ScaledMember::Group(node))
            }
            NewMember::Dataset(dataset) => {
                *next += 1;
                let (name, node) = with_dimensions(dataset, path, known);
                (name, ScaledMember::Dataset(Box::new(node)))
            }
        };
        made.members.push(node);
    }
    made
}

/// A dataset with the attributes of its dimensions, and the name that it has in the file.
fn with_dimensions<'a>(dataset: &'a NewDataset, path: &str, known: &KnownDimensions) -> (String, ScaledDataset<'a>) {
    let attributes = dataset.attributes.iter().map(NewAttribute::of).collect();
    let mut made = ScaledDataset { dataset: Cow::Borrowed(dataset), attributes };
    let own = known.own(path, &dataset.name).map(|at| &known.all[at]);
    let scales = dataset.dimensions.iter().zip(&dataset.shape).enumerate().map(|(d, (name, &length))| {
        let unlimited = dataset.limits.get(d).is_some_and(Option::is_none);
        known.seen(path, name, length, unlimited).unwrap_or(0)
    });
    let scales: Vec<usize> = scales.collect();
    match own {
        Some(own) if is_coordinate(dataset) => {
            if scales.len() > 1 {
                let ids = scales.iter().map(|at| known.all[*at].id).collect::<Vec<_>>();
                made.attributes.push(integers("_Netcdf4Coordinates", &ids, Some(vec![ids.len() as u64])));
            }
            return (dataset.name.clone(), as_scale(made, own, &dataset.name));
        }
        _ => {}
    }
    if !scales.is_empty() {
        let places = scales.iter().map(|at| known.all[*at].place).collect::<Vec<_>>();
        made.attributes.push(NewAttribute {
            name: "DIMENSION_LIST".into(),
            datatype: Datatype::List(Box::new(Datatype::ObjectReference)),
            shape: Some(vec![places.len() as u64]),
            content: AttributeContent::Dimensions(places),
        });
    }
    let name = if own.is_some() { format!("{NO_COORDINATE}{}", dataset.name) } else { dataset.name.clone() };
    (name, made)
}

/// A dataset that is a dimension, with what says so.
fn as_scale<'a>(mut made: ScaledDataset<'a>, dimension: &Dimension, says: &str) -> ScaledDataset<'a> {
    made.attributes.push(text("CLASS", "DIMENSION_SCALE"));
    made.attributes.push(text("NAME", says));
    made.attributes.push(integers("_Netcdf4Dimid", &[dimension.id], Some(Vec::new())));
    if !dimension.uses.is_empty() && dimension.uses.len() <= USES_MAX {
        let Hdf5Attribute { name, datatype, .. } = Hdf5Attribute::of_no_use();
        made.attributes.push(NewAttribute {
            name,
            datatype,
            shape: Some(vec![dimension.uses.len() as u64]),
            content: AttributeContent::Uses(dimension.uses.clone()),
        });
    }
    made
}

impl Hdf5Attribute {
    /// What a dimension says of those that have it, as long as none has.
    pub(in crate::hdf5) fn of_no_use() -> Hdf5Attribute {
        let field = |name: &str, offset, datatype| CompoundField { name: name.into(), offset, datatype };
        let index = Datatype::Integer { bytes: 4, signed: true, order: ByteOrder::Little };
        let fields = vec![field("dataset", 0, Datatype::ObjectReference), field("dimension", 8, index)];
        let datatype = Datatype::Compound { bytes: 16, fields };
        Hdf5Attribute { name: USED_BY.into(), datatype, shape: Some(vec![0]), value: StoredValue::Elements(Vec::new()) }
    }
}

/// The dataset of a dimension that has no variable: nobody reads its elements.
fn without_variable(name: &str, dimension: &Dimension) -> NewDataset {
    let chunked = NewStorage::Chunked { chunk: vec![1024], places: [].into() };
    NewDataset {
        name: name.into(),
        shape: vec![dimension.length],
        limits: if dimension.unlimited { vec![None] } else { Vec::new() },
        datatype: Datatype::Float { bytes: 4, order: ByteOrder::Big },
        fill: None,
        storage: if dimension.unlimited { chunked } else { NewStorage::Contiguous(None) },
        filters: Vec::new(),
        attributes: Vec::new(),
        dimensions: Vec::new(),
    }
}

/// The attribute of a dimension that says what it is called as a variable.
pub(in crate::hdf5) fn scale_name(name: &str) -> Hdf5Attribute {
    let NewAttribute { name, datatype, shape, content } = text("NAME", name);
    let value = if let AttributeContent::Given(value) = content { value } else { StoredValue::Elements(Vec::new()) };
    Hdf5Attribute { name, datatype, shape, value }
}

/// A text of ASCII with a zero behind it, as libraries write those that they look for.
fn text(name: &str, says: &str) -> NewAttribute {
    let bytes = [says.as_bytes(), b"\0"].concat();
    let datatype = Datatype::Text { bytes: bytes.len() as u32, end: TextEnd::Terminated, utf8: false };
    NewAttribute {
        name: name.into(),
        datatype,
        shape: Some(Vec::new()),
        content: AttributeContent::Given(StoredValue::Elements(bytes)),
    }
}

fn integers(name: &str, values: &[i32], shape: Option<Vec<u64>>) -> NewAttribute {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let datatype = Datatype::Integer { bytes: 4, signed: true, order: ByteOrder::Little };
    NewAttribute { name: name.into(), datatype, shape, content: AttributeContent::Given(StoredValue::Elements(bytes)) }
}
