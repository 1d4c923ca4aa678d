//! What buckets must keep, and names and objects in them, which can do less than directories and files.

use super::names::{a_new_file_is_written_once, files_are_read_as_they_were_written, listed};
use super::{Objects, empty, numbered, transposed};
use crate::{Bucket, Claim, Locked, Moves, Names, PutOutcome, Request, Root, Store, Tags, When};
use hyperslab_layout::Object;

/// Tests an empty bucket, as two programs see it that may be the same; leaves it empty.
///
/// # Panics
/// When the contract of [`Bucket`] is not kept.
pub fn bucket(one: &dyn Bucket, other: &dyn Bucket) {
    assert_eq!(one.keys("").expect("lists"), [""; 0], "the tests need an empty bucket");
    objects_are_put_under_conditions(one, other);
    of_many_that_put_at_once_one_does(one, other);
    objects_are_read_in_ranges(one, other);
    keys_are_listed_page_by_page(one, other);
    assert_ne!(one.token(), other.token());
    assert_eq!((one.token().len(), one.lives(&one.process())), (32, Some(true)));
    assert_eq!(one.keys("").expect("lists"), [""; 0], "something is left");
}

fn tags(of: &str) -> Tags {
    Tags::from([("made-by".to_string(), of.to_string())])
}

fn objects_are_put_under_conditions(one: &dyn Bucket, other: &dyn Bucket) {
    let put = |bucket: &dyn Bucket, content: &[u8], when: &When| {
        bucket.put("a/x", content, &tags("one"), when).expect("gets a reply")
    };
    let unknown = When::Version("none".into());
    assert_eq!(put(one, b"0", &unknown), None, "nothing is there to be replaced");
    let first = put(one, b"1", &When::Absent).expect("nothing was there");
    assert_eq!(put(other, b"2", &When::Absent), None, "somebody has it");
    assert_eq!(put(other, b"2", &unknown), None, "it is another version");
    let (head, content) = other.get("a/x", None).expect("reads").expect("is there");
    assert_eq!((&head.version, head.bytes, &head.tags, &*content), (&first, 1, &tags("one"), &b"1"[..]));
    assert_eq!(one.head("a/x").expect("looks"), Some(head));
    let second = put(other, b"22", &When::Version(first.clone())).expect("it was that version");
    assert_ne!(first, second);
    assert_eq!(put(one, b"3", &When::Version(first.clone())), None, "it has changed since");
    assert!(!one.delete("a/x", &first).expect("replies"), "another version has the key, and keeps it");
    assert_eq!(one.head("a/x").expect("looks").map(|head| head.version), Some(second.clone()));
    assert!(one.delete("a/x", &second).expect("deletes"));
    assert!(one.delete("a/x", &second).expect("replies"), "nothing to delete is fine");
    assert_eq!(put(one, b"3", &When::Version(second.clone())), None, "it is gone");
    assert_eq!((one.get("a/x", None).expect("asks"), other.head("a/x").expect("asks")), (None, None));
    // The same bytes again are another version: who saw the first one saw another object.
    let again = put(one, b"1", &When::Absent).expect("nothing was there");
    assert_ne!(first, again);
    assert!(!other.delete("a/x", &second).expect("replies"), "what was deleted is another version");
    assert_eq!(other.head("a/x").expect("looks").map(|head| head.version), Some(again.clone()));
    assert!(other.delete("a/x", &again).expect("deletes"));
}

fn of_many_that_put_at_once_one_does(one: &dyn Bucket, other: &dyn Bucket) {
    for turn in 0..50 {
        let put = |bucket: &dyn Bucket| bucket.place("x", &[turn as u8], &tags("x"), &When::Absent).expect("replies");
        #[allow(clippy::disallowed_methods, reason = "a contract of what happens at the same time")]
        let done: Vec<PutOutcome> = std::thread::scope(|scope| {
            let both = [one, other].map(|bucket| scope.spawn(move || put(bucket)));
            both.into_iter().map(|one| one.join().expect("does not panic")).collect()
        });
        let ours = done.iter().filter(|placed| matches!(placed, PutOutcome::Ours(_))).count();
        assert_eq!(ours, 1, "turn {turn}: {done:?}");
        one.remove("x").expect("deletes");
    }
}

fn objects_are_read_in_ranges(one: &dyn Bucket, other: &dyn Bucket) {
    one.put("x", b"0123456789", &Tags::new(), &When::Absent).expect("puts");
    for (first, bytes, expected) in [
        (0, 3, "012"),
        (4, 6, "456789"),
        (7, 100, "789"),
        (10, 1, ""),
        (99, 1, ""),
        (3, 0, ""),
        (2, u64::MAX, "23456789"),
    ] {
        let (head, content) = other.get("x", Some((first, bytes))).expect("reads").expect("is there");
        assert_eq!((head.bytes, &*content), (10, expected.as_bytes()), "{bytes} B from {first} on");
    }
    one.remove("x").expect("deletes");
}

fn keys_are_listed_page_by_page(one: &dyn Bucket, other: &dyn Bucket) {
    // More than any page has.
    let many = 2500;
    let mut keys: Vec<String> = (0..many).map(|number| format!("d/{number:04}")).collect();
    // Names that an order of parts of paths would put elsewhere.
    keys.extend(["d-", "d.x", "d/0000/below", "d/0001.x", "d0", "e/f/g"].map(String::from));
    keys.iter().for_each(|key| drop(one.put(key, b"", &Tags::new(), &When::Absent).expect("puts")));
    keys.sort_unstable();
    assert_eq!(other.keys("").expect("lists"), keys);
    assert_eq!(other.keys("d/000").expect("lists").len(), 12);
    assert_eq!(other.keys("none").expect("lists"), [""; 0]);
    let page = other.list("", None, true).expect("lists");
    assert_eq!(
        (page.keys, page.beginnings),
        (vec!["d-".into(), "d.x".into(), "d0".into()], vec!["d/".into(), "e/".into()])
    );
    let (mut found, mut below, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = other.list("d/", after.as_deref(), true).expect("lists");
        found.extend(page.keys);
        below.extend(page.beginnings);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((found.len(), below), (many + 1, vec!["d/0000/".to_string()]));
    keys.iter().for_each(|key| one.remove(key).expect("deletes"));
}

/// Tests names in a bucket from a root below which nothing lies; leaves nothing there.
///
/// # Panics
/// When what [`Names`] promises of places without directories is not kept.
pub fn names_of_objects(names: &dyn Names) {
    assert_eq!(listed(names, ""), [""; 0], "the tests need an empty root");
    files_are_read_as_they_were_written(names);
    a_new_file_is_written_once(names);
    a_directory_is_what_something_lies_below(names);
    a_note_has_one_owner_at_a_time(names);
    assert_eq!(listed(names, ""), [""; 0], "something is left");
}

fn a_directory_is_what_something_lies_below(names: &dyn Names) {
    let root = names.resolve().expect("has an absolute name");
    assert_eq!(names.full(""), root);
    names.make("d").expect("has nothing to make");
    assert!(names.make_new("d").expect("is free") && !names.exists("d"));
    names.write("d/e/f", b"1", true).expect("writes");
    names.write("d-", b"2", true).expect("writes");
    assert!(["d", "d/", "d/e", "d/e/f"].iter().all(|name| names.exists(name)));
    assert_eq!((names.length("d"), names.length("d/e/f")), (None, Some(1)));
    assert_eq!((listed(names, ""), listed(names, "d/")), (vec!["d".into(), "d-".into()], vec!["e".into()]));
    assert!(!names.make_new("d").expect("is taken") && !names.make_new("d-").expect("is taken"));
    let below = names.at(&names.full("d"));
    assert_eq!(below.full("e/f"), names.full("d/e/f"));
    assert_eq!(below.above(), Some((root.clone(), "d".to_string())));
    assert_eq!(below.at(&root).full(""), root);
    names.hold("d").expect("is there");
    names.hold("nothing").map(drop).expect_err("nothing to hold");
    names.remove("d").expect("removes");
    names.discard("d-");
    names.remove("nothing").expect("nothing there is fine");
    assert!(!names.exists("d") && !names.exists("d-"));
}

fn a_note_has_one_owner_at_a_time(names: &dyn Names) {
    let Claim::New(ours) = names.claim("m", b"one", true).expect("claims") else { panic!("it was not there before") };
    assert!(ours.has_its_name().expect("looks") && !ours.keeps_others_out());
    ours.add(b" more").expect("adds");
    let Claim::Left(theirs, note) = names.claim("m", b"two", true).expect("asks") else { panic!("it is there") };
    assert_eq!(note, b"one more");
    theirs.add(b", two").expect("takes it over");
    assert!(!ours.has_its_name().expect("looks"), "it was taken over");
    assert!(ours.add(b"late").is_err() && ours.cut(1).is_err());
    theirs.cut(3).expect("cuts");
    assert_eq!(names.note("m").expect("reads").as_deref(), Some(&b"one"[..]));
    assert!(matches!(names.lock("m"), Ok(Locked::Ours(_))) && matches!(names.lock("none"), Ok(Locked::Absent)));
    names.append("m", b"\nlast").expect("appends");
    names.edit("m", &mut |before| before[4..].to_vec(), &mut || Ok(())).expect("edits");
    assert_eq!(names.note("m").expect("reads").as_deref(), Some(&b"last"[..]));
    names.edit("m", &mut |_| Vec::new(), &mut || Ok(())).expect("edits");
    assert!(!names.exists("m"), "what holds nothing is gone");
}

/// Tests a store that takes whole objects only, on those whose names begin with `below` and a slash; leaves them there.
///
/// # Panics
/// When what [`Store`] promises of whole objects is not kept.
pub fn whole_objects(store: &mut dyn Store, below: &str) {
    store.enter([Root::new(below)].into());
    let mut objects = Objects { store, below, ticket: 0 };
    objects.whole_objects();
    objects.rows_in_parts();
    objects.bytes();
    objects.what_is_missing();
    objects.many_at_once();
    objects.names_below_several_roots();
    objects.stretches();
    objects.carry_out(Request::Sync { below: ["".into()].into() }).expect("syncs");
}

impl Objects<'_> {
    /// Elements are read from where they lie in a longer object.
    fn stretches(&mut self) {
        let columns: Vec<u8> = (0..15u16).flat_map(|i| (i % 3 * 5 + i / 3).to_ne_bytes()).collect();
        self.put("file", &[&[0xEE; 8][..], &columns, &[0xEE; 3]].concat());
        let (object, target) = (Object::from("file"), empty());
        self.moved(Request::Read { object: object.clone(), moves: transposed(&target, 8), direct: false });
        assert_eq!(target.to_vec(0, 30), numbered().to_vec(0, 30));
        self.corrupt(Request::Read { object, moves: transposed(&target, 12), direct: false });
    }
}

/// Some elements, for tests of requests that are refused.
pub fn some_moves() -> Moves {
    transposed(&numbered(), 8)
}
