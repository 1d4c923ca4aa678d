//! Steps of a file: groups of it that become visible whole, or not at all.

use super::File;
use super::edit::Edit;
use crate::course::{End, Publish};
use crate::error::Error;
use crate::left::{self, Unpublished};
use crate::said::{self, NOT_GIVEN, quoted};
use hyperslab_collective::naming::check_name;
use hyperslab_format::attribute::{AttributeEdit, Attributes};
use hyperslab_world::{Fault, FaultKind};
use std::sync::{Arc, Mutex, PoisonError};

/// A step that is being written: a group of a file that nothing leads to until [`FileStep::publish`]. What it had written
/// before a crash lies behind the end of the file, where nobody reads it. The first step of a new file makes the file visible.
#[derive(Clone)]
pub struct FileStep {
    /// The group to write to.
    pub group: File,
    /// The group that it is a step of, with a `/` at its end, and its name there.
    above: String,
    name: String,
    attributes: Arc<Mutex<Attributes>>,
    unpublished: Option<Unpublished>,
}

impl File {
    /// Whether it is the file itself, not a group of it. Local.
    pub fn is_whole(&self) -> bool {
        self.within.is_empty()
    }

    /// Of a new file or a group of it, that it is not closed yet. Local.
    pub fn unpublished(&self) -> Option<&Unpublished> {
        self.unpublished.as_ref()
    }

    /// Starts a step of the file, or of this group of it. Collective. `hooked` says whether this rank will do something of its
    /// own between [`FileStep::sync`] and [`FileStep::publish`], which must be so on all ranks.
    ///
    /// # Errors
    /// The same on all ranks, when something of that name exists, or files of this format have no groups.
    pub fn step(&self, name: &str, attributes: Attributes, hooked: bool) -> Result<FileStep, Error> {
        let what = format!("step '{name}' of '{}'", self.path().display());
        if let Err(fault) = check_name(name) {
            return Err(self.comm.attend_with(&what, fault));
        }
        let fields = vec![
            ("step".to_string(), quoted(self.in_file(name))),
            ("before_publish".to_string(), if hooked { "a function" } else { NOT_GIVEN }.to_string()),
        ];
        let fields = [fields, said::attributes(&attributes, " of the step")].concat();
        self.edit(what, fields, &Edit::Begin(self.in_file(name)))?;
        let (above, name) = (self.within.clone(), name.to_string());
        let told = (self.path(), name.clone());
        let which = move || {
            let lies = "in the file, where no reader sees it".to_string();
            (format!("step '{}' of '{}'", told.1, told.0.display()), lies)
        };
        let unpublished = self.comm.works_here().then(|| left::step(None, which));
        Ok(FileStep {
            group: self.inner(&name),
            above,
            name,
            attributes: Arc::new(Mutex::new(attributes)),
            unpublished,
        })
    }

    /// Names of the published steps, in the order of the file. Local.
    pub fn steps(&self) -> Vec<String> {
        let inside = self.inside();
        let steps = inside.form.steps_in(&self.within);
        steps
            .iter()
            .filter_map(|path| path.strip_prefix(&self.within))
            .filter(|name| !name.contains('/'))
            .map(String::from)
            .collect()
    }
}

impl FileStep {
    /// Its attributes. Local.
    pub fn attributes(&self) -> Attributes {
        self.attributes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the attributes of the step; they are written, and compared between ranks, when it is published. Local.
    pub fn edit_attributes(&self, edit: &AttributeEdit) {
        edit.apply(&mut self.attributes.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What it is a step of.
    fn above(&self) -> File {
        File { within: self.above.clone(), ..self.group.clone() }
    }

    fn shown(&self) -> String {
        format!("step '{}' of '{}'", self.name, self.above().path().display())
    }

    /// Waits until everything is written, durable where the file is. Collective: a place for the user to look at the step
    /// before it becomes visible.
    ///
    /// # Errors
    /// The same on all ranks.
    pub fn sync(&self) -> Result<(), Error> {
        self.synced(false)
    }

    /// The same, where rank 0 `publishes` it next.
    fn synced(&self, publishes: bool) -> Result<(), Error> {
        self.group.await_calls();
        self.group.sync_written(format!("sync of {}", self.shown()), "sync", publishes)
    }

    /// Makes the step visible: one write leads to it, or gives a new file its name. Collective. Waits for all requests before; if one of the step failed and
    /// nobody waited for it, this fails with its error and the step is given up.
    ///
    /// # Errors
    /// The same on all ranks; unless [`Error::is_unsynced`], nothing is visible then.
    pub fn publish(self) -> Result<(), Error> {
        let what = format!("publishing {}", self.shown());
        let attributes = self.attributes();
        let fields = said::attributes(&attributes, " of the step");
        let step = self.above().in_file(&self.name);
        let published = self.synced(true).and_then(|()| {
            let (file, edit) = (self.above(), Edit::Publish { step, attributes });
            match file.is_new() {
                true => file.show((what, fields), Some(&edit)),
                false => file.edit(what, fields, &edit),
            }
        });
        self.is_over();
        published.inspect_err(|error| {
            if !error.is_unsynced() {
                self.given_up()
            }
        })
    }

    /// Takes part in the publishing of the step with an error of this rank: the step is given up on all ranks. Collective:
    /// other ranks call this or [`FileStep::publish`].
    ///
    /// # Errors
    /// Always, the same on all ranks; it holds what is said here.
    pub fn give_up(self, why: impl Into<String>) -> Result<(), Error> {
        let what = format!("sync of {}", self.shown());
        let text = format!("publishing {}: the program gave it up: {}", self.shown(), why.into());
        let path = self.group.path().display().to_string();
        let end = End { fault: Some(Fault::new(FaultKind::Peer, text)), ..End::of(what, "sync", &path) };
        let result = self.group.comm.sync_and(end, self.group.target, Publish::nothing());
        self.given_up();
        Ok(result?)
    }

    /// Gives the step up after a collective call failed, of which every rank knows. Not collective.
    pub fn discard(self) {
        self.group.await_calls();
        self.given_up();
    }

    /// That it is not published yet. Local.
    pub fn unpublished(&self) -> Option<&Unpublished> {
        self.unpublished.as_ref()
    }

    /// Nothing is left to tell of.
    fn is_over(&self) {
        self.unpublished.iter().for_each(Unpublished::end);
    }

    fn given_up(&self) {
        self.is_over();
        self.above().has_edited(&Edit::GiveUp(self.above().in_file(&self.name)));
    }
}
