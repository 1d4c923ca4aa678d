//! What ranks do together: agreements, messages, copies at the same time.

use super::exchange::{Apart, Exchange};
use super::part;
use hyperslab::Comm;
use hyperslab_pack::Memory;
use hyperslab_plan::Program;
use hyperslab_real::calibration::{Effort, Series, Turns};
use hyperslab_walk::Question;
use hyperslab_world::{Exposed, Fault, FaultKind};
use std::time::{Duration, Instant};

/// Agreements that are timed in a row.
const AGREEMENTS: u32 = 20;
/// By how much a rank comes late: others are asleep then.
const LATE: Duration = Duration::from_millis(1);
/// Lengths of messages that lie in one run \[B\].
const MESSAGES: [u64; 9] = [64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20];
/// Lengths of the runs of a message of [`RUNS_BYTES`] \[B\].
const RUNS: [u64; 5] = [64, 256, 1 << 10, 4 << 10, 16 << 10];
const RUNS_BYTES: u64 = 512 << 10;
/// Most messages of one measurement.
const COUNT_MAX: u64 = 256;
/// Messages to and fro.
const ECHOES: u64 = 100;

fn question(what: &str, fault: Option<Fault>) -> Question {
    Question::opening(what, Vec::new(), fault)
}

/// Lets all ranks begin at the same moment; `fault` is what one of them cannot do. Rank 0 says whether to go on.
pub(super) fn together(
    comm: &Comm,
    what: &str,
    fault: Option<Fault>,
    go_on: impl FnOnce() -> bool,
) -> Result<bool, Fault> {
    let mut go_on = Some(go_on);
    let told = comm
        .measuring()
        .agree(question(what, fault), || Ok(vec![u8::from(go_on.take().is_some_and(|go_on| go_on()))]))?;
    Ok(told.first() == Some(&1))
}

/// Runs rounds as long as rank 0 has time; `round` is told their numbers.
pub(super) fn rounds(
    comm: &Comm,
    what: &str,
    effort: Effort,
    mut round: impl FnMut(usize) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut turns = Turns::new(effort.time);
    let mut count = 0;
    while together(comm, what, None, || turns.another())? {
        round(count)?;
        count += 1;
    }
    Ok(())
}

/// Times of agreements: `agree`, when all come at once, and `late-agree`, as seen by the one rank, the last, for which
/// all others wait; both at `ranks`. Alone, a rank only has the first.
pub(super) fn agreements(comm: &Comm, effort: Effort) -> Result<Vec<Series>, Fault> {
    let at = [("ranks", f64::from(comm.size()))];
    let (mut all, mut late) = (Series::new("agree", &at), Series::new("late-agree", &at));
    let last = comm.size() > 1 && comm.rank() == comm.size() - 1;
    let agree = || comm.measuring().agree(question("measuring agreements", None), || Ok(Vec::new()));
    rounds(comm, "measuring agreements", effort, |_| {
        let begun = Instant::now();
        for _ in 0..AGREEMENTS {
            agree()?;
        }
        let mut seconds = [begun.elapsed().as_secs_f64() / f64::from(AGREEMENTS), 0.0];
        if last {
            let begun = Instant::now();
            while begun.elapsed() < LATE {
                std::hint::spin_loop();
            }
        }
        let begun = Instant::now();
        agree()?;
        seconds[1] = begun.elapsed().as_secs_f64();
        all.seconds.push(seconds[0]);
        late.seconds.push(seconds[1]);
        Ok(())
    })?;
    Ok(if last { vec![all.warm(), late.warm()] } else { vec![all.warm()] })
}

/// What is exchanged, and how.
fn cases(effort: Effort) -> Vec<(&'static str, Exchange)> {
    let mut cases = Vec::new();
    for bytes in MESSAGES.into_iter().filter(|&bytes| 4 * bytes <= effort.bytes) {
        let count = (effort.bytes / 4 / bytes).clamp(4, COUNT_MAX);
        cases.push(("message", Exchange { count, runs: 1, run_bytes: bytes, apart: Apart::Nowhere }));
    }
    for apart in [Apart::Slot, Apart::Array] {
        for run_bytes in RUNS.into_iter() {
            let count = (effort.bytes / 8 / RUNS_BYTES).clamp(2, COUNT_MAX);
            cases.push(("message", Exchange { count, runs: RUNS_BYTES / run_bytes, run_bytes, apart }));
        }
    }
    cases.push(("echo", Exchange { count: ECHOES, runs: 1, run_bytes: 64, apart: Apart::Nowhere }));
    cases
}

/// Times of messages between this rank and its partner, which exchange them in both directions at once: `message`, at
/// `bytes` in `runs`, which do not touch in the slot (`in_slot` is 1) or in the array; and of one there and back, halved:
/// `echo`.
pub(super) fn messages(comm: &Comm, effort: Effort, partner: Option<u32>) -> Result<Vec<Series>, Fault> {
    let what = "measuring messages";
    let cases = cases(effort);
    let most = cases.iter().map(|(_, exchange)| exchange.array_bytes()).max().unwrap_or(0);
    let (memory, fault) = match (partner, touched(most)) {
        (Some(partner), _) if partner == comm.rank() || partner >= comm.size() => {
            let text = format!("{what}: rank {} cannot exchange messages with rank {partner}", comm.rank());
            (None, Some(Fault::new(FaultKind::Invalid, text)))
        }
        (_, Ok(memory)) => (Some(memory), None),
        (_, Err(fault)) => (None, Some(fault)),
    };
    together(comm, what, fault, || true)?;
    let memory = memory.expect("all ranks have theirs");
    let mut series: Vec<Series> = cases
        .iter()
        .map(|(kernel, it)| {
            let in_slot = f64::from(u8::from(it.apart == Apart::Slot));
            let (bytes, runs) = (it.message_bytes() as f64, it.runs as f64);
            Series::new(kernel, &[("bytes", bytes), ("runs", runs), ("in_slot", in_slot)])
        })
        .collect();
    rounds(comm, what, effort, |_| {
        for ((kernel, exchange), series) in cases.iter().zip(&mut series) {
            let program = match partner {
                Some(partner) if *kernel == "echo" => exchange.echo(comm.rank(), partner),
                Some(partner) => exchange.program(partner),
                None => Program::idle(),
            };
            let users = if partner.is_some() { vec![exchange.exposed(&memory)] } else { Vec::new() };
            let seconds = walked(comm, what, program, users)?;
            if partner.is_some() {
                let times = if *kernel == "echo" { 2 * exchange.count } else { exchange.count };
                series.seconds.push(seconds / times as f64);
            }
        }
        Ok(())
    })?;
    Ok(series.into_iter().filter(|series| !series.seconds.is_empty()).map(Series::warm).collect())
}

/// Walks a program, beginning together with all others; gives the time it took here \[s\].
pub(super) fn walked(comm: &Comm, what: &str, program: Program, users: Vec<Exposed>) -> Result<f64, Fault> {
    together(comm, what, None, || true)?;
    let begun = Instant::now();
    let outcome = comm.measuring().walk(what, program, users)?;
    let seconds = begun.elapsed().as_secs_f64();
    together(comm, what, outcome.err(), || true)?;
    Ok(seconds)
}

/// Times of copies, as [`hyperslab_real::calibration::copies`] gives them, when all ranks make them at the same time.
pub(super) fn copies(comm: &Comm, effort: Effort) -> Result<Vec<Series>, Fault> {
    let what = "measuring copies";
    together(comm, what, None, || true)?;
    // Each for itself, for the same time: nobody waits for another meanwhile.
    let measured = hyperslab_real::calibration::copies(part(effort, 0.9), &mut || false);
    let (series, fault) = match measured {
        Ok(series) => (series, None),
        Err(fault) => (Vec::new(), Some(fault)),
    };
    together(comm, what, fault, || true)?;
    Ok(series)
}

/// Memory whose pages are there.
pub(super) fn touched(bytes: u64) -> Result<Memory, Fault> {
    let memory = Memory::allocate(bytes)
        .map_err(|error| Fault::new(FaultKind::Storage, format!("measuring: {error}")).hint("measure with less"))?;
    let pattern = vec![0x5a; 1 << 16];
    for start in (0..bytes).step_by(pattern.len()) {
        memory.write_bytes(start, &pattern[..pattern.len().min((bytes - start) as usize)]);
    }
    Ok(memory)
}
