//! Attributes as ranks keep them: what nobody asks for stays as it was told.

use crate::error::format_fault;
use hyperslab_format::attribute::Attributes;
use hyperslab_format::hdf5::{Dialect, Hdf5Attribute, OF_DIMENSIONS};
use hyperslab_layout::ElementType;
use hyperslab_world::Fault;
use std::sync::Arc;

/// The attribute by which a step is told from other groups; it is not shown.
pub(super) const STEP: &str = "hyperslab_step";

/// Attributes of a file, a group or an array.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum HeldAttributes {
    /// As rank 0 told them.
    Told(Arc<[u8]>),
    /// As they were given here.
    Known(Attributes),
}

impl Default for HeldAttributes {
    fn default() -> HeldAttributes {
        HeldAttributes::Known(Attributes::new())
    }
}

impl From<Attributes> for HeldAttributes {
    fn from(attributes: Attributes) -> HeldAttributes {
        HeldAttributes::Known(attributes)
    }
}

impl HeldAttributes {
    /// What ranks are told of attributes that were found: nothing of those that no user gave.
    pub(super) fn told(attributes: &[Hdf5Attribute], is_netcdf: bool) -> Vec<u8> {
        let dialect = if is_netcdf { Dialect::Netcdf } else { Dialect::H5py };
        let is_shown = |one: &&Hdf5Attribute| !OF_DIMENSIONS.contains(&one.name.as_str()) && one.name != STEP;
        let shown = attributes.iter().filter(is_shown);
        let all: Attributes = shown.map(|one| (one.name.clone(), one.to_value(dialect))).collect();
        all.to_bytes()
    }

    /// Those that were told so.
    pub(super) fn heard(bytes: &[u8]) -> HeldAttributes {
        HeldAttributes::Told(bytes.into())
    }

    /// All of them.
    pub(super) fn get(&self) -> Attributes {
        match self {
            HeldAttributes::Told(bytes) => Attributes::from_bytes(bytes).unwrap_or_default(),
            HeldAttributes::Known(attributes) => attributes.clone(),
        }
    }
}

/// Attributes as they are read once they are stored, of an array of such elements if of one.
///
/// # Errors
/// When there is no place for one.
pub(super) fn as_stored(
    attributes: &Attributes,
    array: Option<ElementType>,
    dialect: Dialect,
) -> Result<Attributes, Fault> {
    let stored = Hdf5Attribute::of_values(attributes, array, dialect).map_err(format_fault)?;
    Ok(stored.iter().map(|one| (one.name.clone(), one.to_value(dialect))).collect())
}
