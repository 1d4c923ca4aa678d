//! How arrays would be written or read, without doing it.

use crate::arrays::{RawSection, element, section};
use crate::errors::raise;
use crate::layout::RawOwnership;
use crate::options::{OpenKeywords, WriteKeywords, order};
use hyperslab::{Direction, Layout, Limits, Planned};
use pyo3::prelude::*;

/// How an array is stored: chunks of a Zarr array, or an order (C or F) and the bytes before the first array.
#[derive(FromPyObject)]
#[allow(clippy::large_enum_variant, reason = "there is one, for a moment")]
pub(crate) enum RawLayout {
    File((String, u64)),
    Zarr(WriteKeywords),
}

/// A section, and the shape of the array that it is of.
type RawPart = (RawSection, Vec<u64>);

/// How arrays would be written or read: the text, and the same as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn explain(
    py: Python<'_>,
    names: Vec<String>,
    held: Vec<RawOwnership>,
    kind: &str,
    part: Option<RawPart>,
    layout: RawLayout,
    write: bool,
    opening: OpenKeywords,
    servers: Option<Vec<u32>>,
    node: (u32, u32),
    shown: (u32, u64),
) -> PyResult<(String, String)> {
    let planned = Planned {
        names,
        held: held.into_iter().map(|held| (*held.holding()).clone()).collect(),
        element: element(kind)?,
        section: part.map(|(dims, shape)| (section(dims), shape)),
        layout: match layout {
            RawLayout::Zarr(keywords) => Layout::Zarr(keywords.options(py)?.into()),
            RawLayout::File((name, header_bytes)) => Layout::Raw { order: order(&name)?, header_bytes },
        },
        direction: if write { Direction::Write } else { Direction::Read },
        servers,
        hints: opening.options(py)?.preference,
        machine: hyperslab::profile::machine(&hyperslab::profile::at_hand(), node),
        limits: Limits { ranks: shown.0, rounds: shown.1, ..Limits::default() },
    };
    let told = py.detach(|| hyperslab::explain(&planned)).map_err(|error| raise(py, error))?;
    Ok((told.to_string(), told.to_json().to_string()))
}
