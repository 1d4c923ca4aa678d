//! Where the bytes of files lie, as the file system tells it.

mod common;

use common::Place;
use hyperslab_real::Directory;
use hyperslab_world::{Extent, FaultKind, Names};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};

const MIB: u64 = 1 << 20;

/// The extents of a file, `None` with a word about it where the file system does not tell.
fn told(directory: &Directory, name: &str) -> Option<Vec<Extent>> {
    let extents = directory.extents(name).unwrap();
    if extents.is_none() {
        println!("skipped: the file system of '{}' does not tell where files lie", directory.full(""));
    }
    extents
}

/// Checks what holds for any file: rising offsets, no overlap here or on the device, nothing beyond the end.
fn check(extents: &[Extent], length: u64) {
    assert!(extents.iter().all(|extent| extent.bytes > 0), "{extents:?}");
    for pair in extents.windows(2) {
        assert!(pair[0].logical + pair[0].bytes <= pair[1].logical, "{extents:?}");
        let grows = pair[0].logical + pair[0].bytes == pair[1].logical;
        assert!(!(grows && pair[0].physical + pair[0].bytes == pair[1].physical), "two that are one: {extents:?}");
    }
    assert!(extents.last().is_none_or(|last| last.logical + last.bytes <= length), "{extents:?}");
    apart(extents);
}

fn apart(extents: &[Extent]) {
    let mut sorted = extents.to_vec();
    sorted.sort_by_key(|extent| extent.physical);
    for pair in sorted.windows(2) {
        assert!(pair[0].physical + pair[0].bytes <= pair[1].physical, "two bytes in one place: {sorted:?}");
    }
}

fn total(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.bytes).sum()
}

#[test]
fn reserved_space_has_a_place_before_it_is_written() {
    let place = Place::on_disk("reserved");
    let directory = Directory::new(&place.0);
    let length = 5 * MIB + 123;
    directory.create("file", &[], 0).unwrap();
    if !directory.reserve("file", length).unwrap() {
        return println!("skipped: the file system does not reserve");
    }
    assert_eq!(directory.length("file"), Some(length));
    assert!(fs::metadata(place.0.join("file")).unwrap().blocks() * 512 >= length);
    let Some(before) = told(&directory, "file") else { return };
    check(&before, length);
    assert_eq!(total(&before), length, "{before:?}");
    // Writing fills the places that there are, and no others; reserving again changes nothing.
    let file = OpenOptions::new().write(true).open(place.0.join("file")).unwrap();
    file.write_all_at(&vec![5; MIB as usize], 2 * MIB + 77).unwrap();
    assert!(directory.reserve("file", length).unwrap());
    assert!(directory.reserve("file", MIB).unwrap());
    assert_eq!(told(&directory, "file").unwrap(), before);
    let mut expected = vec![0; length as usize];
    expected[(2 * MIB + 77) as usize..][..MIB as usize].fill(5);
    assert!(fs::read(place.0.join("file")).unwrap() == expected);
    // Growing keeps what is there.
    assert!(directory.reserve("file", 2 * length).unwrap());
    let after = told(&directory, "file").unwrap();
    check(&after, 2 * length);
    assert_eq!((total(&after), after[0].physical), (2 * length, before[0].physical));
}

#[test]
fn holes_have_no_place() {
    let place = Place::on_disk("sparse");
    let directory = Directory::new(&place.0);
    let length = 300 * MIB;
    directory.create("file", &[], length).unwrap();
    let Some(empty) = told(&directory, "file") else { return };
    assert_eq!(empty, []);
    // More extents than one answer has room for; not synced, so that their places are still to be found.
    let file = OpenOptions::new().write(true).open(place.0.join("file")).unwrap();
    let block = vec![1; 65536];
    for number in 0..300 {
        file.write_all_at(&block, number * MIB + 65536).unwrap();
    }
    let extents = told(&directory, "file").unwrap();
    check(&extents, length);
    assert_eq!(extents.len(), 300);
    for (number, extent) in extents.iter().enumerate() {
        assert_eq!((extent.logical, extent.bytes), (number as u64 * MIB + 65536, 65536));
    }
}

#[test]
fn files_that_grow_in_turn_lie_between_each_other() {
    let place = Place::on_disk("turns");
    let directory = Directory::new(&place.0);
    let block = vec![2; 128 << 10];
    let mut files = ["a", "b"].map(|name| File::create(place.0.join(name)).unwrap());
    for _ in 0..16 {
        for file in &mut files {
            file.write_all(&block).unwrap();
            // The place of what is new is chosen now, before the other file grows.
            file.sync_data().unwrap();
        }
    }
    let length = 16 * block.len() as u64;
    let (Some(a), Some(b)) = (told(&directory, "a"), told(&directory, "b")) else { return };
    for extents in [&a, &b] {
        check(extents, length);
        assert_eq!(total(extents), length);
    }
    apart(&[a.clone(), b.clone()].concat());
    println!("{} and {} extents", a.len(), b.len());
}

#[test]
fn where_nobody_tells_there_is_no_answer() {
    let Some(place) = Place::in_memory("nowhere") else { return };
    let directory = Directory::new(&place.0);
    directory.create("file", &[], 0).unwrap();
    let reserved = directory.reserve("file", 3 * MIB).unwrap();
    assert_eq!(directory.length("file"), Some(3 * MIB));
    println!("space in memory was reserved: {reserved}");
    assert_eq!(directory.extents("file").unwrap(), None);
}

#[test]
fn reserving_too_much_is_an_error_that_leaves_the_file() {
    let Some(place) = Place::in_memory("too-much") else { return };
    let directory = Directory::new(&place.0);
    directory.create("file", &[], 10).unwrap();
    // Asked of memory, since a disk would be filled to its end before it says so.
    let fault = directory.reserve("file", 1 << 52).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Storage);
    assert!(fault.text().contains("reserving the space of") && fault.text().contains("file"), "{fault}");
    assert!(fault.hint.contains("full"), "{fault}");
    assert_eq!(directory.length("file"), Some(10));
    let fault = directory.reserve("nothing", 1).unwrap_err();
    assert!(fault.text().contains("nothing"), "{fault}");
    assert!(directory.extents("nothing").is_err());
}
