//! What a profile lacks, and what it has too much.

use super::{Document, EDITS, is_number};
use crate::profile::error::{Fault, ProfileError};
use crate::profile::quantity::describe;
use crate::profile::similar::closest;
use crate::profile::source::Constant;
use toml::de::DeValue;

/// Edits between a key that is missing and one that may be meant for it, which may also be a key that is yet to be read:
/// these are at least two edits apart.
const ONE_EDIT: usize = 1;

/// A dotted key in parts: its section, which is empty at the top, and its name there.
fn parted(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

impl Document<'_> {
    /// All was asked: nothing may be left, in the file or among the factors.
    pub(in crate::profile) fn finish(self) -> Result<Vec<Constant>, ProfileError> {
        let keys = || self.constants.iter().map(|constant| constant.key.as_str());
        if let Some((key, _)) = self.scale.iter().find(|(key, _)| keys().all(|known| known != key)) {
            let hint = closest(key, keys(), EDITS).map(|known| format!("did you mean `{known}`?"));
            let hint = hint.unwrap_or_else(|| format!("numbers are {}", keys().collect::<Vec<_>>().join(" ")));
            return Err(self.error(key, Fault::new("no such number, whose factor was given", hint)));
        }
        match self.entries.keys().find(|key| !self.is_known(key)) {
            Some(key) => Err(self.unknown(key)),
            None => Ok(self.constants),
        }
    }

    /// Whether a key, or one in the section of that name, was asked for.
    fn is_known(&self, key: &str) -> bool {
        self.asked.contains(key) || {
            let section = format!("{key}.");
            self.asked.range(&*section..).next().is_some_and(|known| known.starts_with(&section))
        }
    }

    /// The error of a value of another type.
    pub(super) fn unexpected(&self, key: &str, expected: &str, found: &DeValue<'_>, hint: &str) -> ProfileError {
        self.error(key, Fault::new(format!("expected {expected}, found {}", describe(found)), hint))
    }

    /// The error of a key that is not there.
    pub(super) fn missing(&self, key: &str, expected: &str, example: &str) -> ProfileError {
        let (section, name) = parted(key);
        match self.entries.get(section).map(|value| value.get_ref()) {
            None if !section.is_empty() => return self.missing_section(section),
            Some(DeValue::Table(inner)) if is_number(inner) => {
                return self.error(section, Fault::new("expected a section, found a number with its source", ""));
            }
            Some(DeValue::Table(_)) | None => {}
            Some(other) => return self.unexpected(section, "a section", other, &format!("begin it with [{section}]")),
        }
        let hint = match closest(key, self.unasked(), ONE_EDIT) {
            Some(meant) => format!("is `{meant}`, which is no key, meant for it?"),
            None if section.is_empty() => format!("write {name} = {example} at the top"),
            None => format!("write {name} = {example} below [{section}]"),
        };
        self.error(key, Fault::new(format!("missing; expected {expected}"), hint))
    }

    fn missing_section(&self, section: &str) -> ProfileError {
        let hint = match closest(section, self.unasked(), ONE_EDIT) {
            Some(meant) => format!("is [{meant}] meant for it?"),
            None => format!("begin it with [{section}]; docs/machines.md lists its keys"),
        };
        self.error(section, Fault::new("missing section", hint))
    }

    /// Keys of the file that were not asked for yet.
    fn unasked(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str).filter(|key| !self.is_known(key))
    }

    /// The error of a key that nobody asked for.
    fn unknown(&self, key: &str) -> ProfileError {
        let section = parted(key).0;
        let siblings = self.asked.iter().map(|known| parted(known)).filter(|known| known.0 == section);
        let names: Vec<&str> = siblings.map(|known| known.1).collect();
        let what = match self.entries.get(key).map(|value| value.get_ref()) {
            Some(DeValue::Table(inner)) if !is_number(inner) => "unknown section",
            _ => "unknown key",
        };
        let meant = closest(key, self.asked.iter().copied(), EDITS).map(|known| format!("did you mean `{known}`? "));
        let place = match section {
            "" => "the top".to_owned(),
            _ => format!("[{section}]{}", self.kind(section)),
        };
        let hint = format!("{}keys of {place} are {}", meant.unwrap_or_default(), names.join(" "));
        self.error(key, Fault::new(what, hint))
    }

    /// The choice that decides which keys a section has.
    fn kind(&self, section: &str) -> String {
        let kind = |name| match self.entries.get(&format!("{section}.{name}")).map(|value| value.get_ref()) {
            Some(DeValue::String(kind)) => Some(format!(" with {name} = {kind:?}")),
            _ => None,
        };
        kind("kind").or_else(|| kind("layout")).unwrap_or_default()
    }
}
