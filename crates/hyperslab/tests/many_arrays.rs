//! Many small arrays in one call cost one opening and one closing, not one each.

use hyperslab::{
    ArrayWrite, Comm, Dim, Distribution, LocalArray, MemoryTree, Mode, OpenOptions, ReadOptions, Store, WriteOptions,
};

const ARRAYS: usize = 2048;
const RANKS: u32 = 4;

#[test]
fn two_thousand_arrays_are_one_call() {
    // Thousands of directories on a disk take seconds that say nothing about what is counted here.
    let memory = MemoryTree::new();
    let memory = &memory;
    std::thread::scope(|scope| {
        let ranks: Vec<_> =
            Comm::threads(RANKS).into_iter().map(|comm| scope.spawn(move || rank(&comm, memory))).collect();
        ranks.into_iter().for_each(|rank| rank.join().expect("no rank panics"));
    });
    let chunks = memory.lengths().into_iter().filter(|(name, _)| name.ends_with("/c.0"));
    assert!(chunks.map(|(_, bytes)| bytes).eq([128 * 8 + 4; ARRAYS]), "a chunk and its checksum for every array");
}

fn rank(comm: &Comm, memory: &MemoryTree) {
    let blocks = Distribution::new(&[128], &[u64::from(RANKS)], &[Dim::Block]).unwrap();
    let options = OpenOptions::default().durable(false);
    let store = Store::open(comm, memory, Mode::Write, options).unwrap();
    let names: Vec<String> = (0..ARRAYS).map(|i| format!("a{i:04}")).collect();
    let value = |array: usize, rank: u32| (array * 10) as f64 + f64::from(rank);
    let asks: Vec<ArrayWrite> = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            ArrayWrite::new(name, LocalArray::from_f64(&[32], &[value(i, comm.rank()); 32]), blocks.clone())
        })
        .collect();
    // One chunk an array, so that every array has to be brought together from all ranks.
    let new = WriteOptions::default().chunks(vec![128]);
    let before = comm.agreements();
    let report = store.write(&asks, &new).unwrap();
    assert_eq!(comm.agreements() - before, 2, "one agreement to open, one to close");
    assert_eq!(report.bytes(), (ARRAYS * 128 * 8) as u64);

    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let dealt = Distribution::new(&[128], &[u64::from(RANKS)], &[Dim::Cyclic(8)]).unwrap();
    let before = comm.agreements();
    let (arrays, _) = store.read(&wanted, ReadOptions::default().holding(dealt.clone())).unwrap();
    assert_eq!(comm.agreements() - before, 2);
    for (i, array) in arrays.iter().enumerate() {
        let expected: Vec<f64> = (0..RANKS).flat_map(|holder| [value(i, holder); 8]).collect();
        assert_eq!(array.to_f64(), expected, "array {i}");
    }
    store.close().unwrap();
}
