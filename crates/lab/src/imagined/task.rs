//! What a rank is at while its program runs: the state machine of the call for which the program waits.

use super::driver::{CallEnd, Errand};
use super::program::RankProgram;
use hyperslab_collective::{Agreement, Call, Decision, Ending};
use hyperslab_plan::Transfer;
use hyperslab_sim::{RankWorld, Task};
use hyperslab_walk::{Awaited, Consensus, Party, Waits};
use hyperslab_world::{Desk, Fault};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What rank 0 chose for a call that moved arrays.
pub struct ChosenCall {
    /// What moved.
    pub transfer: Arc<Transfer>,
    /// How.
    pub decision: Decision,
}

/// What a program waits for.
enum At {
    /// Nothing: it runs.
    Program,
    Deciding(Box<Consensus>),
    Agreeing(Box<Agreement>),
    Moving(Box<Call>),
    Ending(Box<Ending>),
}

/// The program of a rank, in one scene.
pub(super) struct ProgramTask {
    program: Rc<RefCell<RankProgram>>,
    at: At,
    /// How far the call that moves arrays is, and who hears of it.
    part: usize,
    moved: Rc<dyn Fn(ChosenCall)>,
}

impl ProgramTask {
    pub(super) fn new(program: Rc<RefCell<RankProgram>>, moved: Rc<dyn Fn(ChosenCall)>) -> ProgramTask {
        ProgramTask { program, at: At::Program, part: 0, moved }
    }

    /// Begins what the program errands next; gives the end of the scene.
    fn begin(&mut self, errand: Errand, world: &mut RankWorld, party: &mut Party) -> Option<Result<(), Fault>> {
        let told = match errand {
            Errand::Over(result) => return Some(result),
            Errand::Decided(_) => return None,
            Errand::Later(work) => {
                world.later(work, true);
                return None;
            }
            Errand::Decide(question) => party
                .open(question)
                .map(|consensus| At::Deciding(Box::new(consensus)))
                .map_err(|fault| CallEnd::Agreed(Err(fault))),
            Errand::Agree(question, begin) => Agreement::open(party, question, Some(begin))
                .map(|agreement| At::Agreeing(Box::new(agreement)))
                .map_err(|fault| CallEnd::Agreed(Err(fault))),
            Errand::Transfer(arguments) => {
                let at = (party.rank(), world.size().ranks);
                Ok(At::Moving(Box::new(Call::new(world, at, *arguments, hyperslab::binding::decode))))
            }
            Errand::End(question, below, publish) => Ok(At::Ending(Box::new(Ending::new(question, below, publish)))),
        };
        match told {
            Ok(at) => self.at = at,
            Err(told) => self.program.borrow().channel.tell(told),
        }
        None
    }

    /// Lets a program whose call has failed come to its end: it makes no call that does not fail.
    fn give_up(&mut self, world: &mut RankWorld, party: &mut Party) -> Result<(), Fault> {
        loop {
            let errand = self.program.borrow().channel.errand()?;
            if let Some(over) = self.begin(errand, world, party) {
                return over;
            }
            if let Some(told) = self.go_on(world, party) {
                self.program.borrow().channel.tell(told);
            }
            self.at = At::Program;
        }
    }

    /// Goes on with what the program waits for; gives what it is told.
    fn go_on(&mut self, world: &mut RankWorld, party: &mut Party) -> Option<CallEnd> {
        let program = &self.program;
        match &mut self.at {
            At::Program => None,
            At::Deciding(consensus) => {
                let mut decide = || {
                    let program = program.borrow();
                    program.channel.tell(CallEnd::Decide);
                    match program.channel.errand()? {
                        Errand::Decided(decided) => decided,
                        _ => unreachable!("a program that is asked decides"),
                    }
                };
                consensus.poll(world, party, &mut decide).map(CallEnd::Agreed)
            }
            At::Agreeing(agreement) => {
                agreement.poll(world, party).map(|agreed| CallEnd::Agreed(agreed.map(|it| it.payload)))
            }
            At::Moving(call) => {
                let moved = call.poll(world, party);
                if let Some((transfer, decision)) = call.opened().filter(|_| self.part == 0) {
                    self.part = 1;
                    if party.rank() == 0 {
                        (self.moved)(ChosenCall { transfer: transfer.clone(), decision: decision.clone() });
                    }
                }
                self.part += usize::from(self.part == 1 && call.left().is_some());
                moved.map(|moved| CallEnd::Transferred(Box::new(moved)))
            }
            At::Ending(ending) => ending.poll(world, party).map(CallEnd::Ended),
        }
    }
}

impl Task for ProgramTask {
    fn poll(&mut self, world: &mut RankWorld, party: &mut Party) -> Option<Result<(), Fault>> {
        loop {
            if let At::Program = self.at {
                let errand = match self.program.borrow().channel.errand() {
                    Ok(errand) => errand,
                    Err(fault) => return Some(Err(fault)),
                };
                // What it looked at by itself costs its time, too.
                world.later(Box::new(|| ()), true);
                match self.begin(errand, world, party) {
                    Some(over) => return Some(over),
                    None => continue,
                }
            }
            let told = self.go_on(world, party)?;
            self.at = At::Program;
            self.program.borrow().channel.tell(told);
        }
    }

    fn broken(&mut self, world: &mut RankWorld, party: &mut Party, fault: Fault) -> Fault {
        let program = self.program.borrow();
        match &mut self.at {
            At::Moving(call) => {
                let fault = call.broken(world, party, fault.clone());
                program.channel.tell(CallEnd::Transferred(Box::new(Err(fault))));
            }
            At::Deciding(_) | At::Agreeing(_) => program.channel.tell(CallEnd::Agreed(Err(fault.clone()))),
            At::Ending(_) => program.channel.tell(CallEnd::Ended(Err(fault.clone()))),
            At::Program => {}
        }
        drop(program);
        self.at = At::Program;
        // The program gives up, too; what it clears up is done before it ends.
        match self.give_up(world, party) {
            Ok(()) => fault,
            Err(own) => own,
        }
    }

    fn part(&self) -> usize {
        self.part
    }
}

impl ProgramTask {
    /// What of the call waits, where it is not the program that runs.
    fn waiting(&self) -> Option<&dyn Awaited> {
        match &self.at {
            At::Program => None,
            At::Deciding(consensus) => Some(&**consensus),
            At::Agreeing(agreement) => Some(&**agreement),
            At::Moving(call) => Some(&**call),
            At::Ending(ending) => Some(&**ending),
        }
    }
}

impl Awaited for ProgramTask {
    fn waits(&self) -> Waits {
        self.waiting().map_or_else(Waits::default, Awaited::waits)
    }

    fn waits_for(&self) -> String {
        self.waiting().map_or_else(|| "its program runs".into(), Awaited::waits_for)
    }
}
