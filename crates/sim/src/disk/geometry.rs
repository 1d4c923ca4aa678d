//! Where the HP 97560 keeps its sectors: from logical numbers to cylinders, heads and angles.
//!
//! Source: Ruemmler & Wilkes 1994 through the tables of the HRaid simulator and HECIOS; The Hard Drive Book agrees, and
//! the rates and the capacity that follow are those of Kotz 1997, table I. Logical sectors fill three regions, head
//! after head and cylinder after cylinder; the tracks around them are spare.
//!
//! The first sector of a track lies 8 sectors later than that of the track before, 18 when the cylinder changes, so
//! that it comes just after the heads have arrived. We count how far the disk turns while the heads follow the sectors
//! in order and call that the *arc*: its remainder by 72 is the angle of a sector, its difference is the time between
//! two sectors.

/// Bytes of a sector \[B\] (all sources).
pub(crate) const SECTOR_BYTES: u64 = 512;
/// Sectors of a track, on all tracks alike (all sources).
pub(crate) const TRACK_SECTORS: u64 = 72;
/// Tracks of a cylinder, one below each head (all sources).
pub(crate) const HEADS: u64 = 19;
/// Cylinders, spare ones included (HECIOS, HRaid).
#[cfg(test)]
pub(crate) const CYLINDERS: u64 = 1962;
/// Sectors for data, 1355 MB in all (The Hard Drive Book; Kotz 1997, table I: 1.3 GB).
pub(crate) const SECTORS: u64 = 2_647_080;
/// How much later the next track of a cylinder begins \[sectors\] (HRaid).
pub(crate) const TRACK_SKEW: u64 = 8;
/// How much later the first track of the next cylinder begins, instead of the track skew \[sectors\] (HRaid).
pub(crate) const CYLINDER_SKEW: u64 = 18;

/// Arc from a track to the next of its cylinder \[sectors\].
const TRACK_ARC: u64 = TRACK_SECTORS + TRACK_SKEW;
/// Arc from a cylinder to the next \[sectors\].
const CYLINDER_ARC: u64 = HEADS * TRACK_ARC + CYLINDER_SKEW - TRACK_SKEW;

/// Consecutive tracks that hold data.
struct Region {
    /// Logical number of its first track.
    track: u64,
    /// Cylinder of that track.
    cylinder: u64,
    /// Head of that track.
    head: u64,
    /// Whole turns that spare tracks before it would have taken, beyond those that the arm needs to pass them.
    turns: u64,
}

/// 1:4 to 646:3, 654:0 to 1298:18, 1308:0 to 1952:18 (HRaid). Skews go on through spare tracks.
const REGIONS: [Region; 3] = [
    Region { track: 0, cylinder: 1, head: 4, turns: 0 },
    Region { track: 12_255, cylinder: 654, head: 0, turns: 165 },
    Region { track: 24_510, cylinder: 1308, head: 0, turns: 165 + 191 },
];

impl Region {
    /// The last region that does not begin later, by whatever tells.
    fn last(begins: impl Fn(&Region) -> bool) -> &'static Region {
        &REGIONS[REGIONS.partition_point(begins).max(1) - 1]
    }

    /// Cylinder and head of a logical track.
    fn place(&self, track: u64) -> (u64, u64) {
        let physical = self.cylinder * HEADS + self.head + (track - self.track);
        (physical / HEADS, physical % HEADS)
    }

    /// Arc of the first sector of a track \[sectors\].
    fn arc(&self, cylinder: u64, head: u64) -> u64 {
        cylinder * CYLINDER_ARC + head * TRACK_ARC - self.turns * TRACK_SECTORS
    }
}

/// Cylinder, head and number within the track of a logical sector.
#[must_use]
pub(crate) fn locate(sector: u64) -> (u64, u64, u64) {
    let track = sector / TRACK_SECTORS;
    let (cylinder, head) = Region::last(|region| region.track <= track).place(track);
    (cylinder, head, sector % TRACK_SECTORS)
}

/// How far the disk turns until this sector comes, when the heads follow the sectors in order \[sectors\].
#[must_use]
pub(crate) fn arc(sector: u64) -> u64 {
    let track = sector / TRACK_SECTORS;
    let region = Region::last(|region| region.track <= track);
    let (cylinder, head) = region.place(track);
    region.arc(cylinder, head) + sector % TRACK_SECTORS
}

/// The first logical sector that comes at this arc or later; the inverse of [`arc`].
#[must_use]
pub(crate) fn sector_at(arc: u64) -> u64 {
    let number = REGIONS.partition_point(|region| region.arc(region.cylinder, region.head) <= arc).max(1) - 1;
    let region = &REGIONS[number];
    let physical = arc + region.turns * TRACK_SECTORS;
    let (cylinder, rest) = (physical / CYLINDER_ARC, physical % CYLINDER_ARC);
    let head = (rest / TRACK_ARC).min(HEADS - 1);
    let track = (cylinder * HEADS + head).saturating_sub(region.cylinder * HEADS + region.head) + region.track;
    let end = REGIONS.get(number + 1).map_or(SECTORS, |next| next.track * TRACK_SECTORS);
    // Within a skew, the next to come is the first sector of the next track.
    (track * TRACK_SECTORS + (rest - head * TRACK_ARC).min(TRACK_SECTORS)).min(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::arm;

    /// A sector lasts so long \[ns\], rounded down.
    const SECTOR_NS: u64 = 208_229;

    /// All tracks as the source lists them: cylinder, head, and the arc counted step by step.
    fn tracks() -> Vec<(u64, u64, u64)> {
        let bounds = [((1, 4), (646, 3)), ((654, 0), (1298, 18)), ((1308, 0), (1952, 18))];
        let all = (0..CYLINDERS).flat_map(|cylinder| (0..HEADS).map(move |head| (cylinder, head)));
        let mut arc = 0;
        let mut found = Vec::new();
        for (cylinder, head) in all {
            arc += if (cylinder, head) == (0, 0) { 0 } else { 72 + if head == 0 { 18 } else { 8 } };
            if bounds.iter().any(|&(low, high)| (low..=high).contains(&(cylinder, head))) {
                found.push((cylinder, head, arc));
            }
        }
        found
    }

    #[test]
    fn capacity_is_that_of_the_maker() {
        assert_eq!(SECTORS * SECTOR_BYTES, 1_355_304_960);
        assert_eq!(CYLINDERS * HEADS * TRACK_SECTORS * SECTOR_BYTES, 1_374_216_192);
        assert_eq!(tracks().len() as u64 * TRACK_SECTORS, SECTORS);
    }

    #[test]
    fn tracks_lie_where_the_regions_say() {
        for (&(cylinder, head, arc_listed), first) in tracks().iter().zip((0..).step_by(72)) {
            assert_eq!(locate(first), (cylinder, head, 0));
            assert_eq!(locate(first + 71), (cylinder, head, 71));
            assert_eq!(arc(first) % 72, arc_listed % 72, "angle of sector {first}");
        }
    }

    #[test]
    fn arcs_rise_by_what_the_heads_need_and_less_than_a_turn_more() {
        for first in (TRACK_SECTORS..SECTORS).step_by(72) {
            let skew_ns = (arc(first) - arc(first - 1) - 1) * SECTOR_NS;
            let needed_ns = arm::reach_ns(locate(first - 1), locate(first));
            assert!(needed_ns <= skew_ns, "{needed_ns} <= {skew_ns} before sector {first}");
            assert!(skew_ns < needed_ns + 72 * SECTOR_NS);
        }
    }

    #[test]
    fn arcs_can_be_turned_back() {
        for middle in [0, 15 * 72, 12_255 * 72, 24_510 * 72, SECTORS - 3000] {
            for sector in middle.max(3000) - 3000..middle + 3000 {
                assert_eq!(sector_at(arc(sector)), sector);
                assert_eq!(sector_at(arc(sector) + 1), sector + 1);
                assert_eq!(sector_at(arc(sector + 1)), sector + 1);
            }
        }
        assert_eq!(sector_at(0), 0);
        assert_eq!(sector_at(u64::MAX / 2), SECTORS);
    }
}
