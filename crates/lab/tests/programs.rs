//! Whole programs of the library on imagined machines: stores that are opened, arrays that are made, changed and appended to,
//! steps that are published, files. The bytes are those that the library finds there on this machine.

mod common;

use common::{SHAPE, does, found, part, rows, run, whole, zarr_program};
use hyperslab::{
    ArrayWrite, Comm, Contents, ElementType, File, FileArray, Kind, Mode, OpenOptions, ReadOptions, Store, WriteOptions,
};
use hyperslab_sim::Payload;
use std::path::Path;

#[test]
fn a_program_leaves_a_store_that_the_library_reads() {
    for machine in ["nvme-workstation", "lustre-like", "nas-sp2", "object-store"] {
        let (outcome, chosen, tree) = run(machine, zarr_program(), Payload::Files);
        assert_eq!(chosen.len(), 5, "three writes, an append, a read");
        assert!(outcome.end_ns > 0 && outcome.spans.len() == 3 * 5 + 4);
        let names: Vec<String> = tree.lengths().into_iter().map(|(name, _)| name).collect();
        assert!(names.iter().all(|name| name.starts_with("run.zarr/")), "nothing is left beside it: {names:?}");
        let comm = Comm::alone();
        let store = Store::open(&comm, tree.below("run.zarr"), Mode::Read, OpenOptions::default()).unwrap();
        assert_eq!(
            (store.unfinished(), store.arrays().unwrap()),
            (Vec::<String>::new(), vec!["a".to_string(), "b".into()])
        );
        assert_eq!(found(&store, "a"), whole(2000.0));
        assert_eq!(found(&store, "b"), whole(500.0).into_iter().chain(whole(620.0)).collect::<Vec<_>>());
        let step = Store::open(&comm, tree.below("run.zarr/step0"), Mode::Read, OpenOptions::default()).unwrap();
        assert_eq!(found(&step, "c"), whole(9000.0));
    }
}

#[test]
fn it_takes_the_same_time_whether_bytes_move_or_lengths_and_each_time() {
    let program = || {
        let mut all = zarr_program();
        // What is read without payloads nobody can compare.
        all.remove(7);
        all
    };
    for machine in ["nvme-workstation", "chiba-city"] {
        let (with, ..) = run(machine, program(), Payload::Files);
        let (again, ..) = run(machine, program(), Payload::Files);
        let (without, ..) = run(machine, program(), Payload::Lengths);
        assert_eq!(with.trace, again.trace);
        assert_eq!(with, again);
        assert_eq!(with.trace, without.trace);
        assert_eq!(with, without);
    }
}

#[test]
fn opening_publishing_and_names_take_time() {
    let (outcome, ..) = run("lustre-like", zarr_program(), Payload::Files);
    let calls = &outcome.tally.calls;
    let told: Vec<(&str, u64)> = calls.iter().map(|(kind, calls)| (*kind, calls.count)).collect();
    for kind in ["open", "close", "query", "read", "write", "sync"] {
        assert!(calls.get(kind).is_some_and(|calls| calls.count > 4), "{kind} of {told:?}");
    }
    let open = outcome.spans[0];
    assert!(open.end_ns > 5_000_000, "a store is opened in no time: {open:?}");
}

#[test]
fn a_raw_file_is_published_when_it_is_closed() {
    let contents = Contents { header: b"header".into(), header_bytes: 6, ..Contents::default() };
    let begun = contents.clone();
    let program = vec![
        does(false, move |comm, kept| {
            let file = File::open(comm, Path::new("out.raw"), Mode::Write, OpenOptions::default(), begun.clone())?;
            kept.insert("file".into(), Box::new(file));
            Ok(())
        }),
        does(true, |comm, kept| {
            let file: &mut File = kept.get_mut("file").and_then(|kept| kept.downcast_mut()).expect("it is open");
            let asks = [("a", 0.0), ("b", 500.0)]
                .map(|(name, begin)| ArrayWrite::new(name, part(comm.rank(), &rows(), begin), rows()));
            file.write(&asks, &WriteOptions::default()).map(drop)
        }),
        does(false, |_, kept| {
            let file = kept.remove("file").and_then(|kept| kept.downcast::<File>().ok()).expect("it is open");
            file.close()
        }),
    ];
    let (_, chosen, tree) = run("nas-sp2", program, Payload::Files);
    assert_eq!(chosen.len(), 1);
    let names: Vec<String> = tree.lengths().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["out.raw"]);
    let element = ElementType::native(Kind::Float64);
    let arrays = ["a", "b"].map(|name| FileArray { name: name.into(), shape: SHAPE.to_vec(), element });
    let contents = Contents { arrays: arrays.into(), ..contents };
    let file = File::open(&Comm::alone(), tree.below("out.raw"), Mode::Read, OpenOptions::default(), contents).unwrap();
    let (read, _) = file.read(&["a", "b"], ReadOptions::default()).unwrap();
    assert_eq!(read[1].to_f64(), whole(500.0));
    assert_eq!(read[0].to_f64(), whole(0.0));
}
