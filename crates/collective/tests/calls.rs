//! Whole calls, from opening to publishing, by ranks in one thread over the worst legal transport: what they store and read is
//! what an oracle says, and whatever fails, all ranks get one error and the target is taken back once.
#![allow(clippy::disallowed_methods, reason = "tests may read the environment")]

mod common;

use common::{Told, decode, finish, seeds};
use hyperslab_collective::{
    Arguments, ArrayRequest, Call, Decision, Done, Each, LocalArray, Ownership, Selected, Target,
};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{Casting, Dim, Distribution, ElementType, IndexSet, Kind, Policies, Stored, product};
use hyperslab_pack::Memory;
use hyperslab_plan::{Direction, MemoryLayout, Parameters, Strategy, Transfer};
use hyperslab_walk::{Compared, Limits, Party};
use hyperslab_world::lockstep::{Hub, HubWorld};
use hyperslab_world::wrappers::Failing;
use hyperslab_world::{Fault, FaultKind, MemoryStore, Objects, Root};
use std::sync::{Arc, Mutex};

const ELEMENT: ElementType = ElementType::native(Kind::Float64);
const OBJECT: &str = "file";

type Log = Arc<Mutex<Vec<&'static str>>>;

/// Arrays one after another in one object.
struct File {
    stored: Vec<Stored>,
    parameters: Parameters,
    objects: Objects,
    makes: bool,
    log: Log,
    /// Which question it answers with a failure.
    fails: Option<(&'static str, FaultKind)>,
}

impl File {
    fn note(&self, what: &'static str) -> Result<(), Fault> {
        self.log.lock().unwrap().push(what);
        match self.fails {
            Some((fails, kind)) if fails == what => Err(Fault::new(kind, format!("the file cannot {what}"))),
            _ => Ok(()),
        }
    }
}

impl Target for File {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        self.note("look").map(|()| self.stored.clone())
    }

    fn choose(&mut self, transfer: &Arc<Transfer>, laid: &[Option<MemoryLayout>]) -> Result<Decision, Fault> {
        assert_eq!(transfer.asks.len(), laid.len());
        let parameters = self.parameters.clone();
        self.note("choose").map(|()| Decision { parameters, predicted: [0.0; 5], later: 0.0, plan: 0 })
    }

    fn begin(
        &mut self,
        _stored: &mut [Stored],
        _transfer: &Arc<Transfer>,
        _parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        self.note("begin")?;
        if self.makes {
            self.objects.lock().unwrap().insert(OBJECT.into(), Vec::new());
        }
        Ok(vec![Root::new("")])
    }

    fn publish(&mut self) -> Result<(), Fault> {
        self.note("publish")
    }

    fn torn(&self) -> Vec<String> {
        vec![OBJECT.into()]
    }

    fn undo(&mut self, moved: bool) {
        self.note(if moved { "undo what moved" } else { "undo" }).unwrap();
    }

    fn abandon(&mut self) {
        self.note("abandon").unwrap();
    }

    fn keep(&mut self) {
        self.note("keep").unwrap();
    }

    fn tidy(&mut self) {
        self.note("tidy").unwrap();
    }
}

/// Ranks, and the arrays that they write and read.
struct Case {
    ranks: u32,
    seed: u64,
    random: fastrand::Rng,
    shapes: Vec<Vec<u64>>,
    stored: Vec<Stored>,
    objects: Objects,
    log: Log,
}

/// The value of an element: of which array, and its number in it.
fn value(array: usize, number: u64) -> f64 {
    (array as u64 * 1_000_000 + number) as f64
}

fn number(index: &[u64], shape: &[u64]) -> u64 {
    index.iter().zip(shape).fold(0, |number, (i, n)| number * n + i)
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut random = fastrand::Rng::with_seed(seed);
        let ndim = random.usize(1..4);
        let mut shape = || (0..ndim).map(|_| random.u64(1..7)).collect::<Vec<u64>>();
        // Of some, several are alike.
        let (one, other) = (shape(), shape());
        let shapes: Vec<Vec<u64>> =
            (0..random.usize(1..6)).map(|_| if random.u8(0..4) > 0 { one.clone() } else { other.clone() }).collect();
        let (mut offset, mut stored) = (random.u64(0..3) * 8, Vec::new());
        for shape in &shapes {
            stored.push(Stored::in_file(shape, ELEMENT, OBJECT, offset));
            // Sometimes something else lies between.
            offset += volume(shape).unwrap() * 8 + if random.u8(0..5) == 0 { 16 } else { 0 };
        }
        let ranks = random.u32(1..6);
        Case { ranks, seed, random, shapes, stored, objects: Objects::default(), log: Log::default() }
    }

    fn distribution(&mut self, shape: &[u64]) -> Arc<Ownership> {
        let dims: Vec<Dim> = shape
            .iter()
            .map(|_| match self.random.u8(0..3) {
                0 => Dim::Block,
                1 => Dim::Cyclic(self.random.u64(1..3)),
                _ => Dim::Whole,
            })
            .collect();
        let distributed = dims.iter().filter(|dim| **dim != Dim::Whole).count();
        let mut mesh = vec![1; distributed];
        if let Some(first) = mesh.first_mut() {
            *first = u64::from(self.ranks);
        }
        Arc::new(Distribution::new(shape, &mesh, &dims).unwrap().into())
    }

    /// A distribution for each array; those of one shape have the same.
    fn held(&mut self) -> Vec<Arc<Ownership>> {
        let mut known: Vec<(Vec<u64>, Arc<Ownership>)> = Vec::new();
        let mut held = Vec::new();
        for shape in self.shapes.clone() {
            if !known.iter().any(|(one, _)| *one == shape) {
                let distribution = self.distribution(&shape);
                known.push((shape.clone(), distribution));
            }
            held.push(known.iter().find(|(one, _)| *one == shape).unwrap().1.clone());
        }
        held
    }

    /// What a rank holds of an array; perhaps not as densely as others.
    fn local(&mut self, rank: u32, array: usize, holding: &Ownership) -> LocalArray {
        let mut shape = vec![0; self.shapes[array].len()];
        let mut values = Vec::new();
        if u64::from(rank) < holding.regular().unwrap().ranks() {
            let owned = holding.regular().unwrap().owned(rank);
            shape = owned.shape();
            let indices: Vec<Vec<u64>> = owned.dims.iter().map(|set: &IndexSet| set.iter().collect()).collect();
            values.extend(product(&indices).map(|index| value(array, number(&index, &self.shapes[array]))));
        }
        let dense = LocalArray::from_f64(&shape, &values);
        if values.is_empty() || self.random.u8(0..4) > 0 {
            return dense;
        }
        // With a gap behind each element.
        let bytes: Vec<u8> = values.iter().flat_map(|value| [value.to_ne_bytes(), [0xff; 8]].concat()).collect();
        let strides = dense.strides.iter().map(|stride| 2 * stride).collect();
        LocalArray { memory: Memory::from_vec(bytes), strides, ..dense }
    }

    fn parameters(&mut self) -> Parameters {
        let mut servers: Vec<u32> = (0..self.ranks).collect();
        self.random.shuffle(&mut servers);
        servers.truncate(self.random.usize(1..=self.ranks as usize));
        let strategy = Strategy::ALL[self.random.usize(0..Strategy::ALL.len())];
        if strategy == Strategy::ROOT_GATHER {
            servers = vec![0];
        }
        Parameters {
            strategy,
            servers: servers.into(),
            slots: self.random.u32(1..4),
            subchunk_bytes: self.random.u64(16..200),
            ..Parameters::default()
        }
    }

    fn file(&mut self, makes: bool) -> File {
        let (stored, parameters) = (self.stored.clone(), self.parameters());
        let (objects, log) = (self.objects.clone(), self.log.clone());
        File { stored, parameters, objects, makes, log, fails: None }
    }

    fn arguments(&self, direction: Direction, held: &[Option<Arc<Ownership>>], target: Option<File>) -> Arguments {
        let request = |(number, holding): (usize, &Option<Arc<Ownership>>)| ArrayRequest {
            name: format!("array{number}"),
            selected: Selected::Whole,
            holding: holding.clone(),
            memory: Vec::new(),
        };
        Arguments {
            what: "a call".into(),
            compared: Compared::default(),
            fault: None,
            direction,
            arrays: held.iter().enumerate().map(request).collect(),
            locals: None,
            casting: Casting::SameKind,
            policies: Policies::default(),
            together: true,
            target: target.map(|file| -> Box<dyn Target> { Box::new(file) }),
            publishes: true,
            at_once: true,
        }
    }

    /// A write of all arrays, as each rank asks for it.
    fn write(&mut self, file: File) -> Vec<Arguments> {
        let (held, mut file) = (self.held(), Some(file));
        let some: Vec<_> = held.iter().cloned().map(Some).collect();
        (0..self.ranks)
            .map(|rank| {
                let locals: Vec<Vec<LocalArray>> =
                    held.iter().enumerate().map(|(array, holding)| vec![self.local(rank, array, holding)]).collect();
                let mut arguments = self.arguments(Direction::Write, &some, file.take());
                arguments.arrays.iter_mut().for_each(|request| request.memory = vec![ELEMENT]);
                arguments.locals = Some(locals);
                arguments
            })
            .collect()
    }

    /// A read of all arrays, in another distribution or all of them on each rank.
    fn read(&mut self, file: File) -> (Vec<Option<Arc<Ownership>>>, Vec<Arguments>) {
        let held: Vec<_> = match self.random.bool() {
            true => self.held().into_iter().map(Some).collect(),
            false => vec![None; self.shapes.len()],
        };
        let mut file = Some(file);
        let each = (0..self.ranks).map(|_| self.arguments(Direction::Read, &held, file.take())).collect();
        (held, each)
    }

    /// Carries out a call on all ranks; the n-th request to storage of this rank fails.
    fn run(&mut self, arguments: Vec<Arguments>, failing: (u32, u64)) -> Vec<Result<Done, Fault>> {
        let hub = Hub::new(self.ranks, self.seed, 0);
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
        finish(&hub, &mut self.random, &mut worlds, &mut parties, &mut calls)
    }

    /// What the log says since it was last asked.
    fn logged(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    fn check_stored(&self) {
        let objects = self.objects.lock().unwrap();
        for (array, stored) in self.stored.iter().enumerate() {
            let begin = stored.object().unwrap().1 as usize;
            for at in 0..volume(&self.shapes[array]).unwrap() {
                let from = begin + 8 * at as usize;
                let found = f64::from_ne_bytes(objects[OBJECT][from..from + 8].try_into().unwrap());
                assert_eq!(found, value(array, at), "element {at} of array {array}");
            }
        }
    }

    fn check_read(&self, rank: u32, held: &[Option<Arc<Ownership>>], arrays: &[LocalArray]) {
        assert_eq!(arrays.len(), held.len());
        for (array, (local, holding)) in arrays.iter().zip(held).enumerate() {
            let shape = &self.shapes[array];
            let all = || Ownership::replicated(shape, self.ranks).map(Arc::new).unwrap();
            let holding = holding.clone().unwrap_or_else(all);
            let distribution = holding.regular().unwrap();
            if u64::from(rank) >= distribution.ranks() {
                continue;
            }
            let indices: Vec<Vec<u64>> = distribution.owned(rank).dims.iter().map(|set| set.iter().collect()).collect();
            let expected: Vec<f64> = product(&indices).map(|index| value(array, number(&index, shape))).collect();
            assert_eq!(local.to_f64(), expected, "array {array} on rank {rank}");
        }
    }
}

const NEVER: (u32, u64) = (u32::MAX, 0);

#[test]
fn what_is_written_is_what_is_read() {
    let mut joined = 0;
    for seed in seeds(600) {
        let _told = Told(seed);
        let mut case = Case::new(seed);
        let file = case.file(true);
        let arguments = case.write(file);
        for result in case.run(arguments, NEVER) {
            let report = result.unwrap_or_else(|fault| panic!("{fault}")).report;
            assert_eq!(report.bytes(), 8 * case.shapes.iter().map(|shape| volume(shape).unwrap()).sum::<u64>());
        }
        assert_eq!(case.logged(), ["look", "choose", "begin", "publish", "tidy"]);
        case.check_stored();
        let file = case.file(false);
        let (held, arguments) = case.read(file);
        joined += u32::from(case.shapes.windows(2).any(|pair| pair[0] == pair[1]));
        for (rank, result) in case.run(arguments, NEVER).into_iter().enumerate() {
            case.check_read(rank as u32, &held, &result.unwrap().arrays);
        }
        assert_eq!(case.logged(), ["look", "choose", "begin", "publish", "tidy"]);
    }
    assert!(joined > 0 || std::env::var("HYPERSLAB_SEED").is_ok(), "some arrays were alike");
}

/// The message of a failure after something was changed in place.
fn said_to_be_torn(what: &str) -> String {
    format!("{what}\n  '{OBJECT}' may now hold a mix of old and new elements, until they are written again")
}

#[test]
fn whatever_the_target_cannot_do_is_one_error_and_is_taken_back() {
    let kinds = [
        ("look", FaultKind::NotFound, &["look", "undo"][..]),
        ("choose", FaultKind::Invalid, &["look", "choose", "undo"]),
        ("begin", FaultKind::Storage, &["look", "choose", "begin", "undo"]),
        ("publish", FaultKind::Storage, &["look", "choose", "begin", "publish", "undo what moved"]),
        ("publish", FaultKind::Unsynced, &["look", "choose", "begin", "publish", "keep"]),
    ];
    for seed in seeds(100) {
        let _told = Told(seed);
        for (fails, kind, expected) in kinds {
            let mut case = Case::new(seed);
            let file = File { fails: Some((fails, kind)), ..case.file(true) };
            let arguments = case.write(file);
            let (mut torn, what) = (false, format!("a call: the file cannot {fails}"));
            for result in case.run(arguments, NEVER) {
                let fault = result.err().expect("it cannot");
                torn = !fault.torn.is_empty();
                let may_be = torn && expected.contains(&"undo what moved");
                assert_eq!(fault.text(), if may_be { said_to_be_torn(&what) } else { what.clone() });
                assert_eq!(fault.kind, kind);
            }
            // Of arrays without elements nothing has changed.
            let changed = case.stored.iter().any(|stored| stored.shape.iter().all(|extent| *extent > 0));
            assert_eq!(torn, changed && expected.contains(&"undo what moved"));
            let last = if torn || !expected.contains(&"undo what moved") { *expected.last().unwrap() } else { "undo" };
            assert_eq!(case.logged(), [&expected[..expected.len() - 1], &[last]].concat());
        }
    }
}

#[test]
fn a_rank_that_cannot_take_part_or_write_fails_all() {
    for seed in seeds(150) {
        let _told = Told(seed);
        let mut case = Case::new(seed);
        let failing = case.random.u32(0..case.ranks);
        let where_ = if case.ranks > 1 { format!("on rank {failing}: ") } else { String::new() };
        let file = case.file(true);
        let mut arguments = case.write(file);
        arguments[failing as usize].fault = Some(Fault::new(FaultKind::Invalid, "no such thing"));
        for result in case.run(arguments, NEVER) {
            let fault = result.err().expect("one rank cannot");
            assert_eq!(fault.text(), format!("{where_}a call: no such thing"));
        }
        assert_eq!(case.logged(), ["undo"]);
        // The first request of a rank to its storage fails, if it has one.
        let file = case.file(true);
        let arguments = case.write(file);
        let results = case.run(arguments, (failing, 0));
        let failed = results.iter().filter(|result| result.is_err()).count();
        assert!(failed == 0 || failed == results.len(), "all ranks or none");
        let (mut torn, what) = (false, format!("{where_}a call: no space left"));
        for fault in results.iter().filter_map(|result| result.as_ref().err()) {
            torn = !fault.torn.is_empty();
            assert_eq!(fault.text(), if torn { said_to_be_torn(&what) } else { what.clone() });
        }
        let expected: &[_] = match (failed, torn) {
            (0, _) => &["look", "choose", "begin", "publish", "tidy"],
            (_, true) => &["look", "choose", "begin", "undo what moved"],
            (_, false) => &["look", "choose", "begin", "undo"],
        };
        assert_eq!(case.logged(), expected);
    }
}

/// Memory that nobody here can touch is refused on all ranks, before anything begins.
#[test]
fn memory_of_a_device_is_refused_on_all_ranks() {
    for seed in seeds(20) {
        let _told = Told(seed);
        let mut case = Case::new(seed);
        let rank = case.random.u32(0..case.ranks);
        let file = case.file(true);
        let mut arguments = case.write(file);
        let local = &mut arguments[rank as usize].locals.as_mut().unwrap()[0][0];
        local.memory = Memory::on_device(4096, local.memory.bytes(), Box::new(()));
        let where_ = if case.ranks > 1 { format!("on rank {rank}: ") } else { String::new() };
        for result in case.run(arguments, NEVER) {
            let fault = result.err().expect("it cannot be moved");
            let text = format!("{where_}a call: 'array0' is in device memory, and only host memory can be moved");
            assert_eq!((fault.kind, fault.text()), (FaultKind::Unsupported, text));
        }
        assert_eq!(case.logged(), ["undo"]);
    }
}

/// Something ends the use of the communicator in the middle of a call, which is told so from outside.
#[test]
fn what_breaks_off_is_given_up() {
    for seed in seeds(150) {
        let _told = Told(seed);
        let mut case = Case::new(seed);
        let file = case.file(true);
        let mut arguments = case.write(file).into_iter();
        let hub = Hub::new(case.ranks, seed, 0);
        let store =
            || Failing::new(MemoryStore::new(case.objects.clone()), u64::MAX, Fault::new(FaultKind::Storage, ""));
        let mut world = HubWorld::new(&hub, 0, store());
        let mut party = Party::new(0, case.ranks, Limits::default());
        let mut call = Call::new(&mut world, (0, case.ranks), arguments.next().unwrap(), decode);
        // Alone, rank 0 gets as far as the others let it: nowhere, unless there are none.
        let result = call.poll(&mut world, &mut party);
        let fault = Fault::new(FaultKind::Timeout, "nobody came");
        party.end(fault.clone());
        assert!(result.is_none() || case.ranks == 1, "the others have not come");
        if result.is_none() {
            let broken = call.broken(&mut world, &party, fault.clone());
            assert_eq!((broken.kind, &broken.what), (fault.kind, &fault.what));
            let opened = case.log.lock().unwrap().contains(&"begin");
            assert_eq!(case.logged().pop(), Some(if opened { "abandon" } else { "undo" }));
            assert_eq!(call.broken(&mut world, &party, fault.clone()), fault, "it is taken back once");
            assert!(case.logged().is_empty());
        }
    }
}
