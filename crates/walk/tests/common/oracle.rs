//! The oracle: what a transfer means, element by element, without anything of the algebra that it judges.

use hyperslab_layout::{ByteOrder, Dim, ElementType, Kind, Triplet};

/// All indices of an index space of this shape, the last dimension fastest.
pub(crate) fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for &extent in shape {
        all = all.iter().flat_map(|index| (0..extent).map(move |i| [index.as_slice(), &[i]].concat())).collect();
    }
    all
}

/// Number of an element when dimensions vary in `order`, the last one named fastest.
pub(crate) fn number(index: &[u64], shape: &[u64], order: &[usize]) -> usize {
    order.iter().fold(0, |n, &d| n * shape[d] + index[d]) as usize
}

/// Whether mesh coordinate `q` of `ranks` holds index `i` of an extent, by HPF's definitions.
pub(crate) fn holds(dim: &Dim, extent: u64, ranks: u64, q: u64, i: u64) -> bool {
    match dim {
        Dim::Whole => true,
        Dim::Block => i / extent.div_ceil(ranks) == q,
        Dim::BlockOf(n) => i / n == q,
        Dim::Blocks(ends) => ends.iter().filter(|&&end| end <= i).count() as u64 == q,
        Dim::Cyclic(k) => (i / k) % ranks == q,
    }
}

/// The indices that a rank holds in each dimension; `None` for ranks beyond the mesh.
pub(crate) fn owned(
    shape: &[u64],
    dims: &[Dim],
    mesh: &[u64],
    over: &[Option<usize>],
    rank: u64,
) -> Option<Vec<Vec<u64>>> {
    let mut at = vec![0; mesh.len()];
    let mut rest = rank;
    for m in (0..mesh.len()).rev() {
        at[m] = rest % mesh[m];
        rest /= mesh[m];
    }
    let of = |d: usize| {
        let (ranks, q) = over[d].map_or((1, 0), |m| (mesh[m], at[m]));
        (0..shape[d]).filter(|&i| holds(&dims[d], shape[d], ranks, q, i)).collect()
    };
    (rest == 0).then(|| (0..shape.len()).map(of).collect())
}

/// All indices that a section of one dimension selects, in order.
pub(crate) fn selected(triplet: Triplet) -> Vec<u64> {
    (0..triplet.count).flat_map(|i| (0..triplet.block).map(move |j| triplet.start + i * triplet.stride + j)).collect()
}

/// Greatest value, and so precision, that a kind holds exactly.
pub(crate) fn limit(kind: Kind) -> u64 {
    match kind {
        Kind::Bool => 2,
        Kind::Opaque(opaque) => 1 << (8 * opaque.bytes() - 1).min(24),
        Kind::Int8 | Kind::UInt8 => 128,
        Kind::BFloat16 => 256,
        Kind::Float16 => 2048,
        Kind::Int16 | Kind::UInt16 => 1 << 15,
        _ => 1 << 24,
    }
}

/// Bytes of a small whole number, in a type. In complex types the imaginary part is a function of the real one when
/// `imaginary`, else 0.
pub(crate) fn encode(value: u64, element: ElementType, imaginary: bool) -> Vec<u8> {
    let imaginary = if imaginary { value / 3 } else { 0 };
    let pair32 = || [(value as f32).to_le_bytes(), (imaginary as f32).to_le_bytes()];
    let pair64 = || [(value as f64).to_le_bytes(), (imaginary as f64).to_le_bytes()];
    let mut bytes = match element.kind {
        Kind::Float16 => half::f16::from_f64(value as f64).to_bits().to_le_bytes().to_vec(),
        Kind::BFloat16 => half::bf16::from_f64(value as f64).to_bits().to_le_bytes().to_vec(),
        Kind::Float32 => (value as f32).to_le_bytes().to_vec(),
        Kind::Float64 => (value as f64).to_le_bytes().to_vec(),
        Kind::Complex64 => pair32().concat(),
        Kind::Complex128 => pair64().concat(),
        Kind::Opaque(opaque) => value.to_le_bytes().iter().copied().cycle().take(opaque.bytes() as usize).collect(),
        kind => value.to_le_bytes()[..kind.bytes() as usize].to_vec(),
    };
    if element.order == ByteOrder::Big {
        bytes.chunks_mut(element.kind.swap_bytes() as usize).for_each(<[u8]>::reverse);
    }
    bytes
}

/// A value that depends on all its inputs.
pub(crate) fn value(array: usize, index: &[u64], salt: u64, limit: u64) -> u64 {
    let seed = index.iter().fold(array as u64 * 31 + salt, |n, &i| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i + 1));
    (seed.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 33) % limit
}
