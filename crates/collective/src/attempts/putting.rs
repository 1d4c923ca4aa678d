//! Publishing by metadata, in object stores: nothing can be renamed, and each object is put if its key is free.
//!
//! ```text
//! .hyperslab/TOKEN/owner                     a root: who owns it, and what he has decided to publish
//! .hyperslab/TOKEN/1-array-x/zarr.json       metadata of what is begun, until it is published
//! x/.hyperslab-update                        a record: who makes x
//! x/c/0/0                                    a chunk, under its final key; it carries the attempt, TOKEN-1
//! x/zarr.json                                comes last
//! ```
//!
//! A name belongs to who put its record. Another one takes it over by a put over the version that he saw, when the owner is
//! known to be dead or the user wants it so; then he may replace what the attempts in the record have put, by puts over the
//! version that he sees, and nobody else may. So what a stopped owner puts late meets a key that is taken, or is replaced.
//!
//! Publishing is decided by one put. Who publishes notes in his records that he is about to, puts what he publishes into the
//! note of his root, and only then puts metadata. Who wants to take over such a record changes or deletes that note first:
//! one of the two puts is first, and makes the other one fail. What was decided is carried out by whoever meets it, so no
//! metadata of an attempt come after others have taken its name.

mod begun;
mod claims;
mod decisions;
mod left;

use super::clean::Cleaned;
use super::home::{Home, Made};
use super::journal::Entry;
use super::marker::Marker;
use super::marks::Change;
use super::opening::Opening;
use super::records::MARKER;
use super::recover::{Found, Whose};
use super::way::{Growing, New, PublishWay, Small, outdated};
use begun::Begun;
pub(super) use begun::ByMetadata;
use claims::Claimed;
use hyperslab_world::{Fault, FaultKind, Root};

impl PublishWay for ByMetadata {
    fn end_root(&self, of: &Opening, made: Made) -> Result<(), Fault> {
        let left: Vec<String> = self.state().begun.keys().cloned().collect();
        left.iter().for_each(|hidden| self.discard(of, hidden));
        self.remove_hidden(of.names(), &made.path).map_err(|fault| of.left_behind(&made.path, fault))
    }

    fn is_taken(&self, of: &Opening, name: &str, key: &str) -> Result<bool, Fault> {
        self.has_metadata(of.names(), name, key)
    }

    fn begin(&self, of: &Opening, new: &New) -> Result<String, Fault> {
        let hidden = of.next(new.kind, new.of)?;
        if new.overwrite && self.is_taken(of, new.to, new.key)? {
            let text = format!("'{}' exists already, and an object store cannot replace it at once", new.of);
            return Err(Fault::new(FaultKind::Unsupported, text).hint("write it under another name, or in a new step"));
        }
        let Claimed { record, attempts } = self.claim_new(of, new, &hidden)?;
        self.state().begun.insert(hidden.clone(), Begun { to: new.to.into(), attempts, record });
        Ok(hidden)
    }

    fn renew(&self, of: &Opening, hidden: &str) -> Result<(), Fault> {
        let Some((to, attempts)) = self.inside(hidden) else { return Ok(()) };
        self.remove_hidden(of.names(), hidden)?;
        self.delete_of(of.names(), &to, &attempts)
    }

    fn ground(&self, of: &Opening, name: &str) -> Root {
        let grown = || (name.to_string(), self.state().grown.get(name).cloned().unwrap_or_default());
        let (at, attempts) = self.inside(name).unwrap_or_else(grown);
        Root { opening: of.opening, attempts, ..Root::new(of.names().full(&at)) }
    }

    fn publish(&self, of: &Opening, entries: &[Entry]) -> Result<(), Fault> {
        self.decide(of, entries)
    }

    fn discard(&self, of: &Opening, hidden: &str) {
        let Some(Begun { to, attempts, record }) = self.state().begun.remove(hidden) else {
            // Something in it, perhaps.
            return drop(self.renew(of, hidden));
        };
        // The record goes last: as long as it stands, nobody else begins the same. What is left is removed by who does.
        let own = &attempts[..attempts.len().min(1)];
        let removed = self.delete_of(of.names(), &to, own).and_then(|()| self.remove_hidden(of.names(), hidden));
        if removed.is_ok() {
            let _ = of.unmark(record, false);
        }
    }

    fn begin_growing(&self, of: &Opening, growing: &Growing) -> Result<Marker, Fault> {
        if self.inside(growing.at).is_some() {
            return of.mark(growing.marker, growing.of, &Change::Unseen(&of.updates()?));
        }
        // The root must be there before the record names it.
        let hidden = of.next("append", growing.of)?;
        let Claimed { record, attempts } = self.claim_growing(of, growing, &hidden)?;
        self.state().grown.insert(growing.at.to_string(), attempts);
        Ok(record)
    }

    /// What nobody sees is this attempt's alone.
    fn changes_units(&self, _of: &Opening, name: &str) -> bool {
        self.inside(name).is_some()
    }

    fn sweep(&self, of: &Opening, name: &str, is_seen: &dyn Fn(&str) -> bool) -> Result<(), Fault> {
        if self.inside(name).is_some() {
            return Ok(());
        }
        let swept = self.sweep_away(of.names(), name, &|inside| inside == MARKER || is_seen(inside))?;
        if let Some(attempts) = self.state().grown.get_mut(name) {
            attempts.extend(swept);
        }
        Ok(())
    }

    /// Metadata first: whoever reads meanwhile finds less and less, and nothing by half. Only what was there at the beginning:
    /// what somebody changes or makes anew meanwhile stays, and then nothing of what it describes is erased.
    fn erase(&self, of: &Opening, names: &[String], key: &str) -> Result<(), Fault> {
        self.check_idle(&of.home)?;
        // By the root it is known to be a store, though it has lost its metadata.
        of.root()?;
        let each = names.iter().map(|name| self.below(of.names(), name));
        let mut keys: Vec<String> = Vec::new();
        each.collect::<Result<Vec<_>, Fault>>()?.into_iter().flatten().for_each(|(key, _)| keys.push(key));
        keys.extend(names.iter().map(|name| self.key(of.names(), name)));
        let is_metadata = |name: &str| name.rsplit('/').next() == Some(key);
        keys.sort_by_key(|key| (!is_metadata(key), key.matches('/').count()));
        let heads = keys.into_iter().map(|key| Ok(self.bucket.head(&key)?.map(|head| (key, head.version))));
        let seen: Vec<(String, String)> = heads.filter_map(Result::transpose).collect::<Result<_, Fault>>()?;
        for (name, version) in &seen {
            if !self.bucket().remove_version(name, version)? && is_metadata(name) {
                return Err(outdated(&format!("{}/{name}", self.bucket.label())));
            }
        }
        Ok(())
    }

    fn seen(&self, of: &Opening, name: &str, _marked: bool) -> Result<String, Fault> {
        of.names().version(name)
    }

    fn replace(&self, of: &Opening, small: &Small, holds: &mut dyn FnMut() -> Result<(), Fault>) -> Result<(), Fault> {
        holds()?;
        if of.names().replace(small.name, small.bytes, small.seen)? {
            return Ok(());
        }
        Err(outdated(&of.names().full(small.name)))
    }

    fn replace_all(
        &self,
        of: &Opening,
        small: &[Small],
        _holds: &mut dyn FnMut() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let names: Vec<String> = small.iter().map(|one| of.names().full(one.name)).collect();
        let text = format!("{} would change together, which an object store cannot do", names.join(", "));
        Err(Fault::new(FaultKind::Unsupported, text).hint("append to one array in each call"))
    }

    fn recover(&self, home: &Home, whose: Whose) -> Result<Found, Fault> {
        self.look_after(home, whose)
    }

    fn clean(&self, home: &Home, dry_run: bool, cleaned: &mut Vec<Cleaned>) -> Result<(), Fault> {
        self.clean_away(home, dry_run, cleaned)
    }
}
