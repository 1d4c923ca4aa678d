//! Everyday changes of a store: attributes, names, extents, and what goes.

use super::consolidating::{drop_again, drop_consolidated};
use super::nodes::{ROOT, StoredNode, check_changeable, check_path, place, read_node};
use super::{METADATA_KEY, Store};
use crate::error::{Error, format_fault};
use crate::said;
use hyperslab_collective::attempts::{Attempts, Growing, MARKER, Marker, Removed, Replacing, gone};
use hyperslab_format::attribute::{AttributeEdit, Attributes};
use hyperslab_format::zarr::{
    ArrayMetadata, GroupMetadata, JsonEdit, Map, NodeType, Value, attributes_of_json, attributes_to_json, consolidated,
    node_type,
};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Names, Publishing};
use std::sync::Arc;

/// The attribute by which a step is told from other groups; it is not shown.
const STEP: &str = "hyperslab_step";

/// Attributes of a group as they are stored, of a step.
pub(super) fn of_step(mut attributes: Map<String, Value>) -> Map<String, Value> {
    attributes.insert(STEP.into(), 1.into());
    attributes
}

/// Attributes of a group as they are shown.
pub(super) fn shown_attributes(mut attributes: Map<String, Value>) -> Attributes {
    attributes.shift_remove(STEP);
    attributes_of_json(attributes, None)
}

/// Attributes of a group as they are stored.
pub(super) fn stored_attributes(attributes: &Attributes) -> Result<Map<String, Value>, Fault> {
    attributes_to_json(attributes, None).map_err(|error| format_fault(error).as_kind(FaultKind::Invalid))
}

/// What rank 0 needs to change a node.
pub(super) struct Editing {
    pub(super) attempts: Arc<Attempts>,
    /// The node, below the home.
    pub(super) at: String,
    /// Its name in the store, for people.
    of: String,
    what: String,
    /// Groups that may have consolidated metadata of it.
    ancestors: Vec<String>,
    sync: bool,
}

impl Editing {
    pub(super) fn names(&self) -> &dyn Names {
        &*self.attempts.home.names
    }

    pub(super) fn key(&self) -> String {
        if self.at.is_empty() { METADATA_KEY.into() } else { format!("{}/{METADATA_KEY}", self.at) }
    }

    /// The node, and whether it is an array.
    fn node(&self) -> Result<(StoredNode, NodeType), Fault> {
        let node = read_node(self.names(), &self.at)?.ok_or_else(|| {
            Fault::new(FaultKind::NotFound, format!("{}: there is no array or group '{}'", self.what, self.of))
                .hint("list what there is with arrays() and groups()")
        })?;
        check_changeable(&self.of, &node)?;
        let kind = node_type(&node.metadata, &self.names().full(&self.key())).map_err(format_fault)?;
        Ok((node, kind))
    }

    /// Keeps other programs from changing the array meanwhile, whose metadata say how long it is. Where small objects are
    /// replaced only if they are as they were seen, nothing more is needed; and groups have nothing that grows.
    fn mark(&self, kind: NodeType) -> Result<Option<Marker>, Fault> {
        if kind == NodeType::Group || !matches!(self.names().publishing(), Publishing::Rename) {
            return Ok(None);
        }
        let marker = format!("{}/{MARKER}", self.at);
        let growing = Growing { marker: &marker, of: &self.of, at: &self.at, key: METADATA_KEY };
        self.attempts.begin_growing(&growing).map(Some)
    }

    /// Replaces the metadata of the node by what `change` makes of them; `then` follows while nobody else changes the node.
    pub(super) fn amend(
        &self,
        change: impl Fn(&[u8], NodeType) -> Result<Vec<u8>, Fault>,
        then: impl FnOnce() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (_, kind) = self.node()?;
        let marker = self.mark(kind)?;
        let key = self.key();
        let replaced = self.attempts.until_up_to_date(|| {
            let seen = self.attempts.seen(&key, marker.is_some())?;
            // Once more: whoever had marked it before may have changed it.
            let (node, kind) = self.node()?;
            let bytes = change(&node.metadata, kind)?;
            drop_consolidated(&self.attempts, &self.ancestors)?;
            self.attempts.replace_if((&key, &seen), &bytes, self.sync, || self.attempts.check_still_there())
        });
        if let Err(fault) = replaced {
            return Err(self.attempts.withdrawn(marker, fault));
        }
        let dropped = drop_again(&self.attempts, &self.ancestors);
        let synced = if self.sync { self.attempts.sync_published(&self.at, &self.at) } else { Ok(()) };
        let tidied = then();
        let unmarked = marker.map_or(Ok(()), |marker| {
            let unmarked = self.attempts.unmark(marker, true);
            unmarked.map_err(|fault| self.attempts.left_behind(&format!("{}/{MARKER}", self.at), fault))
        });
        synced.and(dropped).and(tidied).and(unmarked)
    }

    /// Refuses to take away what another program changes in place at this moment.
    fn check_idle(&self, kind: NodeType) -> Result<(), Fault> {
        if kind == NodeType::Array && !self.names().is_link(&self.at) {
            let marker = format!("{}/{MARKER}", self.at);
            // It would go along under the new name.
            let how = Replacing { noted: false, alone: false };
            if let Some(marked) = self.attempts.mark_replaced(&marker, &self.of, how)? {
                self.attempts.unmark(marked, true)?;
            }
        }
        Ok(())
    }

    /// What failed of a node that is not there any more failed for that.
    fn while_there<T>(&self, done: Result<T, Fault>) -> Result<T, Fault> {
        self.attempts.while_there(done).map_err(|fault| match self.names().is_absent(&self.at) {
            true if fault.kind == FaultKind::Storage => gone(&self.of, self.attempts.home.shown()),
            _ => fault,
        })
    }

    /// Takes the node away, also where there is no room left.
    fn delete(&self) -> Result<(), Fault> {
        let (_, kind) = self.node()?;
        match self.delete_by_root(kind) {
            // What fails so has changed nothing of the node.
            Err(fault) if fault.lacks_room() && fault.kind == FaultKind::Storage => self.delete_without_room(kind),
            deleted => deleted,
        }
    }

    fn delete_without_room(&self, kind: NodeType) -> Result<(), Fault> {
        let marker = format!("{}/{MARKER}", self.at);
        let telling: Vec<String> = self.ancestors.iter().map(|group| format!("{group}{METADATA_KEY}")).collect();
        self.attempts.remove_without_room(&Removed {
            name: &self.at,
            of: &self.of,
            key: METADATA_KEY,
            marker: (kind == NodeType::Array).then_some(&marker),
            telling: &telling,
            less: &|key, bytes| consolidated::strip(bytes, key).map_err(format_fault),
            sync: self.sync,
        })?;
        drop_again(&self.attempts, &self.ancestors)
    }

    /// Puts the node out of sight, by one rename, and removes it then; what cannot be removed now goes with the root.
    fn delete_by_root(&self, kind: NodeType) -> Result<(), Fault> {
        self.check_idle(kind)?;
        drop_consolidated(&self.attempts, &self.ancestors)?;
        if matches!(self.names().publishing(), Publishing::Rename) {
            let hidden = self.attempts.next("erased", &self.of)?;
            self.while_there(self.names().rename(&self.at, &hidden))?;
            // What is removed before its name is gone for good would be missed after a loss of power.
            self.synced(&self.at)?;
            let _ = self.names().remove(&hidden);
        } else {
            self.attempts.erase(std::slice::from_ref(&self.at), METADATA_KEY)?;
        }
        let dropped = drop_again(&self.attempts, &self.ancestors);
        self.synced(&self.at).and(dropped)
    }

    /// Makes it durable that something has a name, or none any more.
    fn synced(&self, name: &str) -> Result<(), Fault> {
        let above = name.rsplit_once('/').map_or("", |(above, _)| above);
        if self.sync { self.attempts.sync_published(above, name) } else { Ok(()) }
    }

    fn rename(&self, to: &str) -> Result<(), Fault> {
        let (_, kind) = self.node()?;
        if !matches!(self.names().publishing(), Publishing::Rename) {
            let text = format!("{}: an object store cannot rename", self.what);
            return Err(Fault::new(FaultKind::Unsupported, text).hint("write it anew, and delete the old one"));
        }
        self.check_idle(kind)?;
        drop_consolidated(&self.attempts, &self.ancestors)?;
        if self.attempts.is_taken(to, METADATA_KEY)? || !self.while_there(self.names().rename_new(&self.at, to))? {
            let text = format!("{}: '{}' exists already", self.what, self.names().full(to));
            return Err(Fault::new(FaultKind::Exists, text).hint("delete it first, or choose another name"));
        }
        let unmarked = self.attempts.drop_stray_marker(&format!("{to}/{MARKER}"));
        let unmarked = unmarked.map_err(|fault| self.attempts.left_behind(&format!("{to}/{MARKER}"), fault));
        let dropped = drop_again(&self.attempts, &self.ancestors);
        self.synced(to).and(self.synced(&self.at)).and(dropped).and(unmarked)
    }
}

impl Store {
    /// What rank 0 needs to change a node of this group, or the group itself.
    fn editing(&self, what: &str, name: &str) -> Editing {
        let name = if name.is_empty() { ROOT } else { name };
        let shown = if name == ROOT { self.group.trim_end_matches('/').to_string() } else { self.shown(name) };
        Editing {
            attempts: self.attempts.clone(),
            at: place(&self.base(), name),
            ancestors: if self.staged.is_some() { Vec::new() } else { self.ancestors(&shown) },
            of: shown,
            what: what.to_string(),
            // What is hidden is made durable when it is published.
            sync: self.options.durable && self.staged.is_none(),
        }
    }

    /// Carries out a change of a node, on rank 0; all ranks say what it is.
    pub(super) fn edit(
        &self,
        what: String,
        fields: Vec<(String, String)>,
        name: &str,
        run: impl FnOnce(&Editing) -> Result<(), Fault> + Send + 'static,
    ) -> Result<(), Error> {
        let named = if name.is_empty() { Ok(()) } else { check_path(name) };
        let fault = self.check_writable().and(named).err().map(|fault| fault.context(&what));
        let editing = self.editing(&what, name);
        let mut all = vec![("operation".to_string(), what.clone())];
        all.extend(fields);
        let question = Question::opening(what, all, fault);
        self.comm.agree_on(question, false, move || run(&editing).map(|()| Vec::new()))?;
        self.forget_all();
        self.tell([name]);
        Ok(())
    }

    /// Changes attributes of an array or group by its path, or of this group where that is empty. Collective.
    ///
    /// # Errors
    /// The same on all ranks; nothing has changed then.
    pub fn edit_attributes(&self, name: &str, edit: &AttributeEdit) -> Result<(), Error> {
        let of = if name.is_empty() { String::new() } else { format!("'{name}' in ") };
        let what = format!("change attributes of {of}'{}'", self.path().display());
        let fields = said::attribute_edit(edit);
        let one = edit.clone();
        self.edit(what, fields, name, move |editing| {
            editing.amend(
                |bytes, kind| {
                    let key = editing.key();
                    let is_step = kind == NodeType::Group
                        && GroupMetadata::parse(bytes, &key).is_ok_and(|group| group.attributes.contains_key(STEP));
                    let element = match kind {
                        NodeType::Array => Some(ArrayMetadata::parse(bytes, &key).map_err(format_fault)?.element),
                        NodeType::Group => None,
                    };
                    let of = element.map(|element| (element, editing.of.as_str()));
                    let unfit = |error| format_fault(error).as_kind(FaultKind::Invalid);
                    let mut edit = JsonEdit::of(&one, of).map_err(unfit)?;
                    if is_step {
                        edit.set = of_step(edit.set);
                    }
                    edit.applied(bytes, &key).map_err(format_fault)
                },
                || Ok(()),
            )
        })?;
        if name.is_empty() {
            // As they are read from now on.
            let set = attributes_of_json(stored_attributes(&edit.set)?, None);
            AttributeEdit { set, ..edit.clone() }.apply(&mut self.lock_attributes());
        }
        Ok(())
    }

    /// Deletes an array, a group or a step, with all that is in it: it is put out of sight first, then removed. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when there is none, or another program changes it in place.
    pub fn delete(&self, name: &str) -> Result<(), Error> {
        let what = format!("delete '{name}' from '{}'", self.path().display());
        if name.is_empty() || name == ROOT {
            let fault = Fault::new(FaultKind::Invalid, format!("{what}: the root of a store cannot be deleted in it"));
            return Err(self.comm.attend_with(&what, fault));
        }
        self.edit(what, Vec::new(), name, Editing::delete)?;
        self.listing.hide(name);
        Ok(())
    }

    /// Gives an array, a group or a step another name. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when there is none, the new name is taken, or another program changes it in place.
    pub fn rename(&self, old: &str, new: &str) -> Result<(), Error> {
        let what = format!("rename '{old}' to '{new}' in '{}'", self.path().display());
        let unfit = [old, new].into_iter().find_map(|name| match name.is_empty() || name == ROOT {
            true => Some(Fault::new(FaultKind::Invalid, format!("'{name}' is no name of a node"))),
            false => check_path(name).err(),
        });
        let unfit = unfit.or_else(|| {
            let inside = new.strip_prefix(old).is_some_and(|rest| rest.starts_with('/'));
            let moved = || Fault::new(FaultKind::Invalid, format!("{what}: '{old}' cannot be moved into itself"));
            inside.then(|| moved().hint("choose a name outside of it"))
        });
        if let Some(fault) = unfit {
            return Err(self.comm.attend_with(&what, fault));
        }
        let to = place(&self.base(), new);
        let new_above = new.rsplit_once('/').map(|(above, _)| place(&self.base(), above));
        self.edit(what, vec![("new name".into(), new.into())], old, move |editing| {
            if let Some(above) = new_above {
                let is_group = super::kind_of(editing.names(), &above)? == Some(NodeType::Group);
                if !is_group {
                    let text = format!("{}: there is no group '{}'", editing.what, editing.names().full(&above));
                    return Err(Fault::new(FaultKind::NotFound, text).hint("make it with create_group()"));
                }
            }
            editing.rename(&to)
        })?;
        self.listing.rename(old, new);
        self.tell([new]);
        Ok(())
    }

    /// Names of the published steps of the group, sorted. Local, as [`Store::groups`].
    ///
    /// # Errors
    /// This rank's own, when storage does not answer.
    pub fn steps(&self) -> Result<Vec<String>, Error> {
        let (directory, base) = (self.directory(), self.base());
        let is_step = |name: &String| {
            let key = format!("{}/{METADATA_KEY}", place(&base, name));
            let told = self.told_of(name).unwrap_or_default();
            let bytes = told.or_else(|| directory.read(&key).ok().flatten());
            bytes.is_some_and(|bytes| {
                GroupMetadata::parse(&bytes, &key).is_ok_and(|group| group.attributes.contains_key(STEP))
            })
        };
        Ok(self.groups()?.into_iter().filter(is_step).collect())
    }
}
