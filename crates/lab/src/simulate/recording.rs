//! What the ranks of a rehearsal did, in the form in which real ranks are recorded.

use super::spec::SimulationSpec;
use super::stages::Built;
use hyperslab::Error;
use hyperslab::trace::{About, Header, block};
use hyperslab_collective::predicted;
use hyperslab_sim::{Lived, Stage};
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
        let label = |number: usize| {
            // Agreements belong to the transfer that they are around.
            let mut of = built.labels.iter().zip(&built.stages).filter(|((stage, _), _)| *stage == number);
            let moves = of.clone().find(|(_, stage)| matches!(stage, Stage::Move(_)));
            moves.or_else(|| of.next()).map_or(String::new(), |((_, label), _)| label.clone())
        };
        let stages = built.labels.iter().zip(&built.stages).map(|((number, _), stage)| {
            (*number, format!("{}, stage {number}", label(*number)), !matches!(stage, Stage::Work(..)))
        });
        let price =
            |stage: usize| built.moves.iter().find(|made| made.stage == stage).map(|made| predicted(&made.price));
        let about = built.stages.iter().zip(&built.labels).map(|(stage, (number, _))| match stage {
            Stage::Move(asked) => {
                Some(About::new(&asked.transfer, &asked.parameters, &price(*number).unwrap_or_default()))
            }
            _ => None,
        });
        let (stages, about) = (stages.collect(), about.collect());
        Ok(Recording { file, path, header, stages, about, failure: None })
    }

    /// A rank has lived through a stage, or a part of one.
    pub(super) fn take(&mut self, lived: Lived) {
        let (number, what, called) = &self.stages[lived.stage];
        let header = Header {
            rank: lived.rank,
            call: called.then_some(*number as u64),
            what: if *called { what.clone() } else { "application".into() },
            begin_ns: lived.begin_ns,
            end_ns: lived.end_ns,
            about: if lived.rank == 0 { self.about[lived.stage].take() } else { None },
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
