//! What a process does besides moving bytes: coding chunks and deriving programs.

use hyperslab_format::zarr::Codecs;
use hyperslab_layout::{Dim, Distribution, ElementType, Kind, Policies, Section, View, dense_strides};
use hyperslab_plan::{Action, Direction, Facts, Parameters, Spread, Stored, Strategy, Transfer, TransferArray};
use hyperslab_real::calibration::{Case, Effort, Series, Turns};
use hyperslab_world::{Fault, FaultKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of a chunk \[B\].
const CHUNK_BYTES: u64 = 4 << 20;
/// Level of Zstandard: that of its own default is rarely worth the time.
const LEVEL: i32 = 1;

/// Times of coding a chunk: `encode` and `decode`, at `bytes`.
///
/// Its elements are those of a smooth field with noise in the last digits, as simulations have them: zeros would be
/// coded several times faster.
pub(super) fn coding(effort: Effort, interrupted: &mut dyn FnMut() -> bool) -> Result<Vec<Series>, Fault> {
    let bytes = CHUNK_BYTES.min(effort.bytes);
    let raw: Vec<u8> = (0..bytes / 8).flat_map(|number| sample(number).to_le_bytes()).collect();
    let codecs = Codecs::zstd(LEVEL, true);
    let failed = |error: hyperslab_format::Error| Fault::new(FaultKind::Corrupt, format!("measuring: {error}"));
    let encoded = codecs.encode(&raw, "sample").map_err(failed)?;
    let (raw, codecs, encoded) = (&raw, &codecs, &encoded);
    let at = [("bytes", bytes as f64)];
    let encode = Case::new("encode", &at, move || {
        let begun = Instant::now();
        codecs.encode(raw, "sample").map_err(failed)?;
        Ok(begun.elapsed().as_secs_f64())
    });
    let decode = Case::new("decode", &at, move || {
        let begun = Instant::now();
        codecs.decode(encoded, bytes, "sample").map_err(failed)?;
        Ok(begun.elapsed().as_secs_f64())
    });
    Turns::new(effort.time).take(vec![encode, decode], interrupted)
}

fn sample(number: u64) -> f64 {
    let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (number as f64 * 1e-3).sin() + noise as f64 * 1e-12
}

/// Times of deriving rank 0's program of a server-directed write: `plan`, of `steps` and `pieces`, as the walker counts
/// them.
///
/// Two transfers with few and many pieces to a step tell their costs apart.
pub(super) fn planning(effort: Effort, interrupted: &mut dyn FnMut() -> bool) -> Result<Vec<Series>, Fault> {
    let cases = [
        (vec![1 << 14, 1 << 12], 4, vec![Dim::Block, Dim::Whole]),
        (vec![1 << 9, 1 << 17], 64, vec![Dim::Whole, Dim::Block]),
        (vec![1 << 8, 1 << 18], 256, vec![Dim::Whole, Dim::Block]),
    ];
    let case = |(shape, ranks, dims): (Vec<u64>, u32, Vec<Dim>)| {
        let planned = Planned::new(&shape, ranks, &dims);
        let (steps, pieces) = planned.derived();
        Case::new("plan", &[("steps", steps as f64), ("pieces", pieces as f64)], move || {
            let begun = Instant::now();
            planned.derived();
            Ok(begun.elapsed().as_secs_f64())
        })
    };
    Turns::new(effort.time).take(cases.map(case).into(), interrupted)
}

/// A transfer to be planned.
struct Planned {
    transfer: Arc<Transfer>,
    parameters: Parameters,
    facts: Arc<Facts>,
    views: Vec<Arc<View>>,
}

impl Planned {
    fn new(shape: &[u64], ranks: u32, dims: &[Dim]) -> Planned {
        let element = ElementType::native(Kind::Float64);
        let order: Vec<usize> = (0..shape.len()).collect();
        let stored = Stored::in_file(shape, element, "sample", 0);
        let distribution = Distribution::new(shape, &[ranks.into()], dims).expect("the shapes above are distributable");
        let region = distribution.owned(0);
        let view = View::held(&region, 0, &dense_strides(&region.shape(), &order, element.bytes()), element);
        let ask = TransferArray {
            name: "sample".into(),
            section: Section::whole(shape),
            spread: Spread::Regular(distribution),
            memory: element,
            stored,
        };
        let transfer = Transfer { direction: Direction::Write, asks: vec![ask], ranks, policies: Policies::default() };
        let parameters =
            Parameters { strategy: Strategy::SERVER_DIRECTED, servers: [0].into(), ..Parameters::default() };
        let facts = Arc::new(Facts::of_mine(BTreeMap::new()));
        Planned { transfer: Arc::new(transfer), parameters, facts, views: vec![Arc::new(view)] }
    }

    /// Derives the whole program; gives its steps, besides messages, and the pieces of its messages.
    fn derived(&self) -> (u64, u64) {
        let strategy = self.parameters.strategy;
        let program = strategy.program(&self.transfer, &self.parameters, &self.facts, 0, &self.views);
        let (mut steps, mut pieces) = (0, 0);
        for step in program.lanes.into_iter().flatten() {
            match step.action {
                Action::Send { parts, .. } | Action::Recv { parts, .. } => pieces += parts.len() as u64,
                _ => steps += 1,
            }
        }
        (steps, pieces)
    }
}
