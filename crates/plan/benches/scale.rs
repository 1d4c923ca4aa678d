//! What it costs one rank to generate its program when there are many ranks, much data or many arrays.
//!
//! ```text
//! cargo bench -p hyperslab-plan --bench scale              all rows, two minutes
//! cargo bench -p hyperslab-plan --bench scale -- cyclic    rows with this in their names
//! ```
//!
//! A row is one rank's program, iterated to its last step. Printed are the time of all of it and of one step, and the
//! most memory that it had at once above what there was before, with the targets beside them. Run by `cargo test` the
//! cases are small, and each row is checked: the rank must move exactly the elements that it holds or serves.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock and its arguments")]

use hyperslab_layout::{Dim, Distribution, ElementType, Kind, Policies, Section, View, dense_strides, mesh};
use hyperslab_plan::{
    Action, Direction, Facts, Parameters, Program, Spread, Stored, Strategy, Transfer, TransferArray,
};
use peak_alloc::PeakAlloc;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const KIB: usize = 1 << 10;
const MICROSECOND: f64 = 1e3;
const MILLISECOND: f64 = 1e6;

/// Steps that are timed together.
const BATCH: u64 = 4096;

/// What a row should need at most.
#[derive(Clone, Copy, Default)]
struct Target {
    /// All steps \[ns\].
    total: Option<f64>,
    /// One step \[ns\].
    step: Option<f64>,
    /// Memory \[B\].
    bytes: Option<usize>,
}

const CLIENT: Target = Target { total: Some(500.0 * MICROSECOND), step: None, bytes: Some(16 * KIB) };
const SERVER: Target = Target { total: Some(10.0 * MILLISECOND), step: None, bytes: Some(256 * KIB) };
const CYCLIC_CLIENT: Target = Target { total: None, step: Some(100.0), bytes: Some(16 * KIB) };
const CYCLIC_SERVER: Target = Target { total: None, step: Some(100.0), bytes: Some(256 * KIB) };
const NONE: Target = Target { total: None, step: None, bytes: None };

/// What a program did.
#[derive(Default)]
struct Cost {
    time: Duration,
    steps: u64,
    elements: u64,
    bytes: usize,
}

struct Bench {
    /// Only rows with this in their names.
    only: Option<String>,
    /// Whether cases are small and checked.
    short: bool,
}

impl Bench {
    fn row(&self, name: &str, target: Target, expected: u64, program: impl Fn() -> Program) {
        if self.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            return;
        }
        let cost = if self.short {
            let cost = run(program, elements);
            assert_eq!(cost.elements, expected, "{name}: elements moved");
            cost
        } else {
            // The first time is also the warming up.
            let again = |best: Cost, cost: Cost| if cost.time < best.time { cost } else { best };
            let first = run(&program, |_| 0);
            let repeats = (Duration::from_millis(200).as_nanos() / first.time.as_nanos().max(1)).min(100);
            (0..repeats).map(|_| run(&program, |_| 0)).fold(first, again)
        };
        print(name, &cost, if self.short { NONE } else { target });
    }
}

/// Elements that a step moves between this rank's user memory or slots and another rank or this one.
fn elements(action: &Action) -> u64 {
    match action {
        Action::Send { parts, .. } | Action::Recv { parts, .. } => {
            parts.iter().map(|(_, region, _)| region.elements()).sum()
        }
        Action::Copy { region, .. } => region.elements(),
        _ => 0,
    }
}

/// Iterates a program to its end. Long ones are timed in batches, and a batch counts as the median of all does: what
/// else runs on the machine then does not count.
fn run(program: impl Fn() -> Program, elements: impl Fn(&Action) -> u64) -> Cost {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let mut batches = Vec::with_capacity(1 << 16);
    let own = batches.capacity() * size_of::<Duration>();
    let mut cost = Cost::default();
    let mut start = Instant::now();
    for lane in program().lanes {
        for step in lane {
            cost.steps += 1;
            cost.elements += elements(&step.action);
            black_box(&step);
            if cost.steps.is_multiple_of(BATCH) && batches.len() < batches.capacity() {
                batches.push(start.elapsed());
                start = Instant::now();
            }
        }
    }
    let rest = start.elapsed();
    cost.bytes = MEMORY.peak_usage().saturating_sub(before + own);
    batches.sort_unstable();
    let median = batches.get(batches.len() / 2).copied().unwrap_or_default();
    Cost { time: median * batches.len() as u32 + rest, ..cost }
}

fn print(name: &str, cost: &Cost, target: Target) {
    let ns = cost.time.as_nanos() as f64;
    let each = ns / cost.steps.max(1) as f64;
    let missed = [
        target.total.is_some_and(|most| ns > most).then_some("time"),
        target.step.is_some_and(|most| each > most).then_some("step"),
        target.bytes.is_some_and(|most| cost.bytes > most).then_some("memory"),
    ];
    let missed: Vec<&str> = missed.into_iter().flatten().collect();
    let aim = |target: Option<f64>, unit: f64| target.map_or(String::new(), |most| format!("<= {}", most / unit));
    println!(
        "{name:<44} {:>12.3} {:>8} {:>10} {each:>8.1} {:>8} {:>9.1} {:>7}  {}",
        ns / MILLISECOND,
        aim(target.total, MILLISECOND),
        cost.steps,
        aim(target.step, 1.0),
        cost.bytes as f64 / KIB as f64,
        aim(target.bytes.map(|most| most as f64), KIB as f64),
        if missed.is_empty() { String::new() } else { format!("MISSED: {}", missed.join(", ")) }
    );
}

/// Float64 arrays that are spread alike, each in a row-major file.
fn transfer(arrays: u32, shape: &[u64], mesh: &[u64], dims: &[Dim], direction: Direction) -> Arc<Transfer> {
    let distribution = Distribution::new(shape, mesh, dims).expect("the distribution fits");
    let element = ElementType::native(Kind::Float64);
    let ask = |number: u32| TransferArray {
        name: format!("a{number}"),
        section: Section::whole(shape),
        spread: Spread::Regular(distribution.clone()),
        memory: element,
        stored: Stored::in_file(shape, element, format!("a{number}"), 0),
    };
    let ranks = distribution.ranks() as u32;
    Arc::new(Transfer { direction, asks: (0..arrays).map(ask).collect(), ranks, policies: Policies::default() })
}

/// As many servers at equal distances, and what else is the default. Small cases are cut finely instead.
fn parameters(bench: &Bench, transfer: &Transfer, servers: u32) -> Parameters {
    let rank = |i: u32| (u64::from(i) * u64::from(transfer.ranks) / u64::from(servers)) as u32;
    let given = Parameters { servers: (0..servers).map(rank).collect(), ..Parameters::default() };
    let finely = bench.short && transfer.asks.len() == 1;
    Parameters { subchunk_bytes: if finely { 4096 } else { given.subchunk_bytes }, ..given }
}

fn program(transfer: &Arc<Transfer>, parameters: &Parameters, facts: &Arc<Facts>, rank: u32) -> Program {
    parameters.strategy.program(transfer, parameters, facts, rank, &[] as &[Arc<View>])
}

/// Elements that a rank holds of all arrays.
fn held(transfer: &Transfer, rank: u32) -> u64 {
    let of = |ask: &TransferArray| ask.spread.regular().map_or(0, |d| d.owned(rank).elements());
    transfer.asks.iter().map(of).sum()
}

/// Elements that a server moves which takes every so-manieth group of a single array.
fn served(transfer: &Arc<Transfer>, parameters: &Parameters, server: u32) -> u64 {
    let units = hyperslab_plan::Units::new(transfer, parameters.subchunk_bytes);
    let group = (parameters.subchunk_bytes / units.bytes_max().max(1)).max(1);
    let servers = parameters.servers.len() as u64;
    let mine = |unit: &u64| parameters.servers[(unit / group % servers) as usize] == server;
    (0..units.count()).filter(mine).map(|unit| units.unit(unit).region().elements()).sum()
}

/// A client's row and a server's, of a transfer with this many servers. Rank 0 is a server.
fn rows(bench: &Bench, name: &str, transfer: &Arc<Transfer>, servers: u32, targets: (Target, Target)) {
    let parameters = parameters(bench, transfer, servers);
    let facts = Arc::new(Facts::default());
    let other = transfer.ranks / 2 + 1;
    assert!(!parameters.servers.contains(&other), "{name}: rank {other} is only a client");
    let checked = |value: &dyn Fn() -> u64| if bench.short { value() } else { 0 };
    let client = checked(&|| held(transfer, other));
    bench.row(&format!("{name}, {servers} servers, client"), targets.0, client, || {
        program(transfer, &parameters, &facts, other)
    });
    // A server is a client too, and copies what it serves itself.
    let own = |rank: u32| program(transfer, &parameters, &facts, rank).lanes.remove(0);
    let to_others = checked(&|| own(0).map(|step| elements(&step.action)).sum());
    let server = checked(&|| served(transfer, &parameters, 0)) + to_others;
    bench.row(&format!("{name}, {servers} servers, server"), targets.1, server, || {
        program(transfer, &parameters, &facts, 0)
    });
}

/// A client's row of each strategy that is not server-directed.
fn other_strategies(bench: &Bench, transfer: &Arc<Transfer>, servers: u32) {
    let facts = Arc::new(Facts::default());
    let rank = transfer.ranks / 2 + 1;
    let Spread::Regular(distribution) = &transfer.asks[0].spread else { return };
    let owned = distribution.owned(rank);
    let strides = dense_strides(&owned.shape(), &[0, 1, 2], 8);
    let views = [Arc::new(View::held(&owned, 0, &strides, transfer.asks[0].memory))];
    for strategy in [Strategy::TWO_PHASE, Strategy::DISK_DIRECTED, Strategy::INDEPENDENT, Strategy::DATA_SIEVING] {
        let parameters = Parameters { strategy, ..parameters(bench, transfer, servers) };
        let expected = if bench.short { owned.elements() } else { 0 };
        bench.row(&format!("{strategy}, {servers} servers, client"), NONE, expected, || {
            strategy.program(transfer, &parameters, &facts, rank, &views)
        });
    }
}

/// 1 TiB on 100,000 ranks, or a small array on a few.
fn tebibyte(bench: &Bench) {
    let (cube, mesh, line, ranks, servers): ([u64; 3], [u64; 3], u64, u64, &[u32]) = if bench.short {
        ([64, 60, 96], [4, 5, 5], 1 << 19, 100, &[10])
    } else {
        ([5120, 5120, 5243], [40, 50, 50], 1 << 37, 100_000, &[1000, 5000])
    };
    let block = (CLIENT, SERVER);
    let cyclic = (CYCLIC_CLIENT, CYCLIC_SERVER);
    let all = |dim: Dim| [dim.clone(), dim.clone(), dim];
    for &n in servers {
        for direction in [Direction::Write, Direction::Read] {
            let name = format!("3-D BLOCK {direction:?}").to_lowercase();
            rows(bench, &name, &transfer(1, &cube, &mesh, &all(Dim::Block), direction), n, block);
        }
        other_strategies(bench, &transfer(1, &cube, &mesh, &all(Dim::Block), Direction::Write), n);
        let row = |name: &str, shape: &[u64], mesh: &[u64], dims: &[Dim]| {
            rows(bench, name, &transfer(1, shape, mesh, dims, Direction::Write), n, cyclic);
        };
        row("3-d cyclic", &cube, &mesh, &all(Dim::Cyclic(1)));
        row("3-d cyclic(8)", &cube, &mesh, &all(Dim::Cyclic(8)));
        row("1-d cyclic", &[line], &[ranks], &[Dim::Cyclic(1)]);
        row("1-d cyclic(7)", &[line], &[ranks], &[Dim::Cyclic(7)]);
        let (hyper, meshed) = ([16, cube[0] / 16, cube[1], cube[2]], [4, mesh[0] / 4, mesh[1], mesh[2]]);
        let dims = [const { Dim::Cyclic(1) }; 4];
        rows(bench, "4-d cyclic", &transfer(1, &hyper, &meshed, &dims, Direction::Write), n, (NONE, NONE));
        rows(bench, "1-d block", &transfer(1, &[line], &[ranks], &[Dim::Block], Direction::Write), n, block);
    }
}

/// The same array on more and more ranks, with as many servers.
fn growth(bench: &Bench) {
    let (shape, most): (&[u64], u64) = if bench.short { (&[32, 48, 64], 80) } else { (&[1024, 1024, 1024], 100_000) };
    for dim in [Dim::Block, Dim::Cyclic(1), Dim::Cyclic(3)] {
        for ranks in [8, 80, 1000, 10_000, 100_000].into_iter().filter(|&ranks| ranks <= most) {
            let mesh = mesh::balanced(ranks, 3);
            let asked = transfer(1, shape, &mesh, &[const { Dim::Whole }; 3].map(|_| dim.clone()), Direction::Write);
            rows(bench, &format!("{dim}, {ranks} ranks").to_lowercase(), &asked, 4, (NONE, NONE));
        }
    }
}

/// Many small arrays: time must grow with their number, not with its square.
fn small_arrays(bench: &Bench) {
    let (most, ranks, servers) = if bench.short { (64, 100, 4) } else { (2048, 10_000, 100) };
    for arrays in [most / 4, most / 2, most] {
        for (name, dim) in [("block", Dim::Block), ("cyclic", Dim::Cyclic(1))] {
            let asked = transfer(arrays, &[8192], &[ranks], &[dim], Direction::Write);
            rows(bench, &format!("{arrays} arrays {name}"), &asked, servers, (NONE, NONE));
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Cargo says `--bench` to benchmarks, and nothing to tests; a test runner may say more to them.
    let short = !arguments.iter().any(|argument| argument == "--bench");
    let only = arguments.into_iter().find(|argument| !argument.starts_with('-')).map(|name| name.to_lowercase());
    let bench = Bench { only, short };
    println!(
        "{:<44} {:>12} {:>8} {:>10} {:>8} {:>8} {:>9} {:>7}",
        "program", "time [ms]", "target", "steps", "ns/step", "target", "mem[KiB]", "target"
    );
    tebibyte(&bench);
    growth(&bench);
    small_arrays(&bench);
}
