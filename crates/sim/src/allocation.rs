//! Where files of a node's own lie on its disk.

use crate::placing::Piece;
use std::collections::BTreeMap;

/// Places on one disk: what is new gets room behind what got it last, also beside other files, as file systems give it; what
/// has a place keeps it. Files that nobody wrote here lie in order, each at a place of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allocation {
    /// Where the next new bytes go \[B\].
    end: u64,
    /// By file and offset in it, where bytes lie on the disk and how many of them \[B\].
    extents: BTreeMap<(u32, u64), (u64, u64)>,
}

impl Allocation {
    /// Gives a piece its place. Its own offset is where its file lies if nobody wrote it.
    pub(crate) fn place(&mut self, piece: Piece) -> Piece {
        let before = self.extents.range(..=(piece.file, piece.file_offset)).next_back();
        let before = before.filter(|((file, _), _)| *file == piece.file).map(|(&key, &extent)| (key, extent));
        if let Some(((_, from), (place, bytes))) = before
            && piece.file_offset < from + bytes
        {
            return Piece { offset: place + (piece.file_offset - from), ..piece };
        }
        let offset = if piece.write { self.end } else { piece.offset.wrapping_add(piece.file_offset) };
        if piece.write {
            self.end += piece.bytes;
        }
        match before {
            Some((key, (place, bytes))) if key.1 + bytes == piece.file_offset && place + bytes == offset => {
                self.extents.insert(key, (place, bytes + piece.bytes));
            }
            _ => {
                self.extents.insert((piece.file, piece.file_offset), (offset, piece.bytes));
            }
        }
        Piece { offset, ..piece }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(allocation: &mut Allocation, file: u32, at: u64, bytes: u64, write: bool) -> u64 {
        let offset = u64::from(file) << 40;
        let piece = Piece { server: 0, disk: 0, file, file_offset: at, offset, bytes, write, direct: false };
        allocation.place(piece).offset
    }

    #[test]
    fn what_is_written_first_follows_and_what_has_a_place_keeps_it() {
        let mut disk = Allocation::default();
        assert_eq!(placed(&mut disk, 0, 0, 10, true), 0);
        assert_eq!(placed(&mut disk, 1, 0, 10, true), 10);
        // A gap in the file is none on the disk.
        assert_eq!(placed(&mut disk, 0, 50, 10, true), 20);
        assert_eq!(placed(&mut disk, 0, 60, 10, true), 30);
        assert_eq!((placed(&mut disk, 0, 4, 2, false), placed(&mut disk, 0, 65, 2, true)), (4, 35));
        assert_eq!(placed(&mut disk, 0, 70, 1, true), 40);
    }

    #[test]
    fn files_of_others_lie_in_order() {
        let mut disk = Allocation::default();
        let base = 2 << 40;
        assert_eq!(placed(&mut disk, 2, 0, 10, false), base);
        assert_eq!(placed(&mut disk, 2, 100, 10, false), base + 100);
        // Written in place, since it was there.
        assert_eq!(placed(&mut disk, 2, 100, 10, true), base + 100);
    }
}
