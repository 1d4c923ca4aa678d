//! Trees of chunks that get entries again and again, held against a plain map, and walked in every way.

use hyperslab_format::Error;
use hyperslab_format::hdf5::{
    ChangedDataset, ChunkIndex, ChunkPlace, DatasetStorage, Datatype, Filter, Hdf5Edit, Hdf5File, Hdf5Metadata,
    MetadataSource, NewDataset, NewGroup, NewMember, NewStorage,
};
use hyperslab_layout::ByteOrder;
use std::collections::BTreeMap;

struct Bytes(Vec<u8>);

impl MetadataSource for Bytes {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, at: u64, bytes: usize) -> Result<Vec<u8>, Error> {
        let part = self.0.get(at as usize..at as usize + bytes);
        part.map(<[u8]>::to_vec).ok_or_else(|| Error::cut_short("bytes", bytes.to_string(), "fewer"))
    }
}

/// Chunks by their coordinates: where they lie, and how many bytes they have.
type Model = BTreeMap<Vec<u64>, (u64, u32)>;

/// A file with a dataset of 8 B an element and these chunks.
fn file(shape: &[u64], chunk: &[u64], places: Vec<ChunkPlace>) -> Bytes {
    let dataset = NewDataset {
        name: "c".into(),
        shape: shape.to_vec(),
        limits: vec![None; shape.len()],
        datatype: Datatype::Float { bytes: 8, order: ByteOrder::Little },
        fill: None,
        storage: NewStorage::Chunked { chunk: chunk.to_vec(), places: places.into() },
        filters: vec![Filter { number: 1, name: String::new(), optional: true, values: vec![6] }],
        attributes: Vec::new(),
        dimensions: Vec::new(),
    };
    let root = NewGroup { members: vec![NewMember::Dataset(dataset)], ..NewGroup::default() };
    let metadata = Hdf5Metadata::of(&root, 48).unwrap();
    let mut bytes = metadata.superblock;
    bytes.extend(metadata.bytes);
    Bytes(bytes)
}

fn grid(shape: &[u64], chunk: &[u64]) -> Vec<u64> {
    shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect()
}

fn ravel(at: &[u64], grid: &[u64]) -> u64 {
    at.iter().zip(grid).fold(0, |number, (at, extent)| number * extent + at)
}

/// The tree's nodes of each level by their neighbours, and by their parents, which must be the same.
fn check_levels(bytes: &[u8], root: u64, key_bytes: usize) -> usize {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let children = |at: u64| -> Vec<u64> {
        let count = usize::from(u16::from_le_bytes(bytes[at as usize + 6..at as usize + 8].try_into().unwrap()));
        (0..count).map(|child| number(at as usize + 24 + child * (key_bytes + 8) + key_bytes)).collect()
    };
    let (mut level, mut depth) = (vec![root], 0);
    loop {
        let mut walked = vec![level[0]];
        assert_eq!(number(level[0] as usize + 8), u64::MAX, "the first has nobody on its left");
        loop {
            let last = *walked.last().unwrap();
            assert_eq!(&bytes[last as usize..last as usize + 4], b"TREE");
            let right = number(last as usize + 16);
            if right == u64::MAX {
                break;
            }
            assert_eq!(number(right as usize + 8), last, "who is on the right has this one on its left");
            walked.push(right);
        }
        assert_eq!(walked, level, "nodes by their neighbours, and by their parents");
        depth += 1;
        if bytes[level[0] as usize + 5] == 0 {
            return depth;
        }
        level = level.iter().flat_map(|at| children(*at)).collect();
    }
}

/// What the file says of its chunks is what the model says.
fn check(source: &Bytes, shape: &[u64], chunk: &[u64], model: &Model) -> usize {
    let found = Hdf5File::open(source, "f").unwrap();
    let listing = found.listing(source).unwrap();
    let dataset = listing.datasets[0].dataset.as_ref().unwrap();
    assert_eq!(dataset.shape.as_deref(), Some(shape));
    let whole: Vec<_> = grid(shape, chunk).iter().map(|extent| 0..*extent).collect();
    let chunks = found.chunks(source, dataset, &whole).unwrap();
    let chunks: Model = chunks.into_iter().map(|one| (one.coordinates, (one.at, one.bytes as u32))).collect();
    assert!(chunks == *model, "{} chunks, not {}", chunks.len(), model.len());
    match &dataset.storage {
        DatasetStorage::Chunked { index: ChunkIndex::TreeV1 { at }, .. } => {
            check_levels(&source.0, *at, 8 + 8 * (shape.len() + 1))
        }
        _ => 0,
    }
}

/// Changes a dataset, and gives how many bytes that took.
fn change(source: &mut Bytes, shape: &[u64], chunk: &[u64], new: &Model) -> usize {
    let grid = grid(shape, chunk);
    let place = |(at, (from, bytes)): (&Vec<u64>, &(u64, u32))| ChunkPlace {
        number: ravel(at, &grid),
        at: *from,
        bytes: *bytes,
        lacks: 0,
    };
    let places = new.iter().map(place).collect();
    let made = {
        let found = Hdf5File::open(source, "f").unwrap();
        let header = found.object_at(source, "c").unwrap().unwrap();
        let mut edit = Hdf5Edit::of(&found, source, source.0.len() as u64).unwrap();
        edit.change(&ChangedDataset { at: header, shape: shape.to_vec(), places }).unwrap();
        edit.made().unwrap()
    };
    source.0.extend(&made.behind);
    for ((at, bytes), (same, before)) in made.in_place.iter().zip(&made.before) {
        let place = *at as usize..*at as usize + bytes.len();
        assert_eq!((&source.0[place.clone()], *same), (&before[..], *at));
        source.0[place].copy_from_slice(bytes);
    }
    made.behind.len()
}

#[test]
fn any_entries_are_added_to_any_tree() {
    for seed in 0..150 {
        let mut random = fastrand::Rng::with_seed(seed);
        let ndim = random.usize(1..=3);
        let chunk: Vec<u64> = (0..ndim).map(|_| random.u64(1..4)).collect();
        let mut shape: Vec<u64> = (0..ndim).map(|_| random.u64(1..[400, 60, 20][ndim - 1])).collect();
        let mut model = Model::new();
        let some = |shape: &[u64], share: f64, random: &mut fastrand::Rng| -> Model {
            let grid = grid(shape, &chunk);
            let count: u64 = grid.iter().product();
            let mut new = Model::new();
            for _ in 0..(count as f64 * share).ceil() as u64 {
                let at = grid.iter().map(|extent| random.u64(0..*extent)).collect();
                new.insert(at, (random.u64(0..100), random.u32(1..16)));
            }
            new
        };
        let begin = if random.bool() { some(&shape, random.f64(), &mut random) } else { Model::new() };
        model.extend(begin.clone());
        let places = begin.iter().map(|(at, (from, bytes))| ChunkPlace {
            number: ravel(at, &grid(&shape, &chunk)),
            at: *from,
            bytes: *bytes,
            lacks: 0,
        });
        let mut source = file(&shape, &chunk, places.collect());
        check(&source, &shape, &chunk, &model);
        for _ in 0..6 {
            let d = random.usize(0..ndim);
            shape[d] += random.u64(0..9);
            let share = [0.001, 0.02, 0.5][random.usize(0..3)];
            let new = some(&shape, share, &mut random);
            model.extend(new.clone());
            change(&mut source, &shape, &chunk, &new);
            check(&source, &shape, &chunk, &model);
        }
    }
}

#[test]
fn an_append_to_a_large_tree_takes_the_room_of_a_few_nodes() {
    let count = 70_000u64;
    let places = (0..count).map(|number| ChunkPlace { number, at: 8 * number, bytes: 8, lacks: 0 });
    let mut source = file(&[count], &[1], places.collect());
    let mut model: Model = (0..count).map(|number| (vec![number], (8 * number, 8))).collect();
    let node = 24 + 65 * 24 + 64 * 8;
    let mut depth = 0;
    for step in 0..200 {
        let new: Model = (0..3).map(|i| (vec![count + 3 * step + i], (8 * (count + 3 * step + i), 8))).collect();
        model.extend(new.clone());
        let shape = [count + 3 * (step + 1)];
        let taken = change(&mut source, &shape, &[1], &new);
        assert!(taken <= 5 * (node + 8), "{taken} B");
        if step % 50 == 0 {
            depth = check(&source, &shape, &[1], &model);
        }
    }
    assert_eq!(depth, 3);
}
