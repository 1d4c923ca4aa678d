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

    /// A step is done: a whole object takes the place of another then, or with the next sync.
    pub(crate) fn done(&mut self, action: &Action, durability: Durability) {
        let replaces = matches!(
            action,
            Action::Write { whole: Some(_), replace: true, .. } | Action::Put { replace: true, chunk: None, .. }
        );
        match durability {
            Durability::Now => self.waiting |= replaces,
            Durability::Cached | Durability::Soon => self.any |= replaces,
        }
    }
}
