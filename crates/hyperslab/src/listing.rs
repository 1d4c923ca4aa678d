//! What is in a group, as all ranks know it.
//!
//! Names and kinds are found by rank 0 when the group is opened, and change only where the program of each rank does the same:
//! by a collective call that blocks, or when a request is waited for. So no rank waits for another one to list them, and lists
//! do not differ. What requests of this program that are under way will have made is known by itself. All openings of a group
//! in one communicator share what they know of its requests.

use hyperslab_format::zarr::{ArrayMetadata, NodeType};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// See the module. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Listing(Arc<Mutex<Nodes>>);

/// The groups that are open in a communicator, by where they lie.
#[derive(Default)]
pub(crate) struct Listings(Mutex<BTreeMap<String, Weak<Mutex<Nodes>>>>);

#[derive(Default)]
struct Nodes {
    /// Names, and what each is, once that is known.
    shown: BTreeMap<String, Option<NodeType>>,
    /// Arrays that requests have made, and by which request: shown once all ranks know that it is over.
    made: BTreeMap<String, u64>,
    /// Arrays that requests write, by those requests, in their order.
    under_way: BTreeMap<String, Vec<Pending>>,
}

/// A request that writes an array.
struct Pending {
    number: u64,
    /// What it makes, if it makes one, and whether that may replace what is there.
    makes: Option<Coming>,
    replaces: bool,
}

/// What an array will be that a request makes.
#[derive(Clone, Debug)]
pub(crate) enum Coming {
    /// This, though perhaps in other chunks.
    Known(Box<ArrayMetadata>),
    /// This rank holds no piece of it, and does not know the type of its elements.
    Untyped,
}

/// Arrays that a request writes, and what it makes of them, if it makes any.
pub(crate) type Writes = Vec<(String, Option<Coming>)>;

/// A node that rank 0 found, and what it is, if that was looked at.
pub(crate) type Found = (String, Option<NodeType>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listings {
    /// That of a group that lies here, opened once more with these nodes.
    pub(crate) fn open(&self, place: String, found: impl IntoIterator<Item = Found>, settled: u64) -> Listing {
        let mut all = lock(&self.0);
        all.retain(|_, group| group.strong_count() > 0);
        let listing = all.get(&place).and_then(Weak::upgrade).map_or_else(Listing::default, Listing);
        all.insert(place, Arc::downgrade(&listing.0));
        drop(all);
        listing.refresh(found, settled);
        listing
    }
}

impl Listing {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        lock(&self.0)
    }

    /// Forgets what is known, and takes these nodes; what requests after `settled` make may not be among them.
    pub(crate) fn refresh(&self, found: impl IntoIterator<Item = Found>, settled: u64) {
        let mut nodes = self.nodes();
        nodes.shown = found.into_iter().collect();
        nodes.made.retain(|_, number| *number > settled);
    }

    /// Shows nodes of this kind.
    pub(crate) fn show<'a>(&self, names: impl IntoIterator<Item = &'a str>, kind: NodeType) {
        let mut nodes = self.nodes();
        for name in names {
            nodes.made.remove(name);
            nodes.shown.insert(name.to_string(), Some(kind));
        }
    }

    /// A node is gone.
    pub(crate) fn hide(&self, name: &str) {
        let mut nodes = self.nodes();
        nodes.made.remove(name);
        nodes.shown.remove(name);
    }

    /// A node has another name; either may be the path of one in a group below, which is not listed here.
    pub(crate) fn rename(&self, old: &str, new: &str) {
        let mut nodes = self.nodes();
        nodes.made.remove(old);
        let kind = nodes.shown.remove(old).flatten();
        if !new.contains('/') {
            nodes.shown.insert(new.to_string(), kind);
        }
    }

    /// A request with this number begins that writes these arrays; what it makes may replace what is there, or not.
    pub(crate) fn begin(&self, writes: Writes, number: u64, replaces: bool) -> UnderWay {
        let mut nodes = self.nodes();
        for (name, makes) in &writes {
            let pending = Pending { number, makes: makes.clone(), replaces };
            nodes.under_way.entry(name.clone()).or_default().push(pending);
        }
        drop(nodes);
        UnderWay { listing: self.clone(), writes, number, made: false }
    }

    /// Whether a request of this program writes the array.
    pub(crate) fn is_under_way(&self, name: &str) -> bool {
        self.nodes().under_way.contains_key(name)
    }

    /// What requests that are under way will have made of an array.
    pub(crate) fn coming(&self, name: &str) -> Option<Coming> {
        let nodes = self.nodes();
        let taken = nodes.shown.contains_key(name) || nodes.made.contains_key(name);
        let coming = |before: Option<Coming>, one: &Pending| match &one.makes {
            Some(makes) if one.replaces || !(taken || before.is_some()) => Some(makes.clone()),
            // What finds the name taken will fail, and what changes an array leaves it what it is.
            _ => before,
        };
        nodes.under_way.get(name)?.iter().fold(None, coming)
    }

    /// The nodes of this kind, sorted, where requests up to `settled` are over on all ranks; `find` tells the kind of one whose
    /// kind is not known, nothing if it is none.
    pub(crate) fn of_kind<E>(
        &self,
        wanted: NodeType,
        settled: u64,
        find: impl Fn(&str) -> Result<Option<NodeType>, E>,
    ) -> Result<Vec<String>, E> {
        let shown = self.nodes().settle(settled).clone();
        let mut names = Vec::new();
        for (name, known) in shown {
            if self.kind_of(&name, known, &find)? == Some(wanted) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Whether anything of this name is shown, where requests up to `settled` are over on all ranks.
    pub(crate) fn lists(&self, name: &str, settled: u64) -> bool {
        self.nodes().settle(settled).contains_key(name)
    }

    /// Whether there is a node of this kind with this name, as [`Listing::of_kind`] lists them.
    pub(crate) fn has<E>(
        &self,
        (name, wanted): (&str, NodeType),
        settled: u64,
        find: impl Fn(&str) -> Result<Option<NodeType>, E>,
    ) -> Result<bool, E> {
        let known = self.nodes().settle(settled).get(name).copied();
        Ok(match known {
            Some(known) => self.kind_of(name, known, &find)? == Some(wanted),
            None => false,
        })
    }

    /// The kind of a node of which perhaps that is known, and is from now on. Nobody has the nodes to himself while storage is
    /// asked.
    fn kind_of<E>(
        &self,
        name: &str,
        known: Option<NodeType>,
        find: impl Fn(&str) -> Result<Option<NodeType>, E>,
    ) -> Result<Option<NodeType>, E> {
        if known.is_some() {
            return Ok(known);
        }
        let kind = find(name)?;
        let shown = &mut self.nodes().shown;
        match kind {
            Some(_) => {
                shown.entry(name.to_string()).and_modify(|known| *known = known.or(kind));
            }
            // It is no node.
            None => drop(shown.remove(name)),
        }
        Ok(kind)
    }
}

impl Nodes {
    /// What is shown when requests up to this one are over on all ranks.
    fn settle(&mut self, settled: u64) -> &BTreeMap<String, Option<NodeType>> {
        if self.made.values().any(|number| *number <= settled) {
            let made = std::mem::take(&mut self.made);
            let (over, left): (BTreeMap<_, _>, _) = made.into_iter().partition(|(_, number)| *number <= settled);
            self.made = left;
            self.shown.extend(over.into_keys().map(|name| (name, Some(NodeType::Array))));
        }
        &self.shown
    }
}

/// A request that writes arrays of a group, until it is over.
pub(crate) struct UnderWay {
    listing: Listing,
    writes: Writes,
    number: u64,
    made: bool,
}

impl UnderWay {
    /// It succeeded: what it made is shown once all ranks know.
    pub(crate) fn succeeded(mut self) {
        self.made = true;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut nodes = self.listing.nodes();
        for (name, makes) in std::mem::take(&mut self.writes) {
            if let Some(under_way) = nodes.under_way.get_mut(&name) {
                under_way.retain(|one| one.number != self.number);
                if under_way.is_empty() {
                    nodes.under_way.remove(&name);
                }
            }
            if self.made && makes.is_some() {
                // It is there from the first request on that made it.
                nodes.made.entry(name).or_insert(self.number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_format::zarr::Codecs;
    use hyperslab_layout::Kind;

    fn makes(extent: u64) -> Writes {
        let metadata = ArrayMetadata::new("a", &[extent], Kind::Float64, &[1], Codecs::plain(false)).unwrap();
        vec![("new".into(), Some(Coming::Known(Box::new(metadata))))]
    }

    fn shape(listing: &Listing) -> Option<Vec<u64>> {
        match listing.coming("new") {
            Some(Coming::Known(metadata)) => Some(metadata.shape),
            _ => None,
        }
    }

    fn arrays(listing: &Listing, settled: u64) -> Vec<String> {
        let known = |name: &str| Ok::<_, ()>(if name == "none" { None } else { Some(NodeType::Array) });
        listing.of_kind(NodeType::Array, settled, known).unwrap()
    }

    #[test]
    fn what_a_request_makes_is_known_at_once_and_shown_when_all_ranks_know() {
        let listing = Listing::default();
        listing.refresh([("old".to_string(), None), ("none".to_string(), None)], 0);
        let (first, second) = (listing.begin(makes(2), 1, true), listing.begin(makes(3), 2, true));
        assert_eq!(arrays(&listing, 0), ["old"]);
        assert_eq!(shape(&listing), Some(vec![3]), "the last one counts");
        first.succeeded();
        assert!(listing.is_under_way("new") && shape(&listing).is_some());
        drop(second);
        assert!(!listing.is_under_way("new") && shape(&listing).is_none());
        assert_eq!(arrays(&listing, 0), ["old"], "not before all ranks know");
        assert_eq!(arrays(&listing, 1), ["new", "old"]);
        assert_eq!(arrays(&listing, 0), ["new", "old"], "what was shown stays");
    }

    #[test]
    fn what_finds_its_name_taken_makes_nothing() {
        let listing = Listing::default();
        let first = listing.begin(makes(2), 1, false);
        let second = listing.begin(makes(3), 2, false);
        assert_eq!(shape(&listing), Some(vec![2]));
        let change = listing.begin(vec![("new".into(), None)], 3, false);
        assert_eq!(shape(&listing), Some(vec![2]), "a change keeps what it will be");
        drop(first);
        assert_eq!(shape(&listing), Some(vec![3]), "when the first failed, it is the second");
        drop((second, change));
        listing.show(["new"], NodeType::Array);
        let _third = listing.begin(makes(4), 4, false);
        assert_eq!(shape(&listing), None);
    }

    #[test]
    fn an_array_is_shown_from_the_first_request_on_that_made_it() {
        let listing = Listing::default();
        let (first, second) = (listing.begin(makes(2), 1, true), listing.begin(makes(3), 2, true));
        first.succeeded();
        second.succeeded();
        listing.refresh([], 0);
        assert_eq!(arrays(&listing, 1), ["new"]);
    }

    #[test]
    fn kinds_are_looked_up_once_and_openings_share_what_they_know() {
        let listings = Listings::default();
        let listing = listings.open("/a/".into(), [("a".to_string(), None)], 0);
        listing.show(["step"], NodeType::Group);
        assert_eq!(arrays(&listing, 0), ["a"]);
        let never = |name: &str| Err(name.to_string());
        assert_eq!(listing.of_kind(NodeType::Group, 0, never).unwrap(), ["step"]);
        let under_way = listing.begin(makes(1), 1, false);
        let again = listings.open("/a/".into(), [], 0);
        let other = listings.open("/b/".into(), [], 0);
        assert!(again.is_under_way("new") && !other.is_under_way("new"));
        drop((under_way, listing, again));
        assert!(!listings.open("/a/".into(), [], 0).is_under_way("new"));
    }
}
