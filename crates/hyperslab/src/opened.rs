//! One handle for what is open, of whatever format: a group, a file, or a step of either.

use crate::arrays::Arrays;
use crate::comm::Comm;
use crate::error::Error;
use crate::file::File;
use crate::file::step::FileStep;

use crate::zarr::{Step, Store};
use hyperslab_format::attribute::{AttributeEdit, Attributes};
use std::cmp::Ordering;

/// What is open and holds arrays, of whatever format: a Zarr group, a file or a group in it, or a step of either.
///
/// Everyday verbs are those of [`Arrays`](crate::binding::Arrays), which [`Opened::arrays`] gives.
#[derive(Clone)]
pub struct Opened(What);

#[derive(Clone)]
enum What {
    Group(Store),
    Step(Step),
    File(File),
    FileStep(FileStep),
}

impl From<Store> for Opened {
    fn from(store: Store) -> Opened {
        Opened(What::Group(store))
    }
}

impl From<File> for Opened {
    fn from(file: File) -> Opened {
        Opened(What::File(file))
    }
}

impl Opened {
    /// Its arrays, and the verbs that all formats have.
    pub fn arrays(&self) -> &dyn Arrays {
        match &self.0 {
            What::Group(store) => store,
            What::Step(step) => &step.group,
            What::File(file) => file,
            What::FileStep(step) => &step.group,
        }
    }

    /// Whether it lies in a file, and is no Zarr group. Local.
    pub fn is_file(&self) -> bool {
        matches!(self.0, What::File(_) | What::FileStep(_))
    }

    /// Whether it is a step that is being written. Local.
    pub fn is_step(&self) -> bool {
        matches!(self.0, What::Step(_) | What::FileStep(_))
    }

    /// Carries out one of two, whichever it is.
    fn either<T>(
        &self,
        of_store: impl FnOnce(&Store) -> Result<T, Error>,
        of_file: impl FnOnce(&File) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &self.0 {
            What::Group(store) => of_store(store),
            What::Step(step) => of_store(&step.group),
            What::File(file) => of_file(file),
            What::FileStep(step) => of_file(&step.group),
        }
    }

    /// Opens a group of it by its path. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when there is none.
    pub fn group(&self, name: &str) -> Result<Opened, Error> {
        let opened = self.either(|store| store.group(name).map(What::Group), |file| file.group(name).map(What::File));
        opened.map(Opened)
    }

    /// Makes a group with these attributes, and opens it. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when the name is taken, or the format has no groups.
    pub fn make_group(&self, name: &str, attributes: &Attributes, may_exist: bool) -> Result<Opened, Error> {
        let made = self.either(
            |store| store.make_group(name, attributes.clone(), may_exist).map(What::Group),
            |file| file.make_group(name, attributes.clone(), may_exist).map(What::File),
        );
        made.map(Opened)
    }

    /// Begins a step, which is visible whole when it is closed, and not before. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when the name is taken, or the format has no groups.
    pub fn step(&self, name: &str, attributes: &Attributes) -> Result<Opened, Error> {
        let begun = self.either(
            |store| store.step(name, attributes.clone(), false).map(What::Step),
            |file| file.step(name, attributes.clone(), false).map(What::FileStep),
        );
        begun.map(Opened)
    }

    /// Names of the published steps; numbers in them are in the order of their values. Local.
    ///
    /// # Errors
    /// This rank's own, when storage does not answer.
    pub fn steps(&self) -> Result<Vec<String>, Error> {
        let mut names = self.either(Store::steps, |file| Ok(file.steps()))?;
        names.sort_by(|a, b| natural(a, b));
        Ok(names)
    }

    /// The last of the published steps. Local.
    ///
    /// # Errors
    /// As [`Opened::steps`].
    pub fn latest(&self) -> Result<Option<String>, Error> {
        Ok(self.steps()?.pop())
    }

    /// Deletes all but the last so many steps, the oldest first, and gives the names of those that went. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when that is none, or ranks see other steps.
    pub fn keep(&self, count: usize) -> Result<Vec<String>, Error> {
        let comm = self.comm();
        let what = format!("keep the last steps of '{}'", self.arrays().path().display());
        let gone = self.steps().and_then(|mut names| {
            let none = || Error::invalid("to keep 0 steps would delete all").with_hint("delete each by its name");
            names.truncate(names.len().saturating_sub(count));
            if count == 0 { Err(none()) } else { Ok(names) }
        });
        comm.attending(&what, gone, |gone| {
            comm.compare(&what, vec![("steps to be deleted".into(), gone.join(", "))])?;
            gone.iter().try_for_each(|name| self.arrays().delete(name))?;
            Ok(gone)
        })
    }

    /// Attributes of it. Local.
    pub fn attributes(&self) -> Attributes {
        match &self.0 {
            // Those of a step that is not published are nowhere else.
            What::FileStep(step) => step.attributes(),
            _ => self.arrays().attributes(),
        }
    }

    /// Changes attributes of an array, or of what is open where the name is empty. Collective.
    ///
    /// # Errors
    /// The same on all ranks; nothing has changed then.
    pub fn edit_attributes(&self, name: &str, edit: &AttributeEdit) -> Result<(), Error> {
        match &self.0 {
            // Those of a step are written when it is published.
            What::Step(step) if name.is_empty() => step.edit_attributes(edit),
            What::FileStep(step) if name.is_empty() => step.edit_attributes(edit),
            _ => return self.arrays().edit_attributes(name, edit),
        }
        Ok(())
    }

    /// The ranks that opened it. Local.
    pub fn comm(&self) -> &Comm {
        match &self.0 {
            What::Group(store) => store.comm(),
            What::Step(step) => step.group.comm(),
            What::File(file) => file.comm(),
            What::FileStep(step) => step.group.comm(),
        }
    }

    /// Publishes a step or a new file, or closes what is there. Collective.
    ///
    /// # Errors
    /// The same on all ranks; nothing new is visible then.
    pub fn close(self) -> Result<(), Error> {
        match self.0 {
            What::Group(store) => store.close(),
            What::Step(step) => step.publish(),
            What::File(file) => file.close(),
            What::FileStep(step) => step.publish(),
        }
    }

    /// Takes part in closing with an error of this rank: a step or a new file is given up on all ranks. Collective: other ranks
    /// call this or [`Opened::close`]. What was written to a Zarr group is published, and stays.
    ///
    /// # Errors
    /// Always where something is given up, the same on all ranks; it holds what is said here.
    pub fn give_up(self, why: impl Into<String>) -> Result<(), Error> {
        match self.0 {
            What::Group(store) => store.close(),
            What::Step(step) => step.give_up(why),
            What::File(file) => file.give_up(why),
            What::FileStep(step) => step.give_up(why),
        }
    }
}

/// A text from a digit on, or up to one.
fn split(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|first: char| first.is_ascii_digit());
    let end = text.find(|each: char| each.is_ascii_digit() != digits).unwrap_or(text.len());
    text.split_at(end)
}

/// Names in the order of the numbers in them: `step_9` comes before `step_10`.
fn natural(a: &str, b: &str) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.cmp(b);
    }
    let ((first, a), (other, b)) = (split(a), split(b));
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let by_value = || {
        let [first, other] = [first, other].map(|digits| digits.trim_start_matches('0'));
        first.len().cmp(&other.len()).then(first.cmp(other))
    };
    let order = if is_number(first) && is_number(other) { by_value() } else { Ordering::Equal };
    order.then_with(|| first.cmp(other)).then_with(|| natural(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_in_order() {
        let mut names = ["10", "9", "step_10", "step_9", "step_09", "a", "step", "99999999999999999999999", "step_9b"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            ["9", "10", "99999999999999999999999", "a", "step", "step_09", "step_9", "step_9b", "step_10"]
        );
    }
}
