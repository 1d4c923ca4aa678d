//! Puts of which the outcome is known, though replies get lost: each carries a number that no other has, and who is refused
//! looks whether it was itself that came first.

use super::contract::{Bucket, ObjectHead, Tags, When};
use super::policy::{TRIES_MAX, TURNS_MAX};
use crate::Fault;

/// In the tags of an object: the put that made it.
const PUT_TAG: &str = "hyperslab-put";

/// What came of a put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PutOutcome {
    /// The object is ours, in this version.
    Ours(String),
    /// Another one has the key, or none any more; the condition does not hold.
    Other(Option<ObjectHead>),
}

/// Does something until it gives a reply.
fn persist<T>(mut ask: impl FnMut() -> Result<T, Fault>) -> Result<T, Fault> {
    let mut outcome = ask();
    for _ in 1..TRIES_MAX {
        if outcome.is_ok() {
            break;
        }
        outcome = ask();
    }
    outcome
}

impl dyn Bucket + '_ {
    /// Puts an object under this condition, and finds out whether that was done.
    ///
    /// # Errors
    /// When no request has got a reply: then it may have been done, and may yet be.
    pub fn place(&self, key: &str, content: &[u8], tags: &Tags, when: &When) -> Result<PutOutcome, Fault> {
        let number = self.token();
        let mut tags = tags.clone();
        tags.insert(PUT_TAG.into(), number.clone());
        if let Some(version) = persist(|| self.put(key, content, &tags, when))? {
            return Ok(PutOutcome::Ours(version));
        }
        let found = persist(|| self.head(key))?;
        let is_ours = |head: &ObjectHead| head.tags.get(PUT_TAG) == Some(&number);
        Ok(match found {
            Some(head) if is_ours(&head) => PutOutcome::Ours(head.version),
            other => PutOutcome::Other(other),
        })
    }

    /// Puts an object, whatever has the key; of two who do so at once, the last wins.
    ///
    /// # Errors
    /// When no request has got a reply, or others put the same again and again.
    pub fn place_last(&self, key: &str, content: &[u8], tags: &Tags) -> Result<String, Fault> {
        let when = |found: Option<ObjectHead>| found.map_or(When::Absent, |head| When::Version(head.version));
        self.settle(key, persist(|| self.head(key))?, |head| Ok(Some((content.to_vec(), tags.clone(), when(head)))))
            .map(|version| version.expect("it is always put"))
    }

    /// Puts what `make` makes of what has the key, under the condition that it gives, until that holds; nothing, if it gives
    /// nothing. At first it is taken for granted that this is what has the key. Returns the version.
    ///
    /// # Errors
    /// When no request has got a reply, others change the object again and again, or `make` fails.
    pub fn settle(
        &self,
        key: &str,
        mut found: Option<ObjectHead>,
        mut make: impl FnMut(Option<ObjectHead>) -> Result<Option<(Vec<u8>, Tags, When)>, Fault>,
    ) -> Result<Option<String>, Fault> {
        for _ in 0..TURNS_MAX {
            let Some((content, tags, when)) = make(found)? else { return Ok(None) };
            match self.place(key, &content, &tags, &when)? {
                PutOutcome::Ours(version) => return Ok(Some(version)),
                PutOutcome::Other(other) => found = other,
            }
        }
        Err(self.busy(key))
    }

    /// Deletes what has the key, whatever that is.
    ///
    /// # Errors
    /// When no request has got a reply, or others put something again and again.
    pub fn remove(&self, key: &str) -> Result<(), Fault> {
        for _ in 0..TURNS_MAX {
            let Some(head) = persist(|| self.head(key))? else { return Ok(()) };
            if self.remove_version(key, &head.version)? {
                return Ok(());
            }
        }
        Err(self.busy(key))
    }

    fn busy(&self, key: &str) -> Fault {
        let text = format!("'{}/{key}' is changed by others all the time", self.label());
        Fault::new(crate::FaultKind::Busy, text)
    }

    /// Deletes this version of an object, and asks again where there is no reply. Returns whether nothing has the key now, and
    /// not another one.
    ///
    /// # Errors
    /// When no request has got one.
    pub fn remove_version(&self, key: &str, version: &str) -> Result<bool, Fault> {
        persist(|| self.delete(key, version))
    }
}
