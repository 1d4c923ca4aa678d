//! All objects of a file, by all names that lead to them.

use super::content::{Dataset, Hdf5Attribute, Link, LinkTarget, MetadataSource};
use super::policy::{OBJECTS_MAX, REPEATS_MAX, SOFT_LINKS_DEEP_MAX};
use super::reading::{GlobalHeaps, Hdf5File, ObjectKind};
use crate::error::{Context, Error, excerpt};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A group.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedGroup {
    /// Its path from the root, without a `/` in front.
    pub path: String,
    /// Its attributes; of those that cannot be read, what they are.
    pub attributes: Vec<Hdf5Attribute>,
}

/// A dataset that was met.
pub(super) struct FoundDataset {
    pub(super) path: String,
    pub(super) at: u64,
    pub(super) dataset: Result<Dataset, Error>,
    pub(super) attributes: Vec<Hdf5Attribute>,
}

/// A walk over all objects.
pub(super) struct ObjectWalk<'a> {
    file: &'a Hdf5File,
    source: &'a dyn MetadataSource,
    heaps: Rc<RefCell<GlobalHeaps>>,
    /// Addresses of headers that were met.
    seen: BTreeSet<u64>,
    /// How often one was met again, and how many groups were looked at to see whether it lies in itself.
    repeats: usize,
    found: Vec<FoundDataset>,
    groups: Vec<ListedGroup>,
    /// What lies at each path.
    places: BTreeMap<String, (ObjectKind, u64)>,
    /// Links whose targets are not known yet: their own path, and that of their target.
    soft: Vec<(String, String)>,
}

/// A group and those above it.
struct Above {
    at: u64,
    above: Option<Rc<Above>>,
}

/// A group that is to be looked at.
type GroupLeft = (Rc<Above>, String);

impl<'a> ObjectWalk<'a> {
    /// All datasets and what else is no group, and all groups; and whether any object has several names.
    pub(super) fn all(
        file: &'a Hdf5File,
        source: &'a dyn MetadataSource,
        heaps: Rc<RefCell<GlobalHeaps>>,
    ) -> Result<(Vec<FoundDataset>, Vec<ListedGroup>, bool), Error> {
        let mut walk = ObjectWalk {
            file,
            source,
            heaps,
            seen: BTreeSet::new(),
            repeats: 0,
            found: Vec::new(),
            groups: Vec::new(),
            places: BTreeMap::new(),
            soft: Vec::new(),
        };
        walk.seen.insert(file.root());
        let root = Rc::new(Above { at: file.root(), above: None });
        let links = file.group_at(source, file.root())?;
        let left = walk.links(&root, "", links)?;
        walk.groups_below(left)?;
        walk.follow_soft_links(&root)?;
        Ok((walk.found, walk.groups, walk.repeats > 0))
    }

    fn context(&self) -> Context<'a> {
        Context::new("list HDF5 file", self.file.name())
    }

    /// Not by recursion: a file may say that groups lie in each other, as deep as it likes.
    fn groups_below(&mut self, mut left: Vec<GroupLeft>) -> Result<(), Error> {
        while let Some((group, path)) = left.pop() {
            match self.file.group_at(self.source, group.at) {
                Ok(links) => left.extend(self.links(&group, &path, links)?.into_iter().rev()),
                Err(error) => self.unread(path, error),
            }
        }
        Ok(())
    }

    /// Notes what a group has; gives the groups in it.
    fn links(&mut self, group: &Rc<Above>, within: &str, links: Vec<Link>) -> Result<Vec<GroupLeft>, Error> {
        let mut inner = Vec::new();
        for Link { name, member } in links {
            let path = joined(within, &name);
            match member {
                LinkTarget::Object(at) => inner.extend(self.object(group, path, at)?),
                LinkTarget::Soft(target) => {
                    let target = if target.starts_with('/') { plain(&target) } else { plain(&joined(within, &target)) };
                    self.soft.push((path, target));
                }
                LinkTarget::External { file, path: there } => {
                    let found = format!("an external link to '{}' in '{}'", excerpt(&there), excerpt(&file));
                    self.leads_elsewhere(path, &found);
                }
                LinkTarget::Unknown(kind) => self.leads_elsewhere(path, &format!("a link of kind {kind}")),
            }
            if self.found.len() + self.groups.len() + self.soft.len() > OBJECTS_MAX {
                return Err(self.context().unsupported(format!("at most {OBJECTS_MAX} objects"), "more"));
            }
        }
        Ok(inner)
    }

    /// Notes an object at a path; gives it where it is a group to be looked at.
    fn object(&mut self, group: &Rc<Above>, path: String, at: u64) -> Result<Option<GroupLeft>, Error> {
        let kind = match self.file.kind_at(self.source, at) {
            Ok(kind) => kind,
            Err(error) => {
                self.unread(path, error);
                return Ok(None);
            }
        };
        if !self.seen.insert(at) && self.is_above(at, kind, group)? {
            return Ok(None);
        }
        self.places.insert(path.clone(), (kind, at));
        if kind == ObjectKind::Datatype {
            return Ok(None);
        }
        let attributes = self.file.readable_attributes(self.source, at, &self.heaps).unwrap_or_default();
        if kind == ObjectKind::Dataset {
            let dataset = self.file.dataset_at(self.source, at);
            self.found.push(FoundDataset { path, at, dataset, attributes });
            return Ok(None);
        }
        self.groups.push(ListedGroup { path: path.clone(), attributes });
        Ok(Some((Rc::new(Above { at, above: Some(group.clone()) }), path)))
    }

    /// Whether something that was met before is a group that lies in itself here. How often that is asked is limited: few
    /// links can make very many paths.
    fn is_above(&mut self, at: u64, kind: ObjectKind, group: &Rc<Above>) -> Result<bool, Error> {
        let mut next = Some(group).filter(|_| kind == ObjectKind::Group);
        self.repeats += 1;
        while let Some(one) = next {
            if one.at == at {
                return Ok(true);
            }
            self.repeats += 1;
            next = one.above.as_ref();
        }
        if self.repeats > REPEATS_MAX {
            let expected = format!("at most {REPEATS_MAX} further names of objects");
            return Err(self.context().unsupported(expected, "more"));
        }
        Ok(false)
    }

    /// Follows links to what is there, which may lead to others.
    fn follow_soft_links(&mut self, root: &Rc<Above>) -> Result<(), Error> {
        for _ in 0..SOFT_LINKS_DEEP_MAX {
            let (mut left, before) = (Vec::new(), self.soft.len());
            for (path, target) in std::mem::take(&mut self.soft) {
                match self.places.get(&target) {
                    // A group that has the link would have itself.
                    Some((ObjectKind::Group, _)) if is_within(&path, &target) => {}
                    Some(&(_, at)) => left.extend(self.object(root, path, at)?),
                    None if target.is_empty() => {}
                    None => self.soft.push((path, target)),
                }
            }
            let found = self.soft.len() < before;
            self.groups_below(left)?;
            if !found {
                break;
            }
        }
        for (path, target) in std::mem::take(&mut self.soft) {
            self.leads_elsewhere(path, &format!("a soft link to '/{}', where nothing is", excerpt(&target)));
        }
        Ok(())
    }

    fn leads_elsewhere(&mut self, path: String, found: &str) {
        let error = Context::new("read HDF5 dataset", &path).unsupported("an array of this file", found);
        self.unread(path, error.with_hint("read it with h5py"));
    }

    fn unread(&mut self, path: String, error: Error) {
        self.found.push(FoundDataset { path, at: u64::MAX, dataset: Err(error), attributes: Vec::new() });
    }
}

fn joined(within: &str, name: &str) -> String {
    if within.is_empty() { name.into() } else { format!("{within}/{name}") }
}

/// A path without parts that lead nowhere.
fn plain(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/")
}

fn is_within(path: &str, group: &str) -> bool {
    path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}
