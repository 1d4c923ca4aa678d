//! What rank 0 chooses and tells all others.

use hyperslab_plan::{Parameters, Phase, Price, Strategy};

/// Seconds by phase, in the order of [`Phase::ALL`] \[s\].
pub type Predicted = [f64; Phase::ALL.len()];

/// What a transfer of this price is expected to take.
pub fn predicted(price: &Price) -> Predicted {
    Phase::ALL.map(|phase| price.phase(phase) / 1e9)
}

/// How a transfer is carried out, and what that is expected to cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// Strategy and parameters.
    pub parameters: Parameters,
    /// What the transfer is expected to cost, by phase \[s\].
    pub predicted: Predicted,
    /// And what a later call, to make durable what this one leaves in the cache \[s\].
    pub later: f64,
    /// Number of the plan on rank 0, which may remember it.
    pub plan: u64,
}

impl Decision {
    /// For other ranks.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.costs_to_bytes();
        bytes.extend(self.parameters.to_bytes());
        bytes
    }

    /// The same without parameters, which are known.
    pub(crate) fn costs_to_bytes(&self) -> Vec<u8> {
        let seconds = self.predicted.iter().chain([&self.later]).map(|seconds| seconds.to_le_bytes());
        seconds.chain([self.plan.to_le_bytes()]).flatten().collect()
    }

    /// With these parameters, and what [`Decision::costs_to_bytes`] made.
    pub(crate) fn from_costs(bytes: &[u8], parameters: Parameters) -> Option<Decision> {
        let (numbers, []) = bytes.as_chunks() else { return None };
        let (predicted, &[later, plan]) = numbers.split_last_chunk()?;
        let predicted: &[[u8; 8]; Phase::ALL.len()] = predicted.try_into().ok()?;
        let predicted = predicted.map(f64::from_le_bytes);
        Some(Decision { parameters, predicted, later: f64::from_le_bytes(later), plan: u64::from_le_bytes(plan) })
    }

    /// What [`Decision::to_bytes`] made.
    pub fn from_bytes(bytes: &[u8]) -> Option<Decision> {
        let (costs, parameters) = bytes.split_at_checked(8 * (Phase::ALL.len() + 2))?;
        let parameters = Parameters::from_bytes(parameters, &Strategy::ALL)?;
        Decision::from_costs(costs, parameters)
    }
}
