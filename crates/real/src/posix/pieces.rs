//! Calls that move several pieces of memory to or from one stretch of a file, and may move only a part of them.

use hyperslab_world::Moves;
use libc::iovec;
use std::io;

/// Pieces of one call; the system takes no more.
pub(super) const PIECES_MAX: usize = 1024;
/// Bytes of one call, so that an error is noticed and time passes in small steps \[B\].
pub(super) const CALL_BYTES_MAX: u64 = 8 << 20;

/// Moves all pieces, beginning at this offset of the file, by as many calls as that takes; `call` returns how many bytes it
/// moved, or less than 0 with the system's error. The pieces are gone afterwards. Gives the number of calls.
pub(super) fn in_calls(
    pieces: &mut Vec<iovec>,
    mut offset: u64,
    calls: &mut u64,
    mut call: impl FnMut(&[iovec], u64) -> isize,
) -> io::Result<()> {
    let mut first = 0;
    while first < pieces.len() {
        let end = pieces.len().min(first + PIECES_MAX);
        let moved = call(&pieces[first..end], offset);
        *calls += 1;
        if moved < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        if moved == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        offset += moved as u64;
        first += passed(&mut pieces[first..], moved as usize);
    }
    pieces.clear();
    Ok(())
}

/// Passes over what was moved; returns how many pieces that ends.
fn passed(pieces: &mut [iovec], mut moved: usize) -> usize {
    let mut ended = 0;
    for piece in pieces {
        if moved < piece.iov_len {
            piece.iov_base = piece.iov_base.cast::<u8>().wrapping_add(moved).cast();
            piece.iov_len -= moved;
            break;
        }
        moved -= piece.iov_len;
        ended += 1;
    }
    ended
}

/// The first byte of an object that is moved, and the one behind the last.
pub(super) fn hull(moves: &Moves) -> (u64, u64) {
    let bytes = moves.there.element.bytes();
    let hulls = moves.nests().filter_map(|nest| nest.hull_b(bytes));
    let (low, high) = hulls.fold((i64::MAX, 0), |(low, high), hull| (low.min(hull.0), high.max(hull.1)));
    (low as u64, high as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of the pieces.
    fn taken(pieces: &[iovec], most: usize) -> Vec<u8> {
        let bytes = |piece: &iovec| {
            // SAFETY: pieces of this test are parts of its array.
            unsafe { std::slice::from_raw_parts(piece.iov_base.cast::<u8>(), piece.iov_len) }.to_vec()
        };
        let mut all: Vec<u8> = pieces.iter().flat_map(bytes).collect();
        all.truncate(most);
        all
    }

    #[test]
    fn calls_that_move_a_part_are_followed_by_others() {
        let mut bytes: Vec<u8> = (0..100).collect();
        for most in [1, 3, 7, 10, 64, 100] {
            let pieces = [(0, 10), (10, 1), (20, 5), (30, 0), (40, 30)];
            let expected: Vec<u8> = pieces.iter().flat_map(|&(start, length)| start..start + length).collect();
            let piece = |&(start, length): &(u8, u8)| iovec {
                iov_base: bytes[usize::from(start)..].as_mut_ptr().cast(),
                iov_len: usize::from(length),
            };
            let mut pieces: Vec<iovec> = pieces.iter().map(piece).collect();
            let (mut calls, mut moved) = (0, Vec::new());
            in_calls(&mut pieces, 1000, &mut calls, |pieces, offset| {
                assert_eq!(offset, 1000 + moved.len() as u64);
                let taken = taken(pieces, most);
                moved.extend(&taken);
                taken.len() as isize
            })
            .unwrap();
            assert_eq!((moved, calls), (expected.clone(), expected.len().div_ceil(most) as u64));
            assert!(pieces.is_empty());
        }
    }

    #[test]
    fn a_call_that_moves_nothing_ends_it() {
        let mut byte = 0u8;
        let mut pieces = vec![iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 }];
        let ended = in_calls(&mut pieces, 0, &mut 0, |_, _| 0).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }
}
