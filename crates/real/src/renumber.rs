//! A wire on which ranks have other numbers.

use crate::sync::thread::ThreadId;
use crate::wire::{Bell, Datagram, Wire, WireError, no_such_rank};
use std::time::Duration;

/// The same ranks in another order.
pub struct Renumbered {
    wire: Box<dyn Wire>,
    /// The wire's number of each rank, and the other way round.
    beneath: Vec<u32>,
    above: Vec<u32>,
}

impl Renumbered {
    /// Gives ranks their places in `order` as numbers: `order` names each rank of the wire once.
    ///
    /// # Panics
    /// When it does not.
    pub fn new(wire: Box<dyn Wire>, order: &[u32]) -> Renumbered {
        let mut above = vec![u32::MAX; wire.size() as usize];
        for (number, &rank) in order.iter().enumerate() {
            above[rank as usize] = number as u32;
        }
        assert_eq!(order.len(), above.len(), "as many numbers as ranks");
        assert!(!above.contains(&u32::MAX), "each rank has a number");
        Renumbered { wire, beneath: order.to_vec(), above }
    }

    fn below(&self, to: u32) -> Result<u32, WireError> {
        self.beneath.get(to as usize).copied().ok_or_else(|| no_such_rank(self.rank(), to, self.size()))
    }
}

impl Wire for Renumbered {
    fn rank(&self) -> u32 {
        self.above[self.wire.rank() as usize]
    }

    fn size(&self) -> u32 {
        self.wire.size()
    }

    fn is_one_process(&self) -> bool {
        self.wire.is_one_process()
    }

    fn send(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError> {
        self.wire.send(self.below(to)?, bytes)
    }

    fn note(&mut self, to: u32, bytes: Vec<u8>) -> Result<(), WireError> {
        self.wire.note(self.below(to)?, bytes)
    }

    fn is_gone(&self, rank: u32) -> bool {
        self.below(rank).is_ok_and(|below| self.wire.is_gone(below))
    }

    fn poll(&mut self) -> Result<Option<Datagram>, WireError> {
        Ok(self.wire.poll()?.map(|(from, bytes)| (self.above[from as usize], bytes)))
    }

    fn unsent_bytes(&self) -> u64 {
        self.wire.unsent_bytes()
    }

    fn doze(&mut self, limit: Duration) {
        self.wire.doze(limit);
    }

    fn doze_for_ring(&mut self, limit: Duration) {
        self.wire.doze_for_ring(limit);
    }

    fn bell(&self) -> Bell {
        self.wire.bell()
    }

    fn bound_to(&self) -> Option<ThreadId> {
        self.wire.bound_to()
    }

    fn close(self: Box<Self>, limit: Duration) -> Result<(), WireError> {
        self.wire.close(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::thread_wires;

    #[test]
    fn datagrams_arrive_under_the_new_numbers() {
        let order = [2, 0, 1];
        let mut wires: Vec<Renumbered> =
            thread_wires(3).into_iter().map(|wire| Renumbered::new(Box::new(wire), &order)).collect();
        assert_eq!(wires.iter().map(Wire::rank).collect::<Vec<_>>(), [1, 2, 0]);
        wires[2].send(1, vec![7]).unwrap();
        wires[0].send(0, vec![8]).unwrap();
        assert_eq!(wires[0].poll().unwrap(), Some((0, vec![7])));
        assert_eq!(wires[2].poll().unwrap(), Some((1, vec![8])));
        assert!(wires[1].send(3, vec![]).unwrap_err().0.contains("rank 2 cannot send a datagram to rank 3"));
    }
}
