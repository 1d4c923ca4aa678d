//! Chunk shapes that suit an array: those of a disk schema, or those of a typical request.

use crate::mesh::volume;
use crate::{Dim, Distribution};
use std::iter::successors;

/// What a rank holds of a distribution in memory, cut along its slowest dimensions until it has at most `bytes_max`
/// bytes: Panda's natural chunking. Of CYCLIC dimensions, which no chunk can follow, a rank's share.
pub fn natural_chunks(distribution: &Distribution, element_bytes: u64, bytes_max: u64) -> Vec<u64> {
    cut(blocks(distribution, |extent, ranks, _| extent.div_ceil(ranks)), element_bytes, bytes_max)
}

/// The blocks of a distribution over a mesh of servers, cut likewise: Panda's disk schemas. Of CYCLIC(k) dimensions, k.
pub fn schema_chunks(schema: &Distribution, element_bytes: u64, bytes_max: u64) -> Vec<u64> {
    cut(blocks(schema, |extent, _, k| k.min(extent)), element_bytes, bytes_max)
}

/// Extents of the blocks of a distribution; those of CYCLIC(k) dimensions are `cyclic(extent, ranks, k)`.
fn blocks(distribution: &Distribution, cyclic: impl Fn(u64, u64, u64) -> u64) -> Vec<u64> {
    let extent = |(d, dim): (usize, &Dim)| {
        let extent = distribution.shape()[d];
        let ranks = distribution.over()[d].map_or(1, |m| distribution.mesh()[m]);
        match dim {
            Dim::BlockOf(n) => (*n).min(extent),
            Dim::Cyclic(k) => cyclic(extent, ranks, *k),
            Dim::Block | Dim::Blocks(_) | Dim::Whole => extent.div_ceil(ranks),
        }
        .max(1)
    };
    distribution.dims().iter().enumerate().map(extent).collect()
}

/// Cuts a box along its slowest dimensions first, into equal parts where a divisor is near, so that edges still meet.
pub fn cut(mut chunk: Vec<u64>, element_bytes: u64, bytes_max: u64) -> Vec<u64> {
    for d in 0..chunk.len() {
        let bytes = bytes_of(&chunk, element_bytes);
        if bytes <= bytes_max {
            break;
        }
        let parts = bytes.div_ceil(bytes_max.max(1)).min(chunk[d]);
        let even = (parts..=chunk[d].min(parts * 2)).find(|parts| chunk[d].is_multiple_of(*parts));
        chunk[d] = even.map_or_else(|| chunk[d].div_ceil(parts), |parts| chunk[d] / parts);
    }
    chunk
}

/// Shapes that chunks may have instead of `chunk`, in two ladders: two, four, eight and more joined, of at most `bytes_max`
/// bytes; and one cut in two and in four, of at least `bytes_min`. All of it along the slowest dimensions, so that what
/// lies together in a part lies together in chunks. None pads the edges of the array by much more than `chunk` does.
pub fn near_shapes(
    shape: &[u64],
    chunk: &[u64],
    element_bytes: u64,
    (bytes_min, bytes_max): (u64, u64),
) -> [Vec<Vec<u64>>; 2] {
    let stored = |chunk: &[u64]| -> f64 {
        let covered = |(&n, &c): (&u64, &u64)| n.div_ceil(c.max(1)) as f64 * c as f64;
        shape.iter().zip(chunk).map(covered).product()
    };
    let padding_max = PADDING_MAX * stored(chunk);
    let pads_little = |chunk: &Vec<u64>| stored(chunk) <= padding_max;
    let join = |chunk: &Vec<u64>| {
        let d = (0..shape.len()).find(|&d| chunk[d] < shape[d])?;
        let mut joined = chunk.clone();
        joined[d] = joined[d].saturating_mul(2).min(shape[d]);
        Some(joined).filter(|joined| bytes_of(joined, element_bytes) <= bytes_max)
    };
    let part = |chunk: &Vec<u64>| {
        let d = chunk.iter().position(|&extent| extent > 1)?;
        let mut part = chunk.clone();
        part[d] = part[d].div_ceil(2);
        Some(part).filter(|part| bytes_of(part, element_bytes) >= bytes_min)
    };
    let joined = successors(Some(chunk.to_vec()), join).skip(1).filter(pads_little);
    let parts = successors(Some(chunk.to_vec()), part).skip(1).take(CUTS).filter(pads_little);
    [joined.collect(), parts.collect()]
}

/// By how much more than the chunks they are made from other shapes may cover \[share\].
const PADDING_MAX: f64 = 1.1;
/// How often a chunk is cut in two.
const CUTS: usize = 2;

/// Chunks for requests of a typical shape, of which `None` leaves dimensions open.
///
/// Source: Disk Resident Arrays, where the user gives only this hint (`ndai_chunking`; Chen et al., multisystem study,
/// section 2): a request's extent that does not divide the array's is replaced by the nearest that does; open
/// dimensions are filled, the shortest first, while the chunk fits `bytes_max`. Where a request is larger than that,
/// DRA shrinks all of its extents alike; here each is cut into parts that are equal where a divisor is near, the longest
/// first, so that a request is a whole number of chunks.
pub fn chunks_for_request(shape: &[u64], request: &[Option<u64>], element_bytes: u64, bytes_max: u64) -> Vec<u64> {
    let asked = |(&extent, &wanted): (&u64, &Option<u64>)| {
        wanted.map(|wanted| divisor_near(extent, wanted.clamp(1, extent.max(1))))
    };
    let given: Vec<Option<u64>> = shape.iter().zip(request).map(asked).collect();
    let mut chunk: Vec<u64> = given.iter().map(|extent| extent.unwrap_or(1)).collect();
    if bytes_of(&chunk, element_bytes) > bytes_max {
        return shrink(&chunk, element_bytes, bytes_max);
    }
    let mut open: Vec<usize> = (0..shape.len()).filter(|&d| given[d].is_none()).collect();
    open.sort_by_key(|&d| shape[d]);
    for d in open {
        let room = bytes_max / bytes_of(&chunk, element_bytes).max(1);
        chunk[d] = shape[d].clamp(1, room.max(1));
        if chunk[d] < shape[d] {
            chunk[d] = largest_divisor(shape[d], chunk[d]).filter(|&even| 2 * even > chunk[d]).unwrap_or(chunk[d]);
            break;
        }
    }
    chunk
}

/// The extent nearest to `wanted` that divides `extent`, if the number of parts rounds to one that does.
fn divisor_near(extent: u64, wanted: u64) -> u64 {
    if extent == 0 {
        return 1;
    }
    let parts = ((extent + wanted / 2) / wanted).max(1);
    if extent.is_multiple_of(parts) { extent / parts } else { wanted }
}

/// The largest divisor of `extent` that is at most `most`.
fn largest_divisor(extent: u64, most: u64) -> Option<u64> {
    (extent.div_ceil(most.max(1))..=extent.min(1 << 20)).find(|&parts| extent.is_multiple_of(parts)).map(|p| extent / p)
}

/// Cuts a box into equal parts, always along its longest side, until one fits.
fn shrink(request: &[u64], element_bytes: u64, bytes_max: u64) -> Vec<u64> {
    let mut parts = vec![1u64; request.len()];
    let part = |parts: &[u64]| -> Vec<u64> { request.iter().zip(parts).map(|(&n, &p)| n.div_ceil(p)).collect() };
    let mut chunk = part(&parts);
    while bytes_of(&chunk, element_bytes) > bytes_max {
        let Some(longest) = (0..chunk.len()).filter(|&d| chunk[d] > 1).max_by_key(|&d| chunk[d]) else { break };
        // Straight to the next number of parts that makes them smaller, and equal where there is one near.
        let side = request[longest];
        let next = side.div_ceil(chunk[longest] - 1);
        parts[longest] = (next..=(2 * next).min(side)).find(|&p| side.is_multiple_of(p)).unwrap_or(next);
        chunk = part(&parts);
    }
    chunk
}

fn bytes_of(chunk: &[u64], element_bytes: u64) -> u64 {
    volume(chunk).unwrap_or(u64::MAX).saturating_mul(element_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn schemas_of_panda() {
        let schema = |mesh: &[u64], dims: &[Dim]| {
            schema_chunks(&Distribution::new(&[512, 512, 256], mesh, dims).unwrap(), 8, 1 << 30)
        };
        assert_eq!(schema(&[8], &[Dim::Block, Dim::Whole, Dim::Whole]), [64, 512, 256]);
        assert_eq!(schema(&[2, 2, 2], &[const { Dim::Block }; 3]), [256, 256, 128]);
        assert_eq!(schema(&[4], &[Dim::Whole, Dim::Whole, Dim::Cyclic(16)]), [512, 512, 16]);
        let rows = Distribution::new(&[512, 512, 256], &[8], &[Dim::Block, Dim::Whole, Dim::Whole]).unwrap();
        assert_eq!(natural_chunks(&rows, 8, 32 * MIB), [32, 512, 256]);
    }

    #[test]
    fn requests_that_fit_are_taken_as_they_are() {
        assert_eq!(chunks_for_request(&[1000, 1000], &[Some(100), Some(50)], 8, MIB), [100, 50]);
        // 1000 / 90 is about 11, which does not divide; 1000 / 130 is about 8, which does.
        assert_eq!(chunks_for_request(&[1000, 1000], &[Some(90), Some(130)], 8, MIB), [90, 125]);
        assert_eq!(chunks_for_request(&[0, 3], &[Some(1), None], 8, MIB), [1, 3]);
        // Longer than the array.
        assert_eq!(chunks_for_request(&[10, 10], &[Some(90), Some(5)], 8, MIB), [10, 5]);
    }

    #[test]
    fn open_dimensions_are_filled() {
        // 1 MiB holds 131,072 doubles: rows of 1000, of which 125 divide the array evenly.
        assert_eq!(chunks_for_request(&[1000, 1000], &[None, Some(1000)], 8, MIB), [125, 1000]);
        assert_eq!(chunks_for_request(&[1000, 1000], &[None, None], 8, 1 << 30), [1000, 1000]);
        // The shorter one first.
        assert_eq!(chunks_for_request(&[64, 4096, 4096], &[None, Some(1), None], 8, MIB), [64, 1, 2048]);
    }

    #[test]
    fn shapes_near_others_join_neighbours_and_cut_along_the_slowest_dimension() {
        let near = |shape: &[u64], chunk: &[u64], sizes| near_shapes(shape, chunk, 8, sizes);
        let none: Vec<Vec<u64>> = Vec::new();
        assert_eq!(near(&[8, 8], &[4, 4], (64, MIB)), [vec![vec![8, 4], vec![8, 8]], vec![vec![2, 4]]]);
        // Not larger than a chunk may be, nor smaller.
        assert_eq!(near(&[8, 8], &[4, 4], (128, 256)), [vec![vec![8, 4]], none.clone()]);
        // 2 x 668 rows would be a third more than there are; all of them are not.
        assert_eq!(near(&[1001], &[334], (MIB, MIB)), [vec![vec![1001]], none.clone()]);
        assert_eq!(near(&[], &[], (0, MIB)), [none.clone(), none.clone()]);
        assert_eq!(near(&[0, 5], &[1, 5], (MIB, MIB)), [none.clone(), none]);
    }

    #[test]
    fn large_requests_are_whole_numbers_of_chunks() {
        for (request, bytes_max) in [([3000, 2000], MIB), ([4096, 64], MIB / 4), ([1 << 20, 1], 4096), ([7, 5], 8)] {
            let wanted = request.map(Some);
            let chunk = chunks_for_request(&request, &wanted, 8, bytes_max);
            assert!(chunk.iter().product::<u64>() * 8 <= bytes_max, "{request:?}: {chunk:?}");
            // Sides differ by less than a factor of two and a bit, unless the request itself is thinner.
            let (long, short) = (chunk[0].max(chunk[1]), chunk[0].min(chunk[1]));
            assert!(long <= 3 * short || request.contains(&short), "{request:?}: {chunk:?}");
        }
    }
}
