//! Where the bytes of files lie: on which server, on which of its disks, and where there.

use hyperslab_plan::profile::Layout;

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
/// Distance between files on disks where their places mean nothing but that they are apart \[B\].
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

impl Piece {
    /// Where it begins, as a number that rises inside a file and from file to file.
    pub(crate) fn in_files(&self) -> u64 {
        u64::from(self.file).wrapping_mul(FILE_SPAN).wrapping_add(self.file_offset)
    }
}

/// Cuts calls into pieces.
#[derive(Clone, Debug)]
pub(crate) struct Placing {
    pub(crate) layout: Layout,
    pub(crate) servers: u32,
    pub(crate) disks: u32,
    /// Places of units by disk, for layouts at random.
    places: Vec<Vec<u64>>,
    /// By file, how many units of each disk come before its own, where servers are ranks; and how many all take.
    before: Vec<u64>,
    taken: u64,
}

impl Placing {
    pub(crate) fn new(layout: Layout, servers: u32, disks: u32, on_disk: DiskLayout, seed: u64) -> Placing {
        let places = match layout {
            Layout::Ranks { unit_bytes } if on_disk != DiskLayout::Contiguous => {
                (0..servers * disks).map(|disk| random_places(on_disk, seed, disk, unit_bytes)).collect()
            }
            _ => Vec::new(),
        };
        Placing { layout, servers, disks, places, before: Vec::new(), taken: 0 }
    }

    /// Gives the next file room for so many bytes, behind those before.
    pub(crate) fn add_file(&mut self, bytes: u64) {
        let share = u64::from(self.servers) * u64::from(self.disks);
        self.before.push(self.taken);
        self.taken += bytes.div_ceil(self.unit()).div_ceil(share.max(1)).max(1);
    }

    /// Bytes from a place of a file on that lie together on one disk \[B\].
    pub(crate) fn unit(&self) -> u64 {
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
        let (servers, disks) = (u64::from(self.servers), u64::from(self.disks));
        let (server, disk, local) = match self.layout {
            Layout::Local => (u64::from(home), 0, 0),
            Layout::Ranks { .. } => {
                let turn = block % (servers * disks);
                (turn % servers, turn / servers, block / (servers * disks))
            }
            Layout::Apart { width, .. } => {
                let (stripe, local) = (block % u64::from(width), block / u64::from(width));
                let first = self.first(file, width);
                ((first.0 + stripe) % servers, (first.1 + local) % disks, local / disks)
            }
        };
        let (server, disk) = (server as u32, disk as u32);
        let offset = self.place(file, server, disk, local).wrapping_add(inside);
        Piece { server, disk, file, file_offset: from, offset, bytes, write: false, direct: false }
    }

    /// Server and disk of the first unit of a file. Files take servers in turn, and begin one further on when that comes to
    /// where it began: those as wide as all servers do not all begin at one. What comes to a server next, the first unit of
    /// a file or one of its other units, takes its next disk.
    fn first(&self, file: u32, width: u32) -> (u64, u64) {
        let (servers, disks) = (u64::from(self.servers), u64::from(self.disks));
        let (file, width) = (u64::from(file), u64::from(width));
        let period = servers / gcd(servers, width);
        ((file * width + file / period) % servers, (file / servers + file % servers * width / servers) % disks)
    }

    /// After how many units of a file its next one lies on the same disk.
    pub(crate) fn lanes(&self) -> u64 {
        match self.layout {
            Layout::Local => 1,
            Layout::Ranks { .. } => u64::from(self.servers) * u64::from(self.disks),
            Layout::Apart { width, .. } => u64::from(width) * u64::from(self.disks),
        }
    }

    /// What of a range of a file lies on the disk that holds unit `lane` of it, of [`Self::lanes`]: where it begins, and how
    /// much it is \[B\].
    pub(crate) fn share(&self, from: u64, end: u64, lane: u64) -> Option<(u64, u64)> {
        let (unit, lanes) = (self.unit(), self.lanes());
        let (first, last) = (from / unit, end.checked_sub(1)? / unit);
        let begin = first + (lane + lanes - first % lanes) % lanes;
        if begin > last || from >= end {
            return None;
        }
        let units = (last - begin) / lanes + 1;
        let finish = begin + (units - 1) * lanes;
        let low = from.saturating_sub(begin * unit);
        let high = if finish == last { (last + 1) * unit - end } else { 0 };
        Some((begin * unit + low, units * unit - low - high))
    }

    /// Where the `local`-th unit of a file on a disk begins \[B\].
    fn place(&self, file: u32, server: u32, disk: u32, local: u64) -> u64 {
        let unit = self.unit();
        let span = u64::from(file).wrapping_mul(FILE_SPAN);
        match self.layout {
            Layout::Local => span,
            Layout::Apart { .. } => span.wrapping_add(local * unit),
            Layout::Ranks { .. } => {
                let number = self.before.get(file as usize).copied().unwrap_or(self.taken) + local;
                match self.places.get((disk * self.servers + server) as usize) {
                    Some(places) => places[(number % places.len() as u64) as usize],
                    None => number % (DISK_BYTES / unit).max(1) * unit,
                }
            }
        }
    }

    /// The block of a file that follows a piece's on the same disk.
    pub(crate) fn following(&self, piece: &Piece) -> u64 {
        (piece.file_offset / self.unit() + self.lanes()) * self.unit()
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
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
    fn files_of_one_unit_and_of_one_on_each_server_come_to_all_disks_alike() {
        for (servers, disks, width) in
            [(4, 4, 4), (4, 4, 1), (8, 2, 8), (450, 2, 450), (21, 1, 16), (6, 4, 4), (1, 3, 1)]
        {
            let layout = Layout::Apart { count: servers, unit_bytes: 10, width, gathers: true };
            let placing = Placing::new(layout, servers, disks, DiskLayout::Contiguous, 0);
            for units in [1, width] {
                let (files, each) = (2 * servers * disks, u64::from(2 * units));
                let mut met = vec![0; (servers * disks) as usize];
                for (file, unit) in (0..files).flat_map(|file| (0..u64::from(units)).map(move |unit| (file, unit))) {
                    let piece = placing.piece(0, file, 10 * unit, 10 * unit + 10);
                    met[(piece.server * disks + piece.disk) as usize] += 1;
                }
                let (least, most) = (met.iter().min().unwrap(), met.iter().max().unwrap());
                let text = format!("{servers} servers of {disks}, {width} wide: {least} to {most}, not {each}");
                assert!(2 * least >= each && 2 * most <= 3 * each, "{text}");
            }
        }
    }

    #[test]
    fn shares_of_disks_are_what_their_units_hold() {
        for (servers, disks, width) in [(7, 1, 3), (4, 2, 2), (3, 3, 3)] {
            let layout = Layout::Apart { count: servers, unit_bytes: 10, width, gathers: true };
            let placing = Placing::new(layout, servers, disks, DiskLayout::Contiguous, 0);
            let lanes = u64::from(width * disks);
            assert_eq!(placing.lanes(), lanes);
            for (from, end) in (0..45).flat_map(|from| (from..100).map(move |end| (from, end))) {
                for lane in 0..lanes {
                    let bytes: Vec<u64> = (from..end).filter(|byte| byte / 10 % lanes == lane).collect();
                    let expected = bytes.first().map(|&first| (first, bytes.len() as u64));
                    assert_eq!(placing.share(from, end, lane), expected, "{from}..{end}, lane {lane}");
                    let on = |byte: &u64| {
                        let piece = placing.piece(0, 5, *byte, byte + 1);
                        (piece.server, piece.disk)
                    };
                    assert!(bytes.iter().all(|byte| on(byte) == on(&bytes[0])), "lane {lane} lies on one disk");
                }
            }
        }
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
