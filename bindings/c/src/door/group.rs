//! What is open: its opening and end, groups, steps, and what is in it.

use crate::foreign::{given, handle, maybe_text, numbers, room, taken, text, texts};
use crate::handles::{AttributesHandle, CommHandle, GroupHandle, NamesHandle};
use crate::member::border;
use crate::options::{CArrayInfo, COpenOptions, attributes, chosen, opening};
use hyperslab::binding::{mode_named, place_named};
use hyperslab::{AttributeEdit, Error, Opened, open};
use std::ffi::{c_char, c_int};

/// Opens something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_open(
    comm: *const CommHandle,
    path: *const c_char,
    mode: *const c_char,
    options: *const COpenOptions,
    group: *mut *mut GroupHandle,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks, here and below.
        let CommHandle(member) = unsafe { given("the communicator", comm) }?;
        let ready = || {
            // SAFETY: as above.
            unsafe {
                let (place, path) = (handle(group)?, text("the path", path)?);
                Ok((place, place_named(path)?, mode_named(text("the mode", mode)?)?, opening(options)?))
            }
        };
        // SAFETY: as above.
        let shown = unsafe { maybe_text("the path", path) }.ok().flatten().unwrap_or_default();
        let call = |(place, location, mode, options)| Ok((place, open(&member.comm, location, mode, options)?));
        let (place, opened) = member.together(&format!("open '{shown}'"), ready(), call)?;
        place.put(GroupHandle { member: member.clone(), opened });
        Ok(())
    })
}

/// Ends its use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_close(group: *mut GroupHandle) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let GroupHandle { member, opened } = unsafe { taken("the group", group) }?;
        member.together("close", Ok(()), |()| opened.close())
    })
}

/// Ends it, and gives up what is not published.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_give_up(group: *mut GroupHandle, why: *const c_char) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (group, why) = unsafe { (taken("the group", group)?, maybe_text("the reason", why)) };
        let GroupHandle { member, opened } = group;
        let why = why.ok().flatten().unwrap_or("the program says so");
        member.together("give up", Ok(()), |()| opened.give_up(why))
    })
}

/// A collective call with a name, or nothing more.
unsafe fn named(
    group: *const GroupHandle,
    verb: &str,
    name: *const c_char,
    call: impl FnOnce(&Opened, &str) -> Result<(), Error>,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (group, name) = unsafe { (given("the group", group)?, text("the name", name)) };
        group.together(verb, name, call)
    })
}

/// Waits for requests, and publishes what is whole.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_flush(group: *mut GroupHandle) -> c_int {
    // SAFETY: as the header asks.
    unsafe { named(group, "flush", c"".as_ptr(), |opened, _| opened.arrays().flush()) }
}

/// Takes note of what others did.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_refresh(group: *mut GroupHandle) -> c_int {
    // SAFETY: as the header asks.
    unsafe { named(group, "refresh", c"".as_ptr(), |opened, _| opened.arrays().refresh()) }
}

/// Deletes something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_delete(group: *mut GroupHandle, name: *const c_char) -> c_int {
    // SAFETY: as the header asks.
    unsafe { named(group, "delete from", name, |opened, name| opened.arrays().delete(name)) }
}

/// Gives something another name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_rename(
    group: *mut GroupHandle,
    old_name: *const c_char,
    new_name: *const c_char,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (group, both) = unsafe {
            let both = || Ok((text("the old name", old_name)?, text("the new name", new_name)?));
            (given("the group", group.cast_const())?, both())
        };
        group.together("rename in", both, |opened, (old, new)| opened.arrays().rename(old, new))
    })
}

/// Gives an array another shape.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_resize(
    group: *mut GroupHandle,
    name: *const c_char,
    ndim: i32,
    shape: *const i64,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (group, ready) = unsafe {
            let ready = || Ok((text("the name", name)?, numbers("the new shape", shape, ndim.into())?));
            (given("the group", group.cast_const())?, ready())
        };
        group.together("resize in", ready, |opened, (name, shape)| opened.arrays().resize(name, &shape))
    })
}

/// A collective call that opens something in it.
unsafe fn inner<A>(
    (group, place): (*const GroupHandle, *mut *mut GroupHandle),
    verb: &str,
    ready: impl FnOnce() -> Result<A, Error>,
    call: impl FnOnce(&Opened, A) -> Result<Opened, Error>,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let group = unsafe { given("the group", group) }?;
        // SAFETY: as the header asks.
        let ready = unsafe { handle(place) }.and_then(|place| Ok((place, ready()?)));
        let (place, opened) =
            group.together(verb, ready, |opened, (place, ready)| Ok((place, call(opened, ready)?)))?;
        place.put(group.inner(opened));
        Ok(())
    })
}

/// Opens a group in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_open_group(
    group: *mut GroupHandle,
    name: *const c_char,
    made: *mut *mut GroupHandle,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe { inner((group, made), "open a group of", || text("the name", name), |opened, name| opened.group(name)) }
}

/// Makes a group in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_make_group(
    group: *mut GroupHandle,
    name: *const c_char,
    values: *const AttributesHandle,
    may_exist: i32,
    made: *mut *mut GroupHandle,
) -> c_int {
    let ready = || {
        let may_exist = chosen("may_exist", may_exist)?.unwrap_or(false);
        // SAFETY: as the header asks.
        unsafe { Ok((text("the name", name)?, attributes(values), may_exist)) }
    };
    // SAFETY: as the header asks.
    unsafe {
        inner((group, made), "make a group in", ready, |opened, (name, values, may)| {
            opened.make_group(name, &values, may)
        })
    }
}

/// Begins a step.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_begin_step(
    group: *mut GroupHandle,
    name: *const c_char,
    values: *const AttributesHandle,
    made: *mut *mut GroupHandle,
) -> c_int {
    // SAFETY: as the header asks.
    let ready = || unsafe { Ok((text("the name", name)?, attributes(values))) };
    // SAFETY: as the header asks.
    unsafe { inner((group, made), "begin a step of", ready, |opened, (name, values)| opened.step(name, &values)) }
}

/// Deletes all but the last steps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_keep_steps(group: *mut GroupHandle, count: i64) -> c_int {
    let keep = |opened: &Opened, _: &str| opened.keep(usize::try_from(count).unwrap_or(0)).map(drop);
    // SAFETY: as the header asks.
    unsafe { named(group, "keep steps of", c"".as_ptr(), keep) }
}

/// A local call that gives names.
unsafe fn listed(
    group: *const GroupHandle,
    names: *mut *mut NamesHandle,
    list: impl FnOnce(&Opened) -> Result<Vec<String>, Error>,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        let (place, group) = unsafe { (handle(names)?, given("the group", group)?) };
        place.put(group.member.alone(|| list(&group.opened))?.into());
        Ok(())
    })
}

/// Names of the published steps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_steps(group: *const GroupHandle, names: *mut *mut NamesHandle) -> c_int {
    // SAFETY: as the header asks.
    unsafe { listed(group, names, Opened::steps) }
}

/// Names of its arrays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_arrays(group: *const GroupHandle, names: *mut *mut NamesHandle) -> c_int {
    // SAFETY: as the header asks.
    unsafe { listed(group, names, |opened| opened.arrays().names()) }
}

/// Names of its groups.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_groups(group: *const GroupHandle, names: *mut *mut NamesHandle) -> c_int {
    // SAFETY: as the header asks.
    unsafe { listed(group, names, |opened| opened.arrays().groups()) }
}

/// What earlier programs left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_leftovers(
    group: *const GroupHandle,
    which: c_int,
    names: *mut *mut NamesHandle,
) -> c_int {
    let list = |opened: &Opened| match which {
        1 => Ok(opened.arrays().removed().to_vec()),
        2 => Ok(opened.arrays().unfinished()),
        3 => Ok(opened.arrays().passed_over().to_vec()),
        _ => Err(Error::invalid(format!("there are no leftovers of kind {which}"))),
    };
    // SAFETY: as the header asks.
    unsafe { listed(group, names, list) }
}

/// What an array is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_info(group: *mut GroupHandle, name: *const c_char, info: *mut CArrayInfo) -> c_int {
    let look = |opened: &Opened, name: &str| {
        let found = opened.arrays().look_at_all(&[name], "look", true)?;
        // SAFETY: as the header asks.
        unsafe { CArrayInfo::fill(info, &found[0]) }
    };
    // SAFETY: as the header asks.
    unsafe { named(group, "look at an array of", name, look) }
}

/// Attributes of an array, or of what is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_attributes_of(
    group: *mut GroupHandle,
    name: *const c_char,
    found: *mut *mut AttributesHandle,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks, here and below.
        let group = unsafe { given("the group", group.cast_const()) }?;
        let ready = || {
            // SAFETY: as above.
            unsafe { Ok((handle(found)?, maybe_text("the name", name)?)) }
        };
        let look = |opened: &Opened, (place, name): (_, Option<&str>)| match name {
            None => Ok((place, opened.attributes())),
            Some(name) => Ok((place, opened.arrays().look_at_all(&[name], "look", true)?.swap_remove(0).attributes)),
        };
        let (place, values) = group.together("look at attributes of", ready(), look)?;
        place.put(AttributesHandle(values));
        Ok(())
    })
}

/// Changes attributes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_edit_attributes(
    group: *mut GroupHandle,
    name: *const c_char,
    set: *const AttributesHandle,
    removed_count: i64,
    removed: *const *const c_char,
) -> c_int {
    border(|| {
        // SAFETY: as the header asks, here and below.
        let group = unsafe { given("the group", group.cast_const()) }?;
        let ready = || {
            // SAFETY: as above.
            let (name, set, removed) = unsafe {
                (maybe_text("the name", name)?, attributes(set), texts("names of attributes", removed, removed_count)?)
            };
            let removed = removed.into_iter().map(String::from).collect();
            Ok((name.unwrap_or_default(), AttributeEdit { set, removed, clear: false }))
        };
        group.together("change attributes of", ready(), |opened, (name, edit)| opened.edit_attributes(name, &edit))
    })
}

/// Whether a request is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_test(request: *const crate::handles::RequestHandle, done: *mut c_int) -> c_int {
    border(|| {
        // SAFETY: as the header asks.
        unsafe { *room("the room for an answer", done)? = c_int::from(given("the request", request)?.request.test()) };
        Ok(())
    })
}
