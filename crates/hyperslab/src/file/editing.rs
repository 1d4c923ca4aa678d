//! Everyday changes of a file: attributes, names, extents, groups, and what goes.

use super::File;
use super::edit::Edit;
use super::form::ChangeFile;
use super::looking::unread;
use super::putting::Putting;
use crate::error::Error;
use crate::said::{self, truth};
use hyperslab_format::attribute::{AttributeEdit, Attributes};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Locks, RoomLeft};
use std::borrow::Cow;
use std::sync::PoisonError;

impl File {
    /// Carries out a change: rank 0 in a file that exists, all ranks in what they know.
    pub(super) fn edit(&self, what: String, fields: Vec<(String, String)>, edit: &Edit) -> Result<(), Error> {
        self.await_calls();
        let edited = self.check_writable().and_then(|()| self.inside().form.edited(edit));
        let edited = match edited {
            Ok(Some(form)) => return self.edit_copy((what, fields), form),
            other => other.map(drop),
        };
        let checked = edited.and_then(|()| self.inside().form.change_of(edit));
        let (change, fault) = match checked {
            Ok(change) => (change, None),
            Err(fault) => (None, Some(fault.context(&what))),
        };
        let mut all = vec![("operation".to_string(), what.clone())];
        all.extend(fields);
        let question = Question::opening(what, all, fault);
        let file = self.clone();
        let deleted = if let Edit::Delete(path) = edit { Some(path.clone()) } else { None };
        let deletes = deleted.is_some();
        let work = move || {
            let changed = change.map_or(Ok(()), |change| file.changed(change));
            let alone = u8::from(deletes && file.is_locked());
            changed.map(|()| vec![alone]).map_err(|fault| if deletes { without_room(fault) } else { fault })
        };
        let done = self.comm.agree_on(question, self.attempts.at_once_durable(1), work);
        // What is gone, but may come back with a loss of power, keeps its room.
        if let (Some(path), Ok(told)) = (&deleted, &done)
            && told[..] == [1]
        {
            self.inside().form.leaves_room(path);
        }
        if done.as_ref().err().is_none_or(|fault| fault.kind == FaultKind::Unsynced) {
            self.has_edited(edit);
        }
        Ok(done.map(drop)?)
    }

    /// Whether rank 0 keeps others, who heed locks, from reading the file, on whatever host.
    pub(super) fn is_locked(&self) -> bool {
        let own = self.own_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let keeps = own.as_ref().is_some_and(|lock| lock.keeps_others_out()) || self.attempts.keeps_shown();
        keeps && self.directory.locks("") != Locks::EachHost
    }

    /// All ranks know of a change.
    pub(super) fn has_edited(&self, edit: &Edit) {
        let mut inside = self.inside();
        inside.changed |= !matches!(edit, Edit::Begin(_) | Edit::GiveUp(_));
        let gone = inside.form.has_edited(edit);
        for number in gone.into_iter().rev() {
            inside.added.remove(number);
        }
    }

    /// Rank 0 changes a file that exists.
    pub(super) fn changed(&self, change: ChangeFile) -> Result<(), Fault> {
        let (before, beginning) = {
            let inside = self.inside();
            (inside.form.extent(), inside.form.lasting().map(|_| inside.form.beginning()))
        };
        Putting::new(self.clone(), before, beginning).edit(change)
    }

    /// A name in this group as a path in the file.
    pub(super) fn in_file(&self, name: &str) -> String {
        match name.is_empty() {
            true => self.within.trim_end_matches('/').to_string(),
            false => format!("{}{name}", self.within),
        }
    }

    /// Names in this group, of which there may be many thousands, as paths in the file.
    pub(super) fn paths<'a>(&self, names: &[&'a str]) -> Vec<Cow<'a, str>> {
        let path = |name: &&'a str| if self.within.is_empty() { (*name).into() } else { self.in_file(name).into() };
        names.iter().map(path).collect()
    }

    /// Changes attributes of an array or a group, or of what is open where the name is empty. Collective.
    ///
    /// # Errors
    /// The same on all ranks; nothing has changed then.
    pub fn edit_attributes(&self, name: &str, edit: &AttributeEdit) -> Result<(), Error> {
        let of = if name.is_empty() { String::new() } else { format!("'{name}' in ") };
        let what = format!("change attributes of {of}'{}'", self.path().display());
        let fields = said::attribute_edit(edit);
        self.edit(what, fields, &Edit::Attributes { of: self.in_file(name), edit: edit.clone() })
    }

    /// Deletes an array, or a group with all that is in it. The file does not become shorter. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when there is none, or the format cannot delete.
    pub fn delete(&self, name: &str) -> Result<(), Error> {
        let what = format!("delete '{name}' from '{}'", self.path().display());
        self.edit(what, Vec::new(), &Edit::Delete(self.in_file(name)))
    }

    /// Gives an array or a group another name. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when there is none, the new name is taken, or the format cannot rename.
    pub fn rename(&self, old: &str, new: &str) -> Result<(), Error> {
        let what = format!("rename '{old}' to '{new}' in '{}'", self.path().display());
        let edit = Edit::Rename { from: self.in_file(old), to: self.in_file(new) };
        self.edit(what, vec![("new name".into(), new.into())], &edit)
    }

    /// Gives an array another shape, where it may have that. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when it is beyond what the array may grow to, or smaller than it is.
    pub fn resize(&self, name: &str, shape: &[u64]) -> Result<(), Error> {
        let what = format!("resize '{name}' of '{}'", self.path().display());
        let fields = vec![("new shape".to_string(), hyperslab_layout::tuple(shape).to_string())];
        self.edit(what, fields, &Edit::Resize { name: self.in_file(name), shape: shape.to_vec() })
    }

    /// Makes a group, with those above it that are not there, and opens it. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when the name is taken, or files of this format have no groups.
    pub fn make_group(&self, name: &str, attributes: Attributes, may_exist: bool) -> Result<File, Error> {
        let what = format!("make group '{name}' in '{}'", self.path().display());
        let fields = vec![("may be there".to_string(), truth(may_exist).into())];
        let fields = [fields, said::attributes(&attributes, " of the group")].concat();
        self.edit(what, fields, &Edit::Group { name: self.in_file(name), attributes, may_exist })?;
        Ok(self.inner(name))
    }

    /// Opens a group of the file, whose arrays are called by their names in it. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when there is none.
    pub fn group(&self, name: &str) -> Result<File, Error> {
        self.await_calls();
        let what = format!("open group '{name}' of '{}'", self.path().display());
        let path = self.in_file(name);
        let fault = {
            let inside = self.inside();
            let missing = || {
                let text = "there is no group of this name";
                Fault::new(FaultKind::NotFound, text).hint("list what there is with arrays() and groups()")
            };
            match inside.form.has_group(&path) {
                None => Some(Edit::Begin(path).refused()),
                Some(true) => None,
                Some(false) => Some(unread(&*inside.form, &self.path(), &path).unwrap_or_else(missing)),
            }
        };
        let fault = fault.map(|fault| fault.context(&what));
        let fields = vec![("operation".to_string(), what.clone())];
        self.comm.agree(Question::opening(what, fields, fault), || Ok(Vec::new()))?;
        Ok(self.inner(name))
    }

    /// A group of the file.
    pub(super) fn inner(&self, name: &str) -> File {
        File { within: format!("{}/", self.in_file(name)), target: crate::line::new_target(), ..self.clone() }
    }
}

/// The failure of deleting something, which makes no room.
fn without_room(fault: Fault) -> Fault {
    if fault.room != RoomLeft::Full {
        return fault;
    }
    fault.hint(
        "the file system is full or over quota, and an HDF5 file becomes no shorter by what is deleted in it: remove other \
         files, or copy what shall stay to a new file elsewhere, as h5repack does",
    )
}
