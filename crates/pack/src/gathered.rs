//! Gathering by lists: each element from a place of its own to another place of its own.

use crate::bounds::{OutOfBounds, Side};
use crate::memory::{Memory, MemoryKind};
use crate::nan::CopyError;

/// Copies elements of `bytes` bytes: the one at `from_at[i]` goes to `to_at[i]`. Places are counted in elements.
///
/// # Errors
/// [`CopyError::OutOfBounds`] when a place lies outside of its memory, [`CopyError::OutOfReach`] when a memory is not of this
/// host; nothing has been copied then.
///
/// # Panics
/// When the lists differ in length.
pub fn gather((from, from_at): (&Memory, &[u32]), (to, to_at): (&Memory, &[u32]), bytes: u64) -> Result<(), CopyError> {
    assert_eq!(from_at.len(), to_at.len(), "each element comes from a place and goes to one");
    check(from, from_at, bytes, Side::From)?;
    check(to, to_at, bytes, Side::To)?;
    let (from, to) = (from.pointer().cast_const(), to.pointer());
    // SAFETY: all elements of both lists lie within their memories, as just checked, and those are alive.
    unsafe {
        match bytes {
            1 => each::<[u8; 1]>(from, from_at, to, to_at),
            2 => each::<[u8; 2]>(from, from_at, to, to_at),
            4 => each::<[u8; 4]>(from, from_at, to, to_at),
            8 => each::<[u8; 8]>(from, from_at, to, to_at),
            16 => each::<[u8; 16]>(from, from_at, to, to_at),
            _ => {
                let bytes = bytes as usize;
                for (&a, &b) in from_at.iter().zip(to_at) {
                    std::ptr::copy(from.add(a as usize * bytes), to.add(b as usize * bytes), bytes);
                }
            }
        }
    }
    Ok(())
}

/// # Safety
/// All elements of both lists must lie within their memories.
unsafe fn each<T: Copy>(from: *const u8, from_at: &[u32], to: *mut u8, to_at: &[u32]) {
    let (from, to) = (from.cast::<T>(), to.cast::<T>());
    for (&a, &b) in from_at.iter().zip(to_at) {
        // SAFETY: as the caller has promised; memories may lie at any address.
        unsafe { to.add(b as usize).write_unaligned(from.add(a as usize).read_unaligned()) }
    }
}

fn check(memory: &Memory, places: &[u32], bytes: u64, side: Side) -> Result<(), CopyError> {
    if memory.kind() != MemoryKind::Host {
        return Err(CopyError::OutOfReach(memory.kind()));
    }
    let (low, high) = places.iter().fold((u32::MAX, 0), |(low, high), &at| (low.min(at), high.max(at)));
    let (low, high) = (u64::from(low).saturating_mul(bytes), (u64::from(high) + 1).saturating_mul(bytes));
    if places.is_empty() || memory.holds(low, high) {
        return Ok(());
    }
    let at = |byte: u64| i64::try_from(byte).unwrap_or(i64::MAX);
    Err(OutOfBounds { side, low: at(low), high: at(high), bytes: memory.bytes() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_all_sizes_go_where_the_lists_say() {
        let mut random = fastrand::Rng::with_seed(20_261_130);
        for bytes in [1, 2, 3, 4, 8, 12, 16] {
            let from: Vec<u8> = (0..100 * bytes).map(|_| random.u8(..)).collect();
            let mut to_at: Vec<u32> = (0..50).collect();
            random.shuffle(&mut to_at);
            let from_at: Vec<u32> = to_at.iter().map(|_| random.u32(0..100)).collect();
            let to = Memory::from_vec(vec![0; 50 * bytes]);
            gather((&Memory::from_vec(from.clone()), &from_at), (&to, &to_at), bytes as u64).unwrap();
            for (&a, &b) in from_at.iter().zip(&to_at) {
                let (a, b) = (a as usize * bytes, b as usize * bytes);
                assert_eq!(to.to_vec(b as u64, bytes as u64), from[a..a + bytes]);
            }
        }
    }

    #[test]
    fn places_outside_are_refused_before_anything_moves() {
        let (from, to) = (Memory::from_vec(vec![1; 40]), Memory::from_vec(vec![0; 40]));
        for (from_at, to_at) in [([0, 10], [0, 1]), ([0, 9], [0, 10]), ([u32::MAX, 0], [0, 1])] {
            assert!(gather((&from, &from_at), (&to, &to_at), 4).is_err());
        }
        assert_eq!(to.to_vec(0, 40), [0; 40]);
        gather((&from, &[]), (&to, &[]), 4).unwrap();
    }
}
