//! Meshes: logical grids of ranks.

/// Product of the extents; `None` when it does not fit into `u64`.
pub fn volume(shape: &[u64]) -> Option<u64> {
    // A zero extent makes the product zero even where the others overflow.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent))
}

/// Coordinates of number `index` in a grid of this shape, the last dimension fastest.
pub fn unravel(index: u64, shape: &[u64]) -> Vec<u64> {
    let mut coordinates = vec![0; shape.len()];
    unravel_into(index, shape, &mut coordinates);
    coordinates
}

/// As [`unravel`], into coordinates that are there already.
pub fn unravel_into(mut index: u64, shape: &[u64], coordinates: &mut [u64]) {
    for (coordinate, &extent) in coordinates.iter_mut().zip(shape).rev() {
        *coordinate = index % extent;
        index /= extent;
    }
}

/// Number of the grid point with these coordinates, the last dimension fastest.
pub fn ravel(coordinates: &[u64], shape: &[u64]) -> u64 {
    coordinates.iter().zip(shape).fold(0, |index, (&coordinate, &extent)| index * extent + coordinate)
}

/// Splits `size` ranks over `ndim` mesh dimensions as evenly as their factors allow, larger extents first; the
/// aim of `MPI_Dims_create`.
pub fn balanced(size: u64, ndim: usize) -> Vec<u64> {
    let mut mesh = vec![1; ndim];
    if ndim == 0 {
        return mesh;
    }
    let mut factors = Vec::new();
    let (mut rest, mut factor) = (size.max(1), 2);
    while factor * factor <= rest {
        while rest % factor == 0 {
            factors.push(factor);
            rest /= factor;
        }
        factor += 1;
    }
    if rest > 1 {
        factors.push(rest);
    }
    for factor in factors.into_iter().rev() {
        *mesh.iter_mut().min().expect("at least one dimension") *= factor;
    }
    mesh.sort_unstable_by(|a, b| b.cmp(a));
    mesh
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_meshes_hold_all_ranks() {
        for size in 1..200 {
            for ndim in 1..5 {
                assert_eq!(balanced(size, ndim).iter().product::<u64>(), size);
            }
        }
        assert_eq!(balanced(8, 3), [2, 2, 2]);
        assert_eq!(balanced(6, 3), [3, 2, 1]);
        assert_eq!(balanced(24, 3), [4, 3, 2]);
        assert_eq!(balanced(5, 0), [0u64; 0]);
    }

    #[test]
    fn ravel_undoes_unravel() {
        let shape = [3, 1, 4];
        for index in 0..12 {
            assert_eq!(ravel(&unravel(index, &shape), &shape), index);
        }
    }

    #[test]
    fn volume_notices_overflow_but_not_beside_a_zero() {
        assert_eq!(volume(&[u64::MAX, 2]), None);
        assert_eq!(volume(&[u64::MAX, 2, 0]), Some(0));
        assert_eq!(volume(&[]), Some(1));
    }
}
