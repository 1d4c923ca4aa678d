//! What rank 0 chooses and tells all others.

use hyperslab_plan::{Parameters, Phase, Price, Strategy};

/// Seconds by phase, in the order of [`Phase::ALL`] \[s\].
pub type Predicted = [f64; Phase::ALL.len()];

/// What a transfer of this price is expected to take.
pub fn predicted(price: &Price) -> Predicted {
    Phase::ALL.map(|phase| price.phase(phase) / 1e9)
}

const SECONDS_BYTES: usize = 8 * (Phase::ALL.len() + 1);

/// How a transfer is carried out, and what that is expected to cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// Strategy and parameters.
    pub parameters: Parameters,
    /// What the transfer is expected to cost, by phase \[s\].
    pub predicted: Predicted,
    /// And what a later call, to make durable what this one leaves in the cache \[s\].
    pub later: f64,
}

impl Decision {
    /// For other ranks.
    pub fn to_bytes(&self) -> Vec<u8> {
        let seconds = self.predicted.iter().chain([&self.later]);
        let mut bytes: Vec<u8> = seconds.flat_map(|seconds| seconds.to_le_bytes()).collect();
        bytes.extend(self.parameters.to_bytes());
        bytes
    }

    /// What [`Decision::to_bytes`] made.
    pub fn from_bytes(bytes: &[u8]) -> Option<Decision> {
        let (seconds, parameters) = bytes.split_at_checked(SECONDS_BYTES)?;
        let parameters = Parameters::from_bytes(parameters, &Strategy::ALL)?;
        let mut seconds = seconds.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes));
        let predicted = std::array::from_fn(|_| seconds.next().unwrap_or(0.0));
        Some(Decision { parameters, predicted, later: seconds.next().unwrap_or(0.0) })
    }
}
