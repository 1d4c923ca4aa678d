//! Whether a walk has changed something that readers may have seen before: if it fails then, what is there may be a mix.

use hyperslab_layout::Durability;
use hyperslab_plan::Action;
use hyperslab_world::Request;

#[derive(Clone, Copy, Default)]
pub(crate) struct Changes {
    /// Whether it has, or may have.
    any: bool,
    /// Whether something waits for a sync to take the place of something else.
    waiting: bool,
}

impl Changes {
    pub(crate) fn any(self) -> bool {
        self.any
    }

    /// A request begins: in place, a part of it may be written when it fails.
    pub(crate) fn begins(&mut self, request: &Request) {
        match request {
            Request::Write { .. } => self.any = true,
            Request::Sync { .. } => self.any |= self.waiting,
            _ => {}
        }
    }

    /// A step is done: a whole object takes the place of another then, or, where the store does that `by_syncs`, with the next sync if
    /// it shall be durable by then.
    pub(crate) fn done(&mut self, action: &Action, durability: Durability, by_syncs: impl FnOnce() -> bool) {
        let replaces = matches!(
            action,
            Action::Write { whole: Some(_), replace: true, .. } | Action::Put { replace: true, chunk: None, .. }
        );
        if replaces && durability == Durability::Now && by_syncs() {
            self.waiting = true;
        } else {
            self.any |= replaces;
        }
    }
}
