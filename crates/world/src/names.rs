//! Names: what rank 0 makes, lists, renames and removes before and after data move.

use crate::bucket::contract::Bucket;
use crate::{Fault, FaultKind, FileSeen, Mount, OpenedFile, Process};
use std::sync::Arc;

/// Longest file of metadata that is believed \[B\]. The consolidated metadata of 100,000 arrays have some 100 MB.
pub const METADATA_BYTES_MAX: u64 = 256 << 20;

/// Longest note of an owner that is believed \[B\]: some hundred bytes, and a line for each array that is updated in place.
pub const NOTE_BYTES_MAX: u64 = 4 << 20;

/// A lock on a small file, until it is dropped. The note in the file outlives it.
pub trait Lock: Send + Sync {
    /// Adds to the end of the note.
    fn add(&self, note: &[u8]) -> Result<(), Fault>;
    /// Cuts the note to its first bytes; in a file system, it may also gain some that are zero.
    fn cut(&self, bytes: u64) -> Result<(), Fault>;
    /// Whether the name by which it was locked still means this file.
    ///
    /// # Errors
    /// When the place does not tell.
    fn has_its_name(&self) -> Result<bool, Fault>;
    /// Whether others are kept out; not where a file system has no locks.
    fn keeps_others_out(&self) -> bool;
    /// Lets others lock it from now on, with a note as long as this one; says whether it can do that, and else has changed
    /// nothing but, at most, the note.
    fn rest(&self, note: &[u8]) -> bool {
        let _ = note;
        false
    }
    /// Locks it again after it rested, with another note of the same length; says whether nobody else has it, or changed
    /// the note, or the name, meanwhile.
    ///
    /// # Errors
    /// When nobody can know, or the note cannot be written; it rests still then.
    fn resume(&self, rested: &[u8], note: &[u8]) -> Result<bool, Fault> {
        let _ = (rested, note);
        Ok(false)
    }
}

/// What comes of asking for a name that one owner at a time may have.
pub enum Claim {
    /// The file is ours, and was not there before.
    New(Box<dyn Lock>),
    /// The file was there with this note, and nobody has it locked, or nobody can know; now it is ours.
    Left(Box<dyn Lock>, Vec<u8>),
    /// Somebody has it locked; this is the note.
    Busy(Vec<u8>),
}

/// What comes of locking a file.
pub enum Locked {
    /// It is ours; see [`Lock::keeps_others_out`].
    Ours(Box<dyn Lock>),
    /// Somebody has it locked.
    Busy,
    /// Nothing has the name.
    Absent,
}

/// Gives what a file shall hold, from what it holds.
pub type Change<'a> = &'a mut dyn FnMut(Vec<u8>) -> Vec<u8>;
/// What is done besides.
pub type Then<'a> = &'a mut dyn FnMut() -> Result<(), Fault>;

/// What a free lock says of its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locks {
    /// The place belongs to this host alone: whoever does not hold a lock is gone, and so is any owner from before the
    /// host started.
    HostOnly,
    /// Locks hold between hosts: whoever does not hold one is gone.
    Shared,
    /// Locks, if there are any, hold among the processes of one host.
    EachHost,
}

/// How what was written becomes visible in a place.
pub enum Publishing {
    /// By a rename: it lies under a hidden name until then.
    Rename,
    /// By its metadata: objects lie under their final keys, put if absent, and what says what they mean comes last.
    Metadata(Arc<dyn Bucket>),
}

/// A directory or file that is kept from being forgotten, so that its identity is nobody else's.
pub struct Hold {
    /// Device and inode, or what stands for them.
    pub identity: (u64, u64),
    /// Keeps it.
    pub keep: Box<dyn std::any::Any + Send + Sync>,
}

/// Bytes of a file that lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Where they begin in the file \[B\].
    pub logical: u64,
    /// Where they begin on the device \[B\]; comparable between files of one file system.
    pub physical: u64,
    /// How many there are \[B\].
    pub bytes: u64,
}

/// Directories and files by name, seen from one root.
///
/// A name is relative to the root, with `/` between its parts and perhaps one at its end; the empty name is the root itself.
/// No part is `.` or `..`. What [`Names::full`] gives is absolute: for people, for other roots ([`Names::at`]), and for
/// those below which objects lie for the [`Store`](crate::Store) of the same machine ([`Root`](crate::Root)). What is made
/// here is seen there, and the reverse, by all ranks, as soon as the call that made it has returned.
///
/// | call | others see |
/// | --- | --- |
/// | [`write`](Names::write), [`rename`](Names::rename), [`exchange`](Names::exchange) | the old state or the new one, at any time, also after a crash of this process |
/// | all other changes | any part of them, in any order |
///
/// An implementer whose files have parts in several places cannot change them at once. It may promise less of `write`
/// and `rename`: meanwhile and after a crash, some parts are old and some new. But each rename has *one* moment that
/// decides it, and it offers completion: before that moment the old state is whole under its name and the new one under
/// the name it has so far; after it, [`Names::complete`] does what is left. Who opens a file that others publish by a
/// rename thus calls `complete` first, and [`Names::check`] before it believes [`Names::length`].
///
/// The path of the root itself may contain symbolic links. Below it, what reads follows them; what makes, writes, renames
/// or removes does not, and fails where one is in its way.
///
/// Nothing survives a loss of power but files written with `sync`, and what [`Names::sync_files`] and its like
/// were called for after the change; where nothing survives the process, these do nothing. Not promised: that two
/// callers may change the same names at once, that a change is undone when it fails half-way, that a file that was
/// removed gives its space back while somebody has it open, or that [`Names::exchange`] can be done at all.
///
/// [`conformance::names`](crate::conformance::names) tests an implementation against this.
pub trait Names: Send + Sync {
    /// The absolute name of a name.
    fn full(&self, name: &str) -> String;
    /// The absolute name of the root, whatever it was relative to (a process has a current directory).
    ///
    /// # Errors
    /// When it cannot be known, or no root can have that name.
    fn resolve(&self) -> Result<String, Fault>;
    /// The absolute name, without links, of what the root leads to in the end, if that is there, or the root is a link and could lead
    /// there.
    ///
    /// # Errors
    /// When the place does not tell.
    fn followed(&self) -> Result<Option<String>, Fault> {
        Ok(None)
    }
    /// In how many places files have their parts.
    fn parts(&self) -> usize {
        1
    }
    /// Whether absolute names are paths of the file system.
    fn is_plain(&self) -> bool {
        false
    }
    /// The same names, seen from the root with this absolute name, which need not exist.
    fn at(&self, root: &str) -> Arc<dyn Names>;
    /// The absolute name of what the root lies in, and the root's name there; `None` when nothing is above the root.
    fn above(&self) -> Option<(String, String)>;

    /// The same names, where a record (what [`Names::claim`], [`Names::edit`], [`Names::append`], [`Names::lock`] and
    /// [`Names::note`] are asked for, and what [`Names::check_believed`] looks at) is believed only if whoever made it could have
    /// changed what has the name `data` anyway; else they fail with [`FaultKind::Foreign`]. What they make has the permissions of
    /// that. `None` where all who can make records could have changed all.
    fn believing(&self, data: &str) -> Option<Arc<dyn Names>> {
        let _ = data;
        None
    }
    /// Makes sure that a directory or a hidden file is believed, and nobody else may put names into it; nothing there is.
    ///
    /// # Errors
    /// [`FaultKind::Foreign`] when it is not.
    fn check_believed(&self, name: &str) -> Result<(), Fault> {
        let _ = name;
        Ok(())
    }

    /// How what was written becomes visible.
    fn publishing(&self) -> Publishing {
        Publishing::Rename
    }
    /// This process, as others can know it who look at what it left.
    fn process(&self) -> Process {
        Process::default()
    }
    /// Whether a process is known not to run any more.
    fn is_gone(&self, process: &Process) -> bool {
        let _ = process;
        false
    }
    /// 32 hexadecimal digits that nobody who uses the place was ever given or will be.
    fn token(&self) -> String;

    /// Whether something has this name.
    fn exists(&self, name: &str) -> bool;
    /// Length of a file \[B\], `None` when there is no such file.
    fn length(&self, name: &str) -> Option<u64>;
    /// Names in a directory, sorted; none when there is no such directory.
    fn list(&self, name: &str) -> Result<Vec<String>, Fault>;
    /// The first bytes of a file, at most this many; `None` when nothing has the name. What is no regular file is refused,
    /// without opening it for good: a pipe or a device may never answer.
    fn read_prefix(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault>;
    /// The bytes of a file from this one on, at most so many, and none behind its end; otherwise the same.
    fn read_part(&self, name: &str, at: u64, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        let prefix = self.read_prefix(name, at.saturating_add(bytes_max))?;
        Ok(prefix.map(|mut prefix| prefix.split_off(prefix.len().min(usize::try_from(at).unwrap_or(usize::MAX)))))
    }

    /// Makes a directory and those above it; one that exists is fine.
    fn make(&self, name: &str) -> Result<(), Fault>;
    /// The same; whatever was made, the names of all of it are durable.
    fn make_durable(&self, name: &str) -> Result<(), Fault>;
    /// Makes a directory in one that exists. Returns whether it was made; not if the name is taken.
    fn make_new(&self, name: &str) -> Result<bool, Fault>;
    /// Writes a small file whole, in a directory that exists; an older one is replaced. With `sync`, bytes and name are
    /// durable.
    fn write(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault>;
    /// Writes a small file whole, in a directory that exists, if nothing has the name; others see nothing or all of it. Returns
    /// whether it was written.
    fn write_new(&self, name: &str, bytes: &[u8], sync: bool) -> Result<bool, Fault> {
        let (above, last) =
            name.rsplit_once('/').map_or((String::new(), name), |(above, last)| (format!("{above}/"), last));
        let unborn = format!("{above}.{last}.hyperslab-{}", self.token());
        self.create(&unborn, bytes, bytes.len() as u64)?;
        let synced = if sync { self.sync_files(std::slice::from_ref(&unborn)) } else { Ok(()) };
        match synced.and_then(|()| self.rename_new(&unborn, name)) {
            Ok(true) if sync => self.sync(&above).map(|()| true),
            Ok(true) => Ok(true),
            // Whoever makes the same at the same time may have taken it for what somebody left.
            Err(_) if !self.exists(&unborn) => Ok(false),
            failed => {
                let _ = self.remove(&unborn);
                failed
            }
        }
    }
    /// Makes a small file with a note, in a directory that exists, and locks it; or locks one that is there, if nobody has
    /// it locked. With `sync`, its being there is durable; of the note no more is promised than that it is written.
    fn claim(&self, name: &str, note: &[u8], sync: bool) -> Result<Claim, Fault>;
    /// What a small file holds that [`Names::claim`] or [`Names::edit`] made; `None` when nothing has the name.
    fn note(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.read_prefix(name, NOTE_BYTES_MAX)
    }
    /// The same of one that its owner may just be making: while it is empty, he gets some time to write it.
    ///
    /// # Errors
    /// As [`Names::note`].
    fn written_note(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.note(name)
    }
    /// Adds a line to the end of such a file, in one piece, though others may have it to themselves; makes it if it is not
    /// there.
    fn append(&self, name: &str, bytes: &[u8]) -> Result<(), Fault>;
    /// Changes a small file of lines that several owners share, in a directory that exists, while no other caller of this
    /// does: `change` gets its lines, none where it is not there, and gives those that it shall have; a file that shall have
    /// none is removed. Empty lines are none. What [`Names::append`] adds meanwhile stays. After the change, and still alone,
    /// does `then`.
    ///
    /// # Errors
    /// [`FaultKind::Timeout`] soon, with nothing changed, when somebody else keeps the file to himself: whoever is stopped
    /// in the middle keeps nobody from going on.
    fn edit(&self, name: &str, change: Change, then: Then) -> Result<(), Fault>;
    /// Locks a file that is there, for as long as what is given lives.
    fn lock(&self, name: &str) -> Result<Locked, Fault>;
    /// Whether nobody has a file that is there locked for himself alone, as those do who write to it; some may share a lock.
    fn is_shared(&self, _name: &str) -> Result<bool, Fault> {
        Ok(true)
    }
    /// Whether all below the root is known to lie on a disk or in memory of this host, so that nothing far away is waited
    /// for.
    fn is_at_hand(&self) -> bool;
    /// The mount by which this process sees the place, where what is done by one client is not seen by others at once; `None` where it
    /// is, as [`Names`] promises without that. Only the system of this host is asked.
    fn mount(&self) -> Option<Mount> {
        None
    }
    /// Waits a moment for what another client may have changed of a name, and lets this client look at it again; says whether that can
    /// help: not where all clients see the same.
    fn await_others(&self, name: &str) -> bool {
        let _ = name;
        false
    }
    /// What a free lock on a file in this directory would say of its owner.
    fn locks(&self, name: &str) -> Locks;
    /// Keeps what has this name, which links may lead to, from being forgotten.
    fn hold(&self, name: &str) -> Result<Hold, Fault>;
    /// The same names, where what is made, written, renamed or removed below this directory is so in the one that is held,
    /// whatever has its name by then; `None` where the place cannot. What only looks goes by names.
    fn pinned(&self, name: &str, held: &Hold) -> Option<Arc<dyn Names>> {
        let _ = (name, held);
        None
    }
    /// The identity that [`Names::hold`] would give, of what has the name now; another one may have it later, unless
    /// somebody holds this one. `None` where nothing has the name: who cannot look must not take that for gone.
    fn identity(&self, name: &str) -> Result<Option<(u64, u64)>, Fault> {
        match self.hold(name) {
            Ok(held) => Ok(Some(held.identity)),
            Err(fault) if self.exists(name) => Err(fault),
            Err(_) => Ok(None),
        }
    }
    /// Whether nothing has the name for sure: not where nobody can look.
    fn is_absent(&self, name: &str) -> bool {
        matches!(self.identity(name), Ok(None))
    }
    /// What tells the directory or file with this name, and the names in it or what it holds, from any other one and from
    /// what it becomes by a change; also after this process. Empty where nobody else ever looks.
    fn version(&self, name: &str) -> Result<String, Fault> {
        let _ = name;
        Ok(String::new())
    }
    /// What a file is now, for who has seen it before; `None` when nothing has the name.
    ///
    /// # Errors
    /// When nobody can look, or the place does not tell changes of a file.
    fn seen(&self, name: &str) -> Result<Option<FileSeen>, Fault> {
        Err(untold(&self.full(name)))
    }
    /// What a file was when it was opened, and the file, to be read; `None` when nothing has the name.
    ///
    /// # Errors
    /// As those of [`Names::seen`], and for what is no file.
    fn reader(&self, name: &str) -> Result<Option<OpenedFile>, Fault> {
        Err(untold(&self.full(name)))
    }
    /// Whether the name is a symbolic link, or lies beyond one below the root. The root itself may be one, too.
    fn is_link(&self, name: &str) -> bool;
    /// Makes a file of this length that begins with `prefix`, in a directory that exists; the rest is still to be
    /// written. An older one is gone.
    fn create(&self, name: &str, prefix: &[u8], bytes: u64) -> Result<(), Fault>;
    /// Gives a file that exists another length; bytes that it gains are zero.
    fn resize(&self, name: &str, bytes: u64) -> Result<(), Fault>;
    /// Overwrites the first bytes of a file that exists and has as many. With `sync`, they are durable.
    fn overwrite(&self, name: &str, prefix: &[u8], sync: bool) -> Result<(), Fault>;
    /// Overwrites bytes of a file that exists and has as many, from this one on.
    fn overwrite_part(&self, name: &str, at: u64, bytes: &[u8]) -> Result<(), Fault>;
    /// Renames something to a name that does not exist, in a directory that exists; or a file over a file.
    fn rename(&self, from: &str, to: &str) -> Result<(), Fault>;
    /// Renames something to a name that does not exist, at once. Returns whether that was done; not if the name is taken.
    fn rename_new(&self, from: &str, to: &str) -> Result<bool, Fault>;
    /// Whether files may have several names here.
    fn has_links(&self) -> bool {
        false
    }
    /// Gives a file one more name, in a directory that exists. Returns whether that was done; not if the name is taken, or files
    /// cannot have several.
    fn link(&self, from: &str, to: &str) -> Result<bool, Fault> {
        let _ = (from, to);
        Ok(false)
    }
    /// Writes a small file whole over the [version](Names::version) that was seen. Returns whether that was still there; not
    /// if somebody else changed it meanwhile, as far as the place can tell.
    fn replace(&self, name: &str, bytes: &[u8], over: &str) -> Result<bool, Fault> {
        let unchanged = self.version(name)? == over;
        if unchanged {
            self.write(name, bytes, true)?;
        }
        Ok(unchanged)
    }
    /// Ends a rename of a file that was decided and then interrupted, and makes it durable; nothing was renamed from `from`
    /// to `to`, or all of it, is fine. Returns whether something was left to do. Nothing ever is where a rename is one
    /// change.
    ///
    /// # Errors
    /// When it cannot be ended: then `to` is old in part and new in part, and must not be read.
    fn complete(&self, _from: &str, _to: &str) -> Result<bool, Fault> {
        Ok(false)
    }
    /// Checks that the parts of a file fit together, if it has several; nothing there is fine.
    ///
    /// # Errors
    /// When some are missing or have lengths that do not fit.
    fn check(&self, _name: &str) -> Result<(), Fault> {
        Ok(())
    }
    /// Exchanges what two names mean at once, so that neither is missing at any time. Returns whether that can be
    /// done here; if not, nothing has changed.
    fn exchange(&self, a: &str, b: &str) -> Result<bool, Fault>;
    /// Gives a file or directory the permissions, the group and, where that is allowed, the owner of another, as far as the place
    /// has any. Nothing there is fine.
    fn take_mode(&self, from: &str, to: &str) -> Result<(), Fault> {
        let _ = (from, to);
        Ok(())
    }
    /// As [`Names::create`], with the permissions of what has the name `like`, if anything has: at no moment is what was made
    /// open to more users than that. Its owner may write to it.
    fn create_like(&self, name: &str, prefix: &[u8], bytes: u64, like: &str) -> Result<(), Fault> {
        let _ = like;
        self.create(name, prefix, bytes)
    }
    /// As [`Names::make_new`], in the same way; but who may only add names to the other directory may add none to this one.
    fn make_new_like(&self, name: &str, like: &str) -> Result<bool, Fault> {
        let _ = like;
        self.make_new(name)
    }
    /// Whether a directory with the name `from` can be made, and things be renamed from it to the directory `to`.
    fn can_rename(&self, from: &str, to: &str) -> bool;
    /// Removes a file, or a directory with all that is in it; nothing there is fine.
    fn remove(&self, name: &str) -> Result<(), Fault>;
    /// Removes what was never published, as far as that goes, and gives its space back at once, even where ranks still
    /// have files of it open; files that have other names keep their contents.
    fn discard(&self, name: &str);
    /// Removes a directory if nothing is in it.
    fn remove_empty(&self, name: &str);

    /// Reserves the space of the first bytes of a file that exists, so that they have their places before they are
    /// written, and room; returns whether the file system can. A lack of space is an error, which leaves the file as it
    /// was.
    fn reserve(&self, name: &str, bytes: u64) -> Result<bool, Fault> {
        let _ = (name, bytes);
        Ok(false)
    }
    /// Where the bytes of a file lie on its device, in rising order of their offsets and without holes; `None` where
    /// that is not known.
    fn extents(&self, name: &str) -> Result<Option<Vec<Extent>>, Fault> {
        let _ = name;
        Ok(None)
    }

    /// Makes small files and their names durable, in as few calls as the system allows.
    fn sync_files(&self, names: &[String]) -> Result<(), Fault>;
    /// Makes what a file holds durable, and perhaps its name.
    fn sync_content(&self, name: &str) -> Result<(), Fault> {
        self.sync_files(&[name.to_string()])
    }
    /// Makes the names in a directory durable.
    fn sync(&self, name: &str) -> Result<(), Fault>;
}

fn untold(full: &str) -> Fault {
    Fault::new(FaultKind::Unsupported, format!("the place of '{full}' does not tell when a file changes"))
}

impl dyn Names + '_ {
    /// The contents of a small file; `None` when nothing has the name.
    ///
    /// # Errors
    /// When it is longer than any metadata are, besides.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        /// What is no longer is known by reading it \[B\].
        const SHORT: u64 = 1 << 16;
        match self.read_prefix(name, SHORT)? {
            Some(bytes) if bytes.len() as u64 >= SHORT => {}
            short => return Ok(short),
        }
        if let Some(length) = self.length(name).filter(|&length| length > METADATA_BYTES_MAX) {
            let text = format!(
                "'{}' should be a small file, at most {METADATA_BYTES_MAX} B, but has {length} B",
                self.full(name)
            );
            return Err(
                Fault::new(FaultKind::Corrupt, text).hint("restore it; it was damaged, or something else has its name")
            );
        }
        self.read_prefix(name, METADATA_BYTES_MAX)
    }
}
