//! What a file holds, as its users ask.

use super::form::{Form, Unread};
use super::{File, missing};
use crate::arrays::Info;
use crate::course::{End, Publish};
use crate::error::Error;
use hyperslab_format::zarr::{AttributeEdit, Value};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind};

impl File {
    /// Names of the arrays that are shown, as [`File::arrays`]. Local.
    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        let inside = self.inside();
        let shown = self.shown(&inside);
        Ok(inside.form.names().into_iter().take(shown).map(String::from).collect())
    }

    /// What lies in the file and is no array that can be read here: names, and why. Local.
    pub fn others(&self) -> Vec<(String, Unread)> {
        let inside = self.inside();
        let others = inside.form.others().into_iter().flatten();
        others.map(|(name, why)| (name.clone(), why.clone())).collect()
    }

    /// Whether a library of netCDF-4 made the HDF5 file. Local.
    pub fn is_netcdf4(&self) -> bool {
        self.inside().form.is_netcdf4()
    }

    /// Files have no groups. Local.
    pub(crate) fn groups(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// What an array is. Local.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn look_at(&self, name: &str) -> Result<Info, Error> {
        let inside = self.inside();
        let shown = self.shown(&inside);
        let names: Vec<&str> = inside.form.names().into_iter().take(shown).collect();
        let number = names
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| missing(&*inside.form, &self.path(), name, &names))?;
        Ok(info(&*inside.form, number))
    }

    /// What arrays are, on all ranks alike: each knows it. Collective by name only.
    ///
    /// # Errors
    /// The same on all ranks, when there is none of a name.
    pub(crate) fn look_at_all(&self, names: &[&str], doing: &str, _fresh: bool) -> Result<Vec<Info>, Error> {
        // What requests before this call add is there, too.
        self.await_calls();
        match self.numbers(names) {
            Ok(numbers) => Ok(numbers.into_iter().map(|number| info(&*self.inside().form, number)).collect()),
            Err(fault) => {
                let what = format!("{doing} of {} of '{}'", crate::zarr::listed(names), self.path().display());
                Err(self.comm.attend_with(&what, fault))
            }
        }
    }

    /// What an array is that this rank is about to read by itself. Local.
    ///
    /// # Errors
    /// This rank's own, when there is none of that name, or a request is writing to the file.
    pub(crate) fn look_at_settled(&self, name: &str) -> Result<Info, Error> {
        self.check_settled()?;
        self.look_at(name)
    }

    /// Refuses an everyday change that would move what lies in a file. Collective by name only.
    fn refuse(&self, doing: &str, hint: &str) -> Result<(), Error> {
        let what = format!("{doing} of '{}'", self.path().display());
        let text = format!("{doing} would move what lies behind it in the file");
        Err(self.comm.attend_with(&what, Fault::new(FaultKind::Unsupported, text).hint(hint)))
    }

    /// Attributes stand before the elements. Collective.
    ///
    /// # Errors
    /// Always, the same on all ranks.
    pub(crate) fn edit_attributes(&self, _name: &str, _edit: &AttributeEdit) -> Result<(), Error> {
        self.refuse(
            "changing attributes",
            "give attributes= when the file or the array is made; a Zarr store can change them",
        )
    }

    /// Arrays lie one after another. Collective.
    ///
    /// # Errors
    /// Always, the same on all ranks.
    pub(crate) fn delete(&self, _name: &str) -> Result<(), Error> {
        self.refuse("deleting an array", "write a new file with the others")
    }

    /// Names stand before the elements. Collective.
    ///
    /// # Errors
    /// Always, the same on all ranks.
    pub(crate) fn rename(&self, _old: &str, _new: &str) -> Result<(), Error> {
        self.refuse("renaming an array", "write a new file with the new name")
    }

    /// Arrays lie one after another. Collective.
    ///
    /// # Errors
    /// Always, the same on all ranks.
    pub(crate) fn resize(&self, _name: &str, _shape: &[u64]) -> Result<(), Error> {
        self.refuse("resizing an array", "append() adds records to a NetCDF file; a Zarr array can be resized")
    }

    /// Looks again how far the file goes, where its arrays may grow: others may have appended to it. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when it cannot be read, or is another one.
    pub fn refresh(&self) -> Result<(), Error> {
        let path = self.path().display().to_string();
        let fields = vec![("operation".to_string(), "refresh".to_string()), ("file".into(), path.clone())];
        let question = Question::opening(format!("refresh '{path}'"), fields, None);
        self.await_calls();
        let look = self.inside().form.looks_by().filter(|_| !self.mode.writes_new());
        let (attempts, directory, name) = (self.attempts.clone(), self.directory.clone(), self.name.clone());
        let told = self.comm.agree_on(question, false, move || {
            let Some(look) = look else { return Ok(Vec::new()) };
            attempts.check_still_there()?;
            let missing = || Fault::new(FaultKind::NotFound, format!("'{}' is gone", directory.full(&name)));
            Ok(look(&*directory, &name, directory.length(&name).ok_or_else(missing)?)?.0)
        })?;
        if look.is_some() {
            let mut inside = self.inside();
            inside.form.renew(&told, &path)?;
            inside.added = vec![0; inside.form.extent().arrays];
        }
        Ok(())
    }

    /// Waits for all requests. Collective.
    ///
    /// # Errors
    /// The failure of a request of this file that nobody waited for, the same on all ranks.
    pub fn flush(&self) -> Result<(), Error> {
        let path = self.path().display().to_string();
        let end = End::of(format!("flush of '{path}'"), "flush", &path);
        Ok(self.comm.sync_and(end, self.target, Publish::nothing())?)
    }
}

fn info(form: &dyn Form, number: usize) -> Info {
    let (array, said) = (form.array(number), form.described(number));
    Info {
        chunks: said.chunks.unwrap_or_else(|| array.shape.clone()),
        shards: None,
        shape: array.shape,
        element: array.element,
        dimension_names: said.dimension_names,
        attributes: said.attributes,
        fill_value: said.fill_value,
        codecs: Value::Array(said.codecs),
    }
}
