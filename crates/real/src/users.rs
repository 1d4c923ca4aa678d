//! Users and groups, as the system knows them.

use std::ffi::CStr;

/// The user whose rights this process has.
pub(crate) fn this_user() -> u32 {
    // SAFETY: it only tells a number, and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether users have the numbers here that the file system gives them.
pub(crate) fn knows_all_users() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The user database's entry for a user: what may be written to is cut off where it is longer.
fn with_entry<T>(user: u32, ask: impl FnOnce(&libc::passwd) -> T) -> Option<T> {
    let mut texts = vec![0 as libc::c_char; 1 << 16];
    // SAFETY: all zeros are an entry without texts; the system fills it in.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all places are valid for the call, the texts for as many bytes as it is told.
    let code = unsafe { libc::getpwuid_r(user, &raw mut entry, texts.as_mut_ptr(), texts.len(), &raw mut found) };
    (code == 0 && !found.is_null()).then(|| ask(&entry))
}

/// Whether a user is in a group.
pub(crate) fn is_member(user: u32, group: u32) -> bool {
    let all = with_entry(user, |entry| {
        // As many as one user can be in.
        let mut groups = vec![0 as libc::gid_t; 1 << 16];
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name ends with a zero, and there are as many places as the call is told.
        let found = unsafe { libc::getgrouplist(entry.pw_name, entry.pw_gid, groups.as_mut_ptr(), &raw mut count) };
        groups.truncate(if found < 0 { 0 } else { count as usize });
        groups
    });
    all.is_some_and(|all| all.contains(&group))
}

/// Whom a file belongs to, for messages.
pub(crate) fn shown_user(user: u32) -> String {
    let name = with_entry(user, |entry| {
        // SAFETY: the system gives a text that ends with a zero, in memory that lives until this returns.
        let name = unsafe { CStr::from_ptr(entry.pw_name) };
        name.to_string_lossy().into_owned()
    });
    name.map_or(format!("user {user}"), |name| format!("user '{}' ({user})", name.escape_default()))
}
