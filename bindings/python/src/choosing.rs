//! Selecting and reducing: expressions and their parameters, as Python gives them.

use crate::arrays::element;
use crate::errors::raise_alone;
use crate::interrupts::call;
use crate::layout::Distribution;
use crate::options::Name;
use crate::target::Target;
use hyperslab::binding::{Arrays, reduce_from, select_from};
use hyperslab::{
    Error, Kind, Parameter, ReducedValue, Reducing, Reduction, ResultShare, Scalar, SelectReport, Selection,
};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// A number, with its type where it has one of its own.
#[derive(FromPyObject)]
pub(crate) enum RawNumber {
    #[pyo3(transparent)]
    Integer(i128),
    #[pyo3(transparent)]
    Float(f64),
}

type RawScalar = (Option<String>, RawNumber);

/// A name, whether it stands for a list, and for which numbers.
pub(crate) type RawParameter = (String, bool, Vec<RawScalar>);

fn scalar(name: &str, (kind, number): RawScalar) -> Result<Scalar, Error> {
    let unfit = || Error::invalid(format!("parameter '{name}' is no number that expressions compute with"));
    let kind = kind.map(|kind| hyperslab::ElementType::from_numpy(&kind).ok_or_else(unfit)).transpose()?;
    let made = match (number, kind.map(|element| element.kind)) {
        (RawNumber::Integer(value), None) => Some(Scalar::weak_integer(value)),
        (RawNumber::Float(value), None) => Some(Scalar::weak_float(value)),
        (RawNumber::Integer(value), Some(Kind::Bool)) => Some(Scalar::truth(value != 0)),
        (RawNumber::Integer(value), Some(kind)) => Scalar::integer(value, kind),
        (RawNumber::Float(value), Some(kind)) => Scalar::float(value, kind),
    };
    made.ok_or_else(unfit)
}

fn parameters(py: Python<'_>, raw: Vec<RawParameter>) -> PyResult<Vec<(String, Parameter)>> {
    let parameter = |(name, is_list, numbers): RawParameter| {
        let scalars = numbers.into_iter().map(|number| scalar(&name, number)).collect::<Result<Vec<_>, _>>()?;
        let one = scalars.first().copied().filter(|_| !is_list).map(Parameter::One);
        Ok((name, one.unwrap_or(Parameter::Several(scalars))))
    };
    let made: Result<Vec<_>, Error> = raw.into_iter().map(parameter).collect();
    made.map_err(|error| raise_alone(py, error))
}

/// What a call took: names and numbers.
fn report_of(report: SelectReport) -> Vec<(&'static str, u64)> {
    let SelectReport { elements, matches, units, rounds, read_bytes, sent_bytes, buffer_bytes } = report;
    vec![
        ("elements", elements),
        ("matches", matches),
        ("units", units),
        ("rounds", rounds),
        ("read_bytes", read_bytes),
        ("sent_bytes", sent_bytes),
        ("buffer_bytes", buffer_bytes),
    ]
}

/// What a rank got of what was selected.
#[pyclass(frozen, name = "Selected", module = "hyperslab._core")]
pub(crate) struct SelectedHandle(hyperslab::SelectedElements);

#[pymethods]
impl SelectedHandle {
    /// How many elements there are.
    #[getter]
    fn count(&self) -> u64 {
        self.0.len()
    }

    /// Extents of the grid.
    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.0.shape().to_vec()
    }

    /// Names and types of the columns.
    fn columns(&self) -> Vec<(String, String)> {
        self.0.columns().iter().map(|(name, element)| (name.clone(), element.numpy())).collect()
    }

    /// The values of a column.
    fn values<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyByteArray>> {
        PyByteArray::new_with(py, self.0.bytes(column) as usize, |to| {
            self.0.copy_to(column, to);
            Ok(())
        })
    }

    /// What it took.
    fn report(&self) -> Vec<(&'static str, u64)> {
        report_of(self.0.report())
    }
}

/// A collective call, without the interpreter: what goes wrong is known to all ranks.
fn choosing<T: Send>(
    py: Python<'_>,
    target: &Target,
    run: impl FnOnce(&dyn Arrays) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let opened = target.open()?;
    call(py, || run(opened.arrays())).inspect_err(|_| opened.fail())
}

/// Reads the elements for which an expression holds: of which arrays, with their positions, and how they are shared: by a
/// distribution, by an expression, or else evenly.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as Python calls it")]
pub(crate) fn select(
    py: Python<'_>,
    target: &Target,
    expression: String,
    columns: Option<Vec<Name>>,
    positions: bool,
    bound: Vec<RawParameter>,
    distribution: Option<Distribution>,
    owner: Option<String>,
    memory: u64,
) -> PyResult<SelectedHandle> {
    let share = match (distribution, owner) {
        (Some(distribution), _) => ResultShare::Distribution(distribution.regular().clone()),
        (None, Some(owner)) => ResultShare::Owner(owner),
        (None, None) => ResultShare::Even,
    };
    let columns = columns.map(|names| names.into_iter().map(|Name(name)| name).collect());
    let parameters = parameters(py, bound)?;
    let selection = Selection { expression, columns, positions, parameters, share, memory_bytes: memory };
    choosing(py, target, |arrays| select_from(arrays, &selection)).map(SelectedHandle)
}

/// A number, its type, the counts of a histogram, how many elements there were, and what it took.
type RawReduced = (Option<Py<PyAny>>, String, Vec<u64>, u64, Vec<(&'static str, u64)>);

/// Makes one number, or a few, of the elements for which an expression holds.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as Python calls it")]
pub(crate) fn reduce(
    py: Python<'_>,
    target: &Target,
    reduction: &str,
    values: String,
    condition: Option<String>,
    bound: Vec<RawParameter>,
    edges: Vec<f64>,
    memory: u64,
) -> PyResult<RawReduced> {
    let reduction = match reduction {
        "count" => Reduction::Count,
        "sum" => Reduction::Sum,
        "mean" => Reduction::Mean,
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        "histogram" => Reduction::Histogram(edges),
        other => {
            let error = Error::invalid(format!("there is no reduction '{other}'"));
            return Err(raise_alone(py, error.with_hint("there are count, sum, mean, min, max, histogram")));
        }
    };
    let parameters = parameters(py, bound)?;
    let reducing = Reducing { reduction, values, condition, parameters, memory_bytes: memory };
    let reduced = choosing(py, target, |arrays| reduce_from(arrays, &reducing))?;
    let element = hyperslab::ElementType::native(reduced.kind).numpy();
    let (value, counts) = match reduced.value {
        ReducedValue::Signed(value) => (Some(value.into_pyobject(py)?.into_any().unbind()), Vec::new()),
        ReducedValue::Unsigned(value) => (Some(value.into_pyobject(py)?.into_any().unbind()), Vec::new()),
        ReducedValue::Float(value) => (Some(value.into_pyobject(py)?.into_any().unbind()), Vec::new()),
        ReducedValue::Counts(counts) => (None, counts),
    };
    Ok((value, element, counts, reduced.count, report_of(reduced.report)))
}

/// Name, type and bytes of an array in memory.
type RawColumn = (String, String, Vec<u8>);

/// The values of an expression over arrays in memory: their type and bytes.
#[pyfunction]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    expression: &str,
    arrays: Vec<RawColumn>,
    shape: Vec<u64>,
    bound: Vec<RawParameter>,
) -> PyResult<(String, Bound<'py, PyByteArray>)> {
    let bound = parameters(py, bound)?;
    let bound: Vec<(&str, Parameter)> = bound.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let mut columns = Vec::with_capacity(arrays.len());
    for (name, kind, bytes) in &arrays {
        columns.push((name.as_str(), element(kind)?.kind, &bytes[..]));
    }
    let evaluated = py.detach(|| hyperslab::evaluate(expression, &columns, &shape, &bound));
    let (kind, values) = evaluated.map_err(|error| raise_alone(py, error))?;
    Ok((hyperslab::ElementType::native(kind).numpy(), PyByteArray::new(py, &values)))
}
