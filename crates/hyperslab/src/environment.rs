//! The environment variables that the facade reads, all of them here, and how much memory there is. What a transfer does follows
//! from them only through what rank 0 decides.
//!
//! Below the facade, `HYPERSLAB_DIRECT` (`real::neighbour`), `HYPERSLAB_PLACE` (`real::clients`), `HYPERSLAB_MAPPED` (`real::posix::mapped`) and `HYPERSLAB_MPI_ABI`
//! (`real::mpi::find`) are about the machine.

use hyperslab_real::mpi::MpiWire;
use hyperslab_real::wire::Wire;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names the file that holds the profile of this machine. Empty or `none`: there is none.
pub(crate) const PROFILE: &str = "HYPERSLAB_PROFILE";

/// Where that file lies below the directory of configurations.
const PROFILE_BELOW: &str = "hyperslab/machine.toml";

/// Rank 0 prints to stderr what came out of each transfer, in a line (`1`, `short`), or all that was compared (`long`).
const EXPLAIN: &str = "HYPERSLAB_EXPLAIN";

/// Names a file to keep in it what transfers taught. Empty or `none`: nothing is kept, and nothing read.
const LEARNED: &str = "HYPERSLAB_LEARNED";

/// Where that file lies below the directory of caches.
const LEARNED_BELOW: &str = "hyperslab/learned.json";

/// Most cores that a rank may use besides its own.
const IDLE_CORES: &str = "HYPERSLAB_IDLE_CORES";

/// A directory into which all calls of all communicators are recorded; nothing is recorded without it.
const TRACE: &str = "HYPERSLAB_TRACE";

/// Where calls are to be recorded. An empty value is none.
pub(crate) fn trace() -> Option<PathBuf> {
    std::env::var_os(TRACE).filter(|directory| !directory.is_empty()).map(PathBuf::from)
}

/// How much is told of each transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Explaining {
    /// Nothing.
    Silent,
    /// A line: what came out.
    Short,
    /// What was compared, why one was taken, and predicted beside measured.
    Long,
}

/// How much is told of each transfer.
pub(crate) fn explain() -> Explaining {
    match std::env::var(EXPLAIN).unwrap_or_default().as_str() {
        "" | "0" => Explaining::Silent,
        "long" => Explaining::Long,
        _ => Explaining::Short,
    }
}

/// Whether somebody named the profile, and where it is.
pub(crate) fn profile() -> (bool, Option<PathBuf>) {
    let named = std::env::var_os(PROFILE);
    let base = (std::env::var_os("XDG_CONFIG_HOME"), ".config");
    (named.is_some(), place(named.as_deref(), (base.0.as_deref(), base.1), std::env::home_dir(), PROFILE_BELOW))
}

/// Where what transfers taught is kept.
pub(crate) fn learned() -> Option<PathBuf> {
    let named = std::env::var_os(LEARNED);
    let base = (std::env::var_os("XDG_CACHE_HOME"), ".cache");
    place(named.as_deref(), (base.0.as_deref(), base.1), std::env::home_dir(), LEARNED_BELOW)
}

/// A file that is named, or else lies below a base directory, or below what stands for that in the home directory.
fn place(
    named: Option<&OsStr>,
    (base, in_home): (Option<&OsStr>, &str),
    home: Option<PathBuf>,
    below: &str,
) -> Option<PathBuf> {
    if let Some(named) = named {
        return (!named.is_empty() && named != "none").then(|| named.into());
    }
    // As the specification of these directories has it, a relative one is passed over.
    let base = base.map(PathBuf::from).filter(|base| base.is_absolute());
    let base = base.or_else(|| Some(home.filter(|home| home.is_absolute())?.join(in_home)));
    base.map(|base| base.join(below))
}

/// What launchers call the number of ranks on this node: Open MPI, MPICH and relatives, Slurm.
const LOCAL_RANKS: [&str; 4] =
    ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"];

/// Ranks on this node, where the launcher says so.
pub(crate) fn ranks_per_node() -> Option<u32> {
    LOCAL_RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// What starts ranks, and how it tells each of them its number and how many there are. The innermost comes first: `mpiexec` in a
/// job of Slurm starts its helpers by `srun`, whose variables the ranks inherit. Those of the step count, not those of the job
/// (`SLURM_NTASKS`), which a batch script has, too.
const LAUNCHERS: [(&str, &str, &str); 9] = [
    ("Open MPI's mpiexec", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("mpiexec", "PMI_RANK", "PMI_SIZE"),
    ("mpiexec", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("PALS", "PALS_RANKID", "PALS_LOCAL_SIZE"),
    ("flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("PMIx", "PMIX_RANK", "PMIX_RANK"),
];

/// How many ranks a launcher started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launched {
    /// How many there are at least; more than one.
    pub ranks: u32,
    /// By what this is known, for people.
    pub known: String,
}

/// How many ranks this program was started with, as far as a launcher says; nothing where it is one, or nothing tells.
pub fn launched() -> Option<Launched> {
    launched_by(|name| std::env::var(name).ok())
}

fn launched_by(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name| variable(name)?.parse::<u32>().ok();
    let told = LAUNCHERS.iter().find_map(|&(launcher, rank, size)| {
        // A batch script of Slurm has variables of its job, but is no step.
        let counts = launcher != "srun" || variable("SLURM_STEP_ID").is_some();
        let (at, count) = number(rank).zip(number(size)).filter(|_| counts)?;
        Some(Launched { ranks: count.max(at.saturating_add(1)), known: format!("{launcher} set {size}={count}") })
    });
    told.filter(|launched| launched.ranks > 1)
}

/// Cores that this process may use, where the system says so. Asked once: it reads several files of control groups.
pub(crate) fn cores() -> Option<u32> {
    static CORES: OnceLock<Option<u32>> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().ok().map(|cores| cores.get() as u32))
}

/// The memory of this node, or what its processes are given of it \[B\]. Asked once.
pub(crate) fn memory_bytes() -> Option<u64> {
    static BYTES: OnceLock<Option<u64>> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let told = std::fs::read_to_string("/proc/meminfo").ok()?;
        let all = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let all = all.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)?;
        Some(given(&std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default()).map_or(all, |most| most.min(all)))
    })
}

/// What a control group and those above it let their processes have, by version 2 or 1 (cgroups(7)). In a container, the root
/// stands for some of them.
fn given(groups: &str) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (kinds, group) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (at, file) = match kinds {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if kinds.split(',').any(|kind| kind == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        let groups = Path::new(group.trim_start_matches('/')).ancestors();
        groups.map(|group| Path::new(at).join(group).join(file)).collect()
    });
    limits.filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok()).min()
}

/// How many of so many ranks are on this rank's node, as far as the launcher tells; of threads all.
pub(crate) fn ranks_here(processes: bool, ranks: u32) -> u32 {
    let told = if processes { ranks_per_node() } else { None };
    told.map_or(ranks, |local| local.clamp(1, ranks.max(1)))
}

/// A wire that knows how many ranks are on its node.
pub(crate) fn beside_others(wire: MpiWire) -> MpiWire {
    let here = ranks_here(true, wire.size());
    wire.beside(here)
}

/// Whether so many ranks need all cores of a node, and how many more than its own a rank may use.
pub(crate) fn cores_for(processes: bool, ranks: u32) -> (bool, u32) {
    (ranks_here(processes, ranks) >= cores().unwrap_or(1), idle_cores(processes, ranks))
}

/// Cores that a rank may use besides its own, since no rank of its node has them: its share, or fewer if the user says so.
fn idle_cores(processes: bool, ranks: u32) -> u32 {
    // Each rank may also have what it opened by itself. A launcher that does not say how many are here may have put all here.
    let beside = ranks_per_node().or_else(|| launched().map(|launched| launched.ranks));
    let ranks = ranks_here(processes, ranks).max(beside.unwrap_or(1)).max(1);
    let idle = cores().map_or(0, |cores| cores.saturating_sub(ranks) / ranks);
    let said = std::env::var(IDLE_CORES).ok().and_then(|text| text.trim().parse().ok());
    said.map_or(idle, |most: u32| most.min(idle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_tell_how_many_ranks_there_are() {
        let job = "SLURM_JOB_ID=7 SLURM_NTASKS=16 SLURM_NPROCS=16 SLURM_PROCID=0";
        let step = |more: &str| format!("{job} {more}");
        for (variables, ranks) in [
            (String::new(), None),
            ("PMI_RANK=0 PMI_SIZE=1".into(), None),
            ("PMI_RANK=0 PMI_SIZE=4".into(), Some(4)),
            ("MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2".into(), Some(2)),
            ("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 PMIX_RANK=1".into(), Some(3)),
            ("PMIX_RANK=5".into(), Some(6)),
            ("PMIX_RANK=0".into(), None),
            ("PALS_RANKID=9 PALS_LOCAL_SIZE=4".into(), Some(10)),
            // A batch script; what srun starts in it; and mpiexec -n 1, whose helpers srun started on 4 nodes.
            (job.into(), None),
            (step("SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=16"), Some(16)),
            (step("SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1"), None),
            (step("SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 PMI_RANK=0 PMI_SIZE=1"), None),
            ("PMI_RANK=none PMI_SIZE=".into(), None),
        ] {
            let all: Vec<(&str, &str)> = variables.split(' ').filter_map(|one| one.split_once('=')).collect();
            let found = launched_by(|name| all.iter().find(|one| one.0 == name).map(|one| one.1.to_string()));
            assert_eq!(found.map(|launched| launched.ranks), ranks, "{variables}");
        }
    }

    #[test]
    fn the_place_follows_from_the_environment() {
        let at = |named: Option<&str>, config: Option<&str>, home: Option<&str>| {
            let base = (config.map(OsStr::new), ".config");
            place(named.map(OsStr::new), base, home.map(PathBuf::from), PROFILE_BELOW)
        };
        assert_eq!(at(Some("a/b.toml"), Some("/c"), Some("/h")), Some("a/b.toml".into()));
        assert_eq!(at(Some(""), Some("/c"), Some("/h")), None);
        assert_eq!(at(Some("none"), Some("/c"), Some("/h")), None);
        assert_eq!(at(None, Some("/c"), Some("/h")), Some("/c/hyperslab/machine.toml".into()));
        assert_eq!(at(None, Some("c"), Some("/h")), Some("/h/.config/hyperslab/machine.toml".into()));
        assert_eq!(at(None, None, Some("")), None);
        assert_eq!(at(None, None, None), None);
    }
}
