//! Consolidated metadata, which go stale when something changes below them.

use crate::error::format_fault;
use hyperslab_collective::attempts::Attempts;
use hyperslab_format::zarr::{METADATA_KEY, consolidated};
use hyperslab_world::{Fault, FaultKind};

/// Removes consolidated metadata from groups that are about to have other contents: readers would go on to see the old
/// ones.
pub(super) fn drop_consolidated(attempts: &Attempts, groups: &[String]) -> Result<(), Fault> {
    attempts.check_still_there()?;
    for group in groups {
        let key = format!("{group}{METADATA_KEY}");
        attempts.amend(&key, |bytes| consolidated::strip(bytes, &key).map_err(format_fault))?;
    }
    Ok(())
}

/// The same after something became visible: somebody may have written consolidated metadata between.
pub(super) fn drop_again(attempts: &Attempts, groups: &[String]) -> Result<(), Fault> {
    drop_consolidated(attempts, groups).or_else(|fault| {
        // Of a store that was replaced after that nobody reads any.
        if matches!(attempts.is_still_there(), Ok(false)) {
            return Ok(());
        }
        let shown = attempts.home.shown();
        let text =
            format!("'{shown}' is as it should be, but its consolidated metadata may be stale: {}", fault.text());
        Err(Fault::new(FaultKind::Unsynced, text).hint("write them anew with consolidate()"))
    })
}
