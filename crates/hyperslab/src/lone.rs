//! A process that MPI calls the only one, though its launcher started several: those of another MPI's `mpiexec`, or of `srun`
//! without one. Each of them would write the same thing by itself, and none would know.

use crate::environment::{Launched, launched};
use hyperslab_real::mpi::MpiWire;
use hyperslab_world::{Fault, FaultKind, Location};
use std::sync::atomic::{AtomicBool, Ordering};

/// What MPI and the launcher say.
pub(crate) struct Lone {
    library: String,
    launched: Launched,
}

/// Whether this process was warned.
static TOLD: AtomicBool = AtomicBool::new(false);

impl Lone {
    /// Nothing where MPI knows of others, or the launcher of none.
    pub(crate) fn of(wire: &MpiWire) -> Option<Lone> {
        let launched = Some(wire).filter(|wire| wire.is_lone_world()).and_then(|_| launched())?;
        Some(Lone { library: wire.library().to_string(), launched })
    }

    fn text(&self) -> String {
        let Launched { ranks, known } = &self.launched;
        format!("this program was started with {ranks} ranks ({known}), but to MPI this process is alone")
    }

    fn hint(&self) -> String {
        format!(
            "start it with the mpiexec of the MPI that it uses ({}), or with the srun --mpi= that fits; a program that wants \
             this process alone says so: comm=None, or MPI_COMM_SELF",
            self.library
        )
    }

    /// Refuses to write to a place, unless nobody else has it.
    pub(crate) fn check(&self, location: &Location) -> Result<(), Fault> {
        if !matches!(location, Location::Path(_) | Location::Striped(_)) {
            return Ok(());
        }
        let text = format!("'{location}' would be written by each rank alone: {}", self.text());
        Err(Fault::new(FaultKind::Invalid, text)
            .expected(format!("a communicator of {} ranks", self.launched.ranks), "one of 1 rank")
            .hint(self.hint()))
    }

    /// What to warn of, once in a process, when something is opened to be read.
    pub(crate) fn warning(&self) -> Option<String> {
        let told = TOLD.swap(true, Ordering::Relaxed);
        (!told).then(|| format!("{}, and reads by itself\n  hint: {}", self.text(), self.hint()))
    }
}
