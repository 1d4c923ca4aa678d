//! What other nodes see of what this one does in a file system, by the kernel's table of mounts.
//!
//! Caches are those of a client, which is a mount on a host. What is known of file systems comes from their documents (nfs(5), those
//! of Lustre, CephFS, GPFS, BeeGFS, JuiceFS) and from trials with GlusterFS and MooseFS; which says what is in docs/clusters.md. A file
//! system that shares with other nodes and is not known counts as the weakest.

use crate::here::this_process;
use crate::mounts::{MountedSystem, file_system, is_at_hand, is_of_this_host};
use hyperslab_world::{Locks, Mount, Strength, fingerprint};
use std::path::Path;

/// Says what file systems of several nodes promise, in the place of the table: `coherent`, `close-to-open` or `timeouts`.
const PLACE: &str = "HYPERSLAB_PLACE";

/// Those whose clients see at once what others have done.
const COHERENT: [&str; 9] =
    ["lustre", "ceph", "fuse.ceph", "fuse.ceph-fuse", "gpfs", "ocfs2", "gfs2", "pvfs2", "wekafs"];
/// Those whose clients see what was closed before they open it.
const CLOSE_TO_OPEN: [&str; 7] = ["nfs", "nfs4", "cifs", "smb3", "beegfs", "afs", "fuse.juicefs"];

/// The mount by which this process sees a path, where not all clients see the same at once.
pub(crate) fn mount(path: &Path) -> Option<Mount> {
    let said = std::env::var(PLACE).ok().and_then(|said| named(said.trim()));
    if said.is_none() && is_at_hand(path) {
        return None;
    }
    let Some(system) = file_system(path) else {
        let strength = said.unwrap_or(Some(Strength::Timeouts))?;
        return Some(Mount { number: number("unknown"), strength, kind: "a file system that is not known".into() });
    };
    let strength = said.unwrap_or_else(|| strength(&system))?;
    Some(Mount { number: number(&system.device), strength, kind: kind(&system).into() })
}

/// What is known of the file system that a path leads to, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlaceSeen {
    /// Its type, as the table of mounts has it.
    pub kind: String,
    /// What is mounted.
    pub source: String,
    /// Its options, separated by commas.
    pub options: String,
    /// Tells this mount from others, on this host and elsewhere.
    pub number: u64,
    /// What other clients see of what this one does; `None` where they see all at once.
    pub strength: Option<Strength>,
    /// What a free lock says of its owner.
    pub locks: Locks,
}

/// What is known of the file system that a path leads to; `None` where the table does not tell.
pub fn place_seen(path: &Path) -> Option<PlaceSeen> {
    let system = file_system(path)?;
    Some(PlaceSeen {
        kind: kind(&system).into(),
        source: system.source.clone(),
        options: system.options.clone(),
        number: number(&system.device),
        strength: mount(path).map(|mount| mount.strength),
        locks: if is_at_hand(path) { Locks::HostOnly } else { locks(&system) },
    })
}

/// What the variable says, if anything; what is not understood is the weakest.
fn named(said: &str) -> Option<Option<Strength>> {
    match said {
        "coherent" => Some(None),
        "close-to-open" => Some(Some(Strength::CloseToOpen)),
        "" => None,
        _ => Some(Some(Strength::Timeouts)),
    }
}

/// Tells one mount of one host from all others.
fn number(device: &str) -> u64 {
    let here = this_process();
    fingerprint(format!("{} {} {device}", here.host, here.boot).as_bytes())
}

/// The kind of a file system, for people.
fn kind(system: &MountedSystem) -> &str {
    if is_moosefs(system) { "MooseFS" } else { &system.name }
}

/// MooseFS does not tell its type, but what is mounted begins so.
fn is_moosefs(system: &MountedSystem) -> bool {
    system.name.starts_with("fuse") && system.source.starts_with("mfs#")
}

/// What others see of a file system; `None` where they see all at once.
fn strength(system: &MountedSystem) -> Option<Strength> {
    let name = system.name.as_str();
    let has = |wanted: &str| system.options.split(',').any(|option| option == wanted);
    let is_disk = system.source.starts_with("/dev/") && !name.starts_with("fuse.") && name != "fuse";
    match name {
        _ if COHERENT.contains(&name) || is_of_this_host(name) || is_disk => None,
        "9p" if has("cache=none") => None,
        _ if CLOSE_TO_OPEN.contains(&name) || is_moosefs(system) => Some(Strength::CloseToOpen),
        _ => Some(Strength::Timeouts),
    }
}

/// What a free lock in a file system says of its owner.
pub(crate) fn locks(system: &MountedSystem) -> Locks {
    let options: Vec<&str> = system.options.split(',').collect();
    match system.name.as_str() {
        "overlay" => Locks::HostOnly,
        "nfs" | "nfs4" => {
            let alone = |option: &&str| {
                *option == "nolock" || (option.starts_with("local_lock=") && *option != "local_lock=none")
            };
            if options.iter().any(alone) { Locks::EachHost } else { Locks::Shared }
        }
        "lustre" if options.contains(&"flock") => Locks::Shared,
        "ceph" | "gpfs" | "ocfs2" | "gfs2" => Locks::Shared,
        // Tried: flock holds between clients, and is free some milliseconds after its holder, or its client, was killed.
        "fuse.glusterfs" => Locks::Shared,
        _ if is_moosefs(system) => Locks::Shared,
        _ => Locks::EachHost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(name: &str, source: &str, options: &str) -> MountedSystem {
        MountedSystem { device: "0:45".into(), name: name.into(), source: source.into(), options: options.into() }
    }

    #[test]
    fn the_table_of_mounts_tells_what_others_see() {
        let cases = [
            ("nfs4", "srv:/x", "rw,vers=4.2", Some(Strength::CloseToOpen)),
            ("fuse", "mfs#10.0.0.1:9421", "rw", Some(Strength::CloseToOpen)),
            ("fuse.glusterfs", "srv:/x", "rw", Some(Strength::Timeouts)),
            ("fuse.sshfs", "user@srv:", "rw", Some(Strength::Timeouts)),
            ("newfs", "srv", "rw", Some(Strength::Timeouts)),
            ("lustre", "mgs@tcp:/scratch", "rw,flock", None),
            ("ext4", "/dev/sda1", "rw", None),
            ("vfat", "/dev/sdb1", "rw", None),
            ("fuseblk", "/dev/sdb2", "rw", None),
            ("tmpfs", "tmpfs", "rw", None),
            ("9p", "host", "rw,cache=none", None),
            ("9p", "host", "rw,cache=loose", Some(Strength::Timeouts)),
        ];
        for (name, source, options, expected) in cases {
            assert_eq!(strength(&system(name, source, options)), expected, "{name} {source}");
        }
    }

    #[test]
    fn what_is_not_understood_is_the_weakest() {
        assert_eq!(named("coherent"), Some(None));
        assert_eq!(named("closetoopen"), Some(Some(Strength::Timeouts)));
        assert_eq!(named(""), None);
    }

    #[test]
    fn the_table_of_mounts_tells_of_locks() {
        let cases = [
            ("nfs4", "rw,vers=4.2,local_lock=none", Locks::Shared),
            ("nfs", "rw,nolock,local_lock=all", Locks::EachHost),
            ("nfs", "rw,local_lock=flock", Locks::EachHost),
            ("lustre", "rw,flock,lazystatfs", Locks::Shared),
            ("lustre", "rw,localflock", Locks::EachHost),
            ("fuse.glusterfs", "rw", Locks::Shared),
            ("fuse.sshfs", "rw", Locks::EachHost),
            ("overlay", "rw,lowerdir=/l", Locks::HostOnly),
        ];
        for (name, options, expected) in cases {
            assert_eq!(locks(&system(name, "srv:/x", options)), expected, "{name} {options}");
        }
    }

    #[test]
    fn a_disk_of_this_host_has_no_clients() {
        assert_eq!(mount(Path::new("/dev/shm")), None);
    }
}
