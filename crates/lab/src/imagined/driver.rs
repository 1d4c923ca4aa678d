//! How a program and the simulator talk: what the one errands, what the other tells.

use hyperslab::binding::Driver;
use hyperslab::{Location, Names};
use hyperslab_collective::{Arguments, Begin, Done};
use hyperslab_sim::SimNames;
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Root, Work};
use std::sync::mpsc::{Receiver, Sender, channel as queue};
use std::sync::{Arc, Mutex, PoisonError};

/// What a program errands.
pub(super) enum Errand {
    /// An agreement, for which rank 0's program decides.
    Decide(Question),
    /// What it has decided.
    Decided(Result<Vec<u8>, Fault>),
    /// An agreement, for which rank 0 works in storage.
    Agree(Question, Begin),
    /// A call that moves arrays.
    Transfer(Box<Arguments>),
    /// A call that makes durable and publishes.
    End(Question, Option<Root>, Option<(Work, bool)>),
    /// Work with names, for which it does not wait.
    Later(Box<dyn FnOnce() + Send>),
    /// Nothing more in this scene.
    Over(Result<(), Fault>),
}

/// What a program is told.
pub(super) enum CallEnd {
    /// To decide.
    Decide,
    /// How an agreement ended.
    Agreed(Result<Vec<u8>, Fault>),
    /// How a transfer ended.
    Transferred(Box<Result<Done, Fault>>),
    /// How a call ended that moved nothing.
    Ended(Result<(), Fault>),
}

/// The simulator's end.
pub(super) struct Channel {
    pub(super) errands: Receiver<Errand>,
    told: Option<Sender<CallEnd>>,
}

impl Channel {
    /// The next errand; the program runs until then.
    pub(super) fn errand(&self) -> Result<Errand, Fault> {
        self.errands.recv().map_err(|_| Fault::new(FaultKind::Peer, "the program of a rank has ended by a panic"))
    }

    pub(super) fn tell(&self, told: CallEnd) {
        if let Some(sender) = &self.told {
            // Who has ended is noticed by his next errand.
            let _ = sender.send(told);
        }
    }

    /// Tells nothing any more.
    pub(super) fn cut(&mut self) {
        self.told = None;
    }
}

/// The program's end.
pub(super) struct DriverEnd {
    names: SimNames,
    errands: Mutex<Sender<Errand>>,
    told: Mutex<Receiver<CallEnd>>,
}

/// Both ends, of a rank that sees these names.
pub(super) fn channel(names: SimNames) -> (Channel, DriverEnd) {
    let ((errands, given), (told, telling)) = (queue(), queue());
    let end = DriverEnd { names, errands: Mutex::new(errands), told: Mutex::new(telling) };
    (Channel { errands: given, told: Some(told) }, end)
}

fn over() -> Fault {
    Fault::new(FaultKind::Peer, "the simulation has ended in the middle of this call")
}

impl DriverEnd {
    pub(super) fn errand(&self, errand: Errand) {
        let _ = self.errands.lock().unwrap_or_else(PoisonError::into_inner).send(errand);
    }

    fn hear(&self) -> Result<CallEnd, Fault> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).recv().map_err(|_| over())
    }
}

impl Driver for DriverEnd {
    fn names(&self, location: &Location) -> Result<Arc<dyn Names>, Fault> {
        match location {
            Location::Path(path) => Ok(self.names.at(&path.to_string_lossy())),
            other => Err(Fault::new(FaultKind::Unsupported, format!("'{other}' is not on an imagined machine"))
                .hint("give a path; all paths are on its file system")),
        }
    }

    fn decide(&self, question: Question, decide: &mut dyn FnMut() -> Result<Vec<u8>, Fault>) -> Result<Vec<u8>, Fault> {
        self.errand(Errand::Decide(question));
        loop {
            match self.hear()? {
                CallEnd::Decide => self.errand(Errand::Decided(decide())),
                CallEnd::Agreed(agreed) => return agreed,
                _ => return Err(over()),
            }
        }
    }

    fn agree(&self, question: Question, begin: Begin) -> Result<Vec<u8>, Fault> {
        self.errand(Errand::Agree(question, begin));
        if let CallEnd::Agreed(agreed) = self.hear()? { agreed } else { Err(over()) }
    }

    fn transfer(&self, arguments: Arguments) -> Result<Done, Fault> {
        self.errand(Errand::Transfer(Box::new(arguments)));
        if let CallEnd::Transferred(moved) = self.hear()? { *moved } else { Err(over()) }
    }

    fn end(&self, question: Question, below: Option<Root>, publish: Option<(Work, bool)>) -> Result<(), Fault> {
        self.errand(Errand::End(question, below, publish));
        if let CallEnd::Ended(ended) = self.hear()? { ended } else { Err(over()) }
    }

    fn later(&self, work: Box<dyn FnOnce() + Send>) {
        self.errand(Errand::Later(work));
    }
}
