//! Other extents of an array that is there: what is cut off goes, what is added has the fill value.
//!
//! An array that was cut may keep elements beyond its end, in chunks that it still has a part of. Before it grows over them
//! they get the fill value, by an append that ends with the chunk; all beyond is chunks that are not there, and metadata.

use super::editing::Editing;
use super::nodes::has_texts;
use super::writing::is_outside;
use super::{METADATA_KEY, Store};
use crate::array_write::ArrayWrite;
use crate::error::{Error, format_fault};
use crate::options::WriteOptions;
use hyperslab_collective::LocalArray;
use hyperslab_format::zarr::ArrayMetadata;
use hyperslab_layout::{Dim, Distribution, tuple};
use hyperslab_pack::Memory;
use hyperslab_world::{Fault, FaultKind, Names};
use std::cell::RefCell;

impl Store {
    /// Gives an array another shape. Collective. Readers see the new shape at once; where it grows over chunks that are
    /// there, in several steps along one dimension after another, of which each is a shape between the old and the new.
    ///
    /// # Errors
    /// The same on all ranks, when there is no such array, or it cannot have that shape.
    pub fn resize(&self, name: &str, shape: &[u64]) -> Result<(), Error> {
        let what = format!("resize '{name}' of '{}'", self.path().display());
        if let Some((group, asks)) = self.inside(&[ArrayWrite::unheld(name)], false)? {
            return group.resize(&asks[0].name, shape);
        }
        let found = self.describe(&[name], "resize", true)?.swap_remove(0).metadata;
        if found.shape.len() != shape.len() {
            let text = format!("{what}: the number of dimensions stays");
            let fault = Fault::new(FaultKind::Invalid, text)
                .expected(format!("{} extents", found.shape.len()), tuple(shape).to_string());
            return Err(self.comm.attend_with(&what, fault));
        }
        if found.has_texts() && found.shape.iter().zip(shape).any(|(old, new)| new > old) {
            return Err(self.comm.attend_with(&what, has_texts(name)));
        }
        let mut now: Vec<u64> = found.shape.iter().zip(shape).map(|(old, new)| *old.min(new)).collect();
        if now != found.shape || now == shape {
            self.set_shape(&what, name, &now)?;
        }
        for axis in 0..now.len() {
            let chunk = found.chunk_shape[axis];
            let end = (now[axis].div_ceil(chunk) * chunk).min(shape[axis]);
            if end > now[axis] {
                let mut by = now.clone();
                by[axis] = end - now[axis];
                self.append_fill(name, &found, &by, axis)?;
                now[axis] = end;
            }
        }
        if now != shape { self.set_shape(&what, name, shape) } else { Ok(()) }
    }

    /// Appends the fill value, which is one element, again and again.
    fn append_fill(&self, name: &str, of: &ArrayMetadata, by: &[u64], axis: usize) -> Result<(), Error> {
        let longest = (0..by.len()).max_by_key(|&d| by[d]).unwrap_or(0);
        let dims: Vec<Dim> = (0..by.len()).map(|d| if d == longest { Dim::Block } else { Dim::Whole }).collect();
        let spread = Distribution::new(by, &[u64::from(self.comm.size())], &dims)
            .map_err(|error| Error::invalid(format!("resize '{name}': {error}")))?;
        let part = spread.owned(self.comm.rank()).shape();
        let one = LocalArray {
            memory: Memory::from_vec(of.fill_value.clone()),
            element: of.stored_element(),
            strides: vec![0; part.len()],
            shape: part,
            offset: 0,
        };
        let ask = ArrayWrite::new(name, one, spread);
        self.append(&[ask], axis, &WriteOptions::default()).map(drop)
    }

    /// Sets the shape in the metadata, and removes the chunks that lie outside of it, also such as were left before.
    fn set_shape(&self, what: &str, name: &str, shape: &[u64]) -> Result<(), Error> {
        let (shape, of) = (shape.to_vec(), name.to_string());
        let fields = vec![("shape".to_string(), tuple(&shape).to_string())];
        self.edit(what.to_string(), fields, name, move |editing| {
            let sweep = |metadata: &ArrayMetadata| remove_outside(editing, metadata);
            let cut = RefCell::new(None);
            editing.amend(
                |bytes, _| {
                    let mut metadata = ArrayMetadata::parse(bytes, &editing.key()).map_err(format_fault)?;
                    // What an earlier cut left shall not be seen when the array grows.
                    sweep(&metadata)?;
                    metadata.shape.clone_from(&shape);
                    metadata.check(&of).map_err(format_fault)?;
                    let json = metadata.to_json(&of).map_err(format_fault)?;
                    cut.replace(Some(metadata));
                    Ok(json)
                },
                // Still under the marker: who appends next may make chunks there again.
                || {
                    let swept = cut.borrow().as_ref().map_or(Ok(()), sweep);
                    swept.map_err(chunks_left)
                },
            )
        })
    }
}

/// The shape is the new one for all readers, but something that nobody reads is left.
fn chunks_left(why: Fault) -> Fault {
    why.as_kind(FaultKind::Unsynced)
        .context("the array has its new shape, but chunks outside of it are left")
        .hint("resize it to the same shape again; it cannot grow over them before")
}

/// Removes chunks that lie outside of an array's grid.
fn remove_outside(editing: &Editing, metadata: &ArrayMetadata) -> Result<(), Fault> {
    let mut inside = Vec::new();
    listed(editing.names(), &editing.at, "", metadata.shape.len(), &mut inside)?;
    for name in inside.iter().filter(|name| is_outside(metadata, name)) {
        editing.names().remove(&format!("{}/{name}", editing.at))?;
    }
    Ok(())
}

/// Names of objects in an array that may be chunks, in directories as deep as it has dimensions.
fn listed(names: &dyn Names, at: &str, below: &str, depth: usize, all: &mut Vec<String>) -> Result<(), Fault> {
    for name in names.list(&format!("{at}/{below}"))? {
        if below.is_empty() && (name == METADATA_KEY || name.starts_with('.')) {
            continue;
        }
        let inside = format!("{below}{name}");
        match names.length(&format!("{at}/{inside}")) {
            Some(_) => all.push(inside),
            None if depth > 0 => listed(names, at, &format!("{inside}/"), depth - 1, all)?,
            None => {}
        }
    }
    Ok(())
}

impl ArrayWrite {
    /// An array that is named, and nothing else.
    fn unheld(name: &str) -> ArrayWrite {
        ArrayWrite { name: name.into(), arrays: Vec::new(), holding: None }
    }
}
