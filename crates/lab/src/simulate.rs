//! Transfers on machines that you do not have: what is asked comes as JSON, a rehearsal of it runs in virtual time, and
//! what came out goes back as JSON.
//!
//! Ranks agree, plan and walk with the code of real transfers; only the machine is imagined. The real and the imagined
//! machine never meet but here.

mod array;
mod calling;
mod planned;
mod recording;
mod report;
mod scenes;
mod spec;
mod stores;
mod transfers;

use planned::PlannedReport;
pub use report::Report;
pub use spec::{
    Array, BeginStore, Call, DiskLayout, FaultSpec, File, Local, Meta, Period, SimulationSpec, StageSpec, StepOf,
    Store, StoreOf, TransferSpec, WhatIf, Who, Work,
};

use hyperslab::Error;
use hyperslab::binding::limit_of;
use hyperslab_plan::profile::{self, Profile};
use hyperslab_sim::{Faults, Payload, Rehearsal, Size};
use hyperslab_walk::Limits;
use hyperslab_world::MemoryTree;
use recording::Recording;
use spec::RANKS_MAX;

/// Runs a rehearsal.
///
/// # Errors
/// When the machine or what is asked of it is not valid, when no strategy can do it, or when a rank fails.
pub fn simulate(spec: &SimulationSpec) -> Result<Report, Error> {
    simulate_unless(spec, &mut || false)
}

/// The same, unless it is interrupted, which is asked now and then.
///
/// # Errors
/// As [`simulate`], and when it is interrupted.
pub fn simulate_unless(spec: &SimulationSpec, interrupted: &mut dyn FnMut() -> bool) -> Result<Report, Error> {
    let (profile, size) = machine(spec)?;
    let built = scenes::build(spec, &profile, size)?;
    let faults = spec.faults.map(|asked| drawn(asked, size)).transpose()?;
    let priced = profile.clone();
    let rehearsal = Rehearsal {
        profile,
        size,
        what_if: spec.what_if.into(),
        on_disk: spec.disk_layout.into(),
        seed: spec.seed,
        period: spec.period.into(),
        scenes: built.scenes.clone(),
        lengths: built.lengths.clone(),
        tree: MemoryTree::new(),
        payload: Payload::Lengths,
        faults: faults.clone(),
        traced: spec.log,
    };
    let machine = rehearsal.profile.name.clone();
    let recording = spec.trace.as_ref().map(|directory| Recording::new(directory, spec, &machine, &built));
    let mut recording = recording.transpose()?;
    let mut take = |lived| {
        if let Some(recording) = &mut recording {
            recording.take(lived);
        }
    };
    let listener: Option<hyperslab_sim::SpanListener> = if spec.trace.is_some() { Some(&mut take) } else { None };
    let outcome = rehearsal.run_recorded(interrupted, listener)?;
    recording.map_or(Ok(()), Recording::finish)?;
    let mishaps = faults.as_ref().map_or(&[][..], |faults| &faults.mishaps);
    Ok(Report::new(spec, &outcome, &built, mishaps, &priced))
}

/// What goes wrong, as a seed draws it.
fn drawn(asked: FaultSpec, size: Size) -> Result<Faults, Error> {
    let FaultSpec { seed, arrival_seconds, progress_seconds, storage_seconds } = asked;
    let limits = Limits {
        arrival: limit_of("arrival_seconds", arrival_seconds)?,
        progress: limit_of("progress_seconds", progress_seconds)?,
        storage: limit_of("storage_seconds", storage_seconds)?,
    };
    Ok(Faults::drawn(seed, size.ranks, limits))
}

/// The machine, and the ranks on it.
fn machine(spec: &SimulationSpec) -> Result<(Profile, Size), Error> {
    let scale: Vec<(String, f64)> = spec.scale.iter().map(|(key, &factor)| (key.clone(), factor)).collect();
    let profile =
        profile::parse(&spec.file, &spec.machine, &scale).map_err(|error| Error::invalid(error.to_string()))?;
    let ranks = spec.clients.checked_add(spec.servers).filter(|&ranks| ranks > 0 && spec.clients > 0);
    let ranks = ranks.ok_or_else(|| {
        Error::invalid(format!("{} clients and {} servers: at least one client is needed", spec.clients, spec.servers))
    })?;
    if ranks > RANKS_MAX {
        return Err(Error::invalid(format!("{ranks} ranks are more than the {RANKS_MAX} that are simulated")));
    }
    hyperslab_sim::room(&profile, ranks).map_err(Error::from)?;
    Ok((profile, Size { ranks, servers: spec.servers }))
}

/// How the transfers of a rehearsal would be done, and at what price, without running it: from JSON to JSON.
///
/// # Errors
/// When the machine or what is asked of it is not valid, or no strategy can do it.
pub fn plan_json(spec: &str) -> Result<String, Error> {
    let spec: SimulationSpec = serde_json::from_str(spec)
        .map_err(|error| Error::invalid(format!("what is to be planned cannot be understood: {error}")))?;
    let (profile, size) = machine(&spec)?;
    let built = scenes::build(&spec, &profile, size)?;
    let planned: Vec<PlannedReport> = built.moves.iter().map(|moving| PlannedReport::of(moving)).collect();
    serde_json::to_string(&planned).map_err(|error| Error::invalid(format!("the plan cannot be written: {error}")))
}

/// The same, from JSON to JSON.
///
/// # Errors
/// As [`simulate_unless`], and when the text is no such JSON.
pub fn simulate_json(spec: &str, interrupted: &mut dyn FnMut() -> bool) -> Result<String, Error> {
    let spec: SimulationSpec = serde_json::from_str(spec)
        .map_err(|error| Error::invalid(format!("what is to be simulated is not as described: {}", plainly(&error))))?;
    let report = simulate_unless(&spec, interrupted)?;
    serde_json::to_string(&report).map_err(|error| Error::invalid(format!("the report cannot be written: {error}")))
}

/// What is wrong with a description, without where it stands in a text that the user did not write.
fn plainly(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    text.replace('`', "'").replace("unknown variant", "there is no").replace("unknown field", "there is no field")
}

/// Machines that come with hyperslab: name and profile.
pub const MACHINES: [(&str, &str); 10] = [
    ("starfish", include_str!("../../../machines/starfish.toml")),
    ("nas-sp2", include_str!("../../../machines/nas-sp2.toml")),
    ("anl-sp-piofs", include_str!("../../../machines/anl-sp-piofs.toml")),
    ("caltech-paragon-pfs", include_str!("../../../machines/caltech-paragon-pfs.toml")),
    ("caltech-paragon-pfs-1995", include_str!("../../../machines/caltech-paragon-pfs-1995.toml")),
    ("chiba-city", include_str!("../../../machines/chiba-city.toml")),
    ("nvme-workstation", include_str!("../../../machines/nvme-workstation.toml")),
    ("lustre-like", include_str!("../../../machines/lustre-like.toml")),
    ("orion-like", include_str!("../../../machines/orion-like.toml")),
    ("object-store", include_str!("../../../machines/object-store.toml")),
];

/// The numbers of a machine profile and where they come from, as JSON: a list of objects with `key`, `value`, `origin`
/// and `source`.
///
/// # Errors
/// When the profile is not valid.
pub fn constants_json(file: &str, text: &str) -> Result<String, Error> {
    let constants = profile::constants(file, text).map_err(|error| Error::invalid(error.to_string()))?;
    let list = constants.iter().map(
        |c| serde_json::json!({ "key": c.key, "value": c.text, "origin": c.origin.to_string(), "source": c.source }),
    );
    Ok(serde_json::Value::Array(list.collect()).to_string())
}
