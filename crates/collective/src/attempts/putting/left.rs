//! What other owners left in an object store.

use super::super::clean::Cleaned;
use super::super::home::Home;
use super::super::journal::{entries_in, in_store};
use super::super::owner::{Owner, is_token, lines};
use super::super::records::MARKER;
use super::super::records::{INSIDE, OWNER, is_attempt, path_of};
use super::super::recover::{Found, Whose};
use super::begun::ByMetadata;
use super::claims::{GROWS, MAKES, attempts_of, noted, owner_of};
use crate::naming::is_path;
use hyperslab_world::{Fault, FaultKind, Locked, Names};

/// A root of somebody's.
struct Left {
    /// Its name.
    root: String,
    note: Vec<u8>,
    /// Its owner; none if nothing says who it is.
    owner: Option<Owner>,
    /// Whether he lives, as far as anybody here knows.
    lives: Option<bool>,
}

impl ByMetadata {
    /// The roots in a store.
    fn left(&self, home: &Home) -> Result<Vec<Left>, Fault> {
        let tokens = home.names.list(INSIDE)?.into_iter().filter(|token| is_token(token));
        let left = tokens.map(|token| {
            let root = home.root(&token);
            let note = home.names.note(&format!("{root}/{OWNER}"))?.unwrap_or_default();
            let owner = lines(&note).first().and_then(Owner::of_line);
            let lives = owner.as_ref().map_or(Some(false), |owner| self.bucket.lives(&owner.process));
            Ok(Left { root, note, owner, lives })
        });
        left.collect()
    }

    /// Rolls forward or removes what owners left.
    pub(super) fn look_after(&self, home: &Home, whose: Whose) -> Result<Found, Fault> {
        let mut found = Found::default();
        // Beside a store nothing of it lies.
        let all = if home.is_inside() { self.left(home)? } else { Vec::new() };
        for left in all {
            let shown = || {
                let who = left.owner.as_ref().map_or("somebody".into(), Owner::to_string);
                format!("what {who} left in '{}'", home.names.full(&left.root))
            };
            match (left.lives, whose) {
                (Some(true), _) => {}
                (_, Whose::Named) => {
                    let noted = entries_in(home, &left.root, &left.note);
                    found.unfinished.extend(noted.iter().map(|noted| in_store(home, &noted.entry.to).to_string()));
                }
                (None, Whose::Dead) => {
                    // What is decided may be carried out by anybody.
                    self.carry_out(home, &left.root, false)?;
                    found.unfinished.push(shown());
                }
                _ => match self.bury(home, &left, &mut found) {
                    Ok(()) => {}
                    Err(fault) => found.unfinished.push(format!("{}: {}", shown(), fault.text())),
                },
            }
        }
        Ok(found.and(Found::default()))
    }

    /// Names that an owner has claimed to make something new of.
    fn makes(&self, names: &dyn Names, left: &Left) -> Result<Vec<String>, Fault> {
        let mut makes = Vec::new();
        for name in names.list(&left.root)?.iter().filter(|name| is_attempt(name)) {
            let note = names.note(&format!("{}/{name}/{MARKER}", left.root))?.unwrap_or_default();
            makes.extend(noted(&note, MAKES).into_iter().filter(|name| is_path(name)));
        }
        Ok(makes)
    }

    /// Ends what an owner left: carries out what he decided, and removes the rest.
    fn bury(&self, home: &Home, left: &Left, found: &mut Found) -> Result<(), Fault> {
        let names = &*home.names;
        let of_owner =
            |owner: Option<Owner>| owner.map(|owner| owner.token) == left.owner.as_ref().map(|own| own.token.clone());
        self.carry_out(home, &left.root, true)?;
        for to in self.makes(names, left)? {
            let record = format!("{to}/{MARKER}");
            let Some(note) = names.note(&record)?.filter(|note| of_owner(owner_of(note))) else { continue };
            let Locked::Ours(lock) = names.lock(&record)? else { continue };
            // Whoever took it over in between has his line in it.
            if names.note(&record)?.as_ref() == Some(&note) && self.take_to_remove(names, &*lock)? {
                self.delete_of(names, &to, &attempts_of(&note))?;
                names.remove(&record)?;
            }
        }
        for at in noted(&left.note, GROWS).into_iter().filter(|at| is_path(at)) {
            // Nobody sees what lies behind its end; who makes it longer next removes that.
            let record = format!("{at}/{MARKER}");
            if names.note(&record)?.is_some_and(|note| of_owner(owner_of(&note)))
                && let Locked::Ours(lock) = names.lock(&record)?
                && names.note(&record)?.is_some_and(|note| of_owner(owner_of(&note)))
                && self.take_to_remove(names, &*lock)?
            {
                names.remove(&record)?;
            }
        }
        for name in names.list(&left.root)?.iter().filter(|name| is_attempt(name)) {
            let mut parts = name.splitn(3, '-').skip(1);
            let is_new = parts.next().is_some_and(|kind| matches!(kind, "step" | "array"));
            found.removed.extend(parts.next().filter(|_| is_new).map(path_of));
        }
        self.remove_hidden(names, &left.root)
    }

    /// Makes sure that nobody makes anything in the store who may live.
    pub(super) fn check_idle(&self, home: &Home) -> Result<(), Fault> {
        for left in self.left(home)?.iter().filter(|left| left.lives != Some(false)) {
            let names = &*home.names;
            let claimed = self.makes(names, left)?.into_iter().chain(noted(&left.note, GROWS));
            for name in claimed {
                let note = names.note(&format!("{name}/{MARKER}"))?;
                let token = note.and_then(|note| owner_of(&note)).map(|owner| owner.token);
                if token.is_some() && token == left.owner.as_ref().map(|owner| owner.token.clone()) {
                    let who = left.owner.as_ref().map_or("another owner".into(), Owner::to_string);
                    let text = format!("'{}' is being written by {who}", names.full(&name));
                    return Err(Fault::new(FaultKind::Busy, text).hint(format!(
                        "wait until it is done; if it died, cleaning '{}' (hyperslab clean, ObjectMemory.clean) removes what \
                         it left",
                        home.shown()
                    )));
                }
            }
        }
        Ok(())
    }

    /// Removes what is hidden, but for what owners have who live.
    pub(super) fn clean_away(&self, home: &Home, dry_run: bool, cleaned: &mut Vec<Cleaned>) -> Result<(), Fault> {
        if !home.is_inside() {
            return Ok(());
        }
        let verb = if dry_run { "would be removed" } else { "removed" };
        for left in self.left(home)? {
            let who = left.owner.as_ref().map_or("an owner that left no record".into(), Owner::to_string);
            let note = match left.lives {
                Some(true) => format!("kept: in use by {who}"),
                Some(false) => format!("{verb}: {who} is dead"),
                None => format!("{verb}: it cannot be known here whether {who} lives"),
            };
            cleaned.push(Cleaned { kind: "root", name: home.names.full(&left.root), note });
        }
        if dry_run { Ok(()) } else { self.look_after(home, Whose::Unknown).map(drop) }
    }
}
