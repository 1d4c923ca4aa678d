//! Copies out of an array into a slot, as servers and clients make them.

use super::turns::{Case, Effort, Series, Turns};
use hyperslab_layout::{ElementType, Kind, Loop, Nest};
use hyperslab_pack::{Memory, copy};
use hyperslab_world::{Fault, FaultKind};
use std::time::Instant;

/// Bytes of a slot \[B\]: those of a common subchunk.
const SLOT_BYTES: u64 = 2 << 20;
/// Lengths of runs \[B\].
const RUNS: [u64; 6] = [8, 32, 128, 512, 2048, 8192];
/// Distance between runs in the array, in lengths of a run.
const SPREAD: u64 = 4;
/// The array, in largest buffers: several times what caches hold.
const ARRAY: u64 = 4;

/// Times of copies of a slot's bytes: `copy`, at `bytes` in `runs`.
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
    let element = ElementType::native(Kind::Float64);
    let case = |run: u64, spread: u64| {
        let runs = slot_bytes / run;
        let (stretch, mut at) = (slot_bytes * spread, 0);
        Case::new("copy", &[("bytes", (runs * run) as f64), ("runs", runs as f64)], move || {
            if at + stretch > array.bytes() {
                at = 0;
            }
            let elements = element.bytes();
            let inner = Loop { count: run / elements, a: elements as i64, b: elements as i64 };
            let outer = Loop { count: runs, a: (run * spread) as i64, b: run as i64 };
            let nest = Nest { a: at as i64, b: 0, loops: vec![outer, inner] }.normalised();
            at += stretch;
            let begun = Instant::now();
            copy(&nest, array, element, slot, element).expect("the nest was made for these memories");
            Ok(begun.elapsed().as_secs_f64())
        })
    };
    let mut cases = vec![case(slot_bytes, 1)];
    cases.extend(RUNS.map(|run| case(run, SPREAD)));
    Turns::new(effort.time).take(cases, interrupted)
}

/// Memory whose pages are there.
pub(super) fn touched(bytes: u64) -> Result<Memory, Fault> {
    let memory = Memory::allocate(bytes).map_err(|error| {
        Fault::new(FaultKind::Storage, format!("measuring: {error}")).hint("measure with less memory")
    })?;
    let pattern: Vec<u8> = (0..1 << 16).map(|byte: u32| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for start in (0..bytes).step_by(pattern.len()) {
        memory.write_bytes(start, &pattern[..pattern.len().min((bytes - start) as usize)]);
    }
    Ok(memory)
}
