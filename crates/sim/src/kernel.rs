//! The event kernel: one thread, virtual time, a total order of events (time, then the order in which they were planned).

use std::collections::VecDeque;

/// What happens at an event, to a machine of type `M`.
pub(crate) type Act<M> = Box<dyn FnOnce(&mut M)>;

struct Entry<M> {
    at_ns: u64,
    act: Act<M>,
}

/// Events to come, and the time.
///
/// Time never falls, so a radix heap orders them: an event lies in the bucket of the highest bit in which its time differs
/// from the time at which buckets were last sorted. Events of one time always lie in one bucket, in the order in which they
/// were planned. Buckets are touched from end to end, which matters when millions of events wait.
pub(crate) struct Kernel<M> {
    now_ns: u64,
    /// Events planned so far.
    number: u64,
    /// Events of the present moment that were not taken, in order.
    due: VecDeque<Act<M>>,
    /// By highest differing bit.
    buckets: [Vec<Entry<M>>; 64],
    /// Bit i says whether bucket i holds something.
    filled: u64,
}

impl<M> Default for Kernel<M> {
    fn default() -> Kernel<M> {
        let buckets = std::array::from_fn(|_| Vec::new());
        Kernel { now_ns: 0, number: 0, due: VecDeque::new(), buckets, filled: 0 }
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
        self.put(Entry { at_ns: at_ns.clamp(self.now_ns, END_NS.max(self.now_ns)), act: Box::new(act) });
    }

    fn put(&mut self, entry: Entry<M>) {
        match (entry.at_ns ^ self.now_ns).checked_ilog2() {
            None => self.due.push_back(entry.act),
            Some(bit) => {
                self.filled |= 1 << bit;
                self.buckets[bit as usize].push(entry);
            }
        }
    }

    /// The next event, once all of the present moment are over at the next moment; time passes to it. `only_now` gives
    /// events of the present moment only.
    pub(crate) fn next(&mut self, only_now: bool) -> Option<Act<M>> {
        if self.due.is_empty() && !only_now {
            self.sort();
        }
        self.due.pop_front()
    }

    /// Lets time pass to the next moment, and sorts the bucket that holds it.
    fn sort(&mut self) {
        if self.filled == 0 {
            return;
        }
        let bit = self.filled.trailing_zeros();
        self.filled &= !(1 << bit);
        let entries = std::mem::take(&mut self.buckets[bit as usize]);
        self.now_ns = entries.iter().map(|entry| entry.at_ns).min().unwrap_or(self.now_ns);
        entries.into_iter().for_each(|entry| self.put(entry));
    }
}

/// No time is later than this \[ns\]: a run that comes near it has long been ended.
const END_NS: u64 = 1 << 62;

/// A time as a whole number \[ns\], at least 0 and never so long that sums wrap round.
pub(crate) fn whole_ns(ns: f64) -> u64 {
    (ns.max(0.0).round() as u64).min(END_NS)
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
        let ns = whole_ns(ns);
        self.busy_ns = self.busy_ns.saturating_add(ns);
        self.free_ns = self.free_ns.max(from_ns).saturating_add(ns).min(END_NS);
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
    fn any_plan_comes_in_order() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut log = Log::default();
        let mut planned = Vec::new();
        for what in 0..3000 {
            if random.u8(0..4) == 0
                && let Some(act) = log.kernel.next(false)
            {
                act(&mut log);
            }
            let at = log.kernel.now_ns() + (1 << random.u32(0..40)) * random.u64(0..3);
            planned.push((at, what));
            log.kernel.at(at, move |log: &mut Log| log.said.push((log.kernel.now_ns(), what)));
        }
        while let Some(act) = log.kernel.next(false) {
            act(&mut log);
        }
        planned.sort_unstable();
        assert_eq!(log.said, planned);
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
