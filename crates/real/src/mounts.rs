//! What lies at a path, by the kernel's table of mounts: it is known without a question to a file system that may not
//! answer.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, TryLockError};

/// File systems on a disk or in memory of this host.
const AT_HAND: [&str; 9] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs", "ramfs"];
/// Those through which a path may lead besides: they hold the system itself.
const OF_SYSTEM: [&str; 7] = ["overlay", "rootfs", "squashfs", "erofs", "devtmpfs", "proc", "sysfs"];
/// As many links as the kernel follows in a path.
const LINKS_MAX: usize = 40;

/// What kind of file system is mounted somewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    AtHand,
    OfSystem,
    Other,
}

impl Kind {
    fn named(name: &str) -> Kind {
        match name {
            _ if AT_HAND.contains(&name) => Kind::AtHand,
            _ if OF_SYSTEM.contains(&name) => Kind::OfSystem,
            _ => Kind::Other,
        }
    }
}

/// Whether no other node sees file systems of this type, or it is one of the system's own.
pub(crate) fn is_of_this_host(name: &str) -> bool {
    Kind::named(name) != Kind::Other
}

/// Whether a kind of file system, which may be followed by where it is mounted, is on a disk or in memory of one host.
pub fn is_of_one_host(kind: &str) -> bool {
    kind.split(' ').next().is_some_and(|name| AT_HAND.contains(&name))
}

/// What is mounted where; of what was mounted at one place one over another, the last.
type Mounts = HashMap<PathBuf, Mounted>;

/// What is mounted somewhere.
#[derive(Clone, Debug)]
struct Mounted {
    kind: Kind,
    system: Arc<MountedSystem>,
}

/// A file system, as the table describes it.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct MountedSystem {
    /// The number of its device on this host, as `major:minor`: each client of a shared file system has its own.
    pub(crate) device: String,
    /// Its type, such as `nfs4` or `fuse.sshfs`.
    pub(crate) name: String,
    /// What is mounted.
    pub(crate) source: String,
    /// Options of the file system, separated by commas.
    pub(crate) options: String,
}

/// A line of `/proc/self/mountinfo` (proc(5)).
fn mount_of_line(line: &str) -> Option<(PathBuf, Mounted)> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mounted = mount.split(' ').skip(2);
    let (device, at) = (mounted.next()?.to_string(), unescaped(mounted.nth(1)?));
    let mut fields = file_system.split(' ');
    let (name, source) = (fields.next()?.to_string(), fields.next().unwrap_or_default());
    let source = unescaped(source).to_string_lossy().into_owned();
    let kind = Kind::named(&name);
    let system = MountedSystem { device, name, source, options: fields.next().unwrap_or_default().into() };
    Some((at, Mounted { kind, system: Arc::new(system) }))
}

/// Spaces, tabs, newlines and backslashes are written in octal.
fn unescaped(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = text.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal.filter(|_| bytes[at] == b'\\') {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    OsString::from_vec(plain).into()
}

/// The table as it was read last.
struct Table {
    file: File,
    /// Changes are told to one reader of an open file; a child needs its own.
    process: u32,
    mounts: Arc<Mounts>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

impl Table {
    fn open() -> std::io::Result<Table> {
        let file = File::open("/proc/self/mountinfo")?;
        let mut table = Table { file, process: std::process::id(), mounts: Arc::default() };
        // What changes from now on is told.
        table.has_changed();
        table.read()?;
        Ok(table)
    }

    fn has_changed(&self) -> bool {
        let mut asked = [PollFd::new(&self.file, PollFlags::PRI)];
        let told = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        told.is_err() || asked[0].revents().intersects(PollFlags::PRI | PollFlags::ERR)
    }

    fn read(&mut self) -> std::io::Result<()> {
        let mut bytes = Vec::with_capacity(1 << 16);
        self.file.rewind()?;
        self.file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        self.mounts = Arc::new(text.lines().filter_map(mount_of_line).collect());
        Ok(())
    }
}

/// All mounts that this process sees.
fn mounts() -> std::io::Result<Arc<Mounts>> {
    let mut kept = match TABLE.try_lock() {
        Ok(kept) => kept,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Another thread reads it; in a child of a process of several, that one is gone and never ends.
        Err(TryLockError::WouldBlock) => return Ok(Table::open()?.mounts),
    };
    match &mut *kept {
        Some(table) if table.process == std::process::id() => {
            if table.has_changed() {
                table.read()?;
            }
        }
        other => *other = Some(Table::open()?),
    }
    Ok(kept.as_ref().map(|table| table.mounts.clone()).unwrap_or_default())
}

/// Whether a path leads to a disk or to memory of this host, by nothing else, and nothing else is mounted below it. What is
/// there need not exist.
pub(crate) fn is_at_hand(path: &Path) -> bool {
    let mounts = mounts().unwrap_or_default();
    std::path::absolute(path).is_ok_and(|path| at_hand_among(&mounts, &path))
}

/// The file system to which a path leads, or which is mounted on the way there and is not of this host: behind it nothing is asked. What is
/// there need not exist. `None` where the table cannot be read.
pub(crate) fn file_system(path: &Path) -> Option<Arc<MountedSystem>> {
    let mounts = mounts().ok()?;
    file_system_among(&mounts, &std::path::absolute(path).ok()?)
}

fn file_system_among(mounts: &Mounts, path: &Path) -> Option<Arc<MountedSystem>> {
    let there = landing(mounts, path)?;
    there.ancestors().find_map(|at| mounts.get(at)).map(|mounted| mounted.system.clone())
}

/// Where a path leads by links of file systems of this host; it ends where another one begins, which is not asked. `None` where links
/// lead in a circle, or nothing is known.
fn landing(mounts: &Mounts, path: &Path) -> Option<PathBuf> {
    let mut left: Vec<OsString> = path.iter().rev().map(OsString::from).collect();
    let mut there = PathBuf::from("/");
    let (mut links, mut exists) = (0, true);
    while let Some(part) = left.pop() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => there = "/".into(),
            Some(Component::ParentDir) => drop(there.pop()),
            Some(Component::Normal(name)) => there.push(name),
            _ => continue,
        }
        if there.ancestors().find_map(|at| mounts.get(at))?.kind == Kind::Other {
            break;
        }
        if !exists {
            continue;
        }
        match std::fs::read_link(&there) {
            Ok(target) => {
                links += 1;
                if links > LINKS_MAX {
                    return None;
                }
                there.pop();
                left.extend(target.iter().rev().map(OsString::from));
            }
            Err(error) => exists = error.kind() != std::io::ErrorKind::NotFound,
        }
    }
    Some(there)
}

/// Whether no link is in a path; it may be missing. No link is followed.
fn is_without_links(path: &Path) -> bool {
    let (flags, how) = (OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::NO_SYMLINKS);
    let look = |path: &Path| openat2(CWD, path, flags, Mode::empty(), how);
    match look(path) {
        // What is to be made is no link yet.
        Err(Errno::NOENT) => path.parent().is_some_and(|above| look(above).is_ok()),
        looked => looked.is_ok(),
    }
}

fn at_hand_among(mounts: &Mounts, path: &Path) -> bool {
    let mounted = |at: &Path| mounts.get(at).map(|mount| mount.kind);
    // On the way there is nothing but disks of this host, unless a link leads away: the system finds links in one call.
    let is_local = |path: &Path| {
        let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        plain && path.ancestors().filter_map(mounted).all(|kind| kind != Kind::Other)
    };
    let lands = path.ancestors().find_map(mounted);
    let there = match is_local(path) {
        // What holds the system may lie on anything, and is not even asked for links.
        true if lands != Some(Kind::AtHand) => return false,
        true if is_without_links(path) => Some(path.into()),
        _ => landing(mounts, path),
    };
    let Some(there) = there else { return false };
    // Comparing bytes first, since most lie elsewhere, and paths are compared part by part.
    let begins = |at: &Path| at.as_os_str().as_bytes().starts_with(there.as_os_str().as_bytes());
    let below = |at: &PathBuf| begins(at) && *at != there && at.starts_with(&there);
    there.ancestors().find_map(mounted) == Some(Kind::AtHand) && !mounts.keys().any(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(at: &str, kind: &str) -> (PathBuf, Mounted) {
        let line = format!("36 35 0:45 / {at} rw,relatime shared:1 - {kind} srv:/x rw");
        mount_of_line(&line).unwrap()
    }

    #[test]
    fn the_table_says_what_is_at_hand() {
        let base = std::env::temp_dir().join(format!("hyperslab-mounts-{}", std::process::id()));
        std::fs::create_dir_all(&base).unwrap();
        let base = base.canonicalize().unwrap();
        let (far, near) = (base.join("far"), base.join("near"));
        std::fs::create_dir_all(near.join("deep")).unwrap();
        std::fs::create_dir(&far).unwrap();
        std::os::unix::fs::symlink("../far/x", near.join("link")).unwrap();
        std::os::unix::fs::symlink(near.join("deep"), near.join("absolute")).unwrap();
        std::os::unix::fs::symlink("round", near.join("round")).unwrap();
        let [base_at, near_at, far_at] = [&base, &near, &far].map(|path| path.to_str().unwrap());
        let mounts = Mounts::from([mount("/", "overlay"), mount(base_at, "ext4"), mount(far_at, "nfs4")]);
        let is = |path: PathBuf| at_hand_among(&mounts, &path);
        assert!(is(near.clone()) && is(near.join("new/one")) && is(near.join("absolute/new")));
        assert!(is(near.join("deep/../link2")), "names that are not there yet");
        assert!(!is(far.clone()) && !is(far.join("deep")) && !is(near.join("link/new")), "far");
        assert!(!is(base.clone()), "something far is mounted below");
        assert!(!is(near.join("round")), "it ends nowhere");
        assert!(!is("/".into()) && !is("/etc".into()), "an overlay may lie on anything");
        let stacked = Mounts::from([mount(base_at, "ext4"), mount(near_at, "ext4"), mount(near_at, "nfs")]);
        assert!(!at_hand_among(&stacked, &near), "the last counts");
        assert!(!at_hand_among(&Mounts::new(), &near), "nothing is known");
        let shared = Mounts::from([mount("/", "overlay"), mount("/dev", "devtmpfs"), mount("/dev/shm", "tmpfs")]);
        assert!(at_hand_among(&shared, Path::new("/dev/shm/new")) && !at_hand_among(&shared, Path::new("/dev/new")));
        let leads = |path: PathBuf| file_system_among(&mounts, &path).map(|system| system.name.clone());
        assert_eq!(leads(near.join("link/new")).as_deref(), Some("nfs4"), "by a link");
        assert_eq!(leads(far.join("a/b")).as_deref(), Some("nfs4"));
        assert_eq!(leads(near.join("deep/../new")).as_deref(), Some("ext4"));
        assert_eq!(leads(near.join("round")), None, "it ends nowhere");
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn lines_are_parsed() {
        assert_eq!(mount("/a\\040b\\134", "tmpfs").0, Path::new("/a b\\"));
        assert!(mount_of_line("36 35 0:45").is_none());
        let line = "64 43 0:40 / /mnt/a rw,nosuid - fuse mfs\\04310.77.0.1:9421 rw,user_id=0,allow_other";
        let found = mount_of_line(line).unwrap().1.system;
        let expected = MountedSystem {
            device: "0:40".into(),
            name: "fuse".into(),
            source: "mfs#10.77.0.1:9421".into(),
            options: "rw,user_id=0,allow_other".into(),
        };
        assert_eq!(*found, expected);
    }

    #[test]
    fn the_table_is_read_once() {
        let first = mounts().unwrap();
        assert!(!first.is_empty() && Arc::ptr_eq(&first, &mounts().unwrap()));
    }
}
