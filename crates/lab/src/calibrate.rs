//! Measuring this machine: what a profile is made of.
//!
//! Times are given as they are, many for each case, in JSON; who writes profiles makes numbers of them. Where a
//! transfer has code for something, that very code is timed: copies, the store, programs walked by the walker,
//! agreements.

mod alone;
mod exchange;
mod ranks;
mod writers;

use hyperslab::{Comm, Error};
use hyperslab_real::calibration::Series;
use std::path::Path;
use std::time::Duration;

pub use hyperslab_real::calibration::{Effort, HostIdentity, file_system_of, host_identity};

/// What one process measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alone {
    /// Copies between an array and a slot.
    Copies,
    /// Compressing and decompressing chunks.
    Coding,
    /// Deriving programs.
    Planning,
    /// Files and names, in a directory.
    Files,
}

impl Alone {
    /// All.
    pub const ALL: [Alone; 4] = [Alone::Copies, Alone::Coding, Alone::Planning, Alone::Files];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Alone::Copies => "copies",
            Alone::Coding => "coding",
            Alone::Planning => "planning",
            Alone::Files => "files",
        }
    }
}

/// What ranks measure together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Together {
    /// Agreements of all, when all come at once and when one is late.
    Agreements,
    /// Messages of pairs of ranks.
    Messages,
    /// Writing one file, or one each.
    Writers,
    /// Copies of all ranks at the same time.
    Copies,
}

impl Together {
    /// All.
    pub const ALL: [Together; 4] = [Together::Agreements, Together::Messages, Together::Writers, Together::Copies];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Together::Agreements => "agreements",
            Together::Messages => "messages",
            Together::Writers => "writers",
            Together::Copies => "copies",
        }
    }
}

/// Measures with this process alone; gives times as JSON: a list of objects with `kernel`, `at` (circumstances) and
/// `seconds` (of one operation, in each round). Files lie below `directory` and are removed.
///
/// # Errors
/// When the directory cannot be written to, or somebody wants it to stop, which is asked now and then.
pub fn alone(
    what: Alone,
    directory: &Path,
    effort: Effort,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<String, Error> {
    let series = match what {
        Alone::Copies => hyperslab_real::calibration::copies(effort, interrupted),
        Alone::Coding => alone::coding(effort, interrupted),
        Alone::Planning => alone::planning(effort, interrupted),
        Alone::Files => hyperslab_real::calibration::files(directory, effort, interrupted),
    };
    Ok(json(&series?))
}

/// Measures with all ranks, collectively; gives this rank's times, as [`alone`] does. For messages, `partner` is the
/// rank with which this one exchanges them; it must name this one, too, and ranks without one stand by.
///
/// # Errors
/// On all ranks alike: when ranks ask for different things, the directory cannot be written to on one, or others do not
/// come.
pub fn together(
    comm: &Comm,
    what: Together,
    directory: &Path,
    effort: Effort,
    partner: Option<u32>,
) -> Result<String, Error> {
    let series = match what {
        Together::Agreements => ranks::agreements(comm, effort),
        Together::Messages => ranks::messages(comm, effort, partner),
        Together::Writers => writers::writers(comm, directory, effort),
        Together::Copies => ranks::copies(comm, effort),
    };
    Ok(json(&series?))
}

fn json(series: &[Series]) -> String {
    let list = series.iter().map(|series| {
        let at: serde_json::Map<_, _> =
            series.at.iter().map(|&(name, value)| (name.to_string(), value.into())).collect();
        serde_json::json!({ "kernel": series.kernel, "at": at, "seconds": series.seconds })
    });
    serde_json::Value::Array(list.collect()).to_string()
}

/// The same with a part of the time.
fn part(effort: Effort, share: f64) -> Effort {
    Effort { time: Duration::from_secs_f64(effort.time.as_secs_f64() * share), ..effort }
}
