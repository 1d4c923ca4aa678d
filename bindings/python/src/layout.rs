//! Distributions.

use hyperslab::binding::tuple;
use hyperslab::{Dim, IndexSet, Ownership, RunList};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Pieces of this rank's own.
#[pyclass(frozen, from_py_object, module = "hyperslab._core")]
#[derive(Clone)]
pub(crate) struct Pieces(Arc<Ownership>);

#[pymethods]
impl Pieces {
    /// Boxes, each as lowest index and one past the highest per dimension.
    #[staticmethod]
    fn boxes(shape: Vec<u64>, boxes: Vec<Vec<(u64, u64)>>) -> Pieces {
        Pieces(Ownership::Boxes { shape, boxes }.into())
    }

    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.0.shape().to_vec()
    }

    /// Runs of elements in row-major order, each as first element and length.
    #[staticmethod]
    fn runs(py: Python<'_>, shape: Vec<u64>, starts: PyBuffer<i64>, lengths: PyBuffer<i64>) -> PyResult<Pieces> {
        // They may be millions, and as objects of Python each takes longer than to move an element does.
        let (starts, lengths) = (starts.to_vec(py)?, lengths.to_vec(py)?);
        if starts.len() != lengths.len() {
            return Err(PyValueError::new_err(format!(
                "{} offsets need as many lengths, got {}",
                starts.len(),
                lengths.len()
            )));
        }
        let number =
            |value: i64| u64::try_from(value).map_err(|_| PyValueError::new_err(format!("{value} is negative")));
        let runs = starts.into_iter().zip(lengths).map(|(start, length)| Ok((number(start)?, number(length)?)));
        Ok(Pieces(Ownership::Runs(RunList::new(shape, runs.collect::<PyResult<_>>()?)).into()))
    }
}

/// How the ranks hold an array.
#[derive(FromPyObject)]
pub(crate) enum RawOwnership {
    Regular(Distribution),
    Pieces(Pieces),
}

impl RawOwnership {
    pub(crate) fn holding(self) -> Arc<Ownership> {
        match self {
            RawOwnership::Regular(distribution) => distribution.0,
            RawOwnership::Pieces(pieces) => pieces.0,
        }
    }
}

/// A global index space spread over a mesh of ranks: an ownership in closed form.
#[pyclass(frozen, from_py_object, module = "hyperslab._core")]
#[derive(Clone)]
pub(crate) struct Distribution(pub(crate) Arc<Ownership>);

impl Distribution {
    pub(crate) fn regular(&self) -> &hyperslab::Distribution {
        self.0.regular().expect("it is made of a distribution")
    }
}

fn parse_dim(text: &str) -> PyResult<Dim> {
    let bad = || {
        PyValueError::new_err(format!(
            "'{}' is not a way to distribute a dimension\n  hint: use 'block', 'block(n)', the sizes of uneven blocks, 'cyclic', 'cyclic(k)' or '*'",
            text.escape_debug()
        ))
    };
    let lower = text.trim().to_ascii_lowercase();
    if let Some(sizes) = lower.strip_prefix("gen_block(").and_then(|rest| rest.strip_suffix(')')) {
        let sizes = sizes.split(',').map(|size| size.trim().parse()).collect::<Result<Vec<u64>, _>>();
        return sizes.ok().and_then(|sizes| Dim::blocks(&sizes)).ok_or_else(bad);
    }
    let (name, argument) = match lower.split_once('(') {
        Some((name, rest)) => {
            (name.trim(), Some(rest.strip_suffix(')').ok_or_else(bad)?.trim().parse().map_err(|_| bad())?))
        }
        None => (lower.as_str(), None),
    };
    match (name, argument) {
        ("block", None) => Ok(Dim::Block),
        ("block", Some(n)) => Ok(Dim::BlockOf(n)),
        ("cyclic", k) => Ok(Dim::Cyclic(k.unwrap_or(1))),
        ("*", None) => Ok(Dim::Whole),
        _ => Err(bad()),
    }
}

fn dim_text(dim: &Dim) -> String {
    let Dim::Blocks(ends) = dim else { return dim.to_string().to_ascii_lowercase() };
    let starts = std::iter::once(&0).chain(ends.iter());
    let sizes: Vec<String> = ends.iter().zip(starts).map(|(end, start)| (end - start).to_string()).collect();
    format!("gen_block({})", sizes.join(", "))
}

fn runs(set: &IndexSet) -> Vec<(u64, u64, u64, u64)> {
    set.terms().iter().map(|term| (term.start, term.len, term.step, term.count)).collect()
}

#[pymethods]
impl Distribution {
    #[new]
    #[pyo3(signature = (shape, mesh, dims, over=None))]
    fn new(shape: Vec<u64>, mesh: Vec<u64>, dims: Vec<String>, over: Option<Vec<usize>>) -> PyResult<Self> {
        let dims = dims.iter().map(|dim| parse_dim(dim)).collect::<PyResult<Vec<_>>>()?;
        let made = match over {
            Some(over) => hyperslab::Distribution::over_mesh(&shape, &mesh, &dims, &over),
            None => hyperslab::Distribution::new(&shape, &mesh, &dims),
        };
        made.map(|made| Distribution(Arc::new(made.into()))).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.regular().shape().to_vec()
    }

    #[getter]
    fn mesh(&self) -> Vec<u64> {
        self.regular().mesh().to_vec()
    }

    #[getter]
    fn dims(&self) -> Vec<String> {
        self.regular().dims().iter().map(dim_text).collect()
    }

    #[getter]
    fn over(&self) -> Vec<Option<usize>> {
        self.regular().over().to_vec()
    }

    #[getter]
    fn replication(&self) -> u64 {
        self.regular().replication()
    }

    /// Per dimension, the indices that a rank holds, as runs (start, length, step, count).
    fn runs(&self, rank: u32) -> Vec<Vec<(u64, u64, u64, u64)>> {
        if u64::from(rank) >= self.regular().ranks() {
            return self.regular().shape().iter().map(|_| Vec::new()).collect();
        }
        self.regular().owned(rank).dims.iter().map(runs).collect()
    }

    /// Global index of an element of a rank's part.
    fn to_global(&self, rank: u32, local: Vec<u64>) -> Option<Vec<u64>> {
        let owned = self.regular().owned(rank);
        if local.len() != owned.ndim() {
            return None;
        }
        owned.dims.iter().zip(local).map(|(set, position)| set.select(position)).collect()
    }

    /// Ranks that hold an element.
    fn owners(&self, index: Vec<u64>) -> Vec<u32> {
        let bounds: Vec<(u64, u64)> = index.iter().map(|&i| (i, i + 1)).collect();
        let inside = bounds.len() == self.regular().shape().len()
            && index.iter().zip(self.regular().shape()).all(|(i, n)| i < n);
        if inside { self.regular().owners(&bounds, None) } else { Vec::new() }
    }

    fn __eq__(&self, other: &Distribution) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self) -> String {
        self.regular().to_string()
    }
}

/// A mesh of `size` ranks over `ndim` dimensions, as even as factors allow.
#[pyfunction]
pub(crate) fn balanced_mesh(size: u64, ndim: usize) -> Vec<u64> {
    hyperslab::mesh::balanced(size, ndim)
}

/// Chunks of a disk schema: a distribution over servers.
#[pyfunction]
pub(crate) fn schema_chunks(schema: &Distribution, element_bytes: u64) -> Vec<u64> {
    hyperslab::schema_chunks(schema.regular(), element_bytes, hyperslab::CHUNK_BYTES_MAX)
}

/// Chunks for requests of a typical shape.
#[pyfunction]
#[pyo3(signature = (shape, request, element_bytes, chunk_bytes=None))]
pub(crate) fn chunks_for_request(
    shape: Vec<u64>,
    request: Vec<Option<u64>>,
    element_bytes: u64,
    chunk_bytes: Option<u64>,
) -> PyResult<Vec<u64>> {
    if shape.len() != request.len() {
        return Err(PyValueError::new_err(format!(
            "a typical request of {} dimensions cannot be one of an array of shape {shape}",
            request.len(),
            shape = tuple(&shape)
        )));
    }
    let most = chunk_bytes.unwrap_or(hyperslab::CHUNK_BYTES_MAX);
    Ok(hyperslab::chunks_for_request(&shape, &request, element_bytes, most))
}
