//! Where arrays go that are read.

use crate::array::LocalArray;
use crate::holding::{Exposing, Ownership, Part};
use hyperslab_layout::ElementType;
use hyperslab_world::Fault;

/// Parts to read into, the local arrays of all of them, and what is wrong with them.
pub(crate) type Destinations = (Vec<Vec<Part>>, Vec<LocalArray>, Option<Fault>);

/// An array that is read: its name, the type of its elements in the memories, and how ranks hold it.
pub(crate) type Wanted<'a> = (&'a str, ElementType, &'a Ownership);

/// Arrays to read into: the user's, or fresh ones; stand-ins where the user's do not fit.
pub(crate) fn destinations<'a>(
    wanted: impl Iterator<Item = Wanted<'a>>,
    into: Option<&'a [LocalArray]>,
    (rank, size): (u32, u32),
) -> Result<Destinations, Fault> {
    let (mut parts, mut locals, mut fault) = (Vec::new(), Vec::new(), None);
    let mut exposing = Exposing::new((rank, size));
    for (name, memory, holding) in wanted {
        let fresh = || {
            let arrays = holding.stand_in(rank, memory)?;
            Ok((holding.expose(name, &arrays, (rank, size))?, arrays))
        };
        let made = match into {
            None => fresh(),
            Some(all) => {
                let first = locals.len().min(all.len());
                let arrays = &all[first..all.len().min(first + holding.arrays())];
                exposing.expose(holding, name, arrays).map(|parts| (parts, arrays.to_vec()))
            }
        };
        let (part, arrays) = match made {
            Ok(both) => both,
            Err(unfit) => {
                fault.get_or_insert(unfit);
                fresh()?
            }
        };
        parts.push(part);
        locals.extend(arrays);
    }
    Ok((parts, locals, fault))
}
