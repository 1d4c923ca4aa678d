//! What every implementation of a seam must keep, as tests to run on it.

use crate::Names;

/// Tests names that are seen from a root that is an empty directory; leaves it empty.
///
/// # Panics
/// When the contract of [`Names`] is not kept.
pub fn names(names: &dyn Names) {
    assert_eq!(listed(names, ""), [""; 0], "the tests need an empty directory");
    absolute_names_mean_the_same(names);
    files_are_read_as_they_were_written(names);
    a_file_is_created_long_and_resized(names);
    directories_are_made_and_listed(names);
    a_rename_takes_all_along(names);
    an_exchange_leaves_both(names);
    what_is_removed_is_gone(names);
    what_is_missing_is_said(names);
    assert_eq!(listed(names, ""), [""; 0], "something is left");
}

fn listed(names: &dyn Names, name: &str) -> Vec<String> {
    names.list(name).expect("lists")
}

fn absolute_names_mean_the_same(names: &dyn Names) {
    let root = names.resolve().expect("has an absolute name");
    assert_eq!(names.full(""), root);
    names.make("d").expect("makes");
    names.write("d/f", b"1", true).expect("writes");
    let full = names.full("d/f");
    assert_eq!(names.full(&full), full, "an absolute name is its own");
    assert!(names.exists(&full) && names.exists("d/f") && names.exists("d/") && names.exists(""));
    let below = names.at(&names.full("d"));
    assert_eq!((below.full("f"), below.read("f").expect("reads")), (full, Some(b"1".to_vec())));
    assert_eq!(below.above(), Some((root.clone(), "d".to_string())));
    assert_eq!(below.at(&root).full(""), root);
    if let Some((above, name)) = names.above() {
        assert_eq!(names.at(&above).full(&name), root);
    }
    // A root need not exist, and can be made.
    let later = names.at(&names.full("later"));
    assert!(!later.exists("") && later.list("").expect("lists nothing").is_empty());
    later.make("").expect("makes itself");
    assert!(names.exists("later"));
    names.remove("later").expect("removes");
    names.remove("d").expect("removes");
}

fn files_are_read_as_they_were_written(names: &dyn Names) {
    for (content, sync) in [(&b"first"[..], true), (b"second, longer", false), (b"", true)] {
        names.write("f", content, sync).expect("writes");
        assert_eq!(names.read("f").expect("reads").as_deref(), Some(content));
        assert_eq!(names.length("f"), Some(content.len() as u64));
        let prefix = names.read_prefix("f", 3).expect("reads").expect("is there");
        assert_eq!(prefix, content[..content.len().min(3)]);
    }
    assert_eq!(listed(names, ""), ["f"], "a write leaves nothing beside");
    names.remove("f").expect("removes");
}

fn a_file_is_created_long_and_resized(names: &dyn Names) {
    names.write("f", &[9; 64], false).expect("writes");
    names.create("f", b"head", 10).expect("creates");
    assert_eq!(names.length("f"), Some(10));
    assert_eq!(names.read_prefix("f", 4).expect("reads").as_deref(), Some(&b"head"[..]));
    names.resize("f", 4).expect("shortens");
    names.resize("f", 8).expect("lengthens");
    assert_eq!(names.read("f").expect("reads").as_deref(), Some(&b"head\0\0\0\0"[..]));
    names.create("f", b"", 0).expect("creates nothing");
    assert_eq!(names.read("f").expect("reads").as_deref(), Some(&b""[..]));
    names.remove("f").expect("removes");
}

fn directories_are_made_and_listed(names: &dyn Names) {
    names.make("a/b/c").expect("makes those above");
    names.make("a/b").expect("one that exists is fine");
    // Names that a plain order of whole paths would tear apart.
    for name in ["a/b-c", "a/b.c", "a/b0", "a/.hidden"] {
        names.write(name, b"x", false).expect("writes");
    }
    assert_eq!(listed(names, "a"), [".hidden", "b", "b-c", "b.c", "b0"]);
    assert_eq!(listed(names, "a/"), listed(names, "a"));
    assert_eq!(listed(names, "a/b/c"), [""; 0]);
    assert_eq!(names.length("a/b"), None, "a directory has no length");
    names.make("a/b0").expect_err("a file is in the way");
    names.make("a/b0/d").expect_err("a file is in the way");
    names.write("a/b", b"x", false).expect_err("a directory is in the way");
    names.create("a/b", b"", 1).expect_err("a directory is in the way");
    names.read("a/b").expect_err("a directory is not read");
    names.remove_empty("a/b");
    names.remove_empty("a/b/c");
    names.remove_empty("a/nothing");
    assert!(names.exists("a/b") && !names.exists("a/b/c"));
    assert!(names.can_rename_from("a/b") && names.can_rename_from("new"));
    assert!(!names.exists("new") && !names.can_rename_from("no/such"));
    names.remove("a").expect("removes");
}

fn a_rename_takes_all_along(names: &dyn Names) {
    names.make("from/d").expect("makes");
    names.write("from/d/f", b"1", false).expect("writes");
    names.make("from-other").expect("makes");
    names.make("to").expect("makes");
    names.rename("from", "to/new").expect("renames");
    assert!(!names.exists("from") && names.exists("from-other"));
    assert_eq!(names.read("to/new/d/f").expect("reads").as_deref(), Some(&b"1"[..]));
    names.write("a", b"a", false).expect("writes");
    names.rename("a", "to/new/d/f").expect("renames over a file");
    assert_eq!(names.read("to/new/d/f").expect("reads").as_deref(), Some(&b"a"[..]));
    names.rename("a", "b").expect_err("nothing to rename");
    names.rename("to", "no/such").expect_err("no directory to rename to");
    names.rename("to", "to/new/inside").expect_err("nothing goes below itself");
    names.write("a", b"", false).expect("writes");
    names.rename("to", "a").expect_err("a directory does not replace a file");
    names.rename("a", "to").expect_err("a file does not replace a directory");
    assert!(names.exists("to/new/d/f") && names.exists("a"));
    ["a", "to", "from-other"].iter().for_each(|name| names.remove(name).expect("removes"));
}

fn an_exchange_leaves_both(names: &dyn Names) {
    names.make("d/e").expect("makes");
    names.make("other").expect("makes");
    names.write("d/e/f", b"1", false).expect("writes");
    names.write("other/g", b"2", false).expect("writes");
    let exchanged = names.exchange("d/e", "other").expect("exchanges, or cannot");
    let (of_d, of_other) = if exchanged { ("g", "f") } else { ("f", "g") };
    assert_eq!((listed(names, "d/e"), listed(names, "other")), (vec![of_d.to_string()], vec![of_other.to_string()]));
    if exchanged {
        names.exchange("d/e", "nothing").expect_err("both must be there");
    }
    ["d", "other"].iter().for_each(|name| names.remove(name).expect("removes"));
}

fn what_is_removed_is_gone(names: &dyn Names) {
    for discarded in [false, true] {
        names.make("d/e").expect("makes");
        names.create("d/e/f", b"1", 1000).expect("creates");
        names.write("g", b"", false).expect("writes");
        for name in ["nothing", "nothing/below", "g/below", "d", "g"] {
            if discarded {
                names.discard(name);
            } else {
                names.remove(name).expect("removes, or nothing is there");
            }
            assert!(!names.exists(name));
        }
        assert!(!names.exists("d/e/f"));
    }
}

fn what_is_missing_is_said(names: &dyn Names) {
    names.write("f", b"", false).expect("writes");
    for name in ["nothing", "nothing/below", "f/below"] {
        assert!(!names.exists(name));
        assert_eq!(names.read(name).expect("reads nothing"), None);
        assert_eq!(names.length(name), None);
        assert_eq!(listed(names, name), [""; 0]);
        let faults = [
            names.resize(name, 4).expect_err("nothing to resize"),
            names.sync(name).expect_err("nothing to sync"),
            names.sync_files(&[name.to_string()]).expect_err("nothing to sync"),
            names.rename(name, "g").expect_err("nothing to rename"),
        ];
        for fault in &faults[..3] {
            assert!(fault.text.contains(&names.full(name)), "which one is said: {fault}");
        }
    }
    names.write("nothing/below", b"", false).expect_err("no directory to write to");
    names.create("nothing/below", b"", 4).expect_err("no directory to create in");
    assert_eq!(listed(names, "f"), [""; 0]);
    names.sync_files(&["f".to_string()]).expect("syncs");
    names.sync("").expect("syncs");
    names.remove("f").expect("removes");
}
