//! What MPI-IO will stand on, on this machine: ranks that are threads move boxes of an array of three dimensions, out of local
//! arrays with halos, to and from a plain file of bytes, in which each box is a nest.
#![allow(clippy::disallowed_methods, reason = "tests start threads and touch files")]

use hyperslab_collective::{Arguments, ArrayRequest, Call, Decision, Each, LocalArray, Ownership, Selected, Target};
use hyperslab_layout::{Casting, Durability, ElementType, EndOfFile, Holes, IndexSet, Kind, Overlapping, Policies};
use hyperslab_pack::Memory;
use hyperslab_plan::{Direction, MemoryLayout, Parameters, Stored, Strategy, Transfer};
use hyperslab_real::Machine;
use hyperslab_real::wire::thread_wires;
use hyperslab_walk::{Compared, Limits, Party};
use hyperslab_world::{Fault, Root};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const RANKS: u32 = 4;
/// Of the array, of a rank's box (two by two of them), and of the local array, which has halos.
const ARRAY: [u64; 3] = [5, 8, 12];
const BOX: [u64; 3] = [5, 4, 6];
const LOCAL: [u64; 3] = [6, 6, 9];
/// Where the array begins in the file.
const HEADER: u64 = 100;
const BYTE: ElementType = ElementType::native(Kind::UInt8);

struct ByteFile {
    path: std::path::PathBuf,
    strategy: Strategy,
}

impl Target for ByteFile {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        let length = std::fs::metadata(&self.path).unwrap().len();
        Ok(vec![Stored::in_file(&[length], BYTE, "", 0)])
    }

    fn choose(&mut self, _transfer: &Arc<Transfer>, _laid: &[Option<MemoryLayout>]) -> Result<Decision, Fault> {
        let (strategy, servers) = (self.strategy, [1, 2].into());
        let parameters =
            Parameters { strategy, servers, subchunk_bytes: 100, direct_run_bytes: 6, ..Parameters::default() };
        Ok(Decision { parameters, predicted: [0.0; 5], later: 0.0, plan: 0 })
    }

    fn begin(
        &mut self,
        _stored: &mut [Stored],
        _transfer: &Arc<Transfer>,
        _parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        Ok(vec![Root::new(self.path.to_str().unwrap())])
    }
}

/// The value of an element of the array.
fn value(at: [u64; 3]) -> u8 {
    (at[0] * 96 + at[1] * 12 + at[2]) as u8 | 1
}

fn inside() -> impl Iterator<Item = [u64; 3]> {
    (0..BOX[0]).flat_map(|i| (0..BOX[1]).flat_map(move |j| (0..BOX[2]).map(move |k| [i, j, k])))
}

fn low(rank: u32) -> [u64; 3] {
    [0, u64::from(rank / 2) * BOX[1], u64::from(rank % 2) * BOX[2]]
}

/// Where an element of the box lies in the local array, behind the halo.
fn in_local([i, j, k]: [u64; 3]) -> usize {
    ((i * LOCAL[1] + j + 1) * LOCAL[2] + k + 2) as usize
}

fn carry_out(folder: &Path, strategy: Strategy, direction: Direction, bytes: [Vec<u8>; 4]) -> Vec<(Vec<u8>, u64)> {
    let policies = Policies {
        durability: Durability::Cached,
        overlapping: Overlapping::Any,
        holes: Holes::Kept,
        end: EndOfFile::Short,
    };
    let one = |wire, bytes: Vec<u8>| {
        let mut machine = Machine::new(Box::new(wire), Box::new(|| false));
        let rank = hyperslab_world::World::transport(&mut machine).rank();
        let mut party = Party::new(rank, RANKS, Limits::default());
        let low = low(rank);
        let start = HEADER + (low[0] * ARRAY[1] + low[1]) * ARRAY[2] + low[2];
        let levels = [(BOX[0], ARRAY[1] * ARRAY[2]), (BOX[1], ARRAY[2])];
        let holding = Ownership::Stretch(IndexSet::nested(start, BOX[2], &levels).unwrap());
        let strides = vec![(LOCAL[1] * LOCAL[2]) as i64, LOCAL[2] as i64, 1];
        let memory = Memory::from_vec(bytes);
        let offset = in_local([0; 3]) as i64;
        let local = LocalArray { memory: memory.clone(), element: BYTE, shape: BOX.to_vec(), strides, offset };
        let target = ByteFile { path: folder.join("bytes"), strategy };
        let arguments = Arguments {
            what: "a box of bytes".into(),
            compared: Compared::default(),
            fault: None,
            direction,
            arrays: vec![ArrayRequest {
                name: "bytes".into(),
                selected: Selected::Reached,
                holding: Some(Arc::new(holding)),
                memory: vec![BYTE],
            }],
            locals: Some(vec![vec![local]]),
            casting: Casting::SameKind,
            policies,
            together: false,
            target: (rank == 0).then(|| -> Box<dyn Target> { Box::new(target) }),
            publishes: false,
            at_once: true,
        };
        let call = Call::new(&mut machine, (rank, RANKS), arguments, |_| None);
        let done = call.carry_out(&mut machine, &mut party, Duration::from_secs(5), &mut |_, _| {}).unwrap();
        (memory.to_vec(0, memory.bytes()), done.elements[0])
    };
    std::thread::scope(|scope| {
        let ranks = thread_wires(RANKS).into_iter().zip(bytes).map(|(wire, bytes)| scope.spawn(|| one(wire, bytes)));
        ranks.collect::<Vec<_>>().into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn boxes_with_halos_move_to_and_from_a_file_of_bytes() {
    let folder = std::env::temp_dir().join(format!("hyperslab-bytes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("bytes");
    let local_bytes = LOCAL.iter().product::<u64>() as usize;
    for strategy in Strategy::ALL {
        std::fs::write(&file, [7; 60]).unwrap();
        let bytes = std::array::from_fn(|rank| {
            let mut bytes = vec![0; local_bytes];
            let low = low(rank as u32);
            inside().for_each(|at| bytes[in_local(at)] = value([at[0], low[1] + at[1], low[2] + at[2]]));
            bytes
        });
        carry_out(&folder, strategy, Direction::Write, bytes);
        let mut expected = [vec![7; 60], vec![0; HEADER as usize - 60]].concat();
        let all = (0..ARRAY.iter().product::<u64>()).map(|n| value([n / 96, n / 12 % 8, n % 12]));
        expected.extend(all);
        assert!(std::fs::read(&file).unwrap() == expected, "{strategy} writes what plain loops write");

        // The file ends in the middle of a row of the last plane.
        let end = expected.len() - 30;
        std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(end as u64).unwrap();
        let read = carry_out(&folder, strategy, Direction::Read, std::array::from_fn(|_| vec![0xEE; local_bytes]));
        for (rank, (found, elements)) in read.into_iter().enumerate() {
            let (low, mut wanted, mut there) = (low(rank as u32), vec![0xEE; local_bytes], 0);
            for at in inside() {
                let byte = HEADER + at[0] * 96 + (low[1] + at[1]) * 12 + low[2] + at[2];
                if byte < end as u64 {
                    wanted[in_local(at)] = expected[byte as usize];
                    there += 1;
                }
            }
            assert_eq!(elements, there, "{strategy}, rank {rank}");
            assert!(found == wanted, "{strategy}, rank {rank} reads what is there and touches nothing else");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
