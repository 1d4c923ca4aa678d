//! What a transfer would do, without doing it.

use super::NewArray;
use super::call::stored;
use crate::array::natural_chunks;
use crate::error::{Error, format_fault};
use hyperslab_format::zarr::{ArrayMetadata, Codecs};
use hyperslab_layout::{Distribution, ElementType, Section, View, dense_strides};
use hyperslab_plan::{Ask, Direction, Machine, Preference, Spread, Transfer, choose, explain};
use std::sync::Arc;

/// Ranks whose programs are counted in an explanation.
const RANKS_SHOWN: u32 = 16;

/// Tells how an array of this distribution would be written as, or read from, a Zarr array: the strategy chosen, its
/// parameters, and who moves what.
///
/// # Errors
/// When the array cannot be, or no strategy fits.
pub fn explain_write(
    name: &str,
    distribution: &Distribution,
    element: ElementType,
    new: &NewArray,
    direction: Direction,
    wish: &Preference,
    machine: Machine,
) -> Result<String, Error> {
    let kind = new.kind.unwrap_or(element.kind);
    let chunks = new.chunks.clone().unwrap_or_else(|| natural_chunks(&distribution.clone().into(), kind.bytes()));
    let codecs = new.codecs.clone().unwrap_or_else(|| Codecs::plain(true));
    let metadata = ArrayMetadata::new(name, distribution.shape(), kind, &chunks, codecs).map_err(format_fault)?;
    let ask = Ask {
        name: name.into(),
        section: Section::whole(distribution.shape()),
        spread: Spread::Regular(distribution.clone()),
        memory: element,
        stored: stored(&metadata, &format!("{name}/"), true),
    };
    let ranks = distribution.ranks() as u32;
    let transfer = Arc::new(Transfer { direction, asks: vec![ask], ranks, sync: false });
    let parameters = choose(&transfer, machine, wish).map_err(|no| Error::invalid(no.to_string()))?;
    let program = |rank: u32| {
        let owned = distribution.owned(rank);
        let order: Vec<usize> = (0..owned.ndim()).collect();
        let strides = dense_strides(&owned.shape(), &order, element.bytes());
        parameters.strategy.program(
            &transfer,
            &parameters,
            &Arc::default(),
            rank,
            &[Arc::new(View::held(&owned, 0, &strides, element))],
        )
    };
    let mut text = format!("chunks {chunks:?}\n");
    text.push_str(&explain(&transfer, &parameters, RANKS_SHOWN, program));
    Ok(text)
}
