//! Steps: groups that become visible whole or not at all.

use super::consolidating::{drop_again, drop_consolidated};
use super::editing::{of_step, stored_attributes};
use super::{METADATA_KEY, Store, below};
use crate::course::{End, Publish};
use crate::error::{Error, format_fault};
use crate::left::{self, Unpublished};
use crate::line::new_target;
use crate::listing::Listing;
use crate::said::{self, NOT_GIVEN, quoted};
use crate::unfinished::Unfinished;
use hyperslab_collective::attempts::{Entry, New, STEP};
use hyperslab_collective::naming::check_name;
use hyperslab_format::attribute::{AttributeEdit, Attributes};
use hyperslab_format::zarr::{GroupMetadata, NodeType};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Reader, Root, Writer};
use std::sync::{Arc, Mutex};

/// A step that is being written. It is a group like any other, but lies where no reader sees it until
/// [`Step::publish`]. Dropped without it, or after a crash, it is as if it had never been; the next run that opens the
/// store for update removes the remains.
#[derive(Clone)]
pub struct Step {
    /// The group to write to.
    pub group: Store,
    /// Its name in the store once it is published.
    at: String,
    /// Where it lies until then.
    hidden: String,
    sync: bool,
    /// Of the group that it is a step of, and its name there.
    above: (Listing, String),
    unpublished: Option<Unpublished>,
}

impl Store {
    /// Starts a step of this group. Collective. `hooked` says whether this rank will do something of its own between
    /// [`Step::sync`] and [`Step::publish`], which must be so on all ranks.
    ///
    /// # Errors
    /// When a node of that name exists, or the store cannot be written.
    pub fn step(&self, name: &str, attributes: Attributes, hooked: bool) -> Result<Step, Error> {
        let what = format!("step '{name}' of '{}'", self.path().display());
        let writable = self.check_writable().map_err(|fault| fault.context(&what));
        let stored = stored_attributes(&attributes);
        let fit = stored.as_ref().map(drop).map_err(Clone::clone);
        let fault = writable.and_then(|()| check_name(name)).and(fit).and_then(|()| {
            if self.staged.is_some() {
                return Err(Fault::new(FaultKind::Unsupported, format!("{what}: a step cannot hold another step")));
            }
            Ok(())
        });
        let (directory, at) = (self.directory(), self.shown(name));
        let visible = format!("{}{name}", self.base());
        let fields = vec![
            ("step".to_string(), quoted(directory.full(&visible))),
            ("before_publish".to_string(), if hooked { "a function" } else { NOT_GIVEN }.to_string()),
        ];
        let fields = [fields, said::attributes(&attributes, " of the step")].concat();
        let question = Question::opening(what.clone(), fields, fault.err());
        let metadata = GroupMetadata { attributes: stored.unwrap_or_default(), ..GroupMetadata::default() };
        let (attempts, of) = (self.attempts.clone(), at.clone());
        let told = self.comm.agree_on(question, self.attempts.at_once(1), move || {
            if attempts.is_taken(&visible, METADATA_KEY)? {
                return Err(Fault::new(FaultKind::Exists, format!("{what}: the name is taken"))
                    .hint("choose another name: steps are never overwritten"));
            }
            let new = New { kind: STEP, of: &of, to: &visible, key: METADATA_KEY, overwrite: false };
            let hidden = attempts.begin(&new)?;
            let json = metadata.to_json();
            directory.create(&format!("{hidden}/{METADATA_KEY}"), &json, json.len() as u64)?;
            Ok(Writer::default().bytes(hidden.as_bytes()).0)
        })?;
        let hidden = Reader::new(&told).text();
        let hidden =
            hidden.ok_or_else(|| Fault::new(FaultKind::Peer, "what rank 0 told of a step cannot be decoded"))?;
        let group = Store {
            target: new_target(),
            held: 0,
            group: format!("{at}/"),
            staged: Some(hidden.clone()),
            removed: Vec::new(),
            unfinished: Unfinished::default(),
            attributes: Arc::new(Mutex::new(attributes)),
            listing: self.comm.listings().open(self.directory().full(&format!("{hidden}/")), [], 0),
            ..self.clone()
        };
        let above = (self.listing.clone(), name.to_string());
        let told = (self.attempts.clone(), at.clone(), hidden.clone());
        let which = move || {
            let (attempts, at, hidden) = &told;
            let lies =
                format!("in '{}' until the store is closed or opened to write", attempts.home.names.full(hidden));
            (format!("step '{at}' of '{}'", attempts.home.shown()), lies)
        };
        let unpublished = self.comm.works_here().then(|| left::step(Some(&self.attempts), which));
        Ok(Step { group, at, hidden, sync: self.options.durable, above, unpublished })
    }
}

impl Step {
    /// Changes the attributes of the step; they are written, and compared between ranks, when it is published. Local.
    pub fn edit_attributes(&self, edit: &AttributeEdit) {
        edit.apply(&mut self.group.lock_attributes());
    }

    /// What is to be made durable: all that was written to it.
    fn synced(&self) -> Option<Root> {
        self.sync.then(|| Root::new(self.group.directory().full(&self.hidden)))
    }

    /// Gives the step up after a collective call failed, of which every rank knows. Not collective.
    pub fn discard(self) {
        // Requests that are under way write to it.
        self.group.comm.line().drain();
        self.given_up();
    }

    /// Removes what was never published, on rank 0. Where nobody knows who still writes, it stays until the root ends.
    fn given_up(&self) {
        self.is_over();
        if self.group.comm.rank() > 0 || self.group.comm.is_poisoned() {
            return;
        }
        let (attempts, hidden) = (self.group.attempts.clone(), self.hidden.clone());
        self.group.comm.work_later(self.group.attempts.at_once(1), move || attempts.discard(&hidden));
    }

    /// That it is not published yet. Local.
    pub fn unpublished(&self) -> Option<&Unpublished> {
        self.unpublished.as_ref()
    }

    /// Nothing is left to tell of.
    fn is_over(&self) {
        self.unpublished.iter().for_each(Unpublished::end);
    }

    fn end(&self, what: &str, called: &str) -> End {
        let path = self.group.directory().full(&self.group.home().name(&self.at));
        End { sync: self.synced(), ..End::of(what, called, &path) }
    }

    /// Makes everything durable. Collective. What [`Step::publish`] does first; apart from it, a place for the user
    /// to look at the step before it becomes visible.
    pub fn sync(&self) -> Result<(), Error> {
        let what = format!("sync of step '{}'", self.at);
        Ok(self.group.comm.sync_and(self.end(&what, "sync"), self.group.target, Publish::nothing())?)
    }

    /// Makes the step visible, by one rename. Collective. Waits for all requests before; if one of the step failed and
    /// nobody waited for it, this fails with its error and the step is given up.
    ///
    /// # Errors
    /// The same on all ranks; unless [`Error::is_unsynced`], nothing is visible then.
    pub fn publish(self) -> Result<(), Error> {
        self.finish(None)
    }

    /// Takes part in the publishing of the step with an error of this rank: the step is given up on all ranks. Collective:
    /// other ranks call this or [`Step::publish`].
    ///
    /// # Errors
    /// Always, the same on all ranks; it holds what is said here.
    pub fn give_up(self, why: impl Into<String>) -> Result<(), Error> {
        self.finish(Some(why.into()))
    }

    fn finish(self, fault: Option<String>) -> Result<(), Error> {
        let what = format!("publishing step '{}' of '{}'", self.at, self.group.home().shown());
        let directory = self.group.directory();
        let fault = fault.map(|text| Fault::new(FaultKind::Peer, format!("{what}: the program gave it up: {text}")));
        let attributes = self.group.attributes();
        let stored = stored_attributes(&attributes);
        let unfit = stored.as_ref().err().map(|fault| fault.clone().context(&what));
        let fault = fault.or(unfit);
        let end = End { fault, ..self.end(&what, "publish") };
        let end = end.and(said::attributes(&attributes, " of the step"));
        let metadata =
            GroupMetadata { attributes: of_step(stored.unwrap_or_default()), ..GroupMetadata::default() }.to_json();
        let (attempts, hidden, sync) = (self.group.attempts.clone(), self.hidden.clone(), self.sync);
        let ancestors = self.group.ancestors(&self.at);
        let to = self.group.home().name(&self.at);
        let above = to.rsplit_once('/').map_or(String::new(), |(above, _)| above.to_string());
        let work = Publish::by(self.group.attempts.at_once_durable(1), move || {
            let key = format!("{hidden}/{METADATA_KEY}");
            GroupMetadata::parse(&metadata, &key).map_err(format_fault)?;
            directory.create(&key, &metadata, metadata.len() as u64)?;
            if sync {
                let mut nodes = Vec::new();
                below(&*directory, &format!("{hidden}/"), "", &mut nodes)?;
                let nodes = nodes.iter().map(|(path, _)| format!("{hidden}/{path}/{METADATA_KEY}"));
                directory.sync_files(&nodes.chain([key]).collect::<Vec<_>>())?;
            }
            drop_consolidated(&attempts, &ancestors)?;
            attempts.publish(&[Entry { from: hidden, to: to.clone(), replaces: false }])?;
            let dropped = drop_again(&attempts, &ancestors);
            let synced = if sync { attempts.sync_published(&above, &to) } else { Ok(()) };
            synced.and(dropped)
        });
        let result = self.group.comm.sync_and(end, self.group.target, work);
        self.is_over();
        if result.as_ref().is_err_and(|fault| fault.kind != FaultKind::Unsynced) {
            self.given_up();
        } else {
            self.above.0.show([&*self.above.1], NodeType::Group);
            self.group.tell_published(&self.at);
        }
        Ok(result?)
    }
}
