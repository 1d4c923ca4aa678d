//! Models of what threads do with wires, bells, relays, desks and queues, which loom carries out in each order of turns
//! that it can tell from others. A model fails if its threads can all wait at once, if one touches what another may be
//! changing, if something is never freed, or if it says so itself.
//!
//! Nobody's limit on waiting ends here: see [`super::checked`].

mod couriers;
mod desks;
mod relays;
mod stores;
mod wires;

use crate::wire::{Datagram, ThreadWire, Wire};
use loom::cell::UnsafeCell;
use loom::model::Builder;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Times that loom takes the processor from a thread that could go on, in one order of turns; `LOOM_MAX_PREEMPTIONS`
/// says another number. Three find all faults that were made on purpose.
const PREEMPTIONS: usize = 3;

/// Carries out a model, and prints how many orders there are.
pub(crate) fn explore(name: &str, model: impl Fn() + Sync + Send + 'static) {
    let orders = Arc::new(AtomicUsize::new(0));
    let counted = orders.clone();
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.max_branches = 20_000;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{name}: {} orders", orders.load(Ordering::Relaxed));
}

/// The next datagram, which is slept for.
fn next(wire: &mut dyn Wire) -> Datagram {
    loop {
        if let Some(datagram) = wire.poll().unwrap() {
            return datagram;
        }
        wire.doze(Duration::MAX);
    }
}

/// Two wires that are joined.
fn pair() -> (ThreadWire, ThreadWire) {
    let mut wires = crate::wire::thread_wires(2).into_iter();
    (wires.next().unwrap(), wires.next().unwrap())
}

/// What threads share without a lock of its own: loom fails where one reads or changes what another may be changing.
pub(crate) struct Bare<T>(UnsafeCell<T>);

// SAFETY: loom refuses to let two threads in at a time, and wants what makes one wait for the other.
unsafe impl<T: Send> Sync for Bare<T> {}

impl<T> Bare<T> {
    pub(crate) fn new(value: T) -> crate::sync::Arc<Bare<T>> {
        crate::sync::Arc::new(Bare(UnsafeCell::new(value)))
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: see above.
        self.0.with_mut(|value| change(unsafe { &mut *value }))
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        // SAFETY: see above.
        self.0.with(|value| read(unsafe { &*value }))
    }
}

/// Makes one more of it, and says how many there are.
fn count(bare: &Bare<u8>) -> u8 {
    bare.change(|value| {
        *value += 1;
        *value
    })
}
