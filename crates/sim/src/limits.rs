//! What a rehearsal may ask for: whatever needs memory or time without bounds is refused before it begins.

use crate::order::files_in_order;
use crate::placing::{DISK_BYTES, DiskLayout};
use crate::rehearsal::Rehearsal;
use hyperslab_plan::profile::{Cache, Disk, Layout, Profile, Topology};
use hyperslab_world::{Fault, FaultKind};

/// Longest virtual time \[ns\]: 30 years.
pub(crate) const TIME_NS: u64 = 30 * 365 * 24 * 3600 * 1_000_000_000;
/// Most ranks, processors, disks, places of a torus.
const THINGS_MAX: u64 = 1 << 22;
/// Smallest unit of striping of disks whose places are drawn \[B\].
const UNIT_MIN: u64 = 512;

/// Whether the machine has room for the ranks and for their files, and this one for the simulation.
pub(crate) fn check(asked: &Rehearsal) -> Result<(), Fault> {
    count(asked)?;
    layout(asked)?;
    files(asked)
}

fn refuse<T>(text: String, hint: &str) -> Result<T, Fault> {
    Err(Fault::new(FaultKind::Invalid, text).hint(hint))
}

fn count(asked: &Rehearsal) -> Result<(), Fault> {
    let (profile, servers) = (&asked.profile, &asked.profile.storage.servers);
    let ranks = u64::from(asked.size.ranks);
    let nodes = u64::from(profile.nodes.filled_by(asked.size.ranks));
    let cores = u64::from(profile.nodes.cores_used());
    let owners = match servers.layout {
        Layout::Local => nodes,
        Layout::Ranks { .. } => u64::from(asked.size.servers),
        Layout::Apart { .. } => apart(profile),
    };
    let places = match profile.network.topology {
        Topology::Torus { shape: (rows, columns), .. } => u64::from(rows) * u64::from(columns),
        _ => 0,
    };
    let things = [
        ("ranks", ranks),
        ("processors of a node", cores),
        ("processors", nodes * cores),
        ("disks", owners * u64::from(servers.disks)),
        ("places of a torus", places),
    ];
    if let Some((what, number)) = things.into_iter().find(|thing| thing.1 > THINGS_MAX) {
        let text =
            format!("{number} {what} on machine '{}', more than the {THINGS_MAX} that are simulated", profile.name);
        return refuse(text, "ask for a smaller machine, or fewer of them");
    }
    room(profile, asked.size.ranks)
}

/// Whether a machine has nodes for so many ranks, beside those that only serve files.
///
/// # Errors
/// When it has not.
pub fn room(profile: &Profile, ranks: u32) -> Result<(), Fault> {
    let Topology::Torus { shape: (rows, columns), .. } = profile.network.topology else { return Ok(()) };
    let nodes = u64::from(profile.nodes.filled_by(ranks)) + apart(profile);
    if nodes <= u64::from(rows) * u64::from(columns) {
        return Ok(());
    }
    let text = format!("{nodes} nodes on machine '{}', a torus of {rows} x {columns}", profile.name);
    refuse(text, "take fewer ranks, or give the machine a larger torus")
}

/// Nodes that only serve files.
fn apart(profile: &Profile) -> u64 {
    match profile.storage.servers.layout {
        Layout::Apart { count, .. } => u64::from(count),
        _ => 0,
    }
}

fn layout(asked: &Rehearsal) -> Result<(), Fault> {
    let (machine, servers) = (&asked.profile.name, &asked.profile.storage.servers);
    let unit = match servers.layout {
        Layout::Ranks { unit_bytes } | Layout::Apart { unit_bytes, gathers: false, .. } => Some(unit_bytes),
        _ => None,
    };
    if let Cache::Blocks { block_bytes, .. } = asked.profile.storage.cache
        && unit != Some(block_bytes)
    {
        let text = format!(
            "machine '{machine}' has storage.cache.block of {block_bytes} B, which is not what servers are asked for at once"
        );
        return refuse(
            text,
            "blocks must be as long as storage.servers.unit, and servers not be given several of these at once",
        );
    }
    if servers.layout == Layout::Local && servers.disks > 1 {
        let text = format!("machine '{machine}' has storage.servers.disks = {} on each node", servers.disks);
        return refuse(text, "give one disk the rate of all disks of a node");
    }
    let Layout::Ranks { unit_bytes } = servers.layout else {
        if asked.on_disk == DiskLayout::Contiguous {
            return Ok(());
        }
        let text = format!("files of machine '{machine}' cannot lie in {}", asked.on_disk.name());
        return refuse(text, "only where ranks serve files (layout = \"ranks\") is it told where on a disk they lie");
    };
    if asked.size.servers == 0 {
        let text = format!("on machine '{machine}' ranks serve files, but none of {} is to", asked.size.ranks);
        return refuse(text, "ask for at least one server");
    }
    if !(UNIT_MIN..=DISK_BYTES).contains(&unit_bytes) {
        let text = format!("a unit of {unit_bytes} B on disks of {DISK_BYTES} B of machine '{machine}'");
        return refuse(text, "units of striping on disks of ranks are of 512 B up to a disk");
    }
    Ok(())
}

fn files(asked: &Rehearsal) -> Result<(), Fault> {
    let servers = &asked.profile.storage.servers;
    let bytes = files_in_order(&asked.lengths).values().fold(0_u64, |sum, file| sum.saturating_add(file.1));
    let disks = u64::from(asked.size.servers) * u64::from(servers.disks);
    let limited = matches!(servers.layout, Layout::Ranks { .. }) && asked.profile.storage.disk == Disk::Hp97560;
    if limited && bytes > disks * DISK_BYTES {
        let machine = &asked.profile.name;
        let text = format!("files of {bytes} B on {disks} disks of {DISK_BYTES} B of machine '{machine}'");
        return refuse(text, "take smaller arrays, or more servers or disks");
    }
    Ok(())
}
