//! Striped objects: their bytes against a model, and what their names are after a crash.

mod common;

use common::{Place, Rows, Told, Waited, seeds};
use hyperslab_layout::{Durability, Object};
use hyperslab_pack::Memory;
use hyperslab_real::{StripedDirectory, Stripes};
use hyperslab_world::{FaultKind, Names, Outcome, Request, Within};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn stripes(place: &Place, count: usize, unit_bytes: u64) -> Stripes {
    let directories: Vec<_> = (0..count).map(|number| place.0.join(number.to_string())).collect();
    directories.iter().for_each(|directory| fs::create_dir_all(directory).unwrap());
    Stripes { directories, unit_bytes }
}

/// All bytes of an object, put together by the formula.
fn together(stripes: &Stripes, name: &str) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = stripes.directories.iter().map(|d| fs::read(d.join(name)).unwrap()).collect();
    let (unit, n) = (stripes.unit_bytes as usize, parts.len());
    let total: usize = parts.iter().map(Vec::len).sum();
    (0..total).map(|o| parts[(o / unit) % n][o / (unit * n) * unit + o % unit]).collect()
}

fn against_a_model(place: &Place, seed: u64) {
    let _told = Told(seed);
    let mut random = fastrand::Rng::with_seed(seed);
    let unit = *random.choice(&[1000, 4096, 65536, 100_000, 1 << 20]).unwrap();
    let stripes = stripes(place, random.usize(1..6), unit);
    let names = StripedDirectory::new(stripes.clone()).unwrap();
    stripes.check().unwrap();
    let mut model = vec![0; random.usize(1..6 << 20)];
    names.create("file", b"", model.len() as u64).unwrap();
    names.reserve("file", model.len() as u64).unwrap();
    let mut store = Waited::new(Path::new(&names.full("")));
    let object = Object::from("file");
    for _ in 0..3 {
        let mut requests = Vec::new();
        let mut at = 0;
        while at < model.len() as u64 {
            let length = random.u64(1..=2 << 20).min(model.len() as u64 - at);
            let memory = Memory::allocate(length + 512).unwrap();
            let mut bytes = vec![0; length as usize + 512];
            random.fill(&mut bytes);
            memory.write_bytes(0, &bytes);
            let rows = if random.u8(0..3) == 0 {
                // A column of every second 4000 bytes.
                let step = 4000.min(length);
                let rows = (length - step.div_ceil(2)) / step + 1;
                Rows { offset: at, rows, length: step.div_ceil(2), step, base: 0, memory_step: step.div_ceil(2) }
            } else {
                Rows::run(at, length, *random.choice(&[0, 0, 512, 33]).unwrap())
            };
            for (here, there) in rows.ranges() {
                model[there].copy_from_slice(&bytes[here]);
            }
            requests.push(Request::Write {
                object: object.clone(),
                moves: rows.moves(&memory),
                direct: random.bool(),
                durability: Durability::Soon,
            });
            at += length;
        }
        random.shuffle(&mut requests);
        requests.push(Request::Sync { below: [object.clone()].into() });
        store.well(requests);
        assert!(together(&stripes, "file") == model, "not where the formula says");
        let from = random.u64(0..model.len() as u64);
        let rows = Rows::run(from, random.u64(1..=model.len() as u64 - from), random.u64(0..100));
        let memory = Memory::allocate(rows.memory_bytes()).unwrap();
        store.well(vec![Request::Read { object: object.clone(), moves: rows.moves(&memory), direct: random.bool() }]);
        for (here, there) in rows.ranges() {
            assert!(memory.to_vec(here.start as u64, here.len() as u64) == model[there]);
        }
        let prefix = names.read_prefix("file", from).unwrap().unwrap();
        assert!(prefix == model[..from as usize]);
    }
    assert_eq!(names.length("file"), Some(model.len() as u64));
    names.check("file").unwrap();
}

#[test]
fn striped_objects_equal_a_model() {
    let place = Place::on_disk("striped");
    seeds(25).for_each(|seed| against_a_model(&place, seed));
}

#[test]
fn what_is_asked_of_striped_objects_and_cannot_be_done_is_told() {
    let place = Place::on_disk("striped-faults");
    let stripes = stripes(&place, 3, 1000);
    let names = StripedDirectory::new(stripes.clone()).unwrap();
    let mut store = Waited::new(Path::new(&names.full("")));
    let object = Object::from("file");
    let memory = Memory::allocate(10_000).unwrap();
    let read = |direct| {
        let moves = Rows::run(0, 10_000, 0).moves(&memory);
        Request::Read { object: object.clone(), moves, direct }
    };
    for direct in [false, true] {
        assert_eq!(store.one(read(direct)), Ok(Outcome::Absent));
        names.create("file", b"", 9_500).unwrap();
        // Unit 9, its second half, is missing from the first directory.
        let fault = store.one(read(direct)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Corrupt);
        assert!(fault.text().contains("0/file' is damaged: expected at least 4000 B, found 3500 B"), "{fault}");
        fs::remove_file(stripes.directories[1].join("file")).unwrap();
        let fault = store.one(read(direct)).unwrap_err();
        assert!(fault.text().contains("are missing") && fault.text().contains("1/file"), "{fault}");
        let fault = names.check("file").unwrap_err();
        assert!(fault.text().contains("1/file' is missing"), "{fault}");
        names.remove("file").unwrap();
        assert!(!names.exists("file"));
    }
    let whole = Request::Put { object: object.clone(), bytes: vec![1], replace: false, durability: Durability::Soon };
    assert_eq!(store.one(whole).unwrap_err().kind, FaultKind::Unsupported);
    let whole = Request::Get { object: object.clone(), within: Within::All, bytes_max: 1 };
    assert_eq!(store.one(whole).unwrap_err().kind, FaultKind::Unsupported);
    // Another unit, or another order, than the file was written with.
    names.create("file", b"", 9_500).unwrap();
    names.check("file").unwrap();
    let other = Stripes { unit_bytes: 900, ..stripes.clone() };
    let fault = StripedDirectory::new(other).unwrap().check("file").unwrap_err();
    assert!(fault.text().contains("3 directories by 900 B should have") && !fault.hint.is_empty(), "{fault}");
    let mut other = stripes.clone();
    other.directories.swap(0, 2);
    assert!(StripedDirectory::new(other).unwrap().check("file").is_err());
}

/// A new object beside an old one, as it is before it is published.
fn prepared(place: &Place, count: usize, old: bool) -> (Stripes, StripedDirectory) {
    let stripes = stripes(place, count, 10);
    let names = StripedDirectory::new(stripes.clone()).unwrap();
    if old {
        names.create("file", &[1; 95], 95).unwrap();
    }
    names.create(".hidden", &[2; 1234], 1234).unwrap();
    (stripes, names)
}

#[test]
fn a_crash_between_renames_leaves_the_old_or_the_new() {
    for (count, old) in (1..=4).flat_map(|count| [(count, false), (count, true)]) {
        for renamed in 0..=count {
            let place = Place::on_disk(&format!("renames-{count}-{renamed}-{old}"));
            let (stripes, names) = prepared(&place, count, old);
            for directory in &stripes.directories[..renamed] {
                fs::rename(directory.join(".hidden"), directory.join("file")).unwrap();
            }
            let completed = names.complete(".hidden", "file").unwrap();
            assert_eq!(completed, renamed > 0 && renamed < count);
            assert!(!names.complete(".hidden", "file").unwrap());
            names.check("file").unwrap();
            if renamed > 0 {
                assert_eq!((&names as &dyn Names).read("file").unwrap().unwrap(), [2; 1234]);
                assert!(!names.exists(".hidden"));
                continue;
            }
            // What was not published can go, and the old is whole.
            names.discard(".hidden");
            assert!(!names.exists(".hidden"));
            assert_eq!((&names as &dyn Names).read("file").unwrap(), old.then(|| vec![1; 95]));
        }
    }
}

#[test]
fn a_crash_while_something_hidden_is_made_or_removed_publishes_nothing() {
    for made in 0..=3 {
        let place = Place::on_disk(&format!("making-{made}"));
        let (stripes, names) = prepared(&place, 3, true);
        // Files are made from the first directory on, and removed from the last on.
        for directory in &stripes.directories[made..] {
            fs::remove_file(directory.join(".hidden")).unwrap();
        }
        assert!(!names.complete(".hidden", "file").unwrap());
        assert_eq!((&names as &dyn Names).read("file").unwrap().unwrap(), [1; 95]);
        names.remove(".hidden").unwrap();
        assert!(!names.exists(".hidden"));
    }
}

#[test]
fn an_interrupted_publication_is_not_discarded() {
    let place = Place::on_disk("not-discarded");
    let (stripes, names) = prepared(&place, 3, true);
    // The last rename fails, since a directory is in its way.
    fs::remove_file(stripes.directories[2].join("file")).unwrap();
    fs::create_dir(stripes.directories[2].join("file")).unwrap();
    let fault = names.rename(".hidden", "file").unwrap_err();
    assert!(fault.hint.contains("opening it completes"), "{fault}");
    names.discard(".hidden");
    let fault = names.complete(".hidden", "file").unwrap_err();
    assert!(fault.text().contains("completing a publication that was interrupted"), "{fault}");
    fs::remove_dir(stripes.directories[2].join("file")).unwrap();
    assert!(names.complete(".hidden", "file").unwrap());
    assert_eq!((&names as &dyn Names).read("file").unwrap().unwrap(), [2; 1234]);
}

#[test]
fn hidden_parts_without_their_first_are_refused() {
    let place = Place::on_disk("without-first");
    let (stripes, names) = prepared(&place, 3, false);
    fs::remove_file(stripes.directories[0].join(".hidden")).unwrap();
    let fault = names.complete(".hidden", "file").unwrap_err();
    assert_eq!(fault.kind, FaultKind::Corrupt);
    assert!(fault.text().contains("0/file' is missing") && !fault.hint.is_empty(), "{fault}");
}

#[test]
fn what_has_lost_a_part_is_not_published() {
    let place = Place::on_disk("lost-part");
    let (stripes, names) = prepared(&place, 3, true);
    fs::remove_file(stripes.directories[1].join(".hidden")).unwrap();
    let fault = names.rename(".hidden", "file").unwrap_err();
    assert_eq!(fault.kind, FaultKind::Corrupt);
    assert!(fault.text().contains("1/.hidden' is missing"), "{fault}");
    assert_eq!((&names as &dyn Names).read("file").unwrap().unwrap(), [1; 95]);
}

#[test]
fn who_opens_a_file_while_it_is_published_may_complete_it() {
    // In memory, where nothing waits for a disk, they meet often.
    let Some(place) = Place::in_memory("complete-meanwhile") else { return };
    let (_, names) = prepared(&place, 4, true);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    names.complete(".hidden", "file").unwrap();
                }
            });
        }
        let publish = |turn: u64| {
            names.rename(".hidden", "file")?;
            names.check("file")?;
            names.create(".hidden", &[3; 777], 777 + turn)
        };
        let published = (0..3000).try_for_each(publish);
        over.store(true, Ordering::Release);
        published.unwrap();
    });
    assert_eq!(names.length("file"), Some(777 + 2998));
}
