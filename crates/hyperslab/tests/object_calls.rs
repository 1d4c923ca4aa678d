//! What can be done in an object store, and what is refused.

use hyperslab::binding::{Pick, select};
use hyperslab::{
    ArrayWrite, Comm, Death, Dim, Distribution, FaultKind, LocalArray, Mode, ObjectMemory, OpenOptions, ReadOptions,
    Store, Trouble, WriteOptions,
};

const EXTENT: u64 = 12;

fn ask(comm: &Comm, name: &str, value: f64) -> ArrayWrite {
    let (ranks, mine) = (u64::from(comm.size()), EXTENT / u64::from(comm.size()));
    let spread = Distribution::new(&[EXTENT], &[ranks], &[Dim::Block]).unwrap();
    ArrayWrite::new(name, LocalArray::from_f64(&[mine], &vec![value; mine as usize]), spread)
}

fn options() -> WriteOptions {
    WriteOptions::default().chunks(vec![4])
}

fn open(comm: &Comm, place: &ObjectMemory, mode: Mode) -> Store {
    Store::open(comm, place, mode, OpenOptions::default()).unwrap()
}

fn read(store: &Store, name: &str) -> Vec<f64> {
    store.read(&[name], ReadOptions::default()).unwrap().0[0].to_f64()
}

fn names(place: &ObjectMemory) -> Vec<String> {
    place.lengths().into_iter().map(|(name, _)| name).collect()
}

#[test]
fn requests_and_dedicated_servers_write_and_read() {
    let place = ObjectMemory::new();
    std::thread::scope(|scope| {
        for (rank, comm) in Comm::threads_with_servers(4, &[3, 1]).unwrap().into_iter().enumerate() {
            let place = &place;
            scope.spawn(move || {
                if rank == 1 || rank == 3 {
                    return comm.serve().unwrap();
                }
                let store = open(&comm, place, Mode::Write);
                let later: Vec<_> = (0..3)
                    .map(|i| store.write_later(vec![ask(&comm, &format!("a{i}"), f64::from(i))], options(), i == 1))
                    .collect();
                later.iter().for_each(|request| drop(request.wait().unwrap()));
                let step = store.step("0001", Default::default(), false).unwrap();
                let in_step = step.group.write_later(vec![ask(&comm, "x", 7.0)], options(), false);
                in_step.wait().unwrap();
                step.publish().unwrap();
                store.append(&[ask(&comm, "a2", 9.0)], 0, &WriteOptions::default()).unwrap();
                assert_eq!(read(&store, "a1"), [1.0; EXTENT as usize]);
                assert_eq!(read(&store, "a2"), [[2.0; EXTENT as usize], [9.0; EXTENT as usize]].concat());
                assert_eq!(read(&store.group("0001").unwrap(), "x"), [7.0; EXTENT as usize]);
                store.close().unwrap();
                comm.end_service().unwrap();
            });
        }
    });
    assert!(names(&place).iter().all(|name| !name.contains("hyperslab")));
}

#[test]
fn what_readers_see_is_not_changed_in_place() {
    let (place, comm) = (ObjectMemory::new(), Comm::alone());
    let store = open(&comm, &place, Mode::Write);
    store.write(&[ask(&comm, "x", 1.0)], &options()).unwrap();
    let before = names(&place);
    let part = ArrayWrite::new(
        "x",
        LocalArray::from_f64(&[4], &[2.0; 4]),
        Distribution::new(&[4], &[1], &[Dim::Block]).unwrap(),
    );
    let first = Pick::Range { start: Some(0), stop: Some(4), step: 1 };
    let section = || select(&[first], Some(&[EXTENT])).unwrap();
    let refused = [
        store.write(std::slice::from_ref(&part), &WriteOptions::default().section(section())).unwrap_err(),
        store.write(&[ask(&comm, "x", 2.0)], &options().overwrite(true)).unwrap_err(),
    ];
    for error in &refused {
        assert!(error.kind() == FaultKind::Unsupported && error.message().contains("object store"), "{error}");
        assert!(error.to_string().contains("hint:"), "{error}");
    }
    assert_eq!((read(&store, "x"), names(&place)), (vec![1.0; EXTENT as usize], before));
    // What nobody sees yet can be.
    let step = store.step("0001", Default::default(), false).unwrap();
    step.group.write(&[ask(&comm, "x", 1.0)], &options()).unwrap();
    step.group.write(&[part], &WriteOptions::default().section(section())).unwrap();
    step.group.append(&[ask(&comm, "x", 3.0)], 0, &WriteOptions::default()).unwrap();
    step.publish().unwrap();
    let expected = [&[2.0; 4][..], &[1.0; 8], &[3.0; EXTENT as usize]].concat();
    assert_eq!(read(&store.group("0001").unwrap(), "x"), expected);
    store.close().unwrap();
    assert!(names(&place).iter().all(|name| !name.contains("hyperslab")));
}

#[test]
fn whole_chunks_are_appended_and_others_are_refused() {
    let (place, comm) = (ObjectMemory::new(), Comm::alone());
    let store = open(&comm, &place, Mode::Write);
    store.write(&[ask(&comm, "x", 1.0)], &WriteOptions::default().chunks(vec![8])).unwrap();
    let before = names(&place);
    let error = store.append(&[ask(&comm, "x", 2.0)], 0, &WriteOptions::default()).unwrap_err();
    assert!(error.kind() == FaultKind::Unsupported && error.message().contains("not full"), "{error}");
    assert_eq!((read(&store, "x"), names(&place)), (vec![1.0; EXTENT as usize], before));
    store.close().unwrap();
    assert_eq!(names(&place), ["x/c.0", "x/c.1", "x/zarr.json", "zarr.json"]);
}

#[test]
fn what_an_append_left_and_what_came_late_does_not_hinder_the_next() {
    let (place, comm) = (ObjectMemory::new(), Comm::alone());
    let store = open(&comm, &place, Mode::Write);
    store.write(&[ask(&comm, "x", 1.0)], &options()).unwrap();
    store.close().unwrap();
    // It dies when its first chunk is under way, which comes when the next one has looked what is left.
    let dying = place.program();
    dying.dies(Death { after: 4, late: true, known: true });
    let lost = Store::open(&comm, &dying, Mode::Update, OpenOptions::default()).unwrap();
    lost.append(&[ask(&comm, "x", 2.0)], 0, &WriteOptions::default()).unwrap_err();
    drop(lost);
    assert_eq!(place.deliver(), 1);
    assert!(names(&place).contains(&"x/c.3".to_string()), "{:?}", names(&place));
    let store = open(&comm, &place.program(), Mode::Update);
    store.append(&[ask(&comm, "x", 3.0)], 0, &WriteOptions::default()).unwrap();
    assert_eq!(read(&store, "x"), [[1.0; EXTENT as usize], [3.0; EXTENT as usize]].concat());
    store.close().unwrap();
}

#[test]
fn every_chunk_is_put_also_one_of_fill_values() {
    let (place, comm) = (ObjectMemory::new(), Comm::alone());
    let store = open(&comm, &place, Mode::Write);
    store.write(&[ask(&comm, "x", 0.0)], &options()).unwrap();
    store.close().unwrap();
    assert_eq!(names(&place), ["x/c.0", "x/c.1", "x/c.2", "x/zarr.json", "zarr.json"]);
}

#[test]
fn what_others_put_is_a_collision_that_is_named() {
    let (place, comm) = (ObjectMemory::new(), Comm::alone());
    let store = open(&comm, &place, Mode::Write);
    let foreign = hyperslab::BucketNames::from(&place);
    hyperslab::Names::write(&foreign, "x/c.1", b"somebody else's", false).unwrap();
    let error = store.write(&[ask(&comm, "x", 1.0)], &options()).unwrap_err();
    assert!(error.kind() == FaultKind::Exists && error.message().contains("x/c.1"), "{error}");
    store.close().unwrap();
    assert_eq!(names(&place), ["x/c.1", "zarr.json"]);
}

#[test]
fn a_record_of_whom_nobody_knows_is_named_and_taken_over_on_demand() {
    let (place, comm) = (ObjectMemory::new(), Comm::alone());
    open(&comm, &place, Mode::Write).close().unwrap();
    let dying = place.program();
    let lost = open(&comm, &dying, Mode::Update);
    dying.dies(Death { after: 6, late: true, known: false });
    lost.write(&[ask(&comm, "x", 2.0)], &options()).unwrap_err();
    let store = open(&comm, &place.program(), Mode::Update);
    assert!(store.unfinished().iter().any(|left| left.contains(".hyperslab")), "{:?}", store.unfinished());
    let error = store.write(&[ask(&comm, "x", 3.0)], &options()).unwrap_err();
    assert!(error.kind() == FaultKind::Busy && error.message().contains("x/.hyperslab-update"), "{error}");
    store.write(&[ask(&comm, "x", 3.0)], &options().overwrite(true)).unwrap();
    place.deliver();
    assert_eq!(read(&store, "x"), [3.0; EXTENT as usize]);
    store.close().unwrap();
}

#[test]
fn a_store_is_erased_metadata_first_and_not_under_others() {
    let (place, comm) = (ObjectMemory::new(), Comm::alone());
    for after in 0.. {
        let place = place.below(&format!("{after}.zarr"));
        let store = open(&comm, &place, Mode::Write);
        store.write(&[ask(&comm, "x", 1.0)], &options()).unwrap();
        store.close().unwrap();
        let dying = place.program();
        dying.dies(Death { after, late: false, known: true });
        let erased = Store::open(&comm, &dying, Mode::Write, OpenOptions::default()).is_ok();
        let found = names(&place);
        let chunks = found.iter().filter(|name| name.starts_with("x/c")).count();
        assert!(chunks == 3 || !found.contains(&"x/zarr.json".to_string()), "after {after}: {found:?}");
        if erased && !dying.is_dead() {
            assert_eq!(found, ["zarr.json"]);
            break;
        }
        open(&comm, &place.program(), Mode::Write).close().unwrap();
        assert_eq!(names(&place), ["zarr.json"], "after {after}");
    }
    // Somebody writes a step.
    let place = place.below("busy.zarr");
    let busy = open(&comm, &place, Mode::Write);
    let step = busy.step("0001", Default::default(), false).unwrap();
    let error = Store::open(&comm, place.program(), Mode::Write, OpenOptions::default()).err().unwrap();
    assert!(error.kind() == FaultKind::Busy && error.message().contains("0001"), "{error}");
    step.discard();
    busy.close().unwrap();
}

#[test]
fn metadata_that_another_changed_are_not_written_over() {
    let (place, comm) = (ObjectMemory::new(), Comm::alone());
    let store = open(&comm, &place, Mode::Write);
    store.write(&[ask(&comm, "x", 1.0)], &options()).unwrap();
    for trouble in [Trouble::Lost, Trouble::Late] {
        place.disturb(0, trouble);
        store.consolidate().unwrap();
        place.deliver();
    }
    store.write(&[ask(&comm, "y", 1.0)], &options()).unwrap();
    let root =
        hyperslab::Names::read_prefix(&hyperslab::BucketNames::from(&place), "zarr.json", 1 << 20).unwrap().unwrap();
    assert!(!String::from_utf8(root).unwrap().contains("consolidated"), "a late put of old metadata changes nothing");
    store.close().unwrap();
}
