//! What is asked of a selection, and what is said of it.

use crate::comm::Comm;
use hyperslab_collective::Compared;
use hyperslab_filter::Parameter;
use hyperslab_layout::Distribution;
use hyperslab_walk::Question;
use hyperslab_world::Fault;

/// What a rank may use for buffers while it selects, where nothing else is said \[B\].
pub const SELECT_BYTES: u64 = 64 << 20;

/// Least memory that is believed \[B\].
pub(crate) const SELECT_BYTES_MIN: u64 = 1 << 16;

/// What is selected.
///
/// ```
/// use hyperslab::{Comm, Distribution, Mode, OpenOptions, ResultShare, Selection, Store, WriteOptions};
/// # fn main() -> Result<(), hyperslab::Error> {
/// # let directory = std::env::temp_dir().join(format!("hyperslab-select-{}", std::process::id()));
/// let comm = Comm::threads(1).remove(0);
/// let store = Store::open(&comm, &directory, Mode::Write, OpenOptions::default())?;
/// let all = Distribution::replicated(&[4], 1)?;
/// store.write_values("rho", &[0.5, 2.0, 1.0, 4.0], &all, &WriteOptions::default())?;
/// let dense = Selection::new("rho > 0.9 and i0 != skipped", ["rho"]);
/// let dense = dense.with("skipped", hyperslab::Scalar::weak_integer(2)).with_positions();
/// let found = store.select(&dense.shared(ResultShare::Owner("i0 // 4".into())))?;
/// assert_eq!((found.len(), found.report().matches), (2, 2));
/// assert_eq!(found.values(0), [2.0_f64, 4.0].map(f64::to_ne_bytes).concat());
/// assert_eq!(found.values(1), [1_u64, 3].map(u64::to_ne_bytes).concat());
/// # std::fs::remove_dir_all(directory).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Selection {
    /// For which elements: those where this expression holds.
    pub expression: String,
    /// Of which arrays; of those in the expression, if it is not said.
    pub columns: Option<Vec<String>>,
    /// Whether the place of each element is told: its number in row-major order.
    pub positions: bool,
    /// Values of names in the expressions.
    pub parameters: Vec<(String, Parameter)>,
    /// Who gets which of them.
    pub share: ResultShare,
    /// What each rank may use for buffers, beside what it gets \[B\].
    pub memory_bytes: u64,
}

/// Who gets which of the elements that were found. Each rank has its own in file order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ResultShare {
    /// As many each, the first ranks those that come first in file order.
    #[default]
    Even,
    /// Who holds the element by this distribution of the grid.
    Distribution(Distribution),
    /// The rank that this expression gives.
    Owner(String),
}

impl Selection {
    /// The elements of these arrays for which an expression holds, shared evenly.
    pub fn new<N: Into<String>>(expression: impl Into<String>, columns: impl IntoIterator<Item = N>) -> Selection {
        Selection {
            expression: expression.into(),
            columns: Some(columns.into_iter().map(Into::into).collect()),
            positions: false,
            parameters: Vec::new(),
            share: ResultShare::Even,
            memory_bytes: SELECT_BYTES,
        }
    }

    /// The same with the place of each element.
    #[must_use]
    pub fn with_positions(self) -> Selection {
        Selection { positions: true, ..self }
    }

    /// The same, where a name in the expressions stands for this.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Parameter>) -> Selection {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// The same, shared so.
    #[must_use]
    pub fn shared(self, share: ResultShare) -> Selection {
        Selection { share, ..self }
    }

    /// The same, with so many bytes for buffers on each rank.
    #[must_use]
    pub fn within(self, memory_bytes: u64) -> Selection {
        Selection { memory_bytes, ..self }
    }
}

/// What selecting took, on this rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SelectReport {
    /// Elements of the grid.
    pub elements: u64,
    /// Elements of it for which the expression holds, on all ranks together.
    pub matches: u64,
    /// Units of chunks that this rank looked at.
    pub units: u64,
    /// Rounds in which it did.
    pub rounds: u64,
    /// Bytes that this rank read from storage \[B\].
    pub read_bytes: u64,
    /// Bytes that this rank sent to others \[B\].
    pub sent_bytes: u64,
    /// Most bytes that this rank had in buffers, what it gets not included \[B\].
    pub buffer_bytes: u64,
}

/// Compares what is asked on all ranks, and brings what is wrong with it on this one. Collective.
pub(crate) fn opened<T>(comm: &Comm, what: &str, compared: Compared, parsed: Result<T, Fault>) -> Result<T, Fault> {
    let refused = comm.undelivered(what).map_or(Ok(()), Err);
    let parsed = refused.and(parsed.map_err(|fault| fault.context(what)));
    let question = Question::opening(what, compared, parsed.as_ref().err().cloned());
    comm.agree(question, || Ok(Vec::new()))?;
    parsed
}
