//! One file with a header of the user's own and arrays one after another; `.npy` files are the case of one array and
//! NumPy's header.

mod disk;
mod reading;
mod requests;
mod writing;

use crate::alone::Alone;
use crate::comm::Comm;
use crate::course::{End, Publish};
use crate::error::{Error, format_fault};
use crate::line::new_target;
use crate::options::{OpenOptions, WriteOptions};
use crate::planning::{Shaped, decided};
use crate::selection::Sections;
use crate::zarr::{Mode, WriteAsk, completed};
use disk::{Heard, Opened, lay_out, open_file, open_npy};
use hyperslab_collective::attempts::Attempts;
use hyperslab_collective::{Decision, Report};
use hyperslab_format::npy::NpyHeader;
use hyperslab_format::raw::Order;
use hyperslab_layout::ElementType;
use hyperslab_layout::mesh::volume;
use hyperslab_plan::{Stored, Transfer};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Location, Names, Proof, Root};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An array of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileArray {
    /// Its name; files do not hold it.
    pub name: String,
    /// Global shape.
    pub shape: Vec<u64>,
    /// Type of the stored elements.
    pub element: ElementType,
}

impl FileArray {
    fn bytes(&self) -> Result<u64, Fault> {
        volume(&self.shape)
            .and_then(|elements| elements.checked_mul(self.element.bytes()))
            .filter(|&b| b < 1 << 62)
            .ok_or_else(|| {
                Fault::new(FaultKind::Invalid, format!("array '{}' of shape {:?} is too large", self.name, self.shape))
            })
    }
}

/// What a file holds besides the elements of its arrays.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// Order of the elements of each array.
    pub order: Order,
    /// What a new file begins with.
    pub header: &'a [u8],
    /// How many bytes of an existing file come before its arrays \[B\].
    pub header_bytes: u64,
    /// The arrays of an existing file; empty for a new one.
    pub arrays: &'a [FileArray],
}

/// Names of arrays, with shape and type where they are not those of the array before: of hundreds nearly all are alike.
fn enumerated(arrays: &[FileArray]) -> String {
    let mut text = String::new();
    for (number, array) in arrays.iter().enumerate() {
        let FileArray { name, shape, element } = array;
        text += if number > 0 { "; " } else { "" };
        let _ = write!(text, "{name:?}");
        let before = number.checked_sub(1).map(|before| &arrays[before]);
        if before.is_none_or(|before| (&before.shape, before.element) != (shape, *element)) {
            let _ = write!(text, " {shape:?} {element}");
        }
    }
    text
}

/// An open file of arrays.
///
/// A new file is written under a hidden name beside its own and takes its name, replacing an older file, when it is
/// closed; until then, and after a crash, the older file is there unchanged. A file open for update is changed in
/// place, with a marker file beside it while a write is under way. A [`Striped`](crate::Striped) file takes its name in
/// one directory after another, of which the first decides: after a crash between them, whoever opens the file next
/// completes it, and who has it open for reading meanwhile may see some parts old and some new.
#[derive(Clone)]
pub struct RawFile {
    comm: Comm,
    /// Tells its requests from those of others.
    target: u64,
    /// Bytes of the buffers' budget that copies of arrays have \[B\].
    held: u64,
    /// Names in the directory that holds the file.
    directory: Arc<dyn Names>,
    name: String,
    /// The name of a new file until it is published.
    hidden: String,
    /// What it writes and has not published; only rank 0 makes anything of it.
    attempts: Arc<Attempts>,
    /// What all ranks must see of an existing file.
    proofs: Vec<Proof>,
    mode: Mode,
    options: OpenOptions,
    order: Order,
    header: Arc<[u8]>,
    /// Shared with the calls that the line carries out.
    laid: Arc<Mutex<Laid>>,
    /// What an earlier run left unpublished and this one removed.
    removed: Vec<String>,
    /// The file, if an update of it in place did not end; and what is left of owners who may be alive.
    unfinished: Vec<String>,
    /// This rank's own way to read it.
    alone: Alone,
    /// Number of the last request of this rank that writes to it.
    last_write: Arc<AtomicU64>,
}

/// The arrays of a file, in their order.
#[derive(Default)]
struct Laid {
    arrays: Vec<FileArray>,
    /// Where each array begins \[B\].
    offsets: Vec<u64>,
    end: u64,
    /// Of each, the number of the request that added it: it is shown once all ranks know that that is over.
    added: Vec<u64>,
}

impl RawFile {
    /// Opens a file on all ranks.
    ///
    /// # Errors
    /// The same on all ranks, when the path does not fit the mode, or the length of an existing file is not what the
    /// arrays need.
    pub fn open(
        comm: &Comm,
        location: impl Into<Location>,
        mode: Mode,
        options: OpenOptions,
        contents: Contents,
    ) -> Result<RawFile, Error> {
        RawFile::open_with(comm, location.into(), mode, options, contents, Ok(()))
    }

    /// As [`RawFile::open`], for a caller that may have found a fault before; all ranks hear of it.
    fn open_with(
        comm: &Comm,
        location: Location,
        mode: Mode,
        options: OpenOptions,
        contents: Contents,
        found: Result<(), Fault>,
    ) -> Result<RawFile, Error> {
        let Contents { order, header, header_bytes, arrays } = contents;
        comm.set_limits(options.limits());
        let what = format!("open raw file '{location}' (mode {})", mode.name());
        let fields = vec![
            ("path".to_string(), location.to_string()),
            ("mode".into(), mode.name().into()),
            ("order of elements".into(), format!("{order:?}")),
            ("header".into(), if mode.writes_new() { format!("{header:?}") } else { format!("{header_bytes} B") }),
            ("arrays of the file".into(), enumerated(arrays)),
            ("durable".into(), options.durable.to_string()),
            ("preferences".into(), format!("{:?}", options.preference)),
        ];
        let laid_out = found.and_then(|()| lay_out(header_bytes.max(header.len() as u64), arrays));
        let (offsets, end, fault) = match laid_out {
            Ok((offsets, end)) => (offsets, end, None),
            Err(fault) => (Vec::new(), 0, Some(fault.context(&what))),
        };
        let names = comm.names(&location);
        let fault = fault.or_else(|| names.as_ref().err().cloned());
        let question = Question::opening(what.clone(), fields, fault);
        let (new_header, how) = (header.to_vec(), (mode, options.durable));
        let opened = move |names: &dyn Names, at_hand| {
            open_file(names, how, at_hand, (&new_header, header_bytes, end)).map_err(|fault| fault.context(&what))
        };
        let file = RawFile::opened(comm, question, (location, names), (mode, options, order), opened)?;
        *file.laid() = Laid { arrays: arrays.to_vec(), offsets, end, added: vec![0; arrays.len()] };
        Ok(file)
    }

    /// Opens an existing `.npy` file on all ranks.
    ///
    /// # Errors
    /// As [`RawFile::open`], and when its header is none.
    pub fn open_npy(comm: &Comm, location: impl Into<Location>, options: OpenOptions) -> Result<RawFile, Error> {
        let location = location.into();
        comm.set_limits(options.limits());
        let path = location.to_string();
        let what = format!("open '{path}'");
        let fields = vec![("path of the npy file".to_string(), path.clone())];
        let names = comm.names(&location);
        let fault = names.as_ref().err().cloned();
        let question = Question::opening(what.clone(), fields, fault);
        let shown = path.clone();
        let opened = move |names: &dyn Names, at_hand| {
            open_npy(names, &shown, at_hand, NPY_HEADER_MAX).map_err(|fault| match fault.kind {
                FaultKind::NotFound => fault.context(&what),
                _ => fault,
            })
        };
        let mut file =
            RawFile::opened(comm, question, (location, names), (Mode::Read, options, Order::RowMajor), opened)?;
        let (header, offset) = NpyHeader::parse(&file.header, &path).map_err(format_fault)?;
        file.order = header.order();
        let arrays = vec![FileArray { name: NPY_NAME.into(), shape: header.shape, element: header.element }];
        let (offsets, end) = lay_out(offset, &arrays)?;
        *file.laid() = Laid { arrays, offsets, end, added: vec![0] };
        Ok(file)
    }

    /// Writes a whole new `.npy` file; the name of the array does not matter. Collective.
    ///
    /// # Errors
    /// The same on all ranks; an older file of that name is there unchanged then.
    pub fn save_npy(
        comm: &Comm,
        location: impl Into<Location>,
        array: WriteAsk,
        order: Order,
        opening: OpenOptions,
        writing: &WriteOptions,
    ) -> Result<Report, Error> {
        let location = location.into();
        let (mut asks, unfit) = completed(vec![WriteAsk { name: NPY_NAME.into(), ..array }], comm.size());
        let shape = asks[0].holding.as_deref().map(|holding| holding.shape().to_vec()).unwrap_or_default();
        let element = writing.element.or(asks[0].element());
        let unknown = || {
            Fault::new(FaultKind::Invalid, "this rank holds nothing, so the type of the elements is unknown")
                .hint("give dtype= on all ranks")
        };
        let untyped = if element.is_none() { Some(unknown()) } else { None };
        let element = element.unwrap_or(ElementType::native(hyperslab_layout::Kind::UInt8));
        let described = NpyHeader { element, fortran_order: order == Order::ColumnMajor, shape };
        let fit = described.data_bytes(&location.to_string()).map(drop).map_err(format_fault);
        let header = described.to_bytes();
        let file = {
            let contents = Contents { order, header: &header, header_bytes: 0, arrays: &[] };
            let fit = unfit.or(untyped).map_or(fit, Err);
            RawFile::open_with(comm, location, Mode::Write, opening, contents, fit)?
        };
        let options = WriteOptions { section: Sections::Whole, element: Some(element), ..writing.clone() };
        match file.write(&std::mem::take(&mut asks), &options) {
            Ok(report) => file.close(None).map(|()| report),
            Err(error) => {
                // What was begun goes away, on all ranks alike; the error to show is that of the write.
                let _ = file.close(Some(error.message()));
                Err(error)
            }
        }
    }

    /// Agrees on an opening, of which rank 0 does its part.
    fn opened(
        comm: &Comm,
        question: Question,
        (location, names): (Location, Result<Arc<dyn Names>, Fault>),
        (mode, options, order): (Mode, OpenOptions, Order),
        open: impl FnOnce(&dyn Names, bool) -> Result<Opened, Fault> + Send + 'static,
    ) -> Result<RawFile, Fault> {
        let kept: Arc<Mutex<Option<Opened>>> = Arc::default();
        let (at, keep) = (names.as_ref().ok().cloned(), kept.clone());
        let told = comm.agree_on_opening(question, at, false, move |names, at_hand| {
            let opened = open(names, at_hand)?;
            let told = opened.told();
            *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
            Ok(told)
        })?;
        let heard = Heard::of(&*names?, &told)?;
        let mine = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (directory, name) = (heard.home.names.clone(), heard.home.base.clone());
        let others = || Attempts::new(heard.home, heard.opening, false, options.durable, None);
        let attempts = Arc::new(mine.map_or_else(others, |opened| opened.attempts));
        comm.watch(&attempts);
        Ok(RawFile {
            comm: comm.clone(),
            target: new_target(),
            held: 0,
            directory,
            name,
            hidden: heard.hidden,
            attempts,
            proofs: heard.proofs,
            mode,
            options,
            order,
            header: heard.header.into(),
            laid: Arc::default(),
            removed: heard.found.removed,
            unfinished: heard.found.unfinished,
            alone: Alone::new(location),
            last_write: Arc::default(),
        })
    }

    /// The bytes before the first array.
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    fn laid(&self) -> MutexGuard<'_, Laid> {
        self.laid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The arrays, in the order of the file; of requests, those that the user has waited for, or that a call that blocks has.
    /// Local.
    pub fn arrays(&self) -> Vec<FileArray> {
        let (laid, settled) = (self.laid(), self.comm.line().settled());
        laid.arrays
            .iter()
            .zip(&laid.added)
            .take_while(|(_, added)| **added <= settled)
            .map(|(one, _)| one.clone())
            .collect()
    }

    /// The name of the file, if one that a dead owner left unpublished was removed.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// The name of the file, if an update in place began and did not end: its bytes may be old or new. Besides, what is left
    /// of owners who may be alive.
    pub fn unfinished(&self) -> &[String] {
        &self.unfinished
    }

    /// Absolute name of the file once it is published; a path, where it is one file in a directory.
    pub fn path(&self) -> PathBuf {
        self.directory.full(&self.name).into()
    }

    /// The name of the file that is written or read, in its directory.
    fn object(&self) -> &str {
        if self.mode.writes_new() { &self.hidden } else { &self.name }
    }

    /// Where the file's bytes lie, for a transfer with these proofs.
    fn root(&self, proofs: Vec<Proof>) -> Root {
        // Parts of a striped file have paths of their own; one that is not there is missed by whoever looks for it.
        let proofs = if self.directory.is_plain() { proofs } else { Vec::new() };
        Root { at: self.directory.full("").into(), via: None, opening: self.attempts.opening, proofs }
    }

    /// Chooses how to carry out a transfer of this file.
    fn decided(&self, transfer: &Arc<Transfer>, laid: &[Option<hyperslab_plan::Laid>]) -> Result<Decision, Fault> {
        let RawFile { comm, options, held, .. } = self;
        decided(
            comm.plans(),
            &self.directory.full(self.object()),
            transfer,
            &options.preference,
            *held,
            laid,
            &Shaped::default(),
        )
    }

    fn stored_in(&self, name: &Arc<str>, array: &FileArray, offset: u64) -> Stored {
        let FileArray { shape, element, .. } = array;
        Stored::in_file(shape, *element, name.clone(), offset).ordered(self.order.of_dimensions(shape.len()))
    }

    /// Numbers of arrays of the file.
    fn numbers(&self, names: &[&str]) -> Result<Vec<usize>, Fault> {
        let laid = self.laid();
        let known: HashMap<&str, usize> = laid.arrays.iter().enumerate().map(|(i, a)| (a.name.as_str(), i)).collect();
        let number = |name: &&str| {
            known.get(name).copied().ok_or_else(|| {
                let names: Vec<&str> = laid.arrays.iter().map(|a| a.name.as_str()).collect();
                let text = format!("the file has no array '{name}', only {}", crate::zarr::listed(&names));
                Fault::new(FaultKind::NotFound, text)
            })
        };
        names.iter().map(number).collect()
    }

    /// How arrays with these numbers in the file are stored.
    fn stored(&self, numbers: &[usize]) -> Vec<Stored> {
        let (laid, name) = (self.laid(), self.object().into());
        let each = numbers.iter().map(|&number| self.stored_in(&name, &laid.arrays[number], laid.offsets[number]));
        each.collect()
    }

    /// Calls of this file use what those before them left.
    fn await_calls(&self) {
        if !self.comm.is_inside() {
            self.comm.line().drain();
        }
    }

    /// Gives a new file up after a collective call failed, of which every rank knows. Not collective.
    pub fn discard(self) {
        self.await_calls();
        self.given_up();
    }

    /// Removes a new file that was never published, on rank 0. Where nobody knows who still writes, nobody will use its name.
    fn given_up(&self) {
        if self.mode.writes_new() && self.comm.rank() == 0 && !self.comm.is_poisoned() {
            let attempts = self.attempts.clone();
            self.comm.work_later(self.attempts.at_once(1), move || drop(attempts.end()));
        }
    }

    /// Ends the use of the file. Collective. A new file is made durable and takes its name; with `fault`, an error of
    /// this rank, it is given up on all ranks instead.
    ///
    /// # Errors
    /// The same on all ranks; an older file of that name is there unchanged then.
    pub fn close(self, fault: Option<String>) -> Result<(), Error> {
        let what = format!("close '{}'", self.path().display());
        let new = self.mode.writes_new();
        let sync = new && self.options.durable;
        let fault = fault.map(|text| {
            Fault::new(FaultKind::Peer, format!("{what}: given up because of an error in the program: {text}"))
        });
        self.await_calls();
        let (empty, file) = (self.laid().arrays.is_empty(), Root::new(self.directory.full(self.object())));
        let path = self.path().display().to_string();
        let end = End { sync: sync.then_some(file), fault, ..End::of(what, "close", &path) };
        let (attempts, header, name) = (self.attempts.clone(), self.header.clone(), self.name.clone());
        let replaces = self.mode != Mode::Create;
        let work = move || {
            if !new {
                return attempts.end();
            }
            if empty {
                attempts.make_file(&header, header.len() as u64)?;
            }
            attempts.publish_file(replaces, &disk::marker(&name))
        };
        let publish =
            if self.mode.writes() { Publish::by(self.attempts.at_once_durable(1), work) } else { Publish::nothing() };
        let result = self.comm.sync_and(end, self.target, publish);
        if result.as_ref().is_err_and(|fault| fault.kind != FaultKind::Unsynced) {
            self.given_up();
        }
        Ok(result?)
    }
}

const NPY_NAME: &str = "array";
/// Longest header of an npy file that is looked for \[B\].
const NPY_HEADER_MAX: u64 = 1 << 20;

impl Mode {
    /// Whether it makes something new.
    pub const fn writes_new(self) -> bool {
        matches!(self, Mode::Write | Mode::Create)
    }
}
