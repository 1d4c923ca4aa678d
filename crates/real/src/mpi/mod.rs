//! Datagrams over MPI, which is bound at run time.
//!
//! Nothing of MPI is needed to build this, and none is loaded: the functions are looked up in the library that the
//! process already uses, whichever of the three binary interfaces it has. Communicators cross the border as Fortran
//! integers, the one form that all of them share.
//!
//! No call blocks. Sends and receives are posted and polled, and so is the duplication of the communicator. MPI makes
//! progress only while somebody calls [`Wire::poll`] or [`Wire::doze`].

mod connect;
mod find;
mod pace;
mod ringing;
mod table;
mod traffic;

use crate::sync::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use self::connect::connect;
use self::find::{Abi, Callers};
use self::pace::Pace;
use self::ringing::Ringing;
use self::table::Table;
use self::traffic::Traffic;
use crate::wire::{Bell, Datagram, Spare, Wire, WireError};
use hyperslab_world::Fault;

/// One rank's end of a wire over a private duplicate of a communicator.
///
/// Unless MPI's level of thread support is `MPI_THREAD_MULTIPLE`, every call must come from the thread that
/// connected; other threads get an error and may only ring the [`Bell`].
///
/// Dropping a wire calls nothing of MPI (which may be finalised by then), keeps the communicator, and leaks the
/// buffers that MPI may still touch. [`MpiWire::free`] is the way to end one.
pub struct MpiWire {
    traffic: Box<dyn Traffic>,
    /// The only thread that may call MPI, or `None` if all may.
    thread: Option<ThreadId>,
    library: String,
    is_lone: bool,
    bell: Bell,
    ringing: Ringing,
    pace: Pace,
    /// An error met while dozing, for the next poll.
    late: Option<WireError>,
}

impl MpiWire {
    /// Joins the ranks of a communicator. Collective, and does not block: when not all ranks have come within `limit`,
    /// or when `interrupted` (asked every 20 ms) says so, it gives up with an error. A later attempt on the same
    /// communicator may then meet the abandoned one, so a caller that gave up should not go on with it.
    ///
    /// `fortran_comm` is what `MPI_Comm_c2f`, or mpi4py's `comm.py2f()`, gives for the communicator; MPI itself is
    /// trusted to detect an integer that is none. `hint` is the path of a loaded object that uses MPI, such as
    /// `mpi4py.MPI.__file__`; it is needed when MPI's symbols are not global.
    pub fn connect(
        fortran_comm: i32,
        hint: Option<&str>,
        limit: Duration,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<MpiWire, Fault> {
        let library = find::running(hint)?;
        let abi = library.abi()?;
        let callers = library.callers(abi)?;
        if callers == Callers::Main && !library.is_main_thread()? {
            let hint = "hint: initialise MPI with MPI_THREAD_SERIALIZED or more, or use its main thread";
            let text = format!("at MPI's thread level only the thread that initialised it may call it; {hint}");
            return Err(WireError(text).into());
        }
        // SAFETY: the interface is the one that the library shows, or that the user vouches for.
        let (traffic, is_lone) = unsafe {
            match abi {
                Abi::Mpich => connect(Table::mpich(&library)?, fortran_comm, limit, interrupted),
                Abi::OpenMpi => connect(Table::open_mpi(&library)?, fortran_comm, limit, interrupted),
                Abi::Standard => connect(Table::standard(&library)?, fortran_comm, limit, interrupted),
            }
        }?;
        Ok(MpiWire {
            traffic,
            thread: (callers != Callers::Any).then(|| thread::current().id()),
            library: library.version()?,
            is_lone,
            bell: Bell::default(),
            ringing: Ringing::new(None),
            pace: Pace::default(),
            late: None,
        })
    }

    /// The same where so many ranks share this host: where each has a core, it waits more awake, and where they share
    /// cores, it sleeps until a neighbour wakes it up. To be said before anything is sent.
    #[must_use]
    pub fn beside(self, ranks: u32) -> MpiWire {
        let pace = Pace::among(ranks);
        let bell = if pace.shares_cores() { Bell::shared() } else { Bell::default() };
        let ringing = Ringing::new(pace.shares_cores().then_some(&bell));
        MpiWire { pace, bell, ringing, ..self }
    }

    /// What the MPI library calls itself.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// Whether MPI knows of no process but this one, where the program did not ask for this one alone (`MPI_COMM_SELF`).
    pub fn is_lone_world(&self) -> bool {
        self.is_lone
    }

    /// Ends the wire. Collective; waits without blocking, up to `limit`, until every rank has called it and every
    /// datagram has arrived somewhere (those that nobody polled are discarded), then frees the communicator with
    /// `MPI_Comm_free`, which is local work in the libraries tried. What cannot be finished is kept for ever rather
    /// than freed, and reported.
    pub fn free(self, limit: Duration) -> Result<(), WireError> {
        self.check_caller()?;
        self.traffic.close(limit)
    }

    /// Whether MPI may be called here and now.
    fn check_caller(&self) -> Result<(), WireError> {
        if self.thread.is_some_and(|thread| thread != thread::current().id()) {
            return Err(WireError(
                "MPI may be called only from the thread that made this wire: its thread level is below \
                 MPI_THREAD_MULTIPLE"
                    .to_owned(),
            ));
        }
        if self.traffic.is_finalized() {
            return Err(WireError("MPI has been finalised while a wire was open".to_owned()));
        }
        Ok(())
    }

    fn progress(&mut self) -> Result<bool, WireError> {
        self.check_caller()?;
        self.traffic.progress()
    }
}

impl Wire for MpiWire {
    fn rank(&self) -> u32 {
        self.traffic.rank()
    }

    fn size(&self) -> u32 {
        self.traffic.size()
    }

    /// MPI that makes ranks of threads is rare, and shall not be told from other.
    fn is_one_process(&self) -> bool {
        self.size() == 1
    }

    fn send(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError> {
        self.note(to, bytes)?;
        self.ringing.ring(to);
        Ok(())
    }

    fn note(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError> {
        self.check_caller()?;
        if to != self.rank()
            && let Some(greeting) = self.ringing.greeting(to)
        {
            self.traffic.send(to, greeting)?;
        }
        self.traffic.send(to, bytes)
    }

    fn is_gone(&self, rank: u32) -> bool {
        self.ringing.is_gone(rank)
    }

    fn poll(&mut self) -> Result<Option<Datagram>, WireError> {
        if let Some(late) = self.late.take() {
            return Err(late);
        }
        self.progress()?;
        while let Some((from, bytes)) = self.traffic.take() {
            self.pace.reset();
            if from == self.rank() || !self.ringing.hear(from, &bytes) {
                return Ok(Some((from, bytes)));
            }
        }
        Ok(None)
    }

    fn spare(&mut self, bytes: usize) -> Option<Vec<u8>> {
        self.traffic.spare().take(bytes)
    }

    fn reuse(&mut self, bytes: Vec<u8>) {
        self.traffic.spare().give(bytes);
    }

    fn free_spare(&mut self) {
        *self.traffic.spare() = Spare::default();
    }

    fn unsent_bytes(&self) -> u64 {
        self.traffic.unsent_bytes()
    }

    fn doze(&mut self, limit: Duration) {
        // Turns that only offer the processor are over soon, and a look at the clock is a good part of one.
        let mut deadline = None;
        loop {
            match self.progress() {
                Ok(news) if news || self.traffic.has_arrived() => return self.pace.reset(),
                Ok(_) => {}
                Err(error) => {
                    self.late = Some(error);
                    return;
                }
            }
            self.pace.is_woken = self.bell.was_rung_from_outside() && !self.traffic.is_busy();
            let mut left = limit;
            let rung = self.pace.turn(|turn| {
                if turn.is_zero() {
                    return self.bell.was_rung_here();
                }
                let now = Instant::now();
                let end = *deadline.get_or_insert_with(|| now.checked_add(limit));
                left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(now));
                self.bell.wait(turn.min(left))
            });
            if rung || left.is_zero() {
                return;
            }
        }
    }

    fn doze_for_ring(&mut self, limit: Duration) {
        match self.progress() {
            Ok(news) if news || self.traffic.has_arrived() => self.pace.reset(),
            // What is being sent moves only while somebody looks after it.
            Ok(_) if self.traffic.is_busy() => self.doze(limit),
            Ok(_) => drop(self.bell.wait(limit.min(pace::SLEEP_WOKEN))),
            Err(error) => self.late = Some(error),
        }
    }

    fn bell(&self) -> Bell {
        self.bell.clone()
    }

    fn bound_to(&self) -> Option<ThreadId> {
        self.thread
    }

    fn close(self: Box<Self>, limit: Duration) -> Result<(), WireError> {
        self.free(limit)
    }
}
