//! Models of relays: a thread that must not call the wire talks by way of the one that may.

use super::{explore, next, pair};
use crate::relay::relay;
use crate::sync::thread::ThreadId;
use crate::sync::{Arc, atomic::AtomicBool, atomic::Ordering, thread};
use crate::wire::{Bell, Datagram, Wire, WireError};
use std::time::Duration;

#[test]
fn who_sleeps_behind_a_relay_gets_his_answer() {
    explore("relay", || {
        let (here, mut far) = pair();
        let (mut relay, pump) = relay(Box::new(here), thread::current().id());
        let over = Arc::new(AtomicBool::new(false));
        let ended = over.clone();
        let worker = thread::spawn(move || {
            relay.send(1, vec![1]).unwrap();
            relay.send(1, vec![2]).unwrap();
            let answer = next(&mut relay);
            ended.store(true, Ordering::Release);
            (relay, answer)
        });
        let mut heard = Vec::new();
        while !over.load(Ordering::Acquire) {
            pump.pump();
            while let Some((_, bytes)) = far.poll().unwrap() {
                heard.extend(bytes);
                if heard.len() == 2 {
                    far.send(0, vec![3]).unwrap();
                }
            }
            thread::yield_now();
        }
        let (relay, answer) = worker.join().unwrap();
        assert_eq!((heard, answer), (vec![1, 2], (1, vec![3])));
        assert_eq!(relay.unsent_bytes(), 0);
        assert_eq!(Box::new(relay).close(Duration::MAX), Ok(()));
    });
}

#[test]
fn others_that_pump_change_nothing() {
    explore("pumps", || {
        let (mut here, mut far) = pair();
        here.send(0, vec![9]).unwrap();
        let (mut relay, pump) = relay(Box::new(here), thread::current().id());
        let other = pump.clone();
        let worker = thread::spawn(move || {
            other.pump();
            relay.send(1, vec![1]).unwrap();
            next(&mut relay)
        });
        pump.pump();
        assert_eq!(worker.join().unwrap(), (0, vec![9]));
        pump.pump();
        assert_eq!((far.poll(), far.poll()), (Ok(Some((0, vec![1]))), Ok(None)));
    });
}

/// A wire that breaks when it is looked at.
struct Torn(Bell);

impl Wire for Torn {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn is_one_process(&self) -> bool {
        true
    }

    fn send(&mut self, _: u32, _: Vec<u8>) -> Result<(), WireError> {
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<Datagram>, WireError> {
        Err(WireError("torn".to_owned()))
    }

    fn unsent_bytes(&self) -> u64 {
        0
    }

    fn doze(&mut self, limit: Duration) {
        self.0.wait(limit);
    }

    fn bell(&self) -> Bell {
        self.0.clone()
    }

    fn bound_to(&self) -> Option<ThreadId> {
        None
    }

    fn close(self: Box<Self>, _: Duration) -> Result<(), WireError> {
        Ok(())
    }
}

#[test]
fn who_sleeps_behind_a_relay_hears_that_the_wire_is_torn() {
    explore("torn wire", || {
        let (mut relay, pump) = relay(Box::new(Torn(Bell::default())), thread::current().id());
        let worker = thread::spawn(move || {
            while relay.poll().is_ok() {
                relay.doze(Duration::MAX);
            }
            assert!(relay.send(0, vec![1]).is_err(), "it stays torn");
        });
        pump.pump();
        worker.join().unwrap();
    });
}
