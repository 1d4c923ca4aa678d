//! Which machine this is.

use std::fs;
use std::path::Path;

/// What tells machines apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostIdentity {
    /// Name of the host.
    pub host: String,
    /// Model of the processor.
    pub processor: String,
    /// Operating system and its version.
    pub system: String,
    /// Processors that this process may use. MPI may have bound it to a few.
    pub cores: u32,
    /// Processors that the machine has.
    pub processors: u32,
}

/// The machine that this process runs on. What cannot be found out is called `unknown`.
pub fn host_identity() -> HostIdentity {
    let read = |path: &str| fs::read_to_string(path).ok();
    let line = |path: &str| read(path).map(|text| text.trim().to_string()).filter(|text| !text.is_empty());
    let unknown = || "unknown".to_string();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let info = read("/proc/cpuinfo").unwrap_or_default();
    let processors = info.lines().filter(|line| line.split(':').next().is_some_and(|name| name.trim() == "processor"));
    let version = line("/proc/sys/kernel/osrelease").unwrap_or_else(unknown);
    HostIdentity {
        host: line("/proc/sys/kernel/hostname").unwrap_or_else(unknown),
        processor: processor(&info).unwrap_or_else(unknown),
        system: format!("{} {version}", line("/proc/sys/kernel/ostype").unwrap_or_else(|| "Linux".into())),
        cores,
        processors: cores.max(processors.count() as u32),
    }
}

/// The model in `/proc/cpuinfo`. Arm has none, but numbers that stand for it.
fn processor(text: &str) -> Option<String> {
    let value = |key: &str| {
        let found = text.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == key));
        found.map(|(_, value)| value.trim().to_string()).filter(|value| !value.is_empty())
    };
    let arm = || Some(format!("implementer {} part {}", value("CPU implementer")?, value("CPU part")?));
    value("model name").or_else(|| value("cpu")).or_else(arm)
}

/// Type of the file system that holds a path, and where it is mounted, as in `ext4 at /`.
pub fn file_system_of(path: &Path) -> String {
    let absolute = fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.into());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounted(&mounts, &absolute).map_or_else(|| "unknown".into(), |(kind, point)| format!("{kind} at {point}"))
}

/// Type and place of the deepest mount above a path; of several at one place, the last one hides the others.
fn mounted(mounts: &str, path: &Path) -> Option<(String, String)> {
    let rows = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let point = unescaped(before.split(' ').nth(4)?);
        path.starts_with(&point).then(|| (after.split(' ').next().unwrap_or("unknown").to_string(), point))
    });
    rows.enumerate().max_by_key(|(at, (_, point))| (Path::new(point).components().count(), *at)).map(|(_, row)| row)
}

/// A path as it is, of which `mountinfo` writes blanks and the like as `\040`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                out.push(char::from(code));
                out.push_str(&part[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_holds_a_path() {
        let mounts = "21 1 8:1 / / rw - ext4 /dev/vda rw\n\
                      22 21 0:5 / /mnt/a\\040b rw,noatime shared:1 - xfs /dev/vdb rw\n\
                      23 21 0:6 / /mnt rw - nfs4 server:/x rw\n\
                      24 21 0:7 / /mnt rw - lustre x@tcp:/y rw\n";
        let of = |path: &str| mounted(mounts, Path::new(path)).map(|(kind, point)| format!("{kind} at {point}"));
        assert_eq!(of("/home/me").as_deref(), Some("ext4 at /"));
        assert_eq!(of("/mnt/a b/c").as_deref(), Some("xfs at /mnt/a b"));
        assert_eq!(of("/mnt/abc").as_deref(), Some("lustre at /mnt"));
        assert_eq!(mounted("", Path::new("/")), None);
    }

    #[test]
    fn processors_have_names() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: AMD EPYC\n").as_deref(), Some("AMD EPYC"));
        let arm = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd40\n";
        assert_eq!(processor(arm).as_deref(), Some("implementer 0x41 part 0xd40"));
        assert_eq!(processor("nothing"), None);
        let here = host_identity();
        assert!(here.cores > 0 && !here.host.is_empty() && here.system.contains(' '), "{here:?}");
    }
}
