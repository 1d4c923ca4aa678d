//! What is in a group, as all ranks know it.
//!
//! Names are found by rank 0 when the group is opened, and change only where the program of each rank does the same: by a call
//! that blocks, or when a request is waited for. So no rank waits for another one to list them, and lists do not differ. What
//! requests of this program that are under way will have made is known by itself.

use hyperslab_format::zarr::{ArrayMetadata, NodeType};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Listing(Arc<Mutex<Nodes>>);

#[derive(Default)]
struct Nodes {
    /// Names, and what each is, once that is known.
    shown: BTreeMap<String, Option<NodeType>>,
    /// Arrays that requests have made, and that are shown by the next call that blocks.
    made: BTreeSet<String>,
    /// Arrays that requests write: how many do, and what the last of them makes, if it makes one.
    under_way: BTreeMap<String, (usize, Option<ArrayMetadata>)>,
}

impl Listing {
    /// Of these names, of which the kinds are not known yet.
    pub(super) fn of(names: impl IntoIterator<Item = String>) -> Listing {
        let listing = Listing::default();
        listing.refresh(names);
        listing
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all, and takes these names.
    pub(super) fn refresh(&self, names: impl IntoIterator<Item = String>) {
        let mut nodes = self.nodes();
        nodes.shown = names.into_iter().map(|name| (name, None)).collect();
        nodes.made.clear();
    }

    /// Shows nodes of this kind.
    pub(super) fn show<'a>(&self, names: impl IntoIterator<Item = &'a str>, kind: NodeType) {
        let mut nodes = self.nodes();
        for name in names {
            nodes.made.remove(name);
            nodes.shown.insert(name.to_string(), Some(kind));
        }
    }

    /// A call that blocks shows what the requests before it have made: all of them are over, on all ranks.
    pub(super) fn settle(&self) {
        let mut nodes = self.nodes();
        let made = std::mem::take(&mut nodes.made);
        nodes.shown.extend(made.into_iter().map(|name| (name, Some(NodeType::Array))));
    }

    /// A request begins that writes these arrays, and makes those of which metadata are given.
    pub(super) fn begin(&self, writes: &[(String, Option<ArrayMetadata>)]) {
        let mut nodes = self.nodes();
        for (name, metadata) in writes {
            let under_way = nodes.under_way.entry(name.clone()).or_default();
            under_way.0 += 1;
            under_way.1 = metadata.clone().or(under_way.1.take());
        }
    }

    /// It is over; what it made, if it succeeded, is shown by a later call.
    pub(super) fn end(&self, writes: &[(String, Option<ArrayMetadata>)], succeeded: bool) {
        let mut nodes = self.nodes();
        for (name, metadata) in writes {
            if let Some(under_way) = nodes.under_way.get_mut(name) {
                under_way.0 -= 1;
                if under_way.0 == 0 {
                    nodes.under_way.remove(name);
                }
            }
            if succeeded && metadata.is_some() {
                nodes.made.insert(name.clone());
            }
        }
    }

    /// Whether a request of this program writes the array.
    pub(super) fn is_under_way(&self, name: &str) -> bool {
        self.nodes().under_way.contains_key(name)
    }

    /// What requests that are under way will have made of an array.
    pub(super) fn coming(&self, name: &str) -> Option<ArrayMetadata> {
        self.nodes().under_way.get(name)?.1.clone()
    }

    /// The nodes of this kind, sorted; `find` tells the kind of one whose kind is not known, nothing if it is none.
    pub(super) fn of_kind<E>(
        &self,
        wanted: NodeType,
        find: impl Fn(&str) -> Result<Option<NodeType>, E>,
    ) -> Result<Vec<String>, E> {
        let shown = self.nodes().shown.clone();
        let mut names = Vec::new();
        for (name, known) in shown {
            let kind = match known {
                Some(kind) => Some(kind),
                None => find(&name)?,
            };
            if known.is_none() && kind.is_some() {
                self.nodes().shown.entry(name.clone()).and_modify(|known| *known = known.or(kind));
            }
            if kind == Some(wanted) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_format::zarr::Codecs;
    use hyperslab_layout::Kind;

    fn metadata(extent: u64) -> Option<ArrayMetadata> {
        ArrayMetadata::new("a", &[extent], Kind::Float64, &[1], Codecs::plain(false)).ok()
    }

    fn arrays(listing: &Listing) -> Vec<String> {
        let known = |name: &str| Ok::<_, ()>(if name == "none" { None } else { Some(NodeType::Array) });
        listing.of_kind(NodeType::Array, known).unwrap()
    }

    #[test]
    fn what_a_request_makes_is_shown_by_the_next_call_and_known_at_once() {
        let listing = Listing::of(["old".to_string(), "none".to_string()]);
        let (first, second) = ([("new".to_string(), metadata(2))], [("new".to_string(), metadata(3))]);
        listing.begin(&first);
        listing.begin(&second);
        assert_eq!(arrays(&listing), ["old"]);
        assert_eq!(listing.coming("new").unwrap().shape, [3], "the last one counts");
        listing.end(&first, true);
        assert!(listing.is_under_way("new") && listing.coming("new").is_some());
        listing.end(&second, false);
        assert!(!listing.is_under_way("new") && listing.coming("new").is_none());
        assert_eq!(arrays(&listing), ["old"], "not before all ranks know");
        listing.settle();
        assert_eq!(arrays(&listing), ["new", "old"]);
    }

    #[test]
    fn a_change_of_an_array_that_is_coming_keeps_what_it_will_be() {
        let listing = Listing::default();
        listing.begin(&[("a".into(), metadata(2))]);
        listing.begin(&[("a".into(), None)]);
        assert_eq!(listing.coming("a").unwrap().shape, [2]);
    }

    #[test]
    fn kinds_are_looked_up_once() {
        let listing = Listing::of(["a".to_string()]);
        listing.show(["step"], NodeType::Group);
        assert_eq!(arrays(&listing), ["a"]);
        let never = |name: &str| Err(name.to_string());
        assert_eq!(listing.of_kind(NodeType::Group, never).unwrap(), ["step"]);
    }
}
