//! The cache of a traditional parallel file server (Kotz 1997, section 4): blocks in the order of their last use, the next
//! block of the same disk fetched ahead of a reader, a block written once all of it was written to (WriteFull).

use crate::drive::DiskJob;
use crate::kernel::Act;
use crate::machine::Machine;
use crate::placing::Piece;
use std::collections::BTreeMap;

/// Disk, and where the block begins on it \[B\].
type Key = (u32, u64);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Reading,
    Clean,
    /// So many bytes of it were written by callers.
    Dirty(u64),
    Writing,
}

struct Block {
    state: State,
    /// When it was used last, as a number.
    used: u64,
    /// Where it lies among all files.
    in_files: u64,
    waiting: Vec<Act<Machine>>,
}

/// The blocks of one server.
pub(crate) struct Blocks {
    block_bytes: u64,
    room: usize,
    blocks: BTreeMap<Key, Block>,
    /// Blocks that may be replaced, by last use.
    clean: BTreeMap<u64, Key>,
    used: u64,
    /// Requests that wait for a block to become clean, and those for which all must.
    starved: Vec<Act<Machine>>,
    flushing: Vec<Act<Machine>>,
    writing: usize,
}

impl Blocks {
    pub(crate) fn new(block_bytes: u64, room: usize) -> Blocks {
        Blocks {
            block_bytes,
            room: room.max(1),
            blocks: BTreeMap::new(),
            clean: BTreeMap::new(),
            used: 0,
            starved: Vec::new(),
            flushing: Vec::new(),
            writing: 0,
        }
    }

    fn key(&self, piece: &Piece) -> Key {
        (piece.disk, self.begin(piece))
    }

    /// Where the block of a piece begins on the disk \[B\].
    fn begin(&self, piece: &Piece) -> u64 {
        piece.offset - piece.file_offset % self.block_bytes
    }

    /// Notes that a block was used.
    fn touch(&mut self, key: Key) {
        self.used += 1;
        let Some(block) = self.blocks.get_mut(&key) else { return };
        if block.state == State::Clean {
            self.clean.remove(&block.used);
            self.clean.insert(self.used, key);
        }
        block.used = self.used;
    }

    fn set(&mut self, key: Key, state: State) {
        let Some(block) = self.blocks.get_mut(&key) else { return };
        self.clean.remove(&block.used);
        block.state = state;
        if state == State::Clean {
            self.clean.insert(block.used, key);
        }
    }

    /// Makes a block, replacing the one that was not used for longest. Returns whether there was room.
    fn make(&mut self, piece: &Piece, state: State) -> bool {
        let (key, in_files) = (self.key(piece), piece.in_files() - piece.file_offset % self.block_bytes);
        if self.blocks.len() >= self.room {
            let Some((_, oldest)) = self.clean.pop_first() else { return false };
            self.blocks.remove(&oldest);
        }
        self.used += 1;
        self.blocks.insert(key, Block { state, used: self.used, in_files, waiting: Vec::new() });
        true
    }

    /// The dirty block that was not used for longest.
    fn oldest_dirty(&self) -> Option<Key> {
        let dirty = self.blocks.iter().filter(|(_, block)| matches!(block.state, State::Dirty(_)));
        dirty.min_by_key(|(_, block)| block.used).map(|(&key, _)| key)
    }
}

impl Machine {
    fn blocks(&mut self, server: u32) -> &mut Blocks {
        self.files.servers[server as usize].blocks.as_mut().expect("a server with a cache of blocks")
    }

    /// Serves a piece, which lies in one block, from the cache.
    pub(crate) fn serve_block(&mut self, piece: Piece, then: Act<Machine>) {
        if piece.write { self.write_block(piece, then) } else { self.read_block(piece, then) }
    }

    fn read_block(&mut self, piece: Piece, then: Act<Machine>) {
        let blocks = self.blocks(piece.server);
        let key = blocks.key(&piece);
        blocks.touch(key);
        let known = blocks.blocks.contains_key(&key);
        if !known && !blocks.make(&piece, State::Reading) {
            return self.starve(piece, then);
        }
        match blocks.blocks.get_mut(&key) {
            Some(block) if block.state == State::Reading => block.waiting.push(then),
            _ => then(self),
        }
        if !known {
            self.fetch(piece.server, key);
        }
        self.fetch_ahead(&piece);
    }

    /// Reads a block from the disk.
    fn fetch(&mut self, server: u32, key: Key) {
        let blocks = self.blocks(server);
        let (offset, in_files, bytes) = (key.1, blocks.blocks[&key].in_files, blocks.block_bytes);
        let then: Act<Machine> = Box::new(move |machine| {
            let blocks = machine.blocks(server);
            blocks.set(key, State::Clean);
            let waiting = blocks.blocks.get_mut(&key).map(|block| std::mem::take(&mut block.waiting));
            waiting.into_iter().flatten().for_each(|act| act(machine));
            machine.feed(server);
        });
        self.disk(server, key.0, DiskJob { write: false, offset, in_files, bytes, hinted: false, then });
    }

    /// Fetches the next block of the file on the same disk, if it is not there.
    fn fetch_ahead(&mut self, piece: &Piece) {
        let next = self.files.placing.following(piece);
        if next >= self.files.length(piece.file) {
            return;
        }
        let next = self.files.placing.piece(piece.server, piece.file, next, u64::MAX);
        let blocks = self.blocks(next.server);
        let key = blocks.key(&next);
        if !blocks.blocks.contains_key(&key) && blocks.make(&next, State::Reading) {
            self.fetch(next.server, key);
        }
    }

    fn write_block(&mut self, piece: Piece, then: Act<Machine>) {
        let blocks = self.blocks(piece.server);
        let key = blocks.key(&piece);
        blocks.touch(key);
        let before = match blocks.blocks.get_mut(&key).map(|block| block.state) {
            Some(State::Dirty(bytes)) => bytes,
            Some(State::Clean) => 0,
            Some(State::Reading | State::Writing) => {
                let again = Box::new(move |machine: &mut Machine| machine.write_block(piece, then));
                return blocks.blocks.get_mut(&key).expect("just seen").waiting.push(again);
            }
            None if blocks.make(&piece, State::Dirty(0)) => 0,
            None => return self.starve(piece, then),
        };
        let now = before + piece.bytes;
        let full = now >= blocks.block_bytes;
        blocks.set(key, State::Dirty(now));
        if full {
            self.write_out(piece.server, key);
        }
        then(self);
    }

    /// Writes a block to the disk.
    fn write_out(&mut self, server: u32, key: Key) {
        let blocks = self.blocks(server);
        blocks.set(key, State::Writing);
        blocks.writing += 1;
        let (offset, in_files, bytes) = (key.1, blocks.blocks[&key].in_files, blocks.block_bytes);
        let then: Act<Machine> = Box::new(move |machine| {
            let blocks = machine.blocks(server);
            blocks.writing -= 1;
            blocks.set(key, State::Clean);
            let waiting = blocks.blocks.get_mut(&key).map(|block| std::mem::take(&mut block.waiting));
            waiting.into_iter().flatten().for_each(|act| act(machine));
            machine.feed(server);
            machine.end_flush(server);
        });
        self.disk(server, key.0, DiskJob { write: true, offset, in_files, bytes, hinted: false, then });
    }

    /// Lets a request wait for a block to replace.
    fn starve(&mut self, piece: Piece, then: Act<Machine>) {
        let blocks = self.blocks(piece.server);
        blocks.starved.push(Box::new(move |machine| machine.serve_block(piece, then)));
        if blocks.writing == 0
            && let Some(key) = blocks.oldest_dirty()
        {
            self.write_out(piece.server, key);
        }
    }

    fn feed(&mut self, server: u32) {
        let starved = std::mem::take(&mut self.blocks(server).starved);
        starved.into_iter().for_each(|act| act(self));
    }

    /// Writes all dirty blocks of a server, then goes on.
    pub(crate) fn flush_blocks(&mut self, server: u32, then: Act<Machine>) {
        let blocks = self.blocks(server);
        blocks.flushing.push(then);
        let dirty = blocks.blocks.iter().filter(|(_, block)| matches!(block.state, State::Dirty(_)));
        let dirty: Vec<Key> = dirty.map(|(&key, _)| key).collect();
        dirty.into_iter().for_each(|key| self.write_out(server, key));
        self.end_flush(server);
    }

    fn end_flush(&mut self, server: u32) {
        let blocks = self.blocks(server);
        if blocks.writing == 0 {
            let flushed = std::mem::take(&mut blocks.flushing);
            flushed.into_iter().for_each(|act| act(self));
        }
    }
}
