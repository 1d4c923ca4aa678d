//! Where a raw file is: in a directory, or striped over several.

use hyperslab_real::{Directory, StripedDirectory, Stripes};
use hyperslab_world::{Fault, FaultKind, Reader, Writer};
use std::path::{Path, PathBuf};

/// The names around a file.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    One(Directory),
    Striped(StripedDirectory),
}

/// Calls the same method of either.
macro_rules! either {
    ($place:expr, $directory:ident => $call:expr) => {
        match $place {
            Place::One($directory) => $call,
            Place::Striped($directory) => $call,
        }
    };
}

impl Place {
    /// The directories with absolute paths, which is what all ranks are told.
    pub(crate) fn striped(stripes: &Stripes) -> Result<Place, Fault> {
        let absolute = |path: &PathBuf| {
            std::path::absolute(path)
                .map_err(|error| Fault::new(FaultKind::Invalid, format!("'{}' {error}", path.display())))
        };
        let directories = stripes.directories.iter().map(absolute).collect::<Result<_, Fault>>()?;
        let stripes = Stripes { directories, unit_bytes: stripes.unit_bytes };
        stripes.check()?;
        Ok(Place::Striped(StripedDirectory::new(stripes)))
    }

    /// How it is spread, if it is.
    pub(crate) fn stripes(&self) -> Option<&Stripes> {
        match self {
            Place::One(_) => None,
            Place::Striped(directory) => Some(directory.stripes()),
        }
    }

    /// For a message to the other ranks.
    pub(crate) fn tell(&self) -> Writer {
        let bytes = |path: &Path| path.to_string_lossy().into_owned();
        match self {
            Place::One(directory) => Writer::default().number(0).bytes(bytes(directory.path()).as_bytes()),
            Place::Striped(directory) => {
                let Stripes { directories, unit_bytes } = directory.stripes();
                let told = Writer::default().number(*unit_bytes).number(directories.len() as u64);
                directories.iter().fold(told, |told, path| told.bytes(bytes(path).as_bytes()))
            }
        }
    }

    /// Reads what [`Place::tell`] wrote.
    pub(crate) fn told(r: &mut Reader) -> Option<Place> {
        let unit_bytes = r.number()?;
        if unit_bytes == 0 {
            return Some(Place::One(Directory::new(r.text()?)));
        }
        let count = r.number()?;
        let directories = (0..count).map(|_| r.text().map(PathBuf::from)).collect::<Option<Vec<_>>>()?;
        (count > 0).then(|| Place::Striped(StripedDirectory::new(Stripes { directories, unit_bytes })))
    }

    /// The object that stores know under this name.
    pub(crate) fn object(&self, name: &str) -> String {
        match self.stripes() {
            None => format!("{}/{name}", self.path().display()),
            Some(stripes) => format!("{}/{name}", stripes.beginning()),
        }
    }

    /// Ends a publication that was interrupted.
    pub(crate) fn complete(&self, hidden: &str, name: &str) -> Result<(), Fault> {
        match self {
            Place::One(_) => Ok(()),
            Place::Striped(directory) => directory.complete(hidden, name).map(|_| ()),
        }
    }

    /// Checks that all parts of a file fit together.
    pub(crate) fn check(&self, name: &str) -> Result<(), Fault> {
        match self {
            Place::One(_) => Ok(()),
            Place::Striped(directory) => directory.check(name),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        either!(self, directory => directory.path())
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        either!(self, directory => directory.exists(name))
    }

    pub(crate) fn read_prefix(&self, name: &str, bytes: u64) -> Result<Option<Vec<u8>>, Fault> {
        either!(self, directory => directory.read_prefix(name, bytes))
    }

    pub(crate) fn length(&self, name: &str) -> Option<u64> {
        either!(self, directory => directory.length(name))
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        either!(self, directory => directory.write(name, bytes, sync))
    }

    pub(crate) fn create(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        either!(self, directory => directory.create(name, bytes))
    }

    pub(crate) fn lengthen(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        either!(self, directory => directory.lengthen(name, bytes))
    }

    pub(crate) fn write_prefix(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        either!(self, directory => directory.write_prefix(name, bytes))
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        either!(self, directory => directory.rename(from, to))
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Fault> {
        either!(self, directory => directory.remove(name))
    }

    pub(crate) fn discard(&self, name: &str) {
        either!(self, directory => directory.discard(name));
    }

    pub(crate) fn sync(&self, name: &str) -> Result<(), Fault> {
        either!(self, directory => directory.sync(name))
    }
}
