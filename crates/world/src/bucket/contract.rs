//! The trait of buckets, and what it speaks of.

use crate::{Fault, Process};
use std::collections::BTreeMap;

/// Words of the user's that an object carries, by their names.
pub type Tags = BTreeMap<String, String>;

/// In the tags of an object: the attempt that put it.
pub const ATTEMPT_TAG: &str = "hyperslab-attempt";

/// Under which condition a put is carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum When {
    /// Nothing has the key.
    Absent,
    /// What has the key is this version.
    Version(String),
}

/// What is known of an object without its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectHead {
    /// Tells it from whatever had or will have the key, also from what holds the same bytes. (An ETag that is a hash of the
    /// bytes does so only if something in them differs.)
    pub version: String,
    /// Its length \[B\].
    pub bytes: u64,
    /// What it carries.
    pub tags: Tags,
}

/// One page of a listing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Page {
    /// Keys of objects, in ascending order.
    pub keys: Vec<String>,
    /// With a delimiter: what keys further down begin with, up to the delimiter and with it, each once.
    pub beginnings: Vec<String>,
    /// Where the next page goes on, if there is one: after this key or beginning.
    pub next: Option<String>,
}

/// An object store, as one program sees it. Requests return when their reply has come; callers who cannot wait ask from a
/// thread of their own.
///
/// Promised: a put or delete takes effect at once and whole, and who asks after its reply sees it (strong consistency); of
/// several puts with the same condition one is carried out.
///
/// Not promised: that a request that failed was not carried out. It may have been, and may yet be, at any time, even after a
/// second one like it. So every put and every delete has a condition.
///
/// [`conformance::buckets::bucket`](crate::conformance::buckets::bucket) tests an implementation.
pub trait Bucket: Send + Sync {
    /// What absolute names of its objects begin with, without a slash at the end.
    fn label(&self) -> String;
    /// Puts a whole object. Returns its version, or nothing if the condition does not hold.
    ///
    /// # Errors
    /// When no reply says whether it was done.
    fn put(&self, key: &str, content: &[u8], tags: &Tags, when: &When) -> Result<Option<String>, Fault>;
    /// Reads an object: all of it, or this many bytes from the first on, as far as they are there \[B\].
    ///
    /// # Errors
    /// When the storage does not tell.
    fn get(&self, key: &str, within: Option<(u64, u64)>) -> Result<Option<(ObjectHead, Vec<u8>)>, Fault>;
    /// Looks at an object.
    ///
    /// # Errors
    /// When the storage does not tell.
    fn head(&self, key: &str) -> Result<Option<ObjectHead>, Fault>;
    /// Lists what begins with a prefix, after a key or beginning if one is given. With `delimited`, only down to the next
    /// slash.
    ///
    /// # Errors
    /// When the storage does not tell.
    fn list(&self, prefix: &str, after: Option<&str>, delimited: bool) -> Result<Page, Fault>;
    /// Deletes an object, if it still is this version; that it is gone is fine. Returns whether nothing has its key now, and not
    /// another one.
    ///
    /// # Errors
    /// When no reply says whether it was done.
    fn delete(&self, key: &str, version: &str) -> Result<bool, Fault>;

    /// 32 hexadecimal digits that nobody who uses the bucket was ever given or will be.
    fn token(&self) -> String;
    /// This program, as others can know it who look at what it left.
    fn process(&self) -> Process;
    /// Whether a program lives, as far as anybody here can know.
    fn lives(&self, process: &Process) -> Option<bool>;
    /// Whether nothing far away is waited for.
    fn is_at_hand(&self) -> bool;
}

impl dyn Bucket + '_ {
    /// All keys below a prefix, in ascending order.
    ///
    /// # Errors
    /// When the storage does not tell.
    pub fn keys(&self, prefix: &str) -> Result<Vec<String>, Fault> {
        let (mut keys, mut after) = (Vec::new(), None);
        loop {
            let page = self.list(prefix, after.as_deref(), false)?;
            keys.extend(page.keys);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(keys),
            }
        }
    }
}
