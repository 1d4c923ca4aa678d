//! What crosses the border: pointers, texts, arrays and structs of callers.
//!
//! Nothing of what callers give is believed but this: a pointer that is not null points to what the header says, which lives as
//! long as the call.

use crate::failure::CallFailure;
use hyperslab::{ElementType, Error, Kind};
use std::ffi::{CStr, c_char, c_int};
use std::mem::size_of;
use std::ptr;

unsafe extern "C" {
    fn fflush(stream: *mut libc::FILE) -> c_int;
}

/// Ends this process, as `MPI_Abort` does: what was printed is not lost, and nothing else of the program runs.
pub(crate) fn end_process(status: c_int) -> ! {
    // SAFETY: the library of C flushes all streams for null, and ends the process.
    unsafe {
        fflush(ptr::null_mut());
        libc::_exit(status)
    }
}

fn missing(what: &str) -> Error {
    Error::invalid(format!("{what} is a null pointer")).with_hint("give what the header says")
}

/// What a pointer points to.
///
/// # Safety
/// It is null, or points to one that lives as long as the result is used.
pub(crate) unsafe fn given<'a, T>(what: &str, pointer: *const T) -> Result<&'a T, Error> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_ref() }.ok_or_else(|| missing(what))
}

/// A place for a result.
///
/// # Safety
/// It is null, or points to room for one; what is there has a value.
pub(crate) unsafe fn room<'a, T>(what: &str, pointer: *mut T) -> Result<&'a mut T, Error> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_mut() }.ok_or_else(|| missing(what))
}

/// A place for a handle, which is null from now on.
///
/// # Safety
/// It is null, or points to room for a pointer.
pub(crate) unsafe fn handle<'a, T>(pointer: *mut *mut T) -> Result<HandlePlace<'a, T>, Error> {
    if pointer.is_null() {
        return Err(missing("the place for what is made"));
    }
    // SAFETY: there is room for a pointer, whatever was in it; then it has a value.
    unsafe {
        pointer.write(ptr::null_mut());
        Ok(HandlePlace(&mut *pointer))
    }
}

/// Where a handle goes.
pub(crate) struct HandlePlace<'a, T>(&'a mut *mut T);

impl<T> HandlePlace<'_, T> {
    /// Hands it over.
    pub(crate) fn put(self, made: T) {
        *self.0 = Box::into_raw(Box::new(made));
    }
}

/// Takes a handle back.
///
/// # Safety
/// It is null, or was handed over by [`HandlePlace::put`] and is not used again.
pub(crate) unsafe fn taken<T>(what: &str, pointer: *mut T) -> Result<T, Error> {
    if pointer.is_null() {
        return Err(missing(what));
    }
    // SAFETY: as the caller says.
    Ok(*unsafe { Box::from_raw(pointer) })
}

/// A text.
///
/// # Safety
/// It is null, or ends with a zero.
pub(crate) unsafe fn text<'a>(what: &str, pointer: *const c_char) -> Result<&'a str, Error> {
    // SAFETY: as the caller says.
    let found = unsafe { maybe_text(what, pointer) }?;
    found.ok_or_else(|| missing(what))
}

/// A text that may be left out.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn maybe_text<'a>(what: &str, pointer: *const c_char) -> Result<Option<&'a str>, Error> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller says.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map(Some).map_err(|_| Error::invalid(format!("{what} is no text in UTF-8")))
}

/// Several things one after another.
///
/// # Safety
/// The pointer is null, or there are so many.
pub(crate) unsafe fn several<'a, T>(what: &str, pointer: *const T, count: i64) -> Result<&'a [T], Error> {
    let fits = usize::try_from(count)
        .ok()
        .filter(|count| count.checked_mul(size_of::<T>()).is_some_and(|b| b <= isize::MAX as usize));
    let count = fits.ok_or_else(|| Error::invalid(format!("there cannot be {count} of {what}")))?;
    match (count, pointer.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(missing(what)),
        // SAFETY: as the caller says; they are not more than memory can have.
        (_, false) => Ok(unsafe { std::slice::from_raw_parts(pointer, count) }),
    }
}

/// Numbers of elements: as many as dimensions, none of them negative.
///
/// # Safety
/// As [`several`].
pub(crate) unsafe fn numbers(what: &str, pointer: *const i64, count: i64) -> Result<Vec<u64>, Error> {
    // SAFETY: as the caller says.
    let given = unsafe { several(what, pointer, count) }?;
    let number = |&number: &i64| {
        u64::try_from(number).map_err(|_| Error::invalid(format!("{what} has {number}, which is negative")))
    };
    given.iter().map(number).collect()
}

/// The same, where all may be left out.
///
/// # Safety
/// As [`several`].
pub(crate) unsafe fn maybe_numbers(what: &str, pointer: *const i64, count: usize) -> Result<Option<Vec<u64>>, Error> {
    // SAFETY: as the caller says.
    if pointer.is_null() { Ok(None) } else { unsafe { numbers(what, pointer, count as i64) }.map(Some) }
}

/// Texts.
///
/// # Safety
/// The pointer is null, or there are so many pointers to texts.
pub(crate) unsafe fn texts<'a>(what: &str, pointer: *const *const c_char, count: i64) -> Result<Vec<&'a str>, Error> {
    // SAFETY: as the caller says.
    unsafe { several(what, pointer, count)?.iter().map(|each| text(what, *each)).collect() }
}

/// A struct of the header that begins with its own size.
///
/// # Safety
/// Any bytes are a value of it, also when all are zero, and its first field is a `usize`.
pub(crate) unsafe trait StructOfC: Copy {}

/// A struct that a caller gives, perhaps one of an earlier or a later header: what it has more is zero.
///
/// # Safety
/// The pointer points to as many bytes as the first of its fields says.
pub(crate) unsafe fn sized<T: StructOfC>(what: &str, pointer: *const T) -> Result<T, Error> {
    if pointer.is_null() {
        return Err(missing(what));
    }
    // SAFETY: the size comes first.
    let size = unsafe { pointer.cast::<usize>().read() };
    let wrong = || {
        Error::invalid(format!("{what} has the size {size}, which is none of its versions"))
            .with_hint("set its first field to sizeof of it, and all that is not given to zero")
    };
    // Nothing of a later header may be as large as that.
    if size < size_of::<usize>() || size > 16 * size_of::<T>() {
        return Err(wrong());
    }
    // SAFETY: there are so many bytes; those that this library does not know must be zero.
    let beyond = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) }.get(size_of::<T>()..);
    if beyond.is_some_and(|beyond| beyond.iter().any(|byte| *byte != 0)) {
        return Err(Error::unsupported(format!("{what} has options of a later version of this library")));
    }
    // SAFETY: zeros are a value of it, and so is what is copied over them.
    unsafe {
        let mut copy: T = std::mem::zeroed();
        ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut copy).cast::<u8>(), size.min(size_of::<T>()));
        Ok(copy)
    }
}

/// The same, where it may be left out.
///
/// # Safety
/// As [`sized`].
pub(crate) unsafe fn maybe_sized<T: StructOfC>(what: &str, pointer: *const T) -> Result<T, Error> {
    if pointer.is_null() {
        // SAFETY: zeros are a value of it.
        return Ok(unsafe { std::mem::zeroed() });
    }
    // SAFETY: as the caller says.
    unsafe { sized(what, pointer) }
}

/// One struct of an array of such, each as long as the first says.
///
/// # Safety
/// There are so many, each of which begins with the size of all of them.
pub(crate) unsafe fn nth<T: StructOfC>(what: &str, pointer: *const T, number: usize) -> Result<T, Error> {
    if pointer.is_null() {
        return Err(missing(what));
    }
    // SAFETY: the size comes first, and so far from one another they lie.
    unsafe { sized(what, pointer.byte_add(pointer.cast::<usize>().read().saturating_mul(number))) }
}

/// Copies a text into a buffer, with a zero at its end, as far as there is room. Gives its length.
///
/// # Safety
/// The buffer is null, or has room for so many bytes.
pub(crate) unsafe fn copied(text: &[u8], buffer: *mut c_char, size: usize) -> usize {
    if !buffer.is_null() && size > 0 {
        let mut fits = text.len().min(size - 1);
        // No character is cut into pieces.
        while fits < text.len() && text[fits] & 0xc0 == 0x80 && fits > 0 {
            fits -= 1;
        }
        // SAFETY: `fits` bytes and a zero are at most `size`.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, fits);
            buffer.add(fits).write(0);
        }
    }
    text.len()
}

/// The number of a type in the header that a code stands for.
pub(crate) const CODE: i32 = 16;

/// The type of elements with this number, or code.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn element(number: i32, code: *const c_char) -> Result<ElementType, Error> {
    if number == CODE {
        // SAFETY: as the caller says.
        let code = unsafe { text("the code of a type", code) }?;
        let unknown = || Error::invalid(format!("there is no type '{code}'"));
        return ElementType::from_numpy(code).ok_or_else(unknown);
    }
    if number < 0 {
        return Err(refused_of_fortran(number));
    }
    let kind = usize::try_from(number - 1).ok().and_then(|place| Kind::ALL.get(place));
    let hint = "give one of the header, such as HYPERSLAB_FLOAT64";
    let unknown = || Error::invalid(format!("there is no type with the number {number}")).with_hint(hint);
    kind.map(|kind| ElementType::native(*kind)).ok_or_else(unknown)
}

/// Why an array of Fortran is not moved, by the class of its type below zero.
fn refused_of_fortran(class: i32) -> Error {
    let (what, hint) = match class {
        -2 => ("logical arrays", "give integers of one byte"),
        -5 => ("character arrays", "write texts as attributes"),
        _ => ("arrays of this type", "give integers, or real or complex numbers of 4 or 8 bytes"),
    };
    Error::unsupported(format!("{what} of Fortran cannot be moved")).with_hint(hint)
}

/// The number of a type in the header.
pub(crate) fn number_of(element: ElementType) -> i32 {
    let place = Kind::ALL.iter().position(|kind| *kind == element.kind);
    place.map_or(CODE, |place| place as i32 + 1)
}

/// Frees a handle.
///
/// # Safety
/// As [`taken`].
pub(crate) unsafe fn freed<T>(pointer: *mut T) -> Result<(), CallFailure> {
    if !pointer.is_null() {
        // SAFETY: as the caller says.
        drop(unsafe { taken("a handle", pointer) }?);
    }
    Ok(())
}
