//! Changes of what a header says of variables that are there.

use super::NetcdfHeader;
use super::attribute::Attribute;
use super::names::FILL_VALUE;
use super::names::check_name;
use super::types::Version;
use crate::attribute::AttributeEdit;
use crate::error::{Context, Error, excerpt};

impl NetcdfHeader {
    /// Changes attributes of a variable, or of the file. Those that stay keep their bytes.
    ///
    /// # Errors
    /// When the format has no place for one of them; nothing has changed then.
    pub fn edit_attributes(&mut self, variable: Option<usize>, edit: &AttributeEdit) -> Result<(), Error> {
        let kind = variable.map(|number| self.variables[number].kind);
        let set = Attribute::of_values(&edit.set, kind)?;
        let context = Context::new("change the attribute", FILL_VALUE);
        if let Some(fill) = set.iter().find(|one| kind.is_some() && one.name == FILL_VALUE) {
            // What was filled before holds the old one.
            let expected = "the fill value that the variable was made with";
            let was = variable.and_then(|number| self.variables[number].attributes.iter().find(|old| *old == fill));
            if was.is_none() {
                return Err(context.unsupported(expected, excerpt(&crate::attribute::shown(&fill.to_value()))));
            }
        }
        if let Some(newer) = set.iter().find(|one| one.since() > self.version && one.since() == Version::Data64) {
            let context = Context::new("change the attribute", &newer.name);
            let expected = format!("a type that {} has", self.version.name());
            return Err(context.unsupported(expected, newer.kind.name()).with_hint("give int32 or float64, or a text"));
        }
        let attributes = match variable {
            Some(number) => &mut self.variables[number].attributes,
            None => &mut self.attributes,
        };
        let replaced = |name: &String| set.iter().any(|one| one.name == *name);
        // A fill value goes only by name.
        let cleared = |name: &String| edit.clear && name != FILL_VALUE;
        attributes.retain(|one| !cleared(&one.name) && !edit.removed.contains(&one.name) && !replaced(&one.name));
        attributes.extend(set);
        self.counted.keep(0);
        Ok(())
    }

    /// Gives a variable another name.
    ///
    /// # Errors
    /// When it is taken, or none that the format has.
    pub fn rename(&mut self, number: usize, name: &str) -> Result<(), Error> {
        check_name(name)?;
        if self.variables.iter().any(|variable| variable.name == name) {
            let context = Context::new("rename the NetCDF variable", &self.variables[number].name);
            return Err(context.invalid("a name that no variable has", format!("'{}'", excerpt(name))));
        }
        self.variables[number].name = name.into();
        self.counted.keep(0);
        Ok(())
    }
}
