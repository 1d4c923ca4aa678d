//! What went wrong, in a form that can travel to other ranks unchanged.

use hyperslab_layout::Region;
use hyperslab_pack::CopyError;
use std::fmt;

/// Kind of a failure; callers decide by it what to do, bindings map it to exceptions and codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FaultKind {
    /// The caller asked for something impossible.
    Invalid,
    /// Ranks asked for different things.
    Disagreement,
    /// A limit on waiting was reached.
    Timeout,
    /// A named object is not there.
    NotFound,
    /// An object is there that must not be.
    Exists,
    /// The storage refused: no space, no permission, an I/O error.
    Storage,
    /// Stored bytes are not what was written.
    Corrupt,
    /// The user interrupted a rank.
    Interrupted,
    /// Something this version cannot do.
    Unsupported,
    /// Another rank failed before or inside the call, or the link to it broke.
    Peer,
    /// An earlier failure left this handle unusable.
    Poisoned,
    /// Another owner changes the same thing in place.
    Busy,
    /// What was asked is done and visible, but perhaps not durable.
    Unsynced,
    /// What was asked relies on a state that is not there any more.
    Outdated,
}

impl FaultKind {
    const ALL: [FaultKind; 14] = [
        FaultKind::Invalid,
        FaultKind::Disagreement,
        FaultKind::Timeout,
        FaultKind::NotFound,
        FaultKind::Exists,
        FaultKind::Storage,
        FaultKind::Corrupt,
        FaultKind::Interrupted,
        FaultKind::Unsupported,
        FaultKind::Peer,
        FaultKind::Poisoned,
        FaultKind::Busy,
        FaultKind::Unsynced,
        FaultKind::Outdated,
    ];
}

/// A failure: what was asked of what, expected and found, the cause beneath, and perhaps a hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Kind of failure.
    pub kind: FaultKind,
    /// The message, without the hint.
    pub text: String,
    /// What the user may do about it; empty when there is nothing to say.
    pub hint: String,
}

impl Fault {
    /// A failure without a hint.
    pub fn new(kind: FaultKind, text: impl Into<String>) -> Fault {
        Fault { kind, text: text.into(), hint: String::new() }
    }

    /// What went wrong in a copy, of these elements where that is known.
    pub fn of_copy(error: impl Into<CopyError>, region: Option<&Region>) -> Fault {
        let error = error.into();
        match error {
            CopyError::OutOfBounds(_) => {
                Fault::new(FaultKind::Invalid, error.to_string()).hint("the array is smaller than its declared part")
            }
            CopyError::OutOfReach(_) => Fault::new(FaultKind::Unsupported, error.to_string())
                .hint("copy the array to the memory of the host first"),
            CopyError::NotANumber(_) => {
                let hulls = |region: &Region| {
                    let hulls = region.dims.iter().map(|set| set.hull().unwrap_or_default());
                    let bounds: Vec<String> = hulls.map(|(low, high)| format!("{low}..{high}")).collect();
                    format!(", among elements [{}]", bounds.join(", "))
                };
                Fault::new(FaultKind::Invalid, format!("{error}{}", region.map(hulls).unwrap_or_default()))
                    .hint("let the elements stay floats, or give each NaN a value first")
            }
        }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = hint.into();
        self
    }

    /// The same, with what was being done in front.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Fault {
        self.text = format!("{doing}: {}", self.text);
        self
    }

    /// Bytes for a message to another rank.
    pub fn to_bytes(&self) -> Vec<u8> {
        let kind = FaultKind::ALL.iter().position(|&kind| kind == self.kind).expect("every kind is listed") as u8;
        let mut bytes = vec![kind];
        bytes.extend((self.text.len() as u32).to_le_bytes());
        bytes.extend(self.text.as_bytes());
        bytes.extend(self.hint.as_bytes());
        bytes
    }

    /// Reads what [`Fault::to_bytes`] made.
    pub fn from_bytes(bytes: &[u8]) -> Option<Fault> {
        let kind = *FaultKind::ALL.get(usize::from(*bytes.first()?))?;
        let length = u32::from_le_bytes(bytes.get(1..5)?.try_into().ok()?) as usize;
        let text = String::from_utf8(bytes.get(5..5 + length)?.to_vec()).ok()?;
        let hint = String::from_utf8(bytes.get(5 + length..)?.to_vec()).ok()?;
        Some(Fault { kind, text, hint })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if !self.hint.is_empty() {
            write!(f, "\n  hint: {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::Kind;

    #[test]
    fn a_nan_is_named_with_the_piece_in_which_it_is() {
        let error = hyperslab_pack::NotANumber { from: Kind::Float64, to: Kind::Int32 };
        let fault = Fault::of_copy(error, Some(&Region::boxed(&[3, 0], &[8, 2])));
        assert_eq!(fault.kind, FaultKind::Invalid);
        assert_eq!(fault.text, "a NaN of float64 cannot become int32, among elements [3..8, 0..2]");
        assert_eq!(Fault::of_copy(error, None).text, "a NaN of float64 cannot become int32");
    }

    #[test]
    fn faults_travel_unchanged() {
        for kind in FaultKind::ALL {
            let fault = Fault::new(kind, "é text").hint("h").context("writing");
            assert_eq!(Fault::from_bytes(&fault.to_bytes()), Some(fault));
        }
        assert_eq!(Fault::from_bytes(&[]), None);
        assert_eq!(Fault::from_bytes(&[0, 9, 0, 0, 0, 1]), None);
        assert_eq!(Fault::from_bytes(&[99, 0, 0, 0, 0]), None);
    }
}
