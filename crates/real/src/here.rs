//! Which process this is, so that another one, perhaps on another host, can tell whether it still runs.

use hyperslab_world::Process;
use std::fs;
use std::sync::Mutex;

/// This process.
pub(crate) fn this_process() -> Process {
    static THIS: Mutex<Option<Process>> = Mutex::new(None);
    // Another thread may be asking; in a child of a process of several, that one is gone and never ends.
    let Ok(mut this) = THIS.try_lock() else { return asked() };
    // A child has a copy of what its parent knew of itself.
    let known = this.take().filter(|known| known.pid == std::process::id());
    this.insert(known.unwrap_or_else(asked)).clone()
}

fn asked() -> Process {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string();
    let pid = std::process::id();
    Process { host, boot, pid_namespace: namespace(), pid, started: started("self").unwrap_or(0) }
}

/// Whether a process is known not to run any more; only one of the same namespace is known.
pub(crate) fn is_gone(process: &Process) -> bool {
    let this = this_process();
    let known = !process.boot.is_empty() && process.boot == this.boot && process.pid_namespace == this.pid_namespace;
    known && process.pid_namespace != 0 && started(&process.pid.to_string()) != Some(process.started)
}

fn namespace() -> u64 {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let text = link.to_string_lossy().into_owned();
    text.trim_start_matches("pid:[").trim_end_matches(']').parse().unwrap_or(0)
}

/// When a process started. Its name, which stands before, may contain anything.
fn started(pid: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// 128 bits of chance, in 32 hexadecimal digits: no two are ever the same.
pub(crate) fn token() -> String {
    let mut bytes = [0u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the system gives no random bytes: {error}"),
        }
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_there_until_it_ends() {
        let this = this_process();
        assert!(!is_gone(&this) && this.pid == std::process::id() && !this.host.is_empty());
        assert!(is_gone(&Process { started: this.started + 1, ..this.clone() }), "its number has another owner");
        assert!(!is_gone(&Process { boot: "another".into(), started: 0, ..this.clone() }), "nobody can know");
        assert!(!is_gone(&Process { pid_namespace: this.pid_namespace + 1, started: 0, ..this }), "nobody can know");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let of_child =
            Process { pid: child.id(), started: started(&child.id().to_string()).unwrap_or(1), ..this_process() };
        child.wait().unwrap();
        assert!(is_gone(&of_child));
    }

    #[test]
    fn tokens_differ() {
        let (a, b) = (token(), token());
        assert!(a != b && a.len() == 32 && a.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
