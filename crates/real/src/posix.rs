//! Objects as files below a directory, served by a worker thread so that the caller can move data meanwhile.

pub(crate) mod at_hand;
mod at_once;
mod cached;
mod coalescing;
mod content;
mod direct;
mod files;
mod grounds;
mod handle;
mod job;
mod lists;
mod lost_pages;
mod mapped;
mod permissions;
mod pieces;
mod queue;
mod replacing;
mod set;
mod sieve;
mod syncing;
mod whole_reader;
mod windows;
mod writing;
mod written;

use crate::doing::done;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::mpsc::{Receiver, Sender, channel};
use crate::sync::{Mutex, MutexGuard, lock, thread};
use crate::wire::Bell;
pub(crate) use content::CHECKED_BLOCK_BYTES;
use files::Files;
pub(crate) use handle::passes_cache;
use hyperslab_world::{Fault, FaultKind, Outcome, Request, Root, Store, Ticket};
use job::{Answers, Finished};
pub use mapped::{MAPPED_BYTES_MIN, maps_files};
use std::path::Path;
use std::sync::Arc;

/// Files of the file system as objects.
///
/// Requests through the cache of the system are carried out one after another, in order, by one thread: a buffered write
/// holds the lock of its file alone, so more writers in one process do not help a file. Direct requests are carried out
/// beside them, several at once, since a disk is at its best with more than one to choose from; they begin in order.
/// The parts of striped objects, which are those with a name that [`Stripes`](crate::Stripes) give, are carried out beside
/// each other, since each has a file and perhaps a disk of its own. Such objects are written and read in parts, as
/// [`Request::Write`] has it, and synced; nothing else. Short reads of what the cache holds, and short
/// writes to file systems of this host, need no thread, when nothing is under way.
/// Nothing is durable before [`Request::Sync`], which waits for all that was submitted before it.
pub struct PosixStore {
    /// To the worker, who ends when they do. He is not waited for, since he may hang in the file system; his buffers are kept
    /// alive by their requests.
    requests: Sender<Work>,
    finished: Receiver<Finished>,
    lost: Vec<Ticket>,
    advance: Arc<AtomicU64>,
    /// What was given last.
    roots: Arc<[Root]>,
    at_once_bytes_max: at_once::Most,
    /// Requests that the worker has and whose ends nobody has polled.
    under_way: u64,
    /// Whether the last of them makes something durable.
    syncs: bool,
    /// What the worker was told and has not heeded yet, besides requests.
    unheeded: Arc<AtomicU64>,
    /// What the worker works with, and the caller while it has nothing to do.
    files: Arc<Mutex<Files>>,
    /// What needed no worker.
    at_once: Vec<Finished>,
    /// Whether the disk may begin with what shall be durable.
    sends_on: Arc<AtomicBool>,
    answers: Answers,
}

/// What the worker is told.
enum Work {
    Serve(Ticket, Request),
    Enter(Arc<[Root]>),
    Release,
    Pause,
}

impl Work {
    /// Does it. Says how a request ended, unless somebody else will.
    fn done_by(self, files: &mut Files) -> Option<Finished> {
        match self {
            Work::Serve(ticket, request) => files.serve(ticket, request).map(|result| (ticket, result)),
            Work::Enter(roots) => {
                files.enter(roots);
                None
            }
            Work::Release => {
                files.release();
                None
            }
            Work::Pause => {
                files.pause();
                None
            }
        }
    }
}

impl PosixStore {
    /// A store that was given no roots yet. The bell rings whenever a request is over.
    pub fn new(bell: Bell) -> PosixStore {
        let (requests, inbox) = channel::<Work>();
        let (outbox, finished) = channel();
        let advance = Arc::new(AtomicU64::new(0));
        let answers = Answers::new(outbox, bell);
        let sends_on = Arc::new(AtomicBool::new(true));
        let files = Arc::new(Mutex::new(Files::new(advance.clone(), sends_on.clone(), answers.clone())));
        let unheeded = Arc::new(AtomicU64::new(0));
        let shared = (files.clone(), unheeded.clone());
        let told = answers.clone();
        // Without a thread, the other end is dropped, and whoever asks is told.
        let _ = thread::Builder::new().name("hyperslab-store".into()).spawn(move || {
            for work in inbox {
                let is_request = matches!(work, Work::Serve(..));
                let done = match (answers.begin(), work) {
                    (Err(fault), Work::Serve(ticket, _)) => Some((ticket, Err(fault))),
                    (_, work) => work.done_by(&mut lock(&shared.0)),
                };
                if !is_request {
                    shared.1.fetch_sub(1, Ordering::Release);
                }
                if done.is_some_and(|(ticket, result)| !answers.send(ticket, result)) {
                    return;
                }
            }
        });
        let (lost, at_once) = (Vec::new(), Vec::new());
        let at_once_bytes_max = at_once::BYTES_MAX;
        PosixStore {
            requests,
            finished,
            lost,
            advance,
            roots: [].into(),
            at_once_bytes_max,
            under_way: 0,
            syncs: false,
            unheeded,
            files,
            at_once,
            sends_on,
            answers: told,
        }
    }

    /// Says whether the disk may begin with what shall be durable before it is waited for. It may, but for those who measure
    /// what that takes by itself.
    pub fn sends_on(&mut self, sends_on: bool) {
        self.sends_on.store(sends_on, Ordering::Relaxed);
    }

    /// Reads by calls, for those who measure what these take.
    pub fn reads_by_calls(&mut self) {
        lock(&self.files).maps = false;
    }

    /// Has no core for a thread beside the caller's, who then does more by himself.
    pub fn crowd(&mut self) {
        self.at_once_bytes_max = at_once::CROWDED_BYTES_MAX;
    }

    /// Whether the worker syncs: that comes last, and may take long.
    pub(crate) fn is_syncing(&self) -> bool {
        self.syncs && self.under_way > 0
    }

    /// What the worker works with, if it has nothing to do.
    fn idle(&self) -> Option<MutexGuard<'_, Files>> {
        let busy = self.under_way > 0 || self.unheeded.load(Ordering::Acquire) > 0;
        if busy { None } else { self.files.try_lock().ok() }
    }

    fn tell(&mut self, work: Work) {
        // Waking the worker takes longer than what it is told.
        if let Some(mut files) = self.idle().filter(|files| files.closes_at_once()) {
            work.done_by(&mut files);
        } else {
            // A worker that is gone keeps nothing open, and leaves nothing to do at once.
            self.unheeded.fetch_add(1, Ordering::Relaxed);
            let _ = self.requests.send(work);
        }
    }

    /// Carries a short request out, if that waits for nothing but a disk of this host. What is read must be what the
    /// requests before it left, so that there must be none under way.
    fn at_once(&self, request: &Request) -> Option<Result<Outcome, Fault>> {
        let mut files = self.idle()?;
        if let Err(fault) = request.object().map_or(Some(Ok(())), |object| files.prove_at_hand(object))? {
            return Some(Err(fault));
        }
        match request {
            Request::Read { object, moves, direct: false } if moves.bytes() <= self.at_once_bytes_max.read => {
                files.read_at_hand(object, moves)
            }
            Request::ReadWhole { object, moves, checksum } if moves.bytes() <= self.at_once_bytes_max.read => {
                files.read_whole_at_hand(object, moves, *checksum)
            }
            Request::ReadPart { object, moves, total } if moves.bytes() <= self.at_once_bytes_max.read => {
                files.read_part_at_hand(object, moves, *total)
            }
            Request::Write { object, moves, direct: false, durability }
                if moves.bytes() <= self.at_once_bytes_max.write =>
            {
                files.write_at_hand(object, moves, *durability)
            }
            Request::WriteWhole { object, moves, checksum, replace, durability }
                if moves.bytes() <= self.at_once_bytes_max.write && files.goes_at_hand(object, *replace) =>
            {
                Some(files.write_whole(object, moves, *checksum, (*replace, *durability)))
            }
            Request::Put { object, bytes, replace, durability }
                if bytes.len() as u64 <= self.at_once_bytes_max.write && files.goes_at_hand(object, *replace) =>
            {
                Some(files.put(object, bytes, *replace, *durability))
            }
            Request::Get { object, within, bytes_max } => {
                files.get_at_hand(object, *within, (*bytes_max, self.at_once_bytes_max.read))
            }
            Request::Sync { below } if below.is_empty() => {
                (files.closes_at_once() && !files.owes(false)).then(|| files.close_written())
            }
            Request::Sync { .. } if files.is_durable() => Some(Ok(done(0, 0))),
            _ => None,
        }
    }
}

impl Store for PosixStore {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        if let Some(result) = self.at_once(&request) {
            return self.at_once.push((ticket, result));
        }
        self.under_way += 1;
        self.syncs = matches!(request, Request::Sync { .. });
        if self.requests.send(Work::Serve(ticket, request)).is_err() {
            self.lost.push(ticket);
        }
    }

    fn poll(&mut self, done: &mut Vec<Finished>) {
        let before = done.len();
        done.extend(self.finished.try_iter());
        let gone = || Fault::new(FaultKind::Peer, "the thread that serves the store is gone, or the system gives none");
        done.extend(self.lost.drain(..).map(|ticket| (ticket, Err(gone()))));
        self.under_way -= (done.len() - before) as u64;
        done.append(&mut self.at_once);
    }

    fn advance(&self) -> u64 {
        self.advance.load(Ordering::Relaxed)
    }

    fn enter(&mut self, roots: Arc<[Root]>) {
        self.roots = roots.clone();
        self.tell(Work::Enter(roots));
    }

    fn roots(&self) -> Arc<[Root]> {
        self.roots.clone()
    }

    fn release(&mut self) {
        self.tell(Work::Release);
    }

    fn leave_to_rank_0(&mut self, below: &Root) -> bool {
        self.idle().is_some_and(|mut files| files.leave_to_rank_0(Path::new(&*below.at)))
    }

    fn pause(&mut self) {
        self.tell(Work::Pause);
    }

    fn replaces_by_syncs(&self) -> bool {
        true
    }

    fn owes(&self, released: bool) -> bool {
        self.answers.begin().is_ok() && self.idle().is_none_or(|files| files.owes(released))
    }

    fn cut(&mut self) {
        self.answers.cut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::Object;
    use hyperslab_layout::{Durability, ElementType, Kind, Region, View};
    use hyperslab_pack::Memory;
    use hyperslab_world::{Moves, Proof, Within, fingerprint};

    #[test]
    fn it_keeps_the_contract_of_stores() {
        let path = std::env::temp_dir().join(format!("hyperslab-objects-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let mut store = PosixStore::new(Bell::default());
        hyperslab_world::conformance::objects(&mut store, &path.to_string_lossy());
        drop(store);
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn short_writes_need_no_worker_where_the_file_system_is_known_to_be_at_hand() {
        let path = std::env::temp_dir().join(format!("hyperslab-short-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("data"), [0; 16]).unwrap();
        let at_hand = at_hand::holds(&std::fs::File::open(&path).unwrap());
        let mut store = PosixStore::new(Bell::default());
        let root = Root::new(path.to_string_lossy());
        store.enter([root.clone()].into());
        let write = |value: u8| {
            let (region, element) = (Region::whole(&[16]), ElementType::native(Kind::UInt8));
            let view = Arc::new(View::held(&region, 0, &[1], element));
            let memory = Memory::from_vec(vec![value; 16]);
            let moves = Moves { region, memory, here: view.clone(), there: view };
            Request::Write { object: "data".into(), moves, direct: false, durability: Durability::Soon }
        };
        let end = |store: &mut PosixStore| {
            let mut done = Vec::new();
            while done.is_empty() {
                store.poll(&mut done);
            }
            assert!(matches!(&done[..], [(_, Ok(Outcome::Done(_)))]), "{done:?}");
        };
        // Nobody has asked yet where the directory is.
        store.submit(1, write(1));
        assert!(store.under_way == 1 && !store.is_syncing());
        end(&mut store);
        store.submit(2, write(2));
        assert_eq!(store.under_way == 0, at_hand);
        end(&mut store);
        assert_eq!(std::fs::read(path.join("data")).unwrap(), [2; 16]);
        // What was written so is made durable like all else.
        let sync = || Request::Sync { below: ["data".into()].into() };
        store.submit(3, sync());
        assert!(store.is_syncing(), "a disk may take long");
        end(&mut store);
        store.submit(4, sync());
        assert_eq!(store.under_way, 0, "nothing is left to sync");
        end(&mut store);
        // On this host rank 0 may make it durable as well, all or nothing.
        store.submit(5, write(3));
        end(&mut store);
        std::fs::File::options().write(true).open(path.join("data")).unwrap().set_len(1 << 30).unwrap();
        assert!(!store.leave_to_rank_0(&root), "that takes long, and has to tell how far it is");
        std::fs::File::options().write(true).open(path.join("data")).unwrap().set_len(16).unwrap();
        let striped = Root::new(format!("striped://65536[{0}][{0}]/data", root.at));
        assert!(!store.leave_to_rank_0(&striped), "its files have other names");
        assert_eq!(store.leave_to_rank_0(&root), at_hand);
        store.submit(6, sync());
        assert_eq!(store.under_way == 0, at_hand, "it was left to rank 0, or is synced here");
        end(&mut store);
        store.release();
        drop(store);
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn short_parts_of_chunks_need_no_worker_where_their_mount_is_known() {
        let path = std::env::temp_dir().join(format!("hyperslab-parts-{}", std::process::id()));
        let [first, second] = ["a", "b"].map(|name| path.join(name));
        for array in [&first, &second] {
            std::fs::create_dir_all(array).unwrap();
            std::fs::write(array.join("zarr.json"), b"{}").unwrap();
            std::fs::write(array.join("c"), [7; 20]).unwrap();
        }
        let file_system = std::fs::File::open(&path).unwrap();
        let is_cached = || cached::is_cached(&std::fs::File::open(second.join("c")).unwrap(), (0, 20));
        let at_hand = at_hand::holds(&file_system) && at_once::mount_of(&file_system).is_some() && is_cached();
        let root = |array: &Path, hash| {
            let metadata = array.join("zarr.json").to_string_lossy().into();
            Root { proofs: vec![Proof::Contents(metadata, hash)], ..Root::new(array.to_string_lossy()) }
        };
        let hash = fingerprint(b"{}");
        let read = |root: u32| {
            let (region, element) = (Region::whole(&[8]), ElementType::native(Kind::UInt8));
            let view = |base| Arc::new(View::held(&region, base, &[1], element));
            let (here, there) = (view(0), view(8));
            let moves = Moves { region: region.clone(), memory: Memory::from_vec(vec![0; 8]), here, there };
            Request::ReadPart { object: Object { root, name: "c".into() }, moves, total: 16 }
        };
        let mut store = PosixStore::new(Bell::default());
        store.enter([root(&first, hash), root(&second, hash), root(&second, hash + 1)].into());
        let mut end = |number, waits: bool| {
            store.submit(u64::from(number), read(number));
            let waited = store.under_way > 0;
            let mut done = Vec::new();
            while done.is_empty() {
                store.poll(&mut done);
            }
            assert_eq!(waited, waits, "root {number}");
            done.remove(0).1
        };
        let part = end(0, true).expect("nobody has asked yet where it is");
        assert_eq!(end(1, !at_hand).expect("another directory of its mount"), part);
        let differs = end(2, !at_hand).expect_err("rank 0 has seen other metadata there").text().to_string();
        assert!(differs.contains("is not what rank 0 sees"), "{differs}");
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn stretches_need_no_worker_whatever_else_their_file_holds() {
        let path = std::env::temp_dir().join(format!("hyperslab-stretches-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("shard"), [7; 8192]).unwrap();
        let file = std::fs::File::options().write(true).read(true).open(path.join("shard")).unwrap();
        // What is behind is in no cache; to look there for each of many stretches would take their number squared.
        file.set_len(100 << 20).unwrap();
        let at_hand = at_hand::holds(&file) && cached::is_cached(&file, (0, 8192));
        let mut store = PosixStore::new(Bell::default());
        store.enter([Root::new(path.to_string_lossy())].into());
        let object = || Object { root: 0, name: "shard".into() };
        let (region, element) = (Region::whole(&[8]), ElementType::native(Kind::UInt8));
        let view = |base| Arc::new(View::held(&region, base, &[1], element));
        let part = || {
            let (memory, here, there) = (Memory::from_vec(vec![0; 8]), view(0), view(4096));
            let moves = Moves { region: region.clone(), memory, here, there };
            Request::ReadPart { object: object(), moves, total: (100 << 20) - 4 }
        };
        let stretch = Request::Get { object: object(), within: Within::Stretch(4096, 100), bytes_max: 8192 };
        // The first one asks where the file is.
        for (number, request) in [part(), part(), stretch].into_iter().enumerate() {
            store.submit(number as u64, request);
            assert_eq!(store.under_way > 0, number == 0 || !at_hand, "request {number}");
            let mut done = Vec::new();
            while done.is_empty() {
                store.poll(&mut done);
            }
            assert!(matches!(done.remove(0).1, Ok(Outcome::Done(_))), "request {number}");
        }
        std::fs::remove_dir_all(&path).unwrap();
    }
}
