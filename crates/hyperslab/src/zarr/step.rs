//! Steps: groups that become visible whole or not at all.

use super::writing::publish;
use super::{METADATA_KEY, STEPS, Store, check_name, sweep};
use crate::course::new_target;
use crate::error::{Error, format_fault};
use hyperslab_format::zarr::{GroupMetadata, Map, Value};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind};

/// A step that is being written. It is a group like any other, but lies where no reader sees it until
/// [`Step::publish`]. Dropped without it, or after a crash, it is as if it had never been; the next run that opens the
/// store for update removes the remains.
pub struct Step {
    /// The group to write to.
    pub group: Store,
    /// Its path once it is published.
    at: String,
    sync: bool,
}

impl Store {
    /// Starts a step of this group. Collective.
    ///
    /// # Errors
    /// When a node of that name exists, or the store cannot be written.
    pub fn step(&self, name: &str, attributes: Map<String, Value>) -> Result<Step, Error> {
        let what = format!("step '{name}' of '{}'", self.path().display());
        let fault = self.check_writable(&what).and_then(|()| check_name(name)).and_then(|()| {
            if self.staged {
                return Err(Fault::new(FaultKind::Unsupported, format!("{what}: a step cannot hold another step")));
            }
            Ok(())
        });
        let fields = vec![
            ("step".to_string(), self.names.full(&format!("{}{name}", self.group))),
            ("attributes of the step".to_string(), Value::Object(attributes.clone()).to_string()),
        ];
        let question = Question::opening(what.clone(), fields, fault.err());
        let directory = self.directory();
        let at = format!("{}{name}", self.group);
        // The hidden path is the visible one with its separators spelled, so that one level of names holds all.
        let hidden = at.replace('/', "%2F");
        let hidden_path = format!("{}/{STEPS}/{hidden}", self.staging);
        let mut metadata = GroupMetadata::default();
        metadata.attributes.clone_from(&attributes);
        self.comm.agree(question, || {
            if directory.exists(&at) {
                return Err(Fault::new(FaultKind::Exists, format!("{what}: the name is taken"))
                    .hint("steps are never overwritten; choose another name"));
            }
            directory.remove(&hidden_path)?;
            directory.make(&hidden_path)?;
            directory.write(&format!("{hidden_path}/{METADATA_KEY}"), &metadata.to_json(), false)?;
            Ok(Vec::new())
        })?;
        let group = Store {
            comm: self.comm.clone(),
            target: new_target(),
            held: 0,
            names: self.names.clone(),
            group: format!("{hidden}/"),
            staging: self.staging.clone(),
            staged: true,
            ranks: self.ranks,
            mode: self.mode,
            options: self.options.clone(),
            removed: Vec::new(),
            unfinished: Vec::new(),
            attributes,
        };
        Ok(Step { group, at, sync: self.options.durable })
    }
}

impl Step {
    /// Replaces the attributes; they are written when the step is published.
    pub fn set_attributes(&mut self, attributes: Map<String, Value>) {
        self.group.attributes = attributes;
    }

    /// Where it lies until it is published.
    fn hidden(&self) -> String {
        format!("{}/{STEPS}/{}", self.group.staging, self.group.group.trim_end_matches('/'))
    }

    /// What is to be made durable: all that was written to it.
    fn synced(&self) -> Option<String> {
        self.sync.then(|| self.group.names.full(&self.hidden()))
    }

    /// Gives the step up after a collective call failed, of which every rank knows. Not collective.
    pub fn discard(self) {
        let directory = self.group.directory();
        // Requests that are under way write to it.
        self.group.comm.line().drain();
        if self.group.comm.rank() == 0 {
            directory.discard(&self.hidden());
            sweep(&*directory, &self.group.staging);
        }
    }

    /// Makes everything durable. Collective. What [`Step::publish`] does first; apart from it, a place for the user
    /// to look at the step before it becomes visible.
    pub fn sync(&self) -> Result<(), Error> {
        let what = format!("sync of step '{}'", self.at);
        Ok(self.group.comm.sync_and(&what, self.group.target, self.synced(), || Ok(Vec::new()), None)?)
    }

    /// Makes the step visible, by one rename. Collective. Waits for all requests before; if one of the step failed and
    /// nobody waited for it, this fails with its error and the step is given up. With `fault`, an error of this rank, the step is given up on
    /// all ranks instead, and they all get that error.
    pub fn publish(self, fault: Option<String>) -> Result<(), Error> {
        let what = format!("publishing step '{}' of '{}'", self.at, self.group.names.full(""));
        let directory = self.group.directory();
        let hidden = self.hidden();
        let fault = fault.map(|text| {
            Fault::new(FaultKind::Peer, format!("{what}: given up because of an error in the program: {text}"))
        });
        let metadata = GroupMetadata { attributes: self.group.attributes.clone(), ..GroupMetadata::default() };
        let rank = self.group.comm.rank();
        let result = self.group.comm.sync_and(
            &what,
            self.group.target,
            self.synced(),
            || {
                let key = format!("{hidden}/{METADATA_KEY}");
                GroupMetadata::parse(&metadata.to_json(), &key).map_err(format_fault)?;
                directory.write(&key, &metadata.to_json(), self.sync)?;
                if self.sync {
                    let arrays = directory.list(&hidden)?;
                    let metadata = arrays.iter().map(|name| format!("{hidden}/{name}/{METADATA_KEY}"));
                    directory.sync_files(&metadata.filter(|name| directory.exists(name)).collect::<Vec<_>>())?;
                    directory.sync(&hidden)?;
                }
                publish(&*directory, &hidden, &self.at)?;
                if self.sync {
                    directory.sync(self.at.rsplit_once('/').map_or("", |(parent, _)| parent))?;
                }
                sweep(&*directory, &self.group.staging);
                Ok(Vec::new())
            },
            fault,
        );
        if result.is_err() && rank == 0 {
            directory.discard(&hidden);
            sweep(&*directory, &self.group.staging);
        }
        Ok(result?)
    }
}
