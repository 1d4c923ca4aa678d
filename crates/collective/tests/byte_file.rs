//! Views of a plain file of bytes, as MPI-IO has them: each rank moves a nest of it, whatever the others do. In place, growing
//! past its end, overlapping as they like, with holes that stay, and reads that end where the file does; against plain loops.
#![allow(clippy::disallowed_methods, reason = "tests may read the environment")]

mod common;

use common::{Told, decode, finish, seeds};
use hyperslab_collective::{
    Arguments, ArrayRequest, Call, Decision, Done, Each, LocalArray, Ownership, Selected, Target,
};
use hyperslab_layout::{Casting, ElementType, EndOfFile, Holes, IndexSet, Kind, Overlapping, Policies, Stored};
use hyperslab_pack::Memory;
use hyperslab_plan::{Direction, MemoryLayout, Parameters, Strategy, Transfer};
use hyperslab_walk::{Compared, Limits, Party};
use hyperslab_world::lockstep::{Hub, HubWorld};
use hyperslab_world::wrappers::Shuffling;
use hyperslab_world::{Fault, FaultKind, MemoryStore, Objects, Root};
use std::sync::{Arc, Mutex};

const BYTE: ElementType = ElementType::native(Kind::UInt8);
const OBJECT: &str = "file";
const GUARD: u8 = 0xA5;

/// The bytes of a file, as long as it is when a call begins.
struct ByteFile {
    objects: Objects,
    parameters: Parameters,
    /// From where to where the call reached, as far as rank 0 was told.
    reached: Arc<Mutex<Option<(u64, u64)>>>,
}

impl Target for ByteFile {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        let length = self.objects.lock().unwrap()[OBJECT].len() as u64;
        Ok(vec![Stored::in_file(&[length], BYTE, OBJECT, 0)])
    }

    fn choose(&mut self, transfer: &Arc<Transfer>, _laid: &[Option<MemoryLayout>]) -> Result<Decision, Fault> {
        *self.reached.lock().unwrap() = transfer.asks[0].section.dims[0].set().hull();
        let parameters = self.parameters.clone();
        if let Err(infeasible) = parameters.strategy.feasible(transfer, &parameters) {
            return Err(Fault::new(FaultKind::Invalid, infeasible.reason));
        }
        Ok(Decision { parameters, predicted: [0.0; 5], later: 0.0, plan: 0 })
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

/// What a rank moves: where its bytes lie in the file, in rising order, as a nest and one by one; and where in its memory.
#[derive(Clone)]
struct Part {
    set: IndexSet,
    file: Vec<u64>,
    memory: Vec<u64>,
    shape: Vec<u64>,
    strides: Vec<i64>,
    offset: i64,
    bytes: u64,
}

impl Part {
    fn random(random: &mut fastrand::Rng) -> Part {
        let (mut span, mut levels) = (random.u64(0..6), Vec::new());
        let run = span;
        for _ in 0..random.usize(0..4) {
            let (count, step) = (random.u64(1..5), span + random.u64(0..4));
            span += (count - 1) * step;
            levels.insert(0, (count, step));
        }
        let start = random.u64(0..120);
        let set = IndexSet::nested(start, run, &levels).expect("it rises");
        let mut file = vec![start];
        for &(count, step) in &levels {
            file = file.iter().flat_map(|&from| (0..count).map(move |i| from + i * step)).collect();
        }
        file = file.iter().flat_map(|&from| from..from + run).collect();
        let (shape, strides, offset, bytes) = in_memory(random, file.len() as u64);
        let place = |number: u64| {
            let (mut rest, mut at) = (number, offset);
            for (&extent, &stride) in shape.iter().zip(&strides).rev() {
                at += (rest % extent) as i64 * stride;
                rest /= extent;
            }
            at as u64
        };
        let memory = (0..file.len() as u64).map(place).collect();
        Part { set, file, memory, shape, strides, offset, bytes }
    }

    fn local(&self, contents: Vec<u8>) -> LocalArray {
        let (shape, strides) = (self.shape.clone(), self.strides.clone());
        LocalArray { memory: Memory::from_vec(contents), element: BYTE, shape, strides, offset: self.offset }
    }

    fn request(&self) -> ArrayRequest {
        let holding = Some(Arc::new(Ownership::Stretch(self.set.clone())));
        ArrayRequest { name: "bytes".into(), selected: Selected::Reached, holding, memory: vec![BYTE] }
    }
}

/// A memory of so many bytes in some dimensions, dense or with halos, in any order: shape, strides, first byte, size.
fn in_memory(random: &mut fastrand::Rng, total: u64) -> (Vec<u64>, Vec<i64>, i64, u64) {
    let (mut shape, mut rest) = (Vec::new(), total);
    while rest > 1 && shape.len() < 3 {
        let factors: Vec<u64> = (2..=rest).filter(|f| rest.is_multiple_of(*f)).collect();
        let factor = factors[random.usize(0..factors.len())];
        shape.push(factor);
        rest /= factor;
    }
    if rest != 1 || shape.is_empty() {
        shape.push(rest);
    }
    let mut order: Vec<usize> = (0..shape.len()).collect();
    if random.bool() {
        random.shuffle(&mut order);
    }
    let (mut strides, mut step) = (vec![0; shape.len()], 1);
    for &d in order.iter().rev() {
        strides[d] = step;
        step *= shape[d] as i64 + if random.bool() { 0 } else { random.i64(0..3) };
    }
    let offset = random.i64(0..4);
    (shape, strides, offset, (offset + step) as u64 + 4)
}

struct Case {
    random: fastrand::Rng,
    seed: u64,
    ranks: u32,
    objects: Objects,
    reached: Arc<Mutex<Option<(u64, u64)>>>,
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut random = fastrand::Rng::with_seed(seed);
        let ranks = random.u32(1..6);
        let before: Vec<u8> = (0..random.usize(0..200)).map(|at| at as u8 | 0x80).collect();
        let objects = Objects::default();
        objects.lock().unwrap().insert(OBJECT.into(), before);
        Case { random, seed, ranks, objects, reached: Arc::default() }
    }

    fn file(&self) -> Vec<u8> {
        self.objects.lock().unwrap()[OBJECT].clone()
    }

    fn parameters(&mut self) -> Parameters {
        let servers: Vec<u32> = (0..self.random.u32(1..=self.ranks)).collect();
        Parameters {
            strategy: Strategy::ALL[self.random.usize(0..Strategy::ALL.len())],
            servers: servers.into(),
            slots: self.random.u32(1..4),
            subchunk_bytes: self.random.u64(8..100),
            direct_run_bytes: self.random.u64(0..9),
            ..Parameters::default()
        }
    }

    /// A call of all ranks.
    fn run(&mut self, direction: Direction, policies: Policies, locals: Vec<(Part, Option<LocalArray>)>) -> Outcomes {
        let (objects, parameters) = (self.objects.clone(), self.parameters());
        let mut target = Some(ByteFile { objects, parameters, reached: self.reached.clone() });
        let hub = Hub::new(self.ranks, self.seed, 0);
        let store =
            |rank: u32| Shuffling::new(MemoryStore::new(self.objects.clone()), self.seed.wrapping_add(u64::from(rank)));
        let mut worlds: Vec<_> = (0..self.ranks).map(|rank| HubWorld::new(&hub, rank, store(rank))).collect();
        let mut parties: Vec<_> = (0..self.ranks).map(|rank| Party::new(rank, self.ranks, Limits::default())).collect();
        let mut calls = Vec::new();
        for (rank, (part, local)) in locals.into_iter().enumerate() {
            let arguments = Arguments {
                what: "a view".into(),
                compared: Compared::default(),
                fault: None,
                direction,
                arrays: vec![part.request()],
                locals: local.map(|local| vec![vec![local]]),
                casting: Casting::SameKind,
                policies,
                together: false,
                target: target.take().map(|file| -> Box<dyn Target> { Box::new(file) }),
                publishes: false,
                at_once: true,
            };
            calls.push(Call::new(&mut worlds[rank], (rank as u32, self.ranks), arguments, decode));
        }
        finish(&hub, &mut self.random, &mut worlds, &mut parties, &mut calls)
    }

    /// A write of these parts, in which each rank has bytes of its own.
    fn write(&mut self, parts: &[Part]) -> Vec<Vec<u8>> {
        let policies = Policies { overlapping: Overlapping::Any, holes: Holes::Kept, ..Policies::default() };
        let contents: Vec<Vec<u8>> =
            parts.iter().map(|part| (0..part.bytes).map(|_| self.random.u8(0..0x80)).collect()).collect();
        let locals = parts.iter().zip(&contents).map(|(part, bytes)| (part.clone(), Some(part.local(bytes.clone()))));
        for (result, part) in self.run(Direction::Write, policies, locals.collect()).into_iter().zip(parts) {
            let done = result.unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(done.elements, [part.file.len() as u64]);
        }
        contents
    }
}

type Outcomes = Vec<Result<Done, Fault>>;

const SHORT: Policies = Policies {
    durability: hyperslab_layout::Durability::Cached,
    overlapping: Overlapping::Any,
    holes: Holes::Kept,
    end: EndOfFile::Short,
};

#[test]
fn views_of_a_file_move_what_plain_loops_move() {
    let (mut grown, mut short, mut nested, mut shared) = (0, 0, 0, 0);
    for seed in seeds(2000) {
        let _told = Told(seed);
        let mut case = Case::new(seed);
        let before = case.file();
        let parts: Vec<Part> = (0..case.ranks).map(|_| Part::random(&mut case.random)).collect();
        nested += u32::from(parts.iter().any(|part| part.set.parts().any(|part| part.levels.len() > 1)));
        let contents = case.write(&parts);
        let after = case.file();
        // The last byte that anybody writes is the end, unless the file was longer.
        let end = parts.iter().filter_map(|part| part.file.last()).max().map_or(0, |last| *last as usize + 1);
        assert_eq!(after.len(), before.len().max(end));
        grown += u32::from(end > before.len());
        for (at, &found) in after.iter().enumerate() {
            let of = |(part, bytes): (&Part, &Vec<u8>)| {
                let number = part.file.binary_search(&(at as u64)).ok()?;
                Some(bytes[part.memory[number] as usize])
            };
            let wanted: Vec<u8> = parts.iter().zip(&contents).filter_map(of).collect();
            shared += u32::from(wanted.len() > 1);
            match wanted.is_empty() {
                true => assert!(before.get(at).is_none_or(|&byte| byte == found), "byte {at} is in a hole"),
                false => assert!(wanted.contains(&found), "byte {at}: {found} is none of {wanted:?}"),
            }
        }
        let reached = case.reached.lock().unwrap().take();
        assert_eq!(
            reached,
            parts.iter().filter_map(|part| part.set.hull()).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        );

        // Other views, of which some begin or end behind the end of the file.
        let parts: Vec<Part> = (0..case.ranks).map(|_| Part::random(&mut case.random)).collect();
        let given = case.random.bool();
        let locals: Vec<_> = parts
            .iter()
            .map(|part| (part.clone(), given.then(|| part.local(vec![GUARD; part.bytes as usize]))))
            .collect();
        let memories: Vec<_> =
            locals.iter().map(|(_, local)| local.as_ref().map(|local| local.memory.clone())).collect();
        for ((result, part), memory) in case.run(Direction::Read, SHORT, locals).into_iter().zip(&parts).zip(memories) {
            let done = result.unwrap_or_else(|fault| panic!("{fault}"));
            let there = part.file.iter().filter(|&&at| (at as usize) < after.len()).count();
            assert_eq!(done.elements, [there as u64]);
            short += u32::from(there < part.file.len());
            let Some(memory) = memory else {
                let fresh = &done.arrays[0];
                assert_eq!(fresh.shape, [there as u64]);
                let expected: Vec<u8> = part.file[..there].iter().map(|&at| after[at as usize]).collect();
                assert_eq!(fresh.memory.to_vec(0, there as u64), expected);
                continue;
            };
            let mut expected = vec![GUARD; part.bytes as usize];
            for (&at, &to) in part.file[..there].iter().zip(&part.memory) {
                expected[to as usize] = after[at as usize];
            }
            assert_eq!(memory.to_vec(0, part.bytes), expected);
        }
    }
    let tried = [grown, short, nested, shared];
    assert!(tried.iter().all(|&count| count > 300) || std::env::var("HYPERSLAB_SEED").is_ok(), "{tried:?}");
}

/// Where a read behind the end is a fault, all ranks get it and nothing moves; where pieces may not overlap, a write does.
#[test]
fn what_the_policies_refuse_fails_on_all_ranks() {
    let (mut beyond, mut met) = (0, 0);
    for seed in seeds(400) {
        let _told = Told(seed);
        let mut case = Case::new(seed);
        let before = case.file();
        let parts: Vec<Part> = (0..case.ranks).map(|_| Part::random(&mut case.random)).collect();
        let end = parts.iter().filter_map(|part| part.file.last()).max();
        let locals =
            parts.iter().map(|part| (part.clone(), Some(part.local(vec![GUARD; part.bytes as usize])))).collect();
        let results = case.run(Direction::Read, Policies::default(), locals);
        let refused = end.is_some_and(|&last| last as usize >= before.len());
        beyond += u32::from(refused);
        for result in results {
            match (result, refused) {
                (Ok(_), false) => {}
                (Err(fault), true) => {
                    let length = before.len();
                    let text = format!("a view: element {} of 'bytes' is wanted, but it has {length}", end.unwrap());
                    assert_eq!((fault.kind, fault.text()), (FaultKind::Invalid, text));
                }
                (result, _) => panic!("{:?}", result.err()),
            }
        }
        let locals = parts.iter().map(|part| (part.clone(), Some(part.local(vec![1; part.bytes as usize])))).collect();
        let results = case.run(Direction::Write, Policies::default(), locals);
        let mut all: Vec<u64> = parts.iter().flat_map(|part| part.file.iter().copied()).collect();
        all.sort_unstable();
        let overlap = all.windows(2).any(|pair| pair[0] == pair[1]);
        met += u32::from(overlap);
        for result in results {
            assert_eq!(result.is_err(), overlap, "{:?}", result.err());
        }
        if overlap {
            assert_eq!(case.file(), before, "nothing is written");
        }
    }
    assert!(beyond > 50 && met > 50 || std::env::var("HYPERSLAB_SEED").is_ok(), "{beyond} {met}");
}
