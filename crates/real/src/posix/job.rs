//! Requests that are carried out beside others, by the threads of a queue.

use super::content::{CHECKED_BLOCK_BYTES, Source};
use super::direct::{DirectWriter, Failure, Way};
use super::handle::Handle;
use super::mapped;
use super::sieve::Sieve;
use super::windows;
use crate::doing::{Doing, done};
use crate::stripes::Stripes;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::mpsc::Sender;
use crate::sync::{Mutex, lock};
use crate::wire::Bell;
use hyperslab_pack::try_for_each_run;
use hyperslab_world::{Fault, FaultKind, Moves, Outcome, PartSum, Ticket};
use std::io::ErrorKind;
use std::sync::{Arc, PoisonError};

/// A request that is over.
pub(super) type Finished = (Ticket, Result<Outcome, Fault>);

/// Where outcomes go.
#[derive(Clone)]
pub(super) struct Answers {
    outbox: Sender<Finished>,
    bell: Bell,
    /// Set when nothing may begin any more.
    cut: Arc<AtomicBool>,
}

impl Answers {
    pub(super) fn new(outbox: Sender<Finished>, bell: Bell) -> Answers {
        Answers { outbox, bell, cut: Arc::default() }
    }

    /// Lets nothing begin any more: who asked for it has given up, and others may write there by now.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Release);
    }

    /// Why nothing may begin any more, if so.
    pub(super) fn begin(&self) -> Result<(), Fault> {
        if !self.cut.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Fault::new(FaultKind::Poisoned, "an earlier failure left this handle unusable"))
    }

    /// Tells how a request ended; says whether anybody listens.
    pub(super) fn send(&self, ticket: Ticket, result: Result<Outcome, Fault>) -> bool {
        let heard = self.outbox.send((ticket, result)).is_ok();
        self.bell.ring();
        heard
    }
}

/// The answer to one request, which is given when its last part is over.
pub(super) struct Answer {
    answers: Answers,
    ticket: Ticket,
    bytes: u64,
    parts: Mutex<Parts>,
}

struct Parts {
    left: usize,
    calls: u64,
    /// Whether a part was written, or may have been.
    touched: bool,
    fault: Option<Fault>,
}

impl Answer {
    /// For a request of so many bytes in so many parts.
    pub(super) fn new(answers: &Answers, ticket: Ticket, bytes: u64, parts: usize) -> Arc<Answer> {
        let parts = Mutex::new(Parts { left: parts, calls: 0, touched: false, fault: None });
        Arc::new(Answer { answers: answers.clone(), ticket, bytes, parts })
    }

    /// A part is over, after so many calls.
    fn part(&self, result: Result<u64, Fault>) {
        let mut parts = lock(&self.parts);
        parts.left -= 1;
        parts.touched |= result.as_ref().map_or_else(|fault| !fault.unchanged, |&calls| calls > 0);
        match result {
            Ok(calls) => parts.calls += calls,
            Err(fault) => drop(parts.fault.get_or_insert(fault)),
        }
    }
}

impl Drop for Answer {
    /// All parts are over, or will never be.
    fn drop(&mut self) {
        let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
        let lost = || Fault::new(FaultKind::Peer, "a thread that serves the store is gone, or the system gives none");
        let result = match parts.fault.take() {
            Some(fault) => {
                let unchanged = fault.unchanged && !parts.touched && parts.left == 0;
                Err(fault.leaving_unchanged(unchanged))
            }
            None if parts.left > 0 => Err(lost()),
            None => Ok(done(self.bytes, parts.calls)),
        };
        self.answers.send(self.ticket, result);
    }
}

/// That a file holds only one directory's part of an object.
pub(super) struct Share {
    pub(super) stripes: Arc<Stripes>,
    pub(super) directory: usize,
}

/// What is to be moved between memory and one file.
pub(super) struct Job {
    pub(super) handle: Arc<Handle>,
    pub(super) moves: Moves,
    /// Without it, the file holds all.
    pub(super) share: Option<Share>,
    pub(super) way: Way,
    pub(super) direct: bool,
    /// Whether a read may copy out of mappings.
    pub(super) maps: bool,
}

impl Job {
    /// Does it and tells.
    pub(super) fn run(self, answer: &Answer) {
        answer.part(answer.answers.begin().and_then(|()| self.carry()));
    }

    /// Moves the elements; tells how many calls that took.
    pub(super) fn carry(&self) -> Result<u64, Fault> {
        if self.way == Way::Read && !self.direct {
            return self.read();
        }
        let mut writer = DirectWriter::new(&self.handle, self.way, self.direct);
        let moved = self.each_run(|run, offset| writer.add(run, offset));
        let moved = moved.and_then(|()| writer.flush().map_err(|failure| self.failed(failure)));
        let tells = self.way == Way::Write && !self.handle.reach.tells_late();
        moved.map_err(|fault| fault.leaving_unchanged(tells && !writer.has_taken()))?;
        Ok(writer.calls())
    }

    fn read(&self) -> Result<u64, Fault> {
        let file = &self.handle.file;
        if self.share.is_none() {
            let mapped = if self.maps { mapped::read(file, &self.moves) } else { None };
            if let Some(mappings) = mapped {
                return Ok(mappings);
            }
            if windows::are_worth_it(&self.moves) {
                return windows::read(file, &self.moves, |failure| self.failed(failure));
            }
        }
        let mut sieve = Sieve::new(file);
        self.each_run(|run, offset| sieve.add(run, offset))?;
        sieve.flush().map_err(|failure| self.failed(failure))?;
        Ok(sieve.calls())
    }

    /// Moves elements of an object with so many bytes before its checksum; tells how many calls that took, and what they
    /// contribute to the checksum.
    pub(super) fn carry_summed(&self, total: u64) -> Result<(u64, PartSum), Fault> {
        let mut sieve = Sieve::summing(&self.handle.file, total);
        self.each_run(|run, offset| {
            // Bytes are added to the sum while they are in the processor's cache.
            run.blocks(CHECKED_BLOCK_BYTES).try_for_each(|(at, block)| sieve.add(block, offset + at))
        })?;
        sieve.flush().map_err(|failure| self.failed(failure))?;
        Ok((sieve.calls(), sieve.into_sum()))
    }

    /// Calls with each run of memory and where it lies in the file.
    fn each_run(&self, mut act: impl FnMut(Source, u64) -> Result<(), Failure>) -> Result<(), Fault> {
        let mut act = |run, offset| act(run, offset).map_err(|failure| self.failed(failure));
        for nest in self.moves.nests() {
            try_for_each_run(&nest, self.moves.there.element.bytes(), |memory, offset, length| {
                let run = Source::new(&self.moves, memory, length)?;
                let Some(Share { stripes, directory }) = &self.share else { return act(run, offset as u64) };
                stripes.held(*directory, offset as u64, length).try_for_each(|stripe| {
                    act(run.split_at(stripe.skip as usize).1.split_at(stripe.bytes as usize).0, stripe.local)
                })
            })?;
        }
        Ok(())
    }

    fn failed(&self, (error, end): Failure) -> Fault {
        let verb = if self.way == Way::Write { "writing" } else { "reading" };
        let doing = Doing { verb, path: &self.handle.path };
        if self.way == Way::Write || error.kind() != ErrorKind::UnexpectedEof {
            return doing.failed(&format!(" (up to offset {end})"), &error);
        }
        let found = self.handle.file.metadata().map(|m| m.len()).unwrap_or(0);
        doing.corrupt(&format!("at least {end} B"), &format!("{found} B"))
    }
}
