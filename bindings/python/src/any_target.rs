//! What is open, and what groups and files of Zarr and HDF5 do each in their way.

use hyperslab::binding::{Arrays, Unpublished};
use hyperslab::{AttributeEdit, Attributes, Error, File, FileStep, Step, Store};

/// A group of its own, a file of arrays or a group of it, or the step of either.
#[derive(Clone)]
pub(crate) enum AnyTarget {
    Group(Store),
    Step(Step),
    File(File),
    FileStep(FileStep),
}

impl AnyTarget {
    pub(crate) fn arrays(&self) -> &dyn Arrays {
        match self {
            AnyTarget::Group(store) => store,
            AnyTarget::Step(step) => &step.group,
            AnyTarget::File(file) => file,
            AnyTarget::FileStep(step) => &step.group,
        }
    }

    pub(crate) fn store(&self) -> Option<&Store> {
        match self {
            AnyTarget::Group(store) => Some(store),
            AnyTarget::Step(step) => Some(&step.group),
            AnyTarget::File(_) | AnyTarget::FileStep(_) => None,
        }
    }

    pub(crate) fn file(&self) -> Option<&File> {
        match self {
            AnyTarget::File(file) => Some(file),
            AnyTarget::FileStep(step) => Some(&step.group),
            AnyTarget::Group(_) | AnyTarget::Step(_) => None,
        }
    }

    pub(crate) fn is_step(&self) -> bool {
        matches!(self, AnyTarget::Step(_) | AnyTarget::FileStep(_))
    }

    /// Whether it is something new, of which readers see nothing until it is ended.
    pub(crate) fn is_new(&self) -> bool {
        match self {
            AnyTarget::Step(_) | AnyTarget::FileStep(_) => true,
            AnyTarget::File(file) => file.unpublished().is_some() && file.is_whole(),
            AnyTarget::Group(_) => false,
        }
    }

    /// Whether this rank may end it without others, and nothing that it asked for has failed.
    pub(crate) fn ends_alone(&self) -> bool {
        let comm = match self {
            AnyTarget::Group(store) => store.comm(),
            AnyTarget::Step(step) => step.group.comm(),
            AnyTarget::File(file) => file.comm(),
            AnyTarget::FileStep(step) => step.group.comm(),
        };
        let failed = self.unpublished().is_some_and(Unpublished::has_failed);
        !failed && comm.size() == 1 && comm.servers() == 0 && !comm.is_in_call()
    }

    fn unpublished(&self) -> Option<&Unpublished> {
        match self {
            AnyTarget::Group(_) => None,
            AnyTarget::Step(step) => step.unpublished(),
            AnyTarget::File(file) => file.unpublished(),
            AnyTarget::FileStep(step) => step.unpublished(),
        }
    }

    /// A call on it has failed.
    pub(crate) fn fail(&self) {
        let above = if let AnyTarget::FileStep(step) = self { step.group.unpublished() } else { None };
        self.unpublished().into_iter().chain(above).for_each(Unpublished::fail);
    }

    /// What it is, for messages.
    pub(crate) fn told(&self) -> String {
        let path = self.arrays().path();
        if self.is_step() { format!("step '{}'", path.display()) } else { format!("'{}'", path.display()) }
    }

    /// Carries out one of two, whichever it is.
    fn either<T>(
        &self,
        of_store: impl FnOnce(&Store) -> Result<T, Error>,
        of_file: impl FnOnce(&File) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self {
            AnyTarget::Group(store) => of_store(store),
            AnyTarget::Step(step) => of_store(&step.group),
            AnyTarget::File(file) => of_file(file),
            AnyTarget::FileStep(step) => of_file(&step.group),
        }
    }

    pub(crate) fn group(&self, name: &str) -> Result<AnyTarget, Error> {
        self.either(|store| store.group(name).map(AnyTarget::Group), |file| file.group(name).map(AnyTarget::File))
    }

    pub(crate) fn make_group(&self, name: &str, attributes: &Attributes, may_exist: bool) -> Result<AnyTarget, Error> {
        self.either(
            |store| store.make_group(name, attributes.clone(), may_exist).map(AnyTarget::Group),
            |file| file.make_group(name, attributes.clone(), may_exist).map(AnyTarget::File),
        )
    }

    pub(crate) fn step(&self, name: &str, attributes: &Attributes, hooked: bool) -> Result<AnyTarget, Error> {
        self.either(
            |store| store.step(name, attributes.clone(), hooked).map(AnyTarget::Step),
            |file| file.step(name, attributes.clone(), hooked).map(AnyTarget::FileStep),
        )
    }

    /// Names of the published steps.
    pub(crate) fn steps(&self) -> Result<Vec<String>, Error> {
        self.either(Store::steps, |file| Ok(file.steps()))
    }

    pub(crate) fn attributes(&self) -> Attributes {
        match self {
            // Those of a step that is not published are nowhere else.
            AnyTarget::FileStep(step) => step.attributes(),
            opened => opened.arrays().attributes(),
        }
    }

    /// Changes attributes of an array, or of what is open where the name is empty.
    pub(crate) fn edit_attributes(&self, name: &str, edit: &AttributeEdit) -> Result<(), Error> {
        match self {
            // Those of a step are written when it is published.
            AnyTarget::Step(step) if name.is_empty() => step.edit_attributes(edit),
            AnyTarget::FileStep(step) if name.is_empty() => step.edit_attributes(edit),
            opened => return opened.arrays().edit_attributes(name, edit),
        }
        Ok(())
    }

    /// Makes what was written to a step durable.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        match self {
            AnyTarget::Step(step) => step.sync(),
            AnyTarget::FileStep(step) => step.sync(),
            AnyTarget::Group(_) | AnyTarget::File(_) => Ok(()),
        }
    }

    /// Publishes a step or a new file, or closes what is there; with a fault, gives it up.
    pub(crate) fn end(self, fault: Option<String>) -> Result<(), Error> {
        match (self, fault) {
            (AnyTarget::Step(step), None) => step.publish(),
            (AnyTarget::Step(step), Some(why)) => step.give_up(why),
            (AnyTarget::FileStep(step), None) => step.publish(),
            (AnyTarget::FileStep(step), Some(why)) => step.give_up(why),
            (AnyTarget::File(file), None) => file.close(),
            (AnyTarget::File(file), Some(why)) => file.give_up(why),
            (AnyTarget::Group(store), None) => store.close(),
            // What it wrote is published, and other ranks may not come.
            (AnyTarget::Group(_), Some(_)) => Ok(()),
        }
    }

    /// Gives a step or a new file up, without the other ranks, who know.
    pub(crate) fn discard(self) {
        match self {
            AnyTarget::Step(step) => step.discard(),
            AnyTarget::FileStep(step) => step.discard(),
            AnyTarget::File(file) => file.discard(),
            AnyTarget::Group(_) => {}
        }
    }
}
