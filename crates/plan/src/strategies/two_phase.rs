//! Two-phase I/O: first the data cross into a distribution that conforms to the file, then each aggregator moves its own
//! contiguous part of the file.
//!
//! Source: Thakur, Gropp, Lusk 1996 (the extended two-phase method), after del Rosario, Bordawekar and Choudhary 1993;
//! Kotz 1997 section 3 describes the same as 2PIO. File domains are contiguous and of equal size, one an aggregator, in
//! rounds of the size of its buffer, as in ROMIO; any number of ranks aggregates. Phases of neighbouring rounds overlap
//! when there are two slots.
//!
//! With [`Exchange::Sharers`](crate::Exchange::Sharers), data cross only between ranks that share extents of the file:
//! each unit is assembled by one of its holders, in turn. That is the rule of MPICH's issue 7935: exchange inside
//! sub-communicators, un-splitting the fastest dimensions only until extents are large; see [`shared_extent`].

use crate::strategy::{Role, Sequence, Spec};
use crate::transfer::{Exchange, TransferArray};

/// Extents from which on ranks need not share more of a file \[B\] (issue 7935 of MPICH).
const SHARED_EXTENT_BYTES: u64 = 4 << 20;

pub(super) const SPEC: Spec = Spec {
    name: "two-phase",
    about: "data cross into a distribution that conforms to the file, then aggregators move contiguous parts of it",
    order: Sequence::Domains,
    complexity: 2,
    exchanges: &Exchange::ALL,
    subchunk: |transfer, profile, parameters, share| {
        let usual = (Spec::SERVED.subchunk)(transfer, profile, parameters, share);
        if parameters.role() != Role::Holders {
            return usual;
        }
        let extents = transfer.asks.iter().filter_map(|ask| shared_extent(ask, SHARED_EXTENT_BYTES));
        extents.min().map_or(usual, |shortest| usual.min(shortest))
    },
    ..Spec::SERVED
};

/// The length of the contiguous extents that ranks make together when they un-split the fastest dimensions of a file,
/// one after another, until extents are at least `enough` long. `None` when the array has no closed form.
pub fn shared_extent(ask: &TransferArray, enough: u64) -> Option<u64> {
    let distribution = ask.spread.regular()?;
    let mut extent = ask.stored.element.bytes();
    for &d in ask.stored.contiguous().iter().rev() {
        // What the fullest coordinate of the mesh holds of this dimension, beside all of the faster ones.
        let fullest = distribution.owned_dim(d, distribution.fullest(d));
        let held = fullest.terms().iter().map(|term| term.len).max().unwrap_or(1);
        let block = extent.saturating_mul(held.max(1));
        if held < distribution.shape()[d] && block >= enough {
            return Some(block);
        }
        extent = extent.saturating_mul(distribution.shape()[d].max(1));
    }
    Some(extent)
}
