//! Decisions: one put makes all that an attempt publishes visible, whoever puts the metadata then.

use super::super::home::Home;
use super::super::journal::{Entry, Noted, entries_in, half_published, journal_of};
use super::super::opening::{Opening, TURNS_MAX};
use super::super::owner::is_token;
use super::super::records::{INSIDE, MARKER, OWNER};
use super::begun::ByMetadata;
use super::claims::{DECISION, attempt_of, decision_of, line};
use hyperslab_world::{ATTEMPT_TAG, Fault, FaultKind, Locked, PutOutcome, Tags, When};

/// In the note of the owner of a root: somebody took him to be dead, and from then on he decides nothing.
const VOID: &str = "void";

impl ByMetadata {
    /// Publishes what was begun. When something else has one of the names, nothing is visible.
    pub(super) fn decide(&self, of: &Opening, entries: &[Entry]) -> Result<(), Fault> {
        let root = of.root()?;
        // From here on nobody takes a record over without asking what was decided.
        for entry in entries {
            let state = self.state();
            let record = state.begun.get(&entry.from).map(|begun| &begun.record);
            let added = record.map_or(Ok(()), |record| record.lock.add(&line(DECISION, &root)));
            added.map_err(|fault| given_up(of, entry, fault))?;
        }
        let noted: Vec<Noted> = entries.iter().map(|entry| Noted { entry: entry.clone(), over: None }).collect();
        let before = of.names().note(&format!("{root}/{OWNER}"))?.unwrap_or_default().len() as u64;
        let decided = {
            let state = of.state();
            state.made.as_ref().map_or(Ok(()), |made| made.lock.add(&journal_of(&of.home, &root, &noted)))
        };
        match decided {
            Ok(()) => {}
            Err(fault) if fault.kind == FaultKind::Busy => return Err(given_up(of, &entries[0], fault)),
            // Perhaps it was put, and perhaps it comes later: nobody may remove anything now.
            Err(fault) => return of.unless_half(Err(half_published(of.names(), &entries[0].to, &fault))),
        }
        let visible = self.make_visible(&of.home, entries);
        if let Err(fault) = visible {
            return match fault.kind {
                FaultKind::Exists => self.take_back(of, entries, before, fault),
                _ => of.unless_half(Err(half_published(of.names(), &entries[0].to, &fault))),
            };
        }
        self.end(of, entries, before).map_err(|fault| of.left_behind(&root, fault))
    }

    /// Puts the metadata of all that is published: those that others lie below come last.
    pub(super) fn make_visible(&self, home: &Home, entries: &[Entry]) -> Result<(), Fault> {
        let names = &*home.names;
        for Entry { from, to, .. } in entries {
            let (mut all, attempt) = (self.below(names, from)?, attempt_of(from));
            all.retain(|(_, name)| name.rsplit('/').next() != Some(MARKER));
            all.sort_by_key(|(_, name)| std::cmp::Reverse(name.matches('/').count()));
            for (key, name) in all {
                let Some((_, content)) = self.bucket.get(&key, None)? else { continue };
                let to = format!("{to}/{name}");
                let tags = Tags::from([(ATTEMPT_TAG.to_string(), attempt.clone())]);
                let placed = self.bucket().place(&self.key(names, &to), &content, &tags, &When::Absent)?;
                if let PutOutcome::Other(Some(head)) = placed
                    && head.tags.get(ATTEMPT_TAG) != Some(&attempt)
                {
                    let full = names.full(&to);
                    let text = format!("'{full}' exists already: another program made it meanwhile");
                    return Err(Fault::new(FaultKind::Exists, text).about(full).hint("choose another name"));
                }
            }
        }
        Ok(())
    }

    /// Takes back what is visible of a publication of which something else has a name.
    fn take_back(&self, of: &Opening, entries: &[Entry], before: u64, fault: Fault) -> Result<(), Fault> {
        let back = || {
            for Entry { from, to, .. } in entries {
                self.delete_of(of.names(), to, &[attempt_of(from).into()])?;
            }
            forget(of, before)
        };
        match back() {
            Ok(()) => Err(fault),
            Err(_) => of.unless_half(Err(half_published(of.names(), &entries[0].to, &fault))),
        }
    }

    /// Removes what is hidden of what is visible: records first, since they lead to the decision.
    fn end(&self, of: &Opening, entries: &[Entry], before: u64) -> Result<(), Fault> {
        // It is begun no more: whatever goes wrong now, nobody may take for unpublished what readers see.
        let begun: Vec<_> = entries.iter().map(|entry| self.state().begun.remove(&entry.from)).collect();
        let mut ended = Ok(());
        for (entry, begun) in entries.iter().zip(begun) {
            let unmarked = begun.map_or(Ok(()), |begun| of.unmark(begun.record, false));
            ended = ended.and(unmarked.and_then(|()| self.remove_hidden(of.names(), &entry.from)));
        }
        ended.and_then(|()| forget(of, before))
    }

    /// Carries out what an owner has decided, or sees to it that he decides nothing any more. Returns whether it was decided
    /// that this name is published.
    pub(super) fn carry_out_decided(&self, home: &Home, root: &str, name: &str) -> Result<bool, Fault> {
        // Whoever may write a record may name anything.
        let token = root.strip_prefix(INSIDE).and_then(|token| token.strip_prefix('/')).unwrap_or_default();
        if !is_token(token) {
            return Ok(false);
        }
        let entries = self.carry_out(home, root, true)?;
        Ok(entries.iter().any(|entry| entry.to == name))
    }

    /// Carries out what the owner of a root has decided; with `fenced`, he decides nothing any more from then on. Gives what
    /// was decided.
    pub(super) fn carry_out(&self, home: &Home, root: &str, fenced: bool) -> Result<Vec<Entry>, Fault> {
        let (names, owner) = (&*home.names, format!("{root}/{OWNER}"));
        for _ in 0..TURNS_MAX {
            let Locked::Ours(lock) = names.lock(&owner)? else { return Ok(Vec::new()) };
            let note = names.note(&owner)?.unwrap_or_default();
            let entries: Vec<Entry> = entries_in(home, root, &note).into_iter().map(|noted| noted.entry).collect();
            self.make_visible(home, &entries)?;
            for Entry { from, to, .. } in &entries {
                let record = format!("{to}/{MARKER}");
                // Perhaps the record is of somebody who goes on with what is visible.
                if names.note(&record)?.is_some_and(|note| decision_of(&note).as_deref() == Some(root)) {
                    names.remove(&record)?;
                }
                self.remove_hidden(names, from)?;
            }
            match if fenced { lock.add(&line(VOID, root)) } else { Ok(()) } {
                Err(fault) if fault.kind == FaultKind::Busy => {}
                done => return done.map(|()| entries),
            }
        }
        Err(Fault::new(FaultKind::Busy, format!("the owner of '{}' goes on all the time", names.full(root))))
    }
}

/// Takes what was decided out of the note of the owner, since all of it is done.
fn forget(of: &Opening, before: u64) -> Result<(), Fault> {
    let state = of.state();
    state.made.as_ref().map_or(Ok(()), |made| made.lock.cut(before))
}

/// The failure of an attempt whose record, or root, somebody else has taken.
fn given_up(of: &Opening, entry: &Entry, fault: Fault) -> Fault {
    if fault.kind != FaultKind::Busy {
        return fault;
    }
    let to = of.names().full(&entry.to);
    let text = format!("'{to}' was taken over by another owner, who took this attempt to be dead or was told to");
    Fault::new(FaultKind::Busy, text)
        .about(to)
        .hint("look who else writes the same, one at a time; open the store again")
}
