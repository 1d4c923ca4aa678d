//! Changing a file that exists: new objects, links, attributes, and datasets in chunks that get new chunks and grow.
//!
//! Nothing that readers use is overwritten but the first blocks of headers, each by one write. What is new lies behind the end
//! of the file; then the superblock says that the file goes that far, and last of all headers lead there. Up to there, everything
//! reads as before. Space that chunks, indexes and messages had before is lost, as it is to HDF5 itself when a file is closed.

use super::changing::{ChangedDataset, index};
use super::content::{Dataset, DatasetStorage, Hdf5Attribute, LinkTarget, MetadataSource};
use super::dense::{
    COMPACT_MAX, DenseLinks, LargeAttribute, OBJECT_BYTES_MAX, ORDER_AHEAD, large_attributes, link_name, link_order,
};
use super::dimensions::FoundDimensions;
use super::policy::SECTOR_BYTES;
use super::reading::{ChangedBlock, DensePlaces, Hdf5File, HeaderDraft, MessageKind, ObjectKind};
use super::writing::{
    NewDataset, NewGroup, NewMember, NewObjects, attributes, chunked_layout, dataset_messages, link, scale_name, table,
    table_message,
};
use crate::error::{Context, Error};
use std::collections::BTreeSet;

/// What is written, and in which order, so that a file has changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hdf5Change {
    /// Bytes behind the end that it had, from the address on that was given.
    pub behind: Vec<u8>,
    /// Bytes in place, each at its address; to be written one after another, once all else is durable.
    pub in_place: Vec<(u64, Vec<u8>)>,
    /// What was there before, to be written in the reverse order if that fails.
    pub before: Vec<(u64, Vec<u8>)>,
    /// The dimensions that it has then, where they were looked for.
    pub found: Option<FoundDimensions>,
}

/// Changes of a file, one after another, which are written together.
pub struct Hdf5Edit<'a> {
    file: &'a Hdf5File,
    source: &'a dyn MetadataSource,
    /// Where what is behind begins.
    at: u64,
    behind: Vec<u8>,
    /// Headers that are made anew, in the order in which they are replaced.
    drafts: Vec<HeaderDraft>,
    /// Blocks in which numbers change.
    blocks: Vec<ChangedBlock>,
    /// Dimensions of the file, where they are known.
    found: Option<FoundDimensions>,
    /// Whether it says that the file goes that far also where nothing is behind.
    reaches: bool,
}

impl<'a> Hdf5Edit<'a> {
    /// Changes of this file, where what is behind its end begins at this address, a multiple of 8.
    ///
    /// # Errors
    /// When its addresses are not those of a file without a user block, or it was set up with other trees than usual.
    pub fn of(file: &'a Hdf5File, source: &'a dyn MetadataSource, at: u64) -> Result<Hdf5Edit<'a>, Error> {
        file.ending_at(source, 0)?;
        file.check_usual_trees(source)?;
        let (behind, drafts, blocks) = Default::default();
        Ok(Hdf5Edit { file, source, at, behind, drafts, blocks, found: None, reaches: false })
    }

    /// The same, where dimensions of the file are known from an earlier change.
    #[must_use]
    pub fn knowing(self, found: Option<FoundDimensions>) -> Hdf5Edit<'a> {
        Hdf5Edit { found, ..self }
    }

    /// Something else lies up to where what is behind begins.
    pub fn reach(&mut self) {
        self.reaches = true;
    }

    fn context(&self) -> Context<'a> {
        Context::new("change HDF5 file", self.file.name())
    }

    /// Where the next bytes behind the end lie.
    fn next(&self) -> u64 {
        self.at + self.behind.len() as u64
    }

    fn add_behind(&mut self, bytes: &[u8]) {
        self.behind.extend_from_slice(bytes);
        self.behind.resize(self.behind.len().next_multiple_of(8), 0);
    }

    /// The header at this address, as it will be.
    fn draft(&mut self, at: u64) -> Result<usize, Error> {
        if let Some(known) = self.drafts.iter().position(|draft| draft.at == at) {
            return Ok(known);
        }
        self.drafts.push(HeaderDraft::read(self.file, self.source, at)?);
        Ok(self.drafts.len() - 1)
    }

    /// The group, or what is in it, that a path leads to in the file as it was.
    fn object(&self, path: &str) -> Result<u64, Error> {
        self.file.header_named(self.source, (None, path))
    }

    /// Adds what is in this tree to the groups that are there; gives the paths of new datasets, and where their headers are.
    ///
    /// # Errors
    /// When a name is taken, or an object cannot be made.
    pub fn add(&mut self, root: &NewGroup) -> Result<Vec<(String, u64)>, Error> {
        let (mut datasets, mut uses) = (Vec::new(), Vec::new());
        let mut found = self.found.take().unwrap_or_default();
        let is_known = found.known.is_some();
        let mut known = found.take_known(self.file, self.source, root.netcdf)?;
        // A group that is there already, and what it gets.
        let mut left = vec![(self.file.root(), String::new(), root)];
        while let Some((at, path, group)) = left.pop() {
            let draft = self.draft(at)?;
            let mut new = NewGroup { members: Vec::new(), ..group.clone() };
            for member in &group.members {
                let name = member.name();
                match (self.drafts[draft].member(self.file, self.source, name)?, member) {
                    (None, _) => new.members.push(member.clone()),
                    (Some(LinkTarget::Object(inner)), NewMember::Group(members))
                        if self.file.kind_at(self.source, inner)? == ObjectKind::Group =>
                    {
                        left.push((inner, format!("{path}{name}/"), members));
                    }
                    (Some(LinkTarget::Soft(_)), NewMember::Group(members)) => {
                        let inside = format!("{path}{name}/");
                        left.push((self.object(&inside)?, inside, members));
                    }
                    (Some(LinkTarget::Object(at)), NewMember::Dataset(dataset))
                        if known.is_bare(&format!("/{path}"), name, at) =>
                    {
                        // What is called like a dimension and is none gets another name in the file.
                        if dataset.dimensions.first() != Some(&dataset.name) {
                            new.members.push(member.clone());
                            continue;
                        }
                        self.fill_dimension(at, dataset)?;
                        known.gets_variable(&format!("/{path}"), name);
                        datasets.push((format!("{path}{name}"), at));
                    }
                    _ => {
                        let expected = format!("a name for '{path}{name}' that is free");
                        return Err(self.context().invalid(expected, "something of this name in the file"));
                    }
                }
            }
            let objects = NewObjects::of(&new, &path, &mut known, self.next())?;
            self.add_behind(&objects.bytes);
            self.link_all(draft, &new, objects.members)?;
            datasets.extend(objects.datasets);
            uses.extend(objects.uses);
        }
        known.are_there();
        found.are_used(uses);
        // Where it is kept, lists may wait.
        self.add_uses(found.take_unsaid(!is_known))?;
        found.known = Some(known).filter(|_| (root.netcdf || is_known) && !found.has_further_names);
        self.found = Some(found);
        Ok(datasets)
    }

    /// Gives a group these members, some of which it was asked for; others are dimensions of those.
    fn link_all(&mut self, draft: usize, asked: &NewGroup, members: Vec<(String, u64)>) -> Result<(), Error> {
        let asked: BTreeSet<&str> = asked.members.iter().map(NewMember::name).collect();
        for (name, at) in members {
            if !asked.contains(&*name) && self.drafts[draft].member(self.file, self.source, &name)?.is_some() {
                let expected = format!("a name for the dimension '{name}' that is free");
                let error = self.context().invalid(expected, "something of this name in its group");
                return Err(error.with_hint("give the dimension another name"));
            }
            self.drafts[draft].link(&name, at);
        }
        Ok(())
    }

    /// Lets dimensions name all datasets that have them, where earlier changes have left that.
    ///
    /// # Errors
    /// When a header has no place for it.
    pub fn add_unsaid(&mut self) -> Result<(), Error> {
        let unsaid = self.found.as_mut().map(|found| found.take_unsaid(true));
        self.add_uses(unsaid.unwrap_or_default())
    }

    /// Lets a dimension that has no variable be this one, where its dataset is: those that have it refer to that.
    fn fill_dimension(&mut self, at: u64, dataset: &NewDataset) -> Result<(), Error> {
        let context = Context::new("make the HDF5 dataset", &dataset.name);
        if dataset.dimensions != [dataset.name.clone()] {
            let expected = "one dimension for a variable that is called like a dimension of the file";
            return Err(context.unsupported(expected, format!("{} of other names", dataset.dimensions.len())));
        }
        let (messages, index) = dataset_messages(dataset, self.next(), &context)?;
        self.add_behind(&index.unwrap_or_default());
        let draft = self.draft(at)?;
        self.drafts[draft].describe(messages);
        let attributes = [&dataset.attributes[..], &[scale_name(&dataset.name)]].concat();
        self.edit_attributes_at(at, &attributes, &|_| false)
    }

    /// Lets dimensions say that datasets have them: addresses of both.
    fn add_uses(&mut self, all: Vec<(u64, Vec<(u64, u32)>)>) -> Result<(), Error> {
        for (at, uses) in all {
            if let Some(attribute) = self.file.used_by(self.source, at, &uses)? {
                self.edit_attributes_at(at, &[attribute], &|_| false)?;
            }
        }
        Ok(())
    }

    /// Takes an object's name away. Its space is lost.
    ///
    /// # Errors
    /// When there is none.
    pub fn delete(&mut self, path: &str) -> Result<(), Error> {
        self.object(path)?;
        self.found = None;
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let draft = self.draft(self.object(above)?)?;
        self.drafts[draft].unlink(self.file, self.source, name)
    }

    /// Gives an object another path, whose group must be there.
    ///
    /// # Errors
    /// When there is none, or the path is taken.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        let at = self.object(from)?;
        let (above, name) = from.rsplit_once('/').unwrap_or(("", from));
        let draft = self.draft(self.object(above)?)?;
        if !matches!(self.drafts[draft].member(self.file, self.source, name)?, Some(LinkTarget::Object(_))) {
            let error = self.context().unsupported(format!("a hard link '{from}'"), "a soft link");
            return Err(error.with_hint("rename what it leads to, or make another link with h5py"));
        }
        let (above, name) = to.rsplit_once('/').unwrap_or(("", to));
        let draft = self.draft(self.object(above)?)?;
        if self.drafts[draft].kind() != Some(ObjectKind::Group) {
            return Err(self.context().invalid(format!("a group '{above}'"), "something else"));
        }
        if self.drafts[draft].member(self.file, self.source, name)?.is_some() {
            return Err(self.context().invalid(format!("a name for '{to}' that is free"), "something of this name"));
        }
        // The new name first: after a crash between two groups it has both.
        self.drafts[draft].link(name, at);
        self.delete(from)
    }

    /// Changes attributes of an object: takes away those of these names, or all that have no meaning to HDF5, and sets others.
    ///
    /// # Errors
    /// When there is no such object, or no place for a value.
    pub fn edit_attributes(
        &mut self,
        path: &str,
        set: &[Hdf5Attribute],
        goes: &dyn Fn(&str) -> bool,
    ) -> Result<(), Error> {
        self.edit_attributes_at(self.object(path)?, set, goes)
    }

    /// The same of the object whose header has this address.
    fn edit_attributes_at(&mut self, at: u64, set: &[Hdf5Attribute], goes: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        let draft = self.draft(at)?;
        let goes = |name: &str| goes(name) || set.iter().any(|attribute| attribute.name == name);
        self.drafts[draft].drop_attributes(self.file, self.source, &goes)?;
        let (messages, values) = attributes(set, self.next())?;
        self.add_behind(&values);
        if !messages.is_empty() {
            self.drafts[draft].count_attributes();
        }
        for message in messages {
            let draft = &mut self.drafts[draft];
            let order = draft.count(MessageKind::AttributeInfo).unwrap_or(0);
            draft.push(MessageKind::Attribute, order as u16, message);
        }
        Ok(())
    }

    /// Gives a dataset in chunks another shape, and chunks that lie elsewhere.
    ///
    /// # Errors
    /// When the file is damaged, or a header has no place for it.
    pub fn change(&mut self, changed: &ChangedDataset) -> Result<(), Error> {
        let index_at = if changed.places.is_empty() { None } else { Some(self.add_index(changed)?) };
        match self.file.header_with(self.source, changed.at, (&changed.shape, index_at)) {
            Err(error) if error.is_unsupported() => self.with_new_header(changed, index_at),
            Err(error) => Err(error),
            Ok(blocks) => match blocks.as_slice() {
                [] => Ok(()),
                [block] if block.is_in_one_sector() => {
                    self.blocks.extend(blocks);
                    Ok(())
                }
                // All of it changes by one write.
                _ => self.with_new_header(changed, index_at),
            },
        }
    }

    /// Makes an index of a dataset, and gives its address.
    fn add_index(&mut self, changed: &ChangedDataset) -> Result<u64, Error> {
        let made = index(self.file, self.source, changed, self.next())?;
        self.add_behind(&made.behind);
        let neighbours = made.changed.into_iter().map(|(at, before, after)| {
            ChangedBlock::of(at, before.to_le_bytes().to_vec(), after.to_le_bytes().to_vec())
        });
        self.blocks.extend(neighbours);
        Ok(made.at)
    }

    /// The same of the dataset with this header, or else with this path.
    ///
    /// # Errors
    /// As [`Hdf5Edit::change`].
    pub fn change_named(
        &mut self,
        path: &str,
        at: Option<u64>,
        changed: impl FnOnce(u64) -> ChangedDataset,
    ) -> Result<(), Error> {
        let at = self.file.header_named(self.source, (at, path))?;
        self.change(&changed(at))
    }

    /// The same by messages that lie elsewhere. A newer kind of index becomes that of older libraries, which newer ones read, too.
    fn with_new_header(&mut self, changed: &ChangedDataset, index: Option<u64>) -> Result<(), Error> {
        let dataset = self.file.dataset_at(self.source, changed.at)?;
        let DatasetStorage::Chunked { chunk, plain_edges: false, .. } = &dataset.storage else {
            let found = "one that is stored otherwise, or without filters at its edge";
            return Err(self.context().unsupported("a dataset in chunks", found));
        };
        let index = index.map_or_else(|| self.add_index(changed), Ok)?;
        let draft = self.draft(changed.at)?;
        let context = self.context();
        let missing = || context.unsupported("a shape and a layout in the header", "none");
        let space = self.drafts[draft].body(MessageKind::Dataspace).ok_or_else(missing)?;
        let begin = if space.first() == Some(&1) { 8 } else { 4 };
        for (extent, d) in changed.shape.iter().zip(0..) {
            let at = begin + 8 * d;
            space.get_mut(at..at + 8).ok_or_else(missing)?.copy_from_slice(&extent.to_le_bytes());
        }
        let layout = self.drafts[draft].body(MessageKind::Layout).ok_or_else(missing)?;
        *layout = chunked_layout(chunk, dataset.datatype.bytes(), index);
        Ok(())
    }

    /// Refuses a dataset in chunks that cannot be changed, before anything is written.
    ///
    /// # Errors
    /// As [`Hdf5Edit::change`].
    pub fn check(mut self, dataset: &Dataset) -> Result<(), Error> {
        let shape = dataset.shape.clone().unwrap_or_default();
        self.change(&ChangedDataset { at: dataset.at, shape, places: Vec::new() })?;
        self.made().map(drop)
    }

    /// Puts links of a group where they shall lie; gives the block in place that leads to those that are added to many.
    fn settle_links(&mut self, draft: &mut HeaderDraft) -> Result<Option<ChangedBlock>, Error> {
        if let Some(places) = draft.dense.filter(|_| !draft.added.is_empty()) {
            if let Some(dense) = DenseLinks::stored(self.file, self.source, places)? {
                return self.grow_links(draft, dense, places).map(Some);
            }
            draft.collapse(self.file, self.source)?;
        }
        if draft.table.as_ref().is_some_and(|table| table.len() > COMPACT_MAX) {
            draft.collapse(self.file, self.source)?;
        }
        let messages: Vec<Vec<u8>> = draft.link_messages().map(<[u8]>::to_vec).collect();
        let (counted, ordered, next) = draft.link_order();
        let has_place =
            |message: &Vec<u8>| message.len() <= OBJECT_BYTES_MAX && link_order(message).is_some() == counted;
        if !draft.is_changed() || messages.len() <= COMPACT_MAX || !messages.iter().all(has_place) {
            return Ok(None);
        }
        if draft.body(MessageKind::LinkInfo).is_none() {
            return Ok(None);
        }
        let mut dense = DenseLinks::new(ordered);
        for message in &messages {
            dense.add(link_name(message), link_order(message), message)?;
        }
        self.behind.resize(self.next().next_multiple_of(SECTOR_BYTES).saturating_sub(self.at) as usize, 0);
        let made = dense.made(self.next())?;
        self.add_behind(&made.behind);
        draft.lead_to(made.places, Some(next.saturating_add(ORDER_AHEAD)));
        Ok(None)
    }

    /// Puts attributes into a heap where one has no place in the header; others go with it.
    fn settle_attributes(&mut self, draft: &mut HeaderDraft) -> Result<(), Error> {
        let Some(ordered) = draft.has_large_attributes() else { return Ok(()) };
        let messages = draft.take_attributes();
        let names = messages.iter().map(|(_, body)| self.file.attribute_named(self.source, body));
        let names = names.collect::<Result<Vec<_>, Error>>()?;
        let each = names.iter().zip(&messages).map(|(name, (order, message))| LargeAttribute {
            name: name.as_bytes(),
            order: *order,
            message,
        });
        let (behind, places) = large_attributes(&each.collect::<Vec<_>>(), ordered, self.next())?;
        self.add_behind(&behind);
        draft.lead_attributes_to(places);
        Ok(())
    }

    /// Adds links to those of a group that lie in a heap.
    fn grow_links(
        &mut self,
        draft: &mut HeaderDraft,
        mut dense: DenseLinks,
        places: DensePlaces,
    ) -> Result<ChangedBlock, Error> {
        let (counted, _, most) = draft.link_order();
        let mut next = dense.next_order()?;
        for (name, at) in std::mem::take(&mut draft.added) {
            let order = match next {
                Some(number) => Some(number),
                None if counted => draft.count(MessageKind::LinkInfo),
                None => None,
            };
            dense.add(name.as_bytes(), order, &link(&name, order, at))?;
            next = next.map(|number| number + 1);
        }
        let made = dense.made(self.next())?;
        self.add_behind(&made.behind);
        // What a header says is a number that no link has reached: it is written once for many of them.
        if let Some(next) = next.filter(|next| next.saturating_add(ORDER_AHEAD / 2) >= most) {
            draft.lead_to(places, Some(next + ORDER_AHEAD));
        }
        let before = self.source.read(places.heap, made.root.len())?;
        Ok(ChangedBlock::of(places.heap, before, made.root))
    }

    /// What is written.
    ///
    /// # Errors
    /// When a header has no place for it.
    pub fn made(mut self) -> Result<Hdf5Change, Error> {
        let mut drafts = std::mem::take(&mut self.drafts);
        let forgets = drafts.iter().any(|draft| draft.table.is_some());
        let mut replaced = Vec::with_capacity(drafts.len());
        let mut roots = Vec::new();
        for draft in &mut drafts {
            roots.extend(self.settle_links(draft)?);
            if !draft.is_changed() {
                continue;
            }
            self.settle_attributes(draft)?;
            if let Some(table) = draft.table.take() {
                let at = self.next();
                let all: Vec<_> = table.iter().map(|link| (link.name.as_str(), link.member.clone())).collect();
                self.add_behind(&self::table(&all, at));
                let message = draft.body(MessageKind::SymbolTable).expect("it has a table");
                message.splice(..16, table_message(at));
            }
            let (block, changed) = draft.made(self.next(), self.context())?;
            self.add_behind(&block);
            replaced.push(changed);
        }
        let superblock = match self.behind.is_empty() && !self.reaches {
            true => None,
            false => Some(self.file.superblock(self.source, self.next(), forgets)?),
        };
        let blocks: Vec<ChangedBlock> =
            superblock.into_iter().chain(self.blocks).chain(replaced).chain(roots).collect();
        let in_place = blocks.iter().map(|block| (block.at, block.after.clone())).collect();
        let before = blocks.into_iter().map(|block| (block.at, block.before)).collect();
        Ok(Hdf5Change { behind: self.behind, in_place, before, found: self.found })
    }
}
