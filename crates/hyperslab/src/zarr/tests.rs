//! A death at any moment leaves the old or the new, where names cannot be exchanged.

use super::writing::publish;
use super::{Mode, clean, open_root, staging};
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
            Err(fault) => assert_eq!(fault.text, dead.text),
        }
    }
}

fn content(names: &dyn Names, name: &str) -> Option<String> {
    names.read(name).unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn what_is_replaced_is_old_or_new_after_the_next_opening() {
    for inside in [false, true] {
        let hidden = |names: &dyn Names| {
            let staging = if inside { ".hyperslab".to_string() } else { staging(names, Mode::Update) };
            assert_eq!(staging.starts_with("memory://"), !inside);
            format!("{staging}/arrays/rho")
        };
        let made = |tree: &MemoryTree| {
            for (directory, text) in [("rho".to_string(), "old"), (hidden(tree), "new")] {
                tree.make(&directory).unwrap();
                tree.write(&format!("{directory}/f"), text.as_bytes(), false).unwrap();
            }
        };
        let run = |names: &dyn Names| publish(names, &hidden(names), "rho");
        at_every_death(made, run, |tree, published| {
            // Readers find one of them, or for a moment nothing, and then the next opening brings the old one back.
            let seen = content(tree, "rho/f");
            let cleaned = clean(tree).unwrap();
            let after = content(tree, "rho/f").unwrap();
            assert_eq!(after, seen.unwrap_or("old".into()));
            assert!(after == "new" || (after == "old" && !published), "{after}");
            assert!(cleaned.iter().all(|name| name == "rho"), "{cleaned:?}");
            assert_eq!(tree.list("").unwrap(), ["rho"], "nothing hidden is left");
        });
    }
}

#[test]
fn a_store_that_is_erased_can_always_be_opened_anew() {
    let made = |tree: &MemoryTree| {
        open_root(tree, Mode::Write).unwrap();
        for name in ["a/c", "b", ".hyperslab/steps/0001"] {
            tree.make(name).unwrap();
            tree.write(&format!("{name}/f"), b"old", false).unwrap();
        }
    };
    let run = |names: &dyn Names| open_root(names, Mode::Write).map(|_| ());
    at_every_death(made, run, |tree, erased| {
        assert!(tree.exists(METADATA_KEY));
        assert!(!erased || tree.list("").unwrap() == [METADATA_KEY]);
        open_root(tree, Mode::Update).unwrap();
        assert!(!tree.exists(".hyperslab"));
        open_root(tree, Mode::Write).unwrap();
        assert_eq!(tree.list("").unwrap(), [METADATA_KEY]);
    });
}
