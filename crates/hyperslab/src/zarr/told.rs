//! What nodes are, as rank 0 told, where ranks see a store by several clients of its file system.
//!
//! There no rank looks for itself at what the program may have changed: its client may show what was there before. Rank 0 tells what
//! is in a group when it is opened or refreshed, and what each collective call has changed, in an agreement of its own.

use super::known::ARRAYS_MAX;
use super::nodes::{ROOT, check_there, place, read_node};
use super::opening::{KINDS_MAX, nodes_of};
use super::{ArrayInfo, METADATA_KEY, Store};
use crate::error::format_fault;
use hyperslab_format::zarr::{ArrayMetadata, NodeType, node_type};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Names, Reader, Writer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Metadata, as those of v3, by places below the home; when they are too many, all are forgotten. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct ToldNodes(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl ToldNodes {
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a node, with all that is in it.
    fn forget(&self, at: &str) {
        let below = |known: &str| at.is_empty() || known.strip_prefix(at).is_some_and(|rest| rest.starts_with('/'));
        self.nodes().retain(|known, _| known != at && !below(known));
    }

    fn keep(&self, at: String, metadata: &[u8]) {
        let mut nodes = self.nodes();
        if nodes.len() >= ARRAYS_MAX {
            nodes.clear();
        }
        nodes.insert(at, metadata.to_vec());
    }
}

/// What rank 0 finds at some places: the metadata of each, and those of the nodes in a group.
fn found(names: &dyn Names, places: &[String]) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let mut found = Vec::new();
    for at in places {
        let Some(node) = read_node(names, at)? else { continue };
        let is_group = node_type(&node.metadata, at).is_ok_and(|kind| kind == NodeType::Group);
        found.push((at.clone(), node.metadata));
        if !is_group {
            continue;
        }
        let group = if at.is_empty() { String::new() } else { format!("{at}/") };
        for (name, _) in nodes_of(names, &group)?.into_iter().take(KINDS_MAX) {
            let inside = place(&group, &name);
            // What is wrong with one node is an error of the call that looks at it.
            if let Ok(Some(node)) = read_node(names, &inside) {
                found.push((inside, node.metadata));
            }
        }
    }
    Ok(found)
}

impl Store {
    /// Tells all ranks what these nodes of the group are by now, and what is in them; the empty name is the group. Collective
    /// where ranks have several clients, and nothing elsewhere. What cannot be told is not known then.
    pub(super) fn tell<'a>(&self, nodes: impl IntoIterator<Item = &'a str>) {
        if !self.mounts.are_apart() {
            return;
        }
        let base = self.base();
        let at = |name: &str| match name {
            "" => base.trim_end_matches('/').to_string(),
            name => place(&base, name),
        };
        self.tell_places(nodes.into_iter().map(at).collect());
    }

    /// The same of a step by its path in the store, which has been published.
    pub(super) fn tell_published(&self, at: &str) {
        if self.mounts.are_apart() {
            self.tell_places(vec![self.home().name(at)]);
        }
    }

    fn tell_places(&self, places: Vec<String>) {
        let fields = vec![("nodes to be looked at".to_string(), places.join(", "))];
        let question = Question::opening(format!("look at '{}'", self.path().display()), fields, None);
        let (names, wanted) = (self.directory(), places.clone());
        let told = self.comm.agree_aside(question, move || {
            let found = found(&*names, &wanted)?;
            Ok(found.iter().fold(Writer::default(), |w, (at, node)| w.bytes(at.as_bytes()).bytes(node)).0)
        });
        places.iter().for_each(|at| self.told.forget(at));
        let told = told.unwrap_or_default();
        let mut r = Reader::new(&told);
        while let (Some(at), Some(metadata)) = (r.text(), r.bytes()) {
            self.told.keep(at, metadata);
        }
    }

    /// Keeps what rank 0 told of an array in some other call.
    pub(super) fn was_told(&self, name: &str, metadata: &[u8]) {
        if self.mounts.are_apart() {
            self.told.keep(place(&self.base(), name), metadata);
        }
    }

    /// Whether one client of a shared file system handles storage for all ranks. Local.
    pub fn goes_by_one_client(&self) -> bool {
        self.mounts.are_apart()
    }

    /// Whether this rank can say what an array is, or that it is not there: not where it was not told, and may not look. Local.
    pub fn can_look_at(&self, name: &str) -> bool {
        let known = || self.told.nodes().contains_key(&place(&self.base(), name)) || self.is_listed_away(name);
        !self.mounts.hide_from_here() || self.listing.coming(name).is_some() || known()
    }

    /// Whether the listing tells that there is no such node in the group.
    fn is_listed_away(&self, name: &str) -> bool {
        name != ROOT && !name.contains('/') && !self.listing.lists(name, self.comm.line().settled())
    }

    /// What a node is as rank 0 told; `None` where nothing was told and this rank may look for itself.
    pub(super) fn told_of(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        if !self.mounts.are_apart() {
            return Ok(None);
        }
        if let Some(metadata) = self.told.nodes().get(&place(&self.base(), name)) {
            return Ok(Some(metadata.clone()));
        }
        if self.is_listed_away(name) {
            let text = format!("there is no array '{name}' in '{}'", self.path().display());
            return Err(Fault::new(FaultKind::NotFound, text).hint("list the arrays with arrays()"));
        }
        self.mounts.check_alone(&format!("look at '{name}'"))?;
        Ok(None)
    }

    /// What an array is as rank 0 told, if it was told.
    pub(super) fn told_array(&self, name: &str) -> Result<Option<ArrayInfo>, Fault> {
        check_there(name)?;
        let Some(metadata) = self.told_of(name)? else { return Ok(None) };
        let key = self.directory().full(&format!("{}/{METADATA_KEY}", place(&self.base(), name)));
        if node_type(&metadata, &key).map_err(format_fault)? == NodeType::Group {
            let text = format!("'{name}' in '{}' is a group, not an array", self.path().display());
            return Err(Fault::new(FaultKind::NotFound, text).hint(format!("open it with group('{name}')")));
        }
        Ok(Some(ArrayInfo { metadata: ArrayMetadata::parse(&metadata, &key).map_err(format_fault)? }))
    }
}
