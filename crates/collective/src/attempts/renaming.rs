//! Publishing by a rename: what is begun lies in a hidden directory, with all its objects.

use super::clean::{Cleaned, clean_home};
use super::home::{Home, Made};
use super::journal::Entry;
use super::marker::Marker;
use super::marks::Change;
use super::opening::Opening;
use super::records::ARRAY;
use super::recover::{Found, Whose, recover_first, recover_home};
use super::way::{Growing, New, PublishWay, Small, outdated};
use hyperslab_world::{Fault, Proof, Root};

/// The way of directories.
pub(super) struct ByRename;

impl PublishWay for ByRename {
    fn end_root(&self, of: &Opening, made: Made) -> Result<(), Fault> {
        of.names().discard(&made.path);
        let removed = of.names().remove(&made.path);
        if let Err(fault) = removed
            && !of.names().is_absent(&made.path)
        {
            return Err(of.left_behind(&made.path, fault));
        }
        if of.home.has_first(&made).unwrap_or(false) {
            // The last of its names, so that its space is free at once.
            of.names().discard(&of.home.first());
        }
        let forgotten = of.forget(&made);
        drop(made);
        of.home.sweep();
        forgotten
    }

    fn is_taken(&self, of: &Opening, name: &str, _key: &str) -> Result<bool, Fault> {
        Ok(of.names().exists(name))
    }

    /// A new directory, to be published with what is in it. Of an array that may take the place of one, the name tells which.
    fn begin(&self, of: &Opening, new: &New) -> Result<String, Fault> {
        let replaced = new.kind == ARRAY && new.overwrite && of.names().exists(new.to);
        let number = Some(new.to).filter(|_| replaced).and_then(|name| of.names().identity(name).ok().flatten());
        let what = number.map_or(new.kind.into(), |(_, number)| format!("{}.{number}", new.kind));
        match replaced {
            true => of.directory_like(&what, new.of, new.to),
            false => of.directory(&what, new.of),
        }
    }

    fn renew(&self, of: &Opening, hidden: &str) -> Result<(), Fault> {
        of.names().remove(hidden)?;
        of.names().make_new(hidden).map(drop)
    }

    fn ground(&self, of: &Opening, name: &str) -> Root {
        let root = of.state().made.as_ref().map(|made| made.path.clone());
        let hidden = root.iter().filter(|root| name.strip_prefix(&***root).is_some_and(|rest| rest.starts_with('/')));
        let proofs = hidden.map(|root| Proof::Directory(of.names().full(root).into())).collect();
        Root { opening: of.opening, proofs, ..Root::new(of.names().full(name)) }
    }

    fn publish(&self, of: &Opening, entries: &[Entry]) -> Result<(), Fault> {
        of.publish_by_renames(entries)
    }

    fn discard(&self, of: &Opening, hidden: &str) {
        of.names().discard(hidden);
    }

    fn begin_growing(&self, of: &Opening, growing: &Growing) -> Result<Marker, Fault> {
        of.mark(growing.marker, growing.of, &Change::Unseen(&of.updates()?))
    }

    fn changes_units(&self, _of: &Opening, _name: &str) -> bool {
        true
    }

    /// Chunks beyond the end are replaced like any others.
    fn sweep(&self, _of: &Opening, _name: &str, _is_seen: &dyn Fn(&str) -> bool) -> Result<(), Fault> {
        Ok(())
    }

    fn erase(&self, of: &Opening, names: &[String], key: &str) -> Result<(), Fault> {
        let mut names: Vec<&String> = names.iter().collect();
        names.sort_by_key(|name| *name != key);
        of.put_out_of_sight(&names)
    }

    fn seen(&self, of: &Opening, name: &str, marked: bool) -> Result<String, Fault> {
        if marked || !of.names().exists(name) { Ok(String::new()) } else { of.names().version(name) }
    }

    fn replace(&self, of: &Opening, small: &Small, holds: &mut dyn FnMut() -> Result<(), Fault>) -> Result<(), Fault> {
        let made = of.next("metadata", "")?;
        of.names().create_like(&made, small.bytes, small.bytes.len() as u64, small.name)?;
        if small.sync {
            of.names().sync_files(std::slice::from_ref(&made))?;
        }
        let mut replace = || {
            holds()?;
            of.names().rename(&made, small.name)
        };
        if small.seen.is_empty() {
            return replace();
        }
        // Of two who saw the same, one after the other gets here.
        of.home.alone(&mut || match of.names().version(small.name)? == small.seen {
            true => replace(),
            false => Err(outdated(&of.names().full(small.name))),
        })
    }

    fn replace_all(
        &self,
        of: &Opening,
        small: &[Small],
        holds: &mut dyn FnMut() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut entries = Vec::with_capacity(small.len());
        for one in small {
            let from = of.next("metadata", "")?;
            of.names().create_like(&from, one.bytes, one.bytes.len() as u64, one.name)?;
            entries.push(Entry { from, to: one.name.into(), replaces: true });
        }
        if small.iter().any(|one| one.sync) {
            let made = entries.iter().map(|entry| entry.from.clone());
            of.names().sync_files(&made.collect::<Vec<_>>())?;
        }
        holds()?;
        of.replace_files(&entries)
    }

    fn recover(&self, home: &Home, whose: Whose) -> Result<Found, Fault> {
        Ok(recover_first(home, whose)?.and(recover_home(home, whose)?))
    }

    fn clean(&self, home: &Home, dry_run: bool, cleaned: &mut Vec<Cleaned>) -> Result<(), Fault> {
        clean_home(home, dry_run, cleaned)
    }
}
