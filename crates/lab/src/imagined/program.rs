//! The program of one rank, on a thread of its own.

use super::driver::{Channel, Errand, channel};
use hyperslab::{Comm, Error};
use hyperslab_plan::profile::Profile;
use hyperslab_sim::RankWorld;
use hyperslab_world::{Fault, FaultKind};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

/// What the program of a rank keeps from one scene to the next: open stores, steps.
pub type ProgramState = BTreeMap<String, Box<dyn Any + Send>>;

/// A part of a program: what each rank does with the library in one scene.
pub type ProgramPart = Arc<dyn Fn(&Comm, &mut ProgramState) -> Result<(), Error> + Send + Sync>;

/// The program of one rank.
pub(super) struct RankProgram {
    parts: Option<Sender<ProgramPart>>,
    pub(super) channel: Channel,
    thread: Option<JoinHandle<()>>,
}

impl RankProgram {
    pub(super) fn start(world: &RankWorld, rank: u32, profile: &Arc<Profile>) -> Result<RankProgram, Fault> {
        let (parts, todo) = std::sync::mpsc::channel::<ProgramPart>();
        let (channel, driver) = channel(world.names());
        let (at, profile) = ((rank, world.size().ranks), profile.clone());
        let body = move || {
            let driver = Arc::new(driver);
            let comm = Comm::elsewhere(at, driver.clone(), profile);
            let mut kept = ProgramState::new();
            while let Ok(part) = todo.recv() {
                driver.errand(Errand::Over(part(&comm, &mut kept).map_err(Fault::from)));
            }
        };
        let thread = Builder::new().name(format!("rank {rank}")).stack_size(1 << 20).spawn(body);
        let thread = thread.map_err(|error| {
            Fault::new(FaultKind::Storage, format!("no thread for the program of rank {rank}: {error}"))
        })?;
        Ok(RankProgram { parts: Some(parts), channel, thread: Some(thread) })
    }

    /// Lets it do its part of the next scene.
    pub(super) fn go_on(&self, part: ProgramPart) -> Result<(), Fault> {
        let gone = || Fault::new(FaultKind::Peer, "the program of a rank has ended");
        self.parts.as_ref().and_then(|parts| parts.send(part).ok()).ok_or_else(gone)
    }
}

impl Drop for RankProgram {
    fn drop(&mut self) {
        // Whoever waits for an answer gets none, and ends.
        self.parts = None;
        self.channel.cut();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
