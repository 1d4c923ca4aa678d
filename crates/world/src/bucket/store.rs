//! Objects of a bucket, as transfers write and read them: whole ones only.

use super::contract::{ATTEMPT_TAG, Bucket, ObjectHead, Tags, When};
use super::memory::{ObjectMemory, SCHEME};
use crate::memory_store::{got, length_fault, part_sum, read, read_whole, write};
use crate::{Fault, FaultKind, Moved, Moves, Outcome, Request, Root, Store, Ticket, Within};
use hyperslab_pack::for_each_run;
use std::sync::Arc;

/// The objects of buckets in memory, by their absolute names.
///
/// Requests are carried out as they are submitted, by the caller's thread. Where a root names attempts, an object is put
/// if nothing has its key, and over what one of these attempts put; it carries the first of them. What anybody else put
/// stays.
#[derive(Default)]
pub struct BucketStore {
    roots: Arc<[Root]>,
    done: Vec<(Ticket, Result<Outcome, Fault>)>,
}

impl BucketStore {
    /// Whether an object with this name would be in a bucket.
    pub fn is_for(object: &str) -> bool {
        object.starts_with(SCHEME)
    }

    fn carry_out(&self, request: Request) -> Result<Outcome, Fault> {
        let Some(object) = request.object() else { return Ok(Outcome::Done(Moved::default())) };
        let attempts = self.roots.get(object.root as usize).map_or(&[][..], |root| &root.attempts);
        let name = Root::full_of(&self.roots, object);
        let (memory, key) = ObjectMemory::found(&name).ok_or_else(|| {
            Fault::new(FaultKind::Storage, format!("the memory that held '{name}' is gone"))
                .hint("keep the object store in memory as long as something in it is open")
        })?;
        carry_out(&memory, (key, &name), attempts, request)
    }
}

impl Store for BucketStore {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        let result = self.carry_out(request);
        self.done.push((ticket, result));
    }

    fn enter(&mut self, roots: Arc<[Root]>) {
        self.roots = roots;
    }

    fn roots(&self) -> Arc<[Root]> {
        self.roots.clone()
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        done.append(&mut self.done);
    }

    fn advance(&self) -> u64 {
        0
    }
}

/// Carries out one request on the object with this key and absolute name.
fn carry_out(
    bucket: &dyn Bucket,
    (key, name): (&str, &str),
    attempts: &[Arc<str>],
    request: Request,
) -> Result<Outcome, Fault> {
    match request {
        Request::Write { .. } => {
            let text = format!("'{name}' cannot be written in part: an object store takes whole objects only");
            Err(Fault::new(FaultKind::Unsupported, text)
                .hint("give a path for raw and npy files; only arrays of Zarr in chunks can lie there"))
        }
        Request::WriteWhole { moves, checksum, .. } => {
            let mut content = Vec::new();
            write(&mut content, &moves);
            if checksum {
                let sum = crc32c::crc32c(&content);
                content.extend(sum.to_le_bytes());
            }
            put(bucket, (key, name), attempts, &content)?;
            Ok(Outcome::Done(moved(&moves)))
        }
        Request::Put { bytes, .. } => {
            put(bucket, (key, name), attempts, &bytes)?;
            Ok(Outcome::Done(Moved { bytes: bytes.len() as u64, calls: 1, ..Moved::default() }))
        }
        Request::Read { moves, .. } => {
            let (first, end) = range(&moves);
            found(bucket.get(key, Some((first, end - first)))?, |content| {
                let whole = [&vec![0; first as usize], content].concat();
                read(&whole, &moves, name).map(|()| moved(&moves))
            })
        }
        Request::ReadPart { moves, total, .. } => {
            let (first, end) = range(&moves);
            let end = if end == total { total + 4 } else { end };
            let Some((head, content)) = bucket.get(key, Some((first, end - first)))? else {
                return Ok(Outcome::Absent);
            };
            let sum = part_sum((&moves, total), head.bytes, name, |offset, bytes, add| {
                add(&content[(offset - first) as usize..(offset - first + bytes) as usize]);
            })?;
            let whole = [&vec![0; first as usize], &content[..]].concat();
            read(&whole, &moves, name).map(|()| Outcome::Done(sum))
        }
        Request::ReadWhole { moves, checksum, .. } => {
            found(bucket.get(key, None)?, |content| read_whole(content, &moves, checksum, name).map(|()| moved(&moves)))
        }
        Request::Get { within, bytes_max, .. } => get(bucket, (key, name), within, bytes_max),
        Request::Sync { .. } => Ok(Outcome::Done(Moved::default())),
    }
}

fn moved(moves: &Moves) -> Moved {
    Moved { bytes: moves.bytes(), calls: 1, ..Moved::default() }
}

/// The bytes of the object between the first and the last that elements take \[B\].
fn range(moves: &Moves) -> (u64, u64) {
    let (mut first, mut end) = (u64::MAX, 0);
    for nest in moves.nests() {
        for_each_run(&nest, moves.there.element.bytes(), |_, offset, length| {
            first = first.min(offset as u64);
            end = end.max(offset as u64 + length);
        });
    }
    (first.min(end), end)
}

fn found(
    object: Option<(ObjectHead, Vec<u8>)>,
    run: impl FnOnce(&[u8]) -> Result<Moved, Fault>,
) -> Result<Outcome, Fault> {
    object.map_or(Ok(Outcome::Absent), |(_, content)| run(&content).map(Outcome::Done))
}

/// Reads an object, or a stretch of it, and no more than that.
fn get(bucket: &dyn Bucket, (key, name): (&str, &str), within: Within, bytes_max: u64) -> Result<Outcome, Fault> {
    let range = match within {
        Within::All => (0, bytes_max),
        Within::Stretch(first, bytes) => (first, bytes),
        Within::End(_) => match bucket.head(key)? {
            Some(head) => within.of(head.bytes),
            None => return Ok(Outcome::Absent),
        },
    };
    let Some((head, content)) = bucket.get(key, Some(range))? else { return Ok(Outcome::Absent) };
    let (first, bytes) = got(name, head.bytes, within, bytes_max)?;
    if content.len() as u64 != bytes {
        return Err(length_fault(name, &format!("{bytes} B"), content.len() as u64));
    }
    Ok(Outcome::Done(Moved { bytes, calls: 1, content, first, ..Moved::default() }))
}

/// Puts a whole object: over nothing, or over what one of these attempts put; over anything, where none is named.
fn put(bucket: &dyn Bucket, (key, name): (&str, &str), attempts: &[Arc<str>], content: &[u8]) -> Result<(), Fault> {
    let Some(own) = attempts.first() else { return bucket.place_last(key, content, &Tags::new()).map(drop) };
    let tags = Tags::from([(ATTEMPT_TAG.to_string(), own.to_string())]);
    // Mostly nothing has the key; a put if absent finds out.
    let placed = bucket.settle(key, None, |head| {
        let Some(head) = head else { return Ok(Some((content.to_vec(), tags.clone(), When::Absent))) };
        let of = head.tags.get(ATTEMPT_TAG);
        if of.is_some_and(|of| attempts.iter().any(|known| **known == **of)) {
            return Ok(Some((content.to_vec(), tags.clone(), When::Version(head.version))));
        }
        Err(collision(name, of))
    });
    placed.map(drop)
}

/// The failure of an attempt that meets an object of somebody else's.
fn collision(name: &str, of: Option<&String>) -> Fault {
    let (whose, hint) = match of {
        Some(of) => (
            format!("another attempt to write the same ('{of}') put it"),
            "repeat the call: what is left of an attempt that is over is removed when the next one begins",
        ),
        None => ("something else put it".to_string(), "choose another name, or remove it yourself"),
    };
    Fault::new(FaultKind::Exists, format!("'{name}' is there already: {whose}")).about(name).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trouble;
    use hyperslab_layout::{Durability, Object};

    #[test]
    fn it_keeps_the_contract_of_whole_objects() {
        let memory = ObjectMemory::new();
        crate::conformance::buckets::whole_objects(&mut BucketStore::default(), &memory.below("d").to_string());
        assert!(memory.lengths().iter().all(|(key, _)| key.starts_with("d/")));
    }

    fn put_one(store: &mut BucketStore, memory: &ObjectMemory, attempts: &[&str], byte: u8) -> Result<Outcome, Fault> {
        let attempts = attempts.iter().map(|&one| one.into()).collect();
        store.enter([Root { attempts, ..Root::new(memory.to_string()) }].into());
        let (object, durability) = (Object::from("x/c.0"), Durability::Now);
        store.submit(0, Request::Put { object, bytes: vec![byte], replace: false, durability });
        store.done.pop().expect("it was carried out").1
    }

    #[test]
    fn an_attempt_replaces_what_it_knows_to_be_its_own_or_dead() {
        let (memory, mut store) = (ObjectMemory::new(), BucketStore::default());
        put_one(&mut store, &memory, &["a-1"], 1).unwrap();
        put_one(&mut store, &memory, &["a-1"], 2).unwrap();
        let fault = put_one(&mut store, &memory, &["b-1"], 3).unwrap_err();
        assert!(fault.kind == FaultKind::Exists && fault.text().contains("a-1"), "{fault}");
        put_one(&mut store, &memory, &["b-1", "a-1"], 4).unwrap();
        assert_eq!(put_one(&mut store, &memory, &["a-1"], 5).unwrap_err().kind, FaultKind::Exists);
        assert_eq!(memory.get("x/c.0", None).unwrap().unwrap().1, [4]);
    }

    #[test]
    fn a_late_put_of_a_dead_attempt_is_replaced_or_fails() {
        let (memory, mut store) = (ObjectMemory::new(), BucketStore::default());
        let dead = memory.program();
        dead.dies(crate::Death { after: 0, late: true, known: true });
        put_one(&mut store, &dead, &["a-1"], 1).unwrap_err();
        put_one(&mut store, &memory, &["b-1", "a-1"], 2).unwrap();
        assert_eq!(memory.deliver(), 1);
        assert_eq!(memory.get("x/c.0", None).unwrap().unwrap().1, [2]);
        // A reply that was lost is no collision with oneself.
        memory.disturb(0, Trouble::Lost);
        put_one(&mut store, &memory, &["b-1"], 3).unwrap();
        assert_eq!(memory.get("x/c.0", None).unwrap().unwrap().1, [3]);
    }

    #[test]
    fn what_is_written_in_part_is_refused() {
        let (memory, mut store) = (ObjectMemory::new(), BucketStore::default());
        store.enter([Root::new(memory.to_string())].into());
        let moves = crate::conformance::buckets::some_moves();
        let (object, durability) = (Object::from("f"), Durability::Now);
        store.submit(0, Request::Write { object, moves, direct: false, durability });
        let fault = store.done.pop().unwrap().1.unwrap_err();
        assert!(fault.kind == FaultKind::Unsupported && fault.text().contains("whole objects"), "{fault}");
    }
}
