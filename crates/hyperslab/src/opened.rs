//! One opening for all formats, and one handle for what is open: a group, a file, or a step of either.

use crate::arrays::Arrays;
use crate::comm::Comm;
use crate::error::Error;
use crate::file::File;
use crate::file::hdf5::Hdf5Options;
use crate::file::netcdf::NetcdfOptions;
use crate::file::step::FileStep;
use crate::format::{Format, format_of};
use crate::mode::Mode;
use crate::options::OpenOptions;
use crate::zarr::{Step, Store};
use hyperslab_format::attribute::{AttributeEdit, Attributes};
use hyperslab_world::Location;
use std::cmp::Ordering;
use std::mem::take;

/// What is open and holds arrays, of whatever format: a Zarr group, a file or a group in it, or a step of either.
///
/// Everyday verbs are those of [`Arrays`](crate::binding::Arrays), which [`Opened::arrays`] gives.
#[derive(Clone)]
pub struct Opened(What);

#[derive(Clone)]
enum What {
    Group(Store),
    Step(Step),
    File(File),
    FileStep(FileStep),
}

/// Opens something of any format on all ranks: of the one that [`OpenOptions::format`] says, or its name, or its first bytes.
/// Collective.
///
/// ```
/// use hyperslab::{Comm, Mode, OpenOptions, open};
/// # let path = std::env::temp_dir().join(format!("hyperslab-opened-{}.h5", std::process::id()));
/// let comm = Comm::alone();
/// open(&comm, &path, Mode::Write, OpenOptions::default())?.close()?;
/// assert!(open(&comm, &path, Mode::Read, OpenOptions::default())?.arrays().names()?.is_empty());
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), hyperslab::Error>(())
/// ```
///
/// # Errors
/// The same on all ranks, when the path does not fit the mode or the format, or the ranks differ.
pub fn open(comm: &Comm, place: impl Into<Location>, mode: Mode, mut options: OpenOptions) -> Result<Opened, Error> {
    let location = place.into();
    let format = format_of(comm, &location, mode, &options)?;
    // What is said of new things is not kept with what is open.
    let (mut unlimited, attributes) = (take(&mut options.unlimited), take(&mut options.attributes));
    let contents = take(&mut options.contents);
    if let Err(error) = check(format, mode, (&unlimited, &attributes, contents.is_some())) {
        let what = format!("open '{location}' (mode {})", mode.name());
        return Err(comm.attend(&what, error.into()));
    }
    Ok(Opened(match format {
        Format::Zarr => What::Group(Store::open(comm, location, mode, options)?),
        Format::Hdf5 | Format::Netcdf4 => {
            let new = Hdf5Options::default().attributes(attributes).unlimited(unlimited);
            let new = if format == Format::Netcdf4 { new.netcdf() } else { new };
            What::File(File::open_hdf5(comm, location, mode, options, new)?)
        }
        Format::Netcdf3(version) => {
            let new = NetcdfOptions { version, unlimited: unlimited.pop(), attributes };
            What::File(File::open_netcdf(comm, location, mode, options, new)?)
        }
        Format::Npy => What::File(File::open_npy(comm, location, options)?),
        Format::Raw => What::File(File::open(comm, location, mode, options, contents.unwrap_or_default())?),
    }))
}

/// Refuses what is said of something new that its format does not have.
fn check(
    format: Format,
    mode: Mode,
    (unlimited, attributes, is_laid_out): (&[String], &Attributes, bool),
) -> Result<(), Error> {
    let named = matches!(format, Format::Hdf5 | Format::Netcdf4 | Format::Netcdf3(_));
    let refused = |what: &str, of: &str, hint: &str| {
        Err(Error::invalid(format!("{what} cannot be given for {of}")).with_hint(hint))
    };
    if !named && !unlimited.is_empty() {
        return refused("unlimited dimensions", "this format", "leave them out, or open a NetCDF or HDF5 file");
    }
    if !named && !attributes.is_empty() {
        return refused(
            "attributes",
            "the opening of this format",
            "leave them out; a Zarr group takes them once it is open",
        );
    }
    if matches!(format, Format::Netcdf3(_)) && unlimited.len() > 1 {
        return refused(
            "several unlimited dimensions",
            "a NetCDF classic file",
            "give one, or the name of a netCDF-4 file",
        );
    }
    if format != Format::Raw && is_laid_out {
        return refused("a header and arrays", "a format that has its own", "leave them out, or say format 'raw'");
    }
    if format == Format::Npy && mode != Mode::Read {
        let text = "an .npy file holds one array, and is opened to be read only";
        return Err(
            Error::unsupported(text).with_hint("save the array by one call, or give the name of another format")
        );
    }
    Ok(())
}

impl Opened {
    /// Its arrays, and the verbs that all formats have.
    pub fn arrays(&self) -> &dyn Arrays {
        match &self.0 {
            What::Group(store) => store,
            What::Step(step) => &step.group,
            What::File(file) => file,
            What::FileStep(step) => &step.group,
        }
    }

    /// Whether it is a step that is being written. Local.
    pub fn is_step(&self) -> bool {
        matches!(self.0, What::Step(_) | What::FileStep(_))
    }

    /// Carries out one of two, whichever it is.
    fn either<T>(
        &self,
        of_store: impl FnOnce(&Store) -> Result<T, Error>,
        of_file: impl FnOnce(&File) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &self.0 {
            What::Group(store) => of_store(store),
            What::Step(step) => of_store(&step.group),
            What::File(file) => of_file(file),
            What::FileStep(step) => of_file(&step.group),
        }
    }

    /// Opens a group of it by its path. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when there is none.
    pub fn group(&self, name: &str) -> Result<Opened, Error> {
        let opened = self.either(|store| store.group(name).map(What::Group), |file| file.group(name).map(What::File));
        opened.map(Opened)
    }

    /// Makes a group with these attributes, and opens it. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when the name is taken, or the format has no groups.
    pub fn make_group(&self, name: &str, attributes: &Attributes, may_exist: bool) -> Result<Opened, Error> {
        let made = self.either(
            |store| store.make_group(name, attributes.clone(), may_exist).map(What::Group),
            |file| file.make_group(name, attributes.clone(), may_exist).map(What::File),
        );
        made.map(Opened)
    }

    /// Begins a step, which is visible whole when it is closed, and not before. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when the name is taken, or the format has no groups.
    pub fn step(&self, name: &str, attributes: &Attributes) -> Result<Opened, Error> {
        let begun = self.either(
            |store| store.step(name, attributes.clone(), false).map(What::Step),
            |file| file.step(name, attributes.clone(), false).map(What::FileStep),
        );
        begun.map(Opened)
    }

    /// Names of the published steps; numbers in them are in the order of their values. Local.
    ///
    /// # Errors
    /// This rank's own, when storage does not answer.
    pub fn steps(&self) -> Result<Vec<String>, Error> {
        let mut names = self.either(Store::steps, |file| Ok(file.steps()))?;
        names.sort_by(|a, b| natural(a, b));
        Ok(names)
    }

    /// The last of the published steps. Local.
    ///
    /// # Errors
    /// As [`Opened::steps`].
    pub fn latest(&self) -> Result<Option<String>, Error> {
        Ok(self.steps()?.pop())
    }

    /// Deletes all but the last so many steps, the oldest first, and gives the names of those that went. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when that is none, or ranks see other steps.
    pub fn keep(&self, count: usize) -> Result<Vec<String>, Error> {
        let comm = self.comm();
        let what = format!("keep the last steps of '{}'", self.arrays().path().display());
        let gone = self.steps().and_then(|mut names| {
            let none = || Error::invalid("to keep 0 steps would delete all").with_hint("delete each by its name");
            names.truncate(names.len().saturating_sub(count));
            if count == 0 { Err(none()) } else { Ok(names) }
        });
        comm.attending(&what, gone, |gone| {
            comm.compare(&what, vec![("steps to be deleted".into(), gone.join(", "))])?;
            gone.iter().try_for_each(|name| self.arrays().delete(name))?;
            Ok(gone)
        })
    }

    /// Attributes of it. Local.
    pub fn attributes(&self) -> Attributes {
        match &self.0 {
            // Those of a step that is not published are nowhere else.
            What::FileStep(step) => step.attributes(),
            _ => self.arrays().attributes(),
        }
    }

    /// Changes attributes of an array, or of what is open where the name is empty. Collective.
    ///
    /// # Errors
    /// The same on all ranks; nothing has changed then.
    pub fn edit_attributes(&self, name: &str, edit: &AttributeEdit) -> Result<(), Error> {
        match &self.0 {
            // Those of a step are written when it is published.
            What::Step(step) if name.is_empty() => step.edit_attributes(edit),
            What::FileStep(step) if name.is_empty() => step.edit_attributes(edit),
            _ => return self.arrays().edit_attributes(name, edit),
        }
        Ok(())
    }

    /// The ranks that opened it. Local.
    pub fn comm(&self) -> &Comm {
        match &self.0 {
            What::Group(store) => store.comm(),
            What::Step(step) => step.group.comm(),
            What::File(file) => file.comm(),
            What::FileStep(step) => step.group.comm(),
        }
    }

    /// Publishes a step or a new file, or closes what is there. Collective.
    ///
    /// # Errors
    /// The same on all ranks; nothing new is visible then.
    pub fn close(self) -> Result<(), Error> {
        match self.0 {
            What::Group(store) => store.close(),
            What::Step(step) => step.publish(),
            What::File(file) => file.close(),
            What::FileStep(step) => step.publish(),
        }
    }

    /// Takes part in closing with an error of this rank: a step or a new file is given up on all ranks. Collective: other ranks
    /// call this or [`Opened::close`]. What was written to a Zarr group is published, and stays.
    ///
    /// # Errors
    /// Always where something is given up, the same on all ranks; it holds what is said here.
    pub fn give_up(self, why: impl Into<String>) -> Result<(), Error> {
        match self.0 {
            What::Group(store) => store.close(),
            What::Step(step) => step.give_up(why),
            What::File(file) => file.give_up(why),
            What::FileStep(step) => step.give_up(why),
        }
    }
}

/// A text from a digit on, or up to one.
fn split(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|first: char| first.is_ascii_digit());
    let end = text.find(|each: char| each.is_ascii_digit() != digits).unwrap_or(text.len());
    text.split_at(end)
}

/// Names in the order of the numbers in them: `step_9` comes before `step_10`.
fn natural(a: &str, b: &str) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.cmp(b);
    }
    let ((first, a), (other, b)) = (split(a), split(b));
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let by_value = || {
        let [first, other] = [first, other].map(|digits| digits.trim_start_matches('0'));
        first.len().cmp(&other.len()).then(first.cmp(other))
    };
    let order = if is_number(first) && is_number(other) { by_value() } else { Ordering::Equal };
    order.then_with(|| first.cmp(other)).then_with(|| natural(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn numbers_in_names_are_in_order() {
        let mut names = ["10", "9", "step_10", "step_9", "step_09", "a", "step", "99999999999999999999999", "step_9b"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            ["9", "10", "99999999999999999999999", "a", "step", "step_09", "step_9", "step_9b", "step_10"]
        );
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("hyperslab-opened-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn opened(comm: &Comm, path: &Path, mode: Mode) -> Result<Opened, Error> {
        open(comm, path, mode, OpenOptions::default())
    }

    /// Of two ranks, each of which opens it.
    fn on_two(run: impl Fn(&Comm) + Send + Sync) {
        std::thread::scope(|scope| {
            for comm in Comm::threads(2) {
                let run = &run;
                scope.spawn(move || run(&comm));
            }
        });
    }

    #[test]
    fn a_file_is_known_by_its_first_bytes() {
        let folder = folder("bytes");
        on_two(|comm| {
            for (named, bare) in [("a.h5", "hdf5"), ("a.nc", "classic"), ("a.nc4", "four"), ("a.zarr", "group")] {
                opened(comm, &folder.join(named), Mode::Write).unwrap().close().unwrap();
                if comm.rank() == 0 {
                    fs::rename(folder.join(named), folder.join(bare)).unwrap();
                }
                comm.compare("renamed", Vec::new()).unwrap();
                let found = opened(comm, &folder.join(bare), Mode::Update).unwrap();
                assert_eq!(matches!(found.0, What::Group(_)), bare == "group");
                found.close().unwrap();
            }
            // What is made has no first bytes, and a name that says nothing is that of a group.
            let made = opened(comm, &folder.join("new"), Mode::UpdateOrCreate).unwrap();
            assert!(matches!(made.0, What::Group(_)));
            made.close().unwrap();
        });
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_a_format_does_not_have_is_refused_on_all_ranks() {
        let folder = folder("refused");
        on_two(|comm| {
            let path = folder.join("a.zarr");
            // Another rank says nothing of dimensions.
            let unlimited = if comm.rank() == 0 { vec!["time".into()] } else { Vec::new() };
            let options = OpenOptions::default().unlimited(unlimited);
            let error = open(comm, &path, Mode::Write, options).err().unwrap();
            assert!(error.message().contains("unlimited dimensions cannot be given for this format"), "{error}");
            let error = opened(comm, &folder.join("a.zip"), Mode::Write).err().unwrap();
            assert!(error.is_unsupported() && error.message().contains("archives"), "{error}");
            let error = opened(comm, &folder.join("a.npy"), Mode::Write).err().unwrap();
            assert!(error.is_unsupported() && error.hint().contains("one call"), "{error}");
        });
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_last_steps_are_kept() {
        let folder = folder("steps");
        on_two(|comm| {
            for name in ["a.zarr", "a.h5"] {
                let file = opened(comm, &folder.join(name), Mode::Write).unwrap();
                for step in ["s9", "s10", "s11"] {
                    file.step(step, &Attributes::new()).unwrap().close().unwrap();
                }
                assert_eq!(file.keep(2).unwrap(), ["s9"]);
                assert_eq!(file.steps().unwrap(), ["s10", "s11"]);
                assert_eq!(file.latest().unwrap().as_deref(), Some("s11"));
                assert!(file.keep(0).unwrap_err().is_invalid());
                let given_up = file.step("s12", &Attributes::new()).unwrap().give_up("no time").unwrap_err();
                assert!(given_up.is_peer() && given_up.message().contains("no time"), "{given_up}");
                assert_eq!(file.steps().unwrap(), ["s10", "s11"]);
                file.close().unwrap();
            }
        });
        fs::remove_dir_all(folder).unwrap();
    }
}
