//! What a strategy says of itself, and the parameters that it leaves open. Which strategies come with the library is listed in
//! `strategies`; whoever asks is given a list.

use crate::facts::Facts;
use crate::price::Machine;
use crate::profile::Profile;
use crate::program::Program;
use crate::transfer::{Exchange, Transfer};
use hyperslab_layout::View;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Who handles storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Rank 0, for all.
    Root,
    /// Each rank, its own elements: none cross between ranks.
    Own,
    /// Those of [`Parameters::servers`].
    Servers,
    /// The ranks that hold something of what is moved in one round, in turn.
    Holders,
}

/// In which order those who handle storage do so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sequence {
    /// That of the file; servers take turns.
    File,
    /// That of the disk, by direct I/O; servers take turns.
    Disk,
    /// That of the file; each has a contiguous part of it.
    Domains,
}

/// Makes the program of a rank out of a transfer, parameters, what is known of explicit pieces, the rank, and how its arrays lie.
pub type Compile = fn(&Arc<Transfer>, &Parameters, &Arc<Facts>, u32, &[Arc<View>]) -> Program;

/// What a strategy is, and what it says to those who ask. It says nothing of costs: programs are priced.
///
/// A new one differs from [`Spec::SERVED`] or [`Spec::OWN`], or from another one's, in what it says, and is put into a list.
#[derive(Clone, Copy)]
pub struct Spec {
    /// Its name in commands and reports, at most 255 bytes; no other one of a list has it.
    pub name: &'static str,
    /// What it does, in a line for people.
    pub about: &'static str,
    /// Who handles storage, where data cross between all ranks.
    pub role: Role,
    /// In which order.
    pub order: Sequence,
    /// How much there is to understand of it: of candidates as cheap, the one with less is taken.
    pub complexity: u32,
    /// Between whom data may cross, the usual first. Among sharers, holders handle storage.
    pub exchanges: &'static [Exchange],
    /// Whether it can carry out a transfer with these parameters, and why not. The answer is the same on all ranks.
    pub feasible: fn(&Arc<Transfer>, &Parameters) -> Result<(), Infeasible>,
    /// The program of one rank, whose array exposed under number i lies where `views[i]` says.
    pub program: Compile,
    /// Whether it is looked at where nobody asks for it by name: not if it is not worth it, or nobody knows what it costs.
    pub worth: fn(&Transfer, &Profile) -> bool,
    /// Buffer slots to begin with.
    pub slots: u32,
    /// Most bytes of a subchunk to begin with, of which a slot may have so many \[B\].
    pub subchunk: fn(&Transfer, &Profile, &Parameters, u64) -> u64,
    /// The subchunk for which its parameters count as usual: this one, or, if `true`, also longer ones \[B\].
    pub usual_subchunk: (u64, bool),
    /// Other parameters to begin with besides, on a machine, if any.
    pub besides: fn(&Transfer, Machine, &Parameters) -> Option<Parameters>,
    /// The same with one parameter changed that only it has.
    pub variants: fn(&Parameters) -> Vec<Parameters>,
    /// Whether it tells layouts of chunks apart as none of the others does.
    pub tells_layouts: bool,
}

/// A strategy.
#[derive(Clone, Copy)]
pub struct Strategy(&'static Spec);

impl Strategy {
    /// The strategy that is specified so.
    pub const fn new(spec: &'static Spec) -> Strategy {
        Strategy(spec)
    }

    /// What it says of itself.
    pub const fn spec(self) -> &'static Spec {
        self.0
    }

    /// Its name in commands and reports.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The strategy with this name.
    pub fn named(name: &str, among: &[Strategy]) -> Option<Strategy> {
        among.iter().copied().find(|strategy| strategy.name() == name)
    }

    /// What there is to choose from, for people: a line for each strategy.
    pub fn help(among: &[Strategy]) -> String {
        let width = among.iter().map(|strategy| strategy.name().len()).max().unwrap_or(0);
        among.iter().map(|strategy| format!("{strategy:<width$}  {}\n", strategy.0.about)).collect()
    }

    /// In which order those who handle storage do so.
    pub fn order(self) -> Sequence {
        self.0.order
    }

    /// Whether each rank handles storage for its own elements.
    pub fn is_own(self) -> bool {
        self.0.role == Role::Own
    }
}

impl PartialEq for Strategy {
    fn eq(&self, other: &Strategy) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Strategy {}

impl Hash for Strategy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Runs from which on readers read for themselves, and the gaps between them \[B\].
pub(crate) const READ_RUN_BYTES: u64 = 512;

/// Smallest and largest subchunks that are tried \[B\].
pub(crate) const SUBCHUNKS: (u64, u64) = (256 << 10, 32 << 20);

/// A strategy, and the choices that it leaves open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Which strategy.
    pub strategy: Strategy,
    /// Ranks that act as servers (or aggregators), in the order in which they take turns.
    pub servers: Arc<[u32]>,
    /// Between whom data cross; for two-phase.
    pub exchange: Exchange,
    /// Buffer slots of a server.
    pub slots: u32,
    /// Most bytes of a subchunk, and of the small chunks that are moved in one round \[B\].
    pub subchunk_bytes: u64,
    /// Runs at least this long go between user memory and storage without a slot, unless they are transposed \[B\].
    pub direct_run_bytes: u64,
    /// Most bytes of buffers on one rank \[B\].
    pub buffer_bytes_max: u64,
    /// For disk-directed: the order in which groups of units lie on the disk, as runs (first group, how many); empty when
    /// it is that of the file, or not known.
    pub order: Vec<(u64, u64)>,
}

impl Parameters {
    /// Who handles storage.
    pub fn role(&self) -> Role {
        let choice = self.strategy.0.exchanges.len() > 1;
        if choice && self.exchange == Exchange::Sharers { Role::Holders } else { self.strategy.0.role }
    }

    /// Bytes for the message in which rank 0 tells its choice.
    pub fn to_bytes(&self) -> Vec<u8> {
        let name = self.strategy.name().as_bytes();
        let mut bytes = vec![self.exchange as u8, name.len() as u8];
        bytes.extend(name);
        let mut number = |n: u64| bytes.extend(n.to_le_bytes());
        number(self.slots.into());
        [self.subchunk_bytes, self.direct_run_bytes, self.buffer_bytes_max].iter().for_each(|&n| number(n));
        number(self.servers.len() as u64);
        self.servers.iter().for_each(|&server| number(server.into()));
        self.order.iter().for_each(|&(first, count)| [first, count].into_iter().for_each(&mut number));
        bytes
    }

    /// Reads what [`Parameters::to_bytes`] made, where there are these strategies.
    pub fn from_bytes(bytes: &[u8], strategies: &[Strategy]) -> Option<Parameters> {
        let (&[exchange, length], rest) = bytes.split_first_chunk()?;
        let (name, numbers) = rest.split_at_checked(length.into())?;
        let strategy = strategies.iter().copied().find(|strategy| strategy.name().as_bytes() == name)?;
        let exchange = [Exchange::All, Exchange::Sharers].into_iter().find(|&e| e as u8 == exchange)?;
        let (numbers, rest) = numbers.as_chunks();
        let mut numbers = numbers.iter().map(|&n| u64::from_le_bytes(n));
        let slots = numbers.next()?.try_into().ok()?;
        let (subchunk_bytes, direct_run_bytes) = (numbers.next()?, numbers.next()?);
        let (buffer_bytes_max, count) = (numbers.next()?, numbers.next()?);
        let servers: Arc<[u32]> = (&mut numbers).take(count as usize).map(|n| n as u32).collect();
        let mut order = Vec::new();
        while let Some(first) = numbers.next() {
            order.push((first, numbers.next()?));
        }
        let whole = rest.is_empty() && servers.len() as u64 == count;
        whole.then_some(Parameters {
            strategy,
            servers,
            exchange,
            slots,
            subchunk_bytes,
            direct_run_bytes,
            buffer_bytes_max,
            order,
        })
    }
}

/// Why a strategy cannot carry out a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Infeasible {
    /// The reason.
    pub reason: String,
    /// What would help.
    pub hint: String,
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  hint: {}", self.reason, self.hint)
    }
}

impl std::error::Error for Infeasible {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_travel_unchanged() {
        let servers = [3, 70000].into();
        let order = vec![(7, 2), (0, 7)];
        let exchange = Exchange::Sharers;
        let parameters =
            Parameters { servers, order, exchange, slots: 5, subchunk_bytes: 1 << 40, ..Default::default() };
        assert_eq!(Parameters::from_bytes(&parameters.to_bytes(), &Strategy::ALL), Some(parameters));
        assert_eq!(Parameters::from_bytes(&Parameters::default().to_bytes(), &[]), None, "nobody knows that strategy");
        assert_eq!(Parameters::from_bytes(&[9; 40], &Strategy::ALL), None);
        assert_eq!(Parameters::from_bytes(&[], &Strategy::ALL), None);
    }
}
