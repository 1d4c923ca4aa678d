//! Sizes of arrays, checked: shapes come from files that anybody may have written.

/// Most dimensions that an array may have, the limit of NumPy 2.
pub const NDIM_MAX: usize = 64;

/// Largest array \[B\] that is accepted: addresses are signed 64-bit numbers everywhere.
pub(crate) const ARRAY_BYTES_MAX: u64 = i64::MAX as u64;

/// Size \[B\] of an array of `shape`, or `None` when an address in it might not fit 63 bits.
///
/// Dimensions of length zero count as one in the check, so that strides of empty arrays cannot overflow either.
pub(crate) fn array_bytes(shape: &[u64], element_bytes: u64) -> Option<u64> {
    bytes_of(shape.iter().copied(), element_bytes)
}

/// The same, given its extents one by one.
pub(crate) fn bytes_of(extents: impl IntoIterator<Item = u64>, element_bytes: u64) -> Option<u64> {
    let mut is_empty = false;
    let padded = extents.into_iter().try_fold(element_bytes, |bytes, length| {
        is_empty |= length == 0;
        bytes.checked_mul(length.max(1))
    })?;
    if padded > ARRAY_BYTES_MAX {
        return None;
    }
    Some(if is_empty { 0 } else { padded })
}

/// How much so many stored bytes may well expand to: the claim of metadata is believed only as far as that, and then as it comes.
pub(crate) fn likely(stored: usize) -> u64 {
    (stored as u64).saturating_mul(64).max(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked() {
        assert_eq!(array_bytes(&[], 8), Some(8));
        assert_eq!(array_bytes(&[2, 3], 8), Some(48));
        assert_eq!(array_bytes(&[2, 0, 3], 8), Some(0));
        assert_eq!(array_bytes(&[1 << 60], 8), None);
        assert_eq!(array_bytes(&[(1 << 60) - 1], 8), Some((1 << 63) - 8));
        assert_eq!(array_bytes(&[0, 1 << 40, 1 << 40], 1), None);
        assert_eq!(array_bytes(&[u64::MAX, u64::MAX], 16), None);
    }
}
