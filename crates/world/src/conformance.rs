//! What every implementation of a seam must keep, as tests to run on it.

pub mod buckets;
mod names;

use crate::{Fault, FaultKind, Moved, Moves, Outcome, Request, Root, Store, Within};
use hyperslab_layout::{Durability, ElementType, IndexSet, Kind, Object, Region, View, dense_strides};
use hyperslab_pack::Memory;
pub use names::names;
use std::sync::Arc;

/// Tests a store on objects whose names begin with `below` and a slash; leaves them there.
///
/// # Panics
/// When the contract of [`Store`] is not kept.
pub fn objects(store: &mut dyn Store, below: &str) {
    store.enter([Root::new(below)].into());
    Objects { store, below, ticket: 0 }.all();
}

/// A store under test.
struct Objects<'a> {
    store: &'a mut dyn Store,
    below: &'a str,
    ticket: u64,
}

/// Rows and columns of the array that is moved: of 2-byte elements, transposed in the object.
const SHAPE: [u64; 2] = [3, 5];

/// The elements of `memory` in row-major order, at `offset` of an object in column-major order.
fn transposed(memory: &Memory, offset: i64) -> Moves {
    let region = Region::whole(&SHAPE);
    let element = ElementType::native(Kind::UInt16);
    let here = View::held(&region, 0, &dense_strides(&SHAPE, &[0, 1], 2), element);
    let there = View::held(&region, offset, &dense_strides(&SHAPE, &[1, 0], 2), element);
    Moves { region, memory: memory.clone(), here: Arc::new(here), there: Arc::new(there) }
}

fn numbered() -> Memory {
    Memory::from_vec((0..15u16).flat_map(u16::to_ne_bytes).collect())
}

fn empty() -> Memory {
    Memory::allocate(30).expect("30 B")
}

impl Objects<'_> {
    fn all(&mut self) {
        self.whole_objects();
        self.parts_of_objects();
        self.rows();
        self.rows_in_parts();
        self.bytes();
        self.what_is_missing();
        self.many_at_once();
        self.names_below_several_roots();
        self.carry_out(Request::Sync { below: ["".into()].into() }).expect("syncs");
    }

    /// The same name means another object below each root, and a number what it meant when the request was handed over.
    fn names_below_several_roots(&mut self) {
        let root = |name: &str| Root::new(format!("{}/{name}", self.below));
        let (roots, turned) = ([root("a"), root("b"), root("b/one")], [root("b"), root("a")]);
        let put = |root: u32, byte: u8| Request::Put {
            object: Object::new(root, "one"),
            bytes: vec![byte],
            replace: false,
            durability: Durability::Soon,
        };
        for root in &roots[..2] {
            // Below a root directories are made, and never itself.
            self.store.enter([Root::new(self.below)].into());
            let bytes = Vec::new();
            let name = root.full("made").split_off(self.below.len() + 1);
            let object = Object::from(&*name);
            self.moved(Request::Put { object, bytes, replace: false, durability: Durability::Cached });
        }
        self.store.enter(roots.into());
        self.store.submit(1 << 40, put(0, 7));
        self.store.submit(2 << 40, put(1, 8));
        self.store.enter(turned.into());
        let mut done = Vec::new();
        while done.len() < 2 {
            self.store.poll(&mut done);
        }
        assert!(done.iter().all(|(_, result)| result.is_ok()), "{done:?}");
        let read = |object: Object| Request::Get { object, within: Within::All, bytes_max: 1 };
        let found = [0, 1].map(|root| self.moved(read(Object::new(root, "one"))).content);
        assert_eq!(found, [[8], [7]]);
        assert_eq!(Root::full_of(&self.store.roots(), &Object::new(1, "one")), format!("{}/a/one", self.below));
        self.store.enter([Root::new(format!("{}/b/one", self.below))].into());
        assert_eq!(self.moved(read("".into())).content, [8], "a root may be the object itself");
        self.store.enter([Root::new(self.below)].into());
    }

    /// Hands a request over and waits for its end.
    fn carry_out(&mut self, request: Request) -> Result<Outcome, Fault> {
        self.ticket += 1;
        self.store.submit(self.ticket, request);
        let mut done = Vec::new();
        while done.is_empty() {
            self.store.poll(&mut done);
        }
        assert_eq!((done.len(), done[0].0), (1, self.ticket), "one ticket comes back, the one that was given");
        done.remove(0).1
    }

    fn moved(&mut self, request: Request) -> Moved {
        match self.carry_out(request) {
            Ok(Outcome::Done(moved)) => moved,
            other => panic!("should have been done: {other:?}"),
        }
    }

    fn content(&mut self, name: &str) -> Vec<u8> {
        self.moved(Request::Get { object: Object::from(name), within: Within::All, bytes_max: 1 << 24 }).content
    }

    fn put(&mut self, name: &str, bytes: &[u8]) {
        let moved = self.moved(Request::Put {
            object: Object::from(name),
            bytes: bytes.to_vec(),
            replace: true,
            durability: Durability::Soon,
        });
        assert_eq!(moved.bytes, bytes.len() as u64);
    }

    fn corrupt(&mut self, request: Request) {
        let fault = self.carry_out(request).expect_err("the object is damaged");
        assert!(fault.kind == FaultKind::Corrupt && fault.text().contains(self.below), "{fault}");
    }

    fn whole_objects(&mut self) {
        let columns: Vec<u8> = (0..15u16).flat_map(|i| (i % 3 * 5 + i / 3).to_ne_bytes()).collect();
        // Directories of objects are made as they are needed.
        for (name, checksum, replace) in
            [("c/0/0", false, false), ("c/0/1", true, false), ("c/0/0", false, true), ("c/0/1", true, true)]
        {
            let object = Object::from(name);
            let moves = transposed(&numbered(), 0);
            let moved = self.moved(Request::WriteWhole {
                object: object.clone(),
                moves,
                checksum,
                replace,
                durability: Durability::Soon,
            });
            assert_eq!(moved.bytes, 30, "bytes of elements are counted");
            let content = self.content(name);
            assert_eq!(content[..30], columns);
            assert_eq!(content.len(), if checksum { 34 } else { 30 });
            let target = empty();
            let moves = transposed(&target, 0);
            self.moved(Request::ReadWhole { object: object.clone(), moves: moves.clone(), checksum });
            assert_eq!(target.to_vec(0, 30), numbered().to_vec(0, 30));
            self.corrupt(Request::ReadWhole { object: object.clone(), moves: moves.clone(), checksum: !checksum });
            if checksum {
                let mut damaged = content.clone();
                damaged[7] ^= 1;
                self.put(name, &damaged);
                self.corrupt(Request::ReadWhole { object: object.clone(), moves, checksum });
            }
        }
    }

    fn parts_of_objects(&mut self) {
        self.put("file", &[0xEE; 41]);
        let object = Object::from("file");
        let moved = self.moved(Request::Write {
            object: object.clone(),
            moves: transposed(&numbered(), 8),
            direct: false,
            durability: Durability::Soon,
        });
        assert_eq!(moved.bytes, 30);
        let content = self.content("file");
        assert_eq!((content.len(), &content[..8], &content[38..]), (41, &[0xEE; 8][..], &[0xEE; 3][..]));
        let target = empty();
        self.moved(Request::Read { object: object.clone(), moves: transposed(&target, 8), direct: false });
        assert_eq!(target.to_vec(0, 30), numbered().to_vec(0, 30));
        self.corrupt(Request::Read { object: object.clone(), moves: transposed(&target, 12), direct: false });
        // Beyond its end, an object grows.
        self.moved(Request::Write {
            object: object.clone(),
            moves: transposed(&numbered(), 50),
            direct: false,
            durability: Durability::Soon,
        });
        assert_eq!(self.content("file").len(), 80);
        self.corrupt(Request::Read { object: object.clone(), moves: transposed(&target, 52), direct: false });
        self.moved(Request::Read { object, moves: transposed(&target, 50), direct: false });
        assert_eq!(target.to_vec(0, 30), numbered().to_vec(0, 30));
    }

    /// Rows of many lengths, each at this distance from the one before in memory and in the object: stores may move short
    /// runs in another way than long ones, and many of them in another way than few.
    fn rows(&mut self) {
        let lengths = [1, 60, 127, 128, 300, 2047, 2048, 5000, 8192, 65_535, 65_536, 300_000];
        let cases = lengths.into_iter().flat_map(|row| [(1, row), (3, row), (((1 << 20) / row + 2).min(9000), row)]);
        for (count, row) in cases.filter(|&(count, row)| count * row < 2 << 20) {
            for (in_memory, in_object) in [(row, row), (row + 5, row), (row, row + 3), (row + 5, row + 3)] {
                self.rows_at((count, row), in_memory, in_object);
            }
        }
    }

    fn rows_at(&mut self, (count, row): (u64, u64), in_memory: u64, in_object: u64) {
        let (region, element) = (Region::whole(&[count, row]), ElementType::native(Kind::UInt8));
        let view = |pitch: u64, base: i64| Arc::new(View::held(&region, base, &[pitch as i64, 1], element));
        let moves = |memory: &Memory, base: i64| Moves {
            region: region.clone(),
            memory: memory.clone(),
            here: view(in_memory, 0),
            there: view(in_object, base),
        };
        let value = |number: u64| (number % 251) as u8;
        let filled = Memory::from_vec((0..count * in_memory).map(value).collect());
        let target = || Memory::from_vec(vec![0xEE; (count * in_memory) as usize]);
        let in_rows = |pitch: u64| (0..count * pitch).map(move |at| (at / pitch, at % pitch));
        let expected = |pitch: u64| {
            let byte = move |(r, c): (u64, u64)| if c < row { value(r * in_memory + c) } else { 0xEE };
            in_rows(pitch).map(byte).collect::<Vec<u8>>()
        };
        let said = format!("{count} rows of {row} B, {in_memory} B apart in memory and {in_object} B in the object");
        let (object, memory_bytes) = (Object::from("rows"), count * in_memory);
        self.put("rows", &vec![0xEE; (7 + count * in_object) as usize]);
        self.moved(Request::Write {
            object: object.clone(),
            moves: moves(&filled, 7),
            direct: false,
            durability: Durability::Soon,
        });
        let content = self.content("rows");
        assert!(content[..7] == [0xEE; 7] && content[7..] == expected(in_object), "written: {said}");
        let read = target();
        self.moved(Request::Read { object: object.clone(), moves: moves(&read, 7), direct: false });
        assert!(read.to_vec(0, memory_bytes) == expected(in_memory), "read: {said}");
        for checksum in [false, true].into_iter().filter(|_| in_object == row) {
            let whole = Request::WriteWhole {
                object: object.clone(),
                moves: moves(&filled, 0),
                checksum,
                replace: false,
                durability: Durability::Soon,
            };
            self.moved(whole);
            let content = self.content("rows");
            assert_eq!(content.len() as u64, count * row + if checksum { 4 } else { 0 }, "written whole: {said}");
            assert!(content[..(count * row) as usize] == expected(row), "written whole: {said}");
            let read = target();
            self.moved(Request::ReadWhole { object: object.clone(), moves: moves(&read, 0), checksum });
            assert!(read.to_vec(0, memory_bytes) == expected(in_memory), "read whole: {said}");
        }
    }

    /// A whole object whose rows are made of two parts, which the walk over its elements may take one after the other.
    fn rows_in_parts(&mut self) {
        let rows = 5;
        let columns = IndexSet::union_of_disjoint(vec![IndexSet::range(0, 640), IndexSet::range(640, 1920)]);
        let region = Region { dims: [IndexSet::range(0, rows), columns].into_iter().collect() };
        let (row, element) = (640 + 1280, ElementType::native(Kind::UInt8));
        let view = |pitch: u64| Arc::new(View::held(&region, 0, &[pitch as i64, 1], element));
        let content: Vec<u8> = (0..rows * row).map(|number| (number % 251) as u8).collect();
        let apart = |fill: Option<u8>| {
            let byte = |(r, c): (u64, u64)| {
                if c < row { fill.unwrap_or_else(|| content[(r * row + c) as usize]) } else { 0xEE }
            };
            Memory::from_vec((0..rows * (row + 9)).map(|at| byte((at / (row + 9), at % (row + 9)))).collect())
        };
        let moves = |memory: &Memory| Moves {
            region: region.clone(),
            memory: memory.clone(),
            here: view(row + 9),
            there: view(row),
        };
        let object = Object::from("rows");
        let (filled, read) = (apart(None), apart(Some(0)));
        self.moved(Request::WriteWhole {
            object: object.clone(),
            moves: moves(&filled),
            checksum: true,
            replace: false,
            durability: Durability::Soon,
        });
        let written = self.content("rows");
        assert!(written.len() as u64 == rows * row + 4 && written[..content.len()] == content);
        self.moved(Request::ReadWhole { object, moves: moves(&read), checksum: true });
        assert!(read.to_vec(0, read.bytes()) == filled.to_vec(0, filled.bytes()));
    }

    fn bytes(&mut self) {
        for content in [&b"some bytes"[..], b"", b"more than there were"] {
            self.put("bytes", content);
            assert_eq!(self.content("bytes"), content);
        }
        self.moved(Request::Get { object: Object::from("bytes"), within: Within::All, bytes_max: 20 });
        self.corrupt(Request::Get { object: Object::from("bytes"), within: Within::All, bytes_max: 19 });
        let stretch = |first: u64, bytes: u64| Request::Get {
            object: Object::from("bytes"),
            within: Within::Stretch(first, bytes),
            bytes_max: 9,
        };
        let [middle, nothing, long, beyond, far] =
            [stretch(5, 4), stretch(20, 0), stretch(2, 10), stretch(15, 6), stretch(u64::MAX, 4)];
        assert_eq!(self.moved(middle).content, b"than");
        assert_eq!(self.moved(nothing).content, b"");
        [long, beyond, far].into_iter().for_each(|request| self.corrupt(request));
        let end = |bytes: u64, bytes_max: u64| Request::Get {
            object: Object::from("bytes"),
            within: Within::End(bytes),
            bytes_max,
        };
        for bytes in [0, 4, 20] {
            let Moved { content, first, .. } = self.moved(end(bytes, 20));
            assert_eq!((content.as_slice(), first), (&b"more than there were"[20 - bytes as usize..], 20 - bytes));
        }
        [end(21, 30), end(4, 3), end(u64::MAX, u64::MAX)].into_iter().for_each(|request| self.corrupt(request));
    }

    fn what_is_missing(&mut self) {
        let object = Object::from("nothing/here");
        let target = empty();
        let moves = transposed(&target, 0);
        for request in [
            Request::Read { object: object.clone(), moves: moves.clone(), direct: false },
            Request::ReadWhole { object: object.clone(), moves, checksum: false },
            Request::Get { object: object.clone(), within: Within::All, bytes_max: 9 },
        ] {
            assert_eq!(self.carry_out(request), Ok(Outcome::Absent));
        }
        assert_eq!(target.to_vec(0, 30), [0; 30]);
    }

    /// Requests that do not touch the same bytes may overtake each other; all come back.
    fn many_at_once(&mut self) {
        let object = |i: u64| Object::new(0, format!("many/{i}"));
        let requests: Vec<Request> = (0..50)
            .map(|i| Request::Put {
                object: object(i),
                bytes: vec![i as u8; 9],
                replace: i % 2 == 0,
                durability: Durability::Soon,
            })
            .collect();
        for (i, request) in requests.into_iter().enumerate() {
            self.store.submit(1000 + i as u64, request);
        }
        let mut done = Vec::new();
        while done.len() < 50 {
            self.store.poll(&mut done);
        }
        assert!(done.iter().all(|one| one.1.is_ok()), "{done:?}");
        let mut tickets: Vec<u64> = done.iter().map(|one| one.0).collect();
        tickets.sort_unstable();
        assert!(tickets.into_iter().eq(1000..1050));
        (0..50).for_each(|i| assert_eq!(self.content(&format!("many/{i}")), [i as u8; 9]));
    }
}
