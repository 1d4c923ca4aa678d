//! One opening for all formats: which it is, and what it is opened with.

use crate::comm::Comm;
use crate::error::Error;
use crate::file::File;
use crate::file::hdf5::Hdf5Options;
use crate::file::netcdf::NetcdfOptions;
use crate::format::Format;
use crate::mode::Mode;
use crate::opened::Opened;
use crate::options::OpenOptions;
use crate::said::quoted;
use crate::zarr::Store;
use hyperslab_format::attribute::Attributes;
use hyperslab_walk::Question;
use hyperslab_world::Location;
use std::mem::take;

/// Ends of names that promise what cannot be written in parallel.
const ARCHIVES: [&str; 2] = [".zip", ".npz"];

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
    match format {
        Format::Zarr => Store::open(comm, location, mode, options).map(Opened::from),
        Format::Hdf5 | Format::Netcdf4 | Format::Netcdf4Classic => {
            let new = Hdf5Options::default().attributes(attributes).unlimited(unlimited);
            let new = match format {
                Format::Netcdf4 => new.netcdf(),
                Format::Netcdf4Classic => new.netcdf_classic(),
                _ => new,
            };
            File::open_hdf5(comm, location, mode, options, new).map(Opened::from)
        }
        Format::Netcdf3(version) => {
            let new = NetcdfOptions { version, unlimited: unlimited.pop(), attributes };
            File::open_netcdf(comm, location, mode, options, new).map(Opened::from)
        }
        Format::Npy => File::open_npy(comm, location, options).map(Opened::from),
        Format::Raw => File::open(comm, location, mode, options, contents.unwrap_or_default()).map(Opened::from),
    }
}

/// Refuses what is said of something new that its format does not have.
fn check(
    format: Format,
    mode: Mode,
    (unlimited, attributes, is_laid_out): (&[String], &Attributes, bool),
) -> Result<(), Error> {
    let named = !matches!(format, Format::Zarr | Format::Npy | Format::Raw);
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

/// The name of something, without the directories of its path.
fn name_of(location: &Location) -> String {
    match location {
        Location::Striped(striped) => striped.name.clone(),
        location => location.to_string(),
    }
}

/// The format of what is opened. Where only what is there can tell, rank 0 looks, and all ranks are told; then this is
/// collective.
///
/// # Errors
/// The same on all ranks, when storage does not answer, or the name is that of an archive.
pub fn format_of(comm: &Comm, location: &Location, mode: Mode, options: &OpenOptions) -> Result<Format, Error> {
    if let Some(format) = options.format.or(options.contents.as_ref().map(|_| Format::Raw)) {
        return Ok(format);
    }
    let by_name = Format::of_name(&name_of(location));
    // That of raw files is that of many others, too.
    if let Some(format) = by_name.filter(|format| *format != Format::Raw || mode.writes_new()) {
        return Ok(format);
    }
    let what = format!("open '{location}' (mode {})", mode.name());
    let beginning = if mode.writes_new() { None } else { beginning(comm, location, mode, &what, options)? };
    let (name, is_file) = (name_of(location).to_lowercase(), beginning.is_some());
    let archive = ARCHIVES.iter().find(|end| name.ends_with(**end)).filter(|_| mode != Mode::Read && !is_file);
    let known = beginning.as_deref().and_then(Format::of_beginning).or(by_name);
    comm.attending(&what, archive.map_or(Ok(()), |end| Err(archived(end))), |()| Ok(known.unwrap_or(Format::Zarr)))
}

/// The first bytes of the file that is there, if one is, as rank 0 reads them.
fn beginning(
    comm: &Comm,
    location: &Location,
    mode: Mode,
    what: &str,
    options: &OpenOptions,
) -> Result<Option<Vec<u8>>, Error> {
    comm.set_limits(options.limits());
    let names = comm.names_for(location, mode.writes());
    let fault = names.as_ref().err().map(|fault| fault.clone().context(what));
    let fields = vec![("path".to_string(), quoted(location)), ("mode".into(), quoted(mode.name()))];
    let question = Question::opening(what, fields, fault);
    let told = comm.agree_on_opening(question, names.ok(), false, |names, _| {
        // A directory has no length.
        let begins = names.length("").map(|_| names.read_prefix("", Format::beginning_bytes())).transpose()?.flatten();
        Ok(begins.map_or(Vec::new(), |bytes| [vec![b'f'], bytes].concat()))
    })?;
    Ok(told.strip_prefix(b"f").map(<[u8]>::to_vec))
}

/// Why something of this name is not made.
fn archived(end: &str) -> Error {
    Error::unsupported(format!("names that end in {end} are of archives, which cannot be written in parallel"))
        .with_hint("give another name; or say format 'zarr', if it is a store all the same")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

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
                assert_eq!(found.is_file(), bare != "group");
                found.close().unwrap();
            }
            // What is made has no first bytes, and a name that says nothing is that of a group.
            let made = opened(comm, &folder.join("new"), Mode::UpdateOrCreate).unwrap();
            assert!(!made.is_file());
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
