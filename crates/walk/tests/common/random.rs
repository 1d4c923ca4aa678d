//! Random transfers: stored arrays, sections, distributions and parameters.

use super::array::Array;
use super::case::Case;
use super::pieces::any_pieces;
use hyperslab_format::zarr::{BytesCodec, Codecs};
use hyperslab_layout::stored::{Address, Change, Keys, Table};
use hyperslab_layout::{ByteOrder, Dim, Distribution, ElementType, Kind, Section, Triplet};
use hyperslab_plan::{
    Direction, Exchange, Extent, Parameters, Spread, Stored, Strategy, Transfer, TransferArray, physical_order,
};
use std::sync::Arc;

pub(crate) fn any_element(random: &mut fastrand::Rng) -> ElementType {
    let order = any_byte_order(random);
    ElementType { kind: Kind::ALL[random.usize(0..Kind::ALL.len())], order }
}

fn any_byte_order(random: &mut fastrand::Rng) -> ByteOrder {
    if random.bool() { ByteOrder::Little } else { ByteOrder::Big }
}

/// A date, or so many bytes.
fn any_opaque(random: &mut fastrand::Rng) -> ElementType {
    let date = ElementType::from_numpy(if random.bool() { "<M8[ns]" } else { ">M8[ns]" });
    if random.bool() { date.unwrap() } else { ElementType::native(Kind::opaque(random.u32(1..40))) }
}

/// A random shape: mostly few dimensions, now and then many tiny ones.
pub(crate) fn any_shape(random: &mut fastrand::Rng) -> Vec<u64> {
    let many = random.u8(0..12) == 0;
    let ndim = if many { random.usize(6..9) } else { random.usize(0..6) };
    let high = if many { 3 } else { [2, 120, 20, 9, 6, 4][ndim] };
    let low = u64::from(random.u8(0..8) != 0);
    (0..ndim).map(|_| random.u64(low..high)).collect()
}

pub(crate) fn any_order(random: &mut fastrand::Rng, ndim: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ndim).collect();
    match random.u8(0..3) {
        0 => order.reverse(),
        1 => random.shuffle(&mut order),
        _ => {}
    }
    order
}

pub(crate) fn any_triplet(random: &mut fastrand::Rng, extent: u64) -> Triplet {
    if extent == 0 || random.u8(0..5) < 2 {
        return Triplet::whole(extent);
    }
    let start = random.u64(0..extent);
    let longest = if random.bool() { 3 } else { 40 };
    let block = random.u64(1..=longest.min(extent - start));
    let stride = block + random.u64(0..6);
    let most = (extent - start - block) / stride + 1;
    let count = if random.u8(0..12) == 0 { 0 } else { random.u64(1..=most) };
    Triplet { start, stride, count, block }
}

/// Uneven blocks of random sizes, some of them 0.
fn any_blocks(random: &mut fastrand::Rng, extent: u64, ranks: u64) -> Dim {
    let mut rest = extent;
    let sizes = (0..ranks).map(|q| {
        let size = if q + 1 == ranks { rest } else { random.u64(0..=rest) };
        rest -= size;
        size
    });
    Dim::blocks(&sizes.collect::<Vec<_>>()).expect("sizes add up")
}

/// A random distribution over at most `ranks` ranks; some mesh dimensions may replicate.
pub(crate) fn any_distribution(random: &mut fastrand::Rng, shape: &[u64], ranks: u64) -> Distribution {
    let mut room = ranks;
    let mesh: Vec<u64> = (0..random.usize(0..shape.len() + 2))
        .map(|_| {
            let extent = random.u64(1..=room);
            room /= extent;
            extent
        })
        .collect();
    let mut free: Vec<usize> = (0..mesh.len()).collect();
    random.shuffle(&mut free);
    let mut over = Vec::new();
    let dims: Vec<Dim> = shape
        .iter()
        .map(|&extent| {
            let Some(&m) = free.last().filter(|_| random.u8(0..5) != 0) else { return Dim::Whole };
            free.pop();
            over.push(m);
            match random.u8(0..5) {
                0 => Dim::Block,
                1 => Dim::BlockOf(extent.div_ceil(mesh[m]).max(1) + random.u64(0..3)),
                2 => any_blocks(random, extent, mesh[m]),
                3 => Dim::Cyclic(1),
                _ => Dim::Cyclic(random.u64(1..6)),
            }
        })
        .collect();
    Distribution::over_mesh(shape, &mesh, &dims, &over).expect("a legal distribution")
}

fn any_chunk(random: &mut fastrand::Rng, shape: &[u64]) -> Vec<u64> {
    shape.iter().map(|&n| random.u64(1..=n.max(1) + 2)).collect()
}

/// Chunks of a random shape, encoded somehow, fresh or not.
fn any_chunks(random: &mut fastrand::Rng, number: usize, shape: &[u64], element: ElementType) -> Stored {
    let zstd = BytesCodec::Zstd { level: 1, checksum: false };
    let chains = [vec![], vec![BytesCodec::Crc32c], vec![zstd], vec![zstd, BytesCodec::Crc32c]];
    let codecs = Codecs { chain: chains[random.usize(0..4)].clone(), ..Codecs::plain(false) };
    let (chunk, keys) = (any_chunk(random, shape), Keys::nested("a/"));
    let change = if random.bool() { Change::Fresh } else { Change::Replace };
    Stored::in_chunks(shape, element, &chunk, keys, codecs.coding()).changed(change).below_root(number as u32)
}

/// Chunks of a random shape that lie in one object in any order, with something else between some of them.
fn any_table(random: &mut fastrand::Rng, number: usize, shape: &[u64], element: ElementType) -> Stored {
    let chunk = any_chunk(random, shape);
    let counts: Vec<u64> = shape.iter().zip(&chunk).map(|(&n, &c)| n.div_ceil(c)).collect();
    let mut places = super::oracle::indices(&counts);
    random.shuffle(&mut places);
    let name: Arc<str> = "table".into();
    let (bytes, mut end) = (chunk.iter().product::<u64>() * element.bytes(), random.u64(0..20));
    let mut addresses = Vec::new();
    for at in places {
        // The last dimension is the fastest.
        let number = at.iter().zip(&counts).fold(0, |number, (at, count)| number * count + at);
        addresses.push(Address::plain(number, end));
        end += bytes + if random.bool() { 0 } else { random.u64(0..20) };
    }
    let table = Table::of(name, addresses);
    Stored::in_table(shape, element, &chunk, table).below_root(number as u32)
}

/// Chunks of a random shape, one after another.
fn any_grid(random: &mut fastrand::Rng, number: usize, shape: &[u64], element: ElementType) -> Stored {
    let (chunk, begin) = (any_chunk(random, shape), random.u64(0..20));
    Stored::in_grid(shape, element, &chunk, "grid", begin).below_root(number as u32)
}

/// In the common file, where the next array starts; some in records with something else between them.
fn any_place(
    random: &mut fastrand::Rng,
    shape: &[u64],
    order: &[usize],
    element: ElementType,
    file: &mut u64,
) -> Stored {
    let mut stored = Stored::in_file(shape, element, "data", *file);
    let bytes = shape.iter().product::<u64>() * element.bytes();
    *file += bytes + random.u64(0..20);
    if let Some(&slowest) = order.first().filter(|_| random.u8(0..3) == 0) {
        let record = bytes / shape[slowest].max(1) + random.u64(0..30);
        stored.strides.record = Some(record);
        *file += shape[slowest] * 30;
    }
    stored
}

/// A random array; `file` is where the next array of the common file starts.
pub(crate) fn any_array(random: &mut fastrand::Rng, number: usize, file: &mut u64) -> Array {
    let shape = any_shape(random);
    let element = any_element(random);
    // Now and then what means something to others only, which becomes nothing else.
    let opaque = random.u8(0..8) == 0;
    let element = if opaque { any_opaque(random) } else { element };
    let mut memory = || match element.kind {
        Kind::Opaque(_) => ElementType { order: any_byte_order(random), ..element },
        _ if random.bool() => element,
        _ => any_element(random),
    };
    let (write, read) = (memory(), memory());
    let order = any_order(random, shape.len());
    let stored = match random.u8(0..5) {
        0 | 1 => any_chunks(random, number, &shape, element),
        2 if random.bool() => any_table(random, number, &shape, element),
        2 => any_grid(random, number, &shape, element),
        _ => any_place(random, &shape, &order, element, file),
    };
    Array::new(number, stored.ordered(order), write, read)
}

/// A random section of an array, in a random distribution.
pub(crate) fn any_ask(random: &mut fastrand::Rng, array: &Array, ranks: u32, direction: Direction) -> TransferArray {
    let section = Section { dims: array.stored.shape.iter().map(|&n| any_triplet(random, n)).collect() };
    let distribution = any_distribution(random, &section.shape(), u64::from(ranks));
    array.ask(section, distribution, direction)
}

/// The same in pieces of each rank's own, some of the time.
pub(crate) fn any_spread(case: &mut Case, array: usize, direction: Direction) -> TransferArray {
    let mut ask = any_ask(&mut case.random, &case.arrays[array], case.ranks, direction);
    if case.random.u8(0..3) == 0 {
        ask.spread = Spread::Explicit;
        case.explicit.insert(array, any_pieces(&mut case.random, &ask.section.shape(), case.ranks, direction));
    }
    ask
}

/// Where random parts of an object lie on an imagined disk, in rising order of offsets.
pub(crate) fn any_extents(random: &mut fastrand::Rng, bytes: u64) -> Vec<Extent> {
    let (mut extents, mut offset) = (Vec::new(), 0);
    while offset < bytes {
        let bytes = random.u64(1..100);
        // Here and there a hole, of which nobody knows where it will lie.
        if random.u8(0..5) > 0 {
            extents.push(Extent { offset, physical: random.u64(0..1 << 40), bytes });
        }
        offset += bytes;
    }
    extents
}

/// Gives the parameters the order of an imagined disk, which only one strategy heeds.
pub(crate) fn any_physical_order(random: &mut fastrand::Rng, transfer: &Arc<Transfer>, parameters: &mut Parameters) {
    if random.u8(0..3) > 0 {
        parameters.order = physical_order(transfer, parameters, |_| any_extents(random, 2000));
    }
}

/// Parameters, strategy included, by which a transfer can be done.
pub(crate) fn any_feasible(random: &mut fastrand::Rng, transfer: &Arc<Transfer>) -> Parameters {
    loop {
        let strategy = Strategy::ALL[random.usize(0..Strategy::ALL.len())];
        let mut parameters = any_parameters(random, strategy, transfer.ranks);
        any_physical_order(random, transfer, &mut parameters);
        if strategy.feasible(transfer, &parameters).is_ok() {
            return parameters;
        }
    }
}

/// Random choices, with tiny subchunks.
pub(crate) fn any_parameters(random: &mut fastrand::Rng, strategy: Strategy, ranks: u32) -> Parameters {
    let mut servers: Vec<u32> = (0..ranks).collect();
    random.shuffle(&mut servers);
    servers.truncate(random.usize(1..=ranks as usize));
    let powers = [1, 16, 64, 300, 4096];
    Parameters {
        strategy,
        servers: servers.into(),
        slots: random.u32(1..4),
        subchunk_bytes: powers[random.usize(0..powers.len())],
        direct_run_bytes: [0, 1, 8, 50, 1 << 16][random.usize(0..5)],
        buffer_bytes_max: 1 << 26,
        exchange: if random.bool() { Exchange::All } else { Exchange::Sharers },
        order: Vec::new(),
    }
}
