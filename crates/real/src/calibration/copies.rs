//! Copies out of an array into a slot, as servers and clients make them.

use super::turns::{Case, Effort, Series, Turns};
use hyperslab_layout::{ElementType, Kind, Loop, Nest};
use hyperslab_pack::{Memory, OutOfMemory, copy};
use hyperslab_world::{Fault, FaultKind};
use std::time::Instant;

/// Bytes of a slot \[B\]: those of a common subchunk.
const SLOT_BYTES: u64 = 2 << 20;
/// Lengths of runs \[B\].
const RUNS: [u64; 6] = [8, 32, 128, 512, 2048, 8192];
/// Distance between runs in the array, in lengths of a run.
const SPREAD: u64 = 4;
/// Elements of copies that turn the order of two dimensions over, and how many of them lie together in the slot. No power of
/// two, as extents of arrays with halo are none.
const TURNED: [Kind; 4] = [Kind::UInt8, Kind::Int16, Kind::Float32, Kind::Float64];
const TURNED_COLUMNS: u64 = 200;
/// The array, in largest buffers: several times what caches hold.
const ARRAY: u64 = 4;

/// Times of copies of a slot's bytes: `copy`, at `bytes` in `runs`; of copies that turn the order of two dimensions over:
/// `turn`, at `bytes` in `runs`, which are single elements; and of a byte written to each page of new memory: `touch`, at
/// `bytes`.
///
/// The array is longer than caches, and is walked on from copy to copy, so that its bytes come from memory; the slot
/// is the same again and again, as in transfers.
///
/// # Errors
/// When there is no memory for it, or somebody wants it to stop.
pub fn copies(effort: Effort, interrupted: &mut dyn FnMut() -> bool) -> Result<Vec<Series>, Fault> {
    let slot_bytes = SLOT_BYTES.min(effort.bytes / SPREAD);
    let array = touched(ARRAY * effort.bytes)?;
    let slot = touched(slot_bytes)?;
    let (array, slot) = (&array, &slot);
    let timed = |kernel, runs: u64, loops: Vec<Loop>, element: ElementType, stretch: u64| {
        let mut at = 0;
        let bytes = loops.iter().map(|l| l.count).product::<u64>() * element.bytes();
        Case::new(kernel, &[("bytes", bytes as f64), ("runs", runs as f64)], move || {
            if at + stretch > array.bytes() {
                at = 0;
            }
            let nest = Nest { a: at as i64, b: 0, loops: loops.clone().into() }.normalised();
            at += stretch;
            let begun = Instant::now();
            copy(&nest, array, element, slot, element).expect("the nest was made for these memories");
            Ok(begun.elapsed().as_secs_f64())
        })
    };
    let apart = |run: u64, spread: u64| {
        let (element, runs) = (ElementType::native(Kind::Float64), slot_bytes / run);
        let each = element.bytes() as i64;
        let inner = Loop { count: run / element.bytes(), a: each, b: each };
        let outer = Loop { count: runs, a: (run * spread) as i64, b: run as i64 };
        timed("copy", runs, vec![outer, inner], element, slot_bytes * spread)
    };
    let turned = |kind| {
        let element = ElementType::native(kind);
        let each = element.bytes() as i64;
        let columns = TURNED_COLUMNS.min(slot_bytes / element.bytes());
        let rows = slot_bytes / element.bytes() / columns;
        let outer = Loop { count: rows, a: each, b: columns as i64 * each };
        let inner = Loop { count: columns, a: rows as i64 * each, b: each };
        timed("turn", rows * columns, vec![outer, inner], element, slot_bytes)
    };
    let mut cases = vec![apart(slot_bytes, 1)];
    cases.extend(RUNS.map(|run| apart(run, SPREAD)));
    cases.extend(TURNED.map(turned));
    cases.push(touch(slot_bytes as usize));
    Turns::new(effort.time).take(cases, interrupted)
}

/// Touching pages of memory that is the system's again as soon as it is given back, whatever allocator there is.
fn touch(bytes: usize) -> Case<'static> {
    Case::new("touch", &[("bytes", bytes as f64)], move || {
        let mut new = vec![0u8; bytes.max(64 << 20)];
        let begun = Instant::now();
        new[..bytes].iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        Ok(begun.elapsed().as_secs_f64())
    })
}

fn no_memory(error: OutOfMemory) -> Fault {
    Fault::new(FaultKind::Storage, format!("measuring: {error}")).hint("measure with less memory")
}

/// Memory whose pages are there.
pub(super) fn touched(bytes: u64) -> Result<Memory, Fault> {
    let memory = Memory::allocate(bytes).map_err(no_memory)?;
    let pattern: Vec<u8> = (0..1 << 16).map(|byte: u32| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for start in (0..bytes).step_by(pattern.len()) {
        memory.write_bytes(start, &pattern[..pattern.len().min((bytes - start) as usize)]);
    }
    Ok(memory)
}
