//! The world of one real rank: a wire to the others, files, this processor, and the time of day.

use crate::posix::PosixStore;
use crate::relay::Pump;
use crate::transport::Courier;
use crate::wire::Wire;
use hyperslab_world::{Clock, Compute, InlineCompute, Store, Transport, World};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Asks whether the user wants to stop.
pub type Interrupted = Box<dyn FnMut() -> bool + Send>;

/// One real rank.
pub struct Machine {
    courier: Courier,
    store: PosixStore,
    compute: InlineCompute,
    clock: RealClock,
}

/// Time since the start.
struct RealClock {
    start: Instant,
    pump: Option<Pump>,
    asked: Instant,
    interrupted: Interrupted,
}

impl Machine {
    /// A rank that talks over `wire` and stores below `root`.
    pub fn new(wire: Box<dyn Wire>, root: &Path, interrupted: Interrupted) -> Machine {
        let store = PosixStore::new(root, wire.bell());
        let now = Instant::now();
        let clock = RealClock { start: now, pump: None, asked: now, interrupted };
        Machine { courier: Courier::new(wire), store, compute: InlineCompute::default(), clock }
    }

    /// Counts only the time in which the owner of the wire is there to pass datagrams on.
    pub fn count_by(&mut self, pump: Pump) {
        self.clock.pump = Some(pump);
    }

    /// Stores below another root from now on.
    pub fn move_to(&mut self, root: &Path) {
        self.store = PosixStore::new(root, self.courier.wire().bell());
    }

    /// Forgets what was written, to objects whose names begin with one of these, and not made durable.
    pub fn forget_unsynced(&mut self, below: Arc<[Arc<str>]>) {
        self.store.forget_unsynced(below);
    }

    /// Closes files that the store keeps open.
    pub fn release_files(&mut self) {
        self.store.release();
    }

    /// Asks this whether the user wants to stop, from now on.
    pub fn interrupted_by(&mut self, interrupted: Interrupted) {
        self.clock.interrupted = interrupted;
    }

    /// Gives back the wire, for closing it.
    pub fn into_wire(self) -> Box<dyn Wire> {
        self.courier.into_wire()
    }
}

/// How often the user is asked.
const ASK: Duration = Duration::from_millis(50);

impl Clock for RealClock {
    fn now_ns(&self) -> u64 {
        self.pump.as_ref().map_or_else(|| self.start.elapsed().as_nanos() as u64, Pump::present_ns)
    }

    fn interrupted(&mut self) -> bool {
        if self.asked.elapsed() < ASK {
            return false;
        }
        self.asked = Instant::now();
        (self.interrupted)()
    }
}

impl World for Machine {
    fn transport(&mut self) -> &mut dyn Transport {
        &mut self.courier
    }

    fn store(&mut self) -> &mut dyn Store {
        &mut self.store
    }

    fn compute(&mut self) -> &mut dyn Compute {
        &mut self.compute
    }

    fn clock(&mut self) -> &mut dyn Clock {
        &mut self.clock
    }

    fn doze(&mut self, limit: Duration) {
        self.courier.wire().doze(limit);
    }
}
