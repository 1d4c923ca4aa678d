//! A death at any moment leaves the old or the new, where names cannot be exchanged.

use super::opening::{How, open_root};
use crate::mode::Mode;
use hyperslab_collective::attempts::{Entry, New};
use hyperslab_format::zarr::METADATA_KEY;
use hyperslab_world::wrappers::FailingNames;
use hyperslab_world::{Fault, FaultKind, MemoryTree, Names};
use std::sync::Arc;

/// Runs on copies of a tree that die after every number of changes, until one does not; `check` sees each.
fn at_every_death(
    made: impl Fn(&MemoryTree),
    run: impl Fn(&dyn Names) -> Result<(), Fault>,
    check: impl Fn(&MemoryTree, bool),
) {
    for changes in 0.. {
        let tree = MemoryTree::new().below("a.zarr");
        tree.make("").unwrap();
        made(&tree);
        let dead = Fault::new(FaultKind::Storage, "dead");
        let names = FailingNames::new(Arc::new(tree.clone()), changes, dead.clone());
        let result = run(&names);
        check(&tree, result.is_ok());
        match result {
            Ok(()) if !names.is_dead() => {
                assert!(changes > 1, "nothing was changed");
                return;
            }
            Ok(()) => {}
            Err(fault) => assert!(fault.text().contains(&dead.text()), "{fault}"),
        }
    }
}

fn content(names: &dyn Names, name: &str) -> Option<String> {
    names.read(name).unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
}

/// A store, as the first to open it leaves it.
fn store(tree: &MemoryTree) {
    drop(open_root(tree, Mode::Write, how()).unwrap());
}

fn how() -> How {
    How { durable: true, at_hand: true, until: std::time::Instant::now() + std::time::Duration::from_secs(60) }
}

#[test]
fn what_one_call_replaces_is_all_old_or_all_new_after_the_next_opening() {
    let arrays = ["rho", "u", "v"];
    let made = |tree: &MemoryTree| {
        store(tree);
        // Two are replaced, one is new.
        for name in &arrays[..2] {
            tree.make(name).unwrap();
            tree.write(&format!("{name}/f"), b"old", false).unwrap();
        }
    };
    let run = |names: &dyn Names| {
        let opened = open_root(names, Mode::Update, how())?;
        let (attempts, home) = (&opened.attempts, opened.attempts.home.clone());
        let mut entries = Vec::new();
        for name in arrays {
            let from =
                attempts.begin(&New { kind: "array", of: name, to: name, key: METADATA_KEY, overwrite: false })?;
            home.names.create(&format!("{from}/f"), b"new", 3)?;
            entries.push(Entry { from, to: home.name(name), replaces: true });
        }
        attempts.publish(&entries)?;
        attempts.end()
    };
    at_every_death(made, run, |tree, published| {
        let opened = open_root(tree, Mode::Update, how()).unwrap();
        let seen = arrays.map(|name| content(tree, &format!("{name}/f")));
        let old = [Some("old".to_string()), Some("old".to_string()), None];
        let new = arrays.map(|_| Some("new".to_string()));
        assert!(seen == new || (seen == old && !published), "{seen:?}");
        assert!(arrays.iter().all(|name| !tree.exists(&format!("{name}/.hyperslab-new"))));
        opened.attempts.end().unwrap();
        let mut expected: Vec<&str> = arrays.iter().filter(|name| tree.exists(name)).copied().collect();
        expected.push(METADATA_KEY);
        assert_eq!(tree.list("").unwrap(), expected, "nothing hidden is left");
        assert_eq!(beside(tree), ["a.zarr"], "nothing hidden is left");
    });
}

/// What lies beside the store.
fn beside(tree: &MemoryTree) -> Vec<String> {
    tree.at(&tree.above().unwrap().0).list("").unwrap()
}

#[test]
fn a_store_that_is_erased_is_old_or_new_after_the_next_opening() {
    let made = |tree: &MemoryTree| {
        store(tree);
        for name in ["a/c", "b"] {
            tree.make(name).unwrap();
            tree.write(&format!("{name}/f"), b"old", false).unwrap();
        }
    };
    let run = |names: &dyn Names| open_root(names, Mode::Write, how()).and_then(|opened| opened.attempts.end());
    at_every_death(made, run, |tree, erased| {
        let opened = open_root(tree, Mode::Update, how()).unwrap();
        let listed = tree.list("").unwrap();
        assert!(listed == [METADATA_KEY] || (listed == ["a", "b", METADATA_KEY] && !erased), "{listed:?}");
        opened.attempts.end().unwrap();
        assert_eq!(beside(tree), ["a.zarr"]);
    });
}
