//! Journals: what one call publishes by several changes, noted before the first of them, so that the next opening can go on.

use super::home::Home;
use super::owner::{line_of, lines};
use super::records::{ASIDE, NEW, is_attempt, is_of_attempt};
use crate::naming::is_path_of_data;
use hyperslab_world::{Fault, FaultKind, Names};
use serde_json::{Map, Value};

/// Something hidden that shall become visible; names below the home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its hidden name.
    pub from: String,
    /// Its visible name.
    pub to: String,
    /// Whether it may take the place of something.
    pub replaces: bool,
}

/// An entry of a journal, for whoever finds it.
pub(super) struct Noted {
    pub(super) entry: Entry,
    /// The version of what it was to replace, if anything was there: who comes later replaces nothing newer.
    pub(super) over: Option<String>,
}

/// The name in the store of a name below the home.
pub(super) fn in_store<'a>(home: &Home, name: &'a str) -> &'a str {
    name.strip_prefix(&home.base).unwrap_or(name).trim_start_matches('/')
}

/// A journal of what is to be published out of a root; names in the store, and hidden ones in the root.
pub(super) fn journal_of(home: &Home, root: &str, noted: &[Noted]) -> Vec<u8> {
    let line = |Noted { entry, over }: &Noted| {
        let from = entry.from.strip_prefix(root).unwrap_or(&entry.from).trim_start_matches('/');
        let mut map = Map::new();
        map.extend(over.iter().map(|over| ("over".to_string(), Value::from(&**over))));
        map.insert("from".into(), from.into());
        map.insert("to".into(), in_store(home, &entry.to).into());
        map.insert("replaces".into(), entry.replaces.into());
        line_of(map)
    };
    noted.iter().flat_map(line).collect()
}

/// The entries of a journal in a root. Whatever does not name an attempt of the root, and a place in the store, is none.
pub(super) fn entries_of(home: &Home, root: &str, journal: &str) -> Result<Vec<Noted>, Fault> {
    let bytes = home.names.read(&format!("{root}/{journal}"))?.unwrap_or_default();
    Ok(entries_in(home, root, &bytes))
}

/// The entries among the lines of a note of the owner of a root.
pub(super) fn entries_in(home: &Home, root: &str, note: &[u8]) -> Vec<Noted> {
    let entry = |line: &Map<String, Value>| {
        let text = |name: &str| line.get(name)?.as_str();
        let from = text("from").filter(|from| is_of_attempt(from))?;
        let to = text("to").filter(|to| to.is_empty() || is_path_of_data(to))?;
        let replaces = line.get("replaces")?.as_bool()?;
        let entry = Entry { from: format!("{root}/{from}"), to: home.name(to), replaces };
        Some(Noted { entry, over: text("over").map(String::from) })
    };
    lines(note).iter().filter_map(entry).collect()
}

pub(super) fn journals(names: &dyn Names, root: &str) -> Result<Vec<String>, Fault> {
    let all = names.list(root)?.into_iter();
    Ok(all.filter(|name| is_attempt(name) && name.split('-').nth(1) == Some("publish")).collect())
}

/// Makes visible what is left of a publication. Returns whether it is, or was; not if the name has got something newer since.
pub(super) fn roll_forward(names: &dyn Names, noted: &Noted) -> Result<bool, Fault> {
    let Noted { entry: Entry { from, to, replaces }, over } = noted;
    let is_older = || *replaces && over.as_ref().is_some_and(|over| names.version(to).is_ok_and(|now| now == *over));
    if names.length(from).is_some() {
        // A small file, which is renamed over another.
        let older = is_older();
        return if older { names.rename(from, to).map(|()| true) } else { Ok(false) };
    }
    let is_new = || !replaces || names.exists(&format!("{from}/{NEW}")) || !names.exists(to);
    if !names.exists(from) || !is_new() || names.rename_new(from, to)? {
        return Ok(true);
    }
    let older = is_older();
    if older {
        replace(names, from, to)?;
    }
    Ok(older)
}

/// Lets something hidden and something visible change places. Where names cannot be exchanged there is a moment without
/// the visible one, and the journal tells the next opening to go on.
pub(super) fn replace(names: &dyn Names, from: &str, to: &str) -> Result<(), Fault> {
    if names.exchange(from, to)? {
        return Ok(());
    }
    let aside = format!("{from}{ASIDE}");
    names.rename(to, &aside)?;
    if let Err(fault) = names.rename(from, to) {
        return Err(match names.rename(&aside, to) {
            Ok(()) => fault,
            Err(_) => half_published(names, to, &fault),
        });
    }
    // What was replaced goes with the root, under whatever name.
    let _ = names.rename(&aside, from);
    Ok(())
}

/// Something is visible and could not be taken back, and something is not: nothing hidden may be removed now.
pub(super) fn half_published(names: &dyn Names, to: &str, fault: &Fault) -> Fault {
    let text = format!("half of it is published; '{}' is not, and is kept hidden: {}", names.full(to), fault.text());
    Fault::new(FaultKind::Unsynced, text).hint("look at the disk; the next opening for writing publishes the rest")
}

/// Ends a publication of which all is visible.
pub(super) fn end_journal(names: &dyn Names, entries: &[Entry], journal: &str) -> Result<(), Fault> {
    for entry in entries.iter().filter(|entry| entry.replaces && names.length(&entry.to).is_none()) {
        names.remove(&format!("{}/{NEW}", entry.to))?;
    }
    names.remove(journal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_world::MemoryTree;

    #[test]
    fn a_journal_names_what_is_in_the_store_and_nothing_else() {
        let tree = MemoryTree::new();
        let home = Home::beside(tree.at(&tree.full("")), "a.zarr");
        let entry = |to: &str| Entry { from: "root/1-metadata-".into(), to: home.name(to), replaces: true };
        let read = |to: &str| {
            let journal = journal_of(&home, "root", &[Noted { entry: entry(to), over: Some("7".into()) }]);
            entries_in(&home, "root", &journal).into_iter().map(|noted| noted.entry).collect::<Vec<_>>()
        };
        for to in ["a", "b/c", "a/zarr.json", "b/c/zarr.json", "zarr.json", ""] {
            assert_eq!(read(to), [entry(to)], "{to:?}");
        }
        for to in ["..", "a/../../x", ".hidden", "a/.hyperslab-update", "a//b"] {
            assert!(read(to).is_empty(), "{to:?}");
        }
    }

    #[test]
    fn it_names_attempts_of_its_root_and_what_lies_in_one_and_nothing_else() {
        let tree = MemoryTree::new();
        let home = Home::beside(tree.at(&tree.full("")), "a.zarr");
        let read = |from: &str| {
            let entry = Entry { from: format!("root/{from}"), to: home.name("a"), replaces: false };
            let journal = journal_of(&home, "root", &[Noted { entry: entry.clone(), over: None }]);
            entries_in(&home, "root", &journal).into_iter().any(|noted| noted.entry == entry)
        };
        for from in ["1-array-a", "2-several-/a", "2-several-b%2Fc/3-array-a"] {
            assert!(read(from), "{from:?}");
        }
        for from in ["owner", "a/b", "2-several-/../owner", "2-several-/a/b", "2-several-/.hidden", "2-several-/", ""] {
            assert!(!read(from), "{from:?}");
        }
    }
}
