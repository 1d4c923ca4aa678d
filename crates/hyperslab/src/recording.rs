//! Recording what calls of a communicator do, for `hyperslab trace`.
//!
//! Nothing is recorded until all ranks have agreed to, and then spans stay in memory until their call is over: a call
//! writes one block to the rank's own file.

use crate::environment;
use crate::trace::{About, Header, block};
use hyperslab_collective::Decision;
use hyperslab_plan::{Phase, Transfer};
use hyperslab_real::monotonic_ns;
use hyperslab_walk::Party;
use hyperslab_walk::trace::{Recorded, Span};
use hyperslab_world::{Fault, FaultKind};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What a rank knows of its recording.
#[derive(Default)]
pub(crate) struct Recording {
    /// Where to record from the next call on.
    pub(crate) wanted: Option<PathBuf>,
    pub(crate) run: Option<Run>,
    /// What the application did since the last call.
    pub(crate) application: Vec<Span>,
    /// What went wrong in writing it down; nothing is recorded after that.
    pub(crate) failure: Option<Fault>,
}

pub(crate) struct Run {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    /// What all blocks say.
    pub(crate) header: Header,
}

impl Recording {
    /// As the environment wants it.
    pub(crate) fn from_environment() -> Recording {
        let mut recording = Recording::default();
        recording.wanted = environment::trace();
        recording
    }

    pub(crate) fn write(&mut self, header: &Header, recorded: &Recorded) {
        let Some(run) = &mut self.run else { return };
        if let Err(error) = run.file.write_all(&block(header, recorded, monotonic_ns)) {
            self.failure = Some(unwritten(&run.path, &error));
            self.run = None;
        }
    }

    /// Writes what the application did.
    pub(crate) fn flush(&mut self) {
        let spans = std::mem::take(&mut self.application);
        let (Some(first), Some(run)) = (spans.first(), &self.run) else { return };
        let end_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
        let header = Header { what: "application".into(), begin_ns: first.begin_ns, end_ns, ..run.header.clone() };
        self.write(&header, &Recorded { spans, dropped: 0 });
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.flush();
    }
}

pub(crate) fn unwritten(path: &Path, error: &std::io::Error) -> Fault {
    Fault::new(FaultKind::Storage, format!("the trace '{}' cannot be written: {error}", path.display()))
        .hint("record into a directory that all ranks can write to")
}

/// A call that is recorded, if any is.
pub(crate) struct Noted {
    pub(crate) what: String,
    /// Number and beginning.
    pub(crate) begun: Option<(u64, u64)>,
    pub(crate) about: Option<About>,
}

impl Noted {
    /// A transfer is what all ranks have agreed on.
    pub(crate) fn tell(&mut self, party: &Party, transfer: &Transfer, decision: &Decision) {
        if party.trace.is_some() {
            let mut predicted = decision.predicted;
            // The trace has the closing, too, which makes durable what the call leaves.
            predicted[Phase::Sync as usize] += decision.later;
            self.about = (party.rank() == 0).then(|| About::new(transfer, &decision.parameters, &predicted));
        }
    }
}
