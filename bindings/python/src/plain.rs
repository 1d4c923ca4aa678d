//! The plainest calls: raw files opened by their paths, and arrays of NumPy's, held as distributions say, which move whole or by
//! a section, with no other option.
//!
//! What the public package asks of arguments before a call takes longer than a small call does, and of hundreds of arrays longer
//! than they take to move, above all where ranks share cores and none of that is in the processor's cache. Of these nothing has
//! to be asked. Whatever is not as plain goes the long way, on this rank alone: what ranks say to each other is the same.

use crate::arrays::{RawPick, usual};
use crate::layout::Distribution;
use hyperslab::{
    Comm, Contents, ElementType, Error, File, FileArray, LocalArray, Mode, OpenOptions, Order, Ownership, Section,
    Sections,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PySlice, PyString, PyTuple};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

/// One array.
pub(crate) struct Plain {
    pub(crate) name: String,
    pub(crate) held: Arc<Ownership>,
    pub(crate) local: LocalArray,
}

/// Who holds what, where a distribution says it.
fn spread(dist: &Bound<'_, PyAny>) -> Option<Arc<Ownership>> {
    let core = dist.getattr(intern!(dist.py(), "_core")).ok()?;
    Some(core.cast_exact::<Distribution>().ok()?.get().0.clone())
}

impl Plain {
    /// The array of a call with these arguments, if they are so plain.
    pub(crate) fn of(
        name: &Bound<'_, PyAny>,
        dist: &Bound<'_, PyAny>,
        array: &Bound<'_, PyAny>,
        writable: bool,
    ) -> Option<Plain> {
        Plain::held(name, spread(dist)?, array, writable)
    }

    fn held(name: &Bound<'_, PyAny>, held: Arc<Ownership>, array: &Bound<'_, PyAny>, writable: bool) -> Option<Plain> {
        let name = name.cast_exact::<PyString>().ok()?.to_str().ok()?;
        Some(Plain { name: name.into(), held, local: usual(array, writable)? })
    }

    /// The arrays of a call that writes one, or a mapping of names to arrays, with one distribution behind it or a mapping of
    /// names to such.
    pub(crate) fn each(
        name: &Bound<'_, PyAny>,
        array: &Bound<'_, PyAny>,
        dist: &Bound<'_, PyAny>,
    ) -> Option<Vec<Plain>> {
        let Ok(arrays) = name.cast_exact::<PyDict>() else { return Some(vec![Plain::of(name, dist, array, false)?]) };
        let dist = match (array.is_none(), dist.is_none()) {
            (true, _) => dist,
            (false, true) => array,
            (false, false) => return None,
        };
        if arrays.is_empty() {
            return None;
        }
        let Ok(dists) = dist.cast_exact::<PyDict>() else {
            let held = spread(dist)?;
            return arrays.iter().map(|(name, array)| Plain::held(&name, held.clone(), &array, false)).collect();
        };
        let of = |(name, array): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Plain::of(&name, &dists.get_item(&name).ok()??, &array, false)
        };
        if dists.len() == arrays.len() { arrays.iter().map(of).collect() } else { None }
    }

    /// The arrays of a call that reads into one, or into those of a mapping in the order in which they are named, with one
    /// distribution.
    pub(crate) fn into(
        names: &Bound<'_, PyAny>,
        dist: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> Option<Vec<Plain>> {
        let Ok(into) = out.cast_exact::<PyDict>() else { return Some(vec![Plain::of(names, dist, out, true)?]) };
        let held = spread(dist)?;
        let of = |name: Bound<'_, PyAny>| Plain::held(&name, held.clone(), &into.get_item(&name).ok()??, true);
        let each: Vec<Plain> = items(names)?.into_iter().map(of).collect::<Option<_>>()?;
        let distinct: HashSet<&str> = each.iter().map(|one| &*one.name).collect();
        let all_once = distinct.len() == each.len() && each.len() == into.len();
        if all_once && !each.is_empty() { Some(each) } else { None }
    }

    /// What moves of arrays: all of them, or of a file that has them a section of slices and indices of each.
    pub(crate) fn selected(
        each: &[Plain],
        file: Option<&File>,
        section: Option<&Bound<'_, PyAny>>,
    ) -> Option<Sections> {
        let Some(section) = section.filter(|section| !section.is_none()) else { return Some(Sections::Whole) };
        let picks = match section.cast_exact::<PyTuple>() {
            Ok(each) => each.iter().map(|pick| pick.extract().ok()).collect::<Option<Vec<RawPick>>>()?,
            Err(_) => vec![section.cast_exact::<PySlice>().ok()?.extract().ok()?],
        };
        let picks: Vec<_> = picks.into_iter().map(RawPick::pick).collect();
        let of = |one: &Plain| -> Option<Section> {
            let shape = file?.shape_of(&one.name).filter(|shape| shape.len() == picks.len())?;
            hyperslab::binding::select(&picks, Some(&shape)).ok()
        };
        Some(Sections::Each(each.iter().map(of).collect::<Option<_>>()?))
    }
}

/// What is in a list or a tuple.
fn items<'py>(given: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    match (given.cast_exact::<PyTuple>(), given.cast_exact::<PyList>()) {
        (Ok(given), _) => Some(given.iter().collect()),
        (_, Ok(given)) => Some(given.iter().collect()),
        _ => None,
    }
}

/// The opening of a raw file.
pub(crate) struct PlainOpening {
    path: PathBuf,
    mode: Mode,
    order: Order,
    durable: bool,
    header: Vec<u8>,
    header_bytes: u64,
    arrays: Vec<FileArray>,
}

impl PlainOpening {
    /// The opening with these arguments, if they are so plain: a path that is no URL, a header of bytes or so many bytes, and a
    /// mapping of names to extents and types by their codes.
    pub(crate) fn of(
        (path, mode, durable): (PathBuf, &Bound<'_, PyAny>, &Bound<'_, PyAny>),
        (order, header, arrays): (&Bound<'_, PyAny>, &Bound<'_, PyAny>, &Bound<'_, PyAny>),
    ) -> Option<PlainOpening> {
        let mode = hyperslab::binding::mode_named(text(mode)?).ok()?;
        let order = match text(order)? {
            "C" => Order::RowMajor,
            "F" => Order::ColumnMajor,
            _ => return None,
        };
        let durable = durable.cast_exact::<PyBool>().ok()?.is_true();
        let shown = path.to_str().filter(|shown| !shown.is_empty() && !shown.contains([':', '\0']))?;
        let (content, count) = match header.cast_exact::<PyBytes>() {
            Ok(content) => (content.as_bytes(), Some(content.as_bytes().len() as u64)),
            Err(_) => (&[][..], header.cast_exact::<PyInt>().ok()?.extract().ok().filter(|_| !mode.writes_new())),
        };
        let arrays = if arrays.is_none() { Vec::new() } else { known(arrays.cast_exact::<PyDict>().ok()?)? };
        if shown.starts_with('~') || mode.writes_new() && !arrays.is_empty() {
            return None;
        }
        let header = if mode.writes_new() { content.to_vec() } else { Vec::new() };
        Some(PlainOpening { header, header_bytes: count?, path, mode, order, durable, arrays })
    }

    /// Opens it on all ranks.
    ///
    /// # Errors
    /// The same on all ranks.
    pub(crate) fn open(self, comm: &Comm) -> Result<File, Error> {
        let PlainOpening { path, mode, order, durable, header, header_bytes, arrays } = self;
        let contents = Contents { order, header, header_bytes, arrays };
        File::open(comm, path, mode, OpenOptions::default().durable(durable), contents)
    }
}

fn text<'a>(given: &'a Bound<'_, PyAny>) -> Option<&'a str> {
    given.cast_exact::<PyString>().ok()?.to_str().ok()
}

/// Arrays of a file, of which hundreds may be said to be alike with one object.
fn known(arrays: &Bound<'_, PyDict>) -> Option<Vec<FileArray>> {
    let mut found: Vec<FileArray> = Vec::with_capacity(arrays.len());
    let mut last: Option<Bound<'_, PyAny>> = None;
    for (name, given) in arrays.iter() {
        let name = text(&name)?.to_owned();
        let alike = found.last().filter(|_| last.as_ref().is_some_and(|last| last.is(&given)));
        let array = match alike {
            Some(alike) => FileArray { name, shape: alike.shape.clone(), element: alike.element },
            None => {
                let pair = given.cast_exact::<PyTuple>().ok().filter(|pair| pair.len() == 2)?;
                let shape = extents(&pair.get_item(0).ok()?)?;
                FileArray { name, shape, element: element(&pair.get_item(1).ok()?)? }
            }
        };
        found.push(array);
        last = Some(given);
    }
    Some(found)
}

fn extents(shape: &Bound<'_, PyAny>) -> Option<Vec<u64>> {
    items(shape)?.into_iter().map(|extent| extent.cast_exact::<PyInt>().ok()?.extract().ok()).collect()
}

/// A type of numbers, as NumPy's code says it, or one of NumPy's own objects: others have types that look like them.
fn element(given: &Bound<'_, PyAny>) -> Option<ElementType> {
    if let Some(code) = text(given) {
        return number(code);
    }
    let module = given.get_type().module().ok()?;
    // A number may be cut into fields, too.
    let own = module.to_str().ok()? == "numpy.dtypes" && given.getattr(intern!(given.py(), "names")).ok()?.is_none();
    if own { number(text(&given.getattr(intern!(given.py(), "str")).ok()?)?) } else { None }
}

/// By NumPy's code: perhaps a byte order, a letter, and how many bytes.
fn number(code: &str) -> Option<ElementType> {
    const CODES: [&str; 14] = ["b1", "i1", "u1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"];
    let bare = code.trim_start_matches(['<', '>', '|']);
    let ordered = code.len() - bare.len() <= 1 && (bare.ends_with("1") || !code.starts_with('|'));
    if ordered && CODES.contains(&bare) { ElementType::from_numpy(code) } else { None }
}
