//! How long rank 0 plans, from 8 to 100,000 ranks, beside what the transfers are expected to take. It may be 2 % of that,
//! or 1 ms.
//!
//! `cargo bench -p hyperslab-plan --bench planning`
#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

use hyperslab_layout::stored::{Coding, Keys, Unit};
use hyperslab_layout::{
    Dim, Distribution, Durability, ElementType, Kind, Policies, Section, mesh, natural_chunks, near_shapes,
};
use hyperslab_plan::{
    Direction, Machine, Planner, Preference, Spread, Stored, Strategy, Transfer, TransferArray, Use, profile,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name, number of arrays, their shape, how they are spread, where they lie, and which way they go.
type Case<'a> = (&'a str, usize, &'a [u64], Dim, Place, Direction);

/// Where arrays are stored.
#[derive(Clone, Copy)]
enum Place {
    File,
    /// In chunks of a rank's part, or of other edges.
    Chunks(bool),
}

fn transfer(arrays: usize, shape: &[u64], ranks: u64, dim: &Dim, place: Place, direction: Direction) -> Arc<Transfer> {
    let mesh = mesh::balanced(ranks, shape.len());
    let dims = vec![dim.clone(); shape.len()];
    let distribution = Distribution::new(shape, &mesh, &dims).expect("shapes and meshes fit");
    let element = ElementType::native(Kind::Float64);
    let ask = |number: usize| {
        let name = format!("a{number}");
        let stored = match place {
            Place::File => Stored::in_file(shape, element, "f", number as u64 * shape.iter().product::<u64>() * 8),
            Place::Chunks(aligned) => {
                let edge = |(n, m): (&u64, &u64)| n.div_ceil(*m).min(96) + u64::from(!aligned);
                let chunk: Vec<u64> = shape.iter().zip(&mesh).map(edge).collect();
                Stored::in_chunks(shape, element, &chunk, Keys::nested(format!("{name}/")), Coding::Trailer)
            }
        };
        TransferArray {
            name,
            section: Section::whole(shape),
            spread: Spread::Regular(distribution.clone()),
            memory: element,
            stored,
        }
    };
    Arc::new(Transfer {
        direction,
        asks: (0..arrays).map(ask).collect(),
        ranks: ranks as u32,
        policies: Policies::of(Durability::Now),
    })
}

/// How long the shape of chunks takes to choose, and what writing the arrays is expected to.
fn shaped(planner: &Planner<'_>, (name, arrays, shape, dim): (&str, usize, &[u64], Dim), ranks: u64) {
    let mesh = mesh::balanced(ranks, shape.len());
    let dims = vec![dim; shape.len()];
    let held = Distribution::new(shape, &mesh, &dims).expect("shapes and meshes fit");
    let first = natural_chunks(&held, 8, 32 << 20);
    let ladders = near_shapes(shape, &first, 8, (1 << 20, 32 << 20));
    let natural = transfer(arrays, shape, ranks, &dims[0], Place::Chunks(true), Direction::Write);
    let uses = |chunk: &[u64]| {
        let mut one = Transfer::clone(&natural);
        for ask in &mut one.asks {
            ask.stored.unit = Unit::Chunk(chunk.to_vec());
        }
        vec![Use { transfer: Arc::new(one), times: 1.0, hints: Preference::default(), laid: Vec::new() }]
    };
    let mut times = Vec::new();
    let mut taken = None;
    for _ in 0..7 {
        let begun = Instant::now();
        taken = Some(planner.cheapest_layout(&first, &ladders, uses));
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let taken = taken.expect("chosen at least once");
    let predicted: f64 = uses(&taken.chunk)
        .iter()
        .map(|one| planner.choose(&one.transfer, &one.hints, &|_| None).map_or(0.0, |choice| choice.price.seconds()))
        .sum();
    let planned = times[times.len() / 2].as_secs_f64();
    println!(
        "{:<53} {:>9.3} ms {:>9.1} ms {:>6.2} %  {} {first:?} -> {:?}",
        format!("{name}, {ranks} ranks"),
        planned * 1e3,
        predicted * 1e3,
        100.0 * planned / predicted,
        if planned > 1e-3 && planned > 0.01 * predicted { "over" } else { "" },
        taken.chunk
    );
}

fn main() {
    // A test runs it small.
    let short = !std::env::args().any(|argument| argument == "--bench");
    let built_in = profile::built_in();
    println!("{:<44} {:>8} {:>12} {:>12} {:>8}", "transfer", "priced", "planned in", "predicted", "share");
    let cases: [Case<'_>; 8] = [
        ("3-d block, one file", 1, &[1024, 1024, 1024], Dim::Block, Place::File, Direction::Write),
        ("3-d block, one file, read", 1, &[1024, 1024, 1024], Dim::Block, Place::File, Direction::Read),
        ("3-d block, 1 MiB in one file", 1, &[64, 64, 32], Dim::Block, Place::File, Direction::Write),
        ("3-d block, own chunks", 1, &[1024, 1024, 1024], Dim::Block, Place::Chunks(true), Direction::Write),
        ("3-d block, shared chunks", 1, &[1024, 1024, 1024], Dim::Block, Place::Chunks(false), Direction::Write),
        ("3-d cyclic(3), one file", 1, &[1024, 1024, 1024], Dim::Cyclic(3), Place::File, Direction::Write),
        ("1-d cyclic, one file", 1, &[1 << 27], Dim::Cyclic(1), Place::File, Direction::Write),
        (
            "2048 arrays of 64 KiB, shared chunks",
            2048,
            &[32, 16, 16],
            Dim::Block,
            Place::Chunks(false),
            Direction::Write,
        ),
    ];
    for (name, arrays, shape, dim, place, direction) in cases {
        for ranks in [8, 80, 1000, 10_000, 100_000].into_iter().filter(|&ranks| !short || ranks <= 80) {
            let asked = transfer(if short { arrays.min(8) } else { arrays }, shape, ranks, &dim, place, direction);
            let machine = Machine { ranks_per_node: 50.min(ranks as u32), cores_per_node: 50, maps_files: false };
            let planner = Planner { profile: &built_in, machine, strategies: &Strategy::ALL };
            let mut times: Vec<Duration> = Vec::new();
            let mut chosen = None;
            for _ in 0..if short { 1 } else { 7 } {
                let begun = Instant::now();
                chosen = Some(planner.choose(&asked, &Preference::default(), &|_| None).expect("a strategy fits"));
                times.push(begun.elapsed());
            }
            times.sort_unstable();
            let (planned, chosen) = (times[times.len() / 2].as_secs_f64(), chosen.expect("planned at least once"));
            let predicted = chosen.price.seconds();
            println!(
                "{:<44} {:>8} {:>9.3} ms {:>9.1} ms {:>6.2} %  {}",
                format!("{name}, {ranks} ranks"),
                chosen.candidates.len(),
                planned * 1e3,
                predicted * 1e3,
                100.0 * planned / predicted,
                if planned > 1e-3 && planned > 0.01 * predicted { "over" } else { "" }
            );
        }
    }
    println!("\nshapes of chunks");
    let open: [(&str, usize, &[u64], Dim); 4] = [
        ("3-d block", 1, &[1024, 1024, 1024], Dim::Block),
        ("3-d block, 1 MiB", 1, &[64, 64, 32], Dim::Block),
        ("2-d cyclic(7)", 1, &[4096, 4096], Dim::Cyclic(7)),
        ("8 arrays of 64 KiB", 8, &[32, 16, 16], Dim::Block),
    ];
    for case in open {
        for ranks in [8, 80, 1000, 10_000, 100_000].into_iter().filter(|&ranks| !short || ranks <= 80) {
            let machine = Machine { ranks_per_node: 50.min(ranks as u32), cores_per_node: 50, maps_files: false };
            shaped(&Planner { profile: &built_in, machine, strategies: &Strategy::ALL }, case.clone(), ranks);
        }
    }
}
