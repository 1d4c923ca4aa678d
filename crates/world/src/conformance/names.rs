//! What directories and files by name must keep.

use crate::{Claim, Locked, Names};

/// Tests names that are seen from a root that is an empty directory; leaves it empty.
///
/// # Panics
/// When the contract of [`Names`] is not kept.
pub fn names(names: &dyn Names) {
    assert_eq!(listed(names, ""), [""; 0], "the tests need an empty directory");
    the_same_is_seen_from_other_roots(names);
    files_are_read_as_they_were_written(names);
    a_claim_keeps_others_out_until_it_is_dropped(names);
    a_shared_file_is_edited_and_ends_with_its_last_word(names);
    new_names_replace_nothing(names);
    a_file_may_have_several_names(names);
    a_new_file_is_written_once(names);
    a_file_is_created_long_and_resized(names);
    directories_are_made_and_listed(names);
    a_rename_takes_all_along(names);
    a_rename_that_is_done_is_complete(names);
    an_exchange_leaves_both(names);
    what_is_removed_is_gone(names);
    what_is_missing_is_said(names);
    assert_eq!(listed(names, ""), [""; 0], "something is left");
}

pub(super) fn listed(names: &dyn Names, name: &str) -> Vec<String> {
    names.list(name).expect("lists")
}

fn the_same_is_seen_from_other_roots(names: &dyn Names) {
    let root = names.resolve().expect("has an absolute name");
    assert_eq!(names.full(""), root);
    names.make("d").expect("makes");
    names.write("d/f", b"1", true).expect("writes");
    let full = names.full("d/f");
    assert!(names.exists("d/f") && names.exists("d/") && names.exists(""));
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

pub(super) fn files_are_read_as_they_were_written(names: &dyn Names) {
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

fn a_claim_keeps_others_out_until_it_is_dropped(names: &dyn Names) {
    let Claim::New(ours) = names.claim("m", b"one", true).expect("claims") else { panic!("it was not there before") };
    assert_eq!(names.note("m").expect("reads").as_deref(), Some(&b"one"[..]));
    match names.claim("m", b"two", false).expect("asks") {
        Claim::Busy(note) => assert_eq!(note, b"one"),
        _ => panic!("somebody has it"),
    }
    ours.add(b" more").expect("adds");
    drop(ours);
    match names.claim("m", b"three", false).expect("claims") {
        Claim::Left(lock, note) => {
            assert_eq!(note, b"one more");
            lock.cut(3).expect("cuts");
            lock.add(b", two").expect("adds");
        }
        _ => panic!("nobody has it, but it is there"),
    }
    assert_eq!(names.note("m").expect("reads").as_deref(), Some(&b"one, two"[..]));
    assert_eq!(listed(names, ""), ["m"], "a claim leaves nothing beside");
    names.remove("m").expect("removes");
    assert!(matches!(names.claim("m", b"", false), Ok(Claim::New(_))));
    names.remove("m").expect("removes");
    assert!(names.claim("none/m", b"note", true).is_err() && !names.exists("none"));
}

fn a_shared_file_is_edited_and_ends_with_its_last_word(names: &dyn Names) {
    names.edit("e", &mut |before| before, &mut || Ok(())).expect("leaves nothing where nothing was");
    assert!(!names.exists("e"));
    for (expected, next) in [(&b""[..], &b"a\n"[..]), (b"a\n", b"a\nb\n"), (b"a\nb\n", b"b\n"), (b"b\n", b"")] {
        let mut change = |before: Vec<u8>| {
            assert_eq!(before, expected);
            next.to_vec()
        };
        let mut then = || {
            let note = names.note("e")?.unwrap_or_default();
            let lines = note.split_inclusive(|&byte| byte == b'\n').filter(|line| *line != b"\n");
            assert_eq!(lines.collect::<Vec<_>>().concat(), next, "what follows comes after the change");
            Ok(())
        };
        names.edit("e", &mut change, &mut then).expect("edits");
    }
    assert!(!names.exists("e"), "what holds nothing is gone");
    names.edit("e", &mut |_| b"long and old\n".to_vec(), &mut || Ok(())).expect("edits");
    names.append("e", b"added\n").expect("appends");
    let mut then = || names.append("e", b"added alone\n");
    let mut change = |before: Vec<u8>| {
        assert_eq!(before, b"long and old\nadded\n");
        b"added\n".to_vec()
    };
    names.edit("e", &mut change, &mut then).expect("edits");
    let mut change = |before: Vec<u8>| {
        assert_eq!(before, b"added\nadded alone\n");
        Vec::new()
    };
    names.edit("e", &mut change, &mut || Ok(())).expect("edits");
    assert!(!names.exists("e"));
    assert!(names.edit("none/e", &mut |_| b"x".to_vec(), &mut || Ok(())).is_err() && !names.exists("none"));
}

fn new_names_replace_nothing(names: &dyn Names) {
    assert!(names.make_new("d").expect("makes"));
    assert!(!names.make_new("d").expect("is taken"));
    names.make_new("none/d").expect_err("no directory to make it in");
    names.make_durable("a/b").expect("makes");
    names.write("d/f", b"1", false).expect("writes");
    names.write("a/f", b"2", false).expect("writes");
    assert!(!names.rename_new("d", "a").expect("is taken") && names.exists("d/f"));
    assert!(!names.rename_new("d/f", "a/f").expect("is taken"));
    assert!(names.rename_new("d", "a/d").expect("renames") && !names.exists("d"));
    assert_eq!(names.read("a/f").expect("reads").as_deref(), Some(&b"2"[..]));
    assert!(names.rename_new("a/d/f", "g").expect("renames") && !names.exists("a/d/f"));
    names.rename_new("nothing", "h").expect_err("nothing to rename");
    assert!(!names.is_link("a/d") && !names.is_link("nothing"));
    let held = names.hold("a").expect("holds");
    assert_eq!(names.hold("a").expect("holds").identity, held.identity);
    assert_eq!(names.identity("a").expect("looks"), Some(held.identity));
    names.hold("nothing").map(drop).expect_err("nothing to hold");
    for nothing in ["nothing", "nothing/below", "g/below"] {
        assert_eq!(names.identity(nothing).expect("looks"), None, "{nothing}");
    }
    ["a", "g"].iter().for_each(|name| names.remove(name).expect("removes"));
}

fn a_file_may_have_several_names(names: &dyn Names) {
    names.write("f", b"1", false).expect("writes");
    names.write("g", b"2", false).expect("writes");
    assert!(!names.link("f", "g").expect("is taken"));
    assert_eq!(names.link("f", "h").expect("links"), names.has_links());
    if names.has_links() {
        assert_eq!(names.identity("f").expect("is there"), names.identity("h").expect("is there"));
        names.overwrite("h", b"3", false).expect("overwrites");
        assert_eq!(names.read("f").expect("reads").as_deref(), Some(&b"3"[..]));
        let lock = names.lock("f").expect("locks");
        assert!(matches!(lock, Locked::Ours(_)) && matches!(names.lock("h").expect("looks"), Locked::Busy));
        // What has another name stays.
        names.discard("f");
        assert_eq!(names.read("h").expect("reads").as_deref(), Some(&b"3"[..]));
        names.link("f", "i").expect_err("nothing to link");
    }
    ["f", "g", "h"].iter().for_each(|name| names.remove(name).expect("removes"));
}

pub(super) fn a_new_file_is_written_once(names: &dyn Names) {
    assert!(names.write_new("n", b"first", true).expect("writes"));
    assert!(!names.write_new("n", b"second", false).expect("is taken"));
    assert_eq!(names.read("n").expect("reads").as_deref(), Some(&b"first"[..]));
    assert_eq!(listed(names, ""), ["n"], "it leaves nothing beside");
    let seen = names.version("n").expect("is there");
    assert!(names.replace("n", b"second, longer", &seen).expect("replaces"));
    assert_eq!(names.read("n").expect("reads").as_deref(), Some(&b"second, longer"[..]));
    if !seen.is_empty() {
        assert!(!names.replace("n", b"third", &seen).expect("it has changed"));
    }
    names.remove("n").expect("removes");
}

fn a_file_is_created_long_and_resized(names: &dyn Names) {
    names.write("f", &[9; 64], false).expect("writes");
    names.create("f", b"headtail", 10).expect("creates");
    assert_eq!(names.length("f"), Some(10));
    assert_eq!(names.read_prefix("f", 8).expect("reads").as_deref(), Some(&b"headtail"[..]));
    names.overwrite_part("f", 3, b"-x-").expect("overwrites");
    assert_eq!(names.read_prefix("f", 8).expect("reads").as_deref(), Some(&b"hea-x-il"[..]));
    names.overwrite_part("f", 0, b"headtail").expect("overwrites");
    for (at, bytes, found) in [(0, 4, "head"), (2, 4, "adta"), (6, 9, "il\0\0"), (8, 1, "\0"), (10, 1, ""), (99, 1, "")]
    {
        let part = names.read_part("f", at, bytes).expect("reads").expect("is there");
        assert_eq!(part, found.as_bytes(), "{bytes} B from {at} on");
    }
    assert_eq!(names.read_part("none", 0, 1).expect("reads"), None);
    names.resize("f", 4).expect("shortens");
    names.resize("f", 8).expect("lengthens");
    assert_eq!(names.read("f").expect("reads").as_deref(), Some(&b"head\0\0\0\0"[..]));
    names.overwrite("f", b"foot", true).expect("overwrites the first bytes");
    names.overwrite("f", b"", false).expect("overwrites nothing");
    assert_eq!(names.read("f").expect("reads").as_deref(), Some(&b"foot\0\0\0\0"[..]));
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
    assert!(names.can_rename("a/b", "a") && names.can_rename("new", ""));
    assert!(!names.exists("new") && !names.can_rename("no/such", ""));
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

fn a_rename_that_is_done_is_complete(names: &dyn Names) {
    let nothing_is_left = || {
        assert!(!names.complete(".hidden", "f").expect("has nothing to complete"));
        ["f", ".hidden", "nothing"].iter().for_each(|name| names.check(name).expect("is whole, or not there"));
    };
    nothing_is_left();
    for content in [&b"first"[..], b"second, longer"] {
        names.create(".hidden", content, 20).expect("creates");
        nothing_is_left();
        names.rename(".hidden", "f").expect("renames");
        nothing_is_left();
        assert_eq!(names.read_prefix("f", content.len() as u64).expect("reads").as_deref(), Some(content));
        assert!(!names.exists(".hidden"));
    }
    names.remove("f").expect("removes");
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
            names.overwrite(name, b"x", false).expect_err("nothing to overwrite"),
            names.sync(name).expect_err("nothing to sync"),
            names.sync_files(&[name.to_string()]).expect_err("nothing to sync"),
            names.sync_content(name).expect_err("nothing to sync"),
            names.rename(name, "g").expect_err("nothing to rename"),
        ];
        for fault in &faults[..4] {
            assert!(fault.text().contains(&names.full(name)), "which one is said: {fault}");
        }
    }
    names.write("nothing/below", b"", false).expect_err("no directory to write to");
    names.create("nothing/below", b"", 4).expect_err("no directory to create in");
    assert_eq!(listed(names, "f"), [""; 0]);
    names.sync_files(&["f".to_string()]).expect("syncs");
    names.sync_content("f").expect("syncs");
    names.sync("").expect("syncs");
    names.remove("f").expect("removes");
}
