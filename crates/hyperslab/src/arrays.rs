//! What is open and holds arrays, whatever its format: doors of languages are written once over it.

use crate::array_write::ArrayWrite;
use crate::comm::Comm;
use crate::error::Error;
use crate::file::File;
use crate::options::{ReadOptions, WriteOptions};
use crate::request::Request;
use crate::unready::Unready;
use crate::zarr::{ArrayInfo, Store};
use hyperslab_collective::{LocalArray, Report};
use hyperslab_format::attribute::{AttributeEdit, Attributes};
use hyperslab_format::zarr::{Value, attributes_of_json, fill_to_json};
use hyperslab_layout::{ElementType, Section};
use std::path::PathBuf;

/// What a stored array is, whatever its format.
#[derive(Clone, PartialEq, Debug)]
pub struct Info {
    /// Global shape.
    pub shape: Vec<u64>,
    /// Type of the stored elements.
    pub element: ElementType,
    /// Shape of a chunk, inside of a shard if there are any; where an array is not in chunks, its shape.
    pub chunks: Vec<u64>,
    /// Shape of a shard, where chunks lie in shards.
    pub shards: Option<Vec<u64>>,
    /// Names of its dimensions, where it has any.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// Its attributes.
    pub attributes: Attributes,
    /// What elements are that nobody wrote, as JSON.
    pub fill_value: Value,
    /// How chunks become bytes, as the metadata of Zarr list it; an empty list where there are no codecs.
    pub codecs: Value,
}

impl From<ArrayInfo> for Info {
    fn from(info: ArrayInfo) -> Info {
        let metadata = info.metadata;
        let chunks = metadata.inner_chunk_shape();
        Info {
            codecs: metadata.codecs_json(),
            fill_value: fill_to_json(metadata.element, &metadata.fill_value).unwrap_or(Value::Null),
            element: ElementType::native(metadata.element),
            shape: metadata.shape,
            chunks,
            shards: metadata.codecs.shards.is_some().then_some(metadata.chunk_shape),
            dimension_names: metadata.dimension_names,
            attributes: attributes_of_json(metadata.attributes, Some(metadata.element)),
        }
    }
}

/// Declares the trait, and carries out each of its methods by the one of the same name that the types have.
macro_rules! arrays {
    ($(#[$of:meta])* trait $name:ident for $types:tt { $($methods:tt)* }) => {
        arrays!(@declare $(#[$of])* $name { $($methods)* });
        arrays!(@each $name $types { $($methods)* });
    };
    (@declare $(#[$of:meta])* $name:ident {
        $($(#[$doc:meta])* fn $method:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*
    }) => {
        $(#[$of])*
        pub trait $name: Send {
            $($(#[$doc])* fn $method(&self $(, $argument: $type)*) -> $result;)*
        }
    };
    (@each $name:ident [] $methods:tt) => {};
    (@each $name:ident [$type:ident $($types:ident)*] $methods:tt) => {
        arrays!(@implement $name $type $methods);
        arrays!(@each $name [$($types)*] $methods);
    };
    (@implement $name:ident $for:ident {
        $($(#[$doc:meta])* fn $method:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*
    }) => {
        impl $name for $for {
            $(fn $method(&self $(, $argument: $type)*) -> $result {
                $for::$method(self $(, $argument)*)
            })*
        }
    };
}

arrays! {
/// What is open and holds arrays: a Zarr group, a step of one, a file. The methods are those of [`Store`] and [`File`].
trait Arrays for [Store File] {
    /// The ranks that opened it. Local.
    fn comm(&self) -> &Comm;
    /// Its absolute path, or name in memory. Local.
    fn path(&self) -> PathBuf;
    /// What dead owners left and opening removed. Local.
    fn removed(&self) -> &[String];
    /// What an update began to change and did not end. Local.
    fn unfinished(&self) -> Vec<String>;
    /// Records that are not believed, each with the reason. Local.
    fn passed_over(&self) -> &[String];
    /// Names of its arrays. Local.
    ///
    /// # Errors
    /// This rank's own, where storage is asked.
    fn names(&self) -> Result<Vec<String>, Error>;
    /// Whether one of this name is among them. Local.
    ///
    /// # Errors
    /// This rank's own, where storage is asked.
    fn has(&self, name: &str) -> Result<bool, Error>;
    /// Whether this rank can say by itself what an array is; if not, it can after the first collective call on it. Local.
    fn can_look_at(&self, name: &str) -> bool;
    /// Whether one client of a shared file system handles storage for all ranks. Local.
    fn goes_by_one_client(&self) -> bool;
    /// Names of the groups in it. Local.
    ///
    /// # Errors
    /// This rank's own, where storage is asked.
    fn groups(&self) -> Result<Vec<String>, Error>;
    /// Its attributes. Local.
    fn attributes(&self) -> Attributes;
    /// What an array is. Local.
    ///
    /// # Errors
    /// This rank's own, when there is no such array.
    fn look_at(&self, name: &str) -> Result<Info, Error>;
    /// What arrays are, on all ranks alike, for something that is about to be done. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when there is no such array.
    fn look_at_all(&self, names: &[&str], doing: &str, fresh: bool) -> Result<Vec<Info>, Error>;
    /// What an array is that this rank is about to read by itself. Local.
    ///
    /// # Errors
    /// This rank's own, when there is no such array, or a request is writing it.
    fn look_at_settled(&self, name: &str) -> Result<Info, Error>;
    /// Takes note of what others have made, removed or appended. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    fn refresh(&self) -> Result<(), Error>;
    /// Waits for all requests, and makes nothing visible. Collective.
    ///
    /// # Errors
    /// That of a request for which nobody waited, the same on all ranks.
    fn settle(&self) -> Result<(), Error>;
    /// Waits for all requests, and makes visible what is whole of a new file. Collective.
    ///
    /// # Errors
    /// That of a request for which nobody waited, or of publishing; the same on all ranks.
    fn flush(&self) -> Result<(), Error>;
    /// Writes arrays, or sections of some that are there. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    fn write(&self, asks: &[ArrayWrite], options: &WriteOptions) -> Result<Report, Error>;
    /// The same, but returns at once. Collective.
    fn write_later(&self, asks: Vec<ArrayWrite>, options: WriteOptions, staged: bool) -> Request;
    /// Makes arrays longer along a dimension. Collective.
    ///
    /// # Errors
    /// The same on all ranks; they have their old shape then.
    fn append(&self, asks: &[ArrayWrite], axis: usize, options: &WriteOptions) -> Result<Report, Error>;
    /// Changes attributes of an array, or of all where the name is empty. Collective.
    ///
    /// # Errors
    /// The same on all ranks; nothing has changed then.
    fn edit_attributes(&self, name: &str, edit: &AttributeEdit) -> Result<(), Error>;
    /// Deletes an array or a group. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    fn delete(&self, name: &str) -> Result<(), Error>;
    /// Gives an array or a group another name. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    fn rename(&self, old: &str, new: &str) -> Result<(), Error>;
    /// Gives an array another shape. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    fn resize(&self, name: &str, shape: &[u64]) -> Result<(), Error>;
    /// Reads arrays, or a section of each. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    fn read(&self, names: &[&str], options: ReadOptions) -> Result<(Vec<LocalArray>, Report), Error>;
    /// The same, but returns at once. Collective.
    fn read_later(&self, names: Vec<String>, options: ReadOptions) -> Request;
    /// Reads an array, or a section of it, by this rank alone. Local.
    ///
    /// # Errors
    /// This rank's own.
    fn read_local(&self, name: &str, options: ReadOptions) -> Result<(Vec<LocalArray>, Report), Error>;
    /// Reads a section of an array of this shape into a memory by this rank alone, if all of it is at rest on this host, few requests
    /// give it, and nothing is unusual; says whether it did. If not, [`Arrays::read_local`] reads it, or says what is wrong. Local.
    fn read_at_rest(&self, name: &str, shape: &[u64], section: &Section, into: &LocalArray) -> bool;
    /// Reads elements of an array of this shape, by their numbers, into a dense memory, as `read_at_rest` reads a section. Not where
    /// the user wants to stop. Local.
    fn read_elements_at_rest(&self, name: &str, shape: &[u64], numbers: &[u64], into: &LocalArray) -> bool;
    /// The texts of variable length that elements of arrays, read as bytes, say: of one array after another. Collective where ranks
    /// ask `together`; else local.
    ///
    /// # Errors
    /// When they are damaged, or something else by now; the same on all ranks that ask together.
    fn texts(&self, of: &[(&str, &[u8])], together: bool) -> Result<Vec<Vec<u8>>, Error>;
    /// A request that fails on all ranks, since this one cannot make its call. Collective.
    fn attend_later(&self, what: &str, why: Unready) -> Request;
}
}

impl Store {
    fn settle(&self) -> Result<(), Error> {
        self.flush()
    }

    /// Names of the arrays, as [`Store::arrays`].
    fn names(&self) -> Result<Vec<String>, Error> {
        self.arrays()
    }

    fn look_at(&self, name: &str) -> Result<Info, Error> {
        self.info(name).map(Info::from)
    }

    fn look_at_all(&self, names: &[&str], doing: &str, fresh: bool) -> Result<Vec<Info>, Error> {
        Ok(self.describe(names, doing, fresh)?.into_iter().map(Info::from).collect())
    }

    fn look_at_settled(&self, name: &str) -> Result<Info, Error> {
        self.look_local(name).map(Info::from)
    }
}
