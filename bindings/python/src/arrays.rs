//! Arrays as Python hands them over: addresses and strides, with the object that owns the memory.

use crate::errors::raise_alone;
use hyperslab::binding::Pick;
use hyperslab::{ByteOrder, ElementType, Kind, LocalArray, Memory, Section, Triplet};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PySlice, PyType};

/// Where the elements of one array lie; its memory keeps alive the object that owns them.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Local(LocalArray);

#[pymethods]
impl Local {
    /// Asks an array by the buffer protocol, which takes a tenth of the time of its attributes. `kind` is the type of its
    /// elements where NumPy shows them as others.
    #[new]
    #[pyo3(signature = (array, kind=None))]
    fn new(array: &Bound<'_, PyAny>, kind: Option<&str>) -> PyResult<Local> {
        // An array without dimensions, of which PyO3 takes no buffer, is asked as one of one element.
        let held = match PyUntypedBuffer::get(array) {
            Err(_) if array.getattr("ndim")?.extract::<usize>()? == 0 => {
                let one = Local::new(&array.call_method1("reshape", (1,))?, kind)?;
                return Ok(Local(LocalArray { shape: Vec::new(), strides: Vec::new(), ..one.0 }));
            }
            held => held?,
        };
        let element = match kind {
            Some(kind) => element(kind)?,
            None => of_format(&held.format().to_string_lossy(), held.item_size())?,
        };
        Ok(Local::shown(array, &held, element))
    }

    /// The type of the elements, as NumPy calls it.
    #[getter]
    fn kind(&self) -> String {
        self.0.element.numpy()
    }

    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.0.shape.clone()
    }
}

impl Local {
    /// An array that shows its memory so.
    fn shown(array: &Bound<'_, PyAny>, held: &PyUntypedBuffer, element: ElementType) -> Local {
        let shape: Vec<u64> = held.shape().iter().map(|&extent| extent as u64).collect();
        let strides: Vec<i64> = held.strides().iter().map(|&stride| stride as i64).collect();
        let (mut low, mut high) = (0, 0);
        if !shape.contains(&0) {
            for (&extent, &stride) in shape.iter().zip(&strides) {
                let reach = (extent as i64 - 1) * stride;
                (low, high) = (low + reach.min(0), high + reach.max(0));
            }
            high += held.item_size() as i64;
        }
        let address = (held.buf_ptr() as usize).wrapping_add_signed(low as isize);
        let owner = array.clone().unbind();
        // SAFETY: address and extent are those of a NumPy array, which `owner` keeps alive, and whose memory stays where it
        // is also without the export: NumPy refuses to resize an array that others refer to, unless the program says that
        // nobody does (`refcheck=False`), which is then for the program to know.
        let memory = unsafe { Memory::foreign(address as *mut u8, (high - low) as u64, Box::new(owner)) };
        Local(LocalArray { memory, element, shape, strides, offset: -low })
    }
}

/// Where the elements of several arrays lie; nothing where one of them is none of NumPy's (or of a class that extends it, as
/// masked arrays), shows its elements in no usual way, or is to be written to and cannot be: who asks for each by itself hears why.
#[pyfunction]
pub(crate) fn locals_of(arrays: Vec<Bound<'_, PyAny>>, writable: bool) -> Option<Vec<Local>> {
    arrays.iter().map(|array| usual(array, writable).map(Local)).collect()
}

/// Where the elements of an array lie, if it is as usual as that.
pub(crate) fn usual(array: &Bound<'_, PyAny>, writable: bool) -> Option<LocalArray> {
    static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let ndarray = NDARRAY.import(array.py(), "numpy", "ndarray").ok()?;
    let held = if array.get_type().is(ndarray) { PyUntypedBuffer::get(array).ok()? } else { return None };
    if writable && held.readonly() {
        return None;
    }
    let element = of_format(&held.format().to_string_lossy(), held.item_size()).ok()?;
    Some(Local::shown(array, &held, element).0)
}

/// The type that the buffer protocol calls so: a byte order, and a letter of the `struct` module.
fn of_format(format: &str, bytes: usize) -> PyResult<ElementType> {
    let letters = format.trim_start_matches(['@', '=', '^', '<', '>', '!']);
    let kinds: &[Kind] = match letters {
        "?" => &[Kind::Bool],
        "b" | "h" | "i" | "l" | "q" => &[Kind::Int8, Kind::Int16, Kind::Int32, Kind::Int64],
        "B" | "H" | "I" | "L" | "Q" => &[Kind::UInt8, Kind::UInt16, Kind::UInt32, Kind::UInt64],
        "e" | "f" | "d" => &[Kind::Float16, Kind::Float32, Kind::Float64],
        "Zf" | "Zd" => &[Kind::Complex64, Kind::Complex128],
        _ => &[],
    };
    let order = match format.as_bytes().first() {
        Some(b'>' | b'!') => ByteOrder::Big,
        Some(b'<') => ByteOrder::Little,
        _ => ByteOrder::NATIVE,
    };
    let kind = kinds.iter().find(|kind| kind.bytes() == bytes as u64);
    kind.map(|&kind| ElementType { kind, order })
        .ok_or_else(|| PyTypeError::new_err(format!("elements of format {format} cannot be stored")))
}

/// Start, stride, count and block of each dimension.
pub(crate) type RawSection = Vec<(u64, u64, u64, u64)>;

/// What is selected along one dimension: a slice, (start, stride, count, block), or an index.
pub(crate) struct RawPick(Pick);

impl RawPick {
    pub(crate) fn pick(self) -> Pick {
        self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for RawPick {
    type Error = PyErr;

    fn extract(part: Borrowed<'_, 'py, PyAny>) -> PyResult<RawPick> {
        if let Ok(slice) = part.cast::<PySlice>() {
            let bound = |name: &str| slice.getattr(name)?.extract::<Option<Index>>();
            let (start, stop, step) = (bound("start")?, bound("stop")?, bound("step")?);
            let step = step.map_or(1, |step| step.0);
            return Ok(RawPick(Pick::Range { start: start.map(|s| s.0), stop: stop.map(|s| s.0), step }));
        }
        if let Ok((start, stride, count, block)) = part.extract::<(Index, Index, Index, Index)>() {
            return Ok(RawPick(Pick::Blocks { start: start.0, stride: stride.0, count: count.0, block: block.0 }));
        }
        let index = part.extract::<Index>().map_err(|_| {
            let part = part.repr().map_or_else(|_| "?".into(), |text| text.to_string());
            PyTypeError::new_err(format!(
                "the section has {part}, which is neither an index nor a slice\n  hint: give a slice, an index, or (start, stride, count, block) for each dimension"
            ))
        })?;
        Ok(RawPick(Pick::Index(index.0)))
    }
}

/// A whole number, or what stands for one.
struct Index(i64);

impl<'py> FromPyObject<'_, 'py> for Index {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Index> {
        Ok(Index(value.call_method0("__index__")?.extract()?))
    }
}

/// A section as start, stride, count and block of each dimension; see [`hyperslab::binding::select`].
#[pyfunction]
#[pyo3(signature = (picks, shape=None))]
pub(crate) fn section_of(py: Python<'_>, picks: Vec<RawPick>, shape: Option<Vec<u64>>) -> PyResult<RawSection> {
    let picks: Vec<Pick> = picks.into_iter().map(RawPick::pick).collect();
    let section = hyperslab::binding::select(&picks, shape.as_deref()).map_err(|error| raise_alone(py, error))?;
    Ok(section.dims.iter().map(|t| (t.start, t.stride, t.count, t.block)).collect())
}

/// The local arrays of one array, one for each piece.
pub(crate) fn locals(described: Vec<Py<Local>>) -> Vec<LocalArray> {
    described.iter().map(|one| one.get().0.clone()).collect()
}

pub(crate) fn element(kind: &str) -> PyResult<ElementType> {
    ElementType::from_numpy(kind).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "elements of type {kind} cannot be stored\n  hint: numbers, dates, structured types and plain bytes can"
        ))
    })
}

pub(crate) fn section(raw: RawSection) -> Section {
    let triplet = |(start, stride, count, block)| Triplet { start, stride, count, block };
    Section { dims: raw.into_iter().map(triplet).collect() }
}
