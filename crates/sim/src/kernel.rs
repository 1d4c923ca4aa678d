//! The event kernel: one thread, virtual time, a total order of events (time, then the order in which they were planned).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens at an event, to a machine of type `M`.
pub(crate) type Act<M> = Box<dyn FnOnce(&mut M)>;

struct Entry<M> {
    at_ns: u64,
    number: u64,
    act: Act<M>,
}

impl<M> PartialEq for Entry<M> {
    fn eq(&self, other: &Entry<M>) -> bool {
        (self.at_ns, self.number) == (other.at_ns, other.number)
    }
}

impl<M> Eq for Entry<M> {}

impl<M> PartialOrd for Entry<M> {
    fn partial_cmp(&self, other: &Entry<M>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> Ord for Entry<M> {
    fn cmp(&self, other: &Entry<M>) -> std::cmp::Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

/// Events to come, and the time.
pub(crate) struct Kernel<M> {
    now_ns: u64,
    /// Events planned so far.
    number: u64,
    queue: BinaryHeap<Reverse<Entry<M>>>,
}

impl<M> Default for Kernel<M> {
    fn default() -> Kernel<M> {
        Kernel { now_ns: 0, number: 0, queue: BinaryHeap::new() }
    }
}

impl<M> Kernel<M> {
    /// Virtual time \[ns\].
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Events planned so far.
    pub(crate) fn events(&self) -> u64 {
        self.number
    }

    /// Plans an event; one in the past happens now.
    pub(crate) fn at(&mut self, at_ns: u64, act: impl FnOnce(&mut M) + 'static) {
        self.number += 1;
        self.queue.push(Reverse(Entry { at_ns: at_ns.max(self.now_ns), number: self.number, act: Box::new(act) }));
    }

    /// The next event, once all of the present moment are over at the next moment; time passes to it. `only_now` gives
    /// events of the present moment only.
    pub(crate) fn next(&mut self, only_now: bool) -> Option<Act<M>> {
        let Reverse(first) = self.queue.peek()?;
        if only_now && first.at_ns > self.now_ns {
            return None;
        }
        let Reverse(entry) = self.queue.pop()?;
        self.now_ns = entry.at_ns;
        Some(entry.act)
    }
}

/// Something that does one thing after another, in the order of being asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resource {
    free_ns: u64,
    /// Time that it was at work \[ns\].
    pub(crate) busy_ns: u64,
}

impl Resource {
    /// Reserves it for so long, from a moment on; gives the end.
    pub(crate) fn take(&mut self, from_ns: u64, ns: f64) -> u64 {
        let ns = ns.max(0.0).round() as u64;
        self.busy_ns += ns;
        self.free_ns = self.free_ns.max(from_ns) + ns;
        self.free_ns
    }

    /// When it is free.
    pub(crate) fn free_ns(&self) -> u64 {
        self.free_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log {
        kernel: Kernel<Log>,
        said: Vec<(u64, u32)>,
    }

    #[test]
    fn events_come_by_time_and_then_in_the_order_of_planning() {
        let mut log = Log::default();
        for (at, what) in [(5, 1), (3, 2), (5, 3), (3, 4)] {
            log.kernel.at(at, move |log: &mut Log| log.said.push((log.kernel.now_ns(), what)));
        }
        log.kernel.at(4, |log| log.kernel.at(1, |log| log.said.push((log.kernel.now_ns(), 9))));
        while let Some(act) = log.kernel.next(false) {
            act(&mut log);
        }
        assert_eq!(log.said, [(3, 2), (3, 4), (4, 9), (5, 1), (5, 3)]);
    }

    #[test]
    fn a_resource_does_one_thing_after_another() {
        let mut resource = Resource::default();
        assert_eq!(resource.take(10, 5.0), 15);
        assert_eq!(resource.take(11, 2.4), 17);
        assert_eq!(resource.take(30, 1.0), 31);
        assert_eq!((resource.busy_ns, resource.free_ns()), (8, 31));
    }
}
