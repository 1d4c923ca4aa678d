//! A wire that any thread may use, over one that only its own thread may call.
//!
//! Below `MPI_THREAD_MULTIPLE`, MPI may be called only from the thread of the user. Another thread can carry out a
//! transfer all the same, as far as files and the memory of neighbours go: it leaves its datagrams here, and the user's
//! thread passes them on whenever it comes by and [pumps](Pump::pump).

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::thread::{self, ThreadId};
use crate::sync::{Arc, Mutex, lock};
use crate::wire::{Bell, Datagram, Wire, WireError};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Datagrams between the two threads.
#[derive(Default)]
struct Queues {
    /// To be sent, in order.
    out: VecDeque<Datagram>,
    /// Arrived, in order.
    arrived: VecDeque<Datagram>,
    /// What the wire said when the owner last passed on.
    failure: Option<WireError>,
    /// Bytes that the wire has not handed over \[B\].
    unsent_bytes: u64,
}

struct Shared {
    rank: u32,
    size: u32,
    owner: ThreadId,
    bell: Bell,
    /// Called by the owner only; `None` once it is closed.
    wire: Mutex<Option<Box<dyn Wire>>>,
    queues: Mutex<Queues>,
    /// When the owner was here last, and how long he has been here in all \[ns\].
    seen: Mutex<Instant>,
    present_ns: AtomicU64,
}

/// The longest time between two visits of the owner that counts as one stay: visits of one that waits are closer.
const STAY: Duration = Duration::from_millis(20);

/// The end that any thread may use. In the owner's own thread it is the wire itself.
pub struct Relay(Arc<Shared>);

/// The end of the owner.
#[derive(Clone)]
pub struct Pump(Arc<Shared>);

/// Makes a wire that only one thread may call usable from others.
pub fn relay(wire: Box<dyn Wire>, owner: ThreadId) -> (Relay, Pump) {
    let (rank, size, bell) = (wire.rank(), wire.size(), wire.bell());
    let wire = Mutex::new(Some(wire));
    let (queues, seen, present_ns) = (Mutex::default(), Mutex::new(Instant::now()), AtomicU64::new(0));
    let shared = Arc::new(Shared { rank, size, owner, bell, wire, queues, seen, present_ns });
    (Relay(shared.clone()), Pump(shared))
}

impl Shared {
    fn is_owner(&self) -> bool {
        thread::current().id() == self.owner
    }

    fn pass_on(&self) {
        if !self.is_owner() {
            return;
        }
        let now = Instant::now();
        let since = now - std::mem::replace(&mut *lock(&self.seen), now);
        self.present_ns.fetch_add(since.min(STAY).as_nanos() as u64, Ordering::Relaxed);
        let mut wire = lock(&self.wire);
        let Some(wire) = wire.as_mut() else { return };
        let out = std::mem::take(&mut lock(&self.queues).out);
        let mut result = out.into_iter().try_for_each(|(to, bytes)| wire.send(to, bytes));
        let mut arrived = Vec::new();
        while result.is_ok() {
            match wire.poll() {
                Ok(Some(datagram)) => arrived.push(datagram),
                Ok(None) => break,
                Err(error) => result = Err(error),
            }
        }
        let news = !arrived.is_empty() || result.is_err();
        let mut queues = lock(&self.queues);
        queues.arrived.extend(arrived);
        queues.unsent_bytes = wire.unsent_bytes();
        queues.failure = result.err().or(queues.failure.take());
        drop(queues);
        if news {
            self.bell.ring();
        }
    }
}

impl Pump {
    /// Passes on what waits, in both directions. In any thread but the owner's it does nothing.
    pub fn pump(&self) {
        self.0.pass_on();
    }

    /// How long the owner has been there to pass something on \[ns\]. While he is not, nobody can wait in vain for an
    /// answer, so limits on waiting are counted in this time.
    pub fn present_ns(&self) -> u64 {
        self.0.present_ns.load(Ordering::Relaxed)
    }
}

impl Relay {
    /// Waits for news: the owner as the wire does it, another thread for what the owner passes on.
    fn doze_with(&self, limit: Duration, doze: impl FnOnce(&mut dyn Wire)) {
        self.0.pass_on();
        let queues = lock(&self.0.queues);
        if !queues.arrived.is_empty() || queues.failure.is_some() {
            return;
        }
        drop(queues);
        if !self.0.is_owner() {
            self.0.bell.wait(limit);
        } else if let Some(wire) = lock(&self.0.wire).as_mut() {
            doze(&mut **wire);
        }
    }
}

impl Wire for Relay {
    fn rank(&self) -> u32 {
        self.0.rank
    }

    fn size(&self) -> u32 {
        self.0.size
    }

    /// The wire beneath may be used by its owner only; what needs a relay is MPI.
    fn is_one_process(&self) -> bool {
        self.0.size == 1
    }

    fn send(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError> {
        let mut queues = lock(&self.0.queues);
        if let Some(failure) = &queues.failure {
            return Err(failure.clone());
        }
        queues.out.push_back((to, bytes));
        drop(queues);
        self.0.pass_on();
        Ok(())
    }

    /// Looking at processes needs no call of MPI.
    fn is_gone(&self, rank: u32) -> bool {
        lock(&self.0.wire).as_ref().is_some_and(|wire| wire.is_gone(rank))
    }

    fn poll(&mut self) -> Result<Option<Datagram>, WireError> {
        self.0.pass_on();
        let mut queues = lock(&self.0.queues);
        match (queues.arrived.pop_front(), &queues.failure) {
            (None, Some(failure)) => Err(failure.clone()),
            (datagram, _) => Ok(datagram),
        }
    }

    /// Nor does memory; who finds the wire in use does without.
    fn spare(&mut self, bytes: usize) -> Option<Vec<u8>> {
        self.0.wire.try_lock().ok()?.as_mut()?.spare(bytes)
    }

    fn reuse(&mut self, bytes: Vec<u8>) {
        if let Ok(mut wire) = self.0.wire.try_lock()
            && let Some(wire) = wire.as_mut()
        {
            wire.reuse(bytes);
        }
    }

    fn free_spare(&mut self) {
        if let Ok(mut wire) = self.0.wire.try_lock() {
            wire.iter_mut().for_each(|wire| wire.free_spare());
        }
    }

    fn unsent_bytes(&self) -> u64 {
        let queues = lock(&self.0.queues);
        queues.unsent_bytes + queues.out.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
    }

    fn doze(&mut self, limit: Duration) {
        self.doze_with(limit, |wire| wire.doze(limit));
    }

    fn doze_for_ring(&mut self, limit: Duration) {
        self.doze_with(limit, |wire| wire.doze_for_ring(limit));
    }

    fn bell(&self) -> Bell {
        self.0.bell.clone()
    }

    fn bound_to(&self) -> Option<ThreadId> {
        None
    }

    fn close(self: Box<Self>, limit: Duration) -> Result<(), WireError> {
        if !self.0.is_owner() {
            return Err(WireError("the wire can be closed only by the thread that made it".to_owned()));
        }
        self.0.pass_on();
        let wire = lock(&self.0.wire).take();
        wire.map_or(Ok(()), |wire| wire.close(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::thread_wires;

    #[test]
    fn another_thread_talks_only_while_the_owner_pumps() {
        let mut wires = thread_wires(2);
        let mut far = wires.pop().expect("two wires");
        let (mut relay, pump) = relay(Box::new(wires.pop().expect("two wires")), thread::current().id());
        let (told, hears) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            relay.send(1, vec![1]).unwrap();
            relay.send(1, vec![2]).unwrap();
            told.send(relay.unsent_bytes()).unwrap();
            loop {
                if let Some(datagram) = relay.poll().unwrap() {
                    return (relay, datagram);
                }
                relay.doze(Duration::from_secs(5));
            }
        });
        assert_eq!(hears.recv().unwrap(), 2);
        assert_eq!(far.poll().unwrap(), None, "nobody has pumped");
        pump.pump();
        assert_eq!((far.poll().unwrap(), far.poll().unwrap()), (Some((0, vec![1])), Some((0, vec![2]))));
        far.send(0, vec![3]).unwrap();
        let other = pump.clone();
        std::thread::spawn(move || other.pump()).join().unwrap();
        assert!(!worker.is_finished(), "only the owner's pumping counts");
        pump.pump();
        let (mut relay, datagram) = worker.join().unwrap();
        assert_eq!(datagram, (1, vec![3]));
        // In the owner's thread, it is the wire itself.
        relay.send(1, vec![4]).unwrap();
        assert_eq!(far.poll().unwrap(), Some((0, vec![4])));
        let before = pump.present_ns();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(pump.present_ns(), before, "no time passes while the owner is away");
        pump.pump();
        assert_eq!(pump.present_ns(), before + STAY.as_nanos() as u64);
        assert_eq!(Box::new(relay).close(Duration::from_secs(1)), Ok(()));
    }
}
