//! From the text of a profile to what it says: which key is which field, and what they must have in common.

use super::document::{Document, line};
use super::error::{Fault, ProfileError};
use super::machine::{
    Agreements, Bus, Cache, Disk, Files, Identity, Layout, Measured, Messages, Metadata, Neighbours, Network, Nodes,
    Noise, Processor, Profile, Queue, Requests, Servers, Storage, Topology,
};
use super::source::Constant;
use toml::de::DeTable;

const REQUESTS: &[&str] = &["slots", "all"];
const TOPOLOGIES: &[&str] = &["switch", "torus", "ethernet", "fat-tree"];
const QUEUES: &[&str] = &["fcfs", "cscan", "cscan-file"];
const LAYOUTS: &[&str] = &["local", "ranks", "apart"];
const CACHES: &[&str] = &["none", "write-behind", "blocks"];
const DISKS: &[&str] = &["hp97560", "rated", "nvme", "instant"];

/// Reads a profile from `text`, which errors call `file`.
///
/// `scale` has dotted keys, as in `network.latency`, and factors by which the values in base units are multiplied.
/// Counts and sizes are then rounded; those that cannot be zero are at least 1.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse(file: &str, text: &str, scale: &[(String, f64)]) -> Result<Profile, ProfileError> {
    read(file, text, scale).map(|it| it.0)
}

/// Lists every number of a profile, in the order of the schema.
///
/// # Errors
/// As [`parse`].
pub fn constants(file: &str, text: &str) -> Result<Vec<Constant>, ProfileError> {
    read(file, text, &[]).map(|it| it.1)
}

fn read(file: &str, text: &str, scale: &[(String, f64)]) -> Result<(Profile, Vec<Constant>), ProfileError> {
    let root = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| line(text, span.start));
        Fault::new(format!("not TOML: {}", error.message()), "").at(file, "", line)
    })?;
    let mut document = Document::new(file, text, root.get_ref(), scale);
    let profile = profile(&mut document)?;
    Ok((profile, document.finish()?))
}

fn profile(it: &mut Document<'_>) -> Result<Profile, ProfileError> {
    Ok(Profile {
        name: it.words("name")?,
        description: it.words("description")?,
        nodes: Nodes {
            ranks_per_node: it.count("nodes.ranks_per_node")?,
            cores_per_node: it.count("nodes.cores_per_node")?,
        },
        processor: processor(it)?,
        messages: messages(it)?,
        network: network(it)?,
        storage: storage(it)?,
        measured: if it.has("measured") { Some(measured(it)?) } else { None },
    })
}

fn measured(it: &mut Document<'_>) -> Result<Measured, ProfileError> {
    Ok(Measured {
        identity: Identity {
            host: it.words("measured.host")?,
            processor: it.words("measured.processor")?,
            system: it.words("measured.system")?,
            file_system: it.words("measured.file_system")?,
            library: it.words("measured.library")?,
            date: it.words("measured.date")?,
        },
        neighbours: Neighbours {
            message_ns: it.time("measured.neighbours.message")?,
            wake_ns: it.time("measured.neighbours.wake")?,
            rate: it.rate("measured.neighbours.rate")?,
            run_ns: it.time("measured.neighbours.run")?,
            array_run_ns: it.time("measured.neighbours.array_run")?,
        },
        agreements: Agreements {
            base_ns: it.time("measured.agreements.base")?,
            rank_ns: it.time("measured.agreements.rank")?,
            crowded_ns: it.time("measured.agreements.crowded")?,
        },
        files: files(it)?,
        noise: Noise {
            copy: it.fraction("measured.noise.copy")?,
            message: it.fraction("measured.noise.message")?,
            file: it.fraction("measured.noise.file")?,
            sync: it.fraction("measured.noise.sync")?,
        },
    })
}

/// A rate of something that not every machine has.
fn rate_if_any(it: &mut Document<'_>, key: &'static str) -> Result<Option<f64>, ProfileError> {
    if it.has(key) { it.rate(key).map(Some) } else { Ok(None) }
}

/// A time that profiles written before it was measured do not have.
fn time_or(it: &mut Document<'_>, key: &'static str, otherwise_ns: f64) -> Result<f64, ProfileError> {
    if it.has(key) { it.time(key) } else { Ok(otherwise_ns) }
}

/// A rate that profiles written before it was measured do not have.
fn rate_or(it: &mut Document<'_>, key: &'static str, otherwise: f64) -> Result<f64, ProfileError> {
    Ok(rate_if_any(it, key)?.unwrap_or(otherwise))
}

fn files(it: &mut Document<'_>) -> Result<Files, ProfileError> {
    let (write_ns, read_ns) = (it.time("measured.files.write")?, it.time("measured.files.read")?);
    let (create_ns, write_rate) = (it.time("measured.files.create")?, it.rate("measured.files.write_rate")?);
    Ok(Files {
        write_ns,
        write_range_ns: time_or(it, "measured.files.write_range", write_ns)?,
        write_rate,
        write_rate_kept: rate_or(it, "measured.files.write_rate_kept", write_rate)?,
        gather_ns: it.time("measured.files.gather")?,
        writers: it.count("measured.files.writers")?,
        read_ns,
        read_range_ns: time_or(it, "measured.files.read_range", read_ns)?,
        read_rate: it.rate("measured.files.read_rate")?,
        scatter_ns: it.time("measured.files.scatter")?,
        cold_rate: it.rate("measured.files.cold_rate")?,
        direct_write_rate: rate_if_any(it, "measured.files.direct_write_rate")?,
        direct_read_rate: rate_if_any(it, "measured.files.direct_read_rate")?,
        sync_ns: it.time("measured.files.sync")?,
        sync_rate: it.rate("measured.files.sync_rate")?,
        create_ns,
        create_together_ns: time_or(it, "measured.files.create_together", create_ns)?,
        open_ns: it.time("measured.files.open")?,
        rename_ns: it.time("measured.files.rename")?,
        remove_ns: it.time("measured.files.remove")?,
    })
}

fn processor(it: &mut Document<'_>) -> Result<Processor, ProfileError> {
    let (run_ns, copy_rate) = (it.time("processor.run")?, it.rate("processor.copy_rate")?);
    Ok(Processor {
        copy_rate,
        run_ns,
        turn_ns: time_or(it, "processor.turn", run_ns)?,
        touch_rate: rate_or(it, "processor.touch_rate", copy_rate)?,
        code_rate: it.rate("processor.code_rate")?,
        step_ns: it.time("processor.step")?,
        piece_ns: it.time("processor.piece")?,
    })
}

fn messages(it: &mut Document<'_>) -> Result<Messages, ProfileError> {
    Ok(Messages {
        send_ns: it.time("messages.send")?,
        receive_ns: it.time("messages.receive")?,
        send_byte_ns: it.byte_time("messages.send_per_byte")?,
        receive_byte_ns: it.byte_time("messages.receive_per_byte")?,
        slot_run_ns: it.time("messages.slot_per_run")?,
        array_run_ns: it.time("messages.array_per_run")?,
        eager_bytes: it.size("messages.eager")?,
        header_bytes: it.size("messages.header")?,
        bytes_max: it.size_above_zero("messages.largest")?,
        requests: match it.choice("messages.requests", REQUESTS)? {
            "slots" => Requests::Slots,
            _ => Requests::All,
        },
    })
}

fn network(it: &mut Document<'_>) -> Result<Network, ProfileError> {
    let topology = match it.choice("network.kind", TOPOLOGIES)? {
        "switch" => Topology::Switch,
        "torus" => Topology::Torus {
            shape: (it.count("network.rows")?, it.count("network.columns")?),
            router_ns: it.time("network.router")?,
        },
        "ethernet" => Topology::Ethernet,
        _ => Topology::FatTree { nodes_per_leaf: it.count("network.nodes_per_leaf")?, taper: taper(it)? },
    };
    Ok(Network { topology, latency_ns: it.time("network.latency")?, link_rate: it.rate("network.link_rate")? })
}

fn taper(it: &mut Document<'_>) -> Result<f64, ProfileError> {
    let taper = it.fraction("network.taper")?;
    if taper > 0.0 && taper <= 1.0 {
        return Ok(taper);
    }
    let hint = "it is the rate that leaves a leaf over the rate that its nodes can send";
    let text = format!("expected a number above 0 and not above 1, found {taper}");
    Err(it.error("network.taper", Fault::new(text, hint)))
}

fn storage(it: &mut Document<'_>) -> Result<Storage, ProfileError> {
    Ok(Storage {
        call_ns: it.time("storage.call")?,
        call_byte_ns: it.byte_time("storage.call_per_byte")?,
        calls_at_once: it.count("storage.calls_at_once")?,
        queue: match it.choice("storage.queue", QUEUES)? {
            "fcfs" => Queue::Fcfs,
            "cscan" => Queue::Cscan,
            _ => Queue::CscanFile,
        },
        servers: servers(it)?,
        cache: cache(it)?,
        bus: if it.has("storage.bus") { Some(bus(it)?) } else { None },
        disk: disk(it)?,
        metadata: metadata(it)?,
    })
}

fn servers(it: &mut Document<'_>) -> Result<Servers, ProfileError> {
    Ok(Servers {
        layout: match it.choice("storage.servers.layout", LAYOUTS)? {
            "local" => Layout::Local,
            "ranks" => Layout::Ranks { unit_bytes: it.size_above_zero("storage.servers.unit")? },
            _ => apart(it)?,
        },
        disks: it.count("storage.servers.disks")?,
        request_ns: it.time("storage.servers.request")?,
        write_byte_ns: it.byte_time("storage.servers.write_per_byte")?,
        read_byte_ns: it.byte_time("storage.servers.read_per_byte")?,
        crowding: it.fraction("storage.servers.crowding")?,
        requests_at_once: it.count("storage.servers.requests_at_once")?,
        link_rate: it.rate("storage.servers.link_rate")?,
    })
}

fn apart(it: &mut Document<'_>) -> Result<Layout, ProfileError> {
    let count = it.count("storage.servers.count")?;
    let unit_bytes = it.size_above_zero("storage.servers.unit")?;
    let width = it.count("storage.servers.width")?;
    let gathers = it.flag("storage.servers.gathers")?;
    if width > count {
        let text = format!("expected at most storage.servers.count = {count}, found {width}");
        let fault = Fault::new(text, "a file cannot be spread over more servers than there are");
        return Err(it.error("storage.servers.width", fault));
    }
    Ok(Layout::Apart { count, unit_bytes, width, gathers })
}

fn cache(it: &mut Document<'_>) -> Result<Cache, ProfileError> {
    Ok(match it.choice("storage.cache.kind", CACHES)? {
        "none" => Cache::None,
        "write-behind" => Cache::WriteBehind {
            limit_bytes: it.size_above_zero("storage.cache.limit")?,
            copy_rate: it.rate("storage.cache.copy_rate")?,
            cluster_bytes: it.size_above_zero("storage.cache.cluster")?,
        },
        _ => Cache::Blocks {
            block_bytes: it.size_above_zero("storage.cache.block")?,
            blocks_per_rank: it.count("storage.cache.blocks_per_rank")?,
            lookup_ns: it.time("storage.cache.lookup")?,
        },
    })
}

fn bus(it: &mut Document<'_>) -> Result<Bus, ProfileError> {
    Ok(Bus { rate: it.rate("storage.bus.rate")?, transaction_ns: it.time("storage.bus.transaction")? })
}

fn disk(it: &mut Document<'_>) -> Result<Disk, ProfileError> {
    Ok(match it.choice("storage.disk.kind", DISKS)? {
        "hp97560" => Disk::Hp97560,
        "rated" => Disk::Rated {
            read_rate: it.rate("storage.disk.read_rate")?,
            write_rate: it.rate("storage.disk.write_rate")?,
            position_ns: it.time("storage.disk.position")?,
            request_ns: it.time("storage.disk.request")?,
        },
        "nvme" => Disk::Nvme {
            read_rate: it.rate("storage.disk.read_rate")?,
            write_rate: it.rate("storage.disk.write_rate")?,
            read_ns: it.time("storage.disk.read")?,
            write_ns: it.time("storage.disk.write")?,
            depth: it.count("storage.disk.depth")?,
        },
        _ => Disk::Instant,
    })
}

fn metadata(it: &mut Document<'_>) -> Result<Metadata, ProfileError> {
    Ok(Metadata {
        open_ns: it.time("storage.metadata.open")?,
        open_manager_ns: it.time("storage.metadata.open_manager")?,
        close_ns: it.time("storage.metadata.close")?,
        close_manager_ns: it.time("storage.metadata.close_manager")?,
        query_ns: it.time("storage.metadata.query")?,
        query_manager_ns: it.time("storage.metadata.query_manager")?,
    })
}
