//! How far a rank goes through its program before it knows that a shard is too short for its index.

use hyperslab_format::zarr::{ArrayMetadata, Codecs, Sharding};
use hyperslab_layout::{Distribution, Kind, Policies, Section, Stored};
use hyperslab_plan::{Direction, Lane, Parameters, Program, Spread, Strategy, Transfer, TransferArray};
use hyperslab_walk::{Indexing, Limits, Party};
use hyperslab_world::lockstep::{Hub, HubWorld};
use hyperslab_world::{MemoryStore, Objects, Root, World};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// A read of all of an array in one shard of so many chunks, by one rank.
fn transfer(chunks: u64) -> Arc<Transfer> {
    let sharding = Sharding::new(&[1], Codecs::plain(false));
    let metadata = ArrayMetadata::new("a", &[chunks], Kind::UInt8, &[chunks], Codecs::sharded(sharding)).unwrap();
    let inner = metadata.inner(&[0]).unwrap();
    let element = metadata.stored_element();
    let stored = Stored::in_shards(&[chunks], element, &inner.chunk, inner.shards, inner.coding);
    let whole = Distribution::replicated(&[chunks], 1).unwrap();
    let ask = TransferArray {
        name: "a".into(),
        section: Section::whole(&[chunks]),
        spread: Spread::Regular(whole),
        memory: element,
        stored,
    };
    Arc::new(Transfer { direction: Direction::Read, asks: vec![ask], ranks: 1, policies: Policies::default() })
}

/// Steps that were looked at until the fault of a shard of so few bytes was known.
fn looked_at(chunks: u64, bytes: usize) -> (u64, String) {
    let transfer = transfer(chunks);
    let objects = Objects::default();
    let key = transfer.asks[0].stored.shards().unwrap().keys.name(&[0]);
    objects.lock().unwrap().insert(key, vec![0; bytes]);
    let hub = Hub::new(1, 1, 0);
    let mut world = HubWorld::new(&hub, 0, MemoryStore::new(objects));
    world.store().enter([Root::new("")].into());
    let mut party = Party::new(0, 1, Limits::default());
    let parameters = Parameters { strategy: Strategy::INDEPENDENT, ..Parameters::default() };
    let program = parameters.strategy.program(&transfer, &parameters, &Arc::default(), 0, &[]);
    let looked = Rc::new(Cell::new(0));
    let count = looked.clone();
    let steps = program.lanes.into_iter().flatten().inspect(move |_| count.set(count.get() + 1));
    let lanes: Vec<Lane> = vec![Box::new(steps)];
    let mut indexing = Indexing::new(&transfer, Program { lanes, ..Program::idle() }, u64::MAX);
    let indexed = std::iter::repeat_with(|| indexing.poll(&mut world, &mut party)).find_map(|over| over).unwrap();
    (looked.get(), indexed.fault.map(|fault| fault.text()).unwrap_or_default())
}

#[test]
fn a_shard_that_is_too_short_is_noticed_before_its_chunks_are_gone_through() {
    let (few, said) = looked_at(1 << 10, 100);
    assert!(said.contains("found 100 B"), "{said}");
    let (many, said) = looked_at(1 << 18, 100);
    assert!(said.contains("found 100 B"), "{said}");
    assert!(many <= few.max(1 << 10), "{many} of {} steps, and {few} of {}", 1 << 18, 1 << 10);
}
