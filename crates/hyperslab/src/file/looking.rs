//! What a file holds, as its users ask.

use super::disk::marker;
use super::form::{Form, StoredUnits, Unread};
use super::hdf5::texts_in;
use super::{Contained, File};
use crate::arrays::Info;
use crate::course::{End, Publish};
use crate::error::Error;
use hyperslab_format::zarr::Value;
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Reader, Writer};
use std::path::Path;
use std::sync::Arc;

impl File {
    /// Names of the arrays that are shown, as [`File::arrays`]. Local.
    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        let inside = self.inside();
        Ok(self.shown(&inside).into_iter().map(|(_, name)| name).collect())
    }

    /// Whether there is an array of this name, as [`File::arrays`]. Local.
    ///
    /// # Errors
    /// Never: all ranks know them.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        Ok(self.shown_number(&self.inside(), name).is_some())
    }

    /// Whether this rank can say what an array is: rank 0 has told of all. Local.
    pub fn can_look_at(&self, _name: &str) -> bool {
        true
    }

    /// Whether one client of a shared file system handles storage for all ranks. Local.
    pub fn goes_by_one_client(&self) -> bool {
        self.mounts.are_apart()
    }

    fn shown_number(&self, inside: &Contained, name: &str) -> Option<usize> {
        let settled = self.comm.line().settled();
        inside.form.numbers_of(&self.paths(&[name]))[0].filter(|&number| self.shows(inside, number, settled))
    }

    /// What lies in the file and is no array that can be read here: names, and why. Local.
    pub fn others(&self) -> Vec<(String, Unread)> {
        let inside = self.inside();
        let Some(others) = inside.form.others() else { return Vec::new() };
        let below = others.range(self.within.clone()..);
        below.map_while(|(name, why)| Some((name.strip_prefix(&self.within)?.to_string(), why.clone()))).collect()
    }

    /// Whether a library of netCDF-4 made the HDF5 file. Local.
    pub fn is_netcdf4(&self) -> bool {
        self.inside().form.is_netcdf4()
    }

    /// Names of the groups in it, where the format has any. Local.
    ///
    /// # Errors
    /// Never: all ranks know them.
    pub fn groups(&self) -> Result<Vec<String>, Error> {
        let inside = self.inside();
        let groups = inside.form.groups_in(&self.within).unwrap_or_default();
        let here = groups.iter().filter_map(|path| path.strip_prefix(&self.within));
        let mut names: Vec<String> = here.filter(|name| !name.contains('/')).map(String::from).collect();
        names.sort();
        Ok(names)
    }

    /// Which chunks of an array of a file that exists are stored, as this rank finds them: those behind the last of before, and
    /// at most so many. Nothing where all of it lies in one stretch. Local.
    ///
    /// # Errors
    /// When there is no array of that name, or the index of its chunks is damaged.
    pub fn stored_chunks(&self, name: &str, after: Option<&[u64]>, most: usize) -> Result<Option<StoredUnits>, Error> {
        let number = self.numbers(&[name])?[0];
        let list = self.inside().form.stored_units(number);
        let (directory, object) = (&*self.directory, Arc::from(self.name.as_str()));
        Ok(list.map(|list| list(after, most, (directory, &object))).transpose()?)
    }

    /// The texts that lie where elements of arrays of this file say, which were read as bytes. Where ranks ask `together`, this is
    /// collective, and a failure is the same on all; else local.
    ///
    /// # Errors
    /// When they lie nowhere, or the file is damaged there.
    pub fn texts(&self, of: &[(&str, &[u8])], together: bool) -> Result<Vec<Vec<u8>>, Error> {
        let what = format!("read of texts from '{}'", self.path().display());
        let elements = of.iter().flat_map(|(_, elements)| *elements).copied().collect::<Vec<u8>>();
        let found = match &elements[..] {
            [] => Ok(Vec::new()),
            elements => self
                .mounts
                .check_alone("read texts")
                .and_then(|()| texts_in(&*self.directory, &self.name, elements))
                .map_err(|fault| fault.context(&what)),
        };
        // They are read by name, after the elements.
        let found = found.and_then(|texts| self.attempts.check_still_there().map(|()| texts));
        if together {
            let fault = found.as_ref().err().cloned();
            self.comm.agree(Question::opening(what, Vec::new(), fault), || Ok(Vec::new()))?;
        }
        Ok(found?)
    }

    /// What an array is. Local.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn look_at(&self, name: &str) -> Result<Info, Error> {
        let inside = self.inside();
        match self.shown_number(&inside, name) {
            Some(number) => Ok(info(&*inside.form, number)),
            None => {
                let shown = self.shown(&inside);
                let names: Vec<&str> = shown.iter().map(|(_, name)| name.as_str()).collect();
                Err(missing(&*inside.form, &self.path(), name, &names).into())
            }
        }
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
                let what = format!("{doing} of {} of '{}'", crate::array_write::listed(names), self.path().display());
                Err(self.comm.attend_with(&what, fault))
            }
        }
    }

    /// The shape of an array, if there is one of that name and no request may change what there is. Local.
    pub fn shape_of(&self, name: &str) -> Option<Vec<u64>> {
        if !self.comm.line().is_idle() {
            return None;
        }
        let inside = self.inside();
        let number = inside.form.numbers_of(&self.paths(&[name])).pop()??;
        Some(inside.form.array(number).shape.clone())
    }

    /// What an array is that this rank is about to read by itself. Local.
    ///
    /// # Errors
    /// This rank's own, when there is none of that name, or a request is writing to the file.
    pub(crate) fn look_at_settled(&self, name: &str) -> Result<Info, Error> {
        self.check_settled()?;
        let found = self.look_at(name)?;
        self.check_published(name)?;
        Ok(found)
    }

    /// Refuses to look by this rank alone for what is in no group yet.
    pub(super) fn check_published(&self, name: &str) -> Result<(), Fault> {
        let number = self.numbers(&[name])?[0];
        match self.inside().form.hidden_in(number) {
            None => Ok(()),
            Some(step) => {
                let text = format!("'{name}' is in step '{step}', which is not published");
                Err(Fault::new(FaultKind::Invalid, text)
                    .hint("read it by a collective call, or after the step has ended"))
            }
        }
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
        let look = self.inside().form.looks_by().filter(|_| !self.is_new());
        let (attempts, directory, name) = (self.attempts.clone(), self.directory.clone(), self.name.clone());
        let unfinished = self.unfinished.clone();
        let told = self.comm.agree_on(question, false, move || {
            let told = unfinished.tell_ended(Writer::default(), &attempts.home, |_| marker(&attempts.home.base))?;
            let Some(look) = look else { return Ok(told.0) };
            attempts.check_still_there()?;
            let missing = || Fault::new(FaultKind::NotFound, format!("'{}' is gone", directory.full(&name)));
            Ok(told.bytes(&look(&*directory, &name, directory.length(&name).ok_or_else(missing)?)?.0).0)
        })?;
        let mut told = Reader::new(&told);
        let broken = || Fault::new(FaultKind::Peer, "internal error: cannot decode what rank 0 told of the file");
        self.unfinished.hear_ended(&mut told).ok_or_else(broken)?;
        if look.is_some() {
            let mut inside = self.inside();
            inside.form.renew(told.bytes().ok_or_else(broken)?, &path)?;
            inside.added = vec![0; inside.form.extent().arrays];
        }
        Ok(())
    }

    /// Waits for all requests, and makes nothing visible. Collective.
    ///
    /// # Errors
    /// The failure of a request of this file that nobody waited for, the same on all ranks.
    pub fn settle(&self) -> Result<(), Error> {
        let path = self.path().display().to_string();
        let end = End::of(format!("flush of '{path}'"), "flush", &path);
        Ok(self.comm.sync_and(end, self.target, Publish::nothing())?)
    }
}

fn info(form: &dyn Form, number: usize) -> Info {
    let (array, said) = (form.array(number).into_owned(), form.described(number));
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

/// Why what is there by this name, or on the way to it, cannot be read; nothing where nothing is.
pub(super) fn unread(form: &dyn Form, path: &Path, name: &str) -> Option<Fault> {
    let others = form.others()?;
    let ends = name.match_indices('/').map(|(end, _)| end).chain([name.len()]);
    let (there, Unread { damaged, why }) = ends.rev().find_map(|end| others.get_key_value(&name[..end]))?;
    let what = if there == name { "array" } else { "group or array" };
    let text = format!("'{there}' is in '{}', but is no {what} that can be read here: {why}", path.display());
    let kind = if *damaged { FaultKind::Corrupt } else { FaultKind::Unsupported };
    Some(Fault::new(kind, text).hint("read it with h5py, on one rank"))
}

/// Why there is no array of this name among those that are shown.
pub(super) fn missing(form: &dyn Form, path: &Path, name: &str, all: &[&str]) -> Fault {
    if let Some(fault) = unread(form, path, name) {
        return fault;
    }
    let text = format!("'{}' has no array '{name}', only {}", path.display(), crate::array_write::listed(all));
    Fault::new(FaultKind::NotFound, text)
}
