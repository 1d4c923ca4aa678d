//! Chunks that get room in one object once they are encoded: whole calls write sections of an array, again and again, and what
//! was there before stays where it was.
#![allow(clippy::disallowed_methods, reason = "tests may read the environment")]

mod common;

use common::{Told, decode, finish, seeds};
use hyperslab_collective::{
    Arguments, ArrayRequest, Call, Decision, Done, Each, LocalArray, Ownership, Selected, Target,
};
use hyperslab_format::zarr::{BytesCodec, Codecs};
use hyperslab_layout::mesh::{ravel, unravel, volume};
use hyperslab_layout::stored::{Address, Coding, Table};
use hyperslab_layout::{
    Casting, Codec, Dim, Distribution, ElementType, Kind, Policies, Section, Stored, Triplet, product,
};
use hyperslab_plan::{Direction, MemoryLayout, Parameters, Strategy, Transfer};
use hyperslab_walk::{Compared, Limits, Party, PlacedChunk};
use hyperslab_world::lockstep::{Hub, HubWorld};
use hyperslab_world::wrappers::Failing;
use hyperslab_world::{Fault, FaultKind, MemoryStore, Objects, Root};
use std::sync::{Arc, Mutex};

const OBJECT: &str = "file";
const FILL: f64 = -1.0;
const ELEMENT: ElementType = ElementType::native(Kind::Float64);

/// What rank 0 heard, and published.
type Heard = Arc<Mutex<Option<(Vec<PlacedChunk>, u64)>>>;

struct File {
    stored: Stored,
    parameters: Parameters,
    heard: Heard,
    placed: Option<(Vec<PlacedChunk>, u64)>,
}

impl Target for File {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        Ok(vec![self.stored.clone()])
    }

    fn choose(&mut self, transfer: &Arc<Transfer>, _laid: &[Option<MemoryLayout>]) -> Result<Decision, Fault> {
        let feasible = self.parameters.strategy.feasible(transfer, &self.parameters);
        feasible.map_err(|infeasible| Fault::new(FaultKind::Unsupported, infeasible.to_string()))?;
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

    fn placed(&mut self, chunks: Vec<PlacedChunk>, end: u64) -> Result<(), Fault> {
        self.placed = Some((chunks, end));
        Ok(())
    }

    fn publish(&mut self) -> Result<(), Fault> {
        *self.heard.lock().unwrap() = self.placed.take();
        Ok(())
    }
}

/// An array in one object, and what is known of it.
struct Case {
    ranks: u32,
    seed: u64,
    random: fastrand::Rng,
    shape: Vec<u64>,
    chunk: Vec<u64>,
    codec: Arc<dyn Codec>,
    values: Vec<f64>,
    table: Table,
    end: u64,
    objects: Objects,
    turn: u64,
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut random = fastrand::Rng::with_seed(seed);
        let ndim = random.usize(1..4);
        let mut extents = |most: u64| -> Vec<u64> { (0..ndim).map(|_| random.u64(1..most)).collect() };
        let (shape, chunk) = (extents(12), extents(5));
        let zstd = BytesCodec::Zstd { level: 1, checksum: false };
        let chains = [
            vec![zstd],
            vec![BytesCodec::Shuffle { element_bytes: 8 }, zstd, BytesCodec::Fletcher32],
            vec![zstd, zstd],
        ];
        let codecs = Codecs { chain: chains[random.usize(0..3)].clone(), ..Codecs::plain(false) };
        let Coding::Encoded(codec) = codecs.coding() else { unreachable!("they are encoded") };
        let (ranks, end) = (random.u32(1..6), random.u64(0..50));
        let objects = Objects::default();
        objects.lock().unwrap().insert(OBJECT.into(), vec![0x5a; end as usize]);
        let values = vec![FILL; volume(&shape).unwrap() as usize];
        let table = Table::of(OBJECT, Vec::new());
        Case { ranks, seed, random, shape, chunk, codec, values, table, end, objects, turn: 0 }
    }

    fn any_section(&mut self) -> Section {
        let any = |extent: &u64| {
            if self.random.u8(0..3) == 0 {
                return Triplet::whole(*extent);
            }
            let start = self.random.u64(0..*extent);
            let stride = self.random.u64(1..3);
            Triplet { start, stride, count: self.random.u64(1..=(extent - start).div_ceil(stride)), block: 1 }
        };
        Section { dims: self.shape.iter().map(any).collect() }
    }

    fn holding(&mut self, shape: &[u64]) -> Ownership {
        let dims: Vec<Dim> = shape
            .iter()
            .map(|_| match self.random.u8(0..3) {
                0 => Dim::Block,
                1 => Dim::Cyclic(self.random.u64(1..3)),
                _ => Dim::Whole,
            })
            .collect();
        let mut mesh = vec![1; dims.iter().filter(|dim| **dim != Dim::Whole).count()];
        let Some(first) = mesh.first_mut() else { return Ownership::replicated(shape, self.ranks).unwrap() };
        *first = u64::from(self.ranks);
        Distribution::new(shape, &mesh, &dims).unwrap().into()
    }

    fn value(&self, index: &[u64]) -> f64 {
        (self.turn * 10_000 + ravel(index, &self.shape)) as f64
    }

    fn local(&self, rank: u32, section: &Section, holding: &Ownership) -> LocalArray {
        let distribution = holding.regular().unwrap();
        if u64::from(rank) >= distribution.ranks() {
            return LocalArray::from_f64(&vec![0; self.shape.len()], &[]);
        }
        let owned = distribution.owned(rank);
        let indices: Vec<Vec<u64>> = owned.dims.iter().map(|set| set.iter().collect()).collect();
        let values = product(&indices).map(|position| self.value(&selected(section, &position)));
        LocalArray::from_f64(&owned.shape(), &values.collect::<Vec<_>>())
    }

    fn parameters(&mut self) -> Parameters {
        let mut servers: Vec<u32> = (0..self.ranks).collect();
        self.random.shuffle(&mut servers);
        servers.truncate(self.random.usize(1..=self.ranks as usize));
        let (slots, subchunk_bytes) = (self.random.u32(1..4), self.random.u64(16..2000));
        let parameters = Parameters { servers: servers.into(), slots, subchunk_bytes, ..Parameters::default() };
        let strategy = Strategy::ALL[self.random.usize(0..Strategy::ALL.len())];
        if strategy == Strategy::ROOT_GATHER {
            return Parameters { strategy, servers: [0].into(), ..parameters };
        }
        Parameters { strategy, ..parameters }
    }

    fn stored(&self) -> Stored {
        let from = (self.end, self.table.clone());
        let stored = Stored::in_room(&self.shape, ELEMENT, &self.chunk, from, self.codec.clone());
        Stored { fill: FILL.to_ne_bytes().to_vec().into(), ..stored }
    }

    /// Writes a section; the n-th request to storage of a rank may fail. Nothing where no strategy of a few could.
    fn write(&mut self, section: &Section, failing: (u32, u64)) -> (Vec<Result<Done, Fault>>, Heard) {
        let (holding, heard) = (Arc::new(self.holding(&section.shape())), Heard::default());
        let file = File { stored: self.stored(), parameters: self.parameters(), heard: heard.clone(), placed: None };
        let mut target = Some(file);
        let arguments = (0..self.ranks).map(|rank| Arguments {
            what: "a write".into(),
            compared: Compared::default(),
            fault: None,
            direction: Direction::Write,
            arrays: vec![ArrayRequest {
                name: "a".into(),
                selected: Selected::Section(section.clone()),
                holding: Some(holding.clone()),
                memory: vec![ELEMENT],
            }],
            locals: Some(vec![vec![self.local(rank, section, &holding)]]),
            casting: Casting::SameKind,
            policies: Policies::default(),
            together: true,
            target: target.take().map(|target| -> Box<dyn Target> { Box::new(target) }),
            publishes: true,
            at_once: true,
        });
        let arguments: Vec<Arguments> = arguments.collect();
        let hub = Hub::new(self.ranks, self.seed + self.turn, 0);
        let store = |rank: u32| {
            let nth = if rank == failing.0 { failing.1 } else { u64::MAX };
            Failing::new(MemoryStore::new(self.objects.clone()), nth, Fault::new(FaultKind::Storage, "no space left"))
        };
        let mut worlds: Vec<_> = (0..self.ranks).map(|rank| HubWorld::new(&hub, rank, store(rank))).collect();
        let mut parties: Vec<_> = (0..self.ranks).map(|rank| Party::new(rank, self.ranks, Limits::default())).collect();
        let each = arguments.into_iter().zip(&mut worlds).enumerate();
        let mut calls: Vec<Call> = each
            .map(|(rank, (arguments, world))| Call::new(world, (rank as u32, self.ranks), arguments, decode))
            .collect();
        (finish(&hub, &mut self.random, &mut worlds, &mut parties, &mut calls), heard)
    }

    /// Notes what rank 0 heard, and what the section has now.
    fn note(&mut self, section: &Section, (placed, end): (Vec<PlacedChunk>, u64)) {
        let (mut chunks, mut stretches) = (self.table.chunks().to_vec(), Vec::new());
        for PlacedChunk { chunk, at, bytes } in placed {
            assert!(at >= self.end && at + bytes <= end, "{at} and {bytes} B in {}..{end}", self.end);
            stretches.push((at, at + bytes));
            chunks.push(Address { number: chunk.number, offset: at, bytes });
        }
        self.table = Table::of(OBJECT, chunks);
        stretches.sort_unstable();
        assert!(stretches.windows(2).all(|pair| pair[0].1 <= pair[1].0), "chunks lie over each other: {stretches:?}");
        let used: u64 = stretches.iter().map(|(from, to)| to - from).sum();
        let largest = stretches.iter().map(|(from, to)| to - from).max().unwrap_or(0);
        // What is asked for are guesses as long as few sizes are known.
        let lost = largest * 4 * u64::from(self.ranks) + used / if stretches.len() < 1000 { 2 } else { 20 };
        assert!(end - self.end <= used + lost, "{used} B used of {}", end - self.end);
        self.end = end;
        let positions: Vec<Vec<u64>> = section.shape().iter().map(|n| (0..*n).collect()).collect();
        for position in product(&positions) {
            let index = selected(section, &position);
            self.values[ravel(&index, &self.shape) as usize] = self.value(&index);
        }
    }

    /// Decodes all chunks, and compares them with what is known.
    fn check(&self) {
        let objects = self.objects.lock().unwrap();
        let mut found = vec![FILL; self.values.len()];
        let grid: Vec<u64> = self.shape.iter().zip(&self.chunk).map(|(n, c)| n.div_ceil(*c)).collect();
        for address in self.table.chunks() {
            let at = unravel(address.number, &grid);
            let (from, bytes) = (address.offset as usize, address.bytes as usize);
            let plain = volume(&self.chunk).unwrap() * 8;
            let chunk = self.codec.decode(&objects[OBJECT][from..from + bytes], plain, "a chunk").unwrap();
            for (number, value) in chunk.as_chunks::<8>().0.iter().enumerate() {
                let inside = unravel(number as u64, &self.chunk);
                let index: Vec<u64> = at.iter().zip(&self.chunk).zip(inside).map(|((a, c), i)| a * c + i).collect();
                let value = f64::from_ne_bytes(*value);
                if index.iter().zip(&self.shape).all(|(i, n)| i < n) {
                    found[ravel(&index, &self.shape) as usize] = value;
                } else {
                    assert_eq!(value, FILL, "beyond the array, at {index:?}");
                }
            }
        }
        assert_eq!(found, self.values);
    }
}

fn selected(section: &Section, position: &[u64]) -> Vec<u64> {
    position.iter().zip(&section.dims).map(|(&position, triplet)| triplet.select(position)).collect()
}

/// What no strategy with these parameters can do is refused by all, and leaves no trace.
fn is_refused(results: &[Result<Done, Fault>]) -> bool {
    results.iter().all(|result| result.as_ref().is_err_and(|fault| fault.kind != FaultKind::Storage))
}

#[test]
fn sections_are_what_was_written_last() {
    let (mut written, mut merged) = (0, 0);
    for seed in seeds(400) {
        let _told = Told(seed);
        let mut case = Case::new(seed);
        for _ in 0..case.random.usize(1..4) {
            case.turn += 1;
            let section = case.any_section();
            let (results, heard) = case.write(&section, (u32::MAX, 0));
            if is_refused(&results) {
                assert!(heard.lock().unwrap().is_none());
                continue;
            }
            results.iter().for_each(|result| assert!(result.is_ok(), "{:?}", result.as_ref().err()));
            merged += u32::from(!case.table.chunks().is_empty());
            written += 1;
            let heard = heard.lock().unwrap().take().expect("rank 0 heard where chunks lie");
            case.note(&section, heard);
            case.check();
        }
    }
    let some = std::env::var("HYPERSLAB_SEED").is_ok();
    assert!(some || written > 300 && merged > 100, "{written} writes, {merged} of them to chunks that were there");
}

/// Many small chunks of all sizes: room is asked for ahead, and little of it is lost.
#[test]
fn many_chunks_lose_little_room() {
    let mut done = 0;
    for seed in 0..12 {
        let mut case = Case::new(seed);
        (case.ranks, case.shape, case.chunk, case.turn) = (4, vec![6000], vec![1], 1);
        case.values = vec![FILL; 6000];
        let section = Section::whole(&[6000]);
        let (results, heard) = case.write(&section, (u32::MAX, 0));
        if results.iter().all(Result::is_ok) {
            let heard = heard.lock().unwrap().take().expect("rank 0 heard where chunks lie");
            case.note(&section, heard);
            case.check();
            done += 1;
        }
    }
    assert!(done > 3, "{done} strategies can");
}

/// Whatever request fails, all ranks hear the same, and all that was there is there.
#[test]
fn what_fails_leaves_what_was_there() {
    let mut failed = 0;
    for seed in seeds(300) {
        let _told = Told(seed);
        let mut case = Case::new(seed);
        case.turn = 1;
        let section = case.any_section();
        let (results, heard) = case.write(&section, (u32::MAX, 0));
        if is_refused(&results) {
            continue;
        }
        case.note(&section, heard.lock().unwrap().take().expect("rank 0 heard where chunks lie"));
        case.turn = 2;
        let section = case.any_section();
        let failing = (case.random.u32(0..case.ranks), case.random.u64(0..6));
        let (results, heard) = case.write(&section, failing);
        let faults: Vec<&Fault> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert!(faults.is_empty() || faults.len() == results.len(), "all ranks or none");
        assert!(faults.iter().all(|fault| fault.text() == faults[0].text()));
        failed += u32::from(faults.first().is_some_and(|fault| fault.kind == FaultKind::Storage));
        match faults.is_empty() {
            true => {
                let heard = heard.lock().unwrap().take().expect("rank 0 heard where chunks lie");
                case.note(&section, heard);
            }
            false => assert!(heard.lock().unwrap().is_none(), "nothing is told of what failed"),
        }
        case.check();
    }
    assert!(failed > 50 || std::env::var("HYPERSLAB_SEED").is_ok(), "{failed} failed");
}
