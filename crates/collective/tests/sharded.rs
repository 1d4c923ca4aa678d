//! Arrays in shards, read by whole calls: each rank learns where the chunks lie that it reads, and of a hostile index all ranks
//! hear the same.
#![allow(clippy::disallowed_methods, reason = "tests may read the environment")]

mod common;

use common::{Told, decode, finish, seeds};
use hyperslab_collective::{
    Arguments, ArrayRequest, Call, Decision, Done, Each, LocalArray, Ownership, Selected, Target,
};
use hyperslab_format::zarr::{ArrayMetadata, BytesCodec, Codecs, Sharding};
use hyperslab_layout::mesh::{unravel, volume};
use hyperslab_layout::{
    Casting, Codec, Dim, Distribution, IndexSet, Kind, Policies, Section, Stored, Triplet, product,
};
use hyperslab_plan::{Direction, MemoryLayout, Parameters, Strategy, Transfer};
use hyperslab_walk::{Compared, Limits, Party};
use hyperslab_world::lockstep::{Hub, HubWorld};
use hyperslab_world::wrappers::Failing;
use hyperslab_world::{Fault, FaultKind, MemoryStore, Objects, Root};
use std::sync::Arc;

const FILL: f64 = -1.0;

/// What is read.
struct Sharded {
    stored: Stored,
    parameters: Parameters,
}

impl Target for Sharded {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        Ok(vec![self.stored.clone()])
    }

    fn choose(&mut self, _transfer: &Arc<Transfer>, _laid: &[Option<MemoryLayout>]) -> Result<Decision, Fault> {
        Ok(Decision { parameters: self.parameters.clone(), predicted: [0.0; 5], later: 0.0, plan: 0 })
    }

    fn begin(
        &mut self,
        _stored: &mut [Stored],
        _transfer: &Arc<Transfer>,
        _parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        Ok(vec![Root::new("")])
    }
}

/// An array in shards, some of which are not there, and ranks that read a section of it.
struct Case {
    ranks: u32,
    seed: u64,
    random: fastrand::Rng,
    metadata: ArrayMetadata,
    objects: Objects,
    section: Section,
    buffer_bytes_max: u64,
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut random = fastrand::Rng::with_seed(seed);
        let ndim = random.usize(0..4);
        let mut extents = |most: u64| -> Vec<u64> { (0..ndim).map(|_| random.u64(1..most)).collect() };
        let (shape, chunk, counts) = (extents(12), extents(4), extents(4));
        let shard: Vec<u64> = chunk.iter().zip(&counts).map(|(chunk, count)| chunk * count).collect();
        let mut order: Vec<usize> = (0..ndim).collect();
        random.shuffle(&mut order);
        let chains = [
            vec![],
            vec![BytesCodec::Crc32c],
            vec![BytesCodec::Zstd { level: 1, checksum: false }],
            vec![BytesCodec::Gzip { level: 1 }, BytesCodec::Crc32c],
        ];
        let inner = Codecs { chain: chains[random.usize(0..4)].clone(), ..Codecs::plain(false) };
        let permuted: Vec<u64> = order.iter().map(|&d| chunk[d]).collect();
        let sharding = Sharding { index_at_end: random.bool(), ..Sharding::new(&permuted, inner) };
        let codecs = Codecs { order, ..Codecs::sharded(sharding) };
        let mut metadata = ArrayMetadata::new("a", &shape, Kind::Float64, &shard, codecs).unwrap();
        metadata.fill_value = FILL.to_ne_bytes().to_vec();
        let section = Section { dims: shape.iter().map(|&extent| any_triplet(&mut random, extent)).collect() };
        let (ranks, objects) = (random.u32(1..6), Objects::default());
        let mut case = Case { ranks, seed, random, metadata, objects, section, buffer_bytes_max: 1 << 28 };
        case.store();
        case
    }

    fn fill(&self) -> Vec<u8> {
        FILL.to_le_bytes().to_vec()
    }

    /// Nothing in some shards, and in some chunks of others.
    fn value(&self, index: &[u64]) -> f64 {
        let at = |extents: &[u64]| {
            let at = index.iter().zip(extents).map(|(i, n)| i / n);
            at.fold(self.seed, |hash, at| hash.wrapping_mul(31).wrapping_add(at))
        };
        if at(&self.metadata.chunk_shape) % 5 == 0 || at(&self.metadata.inner_chunk_shape()) % 3 == 0 {
            return FILL;
        }
        index.iter().fold(1.0, |value, &i| value * 16.0 + i as f64)
    }

    fn store(&mut self) {
        let (metadata, fill) = (self.metadata.clone(), self.fill());
        let codec = metadata.codecs.shard_codec(&metadata.chunk_shape, &fill).unwrap();
        let order = metadata.codecs.permutation(metadata.shape.len());
        let grid = metadata.grid_shape();
        for number in 0..volume(&grid).unwrap() {
            let at = unravel(number, &grid);
            let slow: Vec<u64> = order.iter().map(|&d| metadata.chunk_shape[d]).collect();
            let values = (0..volume(&slow).unwrap()).map(|number| {
                let inside = unravel(number, &slow);
                let mut index: Vec<u64> = at.iter().zip(&metadata.chunk_shape).map(|(at, n)| at * n).collect();
                order.iter().zip(inside).for_each(|(&d, inside)| index[d] += inside);
                self.value(&index)
            });
            let values: Vec<f64> = values.collect();
            if values.iter().any(|value| *value != FILL) {
                let plain: Vec<u8> = values.into_iter().flat_map(f64::to_le_bytes).collect();
                let key = metadata.key_encoding.key(&at);
                self.objects.lock().unwrap().insert(key.clone(), codec.encode(&plain, &key).unwrap());
            }
        }
    }

    fn stored(&self) -> Stored {
        let inner = self.metadata.inner(&self.fill()).unwrap();
        let (element, shape) = (self.metadata.stored_element(), &self.metadata.shape);
        let order = self.metadata.codecs.permutation(shape.len());
        let stored = Stored::in_shards(shape, element, &inner.chunk, inner.shards, inner.coding).ordered(order);
        Stored { fill: self.fill().into(), ..stored }
    }

    fn holding(&mut self) -> Ownership {
        let shape = self.section.shape();
        let dims: Vec<Dim> = shape
            .iter()
            .map(|_| match self.random.u8(0..3) {
                0 => Dim::Block,
                1 => Dim::Cyclic(self.random.u64(1..3)),
                _ => Dim::Whole,
            })
            .collect();
        let mut mesh = vec![1; dims.iter().filter(|dim| **dim != Dim::Whole).count()];
        if let Some(first) = mesh.first_mut() {
            *first = u64::from(self.ranks);
        }
        match mesh.is_empty() {
            true => Ownership::replicated(&shape, self.ranks).unwrap(),
            false => Distribution::new(&shape, &mesh, &dims).unwrap().into(),
        }
    }

    /// Reads the section by some strategy that can, so held.
    fn read(&mut self, holding: &Ownership) -> Vec<Result<Done, Fault>> {
        let mut servers: Vec<u32> = (0..self.ranks).collect();
        self.random.shuffle(&mut servers);
        servers.truncate(self.random.usize(1..=self.ranks as usize));
        let strategy = Strategy::ALL[self.random.usize(0..Strategy::ALL.len())];
        if strategy == Strategy::ROOT_GATHER {
            servers = vec![0];
        }
        let subchunk_bytes = self.random.u64(16..2000);
        let slots = self.random.u32(1..4);
        let parameters =
            Parameters { strategy, servers: servers.into(), slots, subchunk_bytes, ..Parameters::default() };
        let parameters = Parameters { buffer_bytes_max: self.buffer_bytes_max, ..parameters };
        let mut target = Some(Sharded { stored: self.stored(), parameters });
        let arguments = (0..self.ranks).map(|_| Arguments {
            what: "a read".into(),
            compared: Compared::default(),
            fault: None,
            direction: Direction::Read,
            arrays: vec![ArrayRequest {
                name: "a".into(),
                selected: Selected::Section(self.section.clone()),
                holding: Some(Arc::new(holding.clone())),
                memory: Vec::new(),
            }],
            locals: None,
            casting: Casting::SameKind,
            policies: Policies::default(),
            together: false,
            target: target.take().map(|target| -> Box<dyn Target> { Box::new(target) }),
            publishes: true,
            at_once: true,
        });
        let arguments: Vec<Arguments> = arguments.collect();
        let hub = Hub::new(self.ranks, self.seed, 0);
        let no_fault = || Fault::new(FaultKind::Storage, "");
        let store = || Failing::new(MemoryStore::new(self.objects.clone()), u64::MAX, no_fault());
        let mut worlds: Vec<_> = (0..self.ranks).map(|rank| HubWorld::new(&hub, rank, store())).collect();
        let mut parties: Vec<_> = (0..self.ranks).map(|rank| Party::new(rank, self.ranks, Limits::default())).collect();
        let each = arguments.into_iter().zip(&mut worlds).enumerate();
        let mut calls: Vec<Call> = each
            .map(|(rank, (arguments, world))| Call::new(world, (rank as u32, self.ranks), arguments, decode))
            .collect();
        finish(&hub, &mut self.random, &mut worlds, &mut parties, &mut calls)
    }

    fn check(&self, rank: u32, holding: &Ownership, array: &LocalArray) {
        let distribution = holding.regular().unwrap();
        if u64::from(rank) >= distribution.ranks() {
            return;
        }
        let indices: Vec<Vec<u64>> =
            distribution.owned(rank).dims.iter().map(|set: &IndexSet| set.iter().collect()).collect();
        let value = |position: Vec<u64>| {
            let dims = position.iter().zip(&self.section.dims);
            self.value(&dims.map(|(&position, triplet)| triplet.select(position)).collect::<Vec<_>>())
        };
        let expected: Vec<f64> = product(&indices).map(value).collect();
        assert_eq!(array.to_f64(), expected, "rank {rank}");
    }
}

fn any_triplet(random: &mut fastrand::Rng, extent: u64) -> Triplet {
    if random.bool() {
        return Triplet::whole(extent);
    }
    let start = random.u64(0..extent);
    let stride = random.u64(1..4);
    Triplet { start, stride, count: random.u64(1..=(extent - start).div_ceil(stride)), block: 1 }
}

#[test]
fn sections_of_arrays_in_shards_are_what_was_stored() {
    let mut present = 0;
    for seed in seeds(500) {
        let _told = Told(seed);
        let mut case = Case::new(seed);
        present += case.objects.lock().unwrap().len();
        let holding = case.holding();
        for (rank, result) in case.read(&holding).into_iter().enumerate() {
            let done = result.unwrap_or_else(|fault| panic!("{}", fault.text()));
            case.check(rank as u32, &holding, &done.arrays[0]);
        }
    }
    assert!(present > 0, "some shards are there");
}

#[test]
fn of_a_hostile_index_all_ranks_hear_the_same() {
    let mut refused = 0;
    for seed in seeds(300) {
        let _told = Told(seed);
        let mut case = Case::new(seed);
        let codec = case.metadata.codecs.shard_codec(&case.metadata.chunk_shape, &case.fill()).unwrap();
        let index = codec.index().unwrap();
        for content in case.objects.lock().unwrap().values_mut() {
            let first = if index.is_at_end() { content.len() - index.bytes() as usize } else { 0 };
            let at = first + case.random.usize(..index.bytes() as usize);
            content[at] ^= 1 << case.random.u8(0..8);
            if case.random.u8(0..4) == 0 {
                content.truncate(case.random.usize(..=content.len()));
            }
        }
        let holding = case.holding();
        let results = case.read(&holding);
        let failed: Vec<&Fault> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert!(failed.is_empty() || failed.len() == results.len(), "all ranks or none");
        for fault in &failed {
            assert_eq!((fault.kind, fault.text()), (FaultKind::Corrupt, failed[0].text()));
        }
        refused += u32::from(!failed.is_empty());
    }
    assert!(refused > 50 || std::env::var("HYPERSLAB_SEED").is_ok(), "{refused} were refused");
}

/// Where the section needs one chunk of a large shard, the index and that chunk are read, and no more.
#[test]
fn a_small_section_reads_a_small_part_of_a_shard() {
    let sharding = Sharding::new(&[4], Codecs::plain(false));
    let mut case = Case::new(1);
    case.metadata = ArrayMetadata::new("a", &[4000], Kind::Float64, &[4000], Codecs::sharded(sharding)).unwrap();
    case.metadata.fill_value = FILL.to_ne_bytes().to_vec();
    case.objects.lock().unwrap().clear();
    case.ranks = 1;
    case.store();
    let wanted = (0..4000).find(|&i| case.value(&[i]) != FILL).unwrap();
    case.section = Section { dims: vec![Triplet { start: wanted, stride: 1, count: 1, block: 1 }] };
    let holding = Ownership::replicated(&[1], 1).unwrap();
    let done = case.read(&holding).pop().unwrap().unwrap_or_else(|fault| panic!("{}", fault.text()));
    case.check(0, &holding, &done.arrays[0]);
    assert_eq!(done.report.walked().store_bytes, 1000 * 16 + 4 + 8, "its index, and one element");
}

/// A budget in which the index of one shard has no room.
#[test]
fn indexes_that_are_too_large_are_refused() {
    let mut case = Case::new(1);
    let sharding = Sharding::new(&[4], Codecs::plain(false));
    case.metadata = ArrayMetadata::new("a", &[4000], Kind::Float64, &[4000], Codecs::sharded(sharding)).unwrap();
    case.section = Section::whole(&[4000]);
    assert_eq!(case.stored().index_bytes(&case.section), 1000 * 16 + 4);
    for (buffer_bytes_max, fits) in [(16_003, false), (16_004, true)] {
        case.buffer_bytes_max = buffer_bytes_max;
        let holding = Ownership::replicated(&[4000], case.ranks).unwrap();
        for result in case.read(&holding) {
            let said = result.err().map(|fault| fault.text()).unwrap_or_default();
            assert!(fits || said.contains("at most 16003 B") && said.contains("16004 B and more"), "{said}");
            assert_eq!(said.is_empty(), fits, "{said}");
        }
    }
}
