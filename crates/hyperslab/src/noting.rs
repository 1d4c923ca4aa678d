//! When a communicator records: from an agreement on, call by call.

use crate::comm::{Comm, Member};
use crate::error::Error;
use crate::recording::{Noted, Recording, Run, unwritten};
use crate::trace::Header;
use hyperslab_collective::served;
use hyperslab_real::{Machine, monotonic_ns, neighbour};
use hyperslab_walk::trace::{Kind, Recorder, Span};
use hyperslab_walk::{Party, Question};
use hyperslab_world::{Fault, FaultKind, Reader, World, Writer};
use std::fs::File;
use std::path::Path;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most spans of the application that are kept until a call ends.
const APPLICATION_MAX: usize = 1 << 12;

impl Comm {
    fn recording(&self) -> MutexGuard<'_, Recording> {
        self.recording_of().lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Records all further calls into files in this directory, one for each rank; or no more. Collective.
    ///
    /// # Errors
    /// The same on all ranks: when they name different directories or one cannot write; when it ends, if something could not
    /// be written meanwhile, on the rank that it befell.
    pub fn record(&self, directory: Option<&Path>) -> Result<(), Error> {
        let mut member = self.member();
        let Member { machine, party, .. } = &mut *member;
        self.recording().wanted = None;
        self.start_or_stop(machine, party, directory)?;
        let failure = self.recording().failure.take();
        Ok(failure.map_or(Ok(()), Err)?)
    }

    /// Whether calls are recorded, or will be from the next one on.
    pub fn is_recorded(&self) -> bool {
        let recording = self.recording();
        recording.run.is_some() || recording.wanted.is_some()
    }

    /// Records that the application did this, between two moments of `CLOCK_MONOTONIC` \[ns\].
    pub fn note(&self, what: &str, (begin_ns, end_ns): (u64, u64), bytes: u64) {
        let mut recording = self.recording();
        if recording.run.is_none() && recording.wanted.is_none() {
            return;
        }
        let span = Span::plain(Kind::Application, begin_ns, end_ns);
        recording.application.push(Span { object: Some(what.into()), bytes, ..span });
        if recording.application.len() >= APPLICATION_MAX {
            recording.flush();
        }
    }

    /// Writes what the application did since the last call.
    pub(crate) fn flush_notes(&self) {
        self.recording().flush();
    }

    /// Begins to record if the environment wants it.
    pub(crate) fn heed_environment(&self, machine: &mut Machine, party: &mut Party) -> Result<(), Fault> {
        let wanted = self.recording().wanted.take();
        wanted.map_or(Ok(()), |directory| self.start_or_stop(machine, party, Some(&directory)))
    }

    fn start_or_stop(&self, machine: &mut Machine, party: &mut Party, directory: Option<&Path>) -> Result<(), Fault> {
        let place = directory.map_or(String::new(), |directory| directory.display().to_string());
        let what = if place.is_empty() { "end of recording".into() } else { format!("recording into '{place}'") };
        let fields = vec![("directory of the trace".into(), place.clone())];
        let question = Question::opening(what.clone(), fields, None);
        let servers = self.servers() > 0;
        let told = party.agree(machine, question, || {
            if let Some(directory) = directory {
                std::fs::create_dir_all(directory).map_err(|error| unwritten(directory, &error))?;
            }
            let told = Writer::default().bytes(place.as_bytes()).bytes(new_run().as_bytes()).0;
            Ok(if servers { served::recording(&told) } else { told })
        })?;
        let told = if servers { served::payload(&told)? } else { told };
        let fault = self.heed(machine, party, &told).err();
        let question = Question { what, fault, ..Question::default() };
        let agreed = party.agree(machine, question, || Ok(if servers { served::plain(&[]) } else { Vec::new() }));
        if agreed.is_err() {
            self.recording().run = None;
            party.trace = None;
        }
        agreed.map(|_| ())
    }

    /// Begins or ends recording, as all agreed.
    pub(crate) fn heed(&self, machine: &mut Machine, party: &mut Party, told: &[u8]) -> Result<(), Fault> {
        let mut r = Reader::new(told);
        let (Some(place), Some(run)) = (r.text(), r.text()) else {
            return Err(Fault::new(FaultKind::Peer, "what rank 0 told of a trace cannot be decoded"));
        };
        let mut recording = self.recording();
        recording.flush();
        (recording.run, party.trace) = (None, None);
        if place.is_empty() {
            return Ok(());
        }
        let path = Path::new(&place).join(format!("{run}.rank-{:06}.trace", party.rank()));
        let file = File::options().append(true).create(true).open(&path).map_err(|error| unwritten(&path, &error))?;
        let recorder = Recorder::new(machine);
        let header = Header {
            run,
            simulated: false,
            host: format!("{:016x}", neighbour::host()),
            rank: party.rank(),
            size: party.size(),
            clients: party.clients(),
            call: None,
            what: String::new(),
            begin_ns: 0,
            end_ns: 0,
            span_ns: recorder.span_ns(),
            failed: None,
            about: None,
        };
        recording.run = Some(Run { file, path, header });
        party.trace = Some(Box::new(recorder));
        Ok(())
    }

    /// A call begins. Rank 0 does `decides` when all have answered.
    pub(crate) fn begin_note(&self, machine: &mut Machine, party: &mut Party, what: &str, decides: Kind) -> Noted {
        let Some(trace) = &mut party.trace else {
            return Noted { what: String::new(), begun: None, about: None };
        };
        // Agreeing to record is no part of any call, nor is what was moved meanwhile.
        trace.opens(decides);
        let begun = Some((party.agreements + 1, machine.clock().stamp_ns()));
        Noted { what: what.into(), begun, about: None }
    }

    /// A call is over, for this rank.
    pub(crate) fn end_note(&self, machine: &mut Machine, party: &mut Party, noted: Noted, fault: Option<&Fault>) {
        let (Some(trace), Some((call, begin_ns))) = (&mut party.trace, noted.begun) else { return };
        trace.rests();
        let recorded = trace.take();
        let mut recording = self.recording();
        recording.flush();
        let Some(run) = &recording.run else {
            party.trace = None;
            return;
        };
        let header = Header {
            call: Some(call),
            what: noted.what,
            begin_ns,
            end_ns: machine.clock().stamp_ns(),
            failed: fault.map(|fault| fault.text().clone()),
            about: noted.about,
            ..run.header.clone()
        };
        recording.write(&header, &recorded);
    }
}

/// A name for a recording that no other has.
fn new_run() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{number:x}", monotonic_ns(), std::process::id())
}
