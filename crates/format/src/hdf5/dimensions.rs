//! Dimensions of netCDF-4 that a file has, for variables that are added to it.

use super::attributes::USED_BY;
use super::content::{Hdf5Attribute, ListedDimension, MetadataSource, StoredValue};
use super::datatype::Datatype;
use super::object_walk::{FoundDataset, ObjectWalk};
use super::reading::Hdf5File;
use super::writing::USES_MAX;
use crate::error::Error;
use std::rc::Rc;

impl Hdf5File {
    /// All dimensions of netCDF-4 that the file has.
    ///
    /// # Errors
    /// As [`Hdf5File::listing`].
    pub fn dimensions(&self, source: &dyn MetadataSource) -> Result<Vec<ListedDimension>, Error> {
        let (found, ..) = ObjectWalk::all(self, source, Rc::default())?;
        Ok(found.iter().filter_map(FoundDataset::as_dimension).collect())
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
