//! Distributions. All of this is local.

use crate::failure::CallFailure;
use crate::foreign::{freed, given, handle, maybe_numbers, numbers, room, several};
use crate::handles::{CommHandle, DistHandle};
use crate::member::border;
use crate::options::{NDIM_MAX, extents};
use hyperslab::{Dim, Distribution, Error, Ownership, RunList, mesh};
use std::ffi::c_int;
use std::sync::Arc;

/// `hyperslab_dim`.
#[repr(C)]
pub struct CDim {
    kind: i32,
    mesh_dim: i32,
    block: i64,
    sizes: *const i64,
}

impl CDim {
    /// How a dimension is spread, over so many ranks.
    unsafe fn dim(&self, ranks: u64) -> Result<Dim, Error> {
        let block =
            u64::try_from(self.block).map_err(|_| Error::invalid(format!("a block has {} indices", self.block)))?;
        match (self.kind, block) {
            (1, 0) => Ok(Dim::Block),
            (1, block) => Ok(Dim::BlockOf(block)),
            (2, block) => Ok(Dim::Cyclic(block.max(1))),
            (3, _) => Ok(Dim::Whole),
            (4, _) => {
                // SAFETY: as the header asks.
                let sizes = unsafe { numbers("the sizes of uneven blocks", self.sizes, ranks as i64) }?;
                Dim::blocks(&sizes).ok_or_else(|| Error::invalid("the sizes of uneven blocks add up to too much"))
            }
            (kind, _) => Err(Error::invalid(format!("there is no way {kind} to distribute a dimension"))
                .with_hint("give HYPERSLAB_BLOCK, HYPERSLAB_CYCLIC, HYPERSLAB_WHOLE or HYPERSLAB_UNEVEN")),
        }
    }
}

/// Makes a distribution for the ranks of a communicator.
unsafe fn made(
    comm: *const CommHandle,
    dist: *mut *mut DistHandle,
    make: impl FnOnce(u32) -> Result<Ownership, Error>,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (place, CommHandle(member)) = unsafe { (handle(dist)?, given("the communicator", comm)?) };
        let held = Arc::new(member.alone(|| make(member.comm.size()))?);
        place.put(DistHandle { member: member.clone(), held });
        Ok(())
    })
}

/// In the words of HPF.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_dist_hpf(
    comm: *const CommHandle,
    ndim: i32,
    shape: *const i64,
    mesh_ndim: i32,
    mesh: *const i64,
    dims: *const CDim,
    dist: *mut *mut DistHandle,
) -> c_int {
    let make = |_| {
        // SAFETY: as the header asks, here and below.
        let (shape, mesh, dims) = unsafe {
            (
                numbers("the shape", shape, ndim.into())?,
                numbers("the mesh", mesh, mesh_ndim.into())?,
                several("dims", dims, ndim.into())?,
            )
        };
        let mut turn = 0..mesh.len();
        let (mut over, mut made) = (Vec::new(), Vec::new());
        for dim in dims {
            let axis = match (dim.kind, dim.mesh_dim) {
                (3, _) => None,
                (_, 0) => turn.next(),
                (_, given) => usize::try_from(given - 1).ok().filter(|axis| *axis < mesh.len()),
            };
            if dim.kind != 3 {
                let none = || {
                    Error::invalid(format!(
                        "the mesh has {} dimensions, and not one for each that is distributed",
                        mesh.len()
                    ))
                };
                over.push(axis.ok_or_else(none)?);
            }
            // SAFETY: as above.
            made.push(unsafe { dim.dim(axis.map_or(1, |axis| mesh[axis])) }?);
        }
        Ok(Distribution::over_mesh(&shape, &mesh, &made, &over)?.into())
    };
    // SAFETY: as the header asks.
    unsafe { self::made(comm, dist, make) }
}

/// Equal blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_dist_block(
    comm: *const CommHandle,
    ndim: i32,
    shape: *const i64,
    dist: *mut *mut DistHandle,
) -> c_int {
    let make = |ranks| {
        // SAFETY: as the header asks.
        let shape = unsafe { numbers("the shape", shape, ndim.into()) }?;
        let mesh = mesh::balanced(u64::from(ranks), shape.len());
        Ok(Distribution::new(&shape, &mesh, &vec![Dim::Block; shape.len()])?.into())
    };
    // SAFETY: as the header asks.
    unsafe { made(comm, dist, make) }
}

/// All of it on each rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_dist_replicated(
    comm: *const CommHandle,
    ndim: i32,
    shape: *const i64,
    dist: *mut *mut DistHandle,
) -> c_int {
    let make = |ranks| {
        // SAFETY: as the header asks.
        let shape = unsafe { numbers("the shape", shape, ndim.into()) }?;
        Ok(Distribution::replicated(&shape, u64::from(ranks))?.into())
    };
    // SAFETY: as the header asks.
    unsafe { made(comm, dist, make) }
}

/// Boxes of this rank's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_dist_boxes(
    comm: *const CommHandle,
    ndim: i32,
    shape: *const i64,
    count: i64,
    start: *const i64,
    extent: *const i64,
    dist: *mut *mut DistHandle,
) -> c_int {
    let make = |_| {
        let all = count.saturating_mul(ndim.into());
        // SAFETY: as the header asks.
        let (shape, start, extent) = unsafe {
            (
                numbers("the shape", shape, ndim.into())?,
                numbers("the start of boxes", start, all)?,
                numbers("the extent of boxes", extent, all)?,
            )
        };
        let bounds = |(start, extent): (&u64, &u64)| (*start, start.saturating_add(*extent));
        let bounds: Vec<(u64, u64)> = start.iter().zip(&extent).map(bounds).collect();
        let boxes = match shape.is_empty() {
            true => vec![Vec::new(); usize::try_from(count).unwrap_or(0)],
            false => bounds.chunks_exact(shape.len()).map(<[_]>::to_vec).collect(),
        };
        Ok(Ownership::Boxes { shape, boxes })
    };
    // SAFETY: as the header asks.
    unsafe { made(comm, dist, make) }
}

/// Runs of elements of this rank's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_dist_map(
    comm: *const CommHandle,
    ndim: i32,
    shape: *const i64,
    count: i64,
    start: *const i64,
    length: *const i64,
    dist: *mut *mut DistHandle,
) -> c_int {
    let make = |_| {
        // SAFETY: as the header asks.
        let (shape, start, length) = unsafe {
            (
                numbers("the shape", shape, ndim.into())?,
                numbers("the start of runs", start, count)?,
                numbers("the length of runs", length, count)?,
            )
        };
        Ok(Ownership::Runs(RunList::new(shape, start.into_iter().zip(length).collect())))
    };
    // SAFETY: as the header asks.
    unsafe { made(comm, dist, make) }
}

/// Frees one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_dist_free(dist: *mut DistHandle) {
    // SAFETY: as the header asks.
    border(|| unsafe { freed(dist) });
}

/// Shapes of what this rank has.
unsafe fn shape_of<'a>(dist: *const DistHandle, part: i64) -> Result<(&'a DistHandle, Vec<u64>), CallFailure> {
    // SAFETY: as the header asks.
    let dist = unsafe { given("the distribution", dist) }?;
    let mut shapes = dist.held.local_shapes(dist.member.comm.rank());
    let place = usize::try_from(part).ok().filter(|place| *place < shapes.len());
    let none = || Error::invalid(format!("this rank has {} parts, and no number {part}", shapes.len()));
    let place = place.ok_or_else(none)?;
    Ok((dist, shapes.swap_remove(place)))
}

/// How many memories this rank has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_dist_parts(dist: *const DistHandle, parts: *mut i64) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        unsafe { *room("the room for a number", parts)? = given("the distribution", dist)?.held.arrays() as i64 };
        Ok(())
    })
}

/// The shape of one of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_dist_local_shape(
    dist: *const DistHandle,
    part: i64,
    ndim: *mut i32,
    shape: *mut i64,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (_, found) = unsafe { shape_of(dist, part) }?;
        let mut all = [0; NDIM_MAX];
        extents(&found, &mut all)?;
        // SAFETY: as the header asks, there is room for these.
        unsafe {
            *room("the room for a number", ndim)? = found.len() as i32;
            room("the room for a shape", shape)?;
            std::ptr::copy_nonoverlapping(all.as_ptr(), shape, found.len());
        }
        Ok(())
    })
}

/// Where an element of one of them is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_dist_to_global(
    dist: *const DistHandle,
    part: i64,
    local: *const i64,
    global: *mut i64,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (dist, shape) = unsafe { shape_of(dist, part) }?;
        // SAFETY: as the header asks.
        let local = unsafe { maybe_numbers("the local index", local, shape.len()) }?.unwrap_or_default();
        let found = dist.held.global_index(dist.member.comm.rank(), part as usize, &local);
        let outside = || Error::invalid(format!("index {local:?} is out of range for a part of shape {shape:?}"));
        let found = found.ok_or_else(outside)?;
        let mut all = [0; NDIM_MAX];
        extents(&found, &mut all)?;
        // SAFETY: as the header asks, there is room for these.
        unsafe {
            room("the room for an index", global)?;
            std::ptr::copy_nonoverlapping(all.as_ptr(), global, found.len());
        }
        Ok(())
    })
}
