//! What went wrong, in a form that can travel to other ranks unchanged.

use crate::bytes::{Reader, Writer};
use crate::legible::on_one_line;
use hyperslab_layout::Region;
use hyperslab_pack::CopyError;
use std::fmt;
use std::ops::{Deref, DerefMut};

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
    /// A record is not believed, since whoever made it could not have changed the data.
    Foreign,
}

impl FaultKind {
    const ALL: [FaultKind; 15] = [
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
        FaultKind::Foreign,
    ];
}

/// A failure, in fields: whoever handles it looks at these, and it becomes a text only where a person reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault(Box<Details>);

/// What is known of a failure.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Details {
    /// Kind of failure.
    pub kind: FaultKind,
    /// The ranks that it befell, at most some of them; none where that is not known, or there is one rank only.
    pub ranks: Vec<u32>,
    /// How to call these ranks; empty where none are named.
    pub who: String,
    /// What was being done, the outermost first.
    pub doing: Vec<String>,
    /// What went wrong.
    pub what: String,
    /// The stored object that it is about: a path, or a name in a store.
    pub object: Option<String>,
    /// What was expected, and what was found instead.
    pub mismatch: Option<Mismatch>,
    /// More of it, a line each: how ranks differ, or what befell others.
    pub others: Vec<String>,
    /// Names of what readers may now see old and new elements of, since it was being changed in place.
    pub torn: Vec<String>,
    /// What the user may do about it; empty when there is nothing to say.
    pub hint: String,
    /// Whether the storage had room for it, as far as that is what went wrong.
    pub room: RoomLeft,
    /// Whether what was to be written in place is as it was: the system has taken nothing of it.
    pub unchanged: bool,
}

/// Whether there was room for what failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoomLeft {
    /// Something else went wrong.
    Enough,
    /// The storage is full, or over quota: what is removed makes room.
    Full,
    /// This process may not write as much, whatever is removed.
    Limited,
}

/// What was expected of something, and what was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl Fault {
    /// A failure without a hint.
    pub fn new(kind: FaultKind, what: impl Into<String>) -> Fault {
        Fault(Box::new(Details {
            kind,
            ranks: Vec::new(),
            who: String::new(),
            doing: Vec::new(),
            what: what.into(),
            object: None,
            mismatch: None,
            others: Vec::new(),
            torn: Vec::new(),
            hint: String::new(),
            room: RoomLeft::Enough,
            unchanged: false,
        }))
    }

    /// What an error of this library says, whose last line may be a hint.
    pub fn said_by(kind: FaultKind, error: impl fmt::Display) -> Fault {
        let text = error.to_string();
        let (what, hint) = text.rsplit_once("hint: ").unwrap_or((&text, ""));
        match what.trim_end_matches(' ').strip_suffix('\n') {
            Some(what) => Fault::new(kind, what).hint(hint),
            None => Fault::new(kind, text),
        }
    }

    /// That there is no memory for something, which says nothing of what is stored.
    pub fn no_memory(for_what: impl fmt::Display) -> Fault {
        Fault::new(FaultKind::Invalid, format!("no memory for {for_what}")).hint("let the process have more of it")
    }

    /// The same about a stored object, which what went wrong may name, too.
    #[must_use]
    pub fn about(mut self, object: impl Into<String>) -> Fault {
        self.object = Some(object.into());
        self
    }

    /// The same with what was expected, and what was found.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>, found: impl Into<String>) -> Fault {
        self.mismatch = Some(Mismatch { expected: expected.into(), found: found.into() });
        self
    }

    /// The same with the ranks that it befell, which are called so. Of one that others had before, these stay the ranks.
    #[must_use]
    pub fn on(mut self, ranks: &[u32], who: impl Into<String>) -> Fault {
        self.name_in_place();
        if self.ranks.is_empty() {
            self.ranks = ranks.to_vec();
        }
        self.who = who.into();
        self
    }

    /// Lets the message name the ranks where it does so far, behind what is put in front of it.
    fn name_in_place(&mut self) {
        if !self.who.is_empty() {
            let who = std::mem::take(&mut self.who);
            self.doing.insert(0, format!("on {who}"));
        }
    }

    /// The same for want of room.
    #[must_use]
    pub fn lacking(mut self, room: RoomLeft) -> Fault {
        self.room = room;
        self
    }

    /// Whether it failed for want of room.
    pub fn lacks_room(&self) -> bool {
        self.room != RoomLeft::Enough
    }

    /// The same where the system has taken nothing of what was to be written.
    #[must_use]
    pub fn leaving_unchanged(mut self, unchanged: bool) -> Fault {
        self.unchanged = unchanged;
        self
    }

    /// The same of another kind.
    #[must_use]
    pub fn as_kind(mut self, kind: FaultKind) -> Fault {
        self.kind = kind;
        self
    }

    /// The same, with what befell other ranks, a line each.
    #[must_use]
    pub fn beside(mut self, others: Vec<String>) -> Fault {
        self.others = others.iter().flat_map(|text| text.lines()).map(|line| line.trim_start().to_string()).collect();
        self
    }

    /// The same, with more to say of what went wrong.
    #[must_use]
    pub fn also(mut self, more: impl fmt::Display) -> Fault {
        self.what = format!("{}; {more}", self.what);
        self
    }

    /// The same where these may hold old and new elements now.
    #[must_use]
    pub fn torn(mut self, names: impl IntoIterator<Item = String>) -> Fault {
        self.torn.extend(names);
        self
    }

    /// The whole message, without the hint.
    pub fn text(&self) -> String {
        let who = if self.who.is_empty() { String::new() } else { format!("on {}: ", self.who) };
        let doing: String = self.doing.iter().map(|doing| format!("{doing}: ")).collect();
        let mismatch = |Mismatch { expected, found }: &Mismatch| format!(": expected {expected}, found {found}");
        let mismatch = self.mismatch.as_ref().map(mismatch).unwrap_or_default();
        let first = format!("{who}{doing}{}{mismatch}", self.what);
        let torn = self.torn_text();
        let lines = [&first].into_iter().chain(&self.others).chain(&torn);
        let lines: Vec<_> = lines.map(|line| on_one_line(line)).collect();
        lines.join("\n  ")
    }

    /// What readers may see now, as a line.
    fn torn_text(&self) -> Option<String> {
        /// Names that are shown.
        const SHOWN_MAX: usize = 6;
        if self.torn.is_empty() {
            return None;
        }
        let shown: Vec<String> = self.torn.iter().take(SHOWN_MAX).map(|name| format!("'{name}'")).collect();
        let more = self.torn.len() - shown.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!(
            "{}{more} may now hold a mix of old and new elements, until they are written again",
            shown.join(", ")
        ))
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
        self.name_in_place();
        self.doing.insert(0, doing.to_string());
        self
    }

    /// Bytes for a message to another rank.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Details { kind, ranks, who, doing, what, object, mismatch, others, torn, hint, room, unchanged } = &**self;
        let kind = FaultKind::ALL.iter().position(|known| known == kind).expect("every kind is listed") as u8;
        let list = |w: Writer, texts: &[String]| {
            texts.iter().fold(w.number(texts.len() as u64), |w, text| w.bytes(text.as_bytes()))
        };
        let w = Writer::tagged(kind).number(ranks.len() as u64);
        let w = ranks.iter().fold(w, |w, &rank| w.number(rank.into())).bytes(who.as_bytes());
        let w = list(w, doing).bytes(what.as_bytes());
        let mismatch: Vec<String> = mismatch.iter().flat_map(|m| [m.expected.clone(), m.found.clone()]).collect();
        let w = list(list(list(list(w, object.as_slice()), &mismatch), others), torn).bytes(hint.as_bytes());
        w.number(*room as u64).number((*unchanged).into()).0
    }

    /// Reads what [`Fault::to_bytes`] made.
    pub fn from_bytes(bytes: &[u8]) -> Option<Fault> {
        let mut r = Reader::new(bytes);
        let list = |r: &mut Reader| (0..r.number()?).map(|_| r.text()).collect::<Option<Vec<String>>>();
        let kind = *FaultKind::ALL.get(usize::from(r.tag()?))?;
        let ranks = (0..r.number()?).map(|_| u32::try_from(r.number()?).ok()).collect::<Option<_>>()?;
        let (who, doing, what) = (r.text()?, list(&mut r)?, r.text()?);
        let object = list(&mut r)?.pop();
        let mismatch = match &list(&mut r)?[..] {
            [expected, found] => Some(Mismatch { expected: expected.clone(), found: found.clone() }),
            _ => None,
        };
        let (others, torn, hint) = (list(&mut r)?, list(&mut r)?, r.text()?);
        let room = match r.number()? {
            0 => RoomLeft::Enough,
            1 => RoomLeft::Full,
            _ => RoomLeft::Limited,
        };
        let unchanged = r.number()? != 0;
        let details = Details { kind, ranks, who, doing, what, object, mismatch, others, torn, hint, room, unchanged };
        Some(Fault(Box::new(details)))
    }
}

impl Deref for Fault {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Fault {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())?;
        if !self.hint.is_empty() {
            write!(f, "\n  hint: {}", on_one_line(&self.hint))?;
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
        assert_eq!(fault.text(), "a NaN of float64 cannot become int32, among elements [3..8, 0..2]");
        assert_eq!(Fault::of_copy(error, None).text(), "a NaN of float64 cannot become int32");
    }

    #[test]
    fn faults_travel_unchanged() {
        for kind in FaultKind::ALL {
            let plain = Fault::new(kind, "é text").hint("h").context("writing");
            let full = plain.clone().about("/a/b").expected("9 B", "8 B").on(&[3, 70000], "ranks 3 and 70000");
            let full = full.beside(vec!["on rank 1: no".into()]).lacking(RoomLeft::Limited).leaving_unchanged(true);
            for fault in [plain, full] {
                assert_eq!(Fault::from_bytes(&fault.to_bytes()), Some(fault));
            }
        }
        assert_eq!(Fault::from_bytes(&[]), None);
        assert_eq!(Fault::from_bytes(&[0, 9, 0, 0, 0, 1]), None);
        assert_eq!(Fault::from_bytes(&[99, 0, 0, 0, 0]), None);
    }

    #[test]
    fn texts_are_made_of_fields() {
        let fault = Fault::new(FaultKind::Corrupt, "'/a/c/0' is damaged").about("/a/c/0").expected("90 B", "88 B");
        let fault = fault.context("step 3").context("read of 'rho'").on(&[1, 2], "ranks 1 and 2").hint("read another");
        let text = "on ranks 1 and 2: read of 'rho': step 3: '/a/c/0' is damaged: expected 90 B, found 88 B";
        assert_eq!(fault.to_string(), format!("{text}\n  hint: read another"));
        let again = fault.clone().context("an earlier call").on(&[5], "rank 5");
        assert!(again.text().starts_with("on rank 5: an earlier call: on ranks 1 and 2: read of"), "{again}");
        assert_eq!(again.ranks, [1, 2]);
        let error = "no 'a\n  hint: b\n' in 'c\x1b'\n  hint: look\ninto it";
        assert_eq!(
            Fault::said_by(FaultKind::NotFound, error).to_string(),
            "no 'a\\n  hint: b\\n' in 'c\\x1b'\n  hint: look\\ninto it"
        );
        assert_eq!(Fault::said_by(FaultKind::NotFound, "hint: no").to_string(), "hint: no");
        let beside = Fault::new(FaultKind::Peer, "a\nb").beside(vec![Fault::new(FaultKind::Peer, "c\nd").to_string()]);
        assert_eq!(beside.to_string(), "a\\nb\n  c\\nd");
        let fault = fault.also("a link is in the way").beside(vec!["on rank 7: no".into()]);
        assert!(
            fault
                .text()
                .ends_with("'/a/c/0' is damaged; a link is in the way: expected 90 B, found 88 B\n  on rank 7: no")
        );
    }
}
