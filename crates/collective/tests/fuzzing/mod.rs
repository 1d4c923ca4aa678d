//! What must hold of what owners leave on disk whatever it says: the body of a target in `fuzz/`, which an ordinary test
//! carries out with the cases that were saved.

use hyperslab_collective::attempts::{Found, Home, Whose, clean, complete, recover};
use hyperslab_world::{Fault, FaultKind, MemoryTree, Names, TreeDeed, Witness};
use std::sync::Arc;

/// A target, and what is asserted of any input.
pub(crate) type FuzzTarget = (&'static str, fn(&[u8]));

/// The targets, by the names of their folders.
pub(crate) const TARGETS: &[FuzzTarget] = &[("attempts", check)];

/// The token that seeds have.
const ROOT: &str = ".a.zarr.hyperslab-0123456789abcdef0123456789abcdef";

/// Files whose bytes are the parts of an input, one behind another.
const NOTES: [&str; 6] = ["", "/owner", "/4-publish", "a.zarr/rho/.hyperslab-update", "a.zarr/.hyperslab/owners", "*"];

/// Files that are as they should be.
const FILES: [&str; 9] = [
    "a.zarr/zarr.json",
    "a.zarr/rho/zarr.json",
    "a.zarr/rho/c/0",
    "other.zarr/zarr.json",
    ".other.zarr.hyperslab-0123456789abcdef0123456789abcdef/owner",
    "a.zarr.h5",
    "/1-array-new/zarr.json",
    "/2-array.7-rho/zarr.json",
    "/3-updates-/0",
];

/// A directory with a store, what a program left beside it, and other things.
fn directory(bytes: &[u8]) -> MemoryTree {
    let tree = MemoryTree::new();
    let name = |name: &str| if name.starts_with('/') { format!("{ROOT}{name}") } else { name.to_string() };
    let put = |name: &str, bytes: &[u8]| {
        if let Some((above, _)) = name.rsplit_once('/') {
            tree.make(above).unwrap();
        }
        tree.write(name, bytes, false).unwrap();
    };
    FILES.iter().for_each(|file| put(&name(file), file.as_bytes()));
    let mut parts = bytes.split(|byte| *byte == 0xff);
    for note in NOTES {
        let Some(part) = parts.next() else { break };
        match note {
            "" => put(".a.zarr.hyperslab-owners", part),
            "*" => put(".a.zarr.hyperslab-update", part),
            other => put(&name(other), part),
        }
    }
    tree
}

/// What lies beside the store and is of others, whom nobody believes.
#[derive(Clone, Copy, PartialEq)]
enum Strange {
    /// The lists of owners.
    Lists,
    /// What the lists lead to.
    Root,
    /// The same, of which a place says so only when it is asked: nothing else that is done to it is refused. So it is where a
    /// root has no record of its owner that could be refused, or has lost its name.
    RootIfAsked,
}

impl Witness for Strange {
    fn before(&self, deed: TreeDeed) -> Result<(), Fault> {
        let is_root = deed.name.starts_with(ROOT) || deed.name.starts_with(&ROOT.replace("slab-", "slab-gone-"));
        let is_list = ["/owners", "slab-owners", "slab-update"].iter().any(|list| deed.name.ends_with(list));
        let asks = ["reading", "locking", "editing", "claiming", "adding to", "believing"].contains(&deed.verb);
        let is_refused = match self {
            Strange::Lists => asks && is_list,
            Strange::Root => asks && is_root,
            Strange::RootIfAsked => deed.verb == "believing" && is_root,
        };
        match is_refused {
            true => Err(Fault::new(FaultKind::Foreign, format!("'{}' is not believed", deed.name))),
            false => Ok(()),
        }
    }
}

/// What others have planted changes nothing, and who only reads goes on.
fn check_strange(bytes: &[u8]) {
    for kind in [Strange::Lists, Strange::Root, Strange::RootIfAsked] {
        let tree = directory(bytes);
        let before = tree.files();
        let strange = tree.watched(Arc::new(kind));
        let home = Home::beside(strange.at(&strange.full("")), "a.zarr");
        let _ = complete(&home);
        recover(&home, Whose::Named).expect("who only reads goes on");
        assert_eq!(tree.files(), before, "who only reads changes nothing");
        for whose in [Whose::Dead, Whose::Unknown] {
            let _ = recover(&home, whose);
        }
        let _ = clean(&strange.below("a.zarr"), false);
        // A root without a list that is believed has no owner.
        let is_kept = |file: &&(String, Vec<u8>)| {
            kind != Strange::Lists && file.0.starts_with(ROOT)
                || file.0.starts_with("a.zarr/rho/") && !file.0.ends_with("-update")
        };
        let after = tree.files();
        assert!(before.iter().filter(is_kept).eq(after.iter().filter(is_kept)), "strangers changed it: {after:?}");
        assert!(after.iter().all(|file| !file.0.starts_with("a.zarr/new")), "strangers published: {after:?}");
    }
}

fn check(bytes: &[u8]) {
    check_strange(bytes);
    let of = |tree: &MemoryTree| Home::beside(tree.at(&tree.full("")), "a.zarr");
    let is_other =
        |file: &&(String, Vec<u8>)| !file.0.starts_with("a.zarr/") && !file.0.starts_with(".a.zarr.hyperslab-");
    for whose in [Whose::Named, Whose::Dead, Whose::Unknown] {
        let tree = directory(bytes);
        let before = tree.files();
        let Ok(found) = recover(&of(&tree), whose) else { continue };
        let after = tree.files();
        assert!(
            before.iter().filter(is_other).eq(after.iter().filter(is_other)),
            "{whose:?} changed others: {after:?}"
        );
        if whose == Whose::Named {
            assert!(before == after && found.removed.is_empty(), "who only looks changes nothing");
            continue;
        }
        let visible = |file: &&(String, Vec<u8>)| file.0.starts_with("a.zarr/") && !file.0.contains(".hyperslab");
        for (name, bytes) in after.iter().filter(visible) {
            let text = String::from_utf8_lossy(bytes);
            let has = |file: &&&str| text == ***file;
            assert!(FILES.iter().any(|file| has(&file)), "'{name}' has {text:?}");
        }
        if let Ok(again) = recover(&of(&tree), whose) {
            assert_eq!(again.removed, Found::default().removed, "what was removed is gone");
        }
    }
    let tree = directory(bytes);
    let _ = complete(&of(&tree));
    let before = tree.files();
    let store = tree.below("a.zarr");
    let _ = clean(&store, true);
    assert_eq!(tree.files(), before, "who only says what would be removed changes nothing");
    let _ = clean(&store, false);
    let after = tree.files();
    assert!(before.iter().filter(is_other).eq(after.iter().filter(is_other)), "clean changed others: {after:?}");
}
