//! Lists of who may do what with a file beside its owner and its group: POSIX ACLs, as the system gives them (acl(5), and
//! `linux/posix_acl_xattr.h`).

use crate::users::is_member;
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// The attribute that is the list of a file or directory.
pub(crate) const ACCESS: &str = "system.posix_acl_access";
/// The attribute that is the list of what is made in a directory.
pub(crate) const DEFAULT: &str = "system.posix_acl_default";
/// The list of what has a path, itself if that is a link; `None` where there is none, or the file system has none.
pub(crate) fn of_path(path: &Path, which: &str) -> io::Result<Option<Vec<u8>>> {
    read(|list| rustix::fs::lgetxattr(path, which, list))
}

fn read(get: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> io::Result<Option<Vec<u8>>> {
    // Most lists are no longer, and none is longer than any attribute may be.
    let mut list = vec![0; 256];
    let mut got = get(&mut list);
    if got == Err(Errno::RANGE) {
        list = vec![0; 1 << 16];
        got = get(&mut list);
    }
    match got {
        Ok(bytes) => {
            list.truncate(bytes);
            Ok(Some(list))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives what is open this list, or none.
pub(crate) fn give(file: impl AsFd, which: &str, list: Option<&[u8]>) -> io::Result<()> {
    let given = match list {
        Some(list) => rustix::fs::fsetxattr(file, which, list, rustix::fs::XattrFlags::empty()),
        None => match rustix::fs::fremovexattr(file, which) {
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            removed => removed,
        },
    };
    Ok(given?)
}

/// Who may write where the bits of the group say that some may.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Writers {
    users: Vec<u32>,
    groups: Vec<u32>,
}

impl Writers {
    /// Those of what has this path, whose group is this one.
    pub(crate) fn of(path: &Path, group: u32) -> Writers {
        match of_path(path, ACCESS) {
            Ok(Some(list)) => Writers::in_list(&list, group).unwrap_or_default(),
            Ok(None) => Writers { users: Vec::new(), groups: vec![group] },
            // Nobody knows.
            Err(_) => Writers::default(),
        }
    }

    fn in_list(list: &[u8], group: u32) -> Option<Writers> {
        let (version, entries) = list.split_at_checked(4)?;
        if version != 2u32.to_le_bytes() || entries.len() % 8 != 0 {
            return None;
        }
        let entries = entries.chunks_exact(8).map(|entry| {
            let number = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
            (u16::from_le_bytes([entry[0], entry[1]]), u16::from_le_bytes([entry[2], entry[3]]), number)
        });
        let entries: Vec<(u16, u16, u32)> = entries.collect();
        let writes = |may: u16| may & 2 != 0;
        // The mask bounds all others.
        if entries.iter().any(|&(kind, may, _)| kind == 0x10 && !writes(may)) {
            return Some(Writers::default());
        }
        let mut writers = Writers::default();
        for (kind, may, number) in entries {
            match kind {
                _ if !writes(may) => {}
                // A user by his number, the group of the file, and another one.
                0x02 => writers.users.push(number),
                0x04 => writers.groups.push(group),
                0x08 => writers.groups.push(number),
                _ => {}
            }
        }
        Some(writers)
    }

    /// Whether a user is one of them.
    pub(crate) fn has(&self, user: u32) -> bool {
        self.users.contains(&user) || self.groups.iter().any(|&group| is_member(user, group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let entry = |&(kind, may, number): &(u16, u16, u32)| {
            [&kind.to_le_bytes()[..], &may.to_le_bytes(), &number.to_le_bytes()].concat()
        };
        2u32.to_le_bytes().into_iter().chain(entries.iter().flat_map(entry)).collect()
    }

    #[test]
    fn a_list_tells_who_may_write() {
        let told = |list: &[u8]| Writers::in_list(list, 7).map(|found| (found.users, found.groups));
        let usual = [(0x01, 6, u32::MAX), (0x02, 6, 1000), (0x02, 4, 1001), (0x04, 4, u32::MAX), (0x08, 2, 50)];
        let masked = |mask| [&usual[..], &[(0x10, mask, u32::MAX), (0x20, 0, u32::MAX)]].concat();
        assert_eq!(told(&list(&masked(6))), Some((vec![1000], vec![50])));
        assert_eq!(told(&list(&masked(4))), Some((vec![], vec![])), "the mask bounds all");
        assert_eq!(told(&list(&[(0x04, 6, u32::MAX)])), Some((vec![], vec![7])));
        assert_eq!(told(&list(&masked(6))[..11]), None);
        assert_eq!(told(&[1, 0, 0, 0]), None);
    }
}
