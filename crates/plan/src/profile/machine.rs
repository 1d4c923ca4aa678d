//! What a profile says, in base units: nanoseconds, bytes, bytes a second.

/// A machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// Short name, as in `nas-sp2`.
    pub name: String,
    /// What machine it is, in a line.
    pub description: String,
    /// Compute nodes.
    pub nodes: Nodes,
    /// What a rank's processor needs for its work.
    pub processor: Processor,
    /// What messages cost beside the wire.
    pub messages: Messages,
    /// The wire.
    pub network: Network,
    /// Files.
    pub storage: Storage,
    /// What was measured where ranks ran on it; the simulator needs none of it.
    pub measured: Option<Measured>,
}

/// Compute nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Nodes {
    /// Ranks on one node.
    pub ranks_per_node: u32,
    /// Processors of one node, which its ranks share.
    pub cores_per_node: u32,
}

impl Nodes {
    /// Nodes that so many ranks fill.
    pub fn filled_by(&self, ranks: u32) -> u32 {
        ranks.div_ceil(self.ranks_per_node)
    }

    /// Processors of a node that have ranks.
    pub fn cores_used(&self) -> u32 {
        self.cores_per_node.min(self.ranks_per_node)
    }
}

/// Costs of work on a processor.
#[derive(Clone, PartialEq, Debug)]
pub struct Processor {
    /// Rate of copies of long runs \[B/s\].
    pub copy_rate: f64,
    /// What each contiguous run of a copy costs besides \[ns\].
    pub run_ns: f64,
    /// What each run of up to 8 B costs besides, whatever lies between them \[ns\].
    pub turn_ns: f64,
    /// Rate of touching memory that a process has not had before, all of whose pages the system finds and clears \[B/s\].
    pub touch_rate: f64,
    /// Rate of compressing and decompressing \[B/s\].
    pub code_rate: f64,
    /// Making a step of a program: for Panda, finding the clients that overlap a subchunk, once a subchunk \[ns\].
    pub step_ns: f64,
    /// Making one piece of a message: for Panda, computing the bounds of an overlap \[ns\].
    pub piece_ns: f64,
}

impl Processor {
    /// What encoding or decoding so many bytes of elements takes \[ns\]: where nothing compresses them, a copy, and another to
    /// or from its place.
    pub fn coding_ns(&self, bytes: u64, compresses: bool) -> f64 {
        bytes as f64 * 1e9 * if compresses { 1.0 / self.code_rate } else { 2.0 / self.copy_rate }
    }
}

/// Costs of messages on the processors at both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct Messages {
    /// Start-up of sending one \[ns\].
    pub send_ns: f64,
    /// Start-up of receiving one \[ns\].
    pub receive_ns: f64,
    /// What the sender's processor needs for each byte; 0 where the network interface fetches them by itself \[ns/B\].
    pub send_byte_ns: f64,
    /// The same for the receiver's \[ns/B\].
    pub receive_byte_ns: f64,
    /// What each contiguous run in a message costs the processor of the side with the buffer slot, which gathers or scatters
    /// \[ns\].
    pub slot_run_ns: f64,
    /// The same for the side with the user's array \[ns\].
    pub array_run_ns: f64,
    /// Longest message that is sent without asking; a longer one first exchanges a question and an answer \[B\].
    pub eager_bytes: u64,
    /// Bytes of a message beside its data \[B\].
    pub header_bytes: u64,
    /// Most bytes of one message; longer ones are sent in parts \[B\].
    pub bytes_max: u64,
    /// Who asks for data.
    pub requests: Requests,
}

/// Which data travel only when the receiver has asked for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Requests {
    /// What goes into a buffer slot: its receiver asks when the slot is free (Kotz's Memget; Panda). What goes into a user's
    /// array, which is ready during the whole transfer, is just sent (Memput).
    Slots,
    /// All.
    All,
}

/// The wire between nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// How nodes are joined.
    pub topology: Topology,
    /// From the first byte sent to the first received, beside what routers add \[ns\].
    pub latency_ns: f64,
    /// Rate of a node's link, in each direction \[B/s\].
    pub link_rate: f64,
}

/// How nodes are joined.
#[derive(Clone, PartialEq, Debug)]
pub enum Topology {
    /// Any pair at full rate; only the links of nodes are shared.
    Switch,
    /// Nodes in a rectangle that is closed in both directions; a message holds all links of its way at once (wormhole).
    Torus {
        /// Rows and columns of nodes.
        shape: (u32, u32),
        /// Delay of each router on the way \[ns\].
        router_ns: f64,
    },
    /// One medium for all.
    Ethernet,
    /// Groups of nodes below leaf switches, with fewer links above than below.
    FatTree {
        /// Nodes below one leaf.
        nodes_per_leaf: u32,
        /// Bytes a second that leave a leaf, over those that its nodes can send.
        taper: f64,
    },
}

/// Files.
#[derive(Clone, PartialEq, Debug)]
pub struct Storage {
    /// Servers of files.
    pub servers: Servers,
    /// What a server keeps in memory.
    pub cache: Cache,
    /// The bus between a server and its disks; none where it never matters.
    pub bus: Option<Bus>,
    /// The disks.
    pub disk: Disk,
    /// In which order a disk takes requests.
    pub queue: Queue,
    /// Opening and closing.
    pub metadata: Metadata,
    /// What a call to the file system costs its caller's processor \[ns\].
    pub call_ns: f64,
    /// What it costs for each byte \[ns/B\].
    pub call_byte_ns: f64,
    /// Calls that one rank may have under way; direct ones always at least 8, as real stores have.
    pub calls_at_once: u32,
}

/// Who serves files.
#[derive(Clone, PartialEq, Debug)]
pub struct Servers {
    /// Where they are, and how files are spread over them.
    pub layout: Layout,
    /// Disks of a server.
    pub disks: u32,
    /// What a server's processor needs for a request \[ns\].
    pub request_ns: f64,
    /// For each byte of a write \[ns/B\].
    pub write_byte_ns: f64,
    /// For each byte of a read \[ns/B\].
    pub read_byte_ns: f64,
    /// By how much a request takes longer for each other that waits at the server: a fraction of its time.
    pub crowding: f64,
    /// Requests of one call that may be under way at one disk.
    pub requests_at_once: u32,
    /// Rate of a server's own link to the network \[B/s\].
    pub link_rate: f64,
}

/// Where servers are.
#[derive(Clone, PartialEq, Debug)]
pub enum Layout {
    /// Each node has its own disks and its own files.
    Local,
    /// The last ranks of the communicator serve, and files are spread over all their disks, unit by unit.
    Ranks {
        /// Unit of striping \[B\].
        unit_bytes: u64,
    },
    /// Nodes of their own serve.
    Apart {
        /// How many there are.
        count: u32,
        /// Unit of striping \[B\].
        unit_bytes: u64,
        /// Over how many servers a file is spread.
        width: u32,
        /// Whether the parts of one call that lie on one server are one request.
        gathers: bool,
    },
}

/// What a server keeps in memory.
#[derive(Clone, PartialEq, Debug)]
pub enum Cache {
    /// Nothing: requests end when the disk has done them.
    None,
    /// Writes end when they are copied; the disk follows. Beyond the limit they wait for it.
    WriteBehind {
        /// Most bytes that wait for the disk \[B\].
        limit_bytes: u64,
        /// Rate of copying into and out of it \[B/s\].
        copy_rate: f64,
        /// What goes to the disk at once: less waits for more to follow, or for a sync \[B\].
        cluster_bytes: u64,
    },
    /// Blocks, replaced in the order of their last use; the next block is fetched ahead, and a block is written once
    /// it is full (Kotz 1997, section 4).
    Blocks {
        /// Size of a block \[B\].
        block_bytes: u64,
        /// Blocks for each disk and each rank that uses it.
        blocks_per_rank: u32,
        /// Time of the server's processor to look a block up and to start a thread for it \[ns\].
        lookup_ns: f64,
    },
}

/// A bus that disks of one server share.
#[derive(Clone, PartialEq, Debug)]
pub struct Bus {
    /// Rate \[B/s\].
    pub rate: f64,
    /// What each transaction costs besides \[ns\].
    pub transaction_ns: f64,
}

/// A kind of disk.
#[derive(Clone, PartialEq, Debug)]
pub enum Disk {
    /// The HP 97560, in detail.
    Hp97560,
    /// A position to be found, then a rate.
    Rated {
        /// Rate of reading \[B/s\].
        read_rate: f64,
        /// Rate of writing \[B/s\].
        write_rate: f64,
        /// Finding a place that does not follow the last \[ns\].
        position_ns: f64,
        /// What each request costs besides \[ns\].
        request_ns: f64,
    },
    /// Flash: each request has a latency, and many are under way at once.
    Nvme {
        /// Rate of reading \[B/s\].
        read_rate: f64,
        /// Rate of writing \[B/s\].
        write_rate: f64,
        /// Latency of a read \[ns\].
        read_ns: f64,
        /// Latency of a write \[ns\].
        write_ns: f64,
        /// Requests that it serves at once.
        depth: u32,
    },
    /// Takes no time.
    Instant,
}

/// In which order a disk takes requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// As they come.
    Fcfs,
    /// In rising order of places on the disk, then from the lowest again.
    Cscan,
    /// In rising order of places in the file, then from the lowest again.
    CscanFile,
}

/// What opening, closing and the like cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Metadata {
    /// Opening: what the caller waits besides \[ns\].
    pub open_ns: f64,
    /// Opening: what one manager, which serves all, needs \[ns\].
    pub open_manager_ns: f64,
    /// Closing, likewise \[ns\].
    pub close_ns: f64,
    /// \[ns\]
    pub close_manager_ns: f64,
    /// Asking for a size and the like, likewise \[ns\].
    pub query_ns: f64,
    /// \[ns\]
    pub query_manager_ns: f64,
}

/// What only a real machine has: measured, and of use to the model alone.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Which machine it was.
    pub identity: Identity,
    /// Messages between ranks of one node, which move data by copying them out of, or into, each other's memory.
    pub neighbours: Neighbours,
    /// Agreements, of which a collective call makes one to open and one to close.
    pub agreements: Agreements,
    /// Files, as one rank finds them.
    pub files: Files,
    /// How far times of the same thing spread.
    pub noise: Noise,
}

/// Which machine was measured, when, by what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Name of the host.
    pub host: String,
    /// Model of the processor.
    pub processor: String,
    /// Operating system and its version.
    pub system: String,
    /// Type of the file system, and where it is mounted.
    pub file_system: String,
    /// Version of this library.
    pub library: String,
    /// Day.
    pub date: String,
}

/// Messages between ranks of one node.
#[derive(Clone, PartialEq, Debug)]
pub struct Neighbours {
    /// What a message costs the processors of both sides together, besides its data \[ns\].
    pub message_ns: f64,
    /// How long it takes until a rank that waits goes on, when each rank has a core \[ns\].
    pub wake_ns: f64,
    /// Rate of copying long runs \[B/s\].
    pub rate: f64,
    /// What each contiguous run of a buffer slot costs besides \[ns\].
    pub run_ns: f64,
    /// What each contiguous run of the other's array costs besides, with short gaps that are read along \[ns\].
    pub array_run_ns: f64,
}

/// Agreements of all ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct Agreements {
    /// Of one rank \[ns\].
    pub base_ns: f64,
    /// More for each further rank that has a core \[ns\].
    pub rank_ns: f64,
    /// More for each rank beyond the cores \[ns\].
    pub crowded_ns: f64,
}

/// Files as one rank finds them.
#[derive(Clone, PartialEq, Debug)]
pub struct Files {
    /// Writing through the system's cache: each call \[ns\].
    pub write_ns: f64,
    /// Rate of long ones \[B/s\].
    pub write_rate: f64,
    /// The same out of memory that stays in the processor's cache \[B/s\].
    pub write_rate_kept: f64,
    /// What each contiguous run of memory that a call gathers costs besides \[ns\].
    pub gather_ns: f64,
    /// Each further range of the file that the same request writes \[ns\].
    pub write_range_ns: f64,
    /// Writes to one file that go on at the same time: 1 where the file's lock lets one writer in.
    pub writers: u32,
    /// Reading what the cache has: each call \[ns\].
    pub read_ns: f64,
    /// Rate of long ones \[B/s\].
    pub read_rate: f64,
    /// What each contiguous run of memory that a call fills costs besides \[ns\].
    pub scatter_ns: f64,
    /// Each further range of the file that the same request reads \[ns\].
    pub read_range_ns: f64,
    /// Reading what it has not: rate \[B/s\].
    pub cold_rate: f64,
    /// Writing by direct I/O, with several requests under way: rate; `None` where files have no such requests \[B/s\].
    pub direct_write_rate: Option<f64>,
    /// Reading past it, likewise \[B/s\].
    pub direct_read_rate: Option<f64>,
    /// Making durable what was written: for each call \[ns\].
    pub sync_ns: f64,
    /// Rate \[B/s\].
    pub sync_rate: f64,
    /// Making a file, until it is closed, where nobody else does \[ns\].
    pub create_ns: f64,
    /// Making a file where several ranks do, each file of all of them \[ns\].
    pub create_together_ns: f64,
    /// Opening and closing one that is there \[ns\].
    pub open_ns: f64,
    /// Renaming \[ns\].
    pub rename_ns: f64,
    /// Removing \[ns\].
    pub remove_ns: f64,
}

/// Half the distance between the quartiles of repeated measurements, over their median.
#[derive(Clone, PartialEq, Debug)]
pub struct Noise {
    /// Of copies.
    pub copy: f64,
    /// Of messages.
    pub message: f64,
    /// Of files in the cache.
    pub file: f64,
    /// Of making durable.
    pub sync: f64,
}
