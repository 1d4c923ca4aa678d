//! The ladder of examples runs: each is a program whose `main` asserts what it shows.

/// Takes each example as a module, and runs it.
macro_rules! ladder {
    ($($name:ident in $path:literal,)*) => {
        $(
            #[path = $path]
            mod $name;
        )*

        #[test]
        fn every_example_runs() {
            $($name::main();)*
        }
    };
}

ladder! {
    first in "../examples/01_write_read.rs",
    second in "../examples/02_sections.rs",
    third in "../examples/03_steps.rs",
    fourth in "../examples/04_several_arrays.rs",
    fifth in "../examples/05_errors.rs",
    sixth in "../examples/06_files.rs",
}

#[cfg(all(feature = "ndarray", feature = "num-complex"))]
#[path = "../examples/07_ndarray.rs"]
mod seventh;

#[cfg(all(feature = "ndarray", feature = "num-complex"))]
#[test]
fn the_example_with_ndarray_runs() {
    seventh::main();
}
