//! What the worker does: one request at a time, on open files. Direct requests it hands to the threads of a queue.

use super::at_hand::{self, Nearness};
use super::at_once;
use super::cached::is_cached;
use super::content::Scratch;
use super::direct::Way;
use super::grounds::Grounds;
use super::handle::Handle;
use super::job::{Answer, Answers, Job};
use super::pieces::hull;
use super::queue::Queue;
use super::replacing::Successors;
use super::set::{DIRECT_DEPTH_MAX, Set};
use super::whole_reader::ChecksumReader;
use super::written::Written;
use crate::doing::{Doing, done};
use crate::regular;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use hyperslab_layout::{Durability, Object};
use hyperslab_world::{Fault, FaultKind, Moved, Moves, Outcome, Request, Root, Ticket, Within};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files kept open between requests.
const OPEN_FILES_MAX: usize = 8;
/// Directories of which it is remembered where they are.
const KNOWN_DIRECTORIES_MAX: usize = 1024;

/// How a request ended, where it was carried out at once.
type AtOnce = Option<Result<Outcome, Fault>>;

pub(super) struct Files {
    /// Where objects lie, and whether it is what rank 0 sees.
    pub(super) grounds: Grounds,
    open: VecDeque<Arc<Handle>>,
    /// Serves direct requests.
    direct: Queue,
    /// Of objects that are spread over directories; those of which there were requests.
    pub(super) sets: Vec<Set>,
    answers: Answers,
    /// Directories that were asked about, and where they are; mounts of files that are on this host.
    reach: BTreeMap<PathBuf, Nearness>,
    mounts: BTreeSet<u64>,
    /// Names made since the last sync, of files and directories.
    pub(super) new: BTreeSet<PathBuf>,
    /// Written since the last sync.
    pub(super) dirty: BTreeSet<PathBuf>,
    /// The descriptors that wrote it.
    pub(super) written: Written,
    /// Whole objects that take the place of others at the next sync.
    pub(super) replacing: Successors,
    /// Rises while a sync comes forward.
    pub(super) advance: Arc<AtomicU64>,
    /// Whether the disk may begin with what shall be durable.
    pub(super) sends_on: Arc<AtomicBool>,
    /// Whether reads may copy out of mappings.
    pub(super) maps: bool,
    pub(super) scratch: Scratch,
}

impl Files {
    pub(super) fn new(advance: Arc<AtomicU64>, sends_on: Arc<AtomicBool>, answers: Answers) -> Files {
        Files {
            grounds: Grounds::default(),
            open: VecDeque::new(),
            direct: Queue::new(DIRECT_DEPTH_MAX),
            sets: Vec::new(),
            answers,
            reach: BTreeMap::new(),
            mounts: BTreeSet::new(),
            new: BTreeSet::new(),
            dirty: BTreeSet::new(),
            written: Written::default(),
            replacing: Successors::default(),
            advance,
            sends_on,
            maps: true,
            scratch: Scratch::default(),
        }
    }

    /// Carries a request out, or hands it on. Returns how it ended, unless somebody else will tell that.
    pub(super) fn serve(&mut self, ticket: Ticket, request: Request) -> AtOnce {
        if let Err(fault) = request.object().map_or(Ok(()), |object| self.grounds.prove(object)) {
            return Some(Err(fault));
        }
        let striped = request.object().is_some_and(|object| self.is_striped(object));
        match request {
            Request::Write { object, moves, direct, durability } if direct || striped => {
                self.queue(ticket, &object, moves, (Way::Write, durability), direct)
            }
            Request::Read { object, moves, direct } if direct || striped => {
                self.queue(ticket, &object, moves, (Way::Read, Durability::Cached), direct)
            }
            Request::Get { object, within: Within::Stretch(first, bytes), bytes_max } if striped => {
                let (paths, set) = self.paths(&object);
                set.map(|set| set.get(&paths, (first, bytes), bytes_max))
            }
            Request::WriteWhole { object, .. }
            | Request::Put { object, .. }
            | Request::ReadPart { object, .. }
            | Request::ReadWhole { object, .. }
            | Request::Get { object, .. }
                if striped =>
            {
                Some(Err(whole_striped(&self.grounds.full(&object))))
            }
            request => Some(self.carry_out(request)),
        }
    }

    /// Whether an object is spread over directories; if it is, its set is known from now on.
    fn is_striped(&mut self, object: &Object) -> bool {
        let name = self.grounds.full(object);
        if self.sets.iter().any(|set| set.has(&name)) {
            return true;
        }
        let set = Set::of(&name);
        let striped = set.is_some();
        self.sets.extend(set);
        striped
    }

    /// The files of an object, and its set when it has one.
    pub(super) fn paths(&self, object: &Object) -> (Vec<PathBuf>, Option<&Set>) {
        let name = self.grounds.full(object);
        let striped = self.sets.iter().find_map(|set| Some((set.paths(&name)?, Some(set))));
        striped.unwrap_or_else(|| (vec![name.into()], None))
    }

    fn carry_out(&mut self, request: Request) -> Result<Outcome, Fault> {
        match request {
            Request::Write { object, moves, durability, .. } => self.write(&object, &moves, durability),
            Request::WriteWhole { object, moves, checksum, replace, durability } => {
                self.write_whole(&object, &moves, checksum, (replace, durability))
            }
            Request::Put { object, bytes, replace, durability } => self.put(&object, &bytes, replace, durability),
            Request::Read { object, moves, .. } => self.read(&object, moves),
            Request::ReadPart { object, moves, total } => self.read_part(&object, &moves, total),
            Request::ReadWhole { object, moves, checksum } => self.read_whole(&object, &moves, checksum),
            Request::Get { object, within, bytes_max } => self.get(&object, within, bytes_max),
            Request::Sync { below } => self.sync(&below),
        }
    }

    /// The file of an object that is not striped.
    pub(super) fn path(&self, object: &Object) -> PathBuf {
        self.grounds.full(object).into()
    }

    /// The open file with a path, `None` when it does not exist.
    ///
    /// A file that was opened earlier may have been renamed since, and another have taken its name: publishing does
    /// just that. So what the name means now is compared each time.
    pub(super) fn file(&mut self, path: &Path, write: bool) -> Result<Option<Arc<Handle>>, Fault> {
        match self.found_or_opened(path, write) {
            Ok(handle) => Ok(Some(handle)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Doing { verb: "opening", path }.failed("", &error)),
        }
    }

    fn found_or_opened(&mut self, path: &Path, write: bool) -> io::Result<Arc<Handle>> {
        if let Some(open) = self.open.iter().find(|open| open.path == path && (open.writable || !write))
            && open.has_its_name()?
        {
            return Ok(open.clone());
        }
        let mut opened = Handle::open(path, write)?;
        opened.reach = path.parent().map_or(Nearness::Far, |parent| self.ask_of(parent, &opened.file));
        let opened = Arc::new(opened);
        self.close_but(|open| open.path != path);
        let parts: usize = self.sets.iter().map(Set::parts).sum();
        while self.open.len() >= OPEN_FILES_MAX + parts {
            self.open.pop_back().into_iter().for_each(|handle| self.written.close(handle));
        }
        self.open.push_front(opened.clone());
        Ok(opened)
    }

    /// Closes files, but for some.
    fn close_but(&mut self, stays: impl Fn(&Handle) -> bool) {
        if !self.open.iter().all(|handle| stays(handle)) {
            let (open, closed): (_, VecDeque<_>) =
                std::mem::take(&mut self.open).into_iter().partition(|handle| stays(handle));
            self.open = open;
            closed.into_iter().for_each(|handle| self.written.close(handle));
        }
    }

    /// The open files of an object; none when it does not exist.
    fn files(&mut self, paths: &[PathBuf], write: bool) -> Result<Vec<Arc<Handle>>, Fault> {
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            files.extend(self.file(path, write)?);
        }
        if files.is_empty() || files.len() == paths.len() {
            return Ok(files);
        }
        let missing =
            paths.iter().filter(|path| !files.iter().any(|file| file.path == **path)).map(|path| path.display());
        let missing: Vec<String> = missing.map(|path| format!("'{path}'")).collect();
        let text = format!("parts of a striped file are missing: {}", missing.join(", "));
        Err(Fault::new(FaultKind::Corrupt, text).hint("the file was removed or moved by something else meanwhile"))
    }

    /// Hands a request to the threads of the disks, in parts where the object is striped.
    fn queue(
        &mut self,
        ticket: Ticket,
        object: &Object,
        moves: Moves,
        (way, durability): (Way, Durability),
        direct: bool,
    ) -> AtOnce {
        let paths = self.paths(object).0;
        let files = match self.files(&paths, way == Way::Write) {
            Ok(files) if files.is_empty() => return Some(Ok(Outcome::Absent)),
            Ok(files) => files,
            Err(fault) => return Some(Err(fault.leaving_unchanged(true))),
        };
        if durability > Durability::Cached
            && let Err(fault) = self.expect(&files)
        {
            return Some(Err(fault));
        }
        let answer = Answer::new(&self.answers, ticket, moves.bytes(), files.len());
        let set = self.paths(object).1;
        for (number, handle) in files.into_iter().enumerate() {
            let share = set.map(|set| set.share(number));
            let job = Job { handle, moves: moves.clone(), share, way, direct, maps: self.maps };
            let answer = answer.clone();
            let queue = set.map_or(&self.direct, |set| set.queue(number, direct));
            queue.submit(Box::new(move || job.run(&answer)));
        }
        None
    }

    /// Keeps descriptors of what is about to be written and shall be durable.
    fn expect(&mut self, files: &[Arc<Handle>]) -> Result<(), Fault> {
        if self.written.is_full() && !files.iter().all(|handle| self.written.writer(&handle.path).is_some()) {
            self.settle();
            self.sync_late()?;
            self.written.let_go(|_| true);
        }
        for handle in files {
            self.written.expect(handle.reach, &handle.path, &handle.file)?;
            self.dirty.insert(handle.path.clone());
        }
        Ok(())
    }

    /// Syncs what shall be durable where errors may come late; says how many calls that took.
    fn sync_late(&mut self) -> Result<u64, Fault> {
        let late = self.written.late_ones(&self.dirty);
        let synced = self.sync_contents(&late);
        self.dirty.retain(|path| !late.contains(path));
        synced.map(|(calls, _)| calls)
    }

    /// Waits for all that was handed on.
    pub(super) fn settle(&self) {
        self.direct.wait();
        self.sets.iter().for_each(Set::wait);
    }

    /// Where the root of an object is, in which this file was made.
    pub(super) fn ask_about_root(&mut self, object: &Object, file: &File) -> Nearness {
        let root = self.grounds.at(object).map(PathBuf::from);
        root.map_or_else(|| at_hand::reach(file), |root| self.ask_of(&root, file))
    }

    /// Where a directory is, in which this file lies; it is asked once.
    fn ask_of(&mut self, directory: &Path, file: &File) -> Nearness {
        if let Some(&reach) = self.reach.get(directory) {
            return reach;
        }
        let reach = at_hand::reach(file);
        self.mounts.extend((reach == Nearness::AtHand).then(|| at_once::mount_of(file)).flatten());
        self.remember(directory, reach);
        reach
    }

    fn remember(&mut self, directory: &Path, reach: Nearness) {
        if self.reach.len() >= KNOWN_DIRECTORIES_MAX {
            self.reach.clear();
        }
        self.reach.insert(directory.into(), reach);
    }

    /// Whether a file is on this host, by its directory or by its mount: one of which nothing is known may be far away.
    fn ask_at_once(&mut self, path: &Path) -> bool {
        let Some(directory) = path.parent() else { return false };
        if let Some(&reach) = self.reach.get(directory) {
            return reach == Nearness::AtHand;
        }
        let is_known = |path| at_once::mount_at(path).is_some_and(|mount| self.mounts.contains(&mount));
        let at_hand = is_known(path) && is_known(directory);
        if at_hand {
            self.remember(directory, Nearness::AtHand);
        }
        at_hand
    }

    /// Whether a file is known to lie on a disk or in memory of this host, so that nothing far away is waited for.
    pub(super) fn is_at_hand(&self, path: &Path) -> bool {
        holds(&self.reach, path)
    }

    /// Whether all files that are kept open are on this host, so that closing them waits for nothing.
    pub(super) fn closes_at_once(&self) -> bool {
        self.open.iter().all(|handle| self.is_at_hand(&handle.path))
    }

    /// The path of an object on this host, for which another file may be closed. Of one that may be far away, or is, opening it alone
    /// may wait.
    fn found_at_hand(&mut self, object: &Object) -> Option<PathBuf> {
        let path = self.path(object);
        (!self.is_striped(object) && self.ask_at_once(&path) && self.closes_at_once()).then_some(path)
    }

    /// Reads from a file, if that needs no waiting. One that is open is not opened again.
    pub(super) fn read_at_hand(&mut self, object: &Object, moves: &Moves) -> AtOnce {
        let path = self.found_at_hand(object)?;
        at_once::read(&self.file(&path, false).ok()??.file, moves, self.maps).map(Ok)
    }

    /// Writes to a file that is on this host; `None` where it is not, or not known to be.
    pub(super) fn write_at_hand(&mut self, object: &Object, moves: &Moves, durability: Durability) -> AtOnce {
        let at_hand = self.is_at_hand(&self.path(object)) && !self.is_striped(object);
        at_hand.then(|| self.write(object, moves, durability))
    }

    /// Whether an object that is new goes where nothing far away is waited for. Below a root nobody mounts anything in
    /// directories that are hidden.
    fn is_new_at_hand(&self, object: &Object) -> bool {
        self.grounds.at(object).is_some_and(|root| self.reach.get(root) == Some(&Nearness::AtHand))
    }

    /// Whether a whole object goes where nothing far away is waited for: one that is new, or in the place of another.
    pub(super) fn goes_at_hand(&mut self, object: &Object, replace: bool) -> bool {
        if replace { self.found_at_hand(object).is_some() } else { self.is_new_at_hand(object) }
    }

    fn read(&mut self, object: &Object, moves: Moves) -> Result<Outcome, Fault> {
        let path = self.path(object);
        let Some(handle) = self.file(&path, false)? else { return Ok(Outcome::Absent) };
        let bytes = moves.bytes();
        let calls = Job { handle, moves, share: None, way: Way::Read, direct: false, maps: self.maps }.carry()?;
        Ok(done(bytes, calls))
    }

    /// Reads a part of a whole object with a checksum, and tells what it contributes to that.
    fn read_part(&mut self, object: &Object, moves: &Moves, total: u64) -> Result<Outcome, Fault> {
        let path = self.path(object);
        let doing = Doing { verb: "reading", path: &path };
        let Some(handle) = self.file(&path, false)? else { return Ok(Outcome::Absent) };
        let length = handle.file.metadata().map_err(|error| doing.failed_open(&error))?.len();
        if length != total + 4 {
            return Err(doing.corrupt(&format!("{} B", total + 4), &format!("{length} B")));
        }
        let job = Job {
            handle: handle.clone(),
            moves: moves.clone(),
            share: None,
            way: Way::Read,
            direct: false,
            maps: self.maps,
        };
        let (calls, mut sum) = job.carry_summed(total)?;
        if hull(moves).1 == total {
            let mut stored = [0; 4];
            handle.file.read_exact_at(&mut stored, total).map_err(|error| doing.failed_open(&error))?;
            sum.add_stored(stored);
        }
        Ok(Outcome::Done(Moved { bytes: moves.bytes(), calls, sum: sum.value(), ..Moved::default() }))
    }

    /// The same of an object on this host; `None` where it is not in the cache, or not there.
    pub(super) fn read_part_at_hand(&mut self, object: &Object, moves: &Moves, total: u64) -> AtOnce {
        let path = self.found_at_hand(object)?;
        let handle = self.file(&path, false).ok()??;
        let (low, high) = hull(moves);
        // The checksum lies behind the end, and is read with that.
        let high = if high == total { total + 4 } else { high };
        is_cached(&handle.file, (low, high)).then(|| self.read_part(object, moves, total))
    }

    fn read_whole(&mut self, object: &Object, moves: &Moves, checksum: bool) -> Result<Outcome, Fault> {
        let path = self.path(object);
        let doing = Doing { verb: "reading", path: &path };
        let file = match regular::open(&path, false) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Outcome::Absent),
            Err(error) => return Err(doing.failed("", &error)),
        };
        self.ask_of(path.parent().unwrap_or(Path::new("")), &file);
        self.whole_of((&file, &path), moves, checksum)
    }

    /// The same of an object that is open, and on this host; `None` where it is not in the cache, or not there.
    pub(super) fn read_whole_at_hand(&mut self, object: &Object, moves: &Moves, checksum: bool) -> AtOnce {
        let path = self.found_at_hand(object)?;
        let file = at_once::open(&path)?;
        let bytes = file.metadata().ok()?.len();
        is_cached(&file, (0, bytes)).then(|| self.whole_of((&file, &path), moves, checksum))
    }

    fn whole_of(&mut self, (file, path): (&File, &Path), moves: &Moves, checksum: bool) -> Result<Outcome, Fault> {
        let doing = Doing { verb: "reading", path };
        let length = file.metadata().map_err(|error| doing.failed_open(&error))?.len();
        let expected = moves.bytes() + if checksum { 4 } else { 0 };
        if length != expected {
            return Err(doing.corrupt(&format!("{expected} B"), &format!("{length} B")));
        }
        let reader =
            ChecksumReader::new(file, Doing { verb: "reading", path }, &mut self.scratch, (checksum, self.maps));
        let (sum, calls) = reader.whole(moves)?;
        if let Some(found) = sum {
            let mut trailer = [0; 4];
            file.read_exact_at(&mut trailer, moves.bytes()).map_err(|error| doing.failed_open(&error))?;
            let stored = u32::from_le_bytes(trailer);
            if stored != found {
                return Err(doing.corrupt(&format!("CRC-32C {stored:#010x}"), &format!("{found:#010x}")));
            }
        }
        Ok(done(moves.bytes(), calls))
    }

    fn get(&mut self, object: &Object, within: Within, bytes_max: u64) -> Result<Outcome, Fault> {
        let path = self.path(object);
        let doing = Doing { verb: "reading", path: &path };
        let file = match regular::open(&path, false) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Outcome::Absent),
            Err(error) => return Err(doing.failed("", &error)),
        };
        let length = file.metadata().map_err(|error| doing.failed_open(&error))?.len();
        let (first, bytes) = within.of(length);
        if bytes > bytes_max {
            return Err(doing.corrupt(&format!("at most {bytes_max} B"), &format!("{bytes} B")));
        }
        let end = first.saturating_add(bytes);
        if end > length {
            return Err(doing.corrupt(&format!("at least {end} B"), &format!("{length} B")));
        }
        if within != Within::All {
            let mut content = vec![0; bytes as usize];
            file.read_exact_at(&mut content, first).map_err(|error| doing.failed_open(&error))?;
            return Ok(Outcome::Done(Moved { bytes, calls: 1, content, first, ..Moved::default() }));
        }
        let mut content = Vec::with_capacity(bytes as usize);
        let read = file.take(bytes_max.saturating_add(1)).read_to_end(&mut content);
        read.map_err(|error| doing.failed_open(&error))?;
        if content.len() as u64 > bytes_max {
            return Err(doing.corrupt(&format!("at most {bytes_max} B"), &format!("{} B", content.len())));
        }
        Ok(Outcome::Done(Moved { bytes: content.len() as u64, calls: 1, content, first, ..Moved::default() }))
    }

    /// The same of an object on this host; `None` where it is not in the cache, or not there, or more than `most` bytes are wanted.
    pub(super) fn get_at_hand(&mut self, object: &Object, within: Within, (bytes_max, most): (u64, u64)) -> AtOnce {
        let path = self.found_at_hand(object)?;
        let file = at_once::open(&path)?;
        let (first, bytes) = within.of(file.metadata().ok()?.len());
        (bytes <= most && is_cached(&file, (first, first.saturating_add(bytes))))
            .then(|| self.get(object, within, bytes_max))
    }

    /// Closes files, but the few that were used last on this host: the next call may come to them again.
    pub(super) fn pause(&mut self) {
        self.end_requests();
        let reach = std::mem::take(&mut self.reach);
        self.close_but(|handle| holds(&reach, &handle.path));
        self.reach = reach;
    }

    /// Closes files: what is removed or unmounted later must not be held.
    pub(super) fn release(&mut self) {
        self.end_requests();
        self.close_but(|_| false);
        self.written.let_go(|_| true);
    }

    /// Whether closing may still tell of an error: of anything, or only of what [`Files::pause`] closes.
    pub(super) fn owes(&self, any: bool) -> bool {
        self.written.owes(any, self.open.iter().map(|handle| &**handle))
    }

    /// Closes what was written, and says what closing says. What shall be durable is synced before, where errors may come late.
    pub(super) fn close_written(&mut self) -> Result<Outcome, Fault> {
        self.settle();
        let synced = self.sync_late();
        self.close_but(|handle| !handle.writable);
        self.written.let_go(|path| !self.dirty.contains(path));
        synced.and_then(|calls| self.written.take_late().map(|()| done(0, calls)))
    }

    /// Keeps nothing of the requests so far.
    fn end_requests(&mut self) {
        self.settle();
        self.written.watch_only(&self.dirty);
        self.written.let_go(|path| !self.dirty.contains(path));
        self.replacing.give_up(&self.grounds, &mut self.written);
        self.grounds.release();
    }

    /// Objects of all further requests lie below these roots.
    pub(super) fn enter(&mut self, roots: Arc<[Root]>) {
        self.grounds.enter(roots);
        let grounds = std::mem::take(&mut self.grounds);
        self.close_but(|handle| grounds.lie_above(&handle.path));
        self.grounds = grounds;
    }

    /// Looks whether this rank sees of an object what rank 0 sees, where that waits for nothing far away. `None` where it
    /// would, or may.
    pub(super) fn prove_at_hand(&mut self, object: &Object) -> Option<Result<(), Fault>> {
        let unproven = self.grounds.unproven(object).to_vec();
        let at_hand = unproven.iter().all(|proof| self.ask_at_once(Path::new(proof.path())));
        at_hand.then(|| self.grounds.prove(object))
    }
}

/// Whether a file is known to lie on this host, by its directory.
fn holds(reach: &BTreeMap<PathBuf, Nearness>, path: &Path) -> bool {
    path.parent().and_then(|parent| reach.get(parent)) == Some(&Nearness::AtHand)
}

fn whole_striped(object: &str) -> Fault {
    Fault::new(FaultKind::Unsupported, format!("object '{object}' is striped, and so written and read in parts only"))
}
