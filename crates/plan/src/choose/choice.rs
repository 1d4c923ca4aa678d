//! What is wanted of a choice, and what comes of it.

use crate::price::Price;
use crate::strategy::{Infeasible, Parameters, Strategy};
use crate::transfer::Exchange;

/// What the user wants himself.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Preference {
    /// This strategy and no other.
    pub strategy: Option<Strategy>,
    /// This many servers.
    pub servers: Option<u32>,
    /// These ranks are the servers, and no others.
    pub server_ranks: Option<Vec<u32>>,
    /// Most bytes of a subchunk \[B\].
    pub subchunk_bytes: Option<u64>,
    /// Most bytes of buffers on one rank \[B\].
    pub buffer_bytes_max: Option<u64>,
    /// Where that is open, what the ranks of a node share.
    pub node_budget: Option<NodeBudget>,
    /// Buffer slots of a server.
    pub slots: Option<u32>,
    /// Between whom data cross in two-phase I/O.
    pub exchange: Option<Exchange>,
    /// That storage has no direct I/O, so that none is looked at unless it is asked for by name.
    pub cached: bool,
}

/// Memory for buffers, of which those ranks of a node have equal parts that handle storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeBudget {
    /// Of all of them together \[B\].
    pub bytes: u64,
    /// What each has at least \[B\].
    pub least_bytes: u64,
}

/// Parameters with their price.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The strategy and its parameters.
    pub parameters: Parameters,
    /// What it is expected to cost.
    pub price: Price,
}

/// What was chosen, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// The strategy and its parameters.
    pub parameters: Parameters,
    /// Why these, for people.
    pub why: String,
    /// What they are expected to cost.
    pub price: Price,
    /// All that were priced, the chosen ones among them, the cheapest first.
    pub candidates: Vec<Candidate>,
    /// The strategies among which it was.
    pub strategies: Vec<Strategy>,
    /// Strategies that cannot carry out the transfer.
    pub refused: Vec<(Strategy, Infeasible)>,
    /// Whether there were more to look at than was worth it.
    pub unfinished: bool,
}

impl Candidate {
    /// What it costs without agreements, now and later \[ns\].
    pub(super) fn moving_ns(&self) -> f64 {
        self.price.moving_ns() + self.price.later_ns
    }

    /// The same the first time \[ns\].
    pub(super) fn first_ns(&self) -> f64 {
        self.moving_ns() + self.price.first_ns
    }
}

impl Choice {
    /// The same on a machine on which moving data takes so many times longer than the model says.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Choice {
        let mut scaled = self.clone();
        scaled.price.scale_moving(factor);
        scaled.candidates.iter_mut().for_each(|one| one.price.scale_moving(factor));
        scaled
    }
}
