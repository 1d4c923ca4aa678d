//! What the ranks of a rehearsal did, in the form in which real ranks are recorded.

use super::scenes::Built;
use super::spec::SimulationSpec;
use hyperslab::Error;
use hyperslab::trace::{About, Header, block};
use hyperslab_collective::predicted;
use hyperslab_sim::Lived;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes down what ranks do, while they do it: nothing is kept.
pub(super) struct Recording {
    file: BufWriter<File>,
    path: PathBuf,
    /// What all blocks say.
    header: Header,
    /// Of each stage: the number of the one that was asked for, what it is, and whether it is a call of ranks.
    stages: Vec<(usize, String, bool)>,
    /// Of each stage that moves data: what rank 0 tells of it, until it has.
    about: Vec<Option<About>>,
    failure: Option<std::io::Error>,
}

impl Recording {
    pub(super) fn new(
        directory: &Path,
        spec: &SimulationSpec,
        machine: &str,
        built: &Built,
    ) -> Result<Recording, Error> {
        let ranks = spec.clients + spec.servers;
        let run = format!("{machine}-{ranks}-{}", spec.seed);
        let path = directory.join(format!("{run}.trace"));
        let unwritten = |error| unwritten(&path, &error);
        std::fs::create_dir_all(directory).map_err(unwritten)?;
        let file = BufWriter::new(File::create(&path).map_err(unwritten)?);
        let header = Header {
            run,
            simulated: true,
            host: "0".into(),
            rank: 0,
            size: ranks,
            clients: spec.clients,
            call: None,
            what: String::new(),
            begin_ns: 0,
            end_ns: 0,
            span_ns: 0.0,
            failed: None,
            about: None,
        };
        let stages = built
            .labels
            .iter()
            .map(|label| (label.stage, format!("{}, stage {}", label.name, label.stage), label.is_call));
        let about = built.labels.iter().map(|label| {
            let moves = label.parts.contains(&label.name);
            let made = built.moves.iter().find(|made| moves && made.stage == label.stage)?;
            Some(About::new(&made.transfer, &made.parameters, &predicted(&made.price)))
        });
        let (stages, about) = (stages.collect(), about.collect());
        Ok(Recording { file, path, header, stages, about, failure: None })
    }

    /// A rank has lived through a stage, or a part of one.
    pub(super) fn take(&mut self, lived: Lived) {
        let (number, what, called) = &self.stages[lived.scene];
        let header = Header {
            rank: lived.rank,
            call: called.then_some(*number as u64),
            what: if *called { what.clone() } else { "application".into() },
            begin_ns: lived.begin_ns,
            end_ns: lived.end_ns,
            about: if lived.rank == 0 { self.about[lived.scene].take() } else { None },
            ..self.header.clone()
        };
        if self.failure.is_none() {
            self.failure = self.file.write_all(&block(&header, &lived.recorded, || 0)).err();
        }
    }

    /// All is over.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        let flushed = self.failure.take().map_or_else(|| self.file.flush(), Err);
        flushed.map_err(|error| unwritten(&self.path, &error))
    }
}

fn unwritten(path: &Path, error: &std::io::Error) -> Error {
    let text = format!("the trace '{}' cannot be written: {error}", path.display());
    Error::from(hyperslab_world::Fault::new(hyperslab_world::FaultKind::Storage, text))
}
