//! Which format something is of: as the caller says, by its name, or by the first bytes of what is there.

use crate::error::Error;
use crate::said::quoted;
use hyperslab_format::netcdf::Version;

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
    /// netCDF-4 that keeps to the classic model: types and dimensions of NetCDF classic only.
    Netcdf4Classic,
    /// One array of NumPy's, to be read.
    Npy,
    /// Arrays one after another, of which the caller says what they are.
    Raw,
}

/// How a format is told from others.
struct FormatSigns {
    format: Format,
    name: &'static str,
    /// How names end that are of it.
    ends: &'static [&'static str],
    /// What its files begin with.
    begins: &'static [&'static [u8]],
}

const FORMATS: [FormatSigns; 7] = [
    FormatSigns { format: Format::Zarr, name: "zarr", ends: &[".zarr"], begins: &[] },
    FormatSigns {
        format: Format::Netcdf3(None),
        name: "netcdf3",
        ends: &[".nc", ".nc3", ".cdf"],
        begins: &[b"CDF\x01", b"CDF\x02", b"CDF\x05"],
    },
    FormatSigns {
        format: Format::Hdf5,
        name: "hdf5",
        ends: &[".h5", ".hdf5", ".hdf", ".he5"],
        begins: &[b"\x89HDF\r\n\x1a\n"],
    },
    FormatSigns { format: Format::Netcdf4, name: "netcdf4", ends: &[".nc4"], begins: &[] },
    FormatSigns { format: Format::Netcdf4Classic, name: "netcdf4_classic", ends: &[], begins: &[] },
    FormatSigns { format: Format::Npy, name: "npy", ends: &[".npy"], begins: &[b"\x93NUMPY"] },
    FormatSigns { format: Format::Raw, name: "raw", ends: &[".raw", ".bin", ".dat"], begins: &[] },
];

impl Format {
    /// The format with this name: `zarr`, `netcdf3`, `hdf5`, `netcdf4`, `netcdf4_classic`, `npy` or `raw`, or what netCDF4-python
    /// calls a version of NetCDF.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Format, Error> {
        let known = FORMATS.iter().find(|signs| signs.name == name).map(|signs| signs.format);
        let version = || Version::named(name).map(|version| Format::Netcdf3(Some(version)));
        let netcdf4 = || match name {
            "NETCDF4" => Some(Format::Netcdf4),
            "NETCDF4_CLASSIC" => Some(Format::Netcdf4Classic),
            _ => None,
        };
        known.or_else(version).or_else(netcdf4).ok_or_else(|| {
            let names: Vec<String> = FORMATS.iter().map(|signs| quoted(signs.name)).collect();
            Error::invalid(format!("there is no format '{name}'"))
                .with_hint(format!("choose among {}", names.join(", ")))
        })
    }

    /// Its name; of all versions of NetCDF classic the same one.
    pub fn name(self) -> &'static str {
        let is_same = |signs: &&FormatSigns| std::mem::discriminant(&signs.format) == std::mem::discriminant(&self);
        FORMATS.iter().find(is_same).map_or("", |signs| signs.name)
    }

    /// The format that a name promises.
    pub fn of_name(name: &str) -> Option<Format> {
        let lower = name.trim_end_matches('/').to_lowercase();
        let promises = |signs: &&FormatSigns| signs.ends.iter().any(|end| lower.ends_with(end));
        FORMATS.iter().find(promises).map(|signs| signs.format)
    }

    /// As many bytes of a file tell its format \[B\].
    pub(crate) fn beginning_bytes() -> u64 {
        FORMATS.iter().flat_map(|signs| signs.begins).map(|begin| begin.len() as u64).max().unwrap_or(0)
    }

    /// The format of a file that begins with these bytes.
    pub fn of_beginning(bytes: &[u8]) -> Option<Format> {
        let begins = |signs: &&FormatSigns| signs.begins.iter().any(|begin| bytes.starts_with(begin));
        FORMATS.iter().find(begins).map(|signs| signs.format)
    }
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
        assert_eq!(Format::named("NETCDF4_CLASSIC").unwrap().name(), "netcdf4_classic");
        assert_eq!(Format::Netcdf3(Some(Version::Classic)).name(), "netcdf3");
        assert_eq!(Format::named("NETCDF3_CLASSIC").unwrap(), Format::Netcdf3(Some(Version::Classic)));
        let error = Format::named("grib").unwrap_err();
        assert_eq!(error.message(), "there is no format 'grib'");
        assert!(error.hint().starts_with("choose among 'zarr', 'netcdf3'"));
    }
}
