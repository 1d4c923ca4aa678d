//! What rank 0 does for an append: arrays are marked, so that of two that append at the same time the second sees what the
//! first left; their chunks are written beyond the end, where no reader looks; then they get their new shapes, all or none.

use super::consolidating::{drop_again, drop_consolidated};
use super::nodes::{check_elements_changeable, read_array};
use super::stored::stored;
use super::texts::in_slots;
use super::writing::is_seen;
use super::{METADATA_KEY, Store};
use crate::error::format_fault;
use crate::pinned::Pinned;
use crate::planning::Shaped;
use hyperslab_collective::attempts::{Growing, MARKER, Marker};
use hyperslab_collective::{ArrayRequest, Decision, Each, Target};
use hyperslab_format::zarr::ArrayMetadata;
use hyperslab_layout::stored::Stored;
use hyperslab_layout::tuple;
use hyperslab_plan::{MemoryLayout, Parameters, Transfer};
use hyperslab_world::{Fault, FaultKind, Proof, Root};
use std::sync::Arc;

/// Rank 0's side of an append along one dimension.
pub(super) struct Appending {
    store: Store,
    arrays: Vec<ArrayRequest>,
    axis: usize,
    markers: Vec<Marker>,
    /// Where what replaces chunks is made.
    updates: String,
    held: Option<Pinned>,
    found: Vec<Grown>,
}

/// An array that is appended to.
struct Grown {
    proof: Proof,
    /// What its metadata were told by when they were read.
    seen: String,
    /// What it will be.
    metadata: ArrayMetadata,
}

impl Appending {
    pub(super) fn new(store: Store, arrays: Vec<ArrayRequest>, axis: usize) -> Appending {
        let (markers, updates, found) = (Vec::new(), String::new(), Vec::new());
        Appending { store, arrays, axis, markers, updates, held: None, found }
    }

    fn at(&self, array: &ArrayRequest) -> String {
        format!("{}{}", self.store.base(), array.name)
    }

    fn key(&self, array: &ArrayRequest) -> String {
        format!("{}/{METADATA_KEY}", self.at(array))
    }

    /// Keeps others from changing an array.
    fn mark(&self, array: &ArrayRequest) -> Result<Marker, Fault> {
        let (store, name, at) = (&self.store, &array.name, self.at(array));
        let (marker, of) = (format!("{at}/{MARKER}"), store.shown(name));
        let growing = Growing { marker: &marker, of: &of, at: &at, key: METADATA_KEY };
        let missing = || Fault::new(FaultKind::NotFound, format!("there is no array '{name}'"));
        let marker = match store.attempts.is_taken(&at, METADATA_KEY)? {
            true => store.attempts.begin_growing(&growing),
            false => Err(missing()),
        };
        match marker {
            Err(_) if !store.attempts.is_taken(&at, METADATA_KEY)? => {
                Err(read_array(&*store.directory(), &store.base(), name).err().unwrap_or_else(missing))
            }
            marker => marker,
        }
    }

    /// Looks at an array that is marked; gives how it will be stored.
    fn grow(&mut self, number: usize) -> Result<Stored, Fault> {
        let (store, array) = (self.store.clone(), &self.arrays[number]);
        let at = self.at(array);
        let seen = store.attempts.seen(&self.key(array), true)?;
        let found = store.found(&array.name)?;
        check_elements_changeable(&array.name, &found)?;
        let (mut metadata, node) = found;
        let axis = self.axis;
        let fits = |of: &ArrayMetadata| of.shape.get(axis).is_none_or(|old| old % of.chunk_shape[axis] == 0);
        let slots = in_slots(array, metadata.clone(), None, fits)?;
        let (old, before) = (metadata.clone(), stored(&slots, number as u32, false));
        let by = array.holding.as_ref().map_or(&[][..], |holding| holding.shape());
        metadata.shape = grow(&array.name, &metadata.shape, by, self.axis)?;
        metadata.check(&array.name).map_err(format_fault)?;
        if old.shape[self.axis] % old.chunk_shape[self.axis] != 0 {
            store.attempts.check_changes(&at, "ends with chunks that are not full, which would change")?;
        }
        store.attempts.sweep(&at, &|inside| is_seen(&old, inside))?;
        let shape = metadata.shape.clone();
        self.found.push(Grown { proof: node.proof, seen, metadata });
        Ok(Stored { shape, ..before })
    }

    fn check_held(&self) -> Result<(), Fault> {
        self.held.as_ref().map_or(Ok(()), |held| held.check("appended to"))
    }

    fn end(&mut self, end: impl Fn(Marker) -> Result<(), Fault>) -> Result<(), Fault> {
        self.markers.drain(..).map(end).fold(Ok(()), Result::and)
    }
}

impl Target for Appending {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        self.updates = self.store.attempts.updates()?;
        for number in 0..self.arrays.len() {
            let marker = self.mark(&self.arrays[number])?;
            self.markers.push(marker);
        }
        let at = self.arrays.iter().map(|array| self.at(array)).collect::<Vec<_>>();
        let held = Pinned::of(self.store.directory(), at.into_iter());
        let stored = (0..self.arrays.len()).map(|number| self.grow(number)).collect();
        self.held = Some(held?);
        stored
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
        let root = |(array, grown): (&ArrayRequest, &Grown)| {
            self.store.attempts.ground_in_place(&self.at(array), grown.proof.clone(), &self.updates)
        };
        Ok(self.arrays.iter().zip(&self.found).map(root).collect())
    }

    fn publish(&mut self) -> Result<(), Fault> {
        let attempts = self.store.attempts.clone();
        // Markers went with what was replaced.
        self.check_held()?;
        let sync = self.store.syncs_writes();
        let change = |(array, grown): (&ArrayRequest, &Grown)| {
            let json = grown.metadata.to_json(&array.name).map_err(format_fault)?;
            Ok((self.key(array), grown.seen.clone(), json))
        };
        let changes = self.arrays.iter().zip(&self.found).map(change).collect::<Result<Vec<_>, Fault>>()?;
        let ancestors = self.store.ancestors(&self.store.shown(""));
        let dropped = drop_consolidated(&attempts, &ancestors);
        let grown = dropped.and_then(|()| attempts.replace_all(&changes, sync, || self.check_held()));
        if let Err(fault) = grown {
            if fault.kind == FaultKind::Unsynced {
                return Err(fault);
            }
            return Err(attempts.withdrawn(self.markers.drain(..), fault));
        }
        // They have grown: to do it again would append the same twice.
        let dropped = drop_again(&attempts, &ancestors);
        let at: Vec<String> = self.arrays.iter().map(|array| self.at(array)).collect();
        let synced = at.iter().map(|at| if sync { attempts.sync_published(at, at) } else { Ok(()) });
        let synced = synced.fold(Ok(()), Result::and);
        let unmarked = self
            .end(|marker| attempts.unmark(marker, true).map_err(|fault| attempts.left_behind(&at.join(", "), fault)));
        synced.and(dropped).and(unmarked)
    }

    /// Readers see nothing beyond the old shape.
    fn undo(&mut self, _moved: bool) {
        let attempts = self.store.attempts.clone();
        self.markers.drain(..).for_each(|marker| drop(attempts.withdraw(marker)));
    }

    /// Whoever still writes may rename what it wrote into an array. Markers stay without their locks, so that the next one
    /// who changes the array puts that out of the way first.
    fn abandon(&mut self) {
        self.markers.clear();
    }
}

/// The shape of an array that grows along a dimension by what has this shape.
fn grow(name: &str, shape: &[u64], by: &[u64], axis: usize) -> Result<Vec<u64>, Fault> {
    let fits =
        shape.len() == by.len() && axis < shape.len() && (0..shape.len()).all(|d| d == axis || shape[d] == by[d]);
    if axis >= shape.len() {
        let text =
            format!("'{name}' of shape {shape} has no dimension {axis} to be appended along", shape = tuple(shape));
        return Err(Fault::new(FaultKind::Invalid, text).hint("give axis= between 0 and the number of dimensions - 1"));
    }
    if !fits {
        let text = format!("what is appended to '{name}' along dimension {axis} does not fit");
        let expected = format!("shape {shape}, of any extent along dimension {axis}", shape = tuple(shape));
        return Err(Fault::new(FaultKind::Invalid, text)
            .expected(expected, format!("shape {by}", by = tuple(by)))
            .hint("give an array whose other extents are those of the stored array"));
    }
    let mut grown = shape.to_vec();
    grown[axis] += by[axis];
    Ok(grown)
}
