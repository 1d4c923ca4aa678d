//! What ranks do with stores: they open one, write into it or read from it, begin and publish steps, and close it, by programs
//! of the library.

use super::array::{asks, local};
use super::spec::{Array, BeginStore, Store as Place, TransferSpec};
use crate::imagined::{ChosenCall, ProgramPart, ProgramState, Programs};
use hyperslab::binding::strategy_named;
use hyperslab::{
    ArrayWrite, Casting, Comm, Contents, Error, File, LocalArray, Mode, OpenOptions, ReadOptions, Section, Step, Store,
    WriteOptions,
};
use hyperslab_sim::Scene;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// ImaginedStores of a rehearsal, and what was chosen for calls on them, with the number of their stage.
pub(super) struct ImaginedStores {
    programs: Programs,
    pub(super) chosen: Rc<RefCell<Vec<(usize, ChosenCall)>>>,
}

/// What is open.
enum OpenTarget {
    Zarr(Box<Store>, Option<Box<Step>>),
    Raw(Box<File>),
}

fn opened<'a>(state: &'a mut ProgramState, name: &str) -> Result<&'a mut OpenTarget, Error> {
    let open = state.get_mut(name).and_then(|open| open.downcast_mut());
    open.ok_or_else(|| unopened(name))
}

fn unopened(name: &str) -> Error {
    Error::invalid(format!("'{name}' is not open\n  hint: open it with {{\"begin\": {{\"store\": \"{name}\"}}}}"))
}

impl ImaginedStores {
    pub(super) fn new(programs: Programs) -> ImaginedStores {
        ImaginedStores { programs, chosen: Rc::default() }
    }

    fn scene(&self, part: impl Fn(&Comm, &mut ProgramState) -> Result<(), Error> + Send + Sync + 'static) -> Scene {
        self.programs.scene(false, Arc::new(part), Rc::new(|_| ()))
    }

    /// A store is opened: a Zarr group, or a raw file where its name does not end with `.zarr`.
    pub(super) fn begin(&self, asked: &BeginStore) -> Result<Scene, Error> {
        let BeginStore { store, mode, durable } = asked.clone();
        let mode =
            Mode::from_name(&mode).ok_or_else(|| Error::invalid(format!("'{mode}' is no mode: r, r+, w or x")))?;
        Ok(self.scene(move |comm, state| {
            let (path, options) = (Path::new(&store), OpenOptions::default().durable(durable));
            let open = match store.ends_with(".zarr") {
                true => OpenTarget::Zarr(Box::new(Store::open(comm, path, mode, options)?), None),
                false => {
                    let contents = Contents::default();
                    OpenTarget::Raw(Box::new(File::open(comm, path, mode, options, contents)?))
                }
            };
            state.insert(store.clone(), Box::new(open));
            Ok(())
        }))
    }

    /// A step of a group is begun; what is written from now on goes into it.
    pub(super) fn step(&self, store: &str, name: &str) -> Scene {
        let (store, name) = (store.to_string(), name.to_string());
        self.scene(move |_, state| match opened(state, &store)? {
            OpenTarget::Zarr(group, step) => {
                *step = Some(Box::new(group.step(&name, Default::default(), false)?));
                Ok(())
            }
            OpenTarget::Raw(_) => Err(Error::invalid(format!("'{store}' is a raw file, which has no steps"))),
        })
    }

    /// Its step is published.
    pub(super) fn publish(&self, store: &str) -> Scene {
        let store = store.to_string();
        self.scene(move |_, state| match opened(state, &store)? {
            OpenTarget::Zarr(_, step) if step.is_some() => step.take().map_or(Ok(()), |step| step.publish()),
            _ => Err(Error::invalid(format!("'{store}' has no step that could be published"))),
        })
    }

    /// It is closed; a new raw file takes its name.
    pub(super) fn end(&self, store: &str) -> Scene {
        let store = store.to_string();
        self.scene(move |_, state| {
            let open = state.remove(&store).and_then(|open| open.downcast::<OpenTarget>().ok());
            match *open.ok_or_else(|| unopened(&store))? {
                OpenTarget::Zarr(store, _) => store.close(),
                OpenTarget::Raw(file) => file.close(),
            }
        })
    }

    /// Arrays are written into it, or read from it.
    pub(super) fn transfer(&self, stage: usize, asked: &TransferSpec, clients: u32) -> Result<Scene, Error> {
        let part = if asked.write { writing(asked, clients)? } else { reading(asked, clients)? };
        let chosen = self.chosen.clone();
        let moved = move |call| chosen.borrow_mut().push((stage, call));
        Ok(self.programs.scene(true, part, Rc::new(moved)))
    }
}

/// The arrays of a call, one by one.
fn arrays(asked: &TransferSpec, clients: u32) -> Result<Vec<(Array, hyperslab_plan::TransferArray)>, Error> {
    let forced = asked.servers.is_some() || asked.slots.is_some() || asked.subchunk_bytes.is_some();
    if forced || asked.buffer_bytes.is_some() || asked.exchange.is_some() {
        let text = "a call on a store chooses servers, slots, subchunks, buffers and exchange by itself";
        return Err(Error::invalid(format!("{text}\n  hint: of a transfer without a store they can be forced")));
    }
    let mut all = Vec::new();
    for array in &asked.arrays {
        all.extend(asks(array, clients, true)?.into_iter().map(|ask| (array.clone(), ask)));
    }
    match all.is_empty() {
        true => Err(Error::invalid("a transfer without arrays")),
        false => Ok(all),
    }
}

fn store_of(asked: &TransferSpec) -> String {
    asked.store.clone().unwrap_or_default()
}

fn writing(asked: &TransferSpec, clients: u32) -> Result<ProgramPart, Error> {
    let (arrays, store, append) = (arrays(asked, clients)?, store_of(asked), asked.append);
    let mut options = WriteOptions::default().overwrite(asked.overwrite).casting(Casting::Unsafe);
    if let Some(name) = &asked.strategy {
        options = options.strategy(strategy_named(name)?);
    }
    let (first, ask) = &arrays[0];
    let update = first.section.is_some();
    if update {
        options = options.section(arrays.iter().map(|(_, ask)| ask.section.clone()).collect::<Vec<Section>>());
    } else if append.is_none() {
        if let Place::Chunks(chunk) = &first.store {
            options = options.chunks(chunk.clone());
        }
        options = options.element(ask.stored.element);
    }
    Ok(Arc::new(move |comm, state| {
        let rank = comm.rank();
        let each = arrays.iter().map(|(array, ask)| {
            let distribution = ask.spread.regular().expect("spread in closed form").clone();
            ArrayWrite::new(ask.name.clone(), local(array, ask, rank), distribution)
        });
        let each: Vec<ArrayWrite> = each.collect();
        let group = match opened(state, &store)? {
            OpenTarget::Zarr(store, None) => store,
            OpenTarget::Zarr(_, Some(step)) => &mut step.group,
            OpenTarget::Raw(file) => return file.write(&each, &options).map(drop),
        };
        match append {
            Some(axis) => group.append(&each, axis, &options).map(drop),
            None => group.write(&each, &options).map(drop),
        }
    }))
}

fn reading(asked: &TransferSpec, clients: u32) -> Result<ProgramPart, Error> {
    let (arrays, store) = (arrays(asked, clients)?, store_of(asked));
    let (first, ask) = arrays[0].clone();
    let distribution = ask.spread.regular().expect("spread in closed form").clone();
    if arrays.iter().any(|(_, other)| (&other.spread, &other.section) != (&ask.spread, &ask.section)) {
        return Err(Error::invalid("arrays that are read from a store in one call are spread alike"));
    }
    let strategy = asked.strategy.as_deref().map(strategy_named).transpose()?;
    Ok(Arc::new(move |comm, state| {
        let into: Vec<LocalArray> = arrays.iter().map(|(array, ask)| local(array, ask, comm.rank())).collect();
        let names: Vec<&str> = arrays.iter().map(|(_, ask)| &*ask.name).collect();
        let mut options = ReadOptions::default().holding(distribution.clone()).into(into).casting(Casting::Unsafe);
        options.strategy = strategy;
        if first.section.is_some() {
            options = options.section(ask.section.clone());
        }
        match opened(state, &store)? {
            OpenTarget::Zarr(store, None) => store.read(&names, options).map(drop),
            OpenTarget::Zarr(_, Some(step)) => step.group.read(&names, options).map(drop),
            OpenTarget::Raw(file) => file.read(&names, options).map(drop),
        }
    }))
}
