//! Arrays of a rehearsal: what is asked of them, and where their elements lie in memories without contents.

use super::spec::{Array, Dim, Store};
use hyperslab::{Error, LocalArray};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::stored::{Change, Coding, Keys};
use hyperslab_layout::{self as layout, Distribution, ElementType, Section, Triplet, tuple};
use hyperslab_pack::Memory;
use hyperslab_plan::{Spread, Stored, TransferArray};

/// The asks of an array, or of all of those alike.
pub(super) fn asks(array: &Array, clients: u32, fresh: bool) -> Result<Vec<TransferArray>, Error> {
    check(array, clients)?;
    let stored = element(&array.dtype, &array.name)?;
    let memory = element(array.memory_dtype.as_ref().unwrap_or(&array.dtype), &array.name)?;
    let section = section(array)?;
    let dims = array.dims.iter().map(|dim| spread(dim, &array.name)).collect::<Result<Vec<_>, _>>()?;
    let distribution = Distribution::new(&section.shape(), &array.mesh, &dims)
        .map_err(|error| Error::invalid(format!("array '{}': {error}", array.name)))?;
    let order: Vec<usize> = match array.order.as_str() {
        "C" => (0..array.shape.len()).collect(),
        "F" => (0..array.shape.len()).rev().collect(),
        other => {
            return Err(Error::invalid(format!("array '{}': order is \"C\" or \"F\", not \"{other}\"", array.name)));
        }
    };
    let one = |number: u32| {
        let name = if array.count == 1 { array.name.clone() } else { format!("{}{number}", array.name) };
        let stored = placed(array, stored, &name, fresh).ordered(order.clone());
        let spread = Spread::Regular(distribution.clone());
        TransferArray { name, section: section.clone(), spread, memory, stored }
    };
    Ok((0..array.count).map(one).collect())
}

/// Most arrays alike.
const COUNT_MAX: u32 = 1 << 20;
/// Most bytes of arrays \[B\].
const BYTES_MAX: u64 = 1 << 60;

/// Whether numbers fit each other, where nothing later looks at them.
fn check(array: &Array, clients: u32) -> Result<(), Error> {
    let refuse = |text: String| Err(Error::invalid(format!("array '{}': {text}", array.name)));
    let ndim = array.shape.len();
    if array.count == 0 {
        return refuse("its count is 0; at least one array moves".into());
    }
    if array.count > COUNT_MAX {
        return refuse(format!("{} arrays are more than the {COUNT_MAX} that are simulated", array.count));
    }
    // Places in memory and in files are computed with halo and neighbours, in either direction.
    let halo = |d: usize| array.local.halo.as_ref().and_then(|halo| halo.get(d)).copied().unwrap_or(0);
    let padded = array.shape.iter().enumerate().map(|(d, n)| halo(d).checked_mul(2)?.checked_add(*n));
    let chunk = match &array.store {
        Store::Chunks(chunk) => chunk.as_slice(),
        Store::File(_) => &[],
    };
    let sizes = [padded.collect::<Option<Vec<u64>>>().and_then(|padded| volume(&padded)), volume(chunk)];
    let woven = array.local.interleave.unwrap_or(1).max(1);
    let offset = if let Store::File(file) = &array.store { file.offset } else { 0 };
    let fits = |size: Option<u64>| {
        let bytes =
            size?.checked_mul(16)?.checked_mul(woven)?.checked_mul(u64::from(array.count))?.checked_add(offset)?;
        (bytes <= BYTES_MAX).then_some(bytes)
    };
    if sizes.into_iter().any(|size| fits(size).is_none()) {
        return refuse(format!("{} of shape {} take more than 2^60 B", array.count, tuple(&array.shape)));
    }
    match volume(&array.mesh) {
        Some(ranks) if ranks <= u64::from(clients) => {}
        _ => return refuse(format!("a mesh of {} needs more ranks than the {clients} clients", tuple(&array.mesh))),
    }
    if let Store::Chunks(chunk) = &array.store
        && (chunk.len() != ndim || chunk.contains(&0))
    {
        return refuse(format!(
            "a chunk of {chunk}, but the array has {ndim} dimension(s), and no extent may be 0",
            chunk = tuple(chunk)
        ));
    }
    if array.local.halo.as_ref().is_some_and(|halo| halo.len() != ndim) {
        return refuse(format!("halo for other than its {ndim} dimension(s)"));
    }
    Ok(())
}

fn placed(array: &Array, element: ElementType, name: &str, fresh: bool) -> Stored {
    match &array.store {
        Store::File(file) => {
            Stored::in_file(&array.shape, element, file.object.as_deref().unwrap_or(name), file.offset)
        }
        Store::Chunks(chunk) => {
            let keys = Keys::nested(format!("{name}/"));
            let change = if fresh { Change::Fresh } else { Change::Replace };
            Stored::in_chunks(&array.shape, element, chunk, keys, Coding::Plain).changed(change)
        }
    }
}

fn element(code: &str, name: &str) -> Result<ElementType, Error> {
    ElementType::from_numpy(code).filter(|element| !element.kind.is_opaque()).ok_or_else(|| {
        Error::invalid(format!("array '{name}': \"{code}\" is no element type; use a code of NumPy such as \"f8\""))
    })
}

fn section(array: &Array) -> Result<Section, Error> {
    let Some(dims) = &array.section else { return Ok(Section::whole(&array.shape)) };
    let triplet = |&[start, stride, count, block]: &[u64; 4]| Triplet { start, stride, count, block };
    let section = Section { dims: dims.iter().map(triplet).collect() };
    section.check(&array.shape).map_err(|error| Error::invalid(format!("array '{}': {error}", array.name)))?;
    Ok(section)
}

fn spread(dim: &Dim, name: &str) -> Result<layout::Dim, Error> {
    let unknown = |text: &str| {
        let known = "\"block\", \"block(n)\", \"cyclic\", \"cyclic(n)\", \"*\" or a list of sizes";
        Error::invalid(format!("array '{name}': \"{text}\" is no distribution of a dimension; it is {known}"))
    };
    match dim {
        Dim::Blocks(sizes) => layout::Dim::blocks(sizes).ok_or_else(|| unknown("sizes beyond 2^64")),
        Dim::Named(text) => {
            let (kind, size) = match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
                Some((kind, size)) => (kind, Some(size.trim().parse::<u64>().map_err(|_| unknown(text))?)),
                None => (text.as_str(), None),
            };
            match (kind.to_ascii_lowercase().as_str(), size) {
                ("block", None) => Ok(layout::Dim::Block),
                ("block", Some(size)) => Ok(layout::Dim::BlockOf(size)),
                ("cyclic", size) => Ok(layout::Dim::Cyclic(size.unwrap_or(1))),
                ("*", None) => Ok(layout::Dim::Whole),
                _ => Err(unknown(text)),
            }
        }
    }
}

/// Where a rank's elements of an array lie: dense in the order of the file but for halo and neighbours. The memory
/// has no bytes, because nothing moves.
pub(super) fn local(array: &Array, ask: &TransferArray, rank: u32) -> LocalArray {
    let region = owned(ask.spread.regular(), array, rank);
    let halo = |d: usize| array.local.halo.as_ref().and_then(|halo| halo.get(d)).copied().unwrap_or(0);
    let shape: Vec<u64> = region.shape().iter().enumerate().map(|(d, n)| n + 2 * halo(d)).collect();
    let pitch = ask.memory.bytes() * array.local.interleave.unwrap_or(1).max(1);
    let strides = layout::dense_strides(&shape, ask.stored.order(), pitch);
    let offset = strides.iter().enumerate().map(|(d, stride)| halo(d) as i64 * stride).sum();
    // Up to the end of the last element and the values beside it.
    let bytes = shape.iter().zip(&strides).map(|(n, stride)| n.saturating_sub(1) * stride.unsigned_abs()).sum::<u64>();
    let memory = Memory::imagined(bytes + pitch);
    LocalArray { memory, element: ask.memory, shape: region.shape(), strides, offset }
}

/// What a rank has of an array that is spread so, if it is in closed form.
pub(super) fn owned(distribution: Option<&Distribution>, array: &Array, rank: u32) -> layout::Region {
    distribution.map_or_else(|| layout::Region::empty(array.shape.len()), |d| d.owned(rank))
}
