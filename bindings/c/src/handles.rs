//! What the opaque handles of the header are.
#![forbid(unsafe_code)]

use crate::failure::CallFailure;
use crate::member::CMember;
use hyperslab::{Attributes, Error, Opened, Ownership, Request};
use std::ffi::CString;
use std::sync::Arc;

/// `hyperslab_comm`.
pub struct CommHandle(pub(crate) Arc<CMember>);

/// `hyperslab_dist`.
pub struct DistHandle {
    pub(crate) member: Arc<CMember>,
    pub(crate) held: Arc<Ownership>,
}

/// `hyperslab_group`.
pub struct GroupHandle {
    pub(crate) member: Arc<CMember>,
    pub(crate) opened: Opened,
}

/// `hyperslab_request`.
pub struct RequestHandle {
    pub(crate) member: Arc<CMember>,
    pub(crate) request: Request,
}

/// `hyperslab_attributes`.
#[derive(Default)]
pub struct AttributesHandle(pub(crate) Attributes);

/// `hyperslab_names`.
pub struct NamesHandle(pub(crate) Vec<CString>);

impl From<Vec<String>> for NamesHandle {
    fn from(names: Vec<String>) -> NamesHandle {
        // Formats refuse names with zeros.
        NamesHandle(names.into_iter().map(|name| CString::new(name.replace('\0', "")).unwrap_or_default()).collect())
    }
}

impl GroupHandle {
    /// A collective call on what is open: what it is called, what this rank has made ready for it, and how it is made.
    pub(crate) fn together<A, T>(
        &self,
        verb: &str,
        ready: Result<A, Error>,
        call: impl FnOnce(&Opened, A) -> Result<T, Error>,
    ) -> Result<T, CallFailure> {
        let what = format!("{verb} '{}'", self.opened.arrays().path().display());
        self.member.together(&what, ready, |ready| call(&self.opened, ready))
    }

    /// The handle of something in it.
    pub(crate) fn inner(&self, opened: Opened) -> GroupHandle {
        GroupHandle { member: self.member.clone(), opened }
    }
}

/// Any thread may make calls with a handle, also several at a time, but for attributes that are being set.
const _: fn() = || {
    fn is_for_all_threads<T: Send + Sync>() {}
    is_for_all_threads::<(CommHandle, DistHandle, GroupHandle, RequestHandle, AttributesHandle, NamesHandle)>();
};
