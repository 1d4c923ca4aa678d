//! Where a number comes from.

use super::error::Fault;
use std::fmt;

/// What kind of source a number has, from the best to the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// The paper whose results are to be reproduced.
    Paper,
    /// Another public source.
    Public,
    /// A measurement of ours.
    Measured,
    /// Chosen so that a published result comes out.
    Fitted,
    /// Nothing better than a guess.
    Guess,
}

/// A number of a profile, for pages that list them and for runs that vary them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constant {
    /// Dotted key, as in `network.latency`.
    pub key: String,
    /// The number as it is written, as in `45 us`.
    pub text: String,
    /// What kind of source it has.
    pub origin: Origin,
    /// The source itself, as in `Kotz 1997, table I`.
    pub source: String,
}

impl Origin {
    /// All, from the best to the least.
    pub const ALL: [Origin; 5] = [Origin::Paper, Origin::Public, Origin::Measured, Origin::Fitted, Origin::Guess];

    /// The word before the colon.
    pub fn word(self) -> &'static str {
        match self {
            Origin::Paper => "paper",
            Origin::Public => "public",
            Origin::Measured => "measured",
            Origin::Fitted => "fitted",
            Origin::Guess => "guess",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Takes `paper: Kotz 1997, table I` apart.
pub(super) fn source(from: &str) -> Result<(Origin, String), Fault> {
    let fault = |text: String| {
        let words: Vec<String> = Origin::ALL.iter().map(|origin| format!("{origin}:")).collect();
        Fault::new(text, format!("`from` begins with one of {}, and then says more", words.join(" ")))
    };
    let (word, text) = from.split_once(':').unwrap_or((from, ""));
    let origin = Origin::ALL.into_iter().find(|origin| origin.word() == word);
    let origin = origin.ok_or_else(|| fault(format!("expected a source in `from`, found {from:?}")))?;
    match text.trim() {
        "" => Err(fault(format!("expected a source after the colon of `from`, found {from:?}"))),
        text => Ok((origin, text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_a_word_and_a_text() {
        assert_eq!(source("paper: Kotz 1997: 4.1"), Ok((Origin::Paper, "Kotz 1997: 4.1".to_owned())));
        for origin in Origin::ALL {
            assert_eq!(source(&format!("{origin}: x")).map(|it| it.0), Ok(origin));
        }
        for bad in ["", ":", "paper", "paper:", "paper:  ", "papers: x", "Kotz: x", " paper: x"] {
            assert!(source(bad).is_err(), "{bad:?}");
        }
    }
}
