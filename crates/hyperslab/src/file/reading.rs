//! Reading arrays of a file.

use super::File;
use super::disk::follow_disk;
use super::form::TouchedPart;
use crate::array_write::{each_holding, into_each, named, requests};
use crate::error::Error;
use crate::options::ReadOptions;
use crate::said::quoted;
use crate::selection::Sections;
use hyperslab_collective::{
    Arguments, ArrayRequest, Compared, Decision, Done, Each, LocalArray, Ownership, Report, Target,
};
use hyperslab_layout::{Casting, Policies, Section, Stored};
use hyperslab_plan::{Direction, MemoryLayout, Parameters, Transfer};
use hyperslab_world::{Fault, FaultKind, Root};
use std::sync::Arc;

/// Rank 0's side of a read.
struct Reading {
    file: File,
    stored: Vec<Stored>,
    /// Number of each array in the file, and what is read of it.
    numbers: Vec<usize>,
    sections: Sections,
}

impl Target for Reading {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        self.file.attempts.check_still_there()?;
        self.file.located(std::mem::take(&mut self.stored), &self.numbers, &self.sections, (None, false))
    }

    fn choose(&mut self, transfer: &Arc<Transfer>, laid: &[Option<MemoryLayout>]) -> Result<Decision, Fault> {
        self.file.decided(transfer, laid)
    }

    fn choose_again(&mut self, before: &Decision, laid: &[Option<MemoryLayout>]) -> Option<Decision> {
        self.file.decided_again(before, laid)
    }

    fn begin(
        &mut self,
        _stored: &mut [Stored],
        transfer: &Arc<Transfer>,
        parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        let file = &self.file;
        follow_disk(parameters, transfer, &*file.directory, (&file.name, 0))?;
        Ok(vec![file.root(file.proofs())])
    }

    fn publish(&mut self) -> Result<(), Fault> {
        self.file.attempts.check_still_there()
    }
}

impl File {
    /// Reads arrays, or one section of each. Collective; without a distribution every rank gets everything.
    ///
    /// # Errors
    /// The same on all ranks.
    pub fn read(&self, names: &[&str], options: ReadOptions) -> Result<(Vec<LocalArray>, Report), Error> {
        let ReadOptions { holding, holdings, section, into, casting, strategy } = options;
        let holdings = each_holding(holding, holdings, names.len());
        // The calls before this one may have found how ranks hold arrays.
        self.await_calls();
        let what = format!("read of {} from '{}'", crate::array_write::listed(names), self.path().display());
        let path = self.path();
        let compared = Compared::of(("read", path.clone(), strategy), move || {
            let asked = ("strategy".into(), named(strategy));
            vec![("operation".into(), "read".into()), ("file or store".into(), quoted(path.display())), asked]
        });
        let (locals, unfit) = into_each(into, &holdings);
        let unfit = unfit.or_else(|| section.check(names.len()).err());
        let mut arrays = requests(names, &holdings, &section, locals.as_deref());
        let wanted = self.readable().and_then(|()| self.numbers(names)).and_then(|numbers| {
            let stored = self.stored(&numbers);
            self.suit(&mut arrays, &stored, &section, casting).map(|()| (stored, numbers))
        });
        let ((stored, numbers), fault) = match wanted {
            Ok(wanted) => (wanted, None),
            Err(fault) => (Default::default(), Some(fault)),
        };
        let target = || -> Box<dyn Target> {
            Box::new(Reading { file: self.preferring(strategy), stored, numbers, sections: section.clone() })
        };
        let target = (self.comm.rank() == 0).then(target);
        let Done { arrays, report, .. } = self.comm.transfer(Arguments {
            what,
            compared,
            fault: fault.or(unfit),
            direction: Direction::Read,
            arrays,
            locals,
            casting,
            policies: Policies::default(),
            together: true,
            target,
            // Nothing, but what was read must still be there.
            publishes: true,
            at_once: self.attempts.at_once(1),
        })?;
        Ok((arrays, report))
    }

    /// Makes sure, before anything moves, that what is read suits the arrays that it is read into: each rank knows how arrays of
    /// a file are stored. Without a distribution, every rank gets everything.
    fn suit(
        &self,
        arrays: &mut [ArrayRequest],
        stored: &[Stored],
        sections: &Sections,
        casting: Casting,
    ) -> Result<(), Fault> {
        for (number, (array, stored)) in arrays.iter_mut().zip(stored).enumerate() {
            array.check_types(stored.element, Direction::Read, casting)?;
            if array.holding.is_none() {
                let shape = sections.of(number).map_or_else(|| stored.shape.clone(), Section::shape);
                array.holding = Some(Arc::new(Ownership::replicated(&shape, self.comm.size())?));
            }
        }
        Ok(())
    }

    /// How arrays are stored, with where the units lie that are read, or written: then those that have no place get room from
    /// this byte on; and whether readers are told then how long arrays are.
    pub(super) fn located(
        &self,
        stored: Vec<Stored>,
        numbers: &[usize],
        sections: &Sections,
        (room, lengthens): (Option<u64>, bool),
    ) -> Result<Vec<Stored>, Fault> {
        let lookups: Vec<_> = numbers.iter().map(|number| self.inside().form.lookup(*number)).collect();
        let name = self.object().into();
        let each = stored.into_iter().zip(lookups).enumerate();
        let found = each.map(|(at, (stored, lookup))| match lookup {
            Some(lookup) => {
                let touched = TouchedPart { section: sections.of(at), room, lengthens };
                lookup(stored, touched, (&*self.directory, &name))
            }
            None => Ok(stored),
        });
        // In another file nothing is where this one has it.
        found.collect::<Result<_, Fault>>().map_err(|fault| self.attempts.unless_replaced(fault))
    }

    fn readable(&self) -> Result<(), Fault> {
        if !self.is_new() {
            return Ok(());
        }
        let (text, hint) = match self.is_hidden() {
            true => (
                "a new file is read after it was closed, or flushed",
                "close it, and open it with mode 'r'; or flush() it",
            ),
            false => ("a new netCDF-4 file is read after it was closed", "close it, and open it with mode 'r'"),
        };
        Err(Fault::new(FaultKind::Invalid, text).hint(hint))
    }
}
