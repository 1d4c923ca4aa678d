//! By which mount a process sees a place that others share, and what it sees of what they do.

use crate::{Reader, Writer};
use std::fmt;
use std::sync::Arc;

/// What clients of a place see of each other, where that is not all of it at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Strength {
    /// Opening a file shows what was closed before; names and attributes are kept for some seconds, as by NFS (nfs(5)).
    CloseToOpen,
    /// Whatever a client has looked at may stay as it was for some seconds, opened again or not.
    Timeouts,
}

impl Strength {
    /// Its name, for people and in environment variables.
    pub fn name(self) -> &'static str {
        match self {
            Strength::CloseToOpen => "close-to-open",
            Strength::Timeouts => "timeouts",
        }
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The mount of a shared place by which a process sees it, a client with caches of its own: what goes by one is seen at once by all
/// who go by the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// Tells it from other mounts, on this host and others.
    pub number: u64,
    /// What others see of what it does.
    pub strength: Strength,
    /// What kind of place it is, for people.
    pub kind: Arc<str>,
}

impl Mount {
    /// For other ranks.
    pub fn tell(mount: Option<&Mount>, w: Writer) -> Writer {
        match mount {
            None => w.number(0),
            Some(Mount { number, strength, kind }) => {
                let strength = if *strength == Strength::CloseToOpen { 1 } else { 2 };
                w.number(strength).number(*number).bytes(kind.as_bytes())
            }
        }
    }

    /// What [`Mount::tell`] told.
    pub fn hear(r: &mut Reader) -> Option<Option<Mount>> {
        let strength = match r.number()? {
            0 => return Some(None),
            1 => Strength::CloseToOpen,
            2 => Strength::Timeouts,
            _ => return None,
        };
        Some(Some(Mount { strength, number: r.number()?, kind: r.text()?.into() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_travel_unchanged() {
        let mount = Mount { number: u64::MAX, strength: Strength::Timeouts, kind: "fuse.sshfs".into() };
        let other = Mount { strength: Strength::CloseToOpen, ..mount.clone() };
        for mount in [None, Some(mount), Some(other)] {
            let told = Mount::tell(mount.as_ref(), Writer::default()).0;
            assert_eq!(Mount::hear(&mut Reader::new(&told)), Some(mount));
        }
        assert_eq!(Mount::hear(&mut Reader::new(&Writer::default().number(7).0)), None);
    }
}
