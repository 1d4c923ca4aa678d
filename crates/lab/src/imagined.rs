//! Programs of the library on imagined machines: ranks that open stores, write steps and publish them, by the code that
//! does so for users.
//!
//! A rank's program runs on a thread of its own, as it would in a process, and waits there for each of its collective calls,
//! which the simulator carries out in virtual time. Never do two of all these threads run at the same time: the simulator
//! waits for a program until that asks for something again, which takes no virtual time.
//!
//! ```text
//! program (thread)                     simulator (one for all)
//! store.write(...) ------- errand ------>  Call::poll ... events ... Call::poll
//!                  <------ told -------  its outcome
//! ```

mod driver;
mod program;
mod task;

use hyperslab_plan::profile::Profile;
use hyperslab_sim::Scene;
use program::RankProgram;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use task::ProgramTask;

pub use program::{ProgramPart, ProgramState};
pub use task::ChosenCall;

/// The programs of all ranks.
#[derive(Clone)]
pub struct Programs {
    profile: Arc<Profile>,
    all: Rc<RefCell<BTreeMap<u32, Rc<RefCell<RankProgram>>>>>,
}

impl Programs {
    /// Programs for a machine of this profile, none of which runs yet.
    pub fn new(profile: Profile) -> Programs {
        Programs { profile: Arc::new(profile), all: Rc::default() }
    }

    /// A scene in which each rank does this with the library. Where that is a call that moves arrays, it has three parts, and
    /// `moved` hears on rank 0 what was chosen.
    pub fn scene(&self, moves: bool, part: ProgramPart, moved: Rc<dyn Fn(ChosenCall)>) -> Scene {
        let programs = self.clone();
        Scene::new(if moves { 3 } else { 1 }, move |world, party| {
            let rank = party.rank();
            let known = programs.all.borrow().get(&rank).cloned();
            let program = match known {
                Some(program) => program,
                None => {
                    let started = Rc::new(RefCell::new(RankProgram::start(world, rank, &programs.profile)?));
                    programs.all.borrow_mut().insert(rank, started.clone());
                    started
                }
            };
            program.borrow().go_on(part.clone())?;
            Ok(Some(Box::new(ProgramTask::new(program.clone(), moved.clone()))))
        })
    }
}
