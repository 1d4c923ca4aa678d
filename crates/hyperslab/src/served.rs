//! The service of dedicated servers, which `hyperslab_collective::served` describes.

use crate::comm::{Comm, Member};
use crate::course::{decode, run};
use crate::recording::Noted;
use hyperslab_collective::served::{self, Served, Service};
use hyperslab_collective::{Moving, enter, syncing};
use hyperslab_real::Machine;
use hyperslab_walk::trace::Kind;
use hyperslab_walk::{Party, Question, Votes};
use hyperslab_world::{Fault, FaultKind};

impl Comm {
    /// Serves the clients until they [end](Comm::end_service) the service. What fails on this rank is an error of the
    /// clients, and the service goes on.
    ///
    /// # Errors
    /// When the service breaks off: a rank is lost, or was interrupted.
    pub fn serve(&self) -> Result<(), crate::Error> {
        let mut member = self.turn();
        let Member { machine, party, .. } = &mut *member;
        loop {
            let question = Question { what: "waiting for clients".into(), ..Question::default() };
            let noted = self.begin_note(machine, party, "", Kind::Commit);
            let told = party.agree(machine, question, || Ok(Vec::new()));
            let told = told.map(|told| (noted, told));
            match (told, party.poisoned()) {
                (Ok((noted, told)), _) => match self.serve_noted(machine, party, noted, &told) {
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    // Pieces that overlap are refused on all ranks, and the service goes on.
                    Err(fault) if party.poisoned().is_some() => return Err(fault.into()),
                    Err(_) => {}
                },
                (Err(fault), Some(_)) => return Err(fault.into()),
                // The clients know.
                (Err(_), None) => {}
            }
        }
    }

    /// Does what was decided, and records it if that is wanted. Returns whether the service goes on.
    fn serve_noted(&self, machine: &mut Machine, party: &mut Party, noted: Noted, told: &[u8]) -> Result<bool, Fault> {
        let goes_on = self.serve_one(machine, party, told);
        self.end_note(machine, party, noted, goes_on.as_ref().err());
        goes_on
    }

    /// Does what was decided. Returns whether the service goes on.
    fn serve_one(&self, machine: &mut Machine, party: &mut Party, told: &[u8]) -> Result<bool, Fault> {
        let service = Service::of(told, decode).map_err(|fault| party.abandon(machine, fault))?;
        let mut changed = false;
        let (what, outcome) = match service {
            Service::End => return Ok(false),
            Service::Nothing => return Ok(true),
            Service::Record(payload) => ("recording".to_string(), self.heed(machine, party, &payload)),
            Service::Sync(below) => {
                let walk = syncing(machine, below);
                ("sync".to_string(), run(machine, party, ("sync", walk), self.line())?.map(|_| ()))
            }
            Service::Transfer(transfer) => {
                let what = format!("end of {}", transfer.what);
                let (moved, has_changed) = self.move_for_others(machine, party, *transfer)?;
                changed = has_changed;
                (what, moved)
            }
        };
        let votes = Votes { changed, ..Votes::default() };
        let question = Question { what, fault: outcome.err(), votes, ..Question::default() };
        match (party.agree(machine, question, || Ok(Vec::new())), party.poisoned()) {
            (Err(fault), Some(_)) => Err(fault),
            _ => Ok(true),
        }
    }

    /// Moves what others hold; says, too, whether it has changed something that readers may have seen. The outer error is known to
    /// all ranks.
    fn move_for_others(
        &self,
        machine: &mut Machine,
        party: &mut Party,
        served: Served,
    ) -> Result<(Result<(), Fault>, bool), Fault> {
        let exposure = served.exposure((party.rank(), party.size()));
        let Served { what, transfer, parameters, beside, limits, roots } = served;
        party.limits = limits;
        enter(machine, roots);
        let exposure = exposure.map_err(|fault| party.abandon(machine, fault.context(&what)))?;
        let mut moving = Moving::begin(machine, party, &what, (transfer, exposure), None, (parameters, beside))?;
        let (mut result, mut steps) = (None, 0);
        party.drive(machine, &mut moving, |moving, world, party| {
            result = moving.poll(world, party);
            if std::mem::replace(&mut steps, moving.walked().steps) != steps {
                self.line().moves();
            }
            result.is_some()
        })?;
        let changed = moving.has_changed();
        result.expect("driven to its end").map(|moved| (moved.map(|_| ()), changed))
    }

    /// Ends the service, on all clients; the servers' [`Comm::serve`] returns.
    ///
    /// # Errors
    /// The failure of an earlier call that nobody heard of; the service ends all the same.
    pub fn end_service(&self) -> Result<(), crate::Error> {
        let before = self.settle("end of the service of dedicated servers");
        if self.is_poisoned() {
            return before;
        }
        let mut member = self.turn();
        let Member { machine, party, .. } = &mut *member;
        let question = Question::opening("end of the service of dedicated servers", Vec::new(), None);
        party.agree(machine, question, || Ok(served::end()))?;
        before
    }

    /// Leaves without ending the service, since this rank cannot go on: all other ranks get this as their error.
    pub fn leave_service(&self, why: &str) {
        let mut member = self.turn();
        let Member { machine, party, .. } = &mut *member;
        if party.poisoned().is_none() {
            let fault = Fault::new(FaultKind::Peer, format!("a rank left its dedicated servers: {why}"));
            party.abandon(machine, fault);
        }
    }
}
