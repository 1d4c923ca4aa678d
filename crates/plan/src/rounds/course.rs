//! The sequence in which groups of units are handled.

/// Groups `first..first + count`, whose places in the sequence start at `base` and lie `stride` apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Track {
    pub(crate) first: u64,
    pub(crate) count: u64,
    base: u64,
    stride: u64,
}

impl Track {
    pub(crate) fn place(&self, group: u64) -> u64 {
        self.base + (group - self.first) * self.stride
    }
}

/// A sequence of groups.
#[derive(Clone, Debug)]
pub(crate) enum Course {
    /// In the order of their numbers.
    Natural { groups: u64 },
    /// `share` contiguous groups to each of so many servers, which are side by side.
    Domains { groups: u64, share: u64, servers: u64 },
    /// As a list of tracks says, which together hold each group once.
    Listed {
        /// In the order of their first groups.
        tracks: Vec<Track>,
        /// Numbers of tracks in the order of their bases.
        by_base: Vec<usize>,
        groups: u64,
    },
}

impl Course {
    /// In the order of runs (first group, how many), or that of their numbers when there are none. Groups that no run
    /// names come last.
    pub(crate) fn listed(groups: u64, order: &[(u64, u64)]) -> Course {
        if order.is_empty() {
            return Course::Natural { groups };
        }
        let mut base = 0;
        let mut tracks = Vec::with_capacity(order.len() + 1);
        for &(first, count) in order {
            let count = count.min(groups.saturating_sub(first));
            tracks.push(Track { first, count, base, stride: 1 });
            base += count;
        }
        tracks.retain(|track| track.count > 0);
        tracks.sort_by_key(|track| track.first);
        let named = tracks.last().map_or(0, |last| last.first + last.count);
        if named < groups {
            tracks.push(Track { first: named, count: groups - named, base, stride: 1 });
        }
        let mut by_base: Vec<usize> = (0..tracks.len()).collect();
        by_base.sort_by_key(|&number| tracks[number].base);
        Course::Listed { tracks, by_base, groups }
    }

    /// One contiguous domain a server, all servers side by side.
    pub(crate) fn domains(groups: u64, servers: u64) -> Course {
        Course::Domains { groups, share: groups.div_ceil(servers.max(1)).max(1), servers: servers.max(1) }
    }

    /// Whether the order is that of the groups' numbers.
    pub(crate) fn is_natural(&self) -> bool {
        matches!(self, Course::Natural { .. })
    }

    /// The track that holds a group.
    pub(crate) fn track(&self, group: u64) -> Track {
        match self {
            Course::Natural { groups } => Track { first: 0, count: *groups, base: 0, stride: 1 },
            Course::Domains { groups, share, servers } => {
                let server = group / share;
                let first = server * share;
                Track { first, count: (*share).min(groups - first), base: server, stride: *servers }
            }
            Course::Listed { tracks, .. } => tracks[tracks.partition_point(|track| track.first <= group) - 1],
        }
    }

    /// Number of groups.
    pub(crate) fn groups(&self) -> u64 {
        match self {
            Course::Natural { groups } | Course::Domains { groups, .. } | Course::Listed { groups, .. } => *groups,
        }
    }

    /// Groups of the domain of a server.
    pub(crate) fn share(&self, server: u64) -> u64 {
        match self {
            Course::Domains { groups, share, .. } => groups.saturating_sub(server * share).min(*share),
            _ => self.groups(),
        }
    }

    /// One past the last place.
    pub(crate) fn places(&self) -> u64 {
        match self {
            Course::Natural { groups } | Course::Listed { groups, .. } => *groups,
            Course::Domains { share, servers, .. } => share * servers,
        }
    }

    /// The place of a group.
    pub(crate) fn place(&self, group: u64) -> u64 {
        self.track(group).place(group)
    }

    /// Of the places of server `server`, every `servers`-th: the first from `place` on whose group may be `group` or a
    /// later one.
    pub(crate) fn onward(&self, place: u64, (server, servers): (u64, u64), group: u64) -> u64 {
        match self {
            Course::Natural { .. } => {
                let from = place.max(group);
                from + (server + servers - from % servers) % servers
            }
            Course::Domains { share, servers, .. } => {
                let inside = group.saturating_sub(server * share);
                if inside < *share { place.max(inside * servers + server) } else { share * servers + server }
            }
            // Any group may come next.
            Course::Listed { .. } => place,
        }
    }

    /// The group at a place, if there is one.
    pub(crate) fn group(&self, place: u64) -> Option<u64> {
        match self {
            Course::Natural { groups } => (place < *groups).then_some(place),
            Course::Domains { groups, share, servers } => {
                let group = place % servers * share + place / servers;
                (place / servers < *share && group < *groups).then_some(group)
            }
            Course::Listed { tracks, by_base, .. } => {
                let number = by_base.partition_point(|&number| tracks[number].base <= place).checked_sub(1)?;
                let track = &tracks[by_base[number]];
                let offset = place - track.base;
                (offset < track.count).then_some(track.first + offset)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(course: &Course, groups: u64) -> Vec<u64> {
        let sequence: Vec<u64> = (0..course.places()).filter_map(|place| course.group(place)).collect();
        let mut sorted = sequence.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..groups).collect::<Vec<_>>(), "{course:?}");
        assert!((0..groups).all(|group| course.group(course.place(group)) == Some(group)), "{course:?}");
        sequence
    }

    #[test]
    fn skipping_passes_over_smaller_groups_only() {
        for (groups, servers) in [(1, 1), (7, 3), (20, 6), (9, 4)] {
            let courses =
                [Course::listed(groups, &[]), Course::domains(groups, servers), Course::listed(groups, &[(0, groups)])];
            for course in courses {
                for server in 0..servers {
                    let places = || (server..course.places()).step_by(servers as usize);
                    for (place, group) in places().flat_map(|place| (0..groups).map(move |group| (place, group))) {
                        let to = course.onward(place, (server, servers), group);
                        assert_eq!(to % servers, server, "{course:?}");
                        let passed = places().filter(|&p| p >= place && p < to).filter_map(|p| course.group(p));
                        assert!(to >= place && passed.max().is_none_or(|passed| passed < group), "{course:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_group_has_one_place() {
        for groups in 0..20 {
            check(&Course::listed(groups, &[]), groups);
            for servers in 1..8 {
                check(&Course::domains(groups, servers), groups);
            }
        }
        assert_eq!(check(&Course::domains(7, 3), 7), [0, 3, 6, 1, 4, 2, 5]);
        assert_eq!(check(&Course::listed(7, &[(5, 2), (0, 3), (3, 2)]), 7), [5, 6, 0, 1, 2, 3, 4]);
        assert_eq!(check(&Course::listed(9, &[(2, 2), (0, 2)]), 9), [2, 3, 0, 1, 4, 5, 6, 7, 8]);
    }
}
