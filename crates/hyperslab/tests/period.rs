//! How systems of the 1990s behaved is a matter of parameters: ranks that are threads move the same bytes with blocking
//! sends, a linear start-up, one buffer and one step ahead.
#![allow(clippy::disallowed_methods, reason = "tests start threads and touch files")]

use hyperslab::{Dim, Distribution, ElementType, Kind};
use hyperslab_layout::{Durability, Policies, Section, View, dense_strides};
use hyperslab_pack::Memory;
use hyperslab_plan::{Direction, Facts, Parameters, Spread, Stored, Strategy, Transfer, TransferArray};
use hyperslab_real::Machine;
use hyperslab_real::wire::thread_wires;
use hyperslab_walk::{Limits, Party, Question, Walk};
use hyperslab_world::{Exposed, Root};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const RANKS: u32 = 6;
const SHAPE: [u64; 2] = [48, 30];

fn transfer(object: &str) -> Arc<Transfer> {
    let element = ElementType::native(Kind::UInt16);
    let distribution = Distribution::new(&SHAPE, &[2, 3], &[Dim::Block, Dim::Cyclic(4)]).unwrap();
    let stored = Stored::in_file(&SHAPE, element, object, 0);
    let (section, spread) = (Section::whole(&SHAPE), Spread::Regular(distribution));
    let ask = TransferArray { name: "a".into(), section, spread, memory: element, stored };
    Arc::new(Transfer {
        direction: Direction::Write,
        asks: vec![ask],
        ranks: RANKS,
        policies: Policies::of(Durability::Now),
    })
}

/// A rank's part, whose elements are their own positions in the array.
fn part(transfer: &Transfer, rank: u32) -> Exposed {
    let ask = &transfer.asks[0];
    let region = ask.spread.regular().unwrap().owned(rank);
    let view = View::held(&region, 0, &dense_strides(&region.shape(), &[0, 1], 2), ask.memory);
    let memory = Memory::allocate(region.elements() * 2).unwrap();
    for row in 0..SHAPE[0] {
        for column in 0..SHAPE[1] {
            let holds = region.dims[0].contains(row) && region.dims[1].contains(column);
            if holds {
                let value = (row * SHAPE[1] + column) as u16;
                memory.write_bytes(view.address(&[row, column]) as u64, &value.to_ne_bytes());
            }
        }
    }
    Exposed { memory, view: Arc::new(view) }
}

fn write(folder: &Path, strategy: Strategy, object: &str) {
    std::thread::scope(|scope| {
        for wire in thread_wires(RANKS) {
            scope.spawn(move || {
                let mut machine = Machine::new(Box::new(wire), Box::new(|| false));
                let root = Root::new(folder.to_string_lossy());
                hyperslab_world::World::store(&mut machine).enter([root].into());
                let rank = hyperslab_world::World::transport(&mut machine).rank();
                let limits =
                    Limits { arrival: Duration::from_secs(60), progress: Duration::from_secs(60), ..Limits::default() };
                let mut party = Party::new(rank, RANKS, limits).with_arity(RANKS);
                let transfer = transfer(object);
                let user = part(&transfer, rank);
                let parameters = Parameters {
                    strategy,
                    servers: [1, 4].into(),
                    slots: 1,
                    subchunk_bytes: 100,
                    ..Parameters::default()
                };
                let opening = Question::opening("write", Vec::new(), None);
                party.agree(&mut machine, opening, || Ok(Vec::new())).unwrap();
                let facts = Arc::new(Facts::default());
                let views = [user.view.clone()];
                let program = strategy.program(&transfer, &parameters, &facts, rank, &views);
                let mut walk = Walk::new(program, vec![user]).with_blocking_sends().with_window(1);
                let mut walked = None;
                let step = |walk: &mut Walk, world: &mut dyn hyperslab_world::World, party: &mut Party| {
                    walked = walk.poll(world, party);
                    walked.is_some()
                };
                party.drive(&mut machine, &mut walk, step).unwrap();
                walked.unwrap().unwrap();
                party.agree(&mut machine, Question::default(), || Ok(Vec::new())).unwrap();
            });
        }
    });
}

#[test]
fn threads_behave_as_systems_of_the_1990s_did() {
    let folder = std::env::temp_dir().join(format!("hyperslab-period-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let expected: Vec<u8> = (0..(SHAPE[0] * SHAPE[1]) as u16).flat_map(u16::to_ne_bytes).collect();
    for strategy in Strategy::ALL {
        std::fs::write(folder.join(strategy.name()), []).unwrap();
        write(&folder, strategy, strategy.name());
        assert!(std::fs::read(folder.join(strategy.name())).unwrap() == expected, "{strategy}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
