//! Stores in an object store: what is published whole or not at all, whoever dies, is late or hears nothing.

use hyperslab::{
    ArrayWrite, Comm, Death, Dim, Distribution, FaultKind, LocalArray, Mode, ObjectMemory, OpenOptions, ReadOptions,
    Store, Trouble, WriteOptions,
};

const EXTENT: u64 = 12;
const CHUNK: u64 = 4;
const RANKS: u32 = 2;

type Failure = hyperslab::Error;
/// All elements of an array, if it is there.
type Values = Option<Vec<f64>>;

/// Runs on ranks that are threads; gives what each came to, which is the same.
fn on_ranks<T: Send>(run: impl Fn(&Comm) -> T + Sync) -> Vec<T> {
    let run = &run;
    std::thread::scope(|scope| {
        let ranks: Vec<_> = Comm::threads(RANKS).into_iter().map(|comm| scope.spawn(move || run(&comm))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

fn spread(comm: &Comm) -> Distribution {
    Distribution::new(&[EXTENT], &[u64::from(comm.size())], &[Dim::Block]).unwrap()
}

fn ask(comm: &Comm, name: &str, value: f64) -> ArrayWrite {
    let mine = EXTENT / u64::from(comm.size());
    ArrayWrite::new(name, LocalArray::from_f64(&[mine], &vec![value; mine as usize]), spread(comm))
}

fn options() -> WriteOptions {
    WriteOptions::default().chunks(vec![CHUNK])
}

fn open(comm: &Comm, place: &ObjectMemory, mode: Mode) -> Result<Store, Failure> {
    Store::open(comm, place, mode, OpenOptions::default())
}

/// All elements of an array, as a program that knows nothing of the others reads them; none where it is not there.
fn values(place: &ObjectMemory, group: Option<&str>, name: &str) -> Values {
    let comm = Comm::alone();
    let store = open(&comm, &place.program(), Mode::Read).ok()?;
    let store = match group {
        Some(group) => store.group(group).ok()?,
        None => store,
    };
    if !store.arrays().unwrap().contains(&name.to_string()) {
        return None;
    }
    let (arrays, _) = store.read(&[name], ReadOptions::default()).unwrap();
    Some(arrays[0].to_f64())
}

fn full(value: f64) -> Values {
    Some(vec![value; EXTENT as usize])
}

/// A store that is made.
fn made() -> ObjectMemory {
    let place = ObjectMemory::new().below("run.zarr");
    open(&Comm::alone(), &place, Mode::Write).unwrap().close().unwrap();
    place
}

fn write_array(comm: &Comm, place: &ObjectMemory, value: f64, overwrite: bool) -> Result<(), Failure> {
    let store = open(comm, place, Mode::Update)?;
    store.write(&[ask(comm, "x", value)], &options().overwrite(overwrite))?;
    store.close()
}

fn write_two(comm: &Comm, place: &ObjectMemory, value: f64) -> Result<(), Failure> {
    let store = open(comm, place, Mode::Update)?;
    store.write(&[ask(comm, "x", value), ask(comm, "y", value)], &options())?;
    store.close()
}

fn write_step(comm: &Comm, place: &ObjectMemory, value: f64) -> Result<(), Failure> {
    let store = open(comm, place, Mode::Update)?;
    let step = store.step("0001", Default::default(), false)?;
    for name in ["x", "y"] {
        if let Err(error) = step.group.write(&[ask(comm, name, value)], &options()) {
            step.discard();
            return Err(error);
        }
    }
    step.publish()?;
    store.close()
}

#[test]
fn arrays_steps_and_appends_come_back() {
    let place = ObjectMemory::new().below("deep/run.zarr");
    on_ranks(|comm| {
        let store = open(comm, &place, Mode::Write).unwrap();
        store.write(&[ask(comm, "x", 1.0), ask(comm, "y", 2.0)], &options()).unwrap();
        let step = store.step("0001", Default::default(), false).unwrap();
        step.group.write(&[ask(comm, "x", 3.0)], &options()).unwrap();
        let (arrays, _) = step.group.read(&["x"], ReadOptions::default()).unwrap();
        assert_eq!(arrays[0].to_f64(), [3.0; EXTENT as usize], "a step is read before it is published");
        step.publish().unwrap();
        store.append(&[ask(comm, "x", 4.0)], 0, &WriteOptions::default()).unwrap();
        store.consolidate().unwrap();
        assert_eq!(
            (store.arrays().unwrap(), store.groups().unwrap()),
            (vec!["x".into(), "y".into()], vec!["0001".into()])
        );
        store.close().unwrap();
    });
    let appended = [vec![1.0; EXTENT as usize], vec![4.0; EXTENT as usize]].concat();
    assert_eq!((values(&place, None, "x"), values(&place, None, "y")), (Some(appended), full(2.0)));
    assert_eq!(values(&place, Some("0001"), "x"), full(3.0));
    let names: Vec<String> = place.lengths().into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().all(|name| !name.contains("hyperslab")), "nothing hidden is left: {names:?}");
    assert_eq!(names.len(), 1 + (1 + 6) + (1 + 3) + 1 + (1 + 3), "{names:?}");
}

/// What a program does, and what readers may see of it.
struct Deed {
    prepare: fn(&ObjectMemory),
    run: fn(&Comm, &ObjectMemory, f64) -> Result<(), Failure>,
    /// Group and array of all that it changes.
    arrays: &'static [(Option<&'static str>, &'static str)],
    old: fn() -> Values,
    new: fn(f64) -> Values,
    /// Done a second time with another value, though it was done; otherwise refused.
    twice: Option<fn(f64, f64) -> Values>,
}

fn nothing() -> Values {
    None
}

fn ones() -> Values {
    full(1.0)
}

fn grown(value: f64) -> Values {
    Some([vec![1.0; EXTENT as usize], vec![value; EXTENT as usize]].concat())
}

fn grown_twice(one: f64, other: f64) -> Values {
    let extent = EXTENT as usize;
    Some([vec![1.0; extent], vec![one; extent], vec![other; extent]].concat())
}

fn write_ones(place: &ObjectMemory) {
    on_ranks(|comm| write_array(comm, place, 1.0, false).unwrap());
}

const ARRAY: Deed = Deed {
    prepare: |_| {},
    run: |c, p, v| write_array(c, p, v, false),
    arrays: &[(None, "x")],
    old: nothing,
    new: full,
    twice: None,
};
const TWO: Deed =
    Deed { prepare: |_| {}, run: write_two, arrays: &[(None, "x"), (None, "y")], old: nothing, new: full, twice: None };
const STEP: Deed = Deed {
    prepare: |_| {},
    run: write_step,
    arrays: &[(Some("0001"), "x"), (Some("0001"), "y")],
    old: nothing,
    new: full,
    twice: None,
};
const APPEND: Deed =
    Deed { prepare: write_ones, run: append, arrays: &[(None, "x")], old: ones, new: grown, twice: Some(grown_twice) };
const DEEDS: [(&str, &Deed); 4] = [("array", &ARRAY), ("two arrays", &TWO), ("step", &STEP), ("append", &APPEND)];

fn append(comm: &Comm, place: &ObjectMemory, value: f64) -> Result<(), Failure> {
    let store = open(comm, place, Mode::Update)?;
    store.append(&[ask(comm, "x", value)], 0, &WriteOptions::default())?;
    store.close()
}

impl Deed {
    fn place(&self) -> ObjectMemory {
        let place = made();
        (self.prepare)(&place);
        place
    }

    fn seen(&self, place: &ObjectMemory) -> Vec<Values> {
        self.arrays.iter().map(|(group, name)| values(place, *group, name)).collect()
    }

    fn all(&self, one: Values) -> Vec<Values> {
        vec![one; self.arrays.len()]
    }

    /// Each array is old, or new with one of these values.
    fn check_whole(&self, place: &ObjectMemory, new: &[f64], said: &str) {
        let old = (self.old)();
        for found in self.seen(place) {
            assert!(found == old || new.iter().any(|&value| found == (self.new)(value)), "{said}: {found:?}");
        }
    }

    /// All arrays are old, or all are new with one of these values.
    fn check_all(&self, place: &ObjectMemory, new: &[f64], said: &str) {
        let found = self.seen(place);
        let is_new = new.iter().any(|&value| found == self.all((self.new)(value)));
        assert!(is_new || found == self.all((self.old)()), "{said}: {found:?}");
    }
}

/// Nothing hidden is left, nor a chunk without metadata.
fn check_tidy(place: &ObjectMemory, said: &str) {
    let names: Vec<String> = place.lengths().into_iter().map(|(name, _)| name).collect();
    check_names(&names, said);
}

fn check_names(names: &[String], said: &str) {
    let stray = names.iter().find(|name| {
        let node = name.rsplit_once('/').map_or("", |(node, _)| node);
        name.contains("hyperslab") || !names.contains(&format!("{node}/zarr.json").trim_start_matches('/').to_string())
    });
    assert_eq!(stray, None, "{said}: {names:?}");
}

/// Somebody opens the store to write, and looks after what is left.
fn tidy_up(place: &ObjectMemory) {
    open(&Comm::alone(), &place.program(), Mode::Update).unwrap().close().unwrap();
}

/// What is left of a program that died is whole, whoever looks and whatever comes late; and another one can do the same.
fn attack(name: &str, deed: &Deed, late: bool, known: bool) {
    for after in 0.. {
        let said = format!("{name}, death after {after} changes, late: {late}, known: {known}");
        let (place, said) = (deed.place(), &*said);
        let dying = place.program();
        dying.dies(Death { after, late, known });
        let results = on_ranks(|comm| (deed.run)(comm, &dying, 2.0));
        let done = results.iter().all(Result::is_ok);
        assert!(done || results.iter().all(Result::is_err), "{said}: {results:?}");
        deed.check_whole(&place, &[2.0], said);
        if late && after % 2 == 0 {
            place.deliver();
            deed.check_whole(&place, &[2.0], &format!("{said}, after what was late"));
        }
        // The next program does the same.
        let (next, before) = (place.program(), deed.seen(&place));
        let again = on_ranks(|comm| (deed.run)(comm, &next, 3.0));
        place.deliver();
        match &again[0] {
            Ok(()) => {
                let twice = deed.twice.map(|twice| deed.all(twice(2.0, 3.0)));
                let was_done = before == deed.all((deed.new)(2.0)) || twice.as_ref() == Some(&deed.seen(&place));
                let expected = twice.filter(|_| was_done).unwrap_or_else(|| deed.all((deed.new)(3.0)));
                assert_eq!(deed.seen(&place), expected, "{said}, done again");
            }
            Err(error) if error.kind() == FaultKind::Exists => {
                assert_eq!(deed.seen(&place), deed.all((deed.new)(2.0)), "{said}: {error}");
            }
            Err(error) => {
                assert!(!known && error.kind() == FaultKind::Busy, "{said}: {error}");
                assert!(error.message().contains(".hyperslab-update"), "{said}: the record is named: {error}");
                deed.check_all(&place, &[2.0], said);
            }
        }
        if known {
            tidy_up(&place);
        } else {
            hyperslab::clean(&hyperslab::BucketNames::from(&place), false).unwrap();
        }
        if !late {
            check_tidy(&place, said);
        }
        if !dying.is_dead() {
            assert!(done && after > 5, "{said}");
            return;
        }
    }
}

#[test]
fn a_death_after_each_change_leaves_old_or_new() {
    for (name, deed) in DEEDS {
        attack(name, deed, false, true);
    }
}

#[test]
fn a_death_whose_last_change_comes_late_leaves_old_or_new() {
    for (name, deed) in DEEDS {
        attack(name, deed, true, true);
    }
}

#[test]
fn a_death_of_which_nobody_knows_is_named() {
    for (name, deed) in DEEDS {
        attack(name, deed, false, false);
        attack(name, deed, true, false);
    }
}

#[test]
fn a_reply_that_is_lost_or_late_changes_nothing() {
    for (name, deed) in DEEDS {
        for trouble in [Trouble::Lost, Trouble::Late] {
            for number in 0.. {
                let (place, said) = (deed.place(), format!("{name}, change {number} is {trouble:?}"));
                let one = place.program();
                one.disturb(number, trouble);
                on_ranks(|comm| (deed.run)(comm, &one, 2.0)).into_iter().for_each(|result| result.expect(&said));
                let late = place.deliver();
                assert_eq!(deed.seen(&place), deed.all((deed.new)(2.0)), "{said}");
                // A put that comes after what it was for is over leaves something hidden, until its program is.
                one.dies(Death { after: 0, late: false, known: true });
                let _ = Store::open(&Comm::alone(), &one, Mode::Write, OpenOptions::default());
                tidy_up(&place);
                // A record, which whoever makes the same takes over.
                let names = place.lengths().into_iter().map(|(name, _)| name);
                let names: Vec<String> = names.filter(|name| late == 0 || !name.ends_with("-update")).collect();
                check_names(&names, &said);
                if late == 0 && one.changes().len() as u64 <= number {
                    break;
                }
            }
        }
    }
}

/// Another program sweeps away what a dead one left, or carries it out, does the same, and one of its requests is late.
fn sweep_late(name: &str, deed: &Deed, after: u64) {
    for number in 0.. {
        let (place, said) = (deed.place(), format!("{name}, death after {after} changes, change {number} is late"));
        let (one, other) = (place.program(), place.program());
        one.dies(Death { after, late: false, known: true });
        on_ranks(|comm| drop((deed.run)(comm, &one, 2.0)));
        other.disturb(number, Trouble::Late);
        let result = on_ranks(|comm| (deed.run)(comm, &other, 3.0)).remove(0);
        let was_decided = result.as_ref().is_err_and(|error| error.kind() == FaultKind::Exists);
        assert!(result.is_ok() || was_decided, "{said}: {result:?}");
        let before = deed.seen(&place);
        place.deliver();
        assert_eq!(deed.seen(&place), before, "{said}");
        if other.changes().len() as u64 <= number {
            return;
        }
    }
}

#[test]
fn what_is_made_where_a_dead_program_was_swept_away_outlives_late_requests() {
    for (name, deed) in DEEDS {
        // Before chunks, among them, and about to publish.
        for after in [3, 6, 8, 11] {
            sweep_late(name, deed, after);
        }
    }
}

/// While a program is stopped before one of its changes, another one does the same in its place; then it goes on.
fn overtake(name: &str, deed: &Deed, known: bool) {
    for after in 0.. {
        let said = &*format!("{name}, stopped after {after} changes, known to live: {known}");
        let place = deed.place();
        let (one, other) = (place.program(), place.program());
        if !known {
            // As far as anybody can know, it may be dead; it is not.
            one.dies(Death { after: u64::MAX / 2, late: false, known: false });
        }
        one.stop(after);
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| on_ranks(|comm| (deed.run)(comm, &one, 2.0)).remove(0));
            while !one.wait_stopped(std::time::Duration::from_millis(1)) && !first.is_finished() {}
            deed.check_whole(&place, &[2.0], said);
            let mut second = on_ranks(|comm| (deed.run)(comm, &other, 3.0)).remove(0);
            if second.as_ref().is_err_and(|error| error.kind() == FaultKind::Busy) {
                let cleaned = hyperslab::clean(&hyperslab::BucketNames::from(&place), false).unwrap();
                assert!(cleaned.iter().any(|one| one.note.starts_with("kept") == known), "{said}: {cleaned:?}");
                if !known {
                    second = on_ranks(|comm| (deed.run)(comm, &other, 3.0)).remove(0);
                }
            }
            one.go_on();
            (first.join().expect("does not panic"), second)
        });
        let (seen, both) =
            (deed.seen(&place), deed.twice.map(|twice| [deed.all(twice(2.0, 3.0)), deed.all(twice(3.0, 2.0))]));
        let ends = (first.as_ref().map_err(Failure::kind), second.as_ref().map_err(Failure::kind));
        match ends {
            (Ok(()), Ok(())) => assert!(both.is_some_and(|both| both.contains(&seen)), "{said}: {seen:?}"),
            (Ok(()), Err(FaultKind::Busy | FaultKind::Exists)) => {
                assert_eq!(seen, deed.all((deed.new)(2.0)), "{said}");
            }
            (Err(FaultKind::Busy | FaultKind::Exists | FaultKind::Outdated | FaultKind::Unsynced), Ok(())) => {
                let rolled_on = both.is_some_and(|both| both.contains(&seen));
                assert!(rolled_on || seen == deed.all((deed.new)(3.0)), "{said}: {seen:?}");
            }
            // It had decided, and the other one has carried that out.
            (Err(FaultKind::Unsynced), Err(FaultKind::Exists)) => assert_eq!(seen, deed.all((deed.new)(2.0)), "{said}"),
            _ => panic!("{said}: {first:?} and {second:?}"),
        }
        tidy_up(&place);
        if one.changes().len() as u64 <= after {
            return;
        }
    }
}

#[test]
fn a_program_that_is_stopped_anywhere_and_one_that_does_the_same() {
    for (name, deed) in DEEDS {
        overtake(name, deed, true);
        overtake(name, deed, false);
    }
}

/// While a program that deletes an array is stopped before one of its changes, another one deletes it and makes it anew: then it
/// is there whole, unless it was the first that deleted it last.
#[test]
fn a_program_that_is_stopped_while_it_deletes_takes_nothing_of_what_was_made_since() {
    let delete = |place: &ObjectMemory| {
        let store = open(&Comm::alone(), place, Mode::Update)?;
        store.delete("x")?;
        store.close()
    };
    for after in 0.. {
        let place = ARRAY.place();
        write_array(&Comm::alone(), &place, 1.0, false).unwrap();
        let (one, other) = (place.program(), place.program());
        one.stop(after);
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| delete(&one));
            while !one.wait_stopped(std::time::Duration::from_millis(1)) && !first.is_finished() {}
            // It may be gone already, or be refused.
            drop(delete(&other));
            let second = write_array(&Comm::alone(), &other, 3.0, false);
            one.go_on();
            (first.join().expect("does not panic"), second)
        });
        let seen = values(&place, None, "x");
        let said = format!("stopped after {after} changes: {first:?}, {second:?}, {seen:?}");
        assert!(seen.is_none() || seen == full(1.0) || seen == full(3.0), "{said}");
        assert!(first.is_ok() || second.is_ok(), "{said}");
        if one.changes().len() as u64 <= after {
            return;
        }
    }
}

/// Of several programs that make the same steps at the same time, while replies are lost and some die, each step is of one.
#[test]
fn programs_that_race_for_the_same_steps() {
    let times = std::env::var("HYPERSLAB_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    for seed in 0..15 * times {
        let place = made();
        let programs: Vec<ObjectMemory> = (0..3).map(|_| place.program()).collect();
        std::thread::scope(|scope| {
            for (number, program) in (0..).zip(&programs) {
                program.disturb_by_chance(seed * 10 + number, 30);
                if (seed + number) % 3 == 0 {
                    program.dies(Death { after: 5 + seed * 3 % 40, late: true, known: true });
                }
                scope.spawn(move || {
                    let comm = Comm::alone();
                    // Whoever dies, or is refused, goes on with the next one; errors are as they may be.
                    let Ok(store) = open(&comm, program, Mode::Update) else { return };
                    for name in ["s0", "s1", "s2"] {
                        let Ok(step) = store.step(name, Default::default(), false) else { continue };
                        let asks = ["x", "y"].map(|name| ask(&comm, name, 10.0 + number as f64));
                        match step.group.write(&asks, &options()) {
                            Ok(_) => drop(step.publish()),
                            Err(_) => step.discard(),
                        }
                    }
                    drop(store.close());
                });
            }
        });
        for turn in 0..3 {
            let mut there = 0;
            for name in ["s0", "s1", "s2"] {
                let [x, y] = ["x", "y"].map(|array| values(&place, Some(name), array));
                let is_whole = x.as_ref().is_none_or(|x| x.iter().all(|&value| value == x[0]));
                assert!(is_whole && x == y, "seed {seed}, {name} at {turn}: {x:?} and {y:?}");
                there += u32::from(x.is_some());
            }
            assert!(there > 0 || programs.iter().all(ObjectMemory::is_dead), "seed {seed}: nobody made anything");
            match turn {
                0 => assert!(place.deliver() < 1000),
                _ => tidy_up(&place),
            }
        }
    }
}
