//! Who owns what is hidden or under change: a record beside a lock, by which somebody else tells whether he still lives.

use hyperslab_world::{Fault, FaultKind, Locks, Names, Process};
use serde_json::{Map, Value};
use std::fmt;

/// One opening of a store or file, by its token, and the process in which rank 0 has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    pub(super) token: String,
    pub(super) process: Process,
}

impl Owner {
    /// An opening in this process, as those know it who see these names.
    pub(super) fn of(token: &str, names: &dyn Names) -> Owner {
        Owner { token: token.into(), process: names.process() }
    }

    /// As a line of a file that names owners; `more` stands behind it.
    pub(super) fn line(&self, more: &[(&str, &str)]) -> Vec<u8> {
        let Process { host, boot, pid_namespace, pid, started } = &self.process;
        let mut map = Map::new();
        map.insert("token".into(), self.token.clone().into());
        map.insert("host".into(), host.clone().into());
        map.insert("boot".into(), boot.clone().into());
        map.insert("pid_namespace".into(), (*pid_namespace).into());
        map.insert("pid".into(), (*pid).into());
        map.insert("started".into(), (*started).into());
        map.extend(more.iter().map(|(name, value)| ((*name).to_string(), Value::from(*value))));
        line_of(map)
    }

    /// The owner that a line names. Tokens become parts of names, and so are believed only if they look like one.
    pub(super) fn of_line(map: &Map<String, Value>) -> Option<Owner> {
        let text = |name: &str| Some(map.get(name)?.as_str()?.to_string());
        let number = |name: &str| map.get(name)?.as_u64();
        let token = text("token").filter(|token| is_token(token))?;
        let process = Process {
            host: text("host")?,
            boot: text("boot")?,
            pid_namespace: number("pid_namespace")?,
            pid: number("pid")?.try_into().ok()?,
            started: number("started")?,
        };
        Some(Owner { token, process })
    }

    /// Whether an owner whose lock is free is dead for certain. `locks` says what a free lock means there, `real` whether
    /// there are locks at all.
    pub(super) fn is_dead(owner: Option<&Owner>, names: &dyn Names, locks: Locks, real: bool) -> bool {
        let gone = !real && owner.is_some_and(|owner| names.is_gone(&owner.process));
        Owner::is_dead_to(owner, (&names.process(), gone), locks, real)
    }

    /// The same as this process sees it, to which its process is `gone` or not.
    fn is_dead_to(owner: Option<&Owner>, (this, gone): (&Process, bool), locks: Locks, real: bool) -> bool {
        let same_host = |owner: &Owner| !owner.process.boot.is_empty() && owner.process.boot == this.boot;
        match (locks, real) {
            (Locks::HostOnly | Locks::Shared, true) => true,
            (Locks::EachHost, true) => owner.is_some_and(same_host),
            // The place belongs to this host: an owner from before it started is gone.
            (Locks::HostOnly, false) => gone || owner.is_some_and(|owner| !same_host(owner)),
            (_, false) => gone,
        }
    }

    /// The error of who meets it where it may live.
    pub(super) fn busy(owner: Option<&Owner>, what: &str, path: &str) -> Fault {
        let who = owner.map_or("an owner that left no record".to_string(), Owner::to_string);
        let text = format!("{what} is being changed in place by {who}, who cannot be told to be dead");
        Fault::new(FaultKind::Busy, text).hint(format!(
            "wait until it is done; if it died (on another host, where nobody here can know), 'hyperslab clean {path}' \
             removes what it left"
        ))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process { pid, host, .. } = &self.process;
        if host.is_empty() { write!(f, "process {pid}") } else { write!(f, "process {pid} on host '{host}'") }
    }
}

/// Whether this has the form of a token.
pub fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// A line of JSON.
pub(super) fn line_of(map: Map<String, Value>) -> Vec<u8> {
    let mut line = Value::Object(map).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The lines of a file that are what they should be. Others come from a crash in the middle of a line, or from somebody
/// else.
pub(super) fn lines(bytes: &[u8]) -> Vec<Map<String, Value>> {
    let objects = bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    objects.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(boot: &str) -> Owner {
        let process =
            Process { host: "h".into(), boot: boot.into(), pid_namespace: 4_026_531_836, pid: 77, started: 1234 };
        Owner { token: "0123456789abcdef".repeat(2), process }
    }

    #[test]
    fn owners_come_back_from_their_lines() {
        let owner = owner("boot");
        let mut bytes = owner.line(&[("update", "a/b")]);
        bytes.extend(b"{\"token\": \"../../home\", \"host\": \"h\"}\nno json\n{\"half\": ");
        let lines = lines(&bytes);
        assert_eq!(lines.len(), 2);
        assert_eq!(Owner::of_line(&lines[0]), Some(owner));
        assert_eq!(lines[0]["update"], "a/b");
        assert_eq!(Owner::of_line(&lines[1]), None, "a token that is none names nothing");
    }

    #[test]
    fn who_is_dead_follows_from_lock_and_record() {
        let (here, far) = (owner("boot"), owner("another"));
        let this = here.process.clone();
        let dead = |owner, gone, locks, real| Owner::is_dead_to(owner, (&this, gone), locks, real);
        for owner in [None, Some(&here), Some(&far)] {
            let says_all = [Locks::HostOnly, Locks::Shared].map(|locks| dead(owner, false, locks, true));
            assert_eq!(says_all, [true, true], "a free lock says all");
        }
        assert!(dead(Some(&here), false, Locks::EachHost, true) && !dead(Some(&far), false, Locks::EachHost, true));
        assert!(!dead(None, false, Locks::EachHost, true) && !dead(None, false, Locks::HostOnly, false));
        assert!(!dead(Some(&here), false, Locks::HostOnly, false) && dead(Some(&here), true, Locks::EachHost, false));
        assert!(dead(Some(&far), false, Locks::HostOnly, false) && !dead(Some(&far), false, Locks::Shared, false));
    }
}
