//! From what is asked of a rehearsal to what ranks live through.

use super::calling::{CallOfAll, calling};
use super::spec::{SimulationSpec, StageSpec, TransferSpec, Who};
use super::stores::ImaginedStores;
use super::transfers::{Moving, transfer};
use crate::imagined::{ChosenCall, Programs};
use hyperslab::Error;
use hyperslab_layout::Object;
use hyperslab_plan::profile::Profile;
use hyperslab_sim::{Move, Scene, SimNames, Size};
use hyperslab_world::{Fault, FaultKind, Names};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What an scene is to who asked for it.
pub(super) struct Label {
    /// Number of the stage that was asked for.
    pub(super) stage: usize,
    /// What its parts are called, and all of it.
    pub(super) parts: Vec<&'static str>,
    pub(super) name: &'static str,
    /// Whether it is a call of ranks, and not the program's own work.
    pub(super) is_call: bool,
}

/// Acts, with what reports call them.
#[derive(Default)]
pub(super) struct Built {
    pub(super) scenes: Vec<Scene>,
    /// By scene.
    pub(super) labels: Vec<Label>,
    pub(super) lengths: Vec<(Object, u64)>,
    pub(super) moves: Vec<Arc<Moving>>,
    /// What was chosen for calls on stores, by stage, once they have come that far.
    pub(super) chosen: Rc<RefCell<Vec<(usize, ChosenCall)>>>,
}

impl Built {
    fn push(&mut self, stage: usize, parts: &[&'static str], is_call: bool, scene: Scene) {
        // Agreements belong to what they are around.
        let name = parts.iter().find(|&&part| part != "agree").copied().unwrap_or("agree");
        self.labels.push(Label { stage, parts: parts.to_vec(), name, is_call });
        self.scenes.push(scene);
    }

    /// A transfer of files that all ranks have open: a whole call, or the transfer alone.
    fn push_moving(&mut self, stage: usize, asked: &TransferSpec, moving: Moving, size: Size) {
        let (way, moving) = (if asked.write { "write" } else { "read" }, Arc::new(moving));
        match (asked.agree, asked.alone) {
            (true, false) => self.push(stage, &["agree", way, "agree"], true, calling(CallOfAll::of(&moving, size))),
            (true, true) => {
                for (part, scene) in [("agree", Scene::agree()), (way, walking(&moving)), ("agree", Scene::agree())] {
                    self.push(stage, &[part], true, scene);
                    self.labels.last_mut().expect("it was pushed").name = way;
                }
            }
            (false, _) => self.push(stage, &[way], true, walking(&moving)),
        }
        self.moves.push(moving);
    }
}

/// Opens something and keeps it open.
fn open(names: &SimNames) -> Result<(), Fault> {
    names.hold("").map(|held| names.keep(held))
}

/// Closes what was opened last.
fn close(names: &SimNames) -> Result<(), Fault> {
    names.let_go().map(drop).ok_or_else(|| {
        Fault::new(FaultKind::Invalid, "a rank closes a file that it has not opened")
            .hint("put {\"open\": {}} before it")
    })
}

/// Looks whether something is there.
fn query(names: &SimNames) -> Result<(), Fault> {
    names.exists("");
    Ok(())
}

pub(super) fn build(spec: &SimulationSpec, profile: &Profile, size: Size) -> Result<Built, Error> {
    let stores = ImaginedStores::new(Programs::new(profile.clone()));
    let mut built = Built { chosen: stores.chosen.clone(), ..Built::default() };
    for (number, stage) in spec.stages.iter().enumerate() {
        let named = |who: Who, what| Ok::<_, Error>(Scene::names(checked(who, number, size)?, what));
        match stage {
            StageSpec::Agree => built.push(number, &["agree"], true, Scene::agree()),
            StageSpec::Work(work) if !(work.seconds >= 0.0 && work.seconds < 1e9) => {
                return Err(Error::invalid(format!("stage {number}: work of {} s; it takes 0 to 1e9 s", work.seconds)));
            }
            StageSpec::Work(work) => {
                let scene = Scene::work(checked(work.who, number, size)?, work.seconds * 1e9);
                built.push(number, &["work"], false, scene);
            }
            StageSpec::Open(asked) => built.push(number, &["open"], true, named(asked.who, open)?),
            StageSpec::Close(asked) => built.push(number, &["close"], true, named(asked.who, close)?),
            StageSpec::Query(asked) => built.push(number, &["query"], true, named(asked.who, query)?),
            StageSpec::Call(call) => {
                let who = checked(call.who, number, size)?;
                let object = Object::from(&*call.object);
                let last = match call.who {
                    Who::All => size.ranks - 1,
                    Who::Clients => spec.clients - 1,
                    Who::Rank(rank) => rank,
                };
                let begin = call.pitch.checked_mul(last.into()).and_then(|skipped| skipped.checked_add(call.offset));
                let end = begin.and_then(|begin| begin.checked_add(call.bytes)).filter(|&end| end <= 1 << 60);
                let end = end.ok_or_else(|| {
                    let text = format!("stage {number}: a call of {} B ends beyond 2^60 B of '{object}'", call.bytes);
                    Error::invalid(text)
                })?;
                built.lengths.push((object.clone(), end));
                let scene = Scene::range(who, object, (call.offset, call.pitch, call.bytes), call.write);
                built.push(number, &["call"], true, scene);
            }
            StageSpec::Transfer(asked) => {
                if asked.store.is_some() {
                    let way = if asked.write { "write" } else { "read" };
                    let scene = stores.transfer(number, asked, spec.clients)?;
                    built.push(number, &["agree", way, "agree"], true, scene);
                    continue;
                }
                let moving = transfer(number, asked, spec, profile, size, &mut built.lengths)?;
                built.push_moving(number, asked, moving, size);
            }
            StageSpec::Begin(asked) => built.push(number, &["begin"], true, stores.begin(asked)?),
            StageSpec::Step(asked) => built.push(number, &["step"], true, stores.step(&asked.store, &asked.name)),
            StageSpec::Publish(asked) => built.push(number, &["publish"], true, stores.publish(&asked.store)),
            StageSpec::End(asked) => built.push(number, &["end"], true, stores.end(&asked.store)),
        }
    }
    Ok(built)
}

/// Each rank moves its part by itself.
fn walking(moving: &Arc<Moving>) -> Scene {
    let (transfer, parameters) = (moving.transfer.clone(), moving.parameters.clone());
    let moving = moving.clone();
    Scene::walk(Move { transfer, parameters, bring: Rc::new(move |rank| moving.part(rank)) })
}

/// Who takes part, if there is such a rank.
fn checked(who: Who, stage: usize, size: Size) -> Result<hyperslab_sim::Who, Error> {
    match who {
        Who::Rank(rank) if rank >= size.ranks => Err(Error::invalid(format!(
            "stage {stage} is for rank {rank}, but there are only {} ranks\n  hint: number ranks from 0 on; servers come behind \
             the clients",
            size.ranks
        ))),
        who => Ok(who.into()),
    }
}
