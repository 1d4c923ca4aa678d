//! Writing and reading.

use crate::foreign::{given, handle, taken};
use crate::handles::{CommHandle, DistHandle, GroupHandle, RequestHandle};
use crate::member::border;
use crate::options::{CItem, CMemory, CSection, CWriteOptions, ForeignItem, chosen, reads, writes};
use hyperslab::binding::place_named;
use hyperslab::{Error, File, OpenOptions, Order, Request, WriteOptions};
use std::ffi::{c_char, c_int};

/// Several arrays, as this rank gives them.
unsafe fn each(group: &GroupHandle, count: i64, items: *const CItem) -> Result<Vec<ForeignItem>, Error> {
    // SAFETY: as the header asks.
    unsafe { ForeignItem::each(count, items, group.member.comm.rank()) }
}

/// Writes several arrays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_write_many(group: *mut GroupHandle, count: i64, items: *const CItem) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let group = unsafe { given("the group", group.cast_const()) }?;
        // SAFETY: as the header asks.
        let given = unsafe { each(group, count, items) };
        // SAFETY: as the header asks.
        let verb = format!("write of {} to", unsafe { ForeignItem::names(count, items) });
        // SAFETY: as the header asks.
        let ready = given.and_then(|given| unsafe { writes(given) });
        group.together(&verb, ready, |opened, (asks, options)| opened.arrays().write(&asks, &options).map(drop))
    })
}

/// Reads several arrays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_read_many(group: *mut GroupHandle, count: i64, items: *const CItem) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let group = unsafe { given("the group", group.cast_const()) }?;
        // SAFETY: as the header asks.
        let given = unsafe { each(group, count, items) };
        // SAFETY: as the header asks.
        let verb = format!("read of {} from", unsafe { ForeignItem::names(count, items) });
        group.together(&verb, given.map(reads), |opened, (names, options)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            opened.arrays().read(&names, options).map(drop)
        })
    })
}

/// Makes several arrays longer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_append_many(
    group: *mut GroupHandle,
    axis: i32,
    count: i64,
    items: *const CItem,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let group = unsafe { given("the group", group.cast_const()) }?;
        // SAFETY: as the header asks.
        let given = unsafe { each(group, count, items) };
        // SAFETY: as the header asks.
        let verb = format!("append to {} of", unsafe { ForeignItem::names(count, items) });
        let ready = given.and_then(|mut given| {
            // Arrays that are there have a type.
            given.iter_mut().for_each(ForeignItem::forget_element);
            let axis = usize::try_from(axis).map_err(|_| Error::invalid(format!("there is no dimension {axis}")))?;
            // SAFETY: as the header asks.
            Ok((axis, unsafe { writes(given) }?))
        });
        group.together(&verb, ready, |opened, (axis, (asks, options))| {
            opened.arrays().append(&asks, axis, &options).map(drop)
        })
    })
}

/// Writes an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_write(
    group: *mut GroupHandle,
    name: *const c_char,
    memory: *const CMemory,
    dist: *const DistHandle,
    section: *const CSection,
    options: *const CWriteOptions,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe { hyperslab_write_many(group, 1, &CItem::new(name, memory, dist, section, options)) }
}

/// Makes an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_create_array(
    group: *mut GroupHandle,
    name: *const c_char,
    kind: i32,
    ndim: i32,
    shape: *const i64,
    options: *const CWriteOptions,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let group = unsafe { given("the group", group.cast_const()) }?;
        // SAFETY: as the header asks.
        let ready =
            unsafe { ForeignItem::new_array(name, kind, (ndim, shape), options).and_then(|one| writes(vec![one])) };
        group.together("make an array in", ready, |opened, (asks, options)| {
            opened.arrays().write(&asks, &options).map(drop)
        })
    })
}

/// Reads an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_read(
    group: *mut GroupHandle,
    name: *const c_char,
    memory: *const CMemory,
    dist: *const DistHandle,
    section: *const CSection,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe { hyperslab_read_many(group, 1, &CItem::new(name, memory, dist, section, std::ptr::null())) }
}

/// Makes an array longer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_append(
    group: *mut GroupHandle,
    name: *const c_char,
    axis: i32,
    memory: *const CMemory,
    dist: *const DistHandle,
) -> c_int {
    let item = CItem::new(name, memory, dist, std::ptr::null(), std::ptr::null());
    // SAFETY: as the header asks.
    unsafe { hyperslab_append_many(group, axis, 1, &item) }
}

/// Saves an array as a file of NumPy's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_save_npy(
    comm: *const CommHandle,
    path: *const c_char,
    memory: *const CMemory,
    dist: *const DistHandle,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks, here and below.
        let CommHandle(member) = unsafe { given("the communicator", comm) }?;
        let ready = || {
            let item = CItem::new(c"array".as_ptr(), memory, dist, std::ptr::null(), std::ptr::null());
            // SAFETY: as above.
            let (path, given) =
                unsafe { (crate::foreign::text("the path", path)?, ForeignItem::of(&item, member.comm.rank())?) };
            let mut writing = WriteOptions::default();
            writing.element = given.element;
            Ok((place_named(path)?, given.ask(), writing))
        };
        member.together("save an .npy file", ready(), |(place, ask, writing)| {
            File::save_npy(&member.comm, place, ask, Order::RowMajor, OpenOptions::default(), &writing).map(drop)
        })
    })
}

/// A call that does not block; or where this rank has nothing to make it with, one that fails on all ranks.
unsafe fn begun<A>(
    (group, place): (*const GroupHandle, *mut *mut RequestHandle),
    verb: &str,
    ready: impl FnOnce(&GroupHandle) -> Result<A, Error>,
    begin: impl FnOnce(&GroupHandle, A) -> Request,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let group = unsafe { given("the group", group) }?;
        let what = format!("{verb} '{}'", group.opened.arrays().path().display());
        let request = match ready(group) {
            Ok(ready) => begin(group, ready),
            Err(error) => group.opened.arrays().attend_later(&what, error.into()),
        };
        // SAFETY: as the header asks.
        unsafe { handle(place) }?.put(RequestHandle { member: group.member.clone(), request });
        Ok(())
    })
}

/// Writes, and returns at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_iwrite(
    group: *mut GroupHandle,
    count: i64,
    items: *const CItem,
    staged: i32,
    request: *mut *mut RequestHandle,
) -> c_int {
    let ready = |group: &GroupHandle| {
        // SAFETY: as the header asks.
        let (asks, options) = unsafe { writes(each(group, count, items)?)? };
        Ok((asks, options, chosen("staged", staged)?.unwrap_or(false)))
    };
    let begin = |group: &GroupHandle, (asks, options, staged)| group.opened.arrays().write_later(asks, options, staged);
    // SAFETY: as the header asks.
    unsafe { begun((group, request), "write to", ready, begin) }
}

/// Reads, and returns at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_iread(
    group: *mut GroupHandle,
    count: i64,
    items: *const CItem,
    request: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the header asks.
    let ready = |group: &GroupHandle| Ok(reads(unsafe { each(group, count, items)? }));
    let begin = |group: &GroupHandle, (names, options)| group.opened.arrays().read_later(names, options);
    // SAFETY: as the header asks.
    unsafe { begun((group, request), "read from", ready, begin) }
}

/// Waits for a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_wait(request: *mut RequestHandle) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let RequestHandle { member, request } = unsafe { taken("the request", request) }?;
        member.together("wait", Ok(()), |()| request.wait().map(drop))
    })
}
