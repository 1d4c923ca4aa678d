#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hyperslab_fuzz::check("hdf5_read", bytes));
