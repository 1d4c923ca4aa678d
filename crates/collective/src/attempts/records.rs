//! The words that owners leave on disk: parts of hidden names, lines of notes and lists.

use super::owner::{line_of, lines};
use crate::naming::is_path_of_data;
use serde_json::{Map, Value};

/// Names an update of an array in place that has not ended.
pub const MARKER: &str = ".hyperslab-update";
/// Where hidden things lie in a store, when they cannot lie beside it.
pub const INSIDE: &str = ".hyperslab";
/// The first name of a new file that has no other owner: by it the file is found, and its lock says whether its owner lives.
pub(super) const FIRST: &str = "first";
/// In a root: what its owner has locked.
pub(super) const OWNER: &str = "owner";
/// What is to be an array: `array`, or `array.NUMBER` if it is to replace the one that has this number of an inode.
pub const ARRAY: &str = "array";
/// What is to be several arrays, each a directory in it with the array's name.
pub(super) const SEVERAL: &str = "several";
/// What is to be a step.
pub const STEP: &str = "step";
/// In a list of owners: in how many directories what he writes has parts.
pub(super) const PARTS: &str = "parts";
/// Where chunks are made that are to replace others.
pub(super) const UPDATES: &str = "updates";
/// In a hidden directory that is to replace another: tells the new one from the old.
pub(super) const NEW: &str = ".hyperslab-new";
/// Ends the name of what was put aside to be replaced, where names cannot be exchanged.
pub(super) const ASIDE: &str = ".aside";
/// Longest part of a name that only tells people what it is \[B\].
pub(super) const SHOWN_BYTES_MAX: usize = 120;

/// Part of a hidden name that tells people what it is; separators of paths are spelled.
pub(super) fn shown(path: &str) -> String {
    let mut text = path.trim_end_matches('/').replace('%', "%25").replace('/', "%2F");
    while text.len() > SHOWN_BYTES_MAX || !text.is_char_boundary(text.len()) {
        text.pop();
    }
    text
}

/// What stands in such a part of a name.
pub(super) fn path_of(shown: &str) -> String {
    shown.replace("%2F", "/").replace("%25", "%")
}

/// Whether this is the name of an attempt: `3-updates-`.
pub(super) fn is_attempt(name: &str) -> bool {
    let number = name.split('-').next().unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && !name.contains('/')
}

/// Whether this is the name of an attempt, or of one of the several things of one: `4-several-/rho`.
pub(super) fn is_of_attempt(name: &str) -> bool {
    let (attempt, inside) = name.split_once('/').unwrap_or((name, "inside"));
    is_attempt(attempt) && is_path_of_data(inside) && !inside.contains('/')
}

/// Whether a marker tells of an update of which readers may see a half.
pub(super) fn is_torn(note: &[u8]) -> bool {
    let lines = lines(note);
    lines.is_empty() || lines.iter().any(|line| line.get("readers").is_none_or(|readers| readers != "whole"))
}

/// What a marker says of itself between two changes by its owner, who keeps it for the next one.
pub(super) const RESTS: &str = "rests";

/// Whether a marker rests.
pub(super) fn is_resting(note: &[u8]) -> bool {
    lines(note).last().is_some_and(|line| line.contains_key(RESTS))
}

/// A line of the list of owners: an update that did not end, and that nobody owns.
pub(super) fn unfinished_line(name: &str) -> Vec<u8> {
    let mut map = Map::new();
    map.insert("unfinished".into(), name.into());
    line_of(map)
}

/// In how many directories what an owner writes has parts.
pub(super) fn parts_of(line: &Map<String, Value>) -> usize {
    line.get(PARTS).and_then(|parts| parts.as_str()?.parse().ok()).unwrap_or(1)
}

/// A line of the marker of an update that did not end, and that nobody owns.
pub(super) fn disowned_line() -> Vec<u8> {
    let mut map = Map::new();
    map.insert("owner".into(), Value::Null);
    map.insert("readers".into(), "torn".into());
    line_of(map)
}

/// Whether a marker was left to whoever comes next.
pub(super) fn is_disowned(line: &Map<String, Value>) -> bool {
    line.get("owner") == Some(&Value::Null)
}
