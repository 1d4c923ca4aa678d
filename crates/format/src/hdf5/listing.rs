//! All datasets of a file, by their paths, with the names of their dimensions.

use super::attributes::{CLASSIC_MODEL, LABELS};
use super::content::{Dataset, DatasetStorage, Hdf5Attribute, ListedDimension, MetadataSource, StoredValue};
use super::object_walk::{FoundDataset, ListedGroup, ObjectWalk};
use super::pipeline::Pipeline;
use super::reading::{GlobalHeaps, Hdf5File};
use super::writing::{NO_COORDINATE, NO_VARIABLE};
use crate::error::{Context, Error};
use crate::size::array_bytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A dataset as it is found, or why it cannot be an array.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedDataset {
    /// Its path from the root, without a `/` in front.
    pub path: String,
    /// The dataset, where its elements can be read.
    pub dataset: Result<Dataset, Error>,
    /// How many of its dimensions, the last ones, are those of arrays that are its elements in the file.
    pub inner: usize,
    /// Its attributes; of those that cannot be read, what they are.
    pub attributes: Vec<Hdf5Attribute>,
    /// Names of its dimensions, where netCDF-4 or labels give it any.
    pub dimensions: Option<Vec<Option<String>>>,
}

/// What a file holds.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Hdf5Listing {
    /// Attributes of the root.
    pub attributes: Vec<Hdf5Attribute>,
    /// All datasets, but for dimensions without a variable, group by group.
    pub datasets: Vec<ListedDataset>,
    /// All groups but the root.
    pub groups: Vec<ListedGroup>,
    /// Whether a library of netCDF-4 made it.
    pub is_netcdf: bool,
    /// Whether it keeps to the classic model of netCDF.
    pub is_classic: bool,
    /// Whether any object has several names, by hard or soft links.
    pub has_further_names: bool,
    /// Its dimensions, if it is one of netCDF-4.
    pub dimensions: Vec<ListedDimension>,
}

impl Hdf5File {
    /// Looks at all groups and datasets, by all names that they have: hard links, and soft links within the file.
    ///
    /// # Errors
    /// When the root is damaged, or there are more than 2 million objects. What else is damaged, or leads nowhere, or is of a type
    /// that arrays cannot have, hinders only itself.
    pub fn listing(&self, source: &dyn MetadataSource) -> Result<Hdf5Listing, Error> {
        let heaps = Rc::default();
        let attributes = self.readable_attributes(source, self.root(), &heaps)?;
        let (mut found, groups, has_further_names) = ObjectWalk::all(self, source, heaps)?;
        let scales = Scales::of(&found);
        let says = |name: &str| attributes.iter().any(|attribute| attribute.name == name);
        let is_classic = says(CLASSIC_MODEL);
        // Libraries before netCDF 4.4.1 told of themselves by their dimensions only.
        let of_netcdf = |one: &FoundDataset| one.is_bare_dimension() || one.attribute("_Netcdf4Dimid").is_some();
        let is_netcdf = is_classic || says("_NCProperties") || found.iter().any(of_netcdf);
        if is_netcdf {
            lengthen(&mut found, self, &scales);
        }
        let datasets = found.iter().filter(|one| !one.is_bare_dimension()).map(|one| one.listed(self, &scales));
        let mut datasets: Vec<ListedDataset> = datasets.collect();
        for listed in datasets.iter_mut().filter(|_| is_netcdf) {
            // A variable without dimensions has names for all of them.
            let is_scalar = listed.dataset.as_ref().is_ok_and(|dataset| dataset.shape == Some(Vec::new()));
            listed.dimensions = listed.dimensions.take().or(is_scalar.then(Vec::new));
        }
        let dimensions = found.iter().filter(|_| is_netcdf).filter_map(FoundDataset::as_dimension).collect();
        Ok(Hdf5Listing { attributes, datasets, groups, is_netcdf, is_classic, has_further_names, dimensions })
    }

    pub(super) fn readable_attributes(
        &self,
        source: &dyn MetadataSource,
        at: u64,
        heaps: &Rc<RefCell<GlobalHeaps>>,
    ) -> Result<Vec<Hdf5Attribute>, Error> {
        let each = self.attributes_sharing(source, at, heaps)?.into_iter().filter_map(|(name, attribute)| {
            let unread = |error: Error| Hdf5Attribute::unread(name.clone(), error.found());
            if name.is_empty() { attribute.ok() } else { Some(attribute.unwrap_or_else(unread)) }
        });
        Ok(each.collect())
    }
}

/// Makes variables as long as their unlimited dimensions: to netCDF, that is how long the longest one is, and the others are filled
/// up.
fn lengthen(found: &mut [FoundDataset], file: &Hdf5File, scales: &Scales) {
    let unlimited = |one: &FoundDataset| -> Vec<(usize, u64, u64)> {
        let (Ok(dataset), Some(dimensions)) = (&one.dataset, one.dimensions(file, scales)) else { return Vec::new() };
        let extents = dataset.shape.iter().flatten().zip(&dataset.limits).zip(dimensions).enumerate();
        let growing = extents.filter(|(_, ((_, limit), _))| limit.is_none() && !one.is_bare_dimension());
        growing.filter_map(|(d, ((&extent, _), at))| Some((d, at?, extent))).collect()
    };
    let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, at, extent) in found.iter().flat_map(unlimited) {
        let length = lengths.entry(at).or_default();
        *length = extent.max(*length);
    }
    for one in found {
        let growing = unlimited(one);
        let Ok(dataset) = &mut one.dataset else { continue };
        let Some(mut shape) = dataset.shape.clone() else { continue };
        growing.iter().for_each(|(d, at, _)| shape[*d] = lengths[at]);
        // What cannot be so long is damaged, and stays as it is.
        if array_bytes(&shape, dataset.datatype.bytes().into()).is_some() {
            dataset.shape = Some(shape);
        }
    }
}

/// Dimensions, by the addresses of their headers, and by their numbers.
struct Scales {
    names: BTreeMap<u64, String>,
    by_number: BTreeMap<i64, u64>,
}

impl Scales {
    fn of(found: &[FoundDataset]) -> Scales {
        // Of several names, the first one is that of the dimension.
        let scales = || found.iter().rev().filter(|one| one.is_scale());
        let names = scales().map(|one| (one.at, one.name())).collect();
        let by_number = scales().filter_map(|one| Some((one.number("_Netcdf4Dimid")?, one.at))).collect();
        Scales { names, by_number }
    }
}

impl FoundDataset {
    /// The last part of its path, as netCDF calls it.
    pub(super) fn name(&self) -> String {
        let last = self.path.rsplit('/').next().unwrap_or_default();
        last.strip_prefix(NO_COORDINATE).unwrap_or(last).to_string()
    }

    /// Its path, as netCDF calls it.
    fn shown(&self) -> String {
        match self.path.rsplit_once('/') {
            Some((above, _)) => format!("{above}/{}", self.name()),
            None => self.name(),
        }
    }

    fn attribute(&self, name: &str) -> Option<&Hdf5Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.attribute(name)?.as_text()
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.as_i64()
    }

    pub(super) fn is_scale(&self) -> bool {
        self.text("CLASS").is_some_and(|class| class == "DIMENSION_SCALE")
    }

    /// Whether it is a dimension and nothing else.
    pub(super) fn is_bare_dimension(&self) -> bool {
        self.is_scale() && self.text("NAME").is_some_and(|name| name.starts_with(NO_VARIABLE))
    }

    fn listed(&self, file: &Hdf5File, scales: &Scales) -> ListedDataset {
        let name = |at: Option<u64>| at.and_then(|at| scales.names.get(&at).cloned());
        let dimensions: Option<Vec<_>> = self.dimensions(file, scales).map(|each| each.into_iter().map(name).collect());
        let ndim = |dataset: &Result<Dataset, Error>| {
            dataset.as_ref().ok().and_then(|dataset| dataset.shape.as_ref()).map_or(0, Vec::len)
        };
        let dataset = self.dataset.clone().and_then(|dataset| readable(dataset, &self.path));
        let inner = ndim(&dataset).saturating_sub(ndim(&self.dataset));
        let mut dimensions = dimensions.or_else(|| self.labels());
        dimensions.iter_mut().for_each(|names| names.extend(vec![None; inner]));
        ListedDataset { path: self.shown(), dataset, inner, attributes: self.attributes.clone(), dimensions }
    }

    /// Names of its dimensions, where it has labels.
    fn labels(&self) -> Option<Vec<Option<String>>> {
        let ndim = self.dataset.as_ref().ok()?.shape.as_ref()?.len();
        self.attribute(LABELS)?.as_labels(ndim)
    }

    /// The addresses of its dimensions, where netCDF-4 gives it any.
    fn dimensions(&self, file: &Hdf5File, scales: &Scales) -> Option<Vec<Option<u64>>> {
        let ndim = self.dataset.as_ref().ok()?.shape.as_ref()?.len();
        if let Some(StoredValue::Lists(lists)) = self.attribute("DIMENSION_LIST").map(|attribute| &attribute.value) {
            let at = |list: &Vec<u8>| u64::from_le_bytes(*list.first_chunk::<8>()?).checked_add(file.base());
            return Some(lists.iter().map(at).collect()).filter(|all: &Vec<_>| all.len() == ndim);
        }
        if !self.is_scale() {
            return None;
        }
        match self.attribute("_Netcdf4Coordinates").and_then(Hdf5Attribute::as_integers) {
            Some(numbers) if numbers.len() == ndim => {
                Some(numbers.iter().map(|number| scales.by_number.get(number).copied()).collect())
            }
            _ if ndim == 1 => Some(vec![Some(self.at)]),
            _ => None,
        }
    }
}

/// A dataset whose elements can be read.
fn readable(dataset: Dataset, path: &str) -> Result<Dataset, Error> {
    let context = Context::new("read HDF5 dataset", path);
    let dataset = dataset.unfolded(path)?;
    dataset.datatype.element(path)?;
    Pipeline::of(&dataset.filters, path)?;
    let found = match &dataset.storage {
        DatasetStorage::Unsupported(what) => what.clone(),
        _ if dataset.shape.is_none() => "no elements (a null dataspace)".into(),
        _ => return Ok(dataset),
    };
    Err(context.unsupported("elements in one stretch or in chunks", found).with_hint("read it with h5py"))
}
