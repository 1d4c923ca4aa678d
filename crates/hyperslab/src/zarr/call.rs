//! Reading and writing arrays of a group.

use super::known::check_relied;
use super::shapes::separator;
use super::writing::{Appending, Writing};
use super::{METADATA_KEY, NewArray, Store, WriteAsk, check_name, read_array};
use crate::array::{LocalArray, natural_chunks};
use crate::casting::{check_cast, check_casting};
use crate::course::{Call, Compiled, Target};
use crate::described::describe;
use crate::error::{Error, format_fault};
use crate::held::Held;
use crate::holding::{Exposing, Holding, Part, number_parts};
use crate::planning::{Shaped, choose_parameters};
use crate::report::Report;
use hyperslab_format::zarr::{ArrayMetadata, Codecs, Map, Value, fill_from_json};
use hyperslab_layout::stored::{Change, Stored};
use hyperslab_layout::{Casting, Durability, ElementType, Policies, Section};
use hyperslab_pack::convert_scalar;
use hyperslab_plan::{Ask, Direction, Laid, Transfer};
use hyperslab_walk::Ways;
use hyperslab_world::{Fault, FaultKind, Proof, Reader, Root, Writer, fingerprint};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What rank 0 tells of an array: the directory that holds it, whether it is new, and its metadata.
pub(super) struct Told {
    pub(super) prefix: String,
    pub(super) fresh: bool,
    pub(super) metadata: ArrayMetadata,
}

/// The stored array that metadata describe.
pub(super) fn stored(metadata: &ArrayMetadata, prefix: &str, fresh: bool) -> Stored {
    let element = metadata.stored_element();
    let fill = convert_scalar(&metadata.fill_value, ElementType::native(metadata.element), element);
    let (keys, coding) = (metadata.key_encoding.keys(prefix), metadata.codecs.coding());
    let order = metadata.codecs.permutation(metadata.shape.len());
    Stored {
        fill: fill[..element.bytes() as usize].into(),
        change: if fresh { Change::Fresh } else { Change::Replace },
        ..Stored::in_chunks(&metadata.shape, element, &metadata.chunk_shape, keys, coding).ordered(order)
    }
}

/// How arrays lie in the memory of this rank, of each the first part.
fn lying(parts: &[Vec<Part>]) -> Vec<Option<Laid>> {
    parts.iter().map(|parts| Some(Laid::of(&parts.first()?.exposed.view))).collect()
}

pub(super) fn tell(w: Writer, told: &[Told]) -> Result<Vec<u8>, Fault> {
    let mut w = w;
    for Told { prefix, fresh, metadata } in told {
        let json = metadata.to_json(prefix).map_err(format_fault)?;
        w = w.bytes(prefix.as_bytes()).number(u64::from(*fresh)).bytes(&json);
    }
    Ok(w.0)
}

fn hear(payload: &[u8]) -> Result<Vec<Told>, Fault> {
    let mut r = Reader::new(payload);
    // Parameters and roots come before.
    r.bytes();
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
    holding: &[u64],
) -> Result<Section, Fault> {
    let section = section.cloned().unwrap_or_else(|| Section::whole(shape));
    let fail = |text: String, hint: &str| Err(Fault::new(FaultKind::Invalid, text).hint(hint));
    if let Err(error) = section.check(shape) {
        let text = error.to_string();
        let (text, hint) = text.split_once("\n  hint: ").unwrap_or((&text, "the array's shape bounds the section"));
        return fail(format!("section {section} of '{name}': {text}"), hint);
    }
    if section.shape() != holding {
        return fail(
            format!(
                "the distribution has shape {holding:?}, but section {section} of '{name}' (shape {shape:?}) has {:?}",
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
        let kind = new.kind.or(ask.element().map(|element| element.kind));
        let kind = kind.unwrap_or(hyperslab_layout::Kind::Float64);
        let shape = ask.holding.shape();
        new.check(&ask.name, shape)?;
        let chunks = new.chunks.clone().unwrap_or_else(|| natural_chunks(&ask.holding, kind.bytes()));
        let codecs = new.codecs.clone().unwrap_or_else(|| Codecs::plain(true));
        let mut metadata = ArrayMetadata::new(&ask.name, shape, kind, &chunks, codecs).map_err(format_fault)?;
        if let Some(value) = &new.fill_value {
            // The same words as for a value that was read, but here it is the caller's.
            let unfit = |error| Fault { kind: FaultKind::Invalid, ..format_fault(error) };
            metadata.fill_value = fill_from_json(kind, value, &ask.name).map_err(unfit)?;
        }
        metadata.key_encoding.separator = separator(&metadata);
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
        let at = (self.comm.rank(), self.ranks);
        let prepared = prepared.and_then(|metadata| {
            let typed = |ask: &WriteAsk| typed(&ask.name, ask.element(), update || new.kind.is_some(), at.0);
            asks.iter().try_for_each(typed).map(|()| metadata)
        });
        let prepared = prepared.and_then(|metadata| {
            let mut each = asks.iter().zip(&metadata);
            let cast = |(ask, of): (&WriteAsk, &ArrayMetadata)| {
                check_cast(&ask.name, &ask.arrays, of.stored_element(), new.casting, at.0)
            };
            each.try_for_each(cast).map(|()| metadata)
        });
        let (metadata, fault) = split(prepared);
        let metadata = metadata.unwrap_or_default();
        let parts = asks.iter().map(|ask| ask.holding.expose(&ask.name, &ask.arrays, at)).collect();
        let (parts, unfit) = split::<Vec<Vec<Part>>>(parts);
        let laid = lying(parts.as_deref().unwrap_or_default());
        let mut fields = vec![
            ("operation".to_string(), "write".to_string()),
            ("directory".into(), self.path().display().to_string()),
        ];
        fields.push((
            "options of new arrays".into(),
            format!("{:?}", NewArray { attributes: Map::new(), casting: Casting::SameKind, ..new.clone() }),
        ));
        fields.push(("casting".into(), new.casting.name().into()));
        fields.push(("attributes of new arrays".into(), Value::Object(new.attributes.clone()).to_string()));
        fields.push(("bytes set aside for copies (staged)".into(), self.held.to_string()));
        fields.push(("strategy asked for".into(), format!("{:?}", self.options.wish.strategy)));
        describe(&mut fields, asks.iter().map(|a| (&*a.name, Some(&a.holding), a.section.as_ref(), a.element())));
        if !update {
            self.forget_known(names.iter().copied());
        }
        let at_once = self.at_once_writing(asks.len());
        let casting = new.casting;
        let writing = || -> Box<dyn Target> {
            Box::new(Writing {
                store: self.clone(),
                what: what.clone(),
                asks: asks.to_vec(),
                metadata,
                new: new.clone(),
                update,
                laid,
                hidden: Vec::new(),
                markers: Vec::new(),
                held: None,
            })
        };
        let call = Call {
            what: what.clone(),
            fields,
            cannot: 0,
            prepared: fault.or(unfit).map(|fault| fault.context(&what)),
            target: Box::new(writing),
            compile: Box::new(|payload, _| {
                let asked = hear(payload)?.into_iter().zip(asks);
                let mut vetted = None;
                let asks = asked.map(|(told, ask)| {
                    let section =
                        checked_section(&ask.name, ask.section.as_ref(), &told.metadata.shape, ask.holding.shape())?;
                    if !told.fresh {
                        let stored = told.metadata.stored_element();
                        let found = check_cast(&ask.name, &ask.arrays, stored, casting, at.0).err();
                        vetted = vetted.take().or(found);
                    }
                    Ok(ask.asked(section, stored(&told.metadata, &told.prefix, told.fresh)))
                });
                let asks = asks.collect::<Result<Vec<_>, Fault>>()?;
                let policies = self.policies_of_writes();
                let transfer = Arc::new(Transfer { direction: Direction::Write, asks, ranks: self.ranks, policies });
                let (users, mine) = number_parts(parts.unwrap_or_default());
                Ok(Compiled { transfer, users, mine, fault: None, vetted })
            }),
            publishes: true,
            at_once,
        };
        Ok(self.comm.transfer(call)?)
    }

    /// Whether rank 0's work for a write of so many arrays is done on its own thread.
    fn at_once_writing(&self, arrays: usize) -> bool {
        if self.syncs_writes() { self.attempts.at_once_durable(arrays) } else { self.attempts.at_once(arrays) }
    }

    /// Whether what is written is made durable by the call itself.
    pub(super) fn syncs_writes(&self) -> bool {
        self.policies_of_writes().durability == Durability::Now
    }

    /// The groups that hold something of this path in the store, from the store's root on, as names below the home; none in
    /// a step, which nobody has consolidated.
    pub(super) fn ancestors(&self, path: &str) -> Vec<String> {
        let base = self.home().name("");
        let root = if base.is_empty() { base } else { format!("{base}/") };
        let mut groups = vec![root.clone()];
        groups.extend(path.match_indices('/').map(|(end, _)| format!("{root}{}/", &path[..end])));
        groups
    }

    /// What is promised of what is written. A step is made durable when it is published; all else is published, or changed
    /// in place, by the call itself.
    pub(super) fn policies_of_writes(&self) -> Policies {
        Policies::of(match (self.options.durable, &self.staged) {
            (false, _) => Durability::Cached,
            (true, Some(_)) => Durability::Soon,
            (true, None) => Durability::Now,
        })
    }

    /// Reads arrays, or one section of each. Collective. Without a distribution every rank gets everything; each byte
    /// is read once all the same.
    ///
    /// # Errors
    /// The same on all ranks.
    pub fn read(
        &self,
        names: &[&str],
        holding: Option<&Holding>,
        section: Option<&Section>,
        into: Option<Vec<LocalArray>>,
        casting: Casting,
    ) -> Result<(Vec<LocalArray>, Report), Error> {
        let what = format!("read of {} from '{}'", listed(names), self.path().display());
        let at = (self.comm.rank(), self.ranks);
        let mut prepared = check_asks(names).err();
        if let (Some(holding), Some(name)) = (holding, names.first()) {
            prepared = prepared.or(holding.check(name, at).err());
        }
        let each = holding.map_or(1, Holding::arrays);
        if let Some(arrays) = &into {
            let fits = |holding: &Holding| {
                names
                    .iter()
                    .enumerate()
                    .try_for_each(|(i, name)| holding.expose(name, &arrays[i * each..(i + 1) * each], at).map(|_| ()))
            };
            let wanted = names.len() * each;
            let count = Fault::new(FaultKind::Invalid, format!("{wanted} arrays are read into {}", arrays.len()));
            let counted = if arrays.len() == wanted { Ok(()) } else { Err(count) };
            prepared = prepared.or(counted.and_then(|()| holding.map_or(Ok(()), fits)).err());
        }
        let mut fields = vec![
            ("operation".to_string(), "read".to_string()),
            ("directory".into(), self.path().display().to_string()),
        ];
        fields.push(("strategy asked for".into(), format!("{:?}", self.options.wish.strategy)));
        fields.push(("casting".into(), casting.name().into()));
        describe(&mut fields, names.iter().map(|name| (*name, holding, section, None)));
        let relied = self.relied(names);
        if relied.iter().any(Option::is_some) {
            fields.push(("arrays as they were looked at".into(), format!("{relied:x?}")));
        }
        let wanted_here = Reading {
            store: self.clone(),
            what: what.clone(),
            names: names.iter().map(ToString::to_string).collect(),
            holding: holding.cloned(),
            section: section.cloned(),
            relied,
            memory: into.iter().flatten().map(|array| array.element).collect(),
            casting,
            // Boxes of an array lie alike, of which the first is told.
            lying: into.iter().flatten().step_by(each.max(1)).map(|array| Some(array.laid())).collect(),
        };
        let arrays = RefCell::new(Vec::new());
        let call = Call {
            what: what.clone(),
            fields,
            cannot: 0,
            prepared: prepared.map(|fault| fault.context(&what)),
            target: Box::new(|| Box::new(ReadTarget { reading: wanted_here.clone(), held: None })),
            compile: Box::new(|payload, _| {
                let asks = wanted_here.asks(&hear(payload)?)?;
                let (parts, locals, fault) = destinations(wanted(&asks), into.as_deref(), at)?;
                arrays.replace(locals);
                let (users, mine) = number_parts(parts);
                let refused = wanted_here.check_types(&asks).err();
                let (transfer, fault) = (Arc::new(wanted_here.transfer(asks)), refused.or(fault));
                Ok(Compiled { transfer, users, mine, fault, vetted: None })
            }),
            // Nothing, but what was read must still be there.
            publishes: true,
            at_once: self.attempts.at_once(names.len()),
        };
        let report = self.comm.transfer(call).inspect_err(|fault| {
            if fault.kind == FaultKind::Outdated {
                self.forget_known(names.iter().copied());
            }
        })?;
        Ok((arrays.into_inner(), report))
    }

    /// Appends to an array along one dimension: the array grows by the extent of what is written. Collective.
    ///
    /// # Errors
    /// The same on all ranks; the array has its old shape then.
    pub fn append(&mut self, ask: &WriteAsk, axis: usize, casting: Casting) -> Result<Report, Error> {
        let what = format!("append to '{}' in '{}'", ask.name, self.path().display());
        let (_, fault) = split(self.check_writable(&what).and_then(|()| check_name(&ask.name)));
        let parts = ask.holding.expose(&ask.name, &ask.arrays, (self.comm.rank(), self.ranks));
        let (parts, unfit) = split::<Vec<Part>>(parts);
        let lying = lying(std::slice::from_ref(parts.as_ref().unwrap_or(&Vec::new())));
        let mut fields = vec![("operation".to_string(), format!("append along dimension {axis}"))];
        fields.push(("directory".into(), self.path().display().to_string()));
        fields.push(("casting".into(), casting.name().into()));
        self.forget_known(std::iter::once(&*ask.name));
        describe(&mut fields, std::iter::once((&*ask.name, Some(&ask.holding), None, ask.element())));
        let appending = || -> Box<dyn Target> {
            Box::new(Appending {
                store: self.clone(),
                what: what.clone(),
                ask: ask.clone(),
                axis,
                casting,
                laid: lying,
                grown: None,
            })
        };
        let call = Call {
            what: what.clone(),
            fields,
            cannot: 0,
            prepared: fault.or(unfit).map(|fault| fault.context(&what)),
            target: Box::new(appending),
            compile: Box::new(|payload, _| {
                let told = hear(payload)?;
                let one = told.first().ok_or_else(|| Fault::new(FaultKind::Peer, "rank 0 told of no array"))?;
                let (users, mine) = number_parts(vec![parts.unwrap_or_default()]);
                let transfer = Arc::new(Appending::transfer(self, ask, axis, one));
                let (stored, rank) = (one.metadata.stored_element(), self.comm.rank());
                let vetted = check_cast(&ask.name, &ask.arrays, stored, casting, rank).err();
                Ok(Compiled { transfer, users, mine, fault: None, vetted })
            }),
            publishes: true,
            at_once: self.at_once_writing(1),
        };
        Ok(self.comm.transfer(call)?)
    }

    /// What stands before the keys of an array's chunks: its directory.
    pub(super) fn prefix(&self, name: &str) -> String {
        format!("{}/", self.directory().full(&format!("{}{name}", self.base())))
    }
}

/// What is read, as a rank asks for it.
#[derive(Clone)]
struct Reading {
    store: Store,
    what: String,
    names: Vec<String>,
    holding: Option<Holding>,
    section: Option<Section>,
    /// The fingerprint of the metadata of each array on which the caller relies.
    relied: Vec<Option<u64>>,
    /// Types of the arrays to read into, where there are some.
    memory: Vec<ElementType>,
    lying: Vec<Option<Laid>>,
    casting: Casting,
}

impl Reading {
    fn asks(&self, told: &[Told]) -> Result<Vec<(Ask, Holding)>, Fault> {
        let each = told.iter().zip(&self.names).enumerate().map(|(i, (told, name))| {
            let shape = self.section.as_ref().map_or_else(|| told.metadata.shape.clone(), Section::shape);
            let replicated = || Holding::replicated(&shape, self.store.ranks);
            let held = self.holding.clone().map_or_else(replicated, Ok)?;
            let section = checked_section(name, self.section.as_ref(), &told.metadata.shape, held.shape())?;
            let native = ElementType::native(told.metadata.element);
            let memory = self.memory.get(i * held.arrays()).copied().unwrap_or(native);
            let stored = stored(&told.metadata, &told.prefix, false);
            Ok((Ask { name: name.clone(), section, spread: held.spread(), memory, stored }, held))
        });
        each.collect()
    }

    /// Refuses arrays to read into, each box of them, that the stored elements may not become.
    fn check_types(&self, asks: &[(Ask, Holding)]) -> Result<(), Fault> {
        let types = |i: usize, held: &Holding| self.memory.iter().skip(i * held.arrays()).take(held.arrays());
        asks.iter().enumerate().try_for_each(|(i, (ask, held))| {
            types(i, held).try_for_each(|&memory| check_casting(&ask.name, ask.stored.element, memory, self.casting))
        })
    }

    fn transfer(&self, asks: Vec<(Ask, Holding)>) -> Transfer {
        let asks = asks.into_iter().map(|(ask, _)| ask).collect();
        Transfer { direction: Direction::Read, asks, ranks: self.store.ranks, policies: Policies::default() }
    }
}

/// Rank 0's side of a read.
struct ReadTarget {
    reading: Reading,
    held: Option<Held>,
}

impl Target for ReadTarget {
    fn prepare(&mut self, _cannot: Ways) -> Result<Vec<u8>, Fault> {
        let Reading { store, names, .. } = &self.reading;
        let base = store.base();
        // Before their metadata are read; but what is wrong with those says more.
        let held = Held::of(store.directory(), names.iter().map(|name| format!("{base}{name}")));
        let told = self.reading.ready()?;
        self.held = Some(held?);
        Ok(told)
    }

    fn publish(&mut self) -> Result<Vec<u8>, Fault> {
        let check = self.held.as_ref().map_or(Ok(()), |held| held.check("read"));
        check.map(|()| Vec::new()).map_err(|fault| fault.context(&self.reading.what))
    }
}

impl Reading {
    fn ready(&self) -> Result<Vec<u8>, Fault> {
        let (directory, base) = (self.store.directory(), self.store.base());
        let each = self.names.iter().zip(&self.relied).map(|(name, &relied)| {
            let (metadata, bytes) = read_array(&*directory, &base, name)?;
            check_relied(name, relied, &bytes)?;
            let below: Arc<str> = self.store.prefix(name).into();
            let key = directory.full(&format!("{base}{name}/{METADATA_KEY}"));
            let proofs = vec![Proof::Contents(key.into(), fingerprint(&bytes))];
            let root = Root { below: below.clone(), via: None, opening: self.store.attempts.opening, proofs };
            Ok((Told { prefix: below.to_string(), fresh: false, metadata }, root))
        });
        let told: Result<Vec<(Told, Root)>, Fault> = each.collect();
        let (told, roots): (Vec<Told>, Vec<Root>) =
            told.map_err(|fault| fault.context(&self.what))?.into_iter().unzip();
        let chosen = self.asks(&told).and_then(|asks| {
            self.check_types(&asks)?;
            let transfer = self.transfer(asks);
            let (wish, shaped) = (&self.store.options.wish, Shaped::default());
            choose_parameters(&self.store.comm, transfer, wish, self.store.held, &self.lying, &shaped)
        });
        tell(chosen.map_err(|fault| fault.context(&self.what))?.bytes(&Root::encode(&roots)), &told)
    }
}

/// A value and a failure apart, so that a rank with a failure can still take part.
fn split<T>(result: Result<T, Fault>) -> (Option<T>, Option<Fault>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(fault) => (None, Some(fault)),
    }
}

fn check_asks(names: &[&str]) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for name in names {
        check_name(name)?;
        if !seen.insert(name) {
            return Err(Fault::new(FaultKind::Invalid, format!("'{name}' is named twice in one call")));
        }
    }
    Ok(())
}

/// Refuses a new array whose stored type this rank should tell, and does not know.
fn typed(name: &str, element: Option<ElementType>, known: bool, rank: u32) -> Result<(), Fault> {
    if known || element.is_some() || rank > 0 {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Invalid,
        format!("rank 0 holds no piece of '{name}', so the type of its elements is unknown"),
    )
    .hint("give dtype= on all ranks"))
}

impl WriteAsk {
    /// What is asked of a stored array.
    pub(super) fn asked(&self, section: Section, stored: Stored) -> Ask {
        let memory = self.element().unwrap_or(stored.element);
        Ask { name: self.name.clone(), section, spread: self.holding.spread(), memory, stored }
    }
}

/// Type of the elements in memory: that of the first array to read into, or that of fresh ones.
pub(crate) fn memory_type(into: Option<&[LocalArray]>, first: usize, fresh: ElementType) -> ElementType {
    into.and_then(|arrays| arrays.get(first)).map_or(fresh, |array| array.element)
}

/// Parts to read into, the local arrays of all of them, and what is wrong with them.
pub(crate) type Destinations = (Vec<Vec<Part>>, Vec<LocalArray>, Option<Fault>);

/// An array that is read: its name, the type of its elements in the memories, and how ranks hold it.
pub(crate) type Wanted<'a> = (&'a str, ElementType, &'a Holding);

/// Arrays to read into: the user's, or fresh ones; stand-ins where the user's do not fit.
pub(crate) fn destinations<'a>(
    wanted: impl Iterator<Item = Wanted<'a>>,
    into: Option<&'a [LocalArray]>,
    (rank, size): (u32, u32),
) -> Result<Destinations, Fault> {
    let (mut parts, mut locals, mut fault) = (Vec::new(), Vec::new(), None);
    let mut exposing = Exposing::new((rank, size));
    for (name, memory, holding) in wanted {
        let fresh = || {
            let arrays = holding.stand_in(rank, memory)?;
            Ok((holding.expose(name, &arrays, (rank, size))?, arrays))
        };
        let made = match into {
            None => fresh(),
            Some(all) => {
                let first = locals.len().min(all.len());
                let arrays = &all[first..all.len().min(first + holding.arrays())];
                exposing.expose(holding, name, arrays).map(|parts| (parts, arrays.to_vec()))
            }
        };
        let (part, arrays) = match made {
            Ok(both) => both,
            Err(unfit) => {
                fault.get_or_insert(unfit);
                fresh()?
            }
        };
        parts.push(part);
        locals.extend(arrays);
    }
    Ok((parts, locals, fault))
}

/// What is read by these.
pub(crate) fn wanted(asks: &[(Ask, Holding)]) -> impl Iterator<Item = Wanted<'_>> {
    asks.iter().map(|(ask, holding)| (&*ask.name, ask.memory, holding))
}

pub(super) fn grow(shape: &[u64], by: &[u64], axis: usize) -> Result<Vec<u64>, Fault> {
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
pub(super) fn tail(shape: &[u64], by: &[u64], axis: usize) -> Section {
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
