//! How long a header is, without building all of it again for each variable that comes.

use super::types::Version;

/// How many bytes the first variables of a header take in it: those that were there when it was asked last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CountedHeader {
    pub(super) version: Option<Version>,
    pub(super) variables: usize,
    pub(super) bytes: u64,
}

/// It follows from what a header says.
impl PartialEq for CountedHeader {
    fn eq(&self, _: &CountedHeader) -> bool {
        true
    }
}

impl Eq for CountedHeader {}

impl CountedHeader {
    /// No more than so many variables are as they were.
    pub(super) fn keep(&mut self, variables: usize) {
        if variables < self.variables {
            *self = CountedHeader::default();
        }
    }
}
