//! Reading and writing arrays of a group.

use super::Store;
use super::appending::Appending;
use super::known::check_relied;
use super::nodes::{StoredNode, check_there, place, read_array};
use super::policy::TEXT_BYTES_LIKELY;
use super::shapes::separator;
use super::shards::new_array;
use super::stored::stored_to_read;
use super::writing::Writing;
use crate::array_write::{
    ArrayWrite, completed, each_holding, into_each, listed, named, requests, undistributed, write_requests,
};
use crate::error::{Error, format_fault};
use crate::options::{ReadOptions, WriteOptions};
use crate::pinned::Pinned;
use crate::planning::{Shaped, Whereabouts, decided};
use crate::said::quoted;
use crate::slots::slots;
use hyperslab_collective::naming::check_name;
use hyperslab_collective::{
    Arguments, ArrayRequest, Compared, Decision, Done, Each, Fields, LocalArray, Report, Selected, Target, check_cast,
    natural_chunks,
};
use hyperslab_format::zarr::{ArrayMetadata, NodeType, attributes_to_json, fill_from_json};
use hyperslab_layout::Stored;
use hyperslab_layout::{Durability, ElementType, Policies};
use hyperslab_plan::{Direction, MemoryLayout, Parameters, Preference, Strategy, Transfer};
use hyperslab_world::{Fault, FaultKind, Proof, Root, fingerprint};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

impl Store {
    /// Metadata of a new array.
    pub(super) fn new_metadata(number: usize, ask: &ArrayWrite, all: &WriteOptions) -> Result<ArrayMetadata, Fault> {
        let new = all.of(number);
        let known = new.element.or(ask.element());
        let kind = known.map_or(hyperslab_layout::Kind::Float64, |element| element.kind);
        let holding = ask.holding.as_deref().ok_or_else(|| undistributed(1, &[&ask.name]))?;
        let shape = holding.shape();
        new.check(&ask.name, shape)?;
        // How long texts are that come later, or from other ranks, is not known.
        let bytes = slots(known).map_or(kind.bytes(), |slots| u64::from(slots.bytes()).max(TEXT_BYTES_LIKELY));
        let chunks = new.chunks.clone().unwrap_or_else(|| natural_chunks(holding, bytes));
        let mut metadata = new_array(&ask.name, shape, kind, &chunks, new)?;
        // A rank without a piece does not know the type that the value should fit; rank 0 does.
        if let Some(value) = new.fill_value.as_ref().filter(|_| known.is_some()) {
            // The same words as for a value that was read, but here it is the caller's.
            let unfit = |error| format_fault(error).as_kind(FaultKind::Invalid);
            metadata.fill_value = fill_from_json(kind, value, &ask.name).map_err(unfit)?;
        }
        metadata.key_encoding.separator = separator(&metadata);
        metadata.dimension_names = all.dimension_names_of(number).map(<[_]>::to_vec);
        let unfit = |error| format_fault(error).as_kind(FaultKind::Invalid);
        let of = Some((kind, ask.name.as_str()));
        metadata.attributes = attributes_to_json(all.attributes_of(number), of).map_err(unfit)?;
        metadata.check(&ask.name).map_err(format_fault)?;
        Ok(metadata)
    }

    /// Writes arrays, whole and new, or sections of existing ones. Collective. New arrays become visible when all of
    /// the call is done; in a step, when the step is. With dedicated servers, this returns when the data have left; what
    /// goes wrong after that is an error of the next collective call, or of publishing or closing.
    ///
    /// # Errors
    /// The same on all ranks; nothing new is visible then, and of an updated array each chunk is old or new.
    pub fn write(&self, asks: &[ArrayWrite], new: &WriteOptions) -> Result<Report, Error> {
        if self.comm.goes_on_alone() {
            return Ok(self.write_later(asks.to_vec(), new.clone(), false).wait()?.1);
        }
        if let Some((group, asks)) = self.inside(asks, new.section.is_whole())? {
            return group.write(&asks, new);
        }
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let what = format!("write of {} to '{}'", listed(&names), self.path().display());
        let update = !new.section.is_whole();
        let in_slots = self.comm.in_slots(&what, (asks, new))?;
        let (asks, new) = in_slots.as_ref().map_or((asks, new), |(asks, new)| (asks, new));
        let (asks, unfit) = completed(asks.to_vec(), self.comm.size());
        let (metadata, fault) = match unfit
            .map_or_else(|| new.check_for_zarr(asks.len()), Err)
            .and_then(|()| self.check_write(&asks, new, update))
        {
            Ok(metadata) => (metadata, None),
            Err(fault) => (Vec::new(), Some(fault)),
        };
        let store = self.preferring(new.strategy);
        let (path, held, strategy) = (self.path(), self.held, store.options.preference.strategy);
        let compared = compared_write(path, held, strategy);
        let compared = new.compared(compared);
        if !update {
            self.forget_known(names.iter().copied());
        }
        let requests = write_requests(&asks, &new.section);
        let writing = || Writing::new(store, requests.clone(), metadata, new.clone(), update);
        let target = (self.comm.rank() == 0).then(|| -> Box<dyn Target> { Box::new(writing()) });
        let done = self.comm.transfer(Arguments {
            what,
            compared,
            fault,
            direction: Direction::Write,
            arrays: requests,
            locals: Some(asks.into_iter().map(|ask| ask.arrays).collect()),
            casting: new.casting,
            policies: self.policies_of_writes(),
            together: false,
            target,
            publishes: true,
            at_once: self.at_once_writing(names.len()),
        });
        let done = self.unfinished.note(done, |name| name);
        // One array that is visible but perhaps not durable is there.
        let unsynced = |fault: &Fault| fault.kind == FaultKind::Unsynced && names.len() == 1;
        let made = done.as_ref().err().is_none_or(unsynced);
        if made && !update {
            self.show_made(&names);
        }
        Ok(done?.report)
    }

    /// All ranks know what was made.
    fn show_made(&self, names: &[&str]) {
        self.tell(names.iter().copied());
        // What a request makes is shown when all ranks know that it is over.
        if !self.comm.is_inside() {
            self.listing.show(names.iter().copied(), NodeType::Array);
        }
    }

    /// What this rank can know to be wrong with a write; gives the metadata of new arrays.
    fn check_write(&self, asks: &[ArrayWrite], new: &WriteOptions, update: bool) -> Result<Vec<ArrayMetadata>, Fault> {
        self.check_writable()?;
        asks.iter().try_for_each(|ask| check_name(&ask.name))?;
        check_names(asks.iter().map(|ask| ask.name.as_str()))?;
        let rank = self.comm.rank();
        let metadata = match update {
            true => new.check_for_existing().map(|()| Vec::new())?,
            false => asks
                .iter()
                .enumerate()
                .map(|(number, ask)| Store::new_metadata(number, ask, new))
                .collect::<Result<Vec<_>, _>>()?,
        };
        for (number, ask) in asks.iter().enumerate() {
            typed(&ask.name, ask.element(), update || new.of(number).element.is_some(), rank)?;
        }
        for (ask, of) in asks.iter().zip(&metadata) {
            check_cast(&ask.name, &ask.arrays, of.stored_element(), new.casting)?;
        }
        Ok(metadata)
    }

    fn check_append(&self, names: &[&str], options: &WriteOptions) -> Result<(), Fault> {
        self.check_writable()?;
        names.iter().try_for_each(|name| check_name(name))?;
        check_names(names.iter().copied())?;
        if !options.section.is_whole() {
            return Err(Fault::new(FaultKind::Invalid, "a section cannot be given for what is appended")
                .hint("leave the section out; change what is there with write(section=...)"));
        }
        options.check_for_existing()
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
    pub fn read(&self, names: &[&str], options: ReadOptions) -> Result<(Vec<LocalArray>, Report), Error> {
        let ReadOptions { holding, holdings, section, into, casting, strategy } = options;
        let holdings = each_holding(holding, holdings, names.len());
        let what = format!("read of {} from '{}'", listed(names), self.path().display());
        let store = self.preferring(strategy);
        let relied = self.relied(names);
        let (path, strategy, looked_at) = (self.path(), store.options.preference.strategy, relied.clone());
        let compared = Compared::of(("read", path.clone(), strategy, relied.clone()), move || {
            let mut fields: Fields = vec![
                ("operation".into(), "read".into()),
                ("file or store".into(), quoted(path.display())),
                ("strategy".into(), named(strategy)),
            ];
            if looked_at.iter().any(Option::is_some) {
                fields.push(("arrays as they were looked at".into(), format!("{looked_at:x?}")));
            }
            fields
        });
        let (locals, unfit) = into_each(into, &holdings);
        let unfit = unfit.or_else(|| section.check(names.len()).err());
        let arrays = requests(names, &holdings, &section, locals.as_deref());
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let target = (self.comm.rank() == 0)
            .then(|| -> Box<dyn Target> { Box::new(Reading { store, names: names.clone(), relied, held: None }) });
        let done = self.comm.transfer(Arguments {
            what,
            compared,
            fault: check_names(names.iter().map(String::as_str)).err().or(unfit),
            direction: Direction::Read,
            arrays,
            locals,
            casting,
            policies: Policies::default(),
            together: false,
            target,
            // Nothing, but what was read must still be there.
            publishes: true,
            at_once: self.attempts.at_once(names.len()),
        });
        let Done { arrays, report, .. } = done.inspect_err(|fault| {
            if fault.kind == FaultKind::Outdated {
                self.forget_known(names.iter().map(String::as_str));
            }
        })?;
        Ok((arrays, report))
    }

    /// Makes arrays longer along one dimension, each by the extent of what is written, all or none: readers see the new shapes
    /// when all is written. Collective.
    ///
    /// # Errors
    /// The same on all ranks; the arrays have their old shapes then.
    pub fn append(&self, asks: &[ArrayWrite], axis: usize, options: &WriteOptions) -> Result<Report, Error> {
        if let Some((group, asks)) = self.inside(asks, false)? {
            return group.append(&asks, axis, options);
        }
        let casting = options.casting;
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let what = format!("append to {} in '{}'", listed(&names), self.path().display());
        let mut fields = vec![("operation".to_string(), format!("append along dimension {axis}"))];
        fields.push(("directory".into(), self.path().display().to_string()));
        self.forget_known(names.iter().copied());
        let unfit = self.check_append(&names, options).err();
        let in_slots = self.comm.in_slots(&what, (asks, options))?;
        let asks = in_slots.as_ref().map_or(asks, |(asks, _)| asks);
        let (asks, unheld) = completed(asks.to_vec(), self.comm.size());
        let request = |ask: &ArrayWrite| ArrayRequest { selected: Selected::End(axis), ..ask.request() };
        let requests: Vec<ArrayRequest> = asks.iter().map(request).collect();
        let store = self.preferring(options.strategy);
        let target = (self.comm.rank() == 0)
            .then(|| -> Box<dyn Target> { Box::new(Appending::new(store, requests.clone(), axis)) });
        let done = self.comm.transfer(Arguments {
            fault: unfit.or(unheld),
            what,
            compared: fields.into(),
            direction: Direction::Write,
            arrays: requests,
            locals: Some(asks.into_iter().map(|ask| ask.arrays).collect()),
            casting,
            policies: self.policies_of_writes(),
            together: false,
            target,
            publishes: true,
            at_once: self.at_once_writing(names.len()),
        })?;
        self.tell(names.iter().copied());
        Ok(done.report)
    }

    /// An array that is there: its metadata, also as they were read.
    pub(super) fn found(&self, name: &str) -> Result<(ArrayMetadata, StoredNode), Fault> {
        read_array(&*self.directory(), &self.base(), name)
    }

    /// The same store, with a strategy that is forced.
    pub(super) fn preferring(&self, strategy: Option<Strategy>) -> Store {
        let mut store = self.clone();
        store.options.preference.strategy = strategy.or(store.options.preference.strategy);
        store
    }

    /// Chooses how to carry out a transfer of this store.
    pub(super) fn decided(
        &self,
        transfer: &Arc<Transfer>,
        laid: &[Option<MemoryLayout>],
        shaped: &Shaped,
    ) -> Result<Decision, Fault> {
        let preference = set_aside(&self.options.preference, transfer.index_bytes());
        let (directory, base) = (self.directory(), self.base());
        let at = Whereabouts { names: &*directory, name: base.trim_end_matches('/'), mounts: &self.mounts };
        decided(self.comm.plans(), at, transfer, &preference, self.held, laid, shaped)
    }
}

/// What is wanted when a rank that serves keeps indexes of shards of so many bytes, which share its budget with its buffers:
/// at most half of it, which is then the limit of each.
fn set_aside(wanted: &Preference, index_bytes: u64) -> Preference {
    if index_bytes == 0 {
        return wanted.clone();
    }
    let all = wanted.buffer_bytes_max.unwrap_or(Parameters::default().buffer_bytes_max);
    Preference { buffer_bytes_max: Some(all - index_bytes.min(all / 2)), ..wanted.clone() }
}

/// Rank 0's side of a read.
struct Reading {
    store: Store,
    names: Vec<String>,
    /// The fingerprint of the metadata of each array on which the caller relies.
    relied: Vec<Option<u64>>,
    /// The arrays, and what proves that other ranks see the same.
    held: Option<(Pinned, Vec<Proof>)>,
}

impl Target for Reading {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        let Reading { store, names, relied, .. } = &*self;
        let base = store.base();
        // Before their metadata are read; but what is wrong with those says more.
        let held = Pinned::of(store.directory(), names.iter().map(|name| place(&base, name)));
        let each = names.iter().zip(relied).zip(0..).map(|((name, &relied), root)| {
            let (metadata, node) = store.found(name)?;
            check_relied(name, relied, fingerprint(&node.metadata))?;
            Ok((stored_to_read(&metadata, root), node.proof))
        });
        let (stored, proofs) = each.collect::<Result<Vec<_>, Fault>>()?.into_iter().unzip();
        self.held = Some((held?, proofs));
        Ok(stored)
    }

    fn choose(&mut self, transfer: &Arc<Transfer>, laid: &[Option<MemoryLayout>]) -> Result<Decision, Fault> {
        self.store.decided(transfer, laid, &Shaped::default())
    }

    fn begin(
        &mut self,
        _stored: &mut [Stored],
        _transfer: &Arc<Transfer>,
        _parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        let (store, proofs) = (&self.store, self.held.iter().flat_map(|(_, proofs)| proofs.clone()));
        let base = store.base();
        let root = |(name, proof): (&String, Proof)| Root {
            proofs: vec![proof],
            ..store.attempts.ground(&place(&base, name))
        };
        Ok(self.names.iter().zip(proofs).map(root).collect())
    }

    fn publish(&mut self) -> Result<(), Fault> {
        self.held.as_ref().map_or(Ok(()), |(held, _)| held.check("read"))
    }
}

fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for name in names {
        check_there(name)?;
        if !seen.insert(name) {
            return Err(Fault::new(FaultKind::Invalid, format!("'{name}' is named twice in one call")));
        }
    }
    Ok(())
}

/// What ranks compare of a write, but for its options.
fn compared_write(path: PathBuf, held: u64, strategy: Option<Strategy>) -> Compared {
    Compared::of(("write", path.clone(), held, strategy), move || {
        vec![
            ("operation".into(), "write".into()),
            ("file or store".into(), quoted(path.display())),
            ("bytes set aside for copies (staged)".into(), held.to_string()),
            ("strategy".into(), named(strategy)),
        ]
    })
}

/// Refuses a new array whose stored type this rank should tell, and does not know.
fn typed(name: &str, element: Option<ElementType>, known: bool, rank: u32) -> Result<(), Fault> {
    if known || element.is_some() || rank > 0 {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Invalid,
        format!("this rank holds no piece of '{name}', so the type of its elements is unknown"),
    )
    .hint("give dtype= on all ranks"))
}
