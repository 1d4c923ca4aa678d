//! Chunks of HDF5, through filters.

use super::Input;
use super::chunk::both_ways;
use hyperslab_format::hdf5::{Filter, Pipeline};
use hyperslab_layout::Codec;

const NUMBERS: [u16; 9] = [1, 2, 3, 32000, 32001, 32004, 32008, 32015, 4];

pub(super) fn check(bytes: &[u8]) {
    if let Some(pipeline) = Pipeline::from_bytes(bytes) {
        assert_eq!(Pipeline::from_bytes(&pipeline.to_bytes()), Some(pipeline));
    }
    let mut input = Input::new(bytes);
    let filter = |input: &mut Input| {
        let number = input.one_of(&NUMBERS);
        let values = (0..input.below(6)).map(|_| input.number() as u32).collect();
        Filter { number, name: "f".into(), optional: false, values }
    };
    let filters: Vec<Filter> = (0..input.below(4)).map(|_| filter(&mut input)).collect();
    let (lacks, plain_bytes) = (u32::from(input.byte()), input.number());
    let Ok(pipeline) = Pipeline::of(&filters, "d") else { return };
    assert_eq!(Pipeline::from_bytes(&pipeline.to_bytes()), Some(pipeline.clone()));
    assert_eq!(pipeline.filters().len(), filters.len());
    let _ = pipeline.check_written("d");
    let rest = input.rest();
    both_ways(&pipeline, rest, plain_bytes);
    both_ways(&pipeline.without(lacks), rest, plain_bytes);
}
