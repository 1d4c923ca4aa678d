//! What can be asked of a rehearsal. Field names are those of the JSON.

use hyperslab_sim as sim;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Most ranks of a simulation, and most buffer slots of one of them.
pub(super) const RANKS_MAX: u32 = 1 << 22;

/// A rehearsal.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulationSpec {
    /// The machine profile, as TOML.
    pub machine: String,
    /// Its name in messages.
    #[serde(default = "unnamed")]
    pub file: String,
    /// Factors for numbers of the profile, by dotted key.
    #[serde(default)]
    pub scale: BTreeMap<String, f64>,
    /// Ranks that hold arrays.
    pub clients: u32,
    /// Ranks behind them that only serve.
    #[serde(default)]
    pub servers: u32,
    /// Parts that take no time.
    #[serde(default)]
    pub what_if: WhatIf,
    /// How files lie on disks.
    #[serde(default)]
    pub disk_layout: DiskLayout,
    /// Decides what is left to chance.
    #[serde(default)]
    pub seed: u64,
    /// How systems of the 1990s behaved.
    #[serde(default)]
    pub period: Period,
    /// Whether to tell what happens, a line each.
    #[serde(default)]
    pub log: bool,
    /// A directory into which spans of all ranks are recorded.
    #[serde(default)]
    pub trace: Option<PathBuf>,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Option<FaultSpec>,
    /// What ranks live through.
    pub stages: Vec<StageSpec>,
}

fn unnamed() -> String {
    "the machine".into()
}

/// Parts that take no time.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WhatIf {
    /// Disks.
    pub instant_disk: bool,
    /// The network.
    pub instant_network: bool,
}

impl From<WhatIf> for sim::WhatIf {
    fn from(what_if: WhatIf) -> sim::WhatIf {
        sim::WhatIf { instant_disk: what_if.instant_disk, instant_network: what_if.instant_network }
    }
}

/// How files lie on disks.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskLayout {
    /// Blocks one after another.
    #[default]
    Contiguous,
    /// Blocks anywhere.
    RandomBlocks,
    /// Tracks anywhere.
    RandomTracks,
}

impl From<DiskLayout> for sim::DiskLayout {
    fn from(layout: DiskLayout) -> sim::DiskLayout {
        match layout {
            DiskLayout::Contiguous => sim::DiskLayout::Contiguous,
            DiskLayout::RandomBlocks => sim::DiskLayout::RandomBlocks,
            DiskLayout::RandomTracks => sim::DiskLayout::RandomTracks,
        }
    }
}

/// How systems of the 1990s behaved.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Period {
    /// Sends occupy their sender until the data have left.
    pub blocking_sends: bool,
    /// Rank 0 tells one rank after another.
    pub linear_start: bool,
    /// Steps derived ahead; 0 for as many as the walker likes.
    pub look_ahead: usize,
}

impl From<Period> for sim::Period {
    fn from(period: Period) -> sim::Period {
        let Period { blocking_sends, linear_start, look_ahead } = period;
        sim::Period { blocking_sends, linear_start, look_ahead }
    }
}

/// A stage.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageSpec {
    /// All ranks agree.
    Agree,
    /// A collective call.
    Transfer(TransferSpec),
    /// The program works.
    Work(Work),
    /// Files are opened, closed, asked about.
    Open(Meta),
    /// Closing.
    Close(Meta),
    /// Asking for a size and the like.
    Query(Meta),
    /// A plain read or write.
    Call(Call),
    /// A store is opened, by the library.
    Begin(BeginStore),
    /// A step of it is begun.
    Step(StepOf),
    /// Its step is published.
    Publish(StoreOf),
    /// It is closed.
    End(StoreOf),
}

/// A store is opened.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeginStore {
    /// Its path: a Zarr group, or a raw file where this does not end with `.zarr`.
    pub store: String,
    /// `r`, `r+`, `w` or `x`.
    #[serde(default = "anew")]
    pub mode: String,
    /// Whether what is published is on disk first.
    #[serde(default = "yes")]
    pub durable: bool,
}

fn anew() -> String {
    "w".into()
}

/// A step of a store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepOf {
    /// The store.
    pub store: String,
    /// Name of the step.
    pub name: String,
}

/// A store that is open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreOf {
    /// Its path.
    pub store: String,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// Draws what, where and when.
    pub seed: u64,
    /// How long ranks wait for others to arrive \[s\].
    #[serde(default = "arrival")]
    pub arrival_seconds: f64,
    /// For any progress \[s\].
    #[serde(default = "progress")]
    pub progress_seconds: f64,
    /// For storage that does not answer \[s\].
    #[serde(default = "storage")]
    pub storage_seconds: f64,
}

fn arrival() -> f64 {
    1800.0
}

fn progress() -> f64 {
    60.0
}

fn storage() -> f64 {
    600.0
}

/// Who takes part: `"all"`, `"clients"`, or the number of a rank.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Who {
    /// All ranks.
    #[default]
    All,
    /// Ranks that do not only serve.
    Clients,
    /// One rank.
    #[serde(untagged)]
    Rank(u32),
}

impl From<Who> for sim::Who {
    fn from(who: Who) -> sim::Who {
        match who {
            Who::All => sim::Who::All,
            Who::Clients => sim::Who::Clients,
            Who::Rank(rank) => sim::Who::Rank(rank),
        }
    }
}

/// Work of the program.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Who works.
    #[serde(default)]
    pub who: Who,
    /// How long \[s\].
    pub seconds: f64,
}

/// A file is opened, closed or asked about.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Who does so.
    #[serde(default)]
    pub who: Who,
}

/// A plain call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Who calls.
    #[serde(default)]
    pub who: Who,
    /// The file.
    pub object: String,
    /// Where rank 0 begins \[B\].
    #[serde(default)]
    pub offset: u64,
    /// How much further each next rank begins \[B\].
    #[serde(default)]
    pub pitch: u64,
    /// How much each moves \[B\].
    pub bytes: u64,
    /// Whether it is written.
    pub write: bool,
}

/// A collective call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferSpec {
    /// Whether arrays are written.
    pub write: bool,
    /// The arrays.
    pub arrays: Vec<Array>,
    /// The strategy; the library chooses when it is absent.
    #[serde(default)]
    pub strategy: Option<String>,
    /// Ranks that serve; the dedicated ones, or as many as the library likes, when absent.
    #[serde(default)]
    pub servers: Option<Vec<u32>>,
    /// Buffer slots of a server.
    #[serde(default)]
    pub slots: Option<u32>,
    /// Most bytes of a subchunk \[B\].
    #[serde(default)]
    pub subchunk_bytes: Option<u64>,
    /// Most bytes of buffers on one rank \[B\].
    #[serde(default)]
    pub buffer_bytes: Option<u64>,
    /// Runs at least this long go without a buffer \[B\].
    #[serde(default)]
    pub direct_run_bytes: Option<u64>,
    /// Between whom data cross: `all` or `sharers`.
    #[serde(default)]
    pub exchange: Option<String>,
    /// For disk-directed: whether groups are taken in the order of the disk, or of the file.
    #[serde(default = "yes")]
    pub presort: bool,
    /// Whether what is written shall be durable.
    #[serde(default)]
    pub sync: bool,
    /// Whether chunks that are written are new, so that those written in part are not read first.
    #[serde(default = "yes")]
    pub fresh: bool,
    /// Whether ranks agree before and after, as in a collective call.
    #[serde(default = "yes")]
    pub agree: bool,
    /// Whether it is no call of the library: ranks agree that they begin and that they have ended, and know the rest.
    #[serde(default)]
    pub alone: bool,
    /// The store that it writes into or reads from; files that are open on all ranks when absent.
    #[serde(default)]
    pub store: Option<String>,
    /// The dimension along which it appends to arrays of the store.
    #[serde(default)]
    pub append: Option<usize>,
    /// Whether it replaces arrays of the store.
    #[serde(default)]
    pub overwrite: bool,
}

fn yes() -> bool {
    true
}

/// An array, or several alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// Its name; several have a number behind it.
    #[serde(default = "array_name")]
    pub name: String,
    /// How many alike.
    #[serde(default = "one")]
    pub count: u32,
    /// Global shape.
    pub shape: Vec<u64>,
    /// Type of stored elements, in NumPy's code.
    #[serde(default = "double")]
    pub dtype: String,
    /// Type of elements in memory; that of the stored ones when absent.
    #[serde(default)]
    pub memory_dtype: Option<String>,
    /// The mesh of ranks.
    pub mesh: Vec<u64>,
    /// Per dimension: `"block"`, `"block(n)"`, `"cyclic"`, `"cyclic(n)"`, `"*"`, or a list of sizes of blocks.
    pub dims: Vec<Dim>,
    /// Start, stride, count, block per dimension; the whole array when absent.
    #[serde(default)]
    pub section: Option<Vec<[u64; 4]>>,
    /// Where it is stored.
    #[serde(default)]
    pub store: Store,
    /// `"C"` or `"F"`.
    #[serde(default = "row_major")]
    pub order: String,
    /// Where its elements lie in memory.
    #[serde(default)]
    pub local: Local,
}

fn array_name() -> String {
    "array".into()
}

fn one() -> u32 {
    1
}

fn double() -> String {
    "f8".into()
}

fn row_major() -> String {
    "C".into()
}

/// How one dimension is spread.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Dim {
    /// By name.
    Named(String),
    /// In uneven blocks.
    Blocks(Vec<u64>),
}

/// Where an array is stored: one file, or a file for each chunk.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    /// One file.
    File(File),
    /// Chunks of this shape.
    Chunks(Vec<u64>),
}

impl Default for Store {
    fn default() -> Store {
        Store::File(File::default())
    }
}

/// A place in a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    /// The file; the name of the array when absent.
    pub object: Option<String>,
    /// Where the array begins \[B\].
    pub offset: u64,
}

/// Where elements lie in memory.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Local {
    /// Halo cells on either side of each dimension; none when absent.
    pub halo: Option<Vec<u64>>,
    /// Values that lie beside each other, of which this array is one.
    pub interleave: Option<u64>,
}
