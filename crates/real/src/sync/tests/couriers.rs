//! Models of transfers between threads, which move elements straight from array to slot and from slot to array.

use super::{explore, pair};
use crate::Courier;
use crate::sync::thread;
use hyperslab_layout::{ElementType, Kind, Region, View};
use hyperslab_pack::Memory;
use hyperslab_world::{Event, Exposed, Here, Part, Ticket, Transport};
use std::sync::Arc;
use std::time::Duration;

const BYTES: u64 = 2;

fn view() -> Arc<View> {
    Arc::new(View::held(&Region::whole(&[BYTES]), 0, &[1], ElementType::native(Kind::UInt8)))
}

/// A message of one array.
fn message(here: Here) -> Vec<Part> {
    vec![Part { array: 0, region: Region::whole(&[BYTES]), here }]
}

fn memory(value: u8) -> Memory {
    Memory::from_vec(vec![value; BYTES as usize])
}

/// Waits until so many tickets have returned.
fn finish(courier: &mut Courier, tickets: usize) {
    let mut done: Vec<Ticket> = Vec::new();
    loop {
        let mut events = Vec::new();
        courier.poll(&mut events).unwrap();
        let none = events.is_empty();
        for event in events {
            let Event::Done(ticket, result) = event else { panic!("nobody sends signals") };
            result.unwrap();
            assert!(!done.contains(&ticket), "a ticket returned twice");
            done.push(ticket);
        }
        if done.len() == tickets {
            return;
        }
        if none {
            courier.wire().doze(Duration::MAX);
        }
    }
}

/// Elements go from an array to a slot. Its owner changes the array as soon as he may.
#[test]
fn a_slot_gets_what_was_exposed() {
    explore("array to slot", || {
        let (here, there) = pair();
        let owner = thread::spawn(move || {
            let mut courier = Courier::new(Box::new(there));
            let array = memory(5);
            courier.begin(1, vec![Exposed { memory: array.clone(), view: view() }]);
            courier.send(1, 0, message(Here::Exposed));
            finish(&mut courier, 1);
            array.write_bytes(0, &[9; BYTES as usize]);
            courier.end();
        });
        let mut courier = Courier::new(Box::new(here));
        let slot = memory(0);
        courier.begin(1, Vec::new());
        courier.recv(1, 1, message(Here::Slot(slot.clone(), view())));
        finish(&mut courier, 1);
        courier.end();
        assert_eq!(slot.to_vec(0, BYTES), [5; BYTES as usize]);
        owner.join().unwrap();
    });
}

/// Elements go from slots to an array, in two transfers, of which one rank may begin the second while the other is still at
/// the first.
#[test]
fn an_array_gets_what_was_in_the_slot() {
    explore("slot to array", || {
        let (here, there) = pair();
        let server = thread::spawn(move || {
            let mut courier = Courier::new(Box::new(there));
            for transfer in 1..=2 {
                let slot = memory(transfer as u8);
                courier.begin(transfer, Vec::new());
                courier.send(1, 0, message(Here::Slot(slot.clone(), view())));
                finish(&mut courier, 1);
                courier.end();
                slot.write_bytes(0, &[9; BYTES as usize]);
            }
        });
        let mut courier = Courier::new(Box::new(here));
        for transfer in 1..=2 {
            let array = memory(0);
            courier.begin(transfer, vec![Exposed { memory: array.clone(), view: view() }]);
            courier.recv(1, 1, message(Here::Exposed));
            finish(&mut courier, 1);
            courier.end();
            assert_eq!(array.to_vec(0, BYTES), [transfer as u8; BYTES as usize]);
        }
        server.join().unwrap();
    });
}
