//! Collective I/O of distributed N-dimensional arrays.
//!
//! One call moves arrays that are spread over the memories of many ranks to storage and back: whole, any section, or
//! a set of them, whatever the layout on either side. Files are ordinary Zarr v3, NetCDF classic, `.npy` and raw files.
//!
//! ```
//! use hyperslab::{Comm, Dim, Distribution, Error, Mode, OpenOptions, Store, WriteOptions};
//! # let directory = std::env::temp_dir().join(format!("hyperslab-doc-{}", std::process::id()));
//! # let path = directory.as_path();
//! // On each rank: whole rows of an array of 6 x 4, written and read back by all.
//! fn rank(comm: &Comm, path: &std::path::Path) -> Result<f64, Error> {
//!     let rows = Distribution::new(&[6, 4], &[2], &[Dim::Block, Dim::Whole])?;
//!     let store = Store::open(comm, path, Mode::Write, OpenOptions::default())?;
//!     let report = store.write_values("rho", &[comm.rank() as f64; 12], &rows, &WriteOptions::default())?;
//!     assert_eq!(report.bytes(), 6 * 4 * 8);
//!     let whole = Distribution::replicated(&[6, 4], 2)?;
//!     Ok(store.read_values::<f64>("rho", &whole)?.iter().sum())
//! }
//!
//! let sums = Comm::threads(2).into_iter().map(|comm| {
//!     let path = path.to_path_buf();
//!     std::thread::spawn(move || rank(&comm, &path))
//! });
//! let sums: Vec<_> = sums.collect::<Vec<_>>().into_iter().map(|rank| rank.join().unwrap()).collect();
//! assert_eq!(sums, [Ok(12.0), Ok(12.0)]);
//! # std::fs::remove_dir_all(path).unwrap();
//! ```
//!
//! # What is collective
//!
//! Each method says so. *Collective*: all ranks of the communicator make the call, with arguments that agree, and get the same
//! outcome. *Local*: any rank calls it by itself, and it waits for nobody.
//!
//! # Errors
//!
//! There is one [`Error`], with fields and a predicate for each kind: [`Error::is_not_found`], [`Error::is_busy`], and so on.
//! All ranks of a collective call get an error of the same kind.
//!
//! # Memory
//!
//! [`Store::write_values`] and its like copy slices, since a transfer owns what it may still touch; [`LocalArray`] describes
//! memory of any layout, which is not copied. `examples/` has a ladder of programs, from the first array to errors.
#![forbid(unsafe_code)]

// How the files hang together:
//
// - `course.rs` has the doors of collective calls: each waits for its turn and drives a state machine of `collective`.
//   `comm.rs` is a membership, `line.rs` the line in which its calls stand and the thread that carries out those that do not
//   block (`sync.rs` gives it locks, in models of it those of loom), `request.rs` what the user has of such a call, `crew.rs`
//   stops those of other threads, `left.rs` tells at the end what was left undone, `unready.rs` is what an error says when a
//   call cannot begin; `served.rs` is the loop of dedicated servers.
// - `zarr.rs` and `file.rs` are what is open; `zarr/call.rs`, `zarr/writing.rs`, `file/reading.rs` and `file/putting.rs` are
//   their targets, `zarr/step.rs` and `file.rs` end what several calls wrote, `zarr/opening.rs` and `file/disk.rs` open;
//   `file/form.rs` is what formats of one file differ in, and `file/netcdf.rs` is one of them; `file/edit.rs` is what may be
//   changed of what a file says, `file/editing.rs` and `file/step.rs` do it;
//   `zarr/shapes.rs` chooses chunks of new arrays, `zarr/known.rs` and `listing.rs` keep what all ranks saw.
// - `opening.rs` opens what is of any format, which `format.rs` tells; `opened.rs` is the one handle of it, `place.rs` where it is,
//   as users write it; `attending.rs` is for ranks that cannot make the call of the others.
// - `select.rs` and `select/` read the elements for which an expression holds (`source.rs` reads and evaluates, `sharing.rs`
//   says who gets what, `reduce.rs` makes numbers of them); `delivering.rs` brings packets from ranks to ranks.
// - `binding.rs` is what doors of other languages share. `values.rs` and `views.rs` are the doors for slices and for views of the
//   crate ndarray.
// - `mode.rs`, `options.rs` and `selection.rs` are what may be said of a call and what it means, `array_write.rs` says it of which
//   arrays, whatever they are stored in, and `queued.rs` of writes that wait in the line, `arrays.rs` what groups, steps and files have in
//   common, `alone.rs` the door for a rank alone; `pinned.rs` notices what others replace in the middle of a call.
// - `planning.rs` is how rank 0 chooses: profile, plans that are kept, what was learned; `profile.rs` finds the profile of this
//   machine. `measuring.rs` is the door for who measures it, `driver.rs` that for who is on another one, as in a simulation.
// - `noting.rs` says when calls are recorded, `recording.rs` writes down what a party's recorder noted, call by call, and
//   `trace.rs` is the form of it; `environment.rs`
//   is where environment variables are read, `lone.rs` compares MPI with the launcher, `stderr.rs` what goes to the error output.

mod alone;
mod apart;
mod array_write;
mod arrays;
mod attending;
pub mod binding;
mod comm;
mod contents;
mod course;
mod crew;
mod delivering;
mod driver;
mod environment;
mod error;
mod file;
mod format;
mod left;
mod line;
mod listing;
mod lone;
mod measuring;
mod mode;
mod noting;
mod opened;
mod opening;
mod options;
mod pinned;
mod place;
mod planning;
mod policy;
pub mod profile;
mod queued;
mod recording;
mod request;
mod said;
mod select;
mod selection;
mod served;
mod slots;
mod stderr;
mod stretches;
mod sync;
pub mod trace;
mod unfinished;
mod unready;
mod values;
#[cfg(feature = "ndarray")]
mod views;
mod zarr;

pub use array_write::ArrayWrite;
pub use arrays::Info;
pub use comm::Comm;
pub use contents::{Contents, FileArray};
pub use crew::Crew;
pub use error::Error;
pub use file::hdf5::Hdf5Options;
pub use file::netcdf::NetcdfOptions;
pub use file::step::FileStep;
pub use file::{File, StoredUnits, Unread};
pub use format::Format;
pub use hyperslab_collective::attempts::{Cleaned, clean};
pub use hyperslab_collective::{CHUNK_BYTES_MAX, Element, LocalArray, Ownership, Report, RunList, natural_chunks};
pub use hyperslab_format::attribute::{
    AttributeEdit, AttributeValue, Attributes, Elements, KeptValue, Texts, ValueType,
};
pub use hyperslab_format::json_from_text;
pub use hyperslab_format::netcdf::Version as NetcdfVersion;
pub use hyperslab_format::raw::Order;
pub use hyperslab_format::zarr::{Codecs, Map, Value};
pub use hyperslab_layout::{
    ByteOrder, Casting, Dim, Distribution, ElementType, IndexSet, Kind, Region, Section, Triplet, chunks_for_request,
    mesh, schema_chunks,
};
pub use hyperslab_pack::Memory;
pub use hyperslab_plan::{Direction, Exchange, Explanation, Limits, Machine, Parameters, Preference, Strategy};
pub use hyperslab_real::Directory;
pub use hyperslab_world::{BucketNames, Death, FaultKind, Location, MemoryTree, Names, ObjectMemory, Striped, Trouble};
pub use left::finalize;
pub use mode::Mode;
pub use opened::Opened;
pub use opening::open;
pub use options::{ArrayOptions, FileLocking, OpenOptions, ReadOptions, ShardShape, WriteOptions};
pub use request::Request;
pub use select::{
    Parameter, Reduced, ReducedValue, Reducing, Reduction, ResultShare, SELECT_BYTES, Scalar, SelectReport,
    SelectedElements, Selection, evaluate,
};
pub use selection::Sections;
pub use trace::Predicted;
pub use zarr::{ArrayInfo, Layout, Planned, Step, Store, explain};
