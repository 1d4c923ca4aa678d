//! Rank 0 gives out room in an object, whatever else it is at: it answers when it takes what has arrived.

use hyperslab_layout::stored::Stretch;
use hyperslab_world::{World, Writer};

/// Rank 0's side: what is left of the object, and who asks.
#[derive(Default)]
pub(crate) struct Giving {
    /// In which call, and from which byte on.
    open: Option<(u64, u64)>,
    /// Who asks for how many bytes, in which call.
    asking: Vec<(u64, u32, u64)>,
}

impl Giving {
    /// Begins to give out room in a call, from this byte on.
    pub(crate) fn begin(&mut self, call: u64, from: u64) {
        self.open = Some((call, from));
    }

    pub(crate) fn ask(&mut self, call: u64, from: u32, bytes: u64) {
        self.asking.push((call, from, bytes));
    }

    /// The next so many bytes; none after the end of what can be counted.
    pub(crate) fn take(&mut self, call: u64, bytes: u64) -> Option<Stretch> {
        let (of, next) = self.open.as_mut().filter(|open| open.0 == call)?;
        debug_assert_eq!(*of, call);
        let first = *next;
        *next = first.checked_add(bytes)?;
        Some((first, bytes))
    }

    /// Answers those who ask in the call that is open, by signals with this tag; those of earlier calls nobody waits for.
    pub(crate) fn answer(&mut self, world: &mut dyn World, given: u8) {
        let Some((open, _)) = self.open else { return };
        for (call, from, bytes) in std::mem::take(&mut self.asking) {
            if call > open {
                self.asking.push((call, from, bytes));
            } else if let Some((first, bytes)) = self.take(call, bytes) {
                let told = Writer::tagged(given).number(call).number(first).number(bytes);
                world.transport().signal(from, told.0);
            }
        }
    }

    /// Where what was given out in this call ends, if any was.
    pub(crate) fn end(&self, call: u64) -> Option<u64> {
        self.open.filter(|open| open.0 == call).map(|open| open.1)
    }
}
