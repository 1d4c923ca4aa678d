//! Removing on purpose what owners left of whom nobody can know whether they live.

use super::home::Home;
use super::owner::{Owner, is_token, lines};
use super::records::{MARKER, OWNER, disowned_line, is_disowned, is_resting, is_torn, parts_of};
use super::recover::{Fate, Marked, Whose, fate, fate_of_first, marked_by, recover_first, recover_home};
use hyperslab_world::{Fault, FaultKind, Lock, Locked, Names};

/// Something that is hidden or marked: what kind of thing, its name or path, and what is or would be done about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cleaned {
    /// `root`, `hidden`, `step`, `array` or `update`.
    pub kind: &'static str,
    /// Path, or name in the store.
    pub name: String,
    /// What is or would be done, and why.
    pub note: String,
}

/// Where something of a store or file may be hidden.
pub(super) fn homes_of(names: &dyn Names) -> Result<Vec<Home>, Fault> {
    let path = names.resolve()?;
    let directory = names.at(&path);
    let real = if directory.is_link("") { directory.followed()? } else { None };
    let directory = real.map_or(directory, |real| names.at(&real));
    let mut homes = Vec::new();
    if let Some((above, name)) = directory.above() {
        homes.push(Home::beside(directory.at(&above), &name));
    }
    if directory.exists("") && directory.length("").is_none() {
        homes.push(Home::inside(directory.clone()));
    }
    let known = |home: &Home| {
        home.names.note(&home.owners()).is_ok_and(|note| note.is_some()) || home.names.exists(&home.first())
    };
    if !directory.exists("") && !homes.iter().any(known) {
        return Err(Fault::new(
            FaultKind::NotFound,
            format!("'{path}' does not exist, and nothing hidden lies beside it"),
        ));
    }
    Ok(homes)
}

pub(super) fn clean_home(home: &Home, dry_run: bool, cleaned: &mut Vec<Cleaned>) -> Result<(), Fault> {
    let names = &home.names;
    let list = names.note(&home.owners());
    if let Err(fault) = &list {
        cleaned.push(kept(home, &home.owners(), fault));
    }
    let is_believed = list.is_ok();
    let note = list.ok().flatten().unwrap_or_default();
    let verb = if dry_run { "would be removed" } else { "removed" };
    let of_first = clean_first(home, dry_run, cleaned)?;
    for (line, owner) in lines(&note).iter().filter_map(|line| Some((line, Owner::of_line(line)?))) {
        let root = home.root(&owner.token);
        if parts_of(line) != names.parts() {
            let note = format!("kept: it has parts in {} directories; give all of them", parts_of(line));
            cleaned.push(Cleaned { kind: "root", name: names.full(&root), note });
            continue;
        }
        let note = match fate(home, &owner) {
            Ok(Fate::Nothing) => continue,
            Ok(Fate::Lives) => format!("kept: in use by {owner}"),
            Ok(Fate::Dead(_)) => format!("{verb}: {owner} is dead"),
            Ok(Fate::Unknown) => format!("{verb}: it cannot be known here whether {owner} lives"),
            Err(fault) => {
                cleaned.push(kept(home, &root, &fault));
                continue;
            }
        };
        let lives = note.starts_with("kept");
        cleaned.push(Cleaned { kind: "root", name: names.full(&root), note });
        for Marked { name, marker, torn, lock } in marked_by(home, &owner, &root)?.into_iter().filter(|_| !lives) {
            let note =
                if torn { "did not end: write all of it again" } else { "did not end; readers see nothing of it" };
            cleaned.push(Cleaned { kind: "update", name, note: note.into() });
            if let Some(lock) = lock.filter(|_| torn && !dry_run) {
                disown(names.as_ref(), &marker, &*lock)?;
            }
        }
    }
    clean_marker(home, dry_run, cleaned)?;
    if !dry_run && is_believed {
        recover_home(home, Whose::Unknown)?;
    }
    unlisted(home, (&note, &of_first), dry_run, cleaned)
}

/// The same with the marker of a file.
fn clean_marker(home: &Home, dry_run: bool, cleaned: &mut Vec<Cleaned>) -> Result<(), Fault> {
    let names = &home.names;
    let beside = format!(".{}{MARKER}", home.base);
    let marked = match !home.is_inside() && names.exists(&beside) {
        true => locked_with_note(&**names, &beside),
        false => Ok(None),
    };
    if let Err(fault) = &marked {
        cleaned.push(kept(home, &beside, fault));
    }
    if let Ok(Some((lock, noted))) = marked {
        let rests = noted.as_deref().is_some_and(is_resting);
        let torn = noted.is_none_or(|note| is_torn(&note));
        let note = if torn { "did not end: write all of it again" } else { "did not end; readers see nothing of it" };
        if !rests {
            cleaned.push(Cleaned { kind: "update", name: names.full(&home.base), note: note.into() });
        }
        match torn {
            _ if dry_run => {}
            true => disown(names.as_ref(), &beside, &*lock)?,
            false => names.remove(&beside)?,
        }
    }
    Ok(())
}

/// What stays, since it is not believed or cannot be looked at.
fn kept(home: &Home, name: &str, why: &Fault) -> Cleaned {
    Cleaned { kind: "hidden", name: home.names.full(name), note: format!("kept: {}", why.text()) }
}

/// The lock of a marker that nobody else has locked, and what it says.
type LockedNote = (Box<dyn Lock>, Option<Vec<u8>>);

/// Locks a marker that is there, unless somebody else has.
fn locked_with_note(names: &dyn Names, marker: &str) -> Result<Option<LockedNote>, Fault> {
    match names.lock(marker)? {
        Locked::Ours(lock) => Ok(Some((lock, names.note(marker)?))),
        _ => Ok(None),
    }
}

/// Removes a new file that is found by its first name, unless its owner lives, or says that it would; gives its hidden names.
fn clean_first(home: &Home, dry_run: bool, cleaned: &mut Vec<Cleaned>) -> Result<Vec<String>, Fault> {
    let name = home.names.full(&home.first());
    let verb = if dry_run { "would be removed" } else { "removed" };
    let fate = match fate_of_first(home) {
        Ok(fate) => fate,
        Err(fault) => {
            cleaned.push(kept(home, &home.first(), &fault));
            return Ok(Vec::new());
        }
    };
    let (goes, mut note) = match &fate {
        Fate::Nothing => return Ok(Vec::new()),
        Fate::Lives => (false, "kept: in use".to_string()),
        Fate::Dead(_) => (true, format!("{verb}: its owner is dead")),
        Fate::Unknown => (true, format!("{verb}: it cannot be known here whether its owner lives")),
    };
    let hidden = home.names_with_first()?;
    drop(fate);
    if goes && !dry_run {
        let stays = recover_first(home, Whose::Unknown)?.unfinished;
        stays.iter().for_each(|left| note = format!("kept: {left}"));
    }
    cleaned.push(Cleaned { kind: "root", name, note });
    Ok(hidden)
}

/// What has the form of something hidden, but no owner is listed: what earlier versions left, or the list is lost.
fn unlisted(
    home: &Home,
    (note, known): (&[u8], &[String]),
    dry_run: bool,
    cleaned: &mut Vec<Cleaned>,
) -> Result<(), Fault> {
    let names = &*home.names;
    let owners: Vec<Owner> = lines(note).iter().filter_map(Owner::of_line).collect();
    let (directory, prefix) = home.prefix.rsplit_once('/').unwrap_or(("", &home.prefix));
    for name in names.list(directory)? {
        // Other stores may have names that begin alike.
        let Some(token) = name.strip_prefix(prefix) else { continue };
        if *token != *"partial" && !is_token(token.strip_prefix("gone-").unwrap_or(token)) {
            continue;
        }
        if owners.iter().any(|owner| owner.token == token) || known.contains(&name) {
            continue;
        }
        let path = format!("{}{token}", home.prefix);
        let locked = if names.length(&path).is_some() { path.clone() } else { format!("{path}/{OWNER}") };
        match names.check_believed(&path).and_then(|()| names.lock(&locked)) {
            Ok(Locked::Busy) => continue,
            Ok(_) => {}
            Err(fault) => {
                cleaned.push(kept(home, &path, &fault));
                continue;
            }
        }
        let verb = if dry_run { "would be removed" } else { "removed" };
        cleaned.push(Cleaned { kind: "hidden", name: names.full(&path), note: format!("{verb}: no owner is listed") });
        if !dry_run {
            names.remove(&path)?;
        }
    }
    if !dry_run {
        home.sweep();
    }
    Ok(())
}

/// Leaves a marker, which nobody else has locked, to whoever updates the thing next. What its owner noted stays: who takes
/// it over puts that out of the way.
fn disown(names: &dyn Names, marker: &str, lock: &dyn Lock) -> Result<(), Fault> {
    if lines(&names.note(marker)?.unwrap_or_default()).last().is_some_and(is_disowned) {
        return Ok(());
    }
    lock.add(&disowned_line())
}

#[cfg(test)]
mod tests {
    use super::super::clean;
    use super::*;
    use hyperslab_world::MemoryTree;

    #[test]
    fn what_has_no_owner_goes_and_what_lives_stays() {
        let tree = MemoryTree::new();
        let store = tree.below("a.zarr");
        store.make("").unwrap();
        let lives = super::super::Attempts::new(Home::beside(tree.at(&tree.full("")), "a.zarr"), 1, true, true, None);
        let step = lives.directory("step", "0001").unwrap();
        for name in [".a.zarr.hyperslab-partial/steps", "other", ".b.zarr.hyperslab-0"] {
            tree.make(name).unwrap();
        }
        let dry = clean(&store, true).unwrap();
        assert!(tree.exists(".a.zarr.hyperslab-partial"));
        let done = clean(&store, false).unwrap();
        assert_eq!(
            dry.iter().map(|one| &one.name).collect::<Vec<_>>(),
            done.iter().map(|one| &one.name).collect::<Vec<_>>()
        );
        assert!(done[0].kind == "root" && done[0].note.starts_with("kept"), "{done:?}");
        assert!(!tree.exists(".a.zarr.hyperslab-partial") && tree.exists(&step));
        assert!(tree.exists("other") && tree.exists(".b.zarr.hyperslab-0"));
        lives.end().unwrap();
        assert_eq!(clean(&store, false).unwrap(), []);
        assert_eq!(clean(&tree.below("none"), false).unwrap_err().kind, FaultKind::NotFound);
    }
}
