//! Whether a walk has changed something that readers may have seen before: if it fails then, what is there may be a mix.

use hyperslab_layout::Durability;
use hyperslab_plan::Action;
use hyperslab_world::{Fault, Request};

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

    /// A request begins: a sync lets what waits for it take the place of other things, one after another.
    pub(crate) fn begins(&mut self, request: &Request) {
        self.any |= self.waiting && matches!(request, Request::Sync { .. });
    }

    /// A step has failed: in place, a part of it may be written, unless the system has taken nothing.
    pub(crate) fn failed(&mut self, action: &Action, fault: &Fault) {
        self.any |= matches!(action, Action::Write { whole: None, .. }) && !fault.unchanged;
    }

    /// A step is done: a whole object takes the place of another then, or, where the store does that `by_syncs`, with the next sync if
    /// it shall be durable by then.
    pub(crate) fn done(&mut self, action: &Action, durability: Durability, by_syncs: impl FnOnce() -> bool) {
        let in_place = matches!(action, Action::Write { whole: None, .. });
        let replaces = matches!(
            action,
            Action::Write { whole: Some(_), replace: true, .. } | Action::Put { replace: true, chunk: None, .. }
        );
        if replaces && durability == Durability::Now && by_syncs() {
            self.waiting = true;
        } else {
            self.any |= replaces || in_place;
        }
    }
}
