//! Where the bytes of files lie: on which server, on which of its disks, and where there.

use crate::machine::Size;
use hyperslab_plan::profile::{Layout, Profile};
use hyperslab_plan::{Parameters, Transfer, Units};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the blocks of a file lie on a disk (Kotz 1997, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DiskLayout {
    /// One after another.
    #[default]
    Contiguous,
    /// Each anywhere.
    RandomBlocks,
    /// In tracks that lie anywhere, one after another inside a track.
    RandomTracks,
}

impl DiskLayout {
    /// All of them.
    pub const ALL: [DiskLayout; 3] = [DiskLayout::Contiguous, DiskLayout::RandomBlocks, DiskLayout::RandomTracks];

    /// Its name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            DiskLayout::Contiguous => "contiguous",
            DiskLayout::RandomBlocks => "random-blocks",
            DiskLayout::RandomTracks => "random-tracks",
        }
    }
}

/// What an HP 97560 holds \[B\], in whole units of any usual size.
pub(crate) const DISK_BYTES: u64 = 160_000 * 8192;
/// What a track of it holds \[B\].
const TRACK_BYTES: u64 = 72 * 512;
/// Distance between the beginnings of files on one disk \[B\]: so far that those of studies do not meet.
const FILE_PITCH: u64 = 20_011 * 8192;
/// Bytes of a disk that one file may take where its place does not matter \[B\].
const FILE_SPAN: u64 = 1 << 44;

/// A part of a call that one disk serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) server: u32,
    pub(crate) disk: u32,
    /// Number of the file.
    pub(crate) file: u32,
    /// Where it begins in the file \[B\].
    pub(crate) file_offset: u64,
    /// Where it begins on the disk \[B\].
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) write: bool,
    /// Past the server's cache.
    pub(crate) direct: bool,
}

/// Cuts calls into pieces.
#[derive(Clone, Debug)]
pub(crate) struct Placing {
    pub(crate) layout: Layout,
    pub(crate) servers: u32,
    pub(crate) disks: u32,
    /// Places of blocks by disk, for layouts at random.
    places: Vec<Vec<u64>>,
}

/// Where files of a node's own lie on its disk: what is written in rising order of offsets gets room one after another, also
/// beside what was written to other files before, as file systems give it; who goes back in a file finds its place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Following {
    /// Where the last piece ended on the disk \[B\].
    end: u64,
    /// Where the last piece of each file ended in the file \[B\].
    ends: BTreeMap<u32, u64>,
}

impl Following {
    /// Gives a piece its place.
    pub(crate) fn place(&mut self, piece: Piece) -> Piece {
        let follows = self.ends.get(&piece.file).is_none_or(|&end| end <= piece.file_offset);
        self.ends.insert(piece.file, piece.file_offset + piece.bytes);
        let offset = if follows { self.end } else { u64::from(piece.file) * FILE_SPAN + piece.file_offset };
        self.end = offset + piece.bytes;
        Piece { offset, ..piece }
    }
}

impl Placing {
    pub(crate) fn new(layout: Layout, servers: u32, disks: u32, on_disk: DiskLayout, seed: u64) -> Placing {
        let places = match layout {
            Layout::Ranks { unit_bytes } if on_disk != DiskLayout::Contiguous => {
                (0..servers * disks).map(|disk| random_places(on_disk, seed, disk, unit_bytes)).collect()
            }
            _ => Vec::new(),
        };
        Placing { layout, servers, disks, places }
    }

    /// Bytes from a place of a file on that lie together on one disk \[B\].
    fn unit(&self) -> u64 {
        match self.layout {
            Layout::Local => u64::MAX,
            Layout::Ranks { unit_bytes } | Layout::Apart { unit_bytes, .. } => unit_bytes,
        }
    }

    /// The piece that begins at an offset of a file, no longer than up to `end`. `home` is the server of the caller's own
    /// node, where each has its own.
    pub(crate) fn piece(&self, home: u32, file: u32, from: u64, end: u64) -> Piece {
        let unit = self.unit();
        let (block, inside) = (from / unit, from % unit);
        let bytes = (end - from).min(unit - inside);
        let (server, disk, local) = match self.layout {
            Layout::Local => (home, 0, 0),
            Layout::Ranks { .. } => {
                let all = u64::from(self.servers * self.disks);
                let turn = block % all;
                ((turn % u64::from(self.servers)) as u32, (turn / u64::from(self.servers)) as u32, block / all)
            }
            Layout::Apart { width, .. } => {
                let first = u64::from(file) * u64::from(width);
                let server = (first + block % u64::from(width)) % u64::from(self.servers);
                let local = block / u64::from(width);
                (server as u32, (local % u64::from(self.disks)) as u32, local / u64::from(self.disks))
            }
        };
        let offset = self.place(file, server, disk, local) + inside;
        Piece { server, disk, file, file_offset: from, offset, bytes, write: false, direct: false }
    }

    /// Where the `local`-th block of a file on a disk begins \[B\].
    fn place(&self, file: u32, server: u32, disk: u32, local: u64) -> u64 {
        let unit = self.unit();
        match self.places.get((disk * self.servers + server) as usize) {
            Some(places) => places[((u64::from(file) * FILE_PITCH / unit + local) % places.len() as u64) as usize],
            None if matches!(self.layout, Layout::Ranks { .. }) => {
                let blocks = DISK_BYTES / unit;
                (u64::from(file) * (FILE_PITCH / unit) + local) % blocks * unit
            }
            None if unit == u64::MAX => u64::from(file) * FILE_SPAN,
            None => u64::from(file) * FILE_SPAN + local * unit,
        }
    }

    /// The block of a file that follows a piece's on the same disk.
    pub(crate) fn following(&self, piece: &Piece) -> u64 {
        let stride = match self.layout {
            Layout::Local => 1,
            Layout::Ranks { .. } => u64::from(self.servers * self.disks),
            Layout::Apart { width, .. } => u64::from(width * self.disks),
        };
        (piece.file_offset / self.unit() + stride) * self.unit()
    }
}

/// The order in which servers that are ranks take the groups of a transfer when each takes those on its own disks, by place
/// on the disk (Kotz 1997, section 4: the list of blocks, sorted). As runs: first group, how many. Nothing where the order
/// is that of the file, or where files do not lie on the disks of ranks.
pub fn disk_order(
    profile: &Profile,
    size: Size,
    on_disk: DiskLayout,
    seed: u64,
    transfer: &Arc<Transfer>,
    parameters: &Parameters,
) -> Vec<(u64, u64)> {
    let (Layout::Ranks { unit_bytes }, false) = (&profile.storage.servers.layout, on_disk == DiskLayout::Contiguous)
    else {
        return Vec::new();
    };
    let (servers, disks) = (size.servers.max(1), profile.storage.servers.disks);
    let placing = Placing::new(profile.storage.servers.layout.clone(), servers, disks, on_disk, seed);
    let units = Units::new(transfer, parameters.subchunk_bytes);
    // By server and disk, the places of its groups and their numbers.
    let mut lists: Vec<Vec<(u64, u64)>> = vec![Vec::new(); (servers * disks) as usize];
    for group in 0..units.count() {
        let piece = placing.piece(0, 0, group * unit_bytes, (group + 1) * unit_bytes);
        lists[(piece.server * disks + piece.disk) as usize].push((piece.offset, group));
    }
    lists.iter_mut().for_each(|list| list.sort_unstable());
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| (0..disks).map(move |disk| (turn, disk)));
    let places = turns.flat_map(|(turn, disk)| (0..servers).map(move |server| (turn, server * disks + disk)));
    places.filter_map(|(turn, list)| lists[list as usize].get(turn).map(|&(_, group)| (group, 1))).collect()
}

/// Where units begin \[B\] in the order of the file: a file of any length takes the first of them. Whole tracks hold what
/// units fit into one, or one unit takes several.
fn random_places(layout: DiskLayout, seed: u64, disk: u32, unit: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9).wrapping_add(u64::from(disk) + 1));
    let (pitch, together) = match layout {
        DiskLayout::RandomTracks => (unit.div_ceil(TRACK_BYTES) * TRACK_BYTES, (TRACK_BYTES / unit).max(1)),
        _ => (unit, 1),
    };
    let mut places: Vec<u64> = (0..(DISK_BYTES / pitch).max(1)).map(|place| place * pitch).collect();
    random.shuffle(&mut places);
    places.into_iter().flat_map(|place| (0..together).map(move |number| place + number * unit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(placing: &Placing, from: u64, end: u64) -> Vec<(u32, u32, u64, u64)> {
        let mut at = from;
        let mut all = Vec::new();
        while at < end {
            let piece = placing.piece(0, 0, at, end);
            all.push((piece.server, piece.disk, piece.offset, piece.bytes));
            at += piece.bytes;
        }
        all
    }

    #[test]
    fn blocks_go_round_all_disks() {
        let placing = Placing::new(Layout::Ranks { unit_bytes: 10 }, 2, 2, DiskLayout::Contiguous, 0);
        let expected = [(0, 0, 5, 5), (1, 0, 0, 10), (0, 1, 0, 10), (1, 1, 0, 10), (0, 0, 10, 3)];
        assert_eq!(pieces(&placing, 5, 43), expected);
        assert_eq!(placing.following(&placing.piece(0, 0, 12, 20)), 50);
    }

    #[test]
    fn files_are_spread_over_some_servers_each() {
        let layout = Layout::Apart { count: 4, unit_bytes: 10, width: 2, gathers: false };
        let placing = Placing::new(layout, 4, 1, DiskLayout::Contiguous, 0);
        assert_eq!(pieces(&placing, 0, 30), [(0, 0, 0, 10), (1, 0, 0, 10), (0, 0, 10, 10)]);
        assert_eq!(placing.piece(0, 1, 0, 10).server, 2);
    }

    #[test]
    fn random_layouts_place_each_block_once_and_alike_for_one_seed() {
        for layout in [DiskLayout::RandomBlocks, DiskLayout::RandomTracks] {
            let mut places = random_places(layout, 7, 3, 8192);
            assert_eq!(places, random_places(layout, 7, 3, 8192));
            assert_ne!(places, random_places(layout, 8, 3, 8192));
            if layout == DiskLayout::RandomTracks {
                assert!(places.chunks(4).all(|track| track[0] % TRACK_BYTES == 0 && track[3] == track[0] + 3 * 8192));
            }
            places.sort_unstable();
            assert!(places.windows(2).all(|pair| pair[0] + 8192 <= pair[1]));
            assert!(places.last().is_some_and(|last| last + 8192 <= DISK_BYTES));
        }
    }
}
