//! The world of one real rank: a wire to the others, files, this processor, and the time of day.

use crate::desk::Desk;
use crate::directory::Directory;
use crate::hands::Hands;
use crate::monotonic::monotonic_ns;
use crate::relay::Pump;
use crate::stores::Stores;
use crate::striped::StripedDirectory;
use crate::stripes::Stripes;
use crate::transport::Courier;
use crate::wire::Wire;
use hyperslab_pack::{Memory, OutOfMemory};
use hyperslab_world::{
    BucketNames, Clock, Compute, Fault, FaultKind, Location, Names, Store, Striped, Transport, World,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Asks whether the user wants to stop.
pub type Interrupted = Box<dyn FnMut() -> bool + Send>;

/// One real rank.
pub struct Machine {
    courier: Courier,
    stores: Stores,
    hands: Hands,
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
    /// A rank that talks over `wire`.
    pub fn new(wire: Box<dyn Wire>, interrupted: Interrupted) -> Machine {
        let (stores, hands) = (Stores::new(wire.bell()), Hands::new(wire.bell()));
        let now = Instant::now();
        let clock = RealClock { start: now, pump: None, asked: now, interrupted };
        Machine { courier: Courier::new(wire), stores, hands, clock }
    }

    /// The same where ranks need all cores of the node, and threads beside them take cores from ranks.
    #[must_use]
    pub fn crowded(mut self, crowded: bool) -> Machine {
        if crowded {
            self.stores.posix.crowd();
        }
        self
    }

    /// The same with so many threads at most that code chunks beside the rank's own, on cores that no rank has.
    #[must_use]
    pub fn with_hands(mut self, most: u32) -> Machine {
        self.allow_hands(most);
        self
    }

    /// So many from now on.
    pub fn allow_hands(&mut self, most: u32) {
        self.hands.allow(most);
    }

    /// Counts only the time in which the owner of the wire is there to pass datagrams on.
    pub fn count_by(&mut self, pump: Pump) {
        self.clock.pump = Some(pump);
    }

    /// Names at a place. What lies there can be moved to and from from now on, as long as the place exists.
    ///
    /// # Errors
    /// When not all ranks can reach it, or nothing can be there.
    pub fn names(&mut self, location: &Location) -> Result<Arc<dyn Names>, Fault> {
        match location {
            Location::Path(path) => Ok(Arc::new(Directory::new(path))),
            Location::Memory(tree) => {
                self.check_one_process()?;
                self.stores.mount(tree);
                Ok(Arc::new(tree.clone()))
            }
            Location::Objects(memory) => {
                self.check_one_process()?;
                Ok(Arc::new(BucketNames::from(memory)))
            }
            Location::Striped(striped) => {
                let Striped { directories, unit_bytes, name } = striped.clone();
                Ok(Arc::new(StripedDirectory::file(Stripes { directories, unit_bytes }, &name)?))
            }
        }
    }

    /// Refuses what lies in the memory of one process, where there are several.
    fn check_one_process(&mut self) -> Result<(), Fault> {
        let wire = self.courier.wire();
        if wire.is_one_process() {
            return Ok(());
        }
        let processes = wire.size();
        let text = format!(
            "a store in memory cannot be opened by the {processes} processes of a communicator: it lives in one process, \
             and each of them would have another"
        );
        Err(Fault::new(FaultKind::Unsupported, text)
            .hint("give a path (below /dev/shm it lies in the memory of one host), or let threads be the ranks"))
    }

    /// Says whether the disk may begin with what shall be durable before it is waited for. It may, but for those who measure
    /// what that takes by itself.
    pub fn sends_on(&mut self, sends_on: bool) {
        self.stores.posix.sends_on(sends_on);
    }

    /// Where work with names is done, for whoever has not the machine.
    pub fn names_desk(&self) -> Desk {
        self.stores.desk.clone()
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

    fn stamp_ns(&self) -> u64 {
        monotonic_ns()
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
        &mut self.stores
    }

    fn compute(&mut self) -> &mut dyn Compute {
        &mut self.hands
    }

    fn clock(&mut self) -> &mut dyn Clock {
        &mut self.clock
    }

    fn desk(&mut self) -> &mut dyn hyperslab_world::Desk {
        &mut self.stores.desk
    }

    fn buffer(&mut self, bytes: u64) -> Result<Memory, OutOfMemory> {
        Memory::allocate(bytes)
    }

    fn doze(&mut self, limit: Duration) {
        // A rank that looked for messages meanwhile would take the processor from the thread that it waits for.
        let for_names = self.stores.desk.is_awaited();
        if for_names || self.stores.posix.is_syncing() && !self.courier.expects() {
            return self.courier.wire().doze_for_ring(limit);
        }
        self.courier.wire().doze(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::mpsc::channel;
    use crate::sync::thread::ThreadId;
    use crate::wire::{Bell, Datagram, ThreadWire, WireError, thread_wires};
    use hyperslab_world::{Exposed, Part};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A wire that counts how it is waited on: for news, and for rings alone.
    struct Counting(ThreadWire, Arc<[AtomicU64; 2]>);

    impl Wire for Counting {
        fn rank(&self) -> u32 {
            self.0.rank()
        }

        fn size(&self) -> u32 {
            self.0.size()
        }

        fn is_one_process(&self) -> bool {
            self.0.is_one_process()
        }

        fn send(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError> {
            self.0.send(to, bytes)
        }

        fn poll(&mut self) -> Result<Option<Datagram>, WireError> {
            self.0.poll()
        }

        fn unsent_bytes(&self) -> u64 {
            self.0.unsent_bytes()
        }

        fn doze(&mut self, _limit: Duration) {
            self.1[0].fetch_add(1, Ordering::Relaxed);
        }

        fn doze_for_ring(&mut self, _limit: Duration) {
            self.1[1].fetch_add(1, Ordering::Relaxed);
        }

        fn bell(&self) -> Bell {
            self.0.bell()
        }

        fn bound_to(&self) -> Option<ThreadId> {
            self.0.bound_to()
        }

        fn close(self: Box<Self>, limit: Duration) -> Result<(), WireError> {
            Box::new(self.0).close(limit)
        }
    }

    #[test]
    fn who_waits_for_his_own_threads_alone_looks_for_no_messages() {
        let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let wire = Counting(thread_wires(2).remove(0), counts.clone());
        let mut machine = Machine::new(Box::new(wire), Box::new(|| false));
        let dozes = |machine: &mut Machine| {
            machine.doze(Duration::ZERO);
            [0, 1].map(|which: usize| counts[which].swap(0, Ordering::Relaxed))
        };
        assert_eq!(dozes(&mut machine), [1, 0], "for other ranks");
        let (go, wait) = channel();
        let work = move || Ok(Vec::from([wait.recv().unwrap_or(0)]));
        machine.stores.desk.begin(Box::new(work), false);
        assert_eq!(dozes(&mut machine), [0, 1], "for names");
        go.send(1).unwrap();
        while machine.stores.desk.poll().is_none() {}
        assert_eq!(dozes(&mut machine), [1, 0], "it is over");
        let exposed: Vec<Exposed> = Vec::new();
        machine.courier.begin(1, exposed);
        machine.courier.recv(1, 1, Vec::<Part>::new());
        machine.stores.desk.later(|| (), false);
        assert_eq!(dozes(&mut machine), [1, 0], "nobody asks for that, and a message is under way");
    }
}
