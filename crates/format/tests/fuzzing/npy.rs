//! Headers of `.npy` files.

use hyperslab_format::npy::{NpyHeader, prefix_bytes_needed};

pub(super) fn check(bytes: &[u8]) {
    let needed = prefix_bytes_needed(bytes, "f");
    let Ok((header, begin)) = NpyHeader::parse(bytes, "f") else { return };
    assert_eq!(needed.unwrap(), begin);
    assert!(begin <= bytes.len() as u64);
    assert_eq!(NpyHeader::parse(&bytes[..begin as usize], "f").unwrap(), (header.clone(), begin));
    let elements = header.data_bytes("f").unwrap();
    let product = header.shape.iter().try_fold(header.element.bytes(), |all, extent| all.checked_mul(*extent));
    assert!(product.is_none_or(|product| product == elements || elements == 0), "{header:?} of {elements} B");
    header.check_size(begin, u64::MAX, "f").unwrap();
    let _ = header.check_size(begin, bytes.len() as u64, "f");
    header.order();
    let written = header.to_bytes();
    assert_eq!(NpyHeader::parse(&written, "f").unwrap(), (header, written.len() as u64));
}
