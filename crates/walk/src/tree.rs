//! The tree of ranks along which agreements climb and come down.

/// Children of a rank, unless a party is told otherwise.
pub(crate) const ARITY: u32 = 4;

/// A rank's place in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tree {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// Most children of a rank; as many as there are ranks makes rank 0 tell each of them by itself.
    pub(crate) arity: u32,
}

impl Tree {
    /// The ranks just below this one.
    pub(crate) fn children(self) -> impl Iterator<Item = u32> {
        let first = u64::from(self.rank) * u64::from(self.arity) + 1;
        let size = u64::from(self.size);
        (first.min(size)..(first + u64::from(self.arity)).min(size)).map(|child| child as u32)
    }

    /// The rank above this one; `None` for rank 0.
    pub(crate) fn parent(self) -> Option<u32> {
        Some(self.rank.checked_sub(1)? / self.arity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_but_the_first_is_a_child_of_its_parent() {
        for (size, arity) in [(1, 4), (7, 1), (50, 4), (9, 9)] {
            for rank in 0..size {
                let tree = Tree { rank, size, arity };
                assert!(tree.children().all(|child| Tree { rank: child, size, arity }.parent() == Some(rank)));
                assert_eq!(tree.parent().is_none(), rank == 0);
            }
            let children = (0..size).flat_map(|rank| Tree { rank, size, arity }.children());
            assert_eq!(children.collect::<std::collections::BTreeSet<_>>().len() as u32, size - 1);
        }
    }
}
