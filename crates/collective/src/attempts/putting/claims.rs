//! Records: a name belongs to who put its record, until another one puts his line behind it.

use super::super::marker::Marker;
use super::super::opening::{Opening, TURNS_MAX};
use super::super::owner::{Owner, line_of, lines};
use super::super::records::MARKER;
use super::super::records::OWNER;
use super::super::way::{Growing, New};
use super::begun::ByMetadata;
use hyperslab_world::{ATTEMPT_TAG, Claim, Fault, FaultKind, Lock, Names, fingerprint};
use serde_json::{Map, Value};
use std::sync::Arc;

/// In a line of a record: the attempt.
const ATTEMPT: &str = "attempt";
/// In a line of a record: the root whose owner is about to publish.
pub(super) const DECISION: &str = "publish";
/// In what the owner of a root notes: a name that he claims to make, and one that he makes longer.
pub(super) const MAKES: &str = "makes";
pub(super) const GROWS: &str = "grows";

/// A name that is claimed.
pub(super) struct Claimed {
    pub(super) record: Marker,
    /// The attempt that has it, and those whose objects it may replace.
    pub(super) attempts: Vec<Arc<str>>,
}

/// The attempt that has this hidden name: `TOKEN-3` of `.hyperslab/TOKEN/3-array-x`.
pub(super) fn attempt_of(hidden: &str) -> String {
    let mut parts = hidden.rsplit('/');
    let number = parts.next().and_then(|name| name.split('-').next()).unwrap_or_default();
    format!("{}-{number}", parts.next().unwrap_or_default())
}

/// The attempts that a record names.
pub(super) fn attempts_of(note: &[u8]) -> Vec<Arc<str>> {
    lines(note).iter().filter_map(|line| Some(line.get(ATTEMPT)?.as_str()?.into())).collect()
}

/// The last owner of a record.
pub(super) fn owner_of(note: &[u8]) -> Option<Owner> {
    lines(note).iter().rev().find_map(Owner::of_line)
}

/// The root of the last owner of a record, if he is about to publish.
pub(super) fn decision_of(note: &[u8]) -> Option<String> {
    Some(lines(note).last()?.get(DECISION)?.as_str()?.to_string())
}

/// A line that names one thing.
pub(super) fn line(name: &str, value: &str) -> Vec<u8> {
    let mut map = Map::new();
    map.insert(name.into(), value.into());
    // Readers see nothing of what a record tells.
    map.insert("readers".into(), "whole".into());
    line_of(map)
}

impl ByMetadata {
    /// Claims a name to make something new of it, and removes what others have left there.
    pub(super) fn claim_new(&self, of: &Opening, new: &New, hidden: &str) -> Result<Claimed, Fault> {
        // For whoever finds the root without its owner.
        of.names().write(&format!("{hidden}/{MARKER}"), &line(MAKES, new.to), false)?;
        let record = format!("{}/{MARKER}", new.to);
        let mut claimed = self.claim(of, (&record, new.of), hidden, new.overwrite)?;
        let swept =
            self.is_taken_now(of, new).and_then(|()| self.sweep_away(of.names(), new.to, &|name| name == MARKER));
        match swept {
            Ok(swept) => {
                claimed.attempts.extend(swept);
                Ok(claimed)
            }
            Err(fault) => {
                let _ = of.unmark(claimed.record, false);
                Err(fault)
            }
        }
    }

    fn is_taken_now(&self, of: &Opening, new: &New) -> Result<(), Fault> {
        if !self.has_metadata(of.names(), new.to, new.key)? {
            return Ok(());
        }
        let text = format!("'{}' exists already: another program made it meanwhile", of.names().full(new.to));
        Err(Fault::new(FaultKind::Exists, text)
            .hint("choose another name: what is there was published whole by another program or call"))
    }

    /// Claims something to make it longer. What an earlier owner was about to say of how long it is comes too late then.
    pub(super) fn claim_growing(&self, of: &Opening, growing: &Growing, hidden: &str) -> Result<Claimed, Fault> {
        if !self.state().grown.contains_key(growing.at) {
            let state = of.state();
            state.made.as_ref().map_or(Ok(()), |made| made.lock.add(&line(GROWS, growing.at)))?;
        }
        let claimed = self.claim(of, (growing.marker, growing.of), hidden, false)?;
        if claimed.attempts.len() > 1 {
            let key = format!("{}/{}", growing.at, growing.key);
            let seen = of.names().version(&key)?;
            if let Some(bytes) = of.names().read(&key)? {
                of.names().replace(&key, &bytes, &seen)?;
            }
        }
        Ok(claimed)
    }

    /// Puts a record, or takes over that of an owner who is dead, or of any, if it is wanted.
    fn claim(&self, of: &Opening, (record, shown): (&str, &str), hidden: &str, forced: bool) -> Result<Claimed, Fault> {
        let (names, own) = (of.names(), attempt_of(hidden));
        let more = [(ATTEMPT, &*own), ("readers", "whole")];
        let note = Owner::of(&of.token(), names).line(&more);
        let marker = |lock, contents: &[u8]| Marker {
            name: record.into(),
            shown: shown.into(),
            lock,
            before: None,
            earlier: Vec::new(),
            contents: fingerprint(contents),
            notes: None,
        };
        for _ in 0..TURNS_MAX {
            match names.claim(record, &note, false)? {
                Claim::Left(lock, left) => {
                    if !self.may_take(of, &left, forced, (record, shown))? {
                        continue;
                    }
                    match lock.add(&note) {
                        Ok(()) => {}
                        // Somebody else did something with it meanwhile.
                        Err(fault) if fault.kind == FaultKind::Busy => continue,
                        failed => failed?,
                    }
                    let mut attempts = vec![own.as_str().into()];
                    attempts.extend(attempts_of(&left));
                    return Ok(Claimed { record: marker(lock, &[left, note].concat()), attempts });
                }
                Claim::New(lock) => {
                    return Ok(Claimed { record: marker(lock, &note), attempts: vec![own.as_str().into()] });
                }
                Claim::Busy(left) => return Err(self.is_owned(of, &left, (record, shown))),
            }
        }
        Err(Fault::new(
            FaultKind::Busy,
            format!("'{}' is taken and given up by others all the time", names.full(record)),
        ))
    }

    /// Whether a record may be taken over: its owner is dead, or it is wanted so, and he has not decided to publish. What he
    /// has decided is carried out, after which the record is gone.
    fn may_take(&self, of: &Opening, left: &[u8], forced: bool, (record, shown): (&str, &str)) -> Result<bool, Fault> {
        let owner = owner_of(left);
        // Who has ended has removed his records before his root; such a one was put late.
        let has_ended = |owner: &Owner| !of.names().exists(&format!("{}/{OWNER}", of.home.root(&owner.token)));
        let dead = owner.as_ref().is_some_and(|owner| of.names().is_gone(&owner.process) || has_ended(owner));
        if !dead && !forced {
            return Err(self.is_owned(of, left, (record, shown)));
        }
        match decision_of(left) {
            Some(root) => {
                let name = record.strip_suffix(&format!("/{MARKER}")).unwrap_or(record);
                Ok(!self.carry_out_decided(&of.home, &root, name)?)
            }
            None => Ok(true),
        }
    }

    /// The failure of who meets a record whose owner may live.
    fn is_owned(&self, of: &Opening, left: &[u8], (record, shown): (&str, &str)) -> Fault {
        let who = owner_of(left).map_or("an owner that left no record".to_string(), |owner| owner.to_string());
        let (record, store) = (of.names().full(record), of.home.shown());
        let text = format!("'{shown}' is being written by {who}, who cannot be told to be dead: '{record}' says so");
        Fault::new(FaultKind::Busy, text).about(record).hint(format!(
            "wait until it is done; if it died, overwrite=True takes the name of a new array from it, and cleaning \
             '{store}' (hyperslab clean, ObjectMemory.clean) removes what it left"
        ))
    }

    /// Deletes what attempts have left below a name, but for names in it that are to be kept; gives these attempts.
    pub(super) fn sweep_away(
        &self,
        names: &dyn Names,
        name: &str,
        is_kept: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Arc<str>>, Fault> {
        let mut swept: Vec<Arc<str>> = Vec::new();
        for (key, inside) in self.below(names, name)? {
            if is_kept(&inside) {
                continue;
            }
            let Some(head) = self.bucket.head(&key)? else { continue };
            match head.tags.get(ATTEMPT_TAG) {
                Some(attempt) => {
                    self.bucket().remove_version(&key, &head.version)?;
                    if !swept.iter().any(|known| **known == **attempt) {
                        swept.push(attempt.as_str().into());
                    }
                }
                None => {
                    let full = names.full(&format!("{name}/{inside}"));
                    let text = format!("'{full}' is in the way: no attempt of this library put it");
                    return Err(Fault::new(FaultKind::Exists, text)
                        .about(full)
                        .hint("choose another name, or remove it yourself"));
                }
            }
        }
        Ok(swept)
    }

    /// Makes a record one's own before it is deleted, so that nobody takes it over in between. Returns whether that was done.
    pub(super) fn take_to_remove(&self, names: &dyn Names, lock: &dyn Lock) -> Result<bool, Fault> {
        let note = Owner::of(&names.token(), names).line(&[("readers", "whole")]);
        match lock.add(&note) {
            Err(fault) if fault.kind == FaultKind::Busy => Ok(false),
            added => added.map(|()| true),
        }
    }
}

/// What the owner of a root noted that he makes, or makes longer.
pub(super) fn noted(note: &[u8], what: &str) -> Vec<String> {
    lines(note).iter().filter_map(|line| line.get(what).and_then(Value::as_str).map(String::from)).collect()
}
