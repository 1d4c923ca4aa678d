//! An agreement of all ranks, for which rank 0 perhaps works in storage.

use crate::served;
use hyperslab_walk::{Agreed, Awaited, Consensus, Failed, Party, Question, Votes, Waits};
use hyperslab_world::{Fault, Reader, Work, World, Writer};

/// Gives what rank 0 does when all have answered, told how all voted, and whether it does that at once.
pub type Begin = Box<dyn FnOnce(Votes) -> (Work, bool) + Send>;

/// What rank 0 does in an agreement.
enum Decides {
    /// Nothing: it tells what is known.
    Tells(Vec<u8>),
    /// This, once all have answered.
    Begins(Begin),
    /// The desk has it.
    Begun,
}

/// An agreement under way on one rank.
pub struct Agreement {
    consensus: Consensus,
    decides: Decides,
    /// Whether what rank 0 tells concerns clients only; else its work says what servers are told.
    plain: bool,
    /// On rank 0, when all had answered \[ns\].
    answered_ns: Option<u64>,
    /// On rank 0: how long its syncs had taken when it began, and since then \[ns\].
    synced_ns: (u64, u64),
    /// Where all are told how long rank 0's syncs took: in the opening of the call, and of what it wrote itself \[ns\].
    tells_syncs: Option<[u64; 2]>,
}

impl Agreement {
    /// Begins an agreement, for which rank 0 does something, if anything. It concerns clients only.
    ///
    /// # Errors
    /// When an earlier failure ended the use of this party.
    pub fn open(party: &mut Party, question: Question, begin: Option<Begin>) -> Result<Agreement, Fault> {
        let decides = begin.map_or(Decides::Tells(Vec::new()), Decides::Begins);
        Ok(Agreement {
            consensus: party.open(question)?,
            decides,
            plain: true,
            answered_ns: None,
            synced_ns: (0, 0),
            tells_syncs: None,
        })
    }

    /// The same where rank 0's work tells servers, too: as [`served`] says it.
    pub(crate) fn with_servers(self) -> Agreement {
        Agreement { plain: false, ..self }
    }

    /// The same where all are told how long rank 0's syncs took, so long before, and in this agreement, in front of what else its
    /// work tells. [`syncs_of`] reads it.
    pub(crate) fn telling_syncs(self, before_ns: [u64; 2]) -> Agreement {
        Agreement { tells_syncs: Some(before_ns), ..self }
    }

    /// Begins an agreement in which rank 0 tells what it knows already, also to servers: as [`served`] says it.
    pub(crate) fn tell(party: &mut Party, question: Question, told: Vec<u8>) -> Result<Agreement, Fault> {
        let decides = Decides::Tells(told);
        Ok(Agreement {
            consensus: party.open(question)?,
            decides,
            plain: false,
            answered_ns: None,
            synced_ns: (0, 0),
            tells_syncs: None,
        })
    }

    /// The same, where rank 0 has something to say of a failure before all ranks get it.
    pub(crate) fn where_failed(self, failed: Option<Failed>) -> Agreement {
        Agreement { consensus: self.consensus.where_failed(failed), ..self }
    }

    /// When all ranks had answered, which rank 0 knows \[ns\].
    pub(crate) fn answered_ns(&self) -> Option<u64> {
        self.answered_ns
    }

    /// How long the syncs took that rank 0 did in it, which it knows \[ns\].
    pub(crate) fn synced_ns(&self) -> u64 {
        self.synced_ns.1
    }

    /// Goes on; gives what all ranks get once it is over.
    pub fn poll(&mut self, world: &mut dyn World, party: &mut Party) -> Option<Result<Agreed, Fault>> {
        let Agreement { consensus, decides, plain, answered_ns, synced_ns, tells_syncs } = self;
        let traced = party.trace.is_some();
        let serves = served::has_servers(party);
        let wraps = serves && *plain;
        let told = |payload: Vec<u8>| if wraps { served::plain(&payload) } else { payload };
        let agreed = consensus.poll_with(world, party, &mut |world, votes| {
            answered_ns.get_or_insert_with(|| world.clock().stamp_ns());
            match std::mem::replace(decides, Decides::Begun) {
                Decides::Tells(known) => return Some(Ok(told(known))),
                Decides::Begins(begin) => {
                    let (work, at_once) = begin(votes);
                    let desk = world.desk();
                    if traced {
                        desk.watch(true);
                    }
                    synced_ns.0 = desk.synced_ns();
                    desk.begin(work, at_once);
                }
                Decides::Begun => {}
            }
            let decided = world.desk().poll()?;
            synced_ns.1 = world.desk().synced_ns() - synced_ns.0;
            Some(decided.map(|payload| {
                told(match tells_syncs {
                    Some([opening, own]) => telling([*opening, *own, synced_ns.1], payload),
                    None => payload,
                })
            }))
        })?;
        if let Some(trace) = &mut party.trace {
            trace.spent_deciding(&world.desk().spent());
        }
        Some(agreed.and_then(|agreed| match serves {
            true => Ok(Agreed { payload: served::payload(&agreed.payload)?, ..agreed }),
            false => Ok(agreed),
        }))
    }
}

/// How long rank 0's syncs took, in front of what else is told; nothing where it did none, and there is nothing else.
fn telling(syncs_ns: [u64; 3], payload: Vec<u8>) -> Vec<u8> {
    if syncs_ns == [0; 3] && payload.is_empty() {
        return payload;
    }
    let mut told = syncs_ns.into_iter().fold(Writer::default(), Writer::number).0;
    told.extend(payload);
    told
}

/// How long rank 0's syncs took in the opening of a call, of what it wrote itself, and in the end, as told \[ns\]; and the texts
/// that follow.
pub(crate) fn syncs_of(payload: &[u8]) -> ([u64; 3], Vec<String>) {
    let mut r = Reader::new(payload);
    ([(); 3].map(|()| r.number().unwrap_or(0)), std::iter::from_fn(|| r.text()).collect())
}

impl Awaited for Agreement {
    fn waits(&self) -> Waits {
        self.consensus.waits()
    }

    fn waits_for(&self) -> String {
        self.consensus.waits_for()
    }
}
