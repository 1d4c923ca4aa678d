//! What shall be durable goes to the disk while more is written; all else stays in the system's cache until that likes.

mod common;

use common::{Place, Rows, Waited};
use hyperslab_layout::Durability;
use hyperslab_pack::Memory;
use hyperslab_world::{Request, Store};
use std::fs::File;

#[test]
fn long_requests_that_shall_be_durable_are_sent_on_and_no_others() {
    let place = Place::on_disk("sent-on");
    File::create(place.0.join("file")).unwrap();
    let mut store = Waited::new(&place.0);
    let memory = Memory::allocate(2 << 20).unwrap();
    // Sending on may wait for room in the disk's queue, and so counts as progress, which writing to the cache does not.
    let mut sent = |durable: bool, rows: Rows| {
        let durability = if durable { Durability::Soon } else { Durability::Cached };
        let before = store.store.advance();
        let moves = rows.moves(&memory);
        store.well(vec![Request::Write { object: "file".into(), moves, direct: false, durability }]);
        store.store.advance() - before
    };
    let long = Rows::run(1 << 20, 1 << 20, 0);
    assert_eq!(sent(false, long.clone()), 0);
    assert_eq!(sent(true, long.clone()), 1);
    let longer = Rows::run(5 << 18, 5 << 18, 0);
    assert_eq!(sent(true, longer), 2, "one MiB after the other, and what is left");
    assert_eq!(sent(true, Rows { length: 256 << 10, ..long.clone() }), 0, "short ones are gathered by the system");
    // Others write what lies between: their pages would go to the disk twice.
    let apart = Rows { rows: 16, length: 64 << 10, step: 256 << 10, memory_step: 64 << 10, ..long.clone() };
    assert_eq!(sent(true, apart), 0);
    assert_eq!(sent(false, long), 0);
}
