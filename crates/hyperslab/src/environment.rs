//! The environment variables that the facade reads, all of them here. What a transfer does follows from them only through what rank 0 decides.
//!
//! Below the facade, `HYPERSLAB_DIRECT` (`real::neighbour`) and `HYPERSLAB_MPI_ABI` (`real::mpi::find`) are about the machine.

use std::path::PathBuf;

/// When it is set, and not to 0 or nothing, rank 0 prints how each transfer is done, and what came out, to stderr.
const EXPLAIN: &str = "HYPERSLAB_EXPLAIN";

/// Names a file to keep in it what transfers taught. Empty or `none`: nothing is kept, and nothing read.
const LEARNED: &str = "HYPERSLAB_LEARNED";

/// Where that file lies below the directory of caches.
const LEARNED_BELOW: &str = "hyperslab/learned.json";

/// A directory into which all calls of all communicators are recorded; nothing is recorded without it.
const TRACE: &str = "HYPERSLAB_TRACE";

/// Where calls are to be recorded. An empty value is none.
pub(crate) fn trace() -> Option<PathBuf> {
    std::env::var_os(TRACE).filter(|directory| !directory.is_empty()).map(PathBuf::from)
}

/// Whether explanations are printed.
pub(crate) fn explain() -> bool {
    std::env::var(EXPLAIN).is_ok_and(|value| !matches!(value.as_str(), "" | "0"))
}

/// Where what transfers taught is kept.
pub(crate) fn learned() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(LEARNED) {
        return (!named.is_empty() && named != "none").then(|| named.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    cache.map(|cache| cache.join(LEARNED_BELOW))
}

/// What launchers call the number of ranks on this node: Open MPI, MPICH and relatives, Slurm.
const LOCAL_RANKS: [&str; 4] =
    ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"];

/// Ranks on this node, where the launcher says so.
pub(crate) fn ranks_per_node() -> Option<u32> {
    LOCAL_RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}
