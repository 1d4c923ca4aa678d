//! What went wrong, and the version.

use crate::failure::{ErrorField, last, last_status};
use crate::foreign::copied;
use crate::member::border;
use std::ffi::{c_char, c_int};

/// Copies what the last failure says, and gives its length.
unsafe fn said(asked: ErrorField, buffer: *mut c_char, size: usize) -> usize {
    let mut length = 0;
    border(|| {
        // SAFETY: the caller has room for so many bytes.
        length = unsafe { copied(last(asked).as_bytes(), buffer, size) };
        Ok(())
    });
    length
}

/// The message of the last failure of this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_error_message(buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: as the header asks.
    unsafe { said(ErrorField::Message, buffer, size) }
}

/// What the user may do about it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_error_hint(buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: as the header asks.
    unsafe { said(ErrorField::Hint, buffer, size) }
}

/// One of its details.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_error_detail(which: c_int, buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: as the header asks.
    unsafe { said(ErrorField::Detail(which), buffer, size) }
}

/// Its status.
#[unsafe(no_mangle)]
pub extern "C" fn hyperslab_error_kind() -> c_int {
    last_status()
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn hyperslab_version() -> c_int {
    let part = |text: &str| text.parse::<c_int>().unwrap_or(0);
    let [major, minor, patch] =
        [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
    (part(major) * 1000 + part(minor)) * 1000 + part(patch)
}
