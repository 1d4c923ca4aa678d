//! The classic model in a file of netCDF-4 (`NETCDF4_CLASSIC`): nothing that programs of netCDF-3 have no word for.

use super::contents::Hdf5Options;
use super::held::as_stored;
use crate::error::format_fault;
use hyperslab_format::attribute::Attributes;
use hyperslab_format::netcdf::{Attribute, Type};
use hyperslab_layout::ElementType;
use hyperslab_world::{Fault, FaultKind};

impl Hdf5Options {
    /// Attributes as they are read once they are stored, of an array of such elements if of one.
    ///
    /// # Errors
    /// When there is no place for one.
    pub(super) fn stored(&self, given: &Attributes, of: Option<ElementType>) -> Result<Attributes, Fault> {
        if !self.classic {
            return as_stored(given, of, self.dialect());
        }
        let stored =
            Attribute::of_values(given, of.and_then(|element| Type::of(element.kind))).map_err(format_fault)?;
        if let Some(other) = stored.iter().find(|one| !one.kind.is_classic()) {
            return Err(not_classic(&format!("attribute '{}' of type {}", other.name, other.kind.name())));
        }
        let typed = stored.iter().map(|one| (one.name.clone(), one.to_value())).collect();
        as_stored(&typed, of, self.dialect())
    }

    /// Refuses an array that the classic model does not have, where the file keeps to that: with this path, such elements, and
    /// these limits of its dimensions.
    pub(super) fn check_classic(&self, path: &str, element: ElementType, limits: &[Option<u64>]) -> Result<(), Fault> {
        if !self.classic {
            return Ok(());
        }
        self.check_no_groups(path.rsplit_once('/').map_or("", |(group, _)| group))?;
        if !Type::of(element.kind).is_some_and(Type::is_classic) {
            return Err(not_classic(&format!("array '{path}' of {element}")));
        }
        if limits.iter().skip(1).any(Option::is_none) {
            return Err(not_classic(&format!(
                "array '{path}', of which another dimension than the first is unlimited"
            )));
        }
        Ok(())
    }

    /// Refuses a group.
    pub(super) fn check_no_groups(&self, group: &str) -> Result<(), Fault> {
        if self.classic && !group.is_empty() { Err(not_classic(&format!("group '{group}'"))) } else { Ok(()) }
    }

    /// Refuses what is said of a new file, where it does not fit the model.
    pub(super) fn check_new(&self) -> Result<(), Fault> {
        if self.classic && self.unlimited.len() > 1 {
            return Err(not_classic(&format!("unlimited dimensions {}", self.unlimited.join(", "))));
        }
        Ok(())
    }
}

fn not_classic(found: &str) -> Fault {
    let text = "the classic model of netCDF does not have that";
    let expected = "int8, int16, int32, float32, float64 and characters, one unlimited dimension, which comes first, and no groups";
    Fault::new(FaultKind::Unsupported, text)
        .expected(expected, found)
        .hint("write it as one of these, or give format='netcdf4'")
}
