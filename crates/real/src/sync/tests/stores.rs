//! Models of the store of files, whose caller does short work himself while its worker has nothing to do.

use super::explore;
use crate::PosixStore;
use crate::wire::Bell;
use hyperslab_layout::{Durability, ElementType, Kind, Region, View};
use hyperslab_pack::Memory;
use hyperslab_world::{Moves, Request, Root, Store};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const BYTES: u64 = 16;

/// A folder for one model, with a file of zeros, until it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Arc<Folder> {
        let path = std::env::temp_dir().join(format!("hyperslab-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("data"), [0; BYTES as usize]).unwrap();
        Arc::new(Folder(path))
    }

    fn root(&self) -> Arc<[Root]> {
        [Root::new(self.0.to_string_lossy())].into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn moves(memory: Memory) -> Moves {
    let (region, element) = (Region::whole(&[BYTES]), ElementType::native(Kind::UInt8));
    let view = Arc::new(View::held(&region, 0, &[1], element));
    Moves { region, memory, here: view.clone(), there: view }
}

fn write(value: u8) -> Request {
    let moves = moves(Memory::from_vec(vec![value; BYTES as usize]));
    Request::Write { object: "data".into(), moves, direct: false, durability: Durability::Soon }
}

fn read(memory: &Memory) -> Request {
    Request::Read { object: "data".into(), moves: moves(memory.clone()), direct: false }
}

/// Waits until so many requests are over.
fn finish(store: &mut PosixStore, bell: &Bell, requests: usize) {
    let mut done = Vec::new();
    loop {
        store.poll(&mut done);
        if done.len() == requests {
            assert!(done.iter().all(|(_, result)| result.is_ok()), "{done:?}");
            return;
        }
        bell.wait(Duration::MAX);
    }
}

#[test]
fn who_reads_sees_what_was_written_before() {
    let folder = Folder::new("read-behind-write");
    explore("read behind write", move || {
        let bell = Bell::default();
        let mut store = PosixStore::new(bell.clone());
        store.enter(folder.root());
        for value in 1..=2 {
            let memory = Memory::from_vec(vec![0; BYTES as usize]);
            store.submit(1, write(value));
            store.submit(2, read(&memory));
            finish(&mut store, &bell, 2);
            assert_eq!(memory.to_vec(0, BYTES), [value; BYTES as usize]);
        }
        store.release();
    });
}

#[test]
fn a_store_that_is_dropped_finishes_what_it_has() {
    let folder = Folder::new("dropped-store");
    explore("dropped store", move || {
        let memory = Memory::from_vec(vec![7; BYTES as usize]);
        let mut store = PosixStore::new(Bell::default());
        store.enter(folder.root());
        store.submit(1, read(&memory));
        store.submit(2, write(0));
        drop(store);
    });
}
