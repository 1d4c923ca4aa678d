//! A store in memory: the plainest implementation of the contract, shared by all ranks of a process.

use crate::{Fault, FaultKind, Moved, Moves, Outcome, PartSum, Request, Root, Store, Ticket, Within};
use hyperslab_pack::for_each_run;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The objects of a [`MemoryStore`], by their absolute names; by their names alone, where it was given no roots.
pub type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Objects held in memory.
#[derive(Clone, Default, Debug)]
pub struct MemoryStore {
    objects: Objects,
    roots: Arc<[Root]>,
    done: Vec<(Ticket, Result<Outcome, Fault>)>,
}

impl MemoryStore {
    /// A store over these objects.
    pub fn new(objects: Objects) -> MemoryStore {
        MemoryStore { objects, ..MemoryStore::default() }
    }

    fn run(&self, request: Request) -> Result<Outcome, Fault> {
        let mut objects = self.objects.lock().expect("no rank panics while it holds the objects");
        let object = request.object().map(|object| Root::full_of(&self.roots, object)).unwrap_or_default();
        let moved = |bytes: u64| Ok(Outcome::Done(Moved { bytes, calls: 1, ..Moved::default() }));
        match request {
            Request::Write { moves, .. } => {
                let content = objects.get_mut(&object).ok_or_else(|| absent(&object))?;
                write(content, &moves);
                moved(moves.bytes())
            }
            Request::WriteWhole { moves, checksum, .. } => {
                let mut content = Vec::new();
                write(&mut content, &moves);
                if checksum {
                    let sum = crc32c::crc32c(&content);
                    content.extend(sum.to_le_bytes());
                }
                objects.insert(object, content);
                moved(moves.bytes())
            }
            Request::Put { bytes, .. } => {
                let length = bytes.len() as u64;
                objects.insert(object, bytes);
                moved(length)
            }
            Request::Read { moves, .. } => match objects.get(&object) {
                Some(content) => read(content, &moves, &object).and_then(|()| moved(moves.bytes())),
                None => Ok(Outcome::Absent),
            },
            Request::ReadPart { moves, total, .. } => match objects.get(&object) {
                Some(content) => read_part(content, &moves, total, &object).map(Outcome::Done),
                None => Ok(Outcome::Absent),
            },
            Request::ReadWhole { moves, checksum, .. } => match objects.get(&object) {
                Some(content) => read_whole(content, &moves, checksum, &object).and_then(|()| moved(moves.bytes())),
                None => Ok(Outcome::Absent),
            },
            Request::Get { within, bytes_max, .. } => match objects.get(&object) {
                Some(content) => {
                    let (first, bytes) = got(&object, content.len() as u64, within, bytes_max)?;
                    let content = content[first as usize..(first + bytes) as usize].to_vec();
                    Ok(Outcome::Done(Moved { bytes, calls: 1, content, first, ..Moved::default() }))
                }
                None => Ok(Outcome::Absent),
            },
            Request::Sync { .. } => moved(0),
        }
    }
}

impl Store for MemoryStore {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        let result = self.run(request);
        self.done.push((ticket, result));
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        done.append(&mut self.done);
    }

    fn advance(&self) -> u64 {
        0
    }

    fn enter(&mut self, roots: Arc<[Root]>) {
        self.roots = roots;
    }

    fn roots(&self) -> Arc<[Root]> {
        self.roots.clone()
    }
}

fn absent(object: &str) -> Fault {
    Fault::new(FaultKind::NotFound, format!("object '{object}' does not exist"))
}

/// The failure of an object whose length is not what its metadata say.
pub(crate) fn length_fault(object: &str, expected: &str, found: u64) -> Fault {
    Fault::new(FaultKind::Corrupt, format!("object '{object}' is damaged"))
        .about(object)
        .expected(expected, format!("{found} B"))
        .hint("the object was truncated or overwritten by something else")
}

/// Which bytes of an object of this length a [`Request::Get`] reads: the first, and how many.
///
/// # Errors
/// When they are more than make sense, or not all there.
pub fn got(object: &str, length: u64, within: Within, bytes_max: u64) -> Result<(u64, u64), Fault> {
    let (first, bytes) = within.of(length);
    if bytes > bytes_max {
        return Err(length_fault(object, &format!("at most {bytes_max} B"), bytes));
    }
    match first.checked_add(bytes) {
        Some(end) if end <= length => Ok((first, bytes)),
        end => Err(length_fault(object, &format!("at least {} B", end.unwrap_or(u64::MAX)), length)),
    }
}

pub(crate) fn write(content: &mut Vec<u8>, moves: &Moves) {
    for nest in moves.nests() {
        for_each_run(&nest, moves.there.element.bytes(), |memory, offset, length| {
            let end = offset as usize + length as usize;
            if content.len() < end {
                content.resize(end, 0xAA);
            }
            content[offset as usize..end].copy_from_slice(&moves.memory.to_vec(memory as u64, length));
        });
    }
}

pub(crate) fn read(content: &[u8], moves: &Moves, object: &str) -> Result<(), Fault> {
    let mut short = None;
    for nest in moves.nests() {
        for_each_run(&nest, moves.there.element.bytes(), |memory, offset, length| {
            let end = offset as usize + length as usize;
            match content.get(offset as usize..end) {
                Some(bytes) => moves.memory.write_bytes(memory as u64, bytes),
                None => short = Some(end),
            }
        });
    }
    short.map_or(Ok(()), |end| Err(length_fault(object, &format!("at least {end} B"), content.len() as u64)))
}

/// What a part of an object of this length contributes to the checksum behind its first `total` bytes; `add` hands over so many
/// bytes from an offset on.
pub(crate) fn part_sum(
    (moves, total): (&Moves, u64),
    length: u64,
    object: &str,
    mut add: impl FnMut(u64, u64, &mut dyn FnMut(&[u8])),
) -> Result<Moved, Fault> {
    if length != total + 4 {
        return Err(length_fault(object, &format!("{} B", total + 4), length));
    }
    let mut sum = PartSum::new(total);
    for nest in moves.nests() {
        for_each_run(&nest, moves.there.element.bytes(), |_, offset, length| {
            let offset = offset as u64;
            add(offset, length, &mut |bytes| sum.add(offset, bytes));
            if offset + length == total {
                add(total, 4, &mut |stored| sum.add_stored([stored[0], stored[1], stored[2], stored[3]]));
            }
        });
    }
    Ok(Moved { bytes: moves.bytes(), calls: 1, sum: sum.value(), ..Moved::default() })
}

/// Reads a part of an object with a checksum; tells what it contributes to that.
fn read_part(content: &[u8], moves: &Moves, total: u64, object: &str) -> Result<Moved, Fault> {
    let sum = part_sum((moves, total), content.len() as u64, object, |offset, bytes, add| {
        add(&content[offset as usize..(offset + bytes) as usize]);
    })?;
    read(content, moves, object).map(|()| sum)
}

pub(crate) fn read_whole(content: &[u8], moves: &Moves, checksum: bool, object: &str) -> Result<(), Fault> {
    let expected = moves.bytes() + if checksum { 4 } else { 0 };
    if content.len() as u64 != expected {
        return Err(length_fault(object, &format!("{expected} B"), content.len() as u64));
    }
    if checksum {
        let (elements, trailer) = content.split_at(content.len() - 4);
        let (sum, stored) =
            (crc32c::crc32c(elements), u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]));
        if sum != stored {
            return Err(checksum_fault(object, stored, sum));
        }
    }
    read(content, moves, object)
}

/// The failure of an object whose bytes do not match its checksum.
pub(crate) fn checksum_fault(object: &str, stored: u32, found: u32) -> Fault {
    Fault::new(FaultKind::Corrupt, format!("object '{object}' is damaged"))
        .about(object)
        .expected(format!("the CRC-32C {stored:#010x}"), format!("bytes that give {found:#010x}"))
        .hint("restore the object from a copy, or read an earlier step")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_contract_of_stores() {
        crate::conformance::objects(&mut MemoryStore::default(), "a");
    }
}
