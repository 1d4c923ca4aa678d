//! Who a process is, as others know it.

/// A process, so that another one, perhaps on another host, can tell whether it still runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Process {
    /// Name of its host.
    pub host: String,
    /// What the kernel calls the time since the host started (`/proc/sys/kernel/random/boot_id`); empty if unknown.
    pub boot: String,
    /// Number of the namespace in which it has its number (pid_namespaces(7)); 0 if unknown.
    pub pid_namespace: u64,
    /// Its number.
    pub pid: u32,
    /// When it started, in ticks of the clock since the host did (proc(5), field 22 of stat); 0 if unknown.
    pub started: u64,
}
