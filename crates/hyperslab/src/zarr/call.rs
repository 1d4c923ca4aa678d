//! Reading and writing arrays of a group.

use super::{ARRAYS, ASIDE, MARKER, METADATA_KEY, NewArray, Store, WriteAsk, check_name, read_array, sweep};
use crate::array::{LocalArray, check_ranks, natural_chunks};
use crate::course::{Call, Compiled, choose_parameters};
use crate::error::{Error, format_fault};
use crate::report::Report;
use hyperslab_format::zarr::{ArrayMetadata, Codecs, Map, Value, fill_from_json};
use hyperslab_layout::{Distribution, ElementType, Section};
use hyperslab_pack::convert_scalar;
use hyperslab_plan::{Ask, Direction, Placement, Stored, Transfer};
use hyperslab_real::Directory;
use hyperslab_world::{Exposed, Fault, FaultKind, Reader, Writer};
use std::cell::RefCell;
use std::sync::Arc;

/// What rank 0 tells of an array: the directory that holds it, whether it is new, and its metadata.
struct Told {
    prefix: String,
    fresh: bool,
    metadata: ArrayMetadata,
}

/// The stored array that metadata describe.
pub(super) fn stored(metadata: &ArrayMetadata, prefix: &str, fresh: bool) -> Stored {
    let element = metadata.stored_element();
    let fill = convert_scalar(&metadata.fill_value, ElementType::native(metadata.element), element);
    Stored {
        shape: metadata.shape.clone(),
        element,
        fill: fill[..element.bytes() as usize].into(),
        order: metadata.codecs.permutation(metadata.shape.len()),
        placement: Placement::Chunks {
            prefix: prefix.into(),
            chunk: metadata.chunk_shape.clone(),
            keys: metadata.key_encoding,
            codecs: Arc::new(metadata.codecs.clone()),
            fresh,
        },
    }
}

fn tell(w: Writer, told: &[Told]) -> Result<Vec<u8>, Fault> {
    let mut w = w;
    for Told { prefix, fresh, metadata } in told {
        let json = metadata.to_json(prefix).map_err(format_fault)?;
        w = w.bytes(prefix.as_bytes()).number(u64::from(*fresh)).bytes(&json);
    }
    Ok(w.0)
}

fn hear(payload: &[u8]) -> Result<Vec<Told>, Fault> {
    let mut r = Reader::new(payload);
    r.bytes();
    let mut told = Vec::new();
    while let Some(prefix) = r.text() {
        let broken = || Fault::new(FaultKind::Peer, "rank 0 told of an array in a way that makes no sense");
        let fresh = r.number().ok_or_else(broken)? == 1;
        let metadata = ArrayMetadata::parse(r.bytes().ok_or_else(broken)?, &prefix).map_err(format_fault)?;
        told.push(Told { prefix, fresh, metadata });
    }
    Ok(told)
}

/// The section to move, checked against the stored array and the distribution.
pub(crate) fn checked_section(
    name: &str,
    section: Option<&Section>,
    shape: &[u64],
    distribution: &Distribution,
) -> Result<Section, Fault> {
    let section = section.cloned().unwrap_or_else(|| Section::whole(shape));
    let fail = |text: String, hint: &str| Err(Fault::new(FaultKind::Invalid, text).hint(hint));
    if let Err(error) = section.check(shape) {
        let text = error.to_string();
        let (text, hint) = text.split_once("\n  hint: ").unwrap_or((&text, "the array's shape bounds the section"));
        return fail(format!("section {section} of '{name}': {text}"), hint);
    }
    if section.shape() != distribution.shape() {
        return fail(
            format!(
                "the distribution has shape {:?}, but section {section} of '{name}' (shape {shape:?}) has {:?}",
                distribution.shape(),
                section.shape()
            ),
            "a distribution spreads the section's own index space: give it the section's shape",
        );
    }
    Ok(section)
}

impl Store {
    /// Metadata of a new array.
    fn new_metadata(ask: &WriteAsk, new: &NewArray) -> Result<ArrayMetadata, Fault> {
        let kind = new.kind.unwrap_or(ask.array.element.kind);
        let shape = ask.distribution.shape();
        let chunks = new.chunks.clone().unwrap_or_else(|| natural_chunks(&ask.distribution, true, kind.bytes()));
        let codecs = new.codecs.clone().unwrap_or_else(|| Codecs::plain(true));
        let mut metadata = ArrayMetadata::new(&ask.name, shape, kind, &chunks, codecs).map_err(format_fault)?;
        if let Some(value) = &new.fill_value {
            // The same words as for a value that was read, but here it is the caller's.
            let unfit = |error| Fault { kind: FaultKind::Invalid, ..format_fault(error) };
            metadata.fill_value = fill_from_json(kind, value, &ask.name).map_err(unfit)?;
        }
        metadata.dimension_names.clone_from(&new.dimension_names);
        metadata.attributes = new.attributes.clone();
        metadata.check(&ask.name).map_err(format_fault)?;
        Ok(metadata)
    }

    /// Writes arrays, whole and new, or sections of existing ones. Collective. New arrays become visible when all of
    /// the call is done; in a step, when the step is. With dedicated servers, this returns when the data have left; what
    /// goes wrong after that is an error of the next collective call, or of publishing or closing.
    ///
    /// # Errors
    /// The same on all ranks; nothing new is visible then, and of an updated array each chunk is old or new.
    pub fn write(&mut self, asks: &[WriteAsk], new: &NewArray) -> Result<Report, Error> {
        if self.comm.goes_on_alone() {
            return Ok(self.write_later(asks.to_vec(), new.clone(), false).wait()?.1);
        }
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let what = format!("write of {} to '{}'", listed(&names), self.path().display());
        let update = asks.iter().any(|ask| ask.section.is_some());
        let prepared = self.check_writable(&what).and_then(|()| check_asks(&names)).and_then(|()| {
            if update {
                return Ok(Vec::new());
            }
            asks.iter().map(|ask| Store::new_metadata(ask, new)).collect::<Result<Vec<_>, _>>()
        });
        let (metadata, fault) = split(prepared);
        let metadata = metadata.unwrap_or_default();
        let users = asks
            .iter()
            .map(|ask| ask.array.expose(&ask.name, &ask.distribution, (self.comm.rank(), self.ranks)))
            .collect();
        let (users, unfit) = split::<Vec<Exposed>>(users);
        let mut fields = vec![
            ("operation".to_string(), "write".to_string()),
            ("directory".into(), self.path().display().to_string()),
        ];
        fields.push((
            "options of new arrays".into(),
            format!("{:?}", NewArray { attributes: Map::new(), ..new.clone() }),
        ));
        fields.push(("attributes of new arrays".into(), Value::Object(new.attributes.clone()).to_string()));
        fields.push(("bytes set aside for copies (staged)".into(), self.held.to_string()));
        for ask in asks {
            describe(&mut fields, &ask.name, Some(&ask.distribution), ask.section.as_ref(), Some(ask.array.element));
        }
        let writer = Writing { store: self, asks, metadata: &metadata, new, update, marked: RefCell::default() };
        let fresh = !update;
        let call = Call {
            what: what.clone(),
            fields,
            durable: self.options.durable,
            prepared: fault.or(unfit).map(|fault| fault.context(&what)),
            decide: Box::new(|| writer.decide().map_err(|fault| fault.context(&what))),
            compile: Box::new(|payload| {
                let asked = hear(payload)?.into_iter().zip(asks);
                let asks = asked.map(|(told, ask)| {
                    let section =
                        checked_section(&ask.name, ask.section.as_ref(), &told.metadata.shape, &ask.distribution)?;
                    Ok(Ask {
                        name: ask.name.clone(),
                        section,
                        distribution: ask.distribution.clone(),
                        memory: ask.array.element,
                        stored: stored(&told.metadata, &told.prefix, told.fresh),
                    })
                });
                let asks = asks.collect::<Result<Vec<_>, Fault>>()?;
                let sync = self.options.durable && !self.staged;
                let transfer = Transfer { direction: Direction::Write, asks, ranks: self.ranks, sync };
                Ok(Compiled { transfer, users: users.unwrap_or_default(), fault: None })
            }),
            publish: Box::new(|| writer.publish().map(|()| Vec::new())),
            undo: Box::new(|| {
                if fresh {
                    writer.undo()
                }
            }),
            tidy: Box::new(|| writer.tidy()),
        };
        Ok(self.comm.transfer(call)?)
    }

    /// Reads arrays, or one section of each. Collective. Without a distribution every rank gets everything; each byte
    /// is read once all the same.
    ///
    /// # Errors
    /// The same on all ranks.
    pub fn read(
        &self,
        names: &[&str],
        distribution: Option<&Distribution>,
        section: Option<&Section>,
        into: Option<Vec<LocalArray>>,
    ) -> Result<(Vec<LocalArray>, Report), Error> {
        let what = format!("read of {} from '{}'", listed(names), self.path().display());
        let rank = self.comm.rank();
        let mut prepared = check_asks(names).err();
        if let (Some(distribution), Some(name)) = (distribution, names.first()) {
            prepared = prepared.or(check_ranks(name, distribution, self.ranks).err());
        }
        if let Some(arrays) = &into {
            let fits = |distribution: &Distribution| {
                names
                    .iter()
                    .zip(arrays)
                    .try_for_each(|(name, array)| array.expose(name, distribution, (rank, self.ranks)).map(|_| ()))
            };
            let count =
                Fault::new(FaultKind::Invalid, format!("{} arrays are read into {}", names.len(), arrays.len()));
            let counted = if arrays.len() == names.len() { Ok(()) } else { Err(count) };
            prepared = prepared.or(counted.and_then(|()| distribution.map_or(Ok(()), fits)).err());
        }
        let mut fields = vec![
            ("operation".to_string(), "read".to_string()),
            ("directory".into(), self.path().display().to_string()),
        ];
        for name in names {
            describe(&mut fields, name, distribution, section, None);
        }
        let spread = |told: &Told| match distribution {
            Some(distribution) => Ok(distribution.clone()),
            None => {
                let shape = section.map_or_else(|| told.metadata.shape.clone(), Section::shape);
                Distribution::replicated(&shape, u64::from(self.ranks))
                    .map_err(|error| Fault::new(FaultKind::Invalid, error.to_string()))
            }
        };
        let asks = |told: &[Told]| -> Result<Vec<Ask>, Fault> {
            let each = told.iter().zip(names).enumerate().map(|(i, (told, name))| {
                let distribution = spread(told)?;
                let section = checked_section(name, section, &told.metadata.shape, &distribution)?;
                let native = ElementType::native(told.metadata.element);
                let memory = into.as_ref().map_or(native, |arrays| arrays[i].element);
                let stored = stored(&told.metadata, &told.prefix, false);
                Ok(Ask { name: (*name).to_string(), section, distribution, memory, stored })
            });
            each.collect()
        };
        let transfer = |asks| Transfer { direction: Direction::Read, asks, ranks: self.ranks, sync: false };
        let arrays = RefCell::new(Vec::new());
        let call = Call {
            what: what.clone(),
            fields,
            durable: self.options.durable,
            prepared: prepared.map(|fault| fault.context(&what)),
            decide: Box::new(|| {
                let (directory, base) = (self.directory(), self.base());
                let each = names.iter().map(|name| {
                    let metadata = read_array(&directory, &base, name)?;
                    Ok(Told { prefix: self.prefix(name), fresh: false, metadata })
                });
                let told = each.collect::<Result<Vec<_>, Fault>>().map_err(|fault| fault.context(&what))?;
                let chosen = asks(&told)
                    .and_then(|asks| choose_parameters(&self.comm, &transfer(asks), &self.options.wish, self.held));
                tell(chosen.map_err(|fault| fault.context(&what))?, &told)
            }),
            compile: Box::new(|payload| {
                let asks = asks(&hear(payload)?)?;
                let (users, locals, fault) = destinations(&asks, into.as_deref(), (rank, self.ranks))?;
                arrays.replace(locals);
                Ok(Compiled { transfer: transfer(asks), users, fault })
            }),
            publish: Box::new(|| Ok(Vec::new())),
            undo: Box::new(|| {}),
            tidy: Box::new(|| {}),
        };
        let report = self.comm.transfer(call)?;
        Ok((arrays.into_inner(), report))
    }

    /// Appends to an array along one dimension: the array grows by the extent of what is written. Collective.
    ///
    /// # Errors
    /// The same on all ranks; the array has its old shape then.
    pub fn append(&mut self, ask: &WriteAsk, axis: usize) -> Result<Report, Error> {
        let what = format!("append to '{}' in '{}'", ask.name, self.path().display());
        let (_, fault) = split(self.check_writable(&what).and_then(|()| check_name(&ask.name)));
        let users =
            ask.array.expose(&ask.name, &ask.distribution, (self.comm.rank(), self.ranks)).map(|user| vec![user]);
        let (users, unfit) = split::<Vec<Exposed>>(users);
        let mut fields = vec![("operation".to_string(), format!("append along dimension {axis}"))];
        fields.push(("directory".into(), self.path().display().to_string()));
        describe(&mut fields, &ask.name, Some(&ask.distribution), None, Some(ask.array.element));
        let (directory, base) = (self.directory(), self.base());
        let grown = RefCell::new(None);
        let asked = |told: &Told| Ask {
            name: ask.name.clone(),
            section: tail(&told.metadata.shape, ask.distribution.shape(), axis),
            distribution: ask.distribution.clone(),
            memory: ask.array.element,
            stored: stored(&told.metadata, &told.prefix, false),
        };
        let sync = self.options.durable && !self.staged;
        let transfer = |ask| Transfer { direction: Direction::Write, asks: vec![ask], ranks: self.ranks, sync };
        let call = Call {
            what: what.clone(),
            fields,
            durable: self.options.durable,
            prepared: fault.or(unfit).map(|fault| fault.context(&what)),
            decide: Box::new(|| {
                let mut metadata = read_array(&directory, &base, &ask.name)?;
                metadata.shape = grow(&metadata.shape, ask.distribution.shape(), axis).map_err(|f| f.context(&what))?;
                metadata.check(&ask.name).map_err(format_fault)?;
                let told = Told { prefix: self.prefix(&ask.name), fresh: false, metadata: metadata.clone() };
                let chosen = choose_parameters(&self.comm, &transfer(asked(&told)), &self.options.wish, self.held)?;
                grown.replace(Some(metadata));
                tell(chosen, &[told])
            }),
            compile: Box::new(|payload| {
                let told = hear(payload)?;
                let one = told.first().ok_or_else(|| Fault::new(FaultKind::Peer, "rank 0 told of no array"))?;
                Ok(Compiled { transfer: transfer(asked(one)), users: users.unwrap_or_default(), fault: None })
            }),
            publish: Box::new(|| {
                if let Some(metadata) = grown.take() {
                    let json = metadata.to_json(&ask.name).map_err(format_fault)?;
                    directory.write(&format!("{base}{}/{METADATA_KEY}", ask.name), &json, sync)?;
                }
                Ok(Vec::new())
            }),
            undo: Box::new(|| {}),
            tidy: Box::new(|| {}),
        };
        Ok(self.comm.transfer(call)?)
    }

    /// What stands before the keys of an array's chunks: its directory.
    fn prefix(&self, name: &str) -> String {
        format!("{}/", self.root.join(format!("{}{name}", self.base())).display())
    }
}

/// Rank 0's side of a write.
struct Writing<'a> {
    store: &'a Store,
    asks: &'a [WriteAsk],
    metadata: &'a [ArrayMetadata],
    new: &'a NewArray,
    update: bool,
    /// Arrays that bear the marker of an earlier update that did not end; only writing all of them would end it.
    marked: RefCell<Vec<String>>,
}

impl Writing<'_> {
    fn base(&self) -> String {
        self.store.base()
    }

    /// Where a new array lies until it is published: in a step, where it will be in the step.
    fn hidden(&self, name: &str) -> String {
        if self.store.staged {
            return format!("{}{name}", self.base());
        }
        format!("{}/{ARRAYS}/{}{name}", self.store.staging, self.store.group.replace('/', "%2F"))
    }

    fn decide(&self) -> Result<Vec<u8>, Fault> {
        let directory = self.store.directory();
        let mut told = Vec::with_capacity(self.asks.len());
        for (i, ask) in self.asks.iter().enumerate() {
            if self.update {
                let metadata = read_array(&directory, &self.base(), &ask.name)?;
                told.push(Told { prefix: self.store.prefix(&ask.name), fresh: false, metadata });
                continue;
            }
            let at = format!("{}{}", self.base(), ask.name);
            if directory.exists(&at) && !self.new.overwrite {
                return Err(Fault::new(
                    FaultKind::Exists,
                    format!("'{}' exists already in '{}'", ask.name, self.store.path().display()),
                )
                .hint("overwrite replaces it, section= changes it, append() makes it longer"));
            }
            let prefix = format!("{}/", self.store.root.join(self.hidden(&ask.name)).display());
            told.push(Told { prefix, fresh: true, metadata: self.metadata[i].clone() });
        }
        let asks = told.iter().zip(self.asks).map(|(told, ask)| {
            let section = checked_section(&ask.name, ask.section.as_ref(), &told.metadata.shape, &ask.distribution)?;
            let stored = stored(&told.metadata, &told.prefix, told.fresh);
            Ok(Ask {
                name: ask.name.clone(),
                section,
                distribution: ask.distribution.clone(),
                memory: ask.array.element,
                stored,
            })
        });
        let asks = asks.collect::<Result<Vec<_>, Fault>>()?;
        let transfer = Transfer { direction: Direction::Write, asks, ranks: self.store.ranks, sync: false };
        let chosen = choose_parameters(&self.store.comm, &transfer, &self.store.options.wish, self.store.held)?;
        for (told, ask) in told.iter().zip(self.asks) {
            if self.update {
                self.mark(&directory, ask, &told.metadata.shape)?;
            } else {
                let hidden = self.hidden(&ask.name);
                directory.remove(&hidden)?;
                directory.make(&hidden)?;
                let json = told.metadata.to_json(&ask.name).map_err(format_fault)?;
                directory.write(&format!("{hidden}/{METADATA_KEY}"), &json, false)?;
            }
        }
        tell(chosen, &told)
    }

    /// Marks an array before it is updated in place.
    fn mark(&self, directory: &Directory, ask: &WriteAsk, shape: &[u64]) -> Result<(), Fault> {
        let marker = format!("{}{}/{MARKER}", self.base(), ask.name);
        let before = directory.read(&marker)?.unwrap_or_default();
        if !before.is_empty() && ask.distribution.shape() != shape {
            self.marked.borrow_mut().push(ask.name.clone());
        }
        let section = ask.section.as_ref().map(Section::to_string).unwrap_or_default();
        let mut note = String::from_utf8_lossy(&before).into_owned();
        note += &format!("an update of section {section} has begun and not ended: each chunk is old or new\n");
        directory.write(&marker, note.as_bytes(), self.durable())
    }

    fn durable(&self) -> bool {
        self.store.options.durable
    }

    fn publish(&self) -> Result<(), Fault> {
        let directory = self.store.directory();
        if self.durable() && !self.update && !self.store.staged {
            let metadata = |ask: &WriteAsk| format!("{}/{METADATA_KEY}", self.hidden(&ask.name));
            directory.sync_files(&self.asks.iter().map(metadata).collect::<Vec<_>>())?;
        }
        let mut published = Vec::new();
        for ask in self.asks {
            let at = format!("{}{}", self.base(), ask.name);
            if self.update {
                if !self.marked.borrow().contains(&ask.name) {
                    directory.remove(&format!("{at}/{MARKER}"))?;
                }
                continue;
            }
            let hidden = self.hidden(&ask.name);
            if hidden == at {
                continue;
            }
            let replaces = directory.exists(&at);
            if let Err(fault) = publish(&directory, &hidden, &at) {
                withdraw(&directory, published);
                return Err(fault);
            }
            published.push((hidden, at, replaces));
        }
        if !self.store.staged && self.durable() {
            directory.sync(&self.base())?;
        }
        Ok(())
    }

    /// Removes what was replaced.
    fn tidy(&self) {
        if !self.update && !self.store.staged {
            self.undo();
        }
    }

    fn undo(&self) {
        let directory = self.store.directory();
        for ask in self.asks {
            directory.discard(&self.hidden(&ask.name));
        }
        if !self.store.staged {
            sweep(&directory, &self.store.staging);
        }
    }
}

/// Takes back what of a call was published before the rest could not be: what it replaced is there again.
fn withdraw(directory: &Directory, published: Vec<(String, String, bool)>) {
    for (hidden, at, replaces) in published.into_iter().rev() {
        // The call fails already; what cannot be taken back stays visible, and whole.
        let _ = if replaces { publish(directory, &hidden, &at) } else { directory.rename(&at, &hidden) };
    }
}

/// Renames a hidden node to its place; what was there before is hidden in its stead.
pub(super) fn publish(directory: &Directory, hidden: &str, at: &str) -> Result<(), Fault> {
    if !directory.exists(at) {
        return directory.rename(hidden, at);
    }
    if directory.exchange(hidden, at)? {
        return Ok(());
    }
    // Without an exchange there is a moment without either; the old one is kept until the new one is in place, and
    // goes back if it never gets there, at once or when the store is opened next.
    let aside = format!("{hidden}{ASIDE}");
    directory.rename(at, &aside)?;
    if let Err(fault) = directory.rename(hidden, at) {
        directory.rename(&aside, at)?;
        return Err(fault);
    }
    directory.rename(&aside, hidden)
}

/// A value and a failure apart, so that a rank with a failure can still take part.
fn split<T>(result: Result<T, Fault>) -> (Option<T>, Option<Fault>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(fault) => (None, Some(fault)),
    }
}

fn check_asks(names: &[&str]) -> Result<(), Fault> {
    for (i, name) in names.iter().enumerate() {
        check_name(name)?;
        if names[..i].contains(name) {
            return Err(Fault::new(FaultKind::Invalid, format!("'{name}' is named twice in one call")));
        }
    }
    Ok(())
}

/// What must agree between ranks about one array.
pub(crate) fn describe(
    fields: &mut Vec<(String, String)>,
    name: &str,
    distribution: Option<&Distribution>,
    section: Option<&Section>,
    element: Option<ElementType>,
) {
    fields.push((format!("array {}", fields.len()), format!("'{name}'")));
    if let Some(d) = distribution {
        fields.push((format!("shape of '{name}'"), format!("{:?}", d.shape())));
        fields.push((format!("distribution of '{name}'"), d.to_string()));
    }
    if let Some(section) = section {
        fields.push((format!("section of '{name}'"), section.to_string()));
    }
    if let Some(element) = element {
        fields.push((format!("element type of '{name}'"), element.to_string()));
    }
}

/// Arrays to read into: the user's, or fresh ones; a stand-in where the user's does not fit.
#[allow(clippy::type_complexity)]
pub(crate) fn destinations(
    asks: &[Ask],
    into: Option<&[LocalArray]>,
    (rank, size): (u32, u32),
) -> Result<(Vec<Exposed>, Vec<LocalArray>, Option<Fault>), Fault> {
    let (mut users, mut locals, mut fault) = (Vec::new(), Vec::new(), None);
    for (i, ask) in asks.iter().enumerate() {
        let wanted = match into.map(|arrays| &arrays[i]) {
            Some(array) => array.expose(&ask.name, &ask.distribution, (rank, size)).map(|user| (user, array.clone())),
            None => LocalArray::stand_in(&ask.distribution, rank, ask.memory)
                .and_then(|array| Ok((array.expose(&ask.name, &ask.distribution, (rank, size))?, array))),
        };
        let (user, array) = match wanted {
            Ok(both) => both,
            Err(unfit) => {
                fault.get_or_insert(unfit);
                let array = LocalArray::stand_in(&ask.distribution, rank, ask.memory)?;
                (array.expose(&ask.name, &ask.distribution, (rank, size))?, array)
            }
        };
        users.push(user);
        locals.push(array);
    }
    Ok((users, locals, fault))
}

fn grow(shape: &[u64], by: &[u64], axis: usize) -> Result<Vec<u64>, Fault> {
    let fits =
        shape.len() == by.len() && axis < shape.len() && (0..shape.len()).all(|d| d == axis || shape[d] == by[d]);
    if !fits {
        let text = format!("what is appended along dimension {axis} has shape {by:?}, the array has {shape:?}");
        return Err(Fault::new(FaultKind::Invalid, text).hint("all other extents must be equal"));
    }
    let mut grown = shape.to_vec();
    grown[axis] += by[axis];
    Ok(grown)
}

/// The last `by[axis]` indices of a grown array.
fn tail(shape: &[u64], by: &[u64], axis: usize) -> Section {
    let mut section = Section::whole(shape);
    section.dims[axis].start = shape[axis] - by[axis];
    section.dims[axis].block = by[axis].max(1);
    section.dims[axis].stride = by[axis].max(1);
    section.dims[axis].count = u64::from(by[axis] > 0);
    section
}

/// Names as a list for messages.
pub(crate) fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(6).map(|name| format!("'{name}'")).collect();
    let more = names.len() - shown.len();
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}
