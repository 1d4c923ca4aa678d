//! Writers of one file, beside writers that have a file each; and makers of many files.

use super::ranks::{rounds, together, touched, walked};
use hyperslab::Comm;
use hyperslab_layout::{Durability, ElementType, Kind, Object, Region, View};
use hyperslab_plan::{Action, After, Lane, Place, Program, Step};
use hyperslab_real::Directory;
use hyperslab_real::calibration::{Effort, Series};
use hyperslab_world::{Exposed, Fault, FaultKind, Names, Root};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of a request \[B\]: those of a common subchunk.
const REQUEST_BYTES: u64 = 2 << 20;
/// Files that each rank makes in a row, and their length, which is all holes \[B\].
const NAMES: u64 = 128;
const NAMED_BYTES: u64 = 4096;

/// Times of writing a rank's bytes to a file of its own (`own-file`) and to its part of one file (`one-file`), at
/// `bytes` of a rank and `ranks`; the same, made durable (`own-sync`, `one-sync`); and of making a file where all ranks make
/// some, each file of all of them (`create-together`).
pub(super) fn writers(comm: &Comm, directory: &Path, effort: Effort) -> Result<Vec<Series>, Fault> {
    let what = "measuring writers";
    // Rank 0's directory is everybody's.
    let mut made = None;
    let told = {
        let question = hyperslab_walk::Question::opening(what, Vec::new(), None);
        comm.measuring().agree(question, || {
            let root = directory.join(format!(".hyperslab-calibrate-{}", std::process::id()));
            let root = Directory::new(Directory::new(root).resolve()?);
            root.make("")?;
            made = Some(root.clone());
            Ok(root.full("").into_bytes())
        })
    };
    // What syncing takes is measured by itself.
    comm.measuring().sends_on(false);
    let measured = told.and_then(|root| {
        let root = String::from_utf8(root)
            .map_err(|_| Fault::new(FaultKind::Invalid, format!("{what}: the directory's name is no text")))?;
        measure(comm, what, &Directory::new(root), effort)
    });
    comm.measuring().sends_on(true);
    if let Some(made) = made {
        made.remove("")?;
    }
    measured
}

fn measure(comm: &Comm, what: &str, names: &Directory, effort: Effort) -> Result<Vec<Series>, Fault> {
    let request = REQUEST_BYTES.min(effort.bytes);
    let count = (effort.bytes / request).max(1);
    let bytes = count * request;
    let (memory, fault) = match touched(bytes) {
        Ok(memory) => (Some(memory), None),
        Err(fault) => (None, Some(fault)),
    };
    together(comm, what, fault, || true)?;
    let memory = memory.expect("all ranks have theirs");
    let at = [("bytes", bytes as f64), ("ranks", f64::from(comm.size()))];
    let mut series = ["own-file", "one-file", "own-sync", "one-sync"].map(|kernel| Series::new(kernel, &at));
    let mut made = Series::new("create-together", &[("ranks", f64::from(comm.size()))]);
    comm.measuring().store(|store| store.enter([Root::new(names.full(""))].into()));
    rounds(comm, what, effort, |round| {
        made.seconds.push(named(comm, what, names)?);
        for turn in 0..series.len() {
            // What a case leaves behind (free pages, work of the journal) is to favour none.
            let case = if round % 2 == 0 { turn } else { series.len() - 1 - turn };
            let series = &mut series[case];
            let (one, sync) = (case % 2 == 1, case > 1);
            let name = if one { "one".to_string() } else { format!("own-{}", comm.rank()) };
            let (makes, length) = if one { (comm.rank() == 0, bytes * u64::from(comm.size())) } else { (true, bytes) };
            let fault = if makes { names.create(&name, &[], length).err() } else { None };
            together(comm, what, fault, || true)?;
            let offset = if one { bytes * u64::from(comm.rank()) } else { 0 };
            let (program, user) = writing(&memory, Object::new(0, name.as_str()), offset, (request, count), sync);
            let seconds = walked(comm, what, program, vec![user])?;
            comm.measuring().store(|store| store.release());
            // All have written before it goes.
            let fault = if makes { names.remove(&name).err() } else { None };
            together(comm, what, fault, || true)?;
            series.seconds.push(seconds);
        }
        Ok(())
    })?;
    Ok(series.into_iter().chain([made]).map(Series::warm).collect())
}

/// Makes files while all other ranks do, and removes them again; gives the time of one of all \[s\].
fn named(comm: &Comm, what: &str, names: &Directory) -> Result<f64, Fault> {
    let all = |one: &dyn Fn(&str) -> Result<(), Fault>| {
        (0..NAMES).try_for_each(|number| one(&format!("made-{}/{number}", comm.rank())))
    };
    // Chunks of an array lie in a directory of their own.
    let fault = names.make(&format!("made-{}", comm.rank())).err();
    together(comm, what, fault, || true)?;
    let begun = Instant::now();
    let made = all(&|name| names.create(name, &[], NAMED_BYTES));
    together(comm, what, made.err(), || true)?;
    // All files are there only when the last rank has made its own.
    let seconds = begun.elapsed().as_secs_f64();
    together(comm, what, all(&|name| names.remove(name)).err(), || true)?;
    Ok(seconds / (NAMES * u64::from(comm.size())) as f64)
}

/// A program that writes an array to an object, in requests of this size and number.
fn writing(
    memory: &hyperslab_pack::Memory,
    object: Object,
    offset: u64,
    (request, count): (u64, u64),
    sync: bool,
) -> (Program, Exposed) {
    let element = ElementType::native(Kind::UInt8);
    let whole = Region::whole(&[request * count]);
    let user = Exposed { memory: memory.clone(), view: Arc::new(View::held(&whole, 0, &[1], element)) };
    let there = Arc::new(View::held(&whole, offset as i64, &[1], element));
    let below: Arc<[Object]> = [object.clone()].into();
    let writes = (0..count).map(move |number| Step {
        id: number,
        round: number,
        after: After::none(),
        action: Action::Write {
            object: object.clone(),
            region: Region::boxed(&[number * request], &[(number + 1) * request]),
            from: Place::User(0),
            there: there.clone(),
            whole: None,
            replace: false,
            direct: false,
        },
    });
    let after = After::range(0, count);
    let last = sync.then(|| Step { id: count, round: count, after, action: Action::Sync { below } });
    let lane: Lane = Box::new(writes.chain(last));
    let durability = if sync { Durability::Now } else { Durability::Cached };
    (Program { lanes: vec![lane], durability, ..Program::idle() }, user)
}
