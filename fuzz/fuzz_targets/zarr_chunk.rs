#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hyperslab_fuzz::check("zarr_chunk", bytes));
