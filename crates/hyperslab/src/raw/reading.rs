//! Reading arrays of a file.

use super::RawFile;
use super::alike::{FileCall, Group, Lying, Moving};
use super::disk::follow_disk;
use crate::array::LocalArray;
use crate::course::{Call, Target};
use crate::error::Error;
use crate::holding::Holding;
use crate::planning::{Shaped, decided};
use crate::report::Report;
use hyperslab_layout::{Casting, ElementType, Policies, Section};
use hyperslab_plan::Direction;
use hyperslab_walk::Ways;
use hyperslab_world::{Fault, FaultKind, Root};
use std::borrow::Cow;
use std::sync::Arc;

/// Rank 0's side of a read.
struct Reading {
    file: RawFile,
    moving: Arc<Moving>,
    lying: Lying,
}

impl Target for Reading {
    fn prepare(&mut self, cannot: Ways) -> Result<Vec<u8>, Fault> {
        let Reading { file, moving, lying } = self;
        file.attempts.check_still_there()?;
        let (transfer, lying, wish) = (moving.transfer(cannot), lying.taken(cannot), &file.options.wish);
        let mut decision = decided(&file.comm, transfer, wish, file.held, lying, &Shaped::default())?;
        follow_disk(&mut decision.parameters, transfer, &*file.directory, (&file.name, 0))?;
        Ok(decision.told().bytes(&Root::encode(&[file.root(file.proofs.clone())])).0)
    }

    fn publish(&mut self) -> Result<Vec<u8>, Fault> {
        self.file.attempts.check_still_there().map(|()| Vec::new())
    }
}

impl RawFile {
    /// Reads arrays, or one section of each. Collective; without a distribution every rank gets everything.
    ///
    /// # Errors
    /// The same on all ranks.
    pub fn read(
        &self,
        names: &[&str],
        holding: Option<&Holding>,
        section: Option<&Section>,
        into: Option<Vec<LocalArray>>,
        casting: Casting,
    ) -> Result<(Vec<LocalArray>, Report), Error> {
        // The calls before this one may have found how ranks hold arrays.
        self.await_calls();
        let what = format!("read of {} from '{}'", crate::zarr::listed(names), self.path().display());
        let rank = self.comm.rank();
        let prepared = self.wanted(names, holding, section, into.as_deref()).and_then(|groups| {
            // Each array by its name, and each box of it.
            let stored = groups.iter().flat_map(|(group, _)| group.memory.iter().map(|_| group.first.stored.element));
            let given = into.as_deref().unwrap_or_default().chunks(holding.map_or(1, Holding::arrays).max(1));
            for ((stored, name), locals) in stored.zip(names).zip(given) {
                locals
                    .iter()
                    .try_for_each(|local| crate::casting::check_casting(name, stored, local.element, casting))?;
            }
            let each = groups.iter().flat_map(|(group, held)| group.memory.iter().map(|&memory| (memory, &**held)));
            let each = each.zip(names).map(|((memory, held), name)| (*name, memory, held));
            let (parts, locals, unfit) = crate::zarr::destinations(each, into.as_deref(), (rank, self.ranks))?;
            match unfit {
                Some(unfit) => Err(unfit),
                None => Ok((groups.into_iter().map(|(group, _)| group).collect(), parts, locals)),
            }
        });
        let (groups, parts, locals, fault) = match prepared {
            Ok((groups, parts, locals)) => (groups, parts, locals, None),
            Err(fault) => (Vec::new(), Vec::new(), Vec::new(), Some(fault.context(&what))),
        };
        let mut fields = vec![
            ("operation".to_string(), "read".to_string()),
            ("file".into(), self.path().display().to_string()),
            ("casting".into(), casting.name().into()),
        ];
        crate::described::describe(&mut fields, names.iter().map(|name| (*name, holding, section, None)));
        let call = FileCall::new(names, (groups, parts), Direction::Read, (self.ranks, Policies::default()));
        let reading = || -> Box<dyn Target> {
            Box::new(Reading { file: self.clone(), moving: call.moving.clone(), lying: call.lying() })
        };
        let report = self.comm.transfer(Call {
            what,
            fields,
            cannot: call.cannot(),
            prepared: fault,
            target: Box::new(reading),
            compile: Box::new(|_, cannot| Ok(call.compiled(cannot))),
            // Nothing, but what was read must still be there.
            publishes: true,
            at_once: self.attempts.at_once(1),
        })?;
        Ok((locals, report))
    }

    /// What is asked of arrays to read, and how ranks hold it.
    fn wanted<'h>(
        &self,
        names: &[&str],
        holding: Option<&'h Holding>,
        section: Option<&Section>,
        into: Option<&[LocalArray]>,
    ) -> Result<Vec<(Group, Cow<'h, Holding>)>, Fault> {
        let each = holding.map_or(1, Holding::arrays);
        if into.is_some_and(|arrays| arrays.len() != names.len() * each) {
            return Err(Fault::new(FaultKind::Invalid, "one array to read into is needed for each array read"));
        }
        if self.mode.writes_new() {
            return Err(Fault::new(FaultKind::Invalid, "a new file is read after it was closed")
                .hint("close it, and open it with mode r"));
        }
        let memory = |position: usize, stored: ElementType| {
            crate::zarr::memory_type(into, position * each, ElementType::native(stored.kind))
        };
        self.groups(&self.numbers(names)?, holding, section, memory)
    }
}
