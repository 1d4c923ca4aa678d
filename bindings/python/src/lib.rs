//! `hyperslab._core`: the facade for Python. The public package around it is written in Python.
//!
//! Every collective call releases the interpreter, keeps the arrays alive until the last rank is done with them, and
//! notices Ctrl-C.

#[cfg(feature = "mimalloc")]
mod allocator;
mod any_target;
mod arrays;
mod attributes;
mod calibration;
mod choosing;
mod comm;
mod context;
mod described;
mod ending;
mod errors;
mod explaining;
mod interrupts;
mod keyed;
mod layout;
mod looking;
mod memory;
mod options;
mod plain;
mod simulation;
mod target;

use pyo3::prelude::*;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: allocator::BySize = allocator::BySize { small: 1 << 10 };

/// The module.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    hyperslab::binding::map_code();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<arrays::Local>()?;
    module.add_function(wrap_pyfunction!(arrays::locals_of, module)?)?;
    module.add_function(wrap_pyfunction!(attributes::attributes_in, module)?)?;
    module.add_function(wrap_pyfunction!(looking::format_there, module)?)?;
    module.add_class::<layout::Distribution>()?;
    module.add_class::<layout::Pieces>()?;
    module.add_class::<comm::Comm>()?;
    module.add_class::<comm::Report>()?;
    module.add_class::<ending::UndoneHandle>()?;
    module.add_function(wrap_pyfunction!(ending::finalize, module)?)?;
    module.add_function(wrap_pyfunction!(ending::fail_at_exit, module)?)?;
    module.add_function(wrap_pyfunction!(ending::forget, module)?)?;
    module.add_function(wrap_pyfunction!(ending::tell_left, module)?)?;
    module.add_class::<interrupts::ThreadCrew>()?;
    module.add_function(wrap_pyfunction!(interrupts::is_of_a_signal, module)?)?;
    module.add_class::<comm::Request>()?;
    module.add_class::<context::Entered>()?;
    module.add_class::<target::Target>()?;
    module.add_class::<memory::Memory>()?;
    module.add_class::<memory::MemoryObjects>()?;
    module.add_class::<choosing::SelectedHandle>()?;
    module.add_function(wrap_pyfunction!(choosing::select, module)?)?;
    module.add_function(wrap_pyfunction!(choosing::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(choosing::reduce, module)?)?;
    module.add_function(wrap_pyfunction!(target::save_npy, module)?)?;
    module.add_function(wrap_pyfunction!(calibration::measure_alone, module)?)?;
    module.add_function(wrap_pyfunction!(calibration::measure_together, module)?)?;
    module.add_function(wrap_pyfunction!(calibration::identity, module)?)?;
    module.add_function(wrap_pyfunction!(calibration::default_profile, module)?)?;
    module.add_function(wrap_pyfunction!(calibration::profile_path, module)?)?;
    module.add_function(wrap_pyfunction!(calibration::profile_at_hand, module)?)?;
    module.add_function(wrap_pyfunction!(calibration::profile_in_use, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::simulate_json, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::plan_json, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::machines, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::profile_constants, module)?)?;
    module.add_function(wrap_pyfunction!(explaining::explain, module)?)?;
    module.add_function(wrap_pyfunction!(target::clean, module)?)?;
    module.add_function(wrap_pyfunction!(options::strategies, module)?)?;
    module.add_function(wrap_pyfunction!(options::strategy_help, module)?)?;
    module.add_function(wrap_pyfunction!(comm::ranks_of_launcher, module)?)?;
    module.add_function(wrap_pyfunction!(looking::place_seen, module)?)?;
    module.add_function(wrap_pyfunction!(looking::stored_chunks, module)?)?;
    module.add_function(wrap_pyfunction!(looking::texts, module)?)?;
    module.add_function(wrap_pyfunction!(looking::check_open, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::section_of, module)?)?;
    module.add_function(wrap_pyfunction!(layout::balanced_mesh, module)?)?;
    module.add_function(wrap_pyfunction!(layout::schema_chunks, module)?)?;
    module.add_function(wrap_pyfunction!(layout::chunks_for_request, module)?)?;
    Ok(())
}
