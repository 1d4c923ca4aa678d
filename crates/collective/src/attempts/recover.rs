//! What a dead owner left: named, rolled forward or removed by the next opening. Only what an own record names, below an own
//! root, is touched.

use super::home::Home;
use super::journal::{Entry, end_journal, entries_of, in_store, journals, roll_forward};
use super::owner::{Owner, line_of, lines};
use super::records::{
    ARRAY, ASIDE, MARKER, OWNER, SEVERAL, is_attempt, is_disowned, is_torn, parts_of, path_of, unfinished_line,
};
use crate::naming::is_path;
use hyperslab_world::{Fault, FaultKind, Lock, Locked, Names, Reader, Writer};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What was found of other owners.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Found {
    /// Steps, arrays and files that were never published, and are removed.
    pub removed: Vec<String>,
    /// Arrays of which an update in place did not end, what is only half published, and what is left of owners who may
    /// live, as far as anybody here can know.
    pub unfinished: Vec<String>,
    /// Records that are not believed, since others made them who could not have changed the data, or that cannot be read; each
    /// with the reason.
    pub passed_over: Vec<String>,
}

impl Found {
    /// Both found.
    pub fn and(mut self, other: Found) -> Found {
        self.removed.extend(other.removed);
        self.unfinished.extend(other.unfinished);
        self.passed_over.extend(other.passed_over);
        for names in [&mut self.removed, &mut self.unfinished, &mut self.passed_over] {
            names.sort_unstable();
            names.dedup();
        }
        self
    }

    /// Tells other ranks of it.
    pub fn tell(&self, told: Writer) -> Writer {
        [&self.removed, &self.unfinished, &self.passed_over].into_iter().fold(told, |told, names| {
            names.iter().fold(told.number(names.len() as u64), |told, name| told.bytes(name.as_bytes()))
        })
    }

    /// What was [told](Found::tell).
    pub fn hear(r: &mut Reader) -> Option<Found> {
        let mut names = || {
            let count = r.number()?;
            (0..count).map(|_| r.text()).collect::<Option<Vec<String>>>()
        };
        Some(Found { removed: names()?, unfinished: names()?, passed_over: names()? })
    }
}

/// How an owner fares.
pub(super) enum Fate {
    /// He lives.
    Lives,
    /// Nobody here can know.
    Unknown,
    /// He is dead, and his root is ours as long as this lock is.
    Dead(Option<Box<dyn Lock>>),
    /// Nothing is left of him.
    Nothing,
}

/// Whom to remove what is left of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// Nobody: what is there is named.
    Named,
    /// Those who are dead for certain.
    Dead,
    /// Those, and all of whom nobody can know: somebody wants it so.
    Unknown,
}

fn marker_of(home: &Home, name: &str) -> Option<String> {
    is_path(name).then(|| home.name(&format!("{name}/{MARKER}")))
}

fn is_marked(home: &Home, name: &str) -> bool {
    marker_of(home, name).is_some_and(|marker| home.names.exists(&marker))
}

/// What other owners left where attempts lie in hidden directories. That of `whose` is rolled forward or removed.
pub(super) fn recover_home(home: &Home, whose: Whose) -> Result<Found, Fault> {
    let names = &*home.names;
    let mut found = Found::default();
    let note = match names.note(&home.owners()) {
        Err(fault) if whose == Whose::Named || fault.kind == FaultKind::Foreign => return Ok(passed_over(&fault)),
        note => note?,
    };
    let Some(note) = note else {
        if whose != Whose::Named {
            home.sweep();
        }
        return Ok(found);
    };
    if whose == Whose::Named {
        for line in lines(&note) {
            let named = name_only(home, &line, &mut found);
            found.passed_over.extend(named.err().map(|fault| fault.text()));
        }
        return Ok(found.and(Found::default()));
    }
    // Whoever makes a root does so while nobody else looks at the list, so that each one in it has its lock.
    let mut fates = Vec::new();
    let mut look = |before: Vec<u8>| {
        let owners = lines(&before).into_iter().filter_map(|line| Some((Owner::of_line(&line)?, line)));
        let fate_of = |owner: &Owner, line: &Map<String, Value>| match parts_of(line) {
            parts if parts == names.parts() => fate(home, owner),
            // Who sees some of the parts only cannot tell what is left of them.
            parts => {
                let text = format!("it has parts in {parts} directories, of which {} are named here", names.parts());
                Err(Fault::new(FaultKind::Invalid, text))
            }
        };
        fates = owners.map(|(owner, line)| (fate_of(&owner, &line), owner, line_of(line))).collect();
        before
    };
    match names.edit(&home.owners(), &mut look, &mut || Ok(())) {
        // Somebody else looks after it, or is stopped: the next opening will.
        Err(fault) if fault.kind == FaultKind::Timeout => return Ok(found),
        looked => looked?,
    }
    let struck = bury_all(home, whose, fates, &mut found);
    let unfinished: BTreeSet<String> = found.unfinished.iter().filter(|name| is_marked(home, name)).cloned().collect();
    let mut still = unfinished.clone();
    let mut strike = |before: Vec<u8>| {
        let mut after = Vec::new();
        for line in lines(&before) {
            let left = line.get("unfinished").and_then(Value::as_str).filter(|name| is_marked(home, name));
            still.extend(left.map(String::from));
            let is_owner = Owner::of_line(&line).is_some();
            let line = line_of(line);
            if is_owner && !struck.contains(&line) {
                after.extend(line);
            }
        }
        after.extend(still.iter().flat_map(|name| unfinished_line(name)));
        after
    };
    match names.edit(&home.owners(), &mut strike, &mut || Ok(())) {
        // What is listed and not there any more is passed over.
        Err(fault) if fault.kind == FaultKind::Timeout => {}
        struck => struck?,
    }
    found.unfinished.extend(still);
    home.sweep();
    Ok(found.and(Found::default()))
}

/// What an owner left, of whom nobody can know, or what cannot be removed.
fn left_by(home: &Home, owner: &Owner) -> String {
    format!("what {owner} left in '{}'", home.names.full(&home.root(&owner.token)))
}

/// The same of who made a new file that has its first name.
fn left_first(home: &Home) -> String {
    format!("what its owner left in '{}'", home.names.full(&home.first()))
}

/// Of what was found unfinished, what is so no longer, since others have ended it. `marker_of` gives the path of the marker
/// that something has which is changed in place.
///
/// # Errors
/// When the storage refuses.
pub fn ended_by_others(
    home: &Home,
    known: Vec<String>,
    marker_of: impl Fn(&str) -> String,
) -> Result<Vec<String>, Fault> {
    let names = &*home.names;
    // One that cannot be read may still say so.
    let is_marked = |name: &String| match names.note(&marker_of(name)) {
        Ok(note) => note.is_some_and(|note| is_torn(&note)),
        Err(_) => true,
    };
    let unmarked: Vec<String> = known.into_iter().filter(|name| !is_marked(name)).collect();
    if unmarked.is_empty() {
        return Ok(unmarked);
    }
    let Ok(note) = names.note(&home.owners()) else { return Ok(Vec::new()) };
    let note = note.unwrap_or_default();
    let owners = lines(&note).iter().filter_map(Owner::of_line).collect::<Vec<_>>().into_iter();
    let is_there =
        |owner: &Owner| !names.is_absent(&home.root(&owner.token)) || !names.is_absent(&home.gone(&owner.token));
    let mut left: Vec<String> = owners.filter(is_there).map(|owner| left_by(home, &owner)).collect();
    if !home.is_inside() && !names.is_absent(&home.first()) {
        left.push(left_first(home));
    }
    let found = super::recover(home, Whose::Named)?.unfinished;
    let stays = |name: &String| found.contains(name) || left.iter().any(|left| name.starts_with(&**left));
    Ok(unmarked.into_iter().filter(|name| !stays(name)).collect())
}

/// Ends what owners left, of whom it is known how they fare; gives the lines of those of whom nothing is left.
fn bury_all(
    home: &Home,
    whose: Whose,
    fates: Vec<(Result<Fate, Fault>, Owner, Vec<u8>)>,
    found: &mut Found,
) -> BTreeSet<Vec<u8>> {
    let mut struck = BTreeSet::new();
    for (fate, owner, line) in fates {
        let left = left_by(home, &owner);
        let lock = match fate {
            Ok(Fate::Lives) => continue,
            Ok(Fate::Unknown) if whose == Whose::Dead => {
                found.unfinished.push(left);
                continue;
            }
            Ok(Fate::Unknown | Fate::Nothing) => None,
            Ok(Fate::Dead(lock)) => lock,
            Err(fault) if fault.kind == FaultKind::Foreign => {
                found.passed_over.push(fault.text());
                continue;
            }
            // It may be another user's, and nobody else's work waits for that.
            Err(fault) => {
                found.unfinished.push(format!("{left}: {}", fault.text()));
                continue;
            }
        };
        let mut of_owner = Found::default();
        let buried = bury(home, &owner, &mut of_owner);
        found.unfinished.append(&mut of_owner.unfinished);
        if let Err(fault) = buried {
            found.unfinished.push(format!("{left}: {}", fault.text()));
            continue;
        }
        found.removed.append(&mut of_owner.removed);
        drop(lock);
        // If it could not be looked at when it was to be removed, the next opening tries again.
        if home.names.is_absent(&home.root(&owner.token)) {
            struck.insert(line);
        }
    }
    struck
}

/// What is not believed, or cannot be read by one who goes on without it.
fn passed_over(why: &Fault) -> Found {
    Found { passed_over: vec![why.text()], ..Found::default() }
}

/// How the owner of a new file fares that is found by its first name; nothing if there is none.
pub(super) fn fate_of_first(home: &Home) -> Result<Fate, Fault> {
    let (names, first) = (&*home.names, home.first());
    // What is no file is nobody's here.
    if home.is_inside() || names.length(&first).is_none() {
        return Ok(Fate::Nothing);
    }
    Ok(match names.lock(&first)? {
        Locked::Busy => Fate::Lives,
        Locked::Absent => Fate::Nothing,
        Locked::Ours(lock) if !lock.has_its_name()? => Fate::Nothing,
        Locked::Ours(lock) if Owner::is_dead(None, names, names.locks(""), lock.keeps_others_out()) => {
            Fate::Dead(Some(lock))
        }
        Locked::Ours(_) => Fate::Unknown,
    })
}

/// Removes a new file that a dead owner left, with all its hidden names, the first of them last: by that it is found. Where it
/// was published, it loses no more than those.
pub(super) fn recover_first(home: &Home, whose: Whose) -> Result<Found, Fault> {
    let (names, first) = (&*home.names, home.first());
    if whose == Whose::Named {
        return Ok(Found::default());
    }
    let left = |why: &str| Ok(Found { unfinished: vec![format!("{}{why}", left_first(home))], ..Found::default() });
    let lock = match fate_of_first(home) {
        Ok(Fate::Lives | Fate::Nothing) => return Ok(Found::default()),
        Ok(Fate::Dead(lock)) => lock,
        Ok(Fate::Unknown) if whose == Whose::Unknown => None,
        Ok(Fate::Unknown) => return left(""),
        Err(fault) if fault.kind == FaultKind::Foreign => {
            return Ok(passed_over(&fault));
        }
        // It may be another user's, and nobody else's work waits for that.
        Err(fault) => return left(&format!(": {}", fault.text())),
    };
    let identity = names.identity(&first).ok().flatten();
    let is_published = identity.is_some() && names.identity(&home.base).ok().flatten() == identity;
    // One that is just being made is locked by its owner in the next moment; if it goes before that, he makes another.
    let is_empty = names.length(&first) == Some(0);
    let removed = home.names_with_first().and_then(|all| all.iter().try_for_each(|name| names.remove(name)));
    if let Err(fault) = removed {
        return left(&format!(": {}", fault.text()));
    }
    drop(lock);
    let removed = if is_published || is_empty { Vec::new() } else { vec![home.base.clone()] };
    Ok(Found { removed, ..Found::default() })
}

/// Whether an update in place with this marker did not end, and is not under way either.
///
/// # Errors
/// When the storage refuses.
pub fn was_left_torn(names: &dyn Names, marker: &str) -> Result<bool, Fault> {
    if names.written_note(marker)?.is_none_or(|note| !is_torn(&note)) {
        return Ok(false);
    }
    // The client of a shared file system may still know one that was removed or made again; what it has listed is right.
    if names.mount().is_some() && !is_listed(names, marker)? {
        return Ok(false);
    }
    match names.lock(marker) {
        Ok(Locked::Busy | Locked::Absent) => Ok(false),
        // Its owner may have ended the update before this, and another one may have made the next marker.
        Ok(Locked::Ours(lock)) if !lock.has_its_name()? => Ok(false),
        Ok(Locked::Ours(_lock)) => Ok(names.note(marker)?.is_some_and(|note| is_torn(&note))),
        Err(_) => Ok(true),
    }
}

/// Whether a directory lists a name.
fn is_listed(names: &dyn Names, name: &str) -> Result<bool, Fault> {
    let (above, last) = name.rsplit_once('/').unwrap_or(("", name));
    Ok(names.list(above)?.iter().any(|listed| listed == last))
}

/// Removes the marker of a file that a dead owner was about to replace, or left at rest.
pub fn drop_idle_marker(names: &dyn Names, marker: &str) -> Result<(), Fault> {
    let idle = || Ok(names.note(marker)?.filter(|note| !is_torn(note)));
    if idle()?.is_none() {
        return Ok(());
    }
    let Locked::Ours(lock) = names.lock(marker)? else { return Ok(()) };
    // Its owner may have gone on, and died, before it was locked.
    let Some(note) = idle()? else { return Ok(()) };
    let owner = lines(&note).iter().rev().find_map(Owner::of_line);
    match Owner::is_dead(owner.as_ref(), names, names.locks(""), lock.keeps_others_out()) {
        true => names.remove(marker),
        false => Ok(()),
    }
}

/// Completes what a dead owner had decided to publish, where that takes several changes: a file with parts in several
/// directories.
pub fn complete(home: &Home) -> Result<(), Fault> {
    if home.names.is_plain() {
        return Ok(());
    }
    // Of a list that cannot be read, those who recover what was left tell.
    let note = home.names.note(&home.owners()).ok().flatten().unwrap_or_default();
    for owner in lines(&note).iter().filter_map(Owner::of_line) {
        home.names.complete(&home.root(&owner.token), &home.base)?;
    }
    Ok(())
}

pub(super) fn fate(home: &Home, owner: &Owner) -> Result<Fate, Fault> {
    let names = &*home.names;
    let (root, gone) = (home.root(&owner.token), home.gone(&owner.token));
    names.check_believed(&root).and_then(|()| names.check_believed(&gone))?;
    if names.identity(&root)?.is_none() {
        return Ok(if names.identity(&gone)?.is_some() { Fate::Dead(None) } else { Fate::Nothing });
    }
    let of_directory = format!("{root}/{OWNER}");
    let is_file = names.length(&root).is_some();
    let locked = names.lock(if is_file { &root } else { &of_directory })?;
    Ok(match locked {
        Locked::Busy => Fate::Lives,
        // Its owner had begun to remove it.
        Locked::Absent => Fate::Dead(None),
        Locked::Ours(lock) if Owner::is_dead(Some(owner), names, names.locks(""), lock.keeps_others_out()) => {
            Fate::Dead(Some(lock))
        }
        Locked::Ours(_) => Fate::Unknown,
    })
}

/// Ends what an owner left: publishes what he had begun to publish, and removes the rest.
fn bury(home: &Home, owner: &Owner, found: &mut Found) -> Result<(), Fault> {
    let names = &*home.names;
    let (root, gone) = (home.root(&owner.token), home.gone(&owner.token));
    if names.length(&root).is_some() {
        found.removed.push(home.base.clone());
    }
    let mut published = BTreeSet::new();
    for journal in journals(names, &root)? {
        let noted = entries_of(home, &root, &journal)?;
        for each in &noted {
            if roll_forward(names, each)? {
                published.insert(each.entry.from.clone());
            }
        }
        let entries: Vec<Entry> = noted.into_iter().map(|each| each.entry).collect();
        end_journal(names, &entries, &format!("{root}/{journal}"))?;
    }
    for name in names.list(&root)? {
        let mut parts = name.splitn(3, '-').skip(1);
        let path = format!("{root}/{name}");
        let is_new = |kind: &&str| is_attempt(&name) && (*kind == "step" || is_new_array(names, kind, &path));
        let never =
            parts.next().is_some_and(|kind| is_new(&kind)) && !name.ends_with(ASIDE) && !published.contains(&path);
        let of = parts.next().map(path_of);
        if kind_of(&name) == Some(SEVERAL) {
            // What was published is not there any more.
            let inside = names.list(&path)?.into_iter();
            found.removed.extend(inside.map(|name| joined(of.as_deref().unwrap_or_default(), &name)));
        }
        found.removed.extend(of.filter(|_| never));
    }
    // A file whose parts lie in several directories, not all of which were made, has no name to rename.
    if names.exists(&root) {
        match names.rename(&root, &gone) {
            Err(_) if !names.exists(&format!("{root}/{OWNER}")) => names.remove(&root)?,
            renamed => renamed?,
        }
    }
    // The owner's record goes last, since it names the arrays that are marked; and their markers after all that a stopped
    // process could still rename into them.
    for name in names.list(&gone)?.iter().filter(|name| *name != OWNER) {
        names.remove(&format!("{gone}/{name}"))?;
    }
    for marked in marked_by(home, owner, &gone)? {
        match &marked.lock {
            // Readers see nothing of it.
            Some(_) if !marked.torn => names.remove(&marked.marker)?,
            // It is listed before the record that names it goes.
            _ => {
                home.list_unfinished(&marked.name)?;
                found.unfinished.push(marked.name);
            }
        }
    }
    names.remove(&gone)
}

/// What kind of attempt has this name.
fn kind_of(name: &str) -> Option<&str> {
    name.split('-').nth(1).filter(|_| is_attempt(name))
}

/// The name of something in a group, which may be the store.
fn joined(group: &str, name: &str) -> String {
    if group.is_empty() { name.into() } else { format!("{group}/{name}") }
}

/// Whether an attempt of this kind is an array that was never published. What it replaced lies under its name afterwards.
fn is_new_array(names: &dyn Names, kind: &str, path: &str) -> bool {
    let Some(of) = kind.strip_prefix(ARRAY) else { return false };
    let replaced = of.strip_prefix('.').and_then(|number| number.parse().ok());
    replaced.is_none_or(|replaced: u64| {
        names.identity(path).is_ok_and(|found| found.is_some_and(|found| found.1 != replaced))
    })
}

/// An array that an owner updated in place and did not end.
pub(super) struct Marked {
    pub(super) name: String,
    pub(super) marker: String,
    /// Whether readers may see a half.
    pub(super) torn: bool,
    /// Keeps others from taking it over; not there if a thread of the owner still has it.
    pub(super) lock: Option<Box<dyn Lock>>,
}

/// What the owner of a root had marked and nobody else has now. He notes it before he makes a marker, which may therefore be
/// missing, or empty, or that of somebody else.
pub(super) fn marked_by(home: &Home, owner: &Owner, root: &str) -> Result<Vec<Marked>, Fault> {
    let names = &*home.names;
    if names.length(root).is_some() {
        return Ok(Vec::new());
    }
    let mut noted: BTreeMap<String, bool> = BTreeMap::new();
    for line in lines(&names.note(&format!("{root}/{OWNER}"))?.unwrap_or_default()) {
        if let Some(name) = line.get("update").and_then(Value::as_str) {
            let torn = line.get("readers").is_none_or(|readers| readers != "whole");
            *noted.entry(name.into()).or_default() |= torn;
        }
    }
    let mut marked = Vec::new();
    for (name, may_be_torn) in noted {
        let Some(marker) = marker_of(home, &name) else { continue };
        let Some(note) = names.note(&marker)? else { continue };
        let lock = match names.lock(&marker)? {
            Locked::Ours(lock) => Some(lock),
            Locked::Busy => None,
            Locked::Absent => continue,
        };
        // Whoever had it when it was read first may have been about to take it over.
        let note = names.note(&marker)?.unwrap_or(note);
        let told = lines(&note);
        let of_owner = |line: &Map<String, Value>| Owner::of_line(line).is_some_and(|other| other.token == owner.token);
        // Who comes later is noted later. Whoever has an empty one locked is about to say who he is.
        let his = match (told.last(), &lock) {
            (None, lock) => lock.is_some(),
            (Some(line), Some(_)) => is_disowned(line) || of_owner(line),
            (Some(line), None) => of_owner(line),
        };
        if his {
            let torn = if told.is_empty() { may_be_torn } else { is_torn(&note) };
            marked.push(Marked { name, marker, torn, lock });
        }
    }
    Ok(marked)
}

/// Names what a reader should know of: what is only half published by a dead owner, and updates that did not end.
fn name_only(home: &Home, line: &Map<String, Value>, found: &mut Found) -> Result<(), Fault> {
    let names = &*home.names;
    let left = line.get("unfinished").and_then(Value::as_str).filter(|name| is_marked(home, name));
    found.unfinished.extend(left.map(String::from));
    let Some(owner) = Owner::of_line(line) else { return Ok(()) };
    let root = home.root(&owner.token);
    let _lock = match fate(home, &owner) {
        Ok(Fate::Dead(lock)) => lock,
        Err(fault) if fault.kind == FaultKind::Foreign => return Err(fault),
        // Who may only read may not be able to ask for locks; then nothing is said of it.
        _ => return Ok(()),
    };
    for journal in journals(names, &root)? {
        let entries = entries_of(home, &root, &journal)?;
        found.unfinished.extend(entries.iter().map(|noted| in_store(home, &noted.entry.to).to_string()));
    }
    let torn = marked_by(home, &owner, &root)?.into_iter().filter(|marked| marked.torn);
    found.unfinished.extend(torn.map(|marked| marked.name));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Attempts, ReplacedFile, clean, recover};
    use super::*;
    use hyperslab_world::MemoryTree;
    use std::sync::Arc;

    fn listed(tree: &MemoryTree) -> Vec<String> {
        tree.list("").unwrap()
    }

    fn attempts(tree: &MemoryTree) -> Attempts {
        Attempts::new(Home::beside(tree.at(&tree.full("")), "a.raw"), 1, true, false, None)
    }

    /// As one who died leaves it who had got so far: it has its first name, one more, or is published.
    fn left(tree: &MemoryTree, so_far: usize) -> String {
        let hidden = format!(".a.raw.hyperslab-{}", tree.token());
        tree.create(".a.raw.hyperslab-first", b"1", 1).unwrap();
        let other = [None, Some(&*hidden), Some("a.raw")][so_far];
        assert!(other.is_none_or(|other| tree.link(".a.raw.hyperslab-first", other).unwrap()));
        hidden
    }

    #[test]
    fn a_new_file_of_a_dead_owner_goes_with_all_its_hidden_names() {
        for so_far in 0..3 {
            for by_clean in [false, true] {
                let tree = MemoryTree::new();
                tree.write("b.raw", b"2", false).unwrap();
                left(&tree, so_far);
                // Something else has a name that could be one of its own.
                let alike = format!(".a.raw.hyperslab-{}", tree.token());
                tree.link("b.raw", &alike).unwrap();
                let published = so_far == 2;
                if by_clean {
                    let dry = clean(&tree.below("a.raw"), true).unwrap();
                    assert_eq!(dry[0].name, tree.full(".a.raw.hyperslab-first"));
                    assert_eq!(clean(&tree.below("a.raw"), false).unwrap().len(), dry.len());
                } else {
                    let found = recover(&Home::beside(tree.at(&tree.full("")), "a.raw"), Whose::Dead).unwrap();
                    assert_eq!(found.removed, if published { vec![] } else { vec!["a.raw"] });
                    assert_eq!(found.unfinished, [""; 0]);
                    assert!(tree.exists(&alike), "nobody knows whose it is");
                    tree.remove(&alike).unwrap();
                }
                assert_eq!(listed(&tree), ["a.raw", "b.raw"][usize::from(!published)..]);
            }
        }
    }

    #[test]
    fn one_who_lives_keeps_his_new_file_and_others_are_listed() {
        let tree = MemoryTree::new();
        let [one, other] = [attempts(&tree), attempts(&tree)];
        one.make_file(b"1", 4).unwrap();
        assert!(!tree.exists(".a.raw.hyperslab-owners") && tree.length(&one.file()) == Some(4));
        let home = Home::beside(tree.at(&tree.full("")), "a.raw");
        assert_eq!(recover(&home, Whose::Dead).unwrap(), Found::default());
        other.make_file(b"2", 4).unwrap();
        assert!(tree.exists(".a.raw.hyperslab-owners"));
        assert!(clean(&tree.below("a.raw"), false).unwrap().iter().all(|one| one.note.starts_with("kept")));
        let over = ReplacedFile { may: true, marker: ".a.raw.hyperslab-update", holds: &|| Ok(()) };
        one.publish_file(over).unwrap();
        assert!(!tree.exists(".a.raw.hyperslab-first"));
        other.end().unwrap();
        assert_eq!(listed(&tree), ["a.raw"]);
        let third = Arc::new(attempts(&tree));
        third.make_file(b"3", 4).unwrap();
        third.end().unwrap();
        assert_eq!(listed(&tree), ["a.raw"]);
    }

    #[test]
    fn who_finds_another_file_under_its_first_name_leaves_that_alone() {
        let tree = MemoryTree::new();
        let [one, other] = [attempts(&tree), attempts(&tree)];
        one.make_file(b"1", 4).unwrap();
        // Somebody tidied up by hand.
        tree.remove(".a.raw.hyperslab-first").unwrap();
        other.make_file(b"2", 4).unwrap();
        let over = ReplacedFile { may: true, marker: ".a.raw.hyperslab-update", holds: &|| Ok(()) };
        one.publish_file(over).unwrap();
        assert!(tree.exists(".a.raw.hyperslab-first"));
        other.publish_file(over).unwrap();
        assert_eq!(listed(&tree), ["a.raw"]);
    }
}
