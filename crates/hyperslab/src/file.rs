//! One file with several arrays in it, of whatever format: raw files with a header of the user's own, `.npy` files, NetCDF.
//! Formats differ in what the file says of its arrays and where they lie, which is their [`Form`].

mod arranging;
mod copying;
mod disk;
mod edit;
mod editing;
mod form;
pub(crate) mod hdf5;
mod looking;
pub(crate) mod netcdf;
mod phase;
mod policy;
mod publication;
mod putting;
mod reading;
mod requests;
pub(crate) mod step;
mod texts;
mod twice;
mod writing;

use crate::alone::Alone;
use crate::apart::RankMounts;
use crate::array_write::{ArrayWrite, completed};
use crate::comm::Comm;
use crate::contents::{Contents, FileArray};
use crate::error::{Error, format_fault};
use crate::left::{self, Unpublished};
use crate::line::new_target;
use crate::mode::Mode;
use crate::options::{OpenOptions, WriteOptions, as_bytes, preferred};
use crate::planning::{Shaped, Whereabouts, decided, decided_again};
use crate::said::{quoted, truth};
use crate::selection::Sections;
use crate::unfinished::Unfinished;
use disk::{FoundFile, Heard, SeenFile, look_at_npy, look_at_raw, open_file};
use form::{Form, Lasting, Raw};
pub use form::{StoredUnits, Unread};
use hyperslab_collective::attempts::Attempts;
use hyperslab_collective::{Decision, Report};
use hyperslab_format::attribute::Attributes;
use hyperslab_format::npy::NpyHeader;
use hyperslab_format::raw::Order;
use hyperslab_layout::ElementType;
use hyperslab_layout::tuple;
use hyperslab_plan::{Stored, Transfer};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Location, Lock, Names, Proof, Root};
use phase::{FilePhase, PhaseNow};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names of arrays, with shape and type where they are not those of the array before: of hundreds nearly all are alike.
fn enumerated(arrays: &[FileArray]) -> String {
    let mut text = String::new();
    for (number, array) in arrays.iter().enumerate() {
        let FileArray { name, shape, element } = array;
        text += if number > 0 { "; " } else { "" };
        let _ = write!(text, "'{name}'");
        let before = number.checked_sub(1).map(|before| &arrays[before]);
        if before.is_none_or(|before| (&before.shape, before.element) != (shape, *element)) {
            let _ = write!(text, " {shape} {element}", shape = tuple(shape));
        }
    }
    text
}

/// An open file of arrays.
///
/// A new file is written under a hidden name beside its own. It takes its name, replacing an older file, with its first step or
/// [`File::flush`], or when it is closed; until then, and after a crash, the older file is there unchanged. From then on, what is
/// published stays, whatever becomes of the program. A file open for update is changed in place, with a marker file beside it
/// while a write is under way. A [`Striped`](crate::Striped) file takes its name in
/// one directory after another, of which the first decides: after a crash between them, whoever opens the file next
/// completes it, and who has it open for reading meanwhile may see some parts old and some new.
#[derive(Clone)]
pub struct File {
    comm: Comm,
    /// Tells its requests from those of others.
    target: u64,
    /// Bytes of the buffers' budget that copies of arrays have \[B\].
    held: u64,
    /// Names in the directory that holds the file.
    directory: Arc<dyn Names>,
    name: String,
    /// The group of the file that is open, with a `/` at its end; empty for all of it.
    within: String,
    /// The name of a new file until it is first published.
    hidden: String,
    /// Whether it lies on a disk or in memory of rank 0's host.
    at_hand: bool,
    /// What it writes and has not published; only rank 0 makes anything of it.
    attempts: Arc<Attempts>,
    /// What all ranks must see of an existing file.
    proofs: Vec<Proof>,
    mode: Mode,
    /// How far it has come to be seen.
    phase: Arc<PhaseNow>,
    options: OpenOptions,
    /// Shared with the calls that the line carries out.
    inside: Arc<Mutex<Contained>>,
    /// What an earlier run left unpublished and this one removed.
    removed: Vec<String>,
    /// The file, if an update of it in place did not end; and what is left of owners who may be alive.
    unfinished: Unfinished,
    /// Records that are not believed.
    passed_over: Vec<String>,
    /// This rank's own way to read it.
    alone: Alone,
    /// How ranks see it.
    mounts: RankMounts,
    /// Number of the last request of this rank that writes to it.
    last_write: Arc<AtomicU64>,
    /// On rank 0, the lock on the file itself that libraries of its format honour, where it has one.
    own_lock: OwnLock,
    /// Of a new file, that it is not published yet.
    unpublished: Option<Unpublished>,
}

/// A lock that is kept, if there is one.
type OwnLock = Arc<Mutex<Option<Box<dyn Lock>>>>;

/// What is in a file, as far as it is known.
struct Contained {
    form: Box<dyn Form>,
    /// Of each, the number of the request that added it: it is shown once all ranks know that that is over.
    added: Vec<u64>,
    /// On rank 0, what a new file begins with that was made already, and how long it is \[B\].
    begun: Option<(Vec<u8>, u64)>,
    /// Whether anything was changed since it was last published.
    changed: bool,
    /// What is seen begins so, of a file that was hidden again, where that lasts.
    shown: Option<Vec<u8>>,
    /// On rank 0, what was seen when the hidden file was made as a copy of it.
    copied: Option<String>,
    /// On rank 0, where all lies in order behind the end of a file that is being arranged \[B\], and whether all does.
    aside: Option<(u64, bool)>,
    /// How many arrays of a new file are seen.
    seen: usize,
}

/// What is asked of an opening, what ranks compare of it, and what this rank found wrong with it.
type ToOpen = (String, Vec<(String, String)>, Result<(), Fault>);

impl File {
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
    ) -> Result<File, Error> {
        let location = location.into();
        let what = format!("open raw file '{location}' (mode {})", mode.name());
        File::open_raw(comm, location, what, (mode, options), contents, Ok(()))
    }

    /// As [`File::open`], for a caller that may have found a fault before; all ranks hear of it.
    fn open_raw(
        comm: &Comm,
        location: Location,
        what: String,
        (mode, options): (Mode, OpenOptions),
        contents: Contents,
        found: Result<(), Fault>,
    ) -> Result<File, Error> {
        let Contents { order, header, header_bytes, arrays } = contents;
        let header = if mode.writes_new() { header } else { Vec::new() };
        let fields = vec![
            ("order".to_string(), if order == Order::RowMajor { "'C'" } else { "'F'" }.into()),
            ("header".into(), if mode.writes_new() { as_bytes(&header) } else { format!("{header_bytes} B") }),
            ("arrays of the file".into(), enumerated(&arrays)),
        ];
        let found = found.and_then(|()| match mode {
            Mode::UpdateOrCreate => {
                let text = "mode a cannot tell what a raw file holds";
                Err(Fault::new(FaultKind::Invalid, text)
                    .hint("open one that is there with mode 'r+'; make one with 'w' or 'x'"))
            }
            _ => Ok(()),
        });
        let laid_out = found.and_then(|()| Raw::new(header, header_bytes, order, arrays));
        let (raw, fit) = match laid_out {
            Ok(raw) => (raw, Ok(())),
            Err(fault) => (Raw::empty(order), Err(fault.context(&what))),
        };
        let end = raw.extent().bytes;
        let look =
            move |directory: &dyn Names, name: &str, actual| look_at_raw(directory, name, actual, (header_bytes, end));
        File::open_as(comm, location, (mode, options), (what, fields, fit), look, move |told| {
            Ok(Box::new(if mode.writes_new() { raw } else { raw.behind(told) }))
        })
    }

    /// Opens an existing `.npy` file on all ranks.
    ///
    /// # Errors
    /// As [`File::open`], and when its header is none.
    pub fn open_npy(comm: &Comm, location: impl Into<Location>, options: OpenOptions) -> Result<File, Error> {
        let location = location.into();
        let path = location.to_string();
        let asked = (format!("open '{path}'"), Vec::new(), Ok(()));
        File::open_as(comm, location, (Mode::Read, options), asked, look_at_npy, move |told| {
            let (header, _) = NpyHeader::parse(told, &path).map_err(format_fault)?;
            let order = header.order();
            let array = FileArray { name: NPY_NAME.into(), shape: header.shape, element: header.element };
            Ok(Box::new(Raw::new(told.to_vec(), 0, order, vec![array])?))
        })
    }

    /// Writes a whole new `.npy` file; the name of the array does not matter. Collective.
    ///
    /// # Errors
    /// The same on all ranks; an older file of that name is there unchanged then.
    pub fn save_npy(
        comm: &Comm,
        location: impl Into<Location>,
        array: ArrayWrite,
        order: Order,
        opening: OpenOptions,
        writing: &WriteOptions,
    ) -> Result<Report, Error> {
        let location = location.into();
        let (mut asks, unfit) = completed(vec![ArrayWrite { name: NPY_NAME.into(), ..array }], comm.size());
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
            let contents = Contents { order, header, ..Contents::default() };
            let fit = unfit.or(untyped).map_or(fit, Err);
            let what = format!("save '{location}'");
            File::open_raw(comm, location, what, (Mode::Write, opening), contents, fit)?
        };
        let options = WriteOptions { section: Sections::Whole, element: Some(element), ..writing.clone() };
        match file.write(&std::mem::take(&mut asks), &options) {
            Ok(report) => file.close().map(|()| report),
            Err(error) => {
                // What was begun goes away, on all ranks alike; the error to show is that of the write.
                let _ = file.give_up(error.message());
                Err(error)
            }
        }
    }

    /// The mode that is meant: whether a file is made or changed that may be there, rank 0 finds out.
    fn mode_found(comm: &Comm, location: &Location, mode: Mode, options: &OpenOptions) -> Result<Mode, Error> {
        if mode != Mode::UpdateOrCreate {
            return Ok(mode);
        }
        comm.set_limits(options.limits());
        let names = comm.names_for(location, mode.writes());
        let fields = vec![("path".to_string(), quoted(location)), ("mode".into(), quoted(mode.name()))];
        let question = Question::opening(format!("open '{location}'"), fields, names.as_ref().err().cloned());
        let at = names.as_ref().ok().cloned();
        let told = comm.agree_on_opening(question, at, false, |names, _| Ok(vec![u8::from(names.exists(""))]))?;
        Ok(if told == [1] { Mode::Update } else { Mode::Create })
    }

    /// Opens a file of some format: rank 0 looks at one that exists, and all make the same of what it tells.
    fn open_as(
        comm: &Comm,
        location: Location,
        (mode, options): (Mode, OpenOptions),
        (what, fields, fit): ToOpen,
        look: impl Fn(&dyn Names, &str, u64) -> Result<SeenFile, Fault> + Send + 'static,
        form: impl FnOnce(&[u8]) -> Result<Box<dyn Form>, Fault>,
    ) -> Result<File, Error> {
        comm.set_limits(options.limits());
        let names = comm.names_for(&location, mode.writes());
        let fault = fit.err().or_else(|| names.as_ref().err().cloned());
        let question = Question::opening(what.clone(), all_compared(fields, &location, mode, &options), fault);
        let (at, kept) = (names.as_ref().ok().cloned(), Arc::<Mutex<Option<FoundFile>>>::default());
        let (keep, durable) = (kept.clone(), options.durable);
        let told = comm.agree_on_opening(question, at, false, move |names, at_hand| {
            let opened = open_file(names, (mode, durable), at_hand, look).map_err(|fault| fault.context(&what))?;
            let told = opened.told();
            *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
            Ok(told)
        })?;
        let heard = Heard::of(&*names?, &told)?;
        let form = form(&heard.header)?;
        let mounts = comm.compare_mounts(heard.mount, &heard.home, mode.writes())?;
        let mine = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (directory, name) = (heard.home.names.clone(), heard.home.base.clone());
        let others = || Attempts::new(heard.home, heard.opening, false, options.durable, None);
        let attempts = mine.map_or_else(|| Arc::new(others()), |opened| opened.attempts);
        comm.watch(&attempts);
        let phase = Arc::new(PhaseNow::of_mode(mode.writes_new()));
        let inside = Arc::new(Mutex::new(Contained::of(form)));
        let tells = mode.writes_new() && comm.works_here();
        let left = || left_of_new((&attempts, &directory), (&name, &heard.hidden), (phase.clone(), inside.clone()));
        let unpublished = tells.then(left);
        Ok(File {
            comm: comm.clone(),
            target: new_target(),
            held: 0,
            directory,
            name,
            within: String::new(),
            hidden: heard.hidden,
            at_hand: heard.at_hand,
            attempts,
            proofs: heard.proofs,
            mode,
            phase,
            options,
            inside,
            removed: heard.found.removed,
            unfinished: Unfinished::new(heard.found.unfinished),
            passed_over: heard.found.passed_over,
            alone: Alone::new(location),
            mounts,
            last_write: Arc::default(),
            own_lock: OwnLock::default(),
            unpublished,
        })
    }

    /// The ranks that opened it. Local.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// The bytes before the first array.
    pub fn header(&self) -> Vec<u8> {
        self.inside().form.beginning()
    }

    fn inside(&self) -> MutexGuard<'_, Contained> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The arrays, in the order of the file; of requests, those that the user has waited for, or that a call that blocks has.
    /// Local.
    pub fn arrays(&self) -> Vec<FileArray> {
        let inside = self.inside();
        let of = |(number, name)| FileArray { name, ..inside.form.array(number).into_owned() };
        self.shown(&inside).into_iter().map(of).collect()
    }

    /// Numbers of the arrays that are shown, and what they are called in this group.
    fn shown(&self, inside: &Contained) -> Vec<(usize, String)> {
        let settled = self.comm.line().settled();
        let names = inside.form.names_in(&self.within).into_iter();
        let seen = names.filter(|(number, _)| self.shows(inside, *number, settled));
        seen.filter_map(|(number, name)| Some((number, name.strip_prefix(&self.within)?.to_string()))).collect()
    }

    /// Whether an array is shown, where so many requests are known to be over.
    fn shows(&self, inside: &Contained, number: usize, settled: u64) -> bool {
        let is_seen = |step: &str| self.within.strip_prefix(step).is_some_and(|rest| rest.starts_with('/'));
        inside.added.get(number).is_some_and(|added| *added <= settled)
            && inside.form.hidden_in(number).is_none_or(is_seen)
    }

    /// Attributes of the file, or of the group of it that is open, where the format has any. Local.
    pub fn attributes(&self) -> Attributes {
        let inside = self.inside();
        match self.within.strip_suffix('/') {
            Some(group) => inside.form.group_attributes(group),
            None => inside.form.attributes(),
        }
    }

    /// The name of the file, if one that a dead owner left unpublished was removed.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// The name of the file, if an update in place began and did not end: its bytes may be old or new. Besides, what is left
    /// of owners who may be alive; and arrays that have fewer rows than others, where this opening began a record.
    pub fn unfinished(&self) -> Vec<String> {
        let mut all = self.unfinished.list();
        if self.mode.writes() {
            let inside = self.inside();
            let behind = inside.form.behind().into_iter().map(|number| inside.form.array(number).name.clone());
            all.extend(behind.filter_map(|name| Some(name.strip_prefix(&self.within)?.to_string())));
        }
        all
    }

    /// Records beside the file that are not believed, since others made them who may not change it, or that cannot be read; each
    /// with the reason.
    pub fn passed_over(&self) -> &[String] {
        &self.passed_over
    }

    /// Absolute name of the file once it is published, and of the group of it that is open; a path, where it is one file in a
    /// directory.
    pub fn path(&self) -> PathBuf {
        let path = self.directory.full(&self.name);
        if self.within.is_empty() { path.into() } else { format!("{path}/{}", self.in_file("")).into() }
    }

    /// The name of the file that is written or read, in its directory.
    fn object(&self) -> &str {
        if self.is_hidden() { &self.hidden } else { &self.name }
    }

    /// Where the file's bytes lie, for a transfer with these proofs.
    fn root(&self, proofs: Vec<Proof>) -> Root {
        // Parts of a striped file have paths of their own; one that is not there is missed by whoever looks for it.
        let proofs = if self.directory.is_plain() { proofs } else { Vec::new() };
        Root { opening: self.attempts.opening, proofs, ..Root::new(self.directory.full("")) }
    }

    /// What other ranks must see of a file that exists, too.
    fn proofs(&self) -> Vec<Proof> {
        let form = &self.inside().form;
        let stretch = form.lasting().map(|Lasting { from, to, fingerprint }| {
            Proof::Stretch(self.directory.full(&self.name).into(), (from, to), fingerprint)
        });
        self.proofs.iter().cloned().chain(stretch).collect()
    }

    /// Chooses how to carry out a transfer of this file.
    fn decided(
        &self,
        transfer: &Arc<Transfer>,
        laid: &[Option<hyperslab_plan::MemoryLayout>],
    ) -> Result<Decision, Fault> {
        let File { comm, options, held, .. } = self;
        decided(comm.plans(), self.whereabouts(), transfer, &options.preference, *held, laid, &Shaped::default())
    }

    /// The same where it did so before.
    fn decided_again(&self, before: &Decision, laid: &[Option<hyperslab_plan::MemoryLayout>]) -> Option<Decision> {
        decided_again(self.comm.plans(), self.whereabouts(), before, &self.options.preference, laid)
    }

    fn whereabouts(&self) -> Whereabouts<'_> {
        Whereabouts { names: &*self.directory, name: self.object(), mounts: &self.mounts }
    }

    /// Numbers of arrays of the file.
    fn numbers(&self, names: &[&str]) -> Result<Vec<usize>, Fault> {
        let inside = self.inside();
        let found = inside.form.numbers_of(&self.paths(names));
        let number = |(number, name): (Option<usize>, &&str)| {
            number.ok_or_else(|| {
                let all = inside.form.names_in(&self.within);
                let here: Vec<&str> = all.iter().filter_map(|(_, name)| name.strip_prefix(&*self.within)).collect();
                looking::missing(&*inside.form, &self.path(), name, &here)
            })
        };
        found.into_iter().zip(names).map(number).collect()
    }

    /// How arrays with these numbers in the file are stored.
    fn stored(&self, numbers: &[usize]) -> Vec<Stored> {
        self.inside().form.stored(numbers, &self.object().into())
    }

    /// Calls of this file use what those before them left.
    fn await_calls(&self) {
        if !self.comm.is_inside() {
            self.comm.line().drain();
        }
    }

    /// Nothing is left to tell of: the file is closed, or was given up.
    fn is_over(&self) {
        if let Some(unpublished) = self.unpublished.as_ref().filter(|_| self.within.is_empty()) {
            unpublished.end();
        }
    }

    /// Gives up what was not published of a new file after a collective call failed, of which every rank knows. Not collective.
    pub fn discard(self) {
        self.await_calls();
        self.given_up();
    }

    /// Ends the use of the file. Collective. A new file is made durable and takes its name, if it has not got it yet. A group of a file ends with its
    /// requests.
    ///
    /// # Errors
    /// The same on all ranks; an older file of that name is there unchanged then.
    pub fn close(self) -> Result<(), Error> {
        if !self.within.is_empty() {
            return self.settle();
        }
        if let Err(error) = self.arrange() {
            self.given_up();
            return Err(error);
        }
        self.finish(None)
    }

    /// Takes part in closing with an error of this rank: what was not published of a new file is given up on all ranks. Collective: other ranks call
    /// this or [`File::close`].
    ///
    /// # Errors
    /// Always, the same on all ranks; it holds what is said here.
    pub fn give_up(self, why: impl Into<String>) -> Result<(), Error> {
        if !self.within.is_empty() {
            // Only the file itself can be given up, or a step.
            return self.settle();
        }
        self.finish(Some(why.into()))
    }
}

/// What is to be told of a new file as long as something of it is not seen.
fn left_of_new(
    of: (&Arc<Attempts>, &Arc<dyn Names>),
    names: (&str, &str),
    (phase, inside): (Arc<PhaseNow>, Arc<Mutex<Contained>>),
) -> Unpublished {
    left::new_file(of, names, move || unseen(&phase, &inside))
}

/// Whether something was written that is seen only when the file is published: then, whether readers see an earlier state.
fn unseen(phase: &PhaseNow, inside: &Mutex<Contained>) -> Option<bool> {
    match phase.get() {
        FilePhase::Hidden => Some(phase.was_shown()),
        FilePhase::Gathering => inside.lock().unwrap_or_else(PoisonError::into_inner).changed.then_some(true),
        FilePhase::There => None,
    }
}

/// What ranks compare of an opening, with what its format adds.
fn all_compared(
    mut fields: Vec<(String, String)>,
    location: &Location,
    mode: Mode,
    options: &OpenOptions,
) -> Vec<(String, String)> {
    fields.extend([
        ("path".to_string(), quoted(location)),
        ("mode".into(), quoted(mode.name())),
        ("durable".into(), truth(options.durable).into()),
        ("options".into(), preferred(&options.preference)),
    ]);
    fields
}

const NPY_NAME: &str = "array";
