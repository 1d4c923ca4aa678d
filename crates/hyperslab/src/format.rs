//! Which format something is of: as the caller says, by its name, or by the first bytes of what is there.

use crate::comm::Comm;
use crate::error::Error;
use crate::mode::Mode;
use crate::options::OpenOptions;
use crate::said::quoted;
use hyperslab_format::netcdf::Version;
use hyperslab_walk::Question;
use hyperslab_world::Location;

/// A format of what [`open`](crate::open) opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A Zarr group: a directory, or what lies below a key of an object store.
    Zarr,
    /// NetCDF classic; of a new file this version, or what fits.
    Netcdf3(Option<Version>),
    /// HDF5.
    Hdf5,
    /// netCDF-4, which is HDF5 with its own conventions.
    Netcdf4,
    /// One array of NumPy's, to be read.
    Npy,
    /// Arrays one after another, of which the caller says what they are.
    Raw,
}

/// How a format is told from others.
struct Told {
    format: Format,
    name: &'static str,
    /// How names end that are of it.
    ends: &'static [&'static str],
    /// What its files begin with.
    begins: &'static [&'static [u8]],
}

const TOLD: [Told; 6] = [
    Told { format: Format::Zarr, name: "zarr", ends: &[".zarr"], begins: &[] },
    Told {
        format: Format::Netcdf3(None),
        name: "netcdf3",
        ends: &[".nc", ".nc3", ".cdf"],
        begins: &[b"CDF\x01", b"CDF\x02", b"CDF\x05"],
    },
    Told {
        format: Format::Hdf5,
        name: "hdf5",
        ends: &[".h5", ".hdf5", ".hdf", ".he5"],
        begins: &[b"\x89HDF\r\n\x1a\n"],
    },
    Told { format: Format::Netcdf4, name: "netcdf4", ends: &[".nc4"], begins: &[] },
    Told { format: Format::Npy, name: "npy", ends: &[".npy"], begins: &[b"\x93NUMPY"] },
    Told { format: Format::Raw, name: "raw", ends: &[".raw", ".bin", ".dat"], begins: &[] },
];

/// Ends of names that promise what cannot be written in parallel.
const ARCHIVES: [&str; 2] = [".zip", ".npz"];

/// As many bytes tell.
const BEGINNING_BYTES: u64 = 8;
/// In front of them, that there is a file.
const IS_FILE: u8 = 1;

impl Format {
    /// The format with this name: `zarr`, `netcdf3`, `hdf5`, `netcdf4`, `npy` or `raw`, or what netCDF4-python calls a version
    /// of NetCDF.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Format, Error> {
        let known = TOLD.iter().find(|told| told.name == name).map(|told| told.format);
        let version = || Version::named(name).map(|version| Format::Netcdf3(Some(version)));
        let netcdf4 = || (name == "NETCDF4").then_some(Format::Netcdf4);
        known.or_else(version).or_else(netcdf4).ok_or_else(|| {
            let names: Vec<String> = TOLD.iter().map(|told| quoted(told.name)).collect();
            Error::invalid(format!("there is no format '{name}'"))
                .with_hint(format!("choose among {}", names.join(", ")))
        })
    }

    /// The format that a name promises.
    pub fn of_name(name: &str) -> Option<Format> {
        let lower = name.trim_end_matches('/').to_lowercase();
        let promises = |told: &&Told| told.ends.iter().any(|end| lower.ends_with(end));
        TOLD.iter().find(promises).map(|told| told.format)
    }

    /// The format of a file that begins with these bytes.
    pub fn of_beginning(bytes: &[u8]) -> Option<Format> {
        let begins = |told: &&Told| told.begins.iter().any(|begin| bytes.starts_with(begin));
        TOLD.iter().find(begins).map(|told| told.format)
    }
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
pub(crate) fn format_of(comm: &Comm, location: &Location, mode: Mode, options: &OpenOptions) -> Result<Format, Error> {
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
        let begins = names.length("").map(|_| names.read_prefix("", BEGINNING_BYTES)).transpose()?.flatten();
        Ok(begins.map_or(Vec::new(), |bytes| [vec![IS_FILE], bytes].concat()))
    })?;
    Ok(told.strip_prefix(&[IS_FILE]).map(<[u8]>::to_vec))
}

/// Why something of this name is not made.
fn archived(end: &str) -> Error {
    Error::unsupported(format!("names that end in {end} are of archives, which cannot be written in parallel"))
        .with_hint("give another name; or say format 'zarr', if it is a store all the same")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_beginnings_tell() {
        assert_eq!(Format::of_name("/a.nc/run.H5"), Some(Format::Hdf5));
        assert_eq!(Format::of_name("run.zarr/"), Some(Format::Zarr));
        assert_eq!(Format::of_name("a.h5/run"), None);
        assert_eq!(Format::of_beginning(b"CDF\x05rest"), Some(Format::Netcdf3(None)));
        assert_eq!(Format::of_beginning(b"CDF\x04"), None);
        assert_eq!(Format::of_beginning(b""), None);
        assert_eq!(Format::named("NETCDF3_CLASSIC").unwrap(), Format::Netcdf3(Some(Version::Classic)));
        let error = Format::named("grib").unwrap_err();
        assert_eq!(error.message(), "there is no format 'grib'");
        assert!(error.hint().starts_with("choose among 'zarr', 'netcdf3'"));
    }
}
