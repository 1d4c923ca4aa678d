//! Dimensions of netCDF-4 that a file has, for variables that are added to it.

use super::attributes::USED_BY;
use super::content::{Hdf5Attribute, ListedDimension, MetadataSource, StoredValue};
use super::datatype::Datatype;
use super::object_walk::{FoundDataset, ObjectWalk};
use super::policy::USES_AT_ONCE;
use super::reading::Hdf5File;
use super::writing::{KnownDimensions, USES_MAX};
use crate::error::Error;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Dimensions of netCDF-4 that a file was found to have, all of them, and those that changes have added: who changes the file
/// again need not look through all of it again, as long as no other program has changed it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FoundDimensions {
    /// Nothing where it must be looked for again.
    pub(super) known: Option<KnownDimensions>,
    /// Whether any object has several names: what is added by one of them is there by another.
    pub(super) has_further_names: bool,
    /// Datasets that have a dimension and that its list does not name yet, by the address of the dimension.
    unsaid: BTreeMap<u64, UnsaidUses>,
}

/// Which datasets the list of a dimension will name: addresses, and which of their dimensions it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct UnsaidUses {
    /// How many it names.
    said: usize,
    more: Vec<(u64, u32)>,
}

impl FoundDimensions {
    /// What holds of it wherever dimensions are: datasets that lists do not name yet.
    #[must_use]
    pub fn unsaid(&self) -> FoundDimensions {
        FoundDimensions { unsaid: self.unsaid.clone(), ..FoundDimensions::default() }
    }

    /// What is known of dimensions; that of a netCDF-4 file is looked for where it is not.
    pub(super) fn take_known(
        &mut self,
        file: &Hdf5File,
        source: &dyn MetadataSource,
        is_netcdf: bool,
    ) -> Result<KnownDimensions, Error> {
        match self.known.take() {
            Some(known) => Ok(known),
            None if is_netcdf => {
                let (known, has_further_names) = file.dimensions(source)?;
                self.has_further_names = has_further_names;
                Ok(known)
            }
            None => Ok(KnownDimensions::default()),
        }
    }

    /// Whether some dimensions do not name all datasets yet that have them.
    pub fn is_unsaid(&self) -> bool {
        self.unsaid.values().any(|uses| !uses.more.is_empty())
    }

    /// Notes that datasets have a dimension.
    pub(super) fn are_used(&mut self, uses: Vec<(u64, Vec<(u64, u32)>)>) {
        for (at, more) in uses {
            let unsaid = self.unsaid.entry(at).or_default();
            // Longer lists are not made.
            if unsaid.said <= USES_MAX {
                unsaid.more.extend(more);
            }
        }
    }

    /// Takes what lists of dimensions shall name, by their addresses: all that they do not name, or those that have grown by a
    /// part. A list is made as a whole, so that one for each dataset would take room that grows with the square of their number.
    pub(super) fn take_unsaid(&mut self, all: bool) -> Vec<(u64, Vec<(u64, u32)>)> {
        let mut taken = Vec::new();
        for (at, uses) in &mut self.unsaid {
            if !uses.more.is_empty() && (all || uses.more.len() * USES_AT_ONCE >= uses.said) {
                uses.said += uses.more.len();
                taken.push((*at, std::mem::take(&mut uses.more)));
            }
        }
        taken
    }
}

impl Hdf5File {
    /// All dimensions of netCDF-4 that the file has, and whether any object has several names.
    ///
    /// # Errors
    /// As [`Hdf5File::listing`].
    fn dimensions(&self, source: &dyn MetadataSource) -> Result<(KnownDimensions, bool), Error> {
        let (found, _, has_further_names) = ObjectWalk::all(self, source, Rc::default())?;
        let listed: Vec<_> = found.iter().filter_map(FoundDataset::as_dimension).collect();
        Ok((KnownDimensions::of(&listed), has_further_names))
    }

    /// The attribute of a dimension that says who has it, with these more: addresses of datasets, and which of their dimensions it
    /// is. Nothing where it has another form, or would be too large: readers find dimensions by the other list.
    ///
    /// # Errors
    /// When the file is damaged.
    pub(super) fn used_by(
        &self,
        source: &dyn MetadataSource,
        at: u64,
        more: &[(u64, u32)],
    ) -> Result<Option<Hdf5Attribute>, Error> {
        let all = self.attributes_at(source, at)?;
        let found = all.into_iter().find(|(name, _)| name == USED_BY).map(|(_, attribute)| attribute).transpose()?;
        let mut attribute = found.unwrap_or_else(Hdf5Attribute::of_no_use);
        let Datatype::Compound { bytes, fields } = &attribute.datatype else { return Ok(None) };
        let place = |name: &str| fields.iter().find(|field| field.name == name).map(|field| field.offset as usize);
        let (Some(dataset), Some(dimension)) = (place("dataset"), place("dimension")) else { return Ok(None) };
        let StoredValue::Elements(elements) = &mut attribute.value else { return Ok(None) };
        let bytes = *bytes as usize;
        if bytes < (dataset + 8).max(dimension + 4) || elements.len() / bytes.max(1) + more.len() > USES_MAX {
            return Ok(None);
        }
        for (of, number) in more {
            let mut one = vec![0; bytes];
            one[dataset..dataset + 8].copy_from_slice(&of.to_le_bytes());
            one[dimension..dimension + 4].copy_from_slice(&number.to_le_bytes());
            elements.extend(one);
        }
        attribute.shape = Some(vec![(elements.len() / bytes) as u64]);
        Ok(Some(attribute))
    }
}

impl FoundDataset {
    /// As a dimension of netCDF-4, if it is one.
    pub(super) fn as_dimension(&self) -> Option<ListedDimension> {
        let dataset = self.dataset.as_ref().ok().filter(|_| self.is_scale())?;
        let group = self.path.rsplit_once('/').map_or("/".into(), |(group, _)| format!("/{group}/"));
        Some(ListedDimension {
            group,
            name: self.name(),
            length: dataset.shape.as_ref()?.first().copied()?,
            unlimited: dataset.limits.first()?.is_none(),
            at: self.at,
            id: self.number("_Netcdf4Dimid").and_then(|id| i32::try_from(id).ok()),
            has_variable: !self.is_bare_dimension(),
        })
    }
}
