//! What a rank did when: spans of its steps, waits and agreements, if somebody wants to know.
//!
//! A recorder belongs to a [`Party`](crate::Party), which has none by default; then nothing is measured. Times are those of
//! [`Clock::stamp_ns`](hyperslab_world::Clock::stamp_ns), so real and imagined ranks record in the same way.

use hyperslab_layout::{Object, Region};
use hyperslab_plan::{Action, Place, Step};
use hyperslab_world::{Exposed, NamesChore, NamesSpan, Root, Ticket, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a span is about. Numbers are those of the files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Finding out what is to be done: deriving steps; on rank 0, making ready and choosing.
    Plan = 0,
    /// Copying or filling on this rank.
    Pack = 1,
    /// Encoding or decoding chunks.
    Code = 2,
    /// A message, at its sender.
    Send = 3,
    /// A message, at its receiver.
    Receive = 4,
    /// Reading from the store.
    Read = 5,
    /// Writing to the store.
    Write = 6,
    /// Making durable.
    Sync = 7,
    /// The walker has nothing to do before a step ends: [`Span::of`] says a step of which kind.
    Wait = 8,
    /// An agreement of all ranks.
    Agree = 9,
    /// Rank 0 makes visible, or removes, while the others wait.
    Commit = 10,
    /// Opening, closing, or asking about a file, by a plain call; on rank 0, small files and directories.
    Metadata = 11,
    /// The program around the calls, as far as it says so.
    Application = 12,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Kind; 13] = [
        Kind::Plan,
        Kind::Pack,
        Kind::Code,
        Kind::Send,
        Kind::Receive,
        Kind::Read,
        Kind::Write,
        Kind::Sync,
        Kind::Wait,
        Kind::Agree,
        Kind::Commit,
        Kind::Metadata,
        Kind::Application,
    ];

    /// Which of several steps under way a rank is said to wait for: storage before the processor before messages.
    fn turn(self) -> u8 {
        match self {
            Kind::Sync => 0,
            Kind::Read | Kind::Write => 1,
            Kind::Pack | Kind::Code => 2,
            _ => 3,
        }
    }
}

/// No number: of a rank, a step or an object.
pub const NONE: u32 = u32::MAX;

/// Something that took time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// What.
    pub kind: Kind,
    /// Of a wait: the kind of step that it was for. Otherwise the kind itself.
    pub of: Kind,
    /// The lane of the program.
    pub lane: u8,
    /// Whether it failed.
    pub failed: bool,
    /// When it was handed over \[ns\].
    pub begin_ns: u64,
    /// When it was found to be over \[ns\].
    pub end_ns: u64,
    /// When nothing that it follows was missing any more \[ns\].
    pub ready_ns: u64,
    /// What it moved \[B\].
    pub bytes: u64,
    /// The round of the program; of an agreement, its number.
    pub round: u32,
    /// The step in its lane, or [`NONE`].
    pub step: u32,
    /// The step that ended last of those that it follows, or [`NONE`].
    pub after: u32,
    /// The other rank of a message, or [`NONE`].
    pub peer: u32,
    /// Pieces of a message.
    pub pieces: u32,
    /// The object in the store, or the name of what an application does.
    pub object: Option<Arc<str>>,
}

impl Span {
    /// A span that is no step.
    pub fn plain(kind: Kind, begin_ns: u64, end_ns: u64) -> Span {
        Span {
            kind,
            of: kind,
            lane: 0,
            failed: false,
            begin_ns,
            end_ns,
            ready_ns: begin_ns,
            bytes: 0,
            round: 0,
            step: NONE,
            after: NONE,
            peer: NONE,
            pieces: 0,
            object: None,
        }
    }
}

/// Most spans that a recorder keeps; what comes then is counted only.
const SPANS_MAX: usize = 1 << 20;
/// A visit to the transport that is shorter moved no pieces worth telling of; visits that are closer are one \[ns\].
const MOVING_NS: u64 = 5_000;
/// Spans over which a recorder measures what one costs.
const MEASURED: u32 = 512;

/// What was recorded.
#[derive(Default, Debug)]
pub struct Recorded {
    /// Spans, in the order of their ends.
    pub spans: Vec<Span>,
    /// Spans that were too many to be kept.
    pub dropped: u64,
}

/// Records spans of one rank.
#[derive(Default)]
pub struct Recorder {
    recorded: Recorded,
    /// What was handed over and is not over.
    open: BTreeMap<Ticket, Span>,
    /// The same in the order in which a wait is blamed on them.
    blamed: BTreeSet<(u8, u64, Ticket)>,
    /// Steps that may be handed over, and since when; those that follow nothing are not among them.
    ready: BTreeMap<Ticket, (u64, u32)>,
    /// When what is now found to be over ended: one moment for a whole poll \[ns\].
    now_ns: u64,
    /// Since when there is nothing to do, and for what.
    waiting: Option<Span>,
    /// Pieces of messages that this rank has just moved itself.
    moving: Option<(u64, u64)>,
    /// What objects of this call are called.
    names: BTreeMap<Object, Arc<str>>,
    /// What rank 0 does when it decides.
    decides: Option<Kind>,
    /// When it decided last \[ns\].
    decided: (u64, u64),
    /// What recording a span takes \[ns\].
    span_ns: f64,
}

impl Recorder {
    /// A recorder that has measured on this world what a span costs.
    pub fn new(world: &mut dyn World) -> Recorder {
        let mut trial = Recorder::default();
        let begin = world.clock().stamp_ns();
        // Steps of which each is waited for, as walks have them: some are under way at a time.
        let ahead = MEASURED / 8;
        for number in 0..MEASURED + ahead {
            if number < MEASURED {
                let now = trial.tick(world);
                let mut span = Span::plain(Kind::Send, now, now);
                (span.step, span.object) = (number, Some(Arc::from("")));
                trial.readied(u64::from(number), u64::from(number));
                trial.ready.remove(&u64::from(number));
                trial.hand(u64::from(number), span);
            }
            trial.waits(world);
            if number >= ahead {
                trial.tick(world);
                trial.end(u64::from(number - ahead), false);
                trial.resumes();
            }
        }
        let took = world.clock().stamp_ns() - begin;
        let span_ns = took as f64 / trial.len().max(1) as f64;
        Recorder { span_ns, ..Recorder::default() }
    }

    /// What recording a span takes; 0 where time is virtual \[ns\].
    pub fn span_ns(&self) -> f64 {
        self.span_ns
    }

    /// Spans that are kept.
    pub fn len(&self) -> usize {
        self.recorded.spans.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands out what was recorded so far.
    pub fn take(&mut self) -> Recorded {
        std::mem::take(&mut self.recorded)
    }

    /// Records a span.
    pub fn push(&mut self, span: Span) {
        if self.recorded.spans.len() < SPANS_MAX {
            self.recorded.spans.push(span);
        } else {
            self.recorded.dropped += 1;
        }
    }

    /// A call begins, of which nothing is a part that was under way or recorded before it. Rank 0 does `decides` when all have
    /// answered.
    pub fn opens(&mut self, decides: Kind) {
        self.rests();
        self.take();
        self.names.clear();
        self.decides(decides);
    }

    /// Says what rank 0 does in agreements from now on, when all have answered.
    pub fn decides(&mut self, kind: Kind) {
        self.decides = Some(kind);
    }

    /// Rank 0 has decided.
    pub(crate) fn decided(&mut self, call: u64, begin_ns: u64, end_ns: u64) {
        let span = Span::plain(self.decides.unwrap_or(Kind::Commit), begin_ns, end_ns);
        self.push(Span { round: small(call), ..span });
        self.decided = (begin_ns, end_ns);
    }

    /// What rank 0 did while it decided last, part by part. Work that was under way before counts as far as it was waited for.
    pub fn spent_deciding(&mut self, spent: &[NamesSpan]) {
        self.spent(spent, self.decided);
    }

    /// Rank 0 removed something after a decision, while nobody waited for it, part by part.
    pub fn tidied(&mut self, (begin_ns, end_ns): (u64, u64), spent: &[NamesSpan]) {
        if end_ns - begin_ns >= MOVING_NS {
            self.push(Span::plain(Kind::Commit, begin_ns, end_ns));
            self.spent(spent, (begin_ns, end_ns));
        }
    }

    fn spent(&mut self, spent: &[NamesSpan], (low, high): (u64, u64)) {
        for part in spent {
            let kind = match part.chore {
                NamesChore::Metadata => Kind::Metadata,
                NamesChore::Publish => Kind::Commit,
                NamesChore::Sync => Kind::Sync,
            };
            let (begin_ns, end_ns) = (part.begin_ns.max(low), part.end_ns.min(high));
            if end_ns > begin_ns {
                self.push(Span::plain(kind, begin_ns, end_ns));
            }
        }
    }

    /// An agreement is over.
    pub(crate) fn agreed(&mut self, call: u64, begin_ns: u64, end_ns: u64, failed: bool) {
        self.push(Span { round: small(call), failed, ..Span::plain(Kind::Agree, begin_ns, end_ns) });
    }

    /// Looks at the clock.
    pub(crate) fn tick(&mut self, world: &mut dyn World) -> u64 {
        self.now_ns = world.clock().stamp_ns();
        self.now_ns
    }

    /// Steps were derived since the clock was looked at.
    pub(crate) fn planned(&mut self, world: &mut dyn World) {
        let begin = self.now_ns;
        if self.tick(world) > begin {
            self.push(Span::plain(Kind::Plan, begin, self.now_ns));
        }
    }

    /// A step may be handed over, since another ended.
    pub(crate) fn readied(&mut self, ticket: Ticket, after: u64) {
        self.ready.insert(ticket, (self.now_ns, small(after)));
    }

    /// A step is handed over now.
    pub(crate) fn begin(
        &mut self,
        world: &mut dyn World,
        ticket: Ticket,
        lane: usize,
        step: &Step,
        (users, roots): (&[Exposed], &[Root]),
    ) {
        let now = self.tick(world);
        let (ready_ns, after) = self.ready.remove(&ticket).unwrap_or((now, NONE));
        let mut span = Span { ready_ns, after, ..Span::plain(kind(&step.action), now, now) };
        (span.lane, span.round, span.step) = (lane as u8, small(step.round), small(step.id));
        span.object = tell(&mut span, &step.action, users).map(|object| self.name(roots, object));
        self.hand(ticket, span);
    }

    /// What people call an object.
    fn name(&mut self, roots: &[Root], object: &Object) -> Arc<str> {
        if let Some(name) = self.names.get(object) {
            return name.clone();
        }
        let name: Arc<str> = Root::full_of(roots, object).into();
        self.names.insert(object.clone(), name.clone());
        name
    }

    fn hand(&mut self, ticket: Ticket, span: Span) {
        self.blamed.insert((span.of.turn(), span.begin_ns, ticket));
        self.open.insert(ticket, span);
    }

    /// The transport has taken a message, and perhaps moved its pieces at once.
    pub(crate) fn handed(&mut self, world: &mut dyn World) {
        let begin = self.now_ns;
        let end = self.tick(world);
        self.moving(begin, end);
    }

    /// A step that was handed over is over already; [`Recorder::end`] comes later.
    pub(crate) fn over(&mut self, world: &mut dyn World, ticket: Ticket) {
        let now = self.tick(world);
        if let Some(span) = self.open.get_mut(&ticket) {
            span.end_ns = now;
        }
    }

    /// A step turned out to move so much \[B\].
    pub(crate) fn moved(&mut self, ticket: Ticket, bytes: u64) {
        if let Some(span) = self.open.get_mut(&ticket) {
            span.bytes = bytes;
        }
    }

    /// A step has ended, at the latest when the clock was looked at.
    pub(crate) fn end(&mut self, ticket: Ticket, failed: bool) {
        if let Some(mut span) = self.open.remove(&ticket) {
            self.blamed.remove(&(span.of.turn(), span.begin_ns, ticket));
            span.failed = failed;
            if span.end_ns == span.begin_ns {
                span.end_ns = self.now_ns;
            }
            self.push(span);
        }
    }

    /// The transport had this rank between these moments \[ns\]: if that was long, it packed pieces of messages, or copied them
    /// out of another rank's memory or into it.
    pub(crate) fn moving(&mut self, begin_ns: u64, end_ns: u64) {
        if end_ns - begin_ns < MOVING_NS {
            return;
        }
        match &mut self.moving {
            Some(moving) if begin_ns - moving.1.min(begin_ns) < MOVING_NS => moving.1 = end_ns,
            _ => {
                self.moved_pieces();
                self.moving = Some((begin_ns, end_ns));
            }
        }
    }

    fn moved_pieces(&mut self) {
        if let Some((begin_ns, end_ns)) = self.moving.take() {
            self.push(Span::plain(Kind::Pack, begin_ns, end_ns));
        }
    }

    /// There is nothing to do from now on, unless that is known already.
    pub(crate) fn waits(&mut self, world: &mut dyn World) {
        if self.waiting.is_some() {
            return;
        }
        let now = self.tick(world);
        let blamed = self.blamed.first().and_then(|(_, _, ticket)| self.open.get(ticket));
        let wait = blamed.map_or_else(|| Span::plain(Kind::Wait, now, now), Clone::clone);
        self.waiting = Some(Span { kind: Kind::Wait, begin_ns: now, end_ns: now, ready_ns: now, bytes: 0, ..wait });
    }

    /// Something has ended, so that there was something to do, at the latest when the clock was looked at.
    pub(crate) fn resumes(&mut self) {
        if let Some(span) = self.waiting.take() {
            self.push(Span { end_ns: self.now_ns, ..span });
        }
    }

    /// A call has ended, well or not.
    pub fn rests(&mut self) {
        self.resumes();
        self.moved_pieces();
        self.open.clear();
        self.blamed.clear();
        self.ready.clear();
    }
}

/// A number as files have it.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(NONE)
}

fn kind(action: &Action) -> Kind {
    match action {
        Action::Send { .. } => Kind::Send,
        Action::Recv { .. } => Kind::Receive,
        Action::Copy { .. } | Action::Fill { .. } => Kind::Pack,
        Action::Encode { .. } | Action::Decode { .. } => Kind::Code,
        Action::Read { .. } | Action::Get { .. } => Kind::Read,
        Action::Write { .. } | Action::Put { .. } | Action::Make { .. } => Kind::Write,
        Action::Sync { .. } => Kind::Sync,
    }
}

/// Bytes of elements at a place.
fn bytes_at(region: &Region, place: &Place, users: &[Exposed]) -> u64 {
    let element = match place {
        Place::User(array) => users.get(*array as usize).map_or(0, |user| user.view.element.bytes()),
        Place::Slot(_, view) => view.element.bytes(),
    };
    region.elements() * element
}

/// Fills in what the action says of itself. Gives its object.
fn tell<'a>(span: &mut Span, action: &'a Action, users: &[Exposed]) -> Option<&'a Object> {
    match action {
        Action::Send { to: peer, parts } | Action::Recv { from: peer, parts } => {
            span.peer = *peer;
            span.pieces = small(parts.len() as u64);
            span.bytes = parts.iter().map(|(_, region, place)| bytes_at(region, place, users)).sum();
        }
        Action::Copy { region, to: at, .. }
        | Action::Fill { region, at, .. }
        | Action::Encode { region, from: at, .. } => {
            span.bytes = bytes_at(region, at, users);
        }
        Action::Decode { region, to, object, .. } => {
            span.bytes = bytes_at(region, to, users);
            return Some(object);
        }
        Action::Read { object, region, there, .. } | Action::Write { object, region, there, .. } => {
            span.bytes = region.elements() * there.element.bytes();
            return Some(object);
        }
        Action::Make { object, bytes } => {
            span.bytes = bytes.len() as u64;
            return Some(object);
        }
        Action::Get { object, .. } | Action::Put { object, .. } => return Some(object),
        Action::Sync { below } => return below.first(),
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: Kind, begin_ns: u64, step: u32) -> Span {
        Span { step, ..Span::plain(kind, begin_ns, begin_ns) }
    }

    #[test]
    fn what_moved_before_a_call_is_no_part_of_it() {
        let mut recorder = Recorder::default();
        recorder.push(step(Kind::Agree, 500, 0));
        recorder.moving(1000, 1000 + MOVING_NS);
        recorder.opens(Kind::Plan);
        recorder.moving(9000, 9000 + MOVING_NS);
        recorder.rests();
        let begins: Vec<u64> = recorder.take().spans.iter().map(|span| span.begin_ns).collect();
        assert_eq!(begins, [9000]);
    }

    #[test]
    fn what_rank_0_does_for_all_is_told_part_by_part_within_its_decision() {
        let mut recorder = Recorder::default();
        recorder.decided(3, 1000, 9000);
        let part = |chore, begin_ns, end_ns| NamesSpan { chore, begin_ns, end_ns };
        let spent = [
            part(NamesChore::Publish, 100, 900),
            part(NamesChore::Metadata, 500, 2000),
            part(NamesChore::Sync, 2000, 8000),
            part(NamesChore::Publish, 8500, 9500),
        ];
        recorder.spent_deciding(&spent);
        let parts = |recorder: &mut Recorder| -> Vec<(Kind, u64, u64, u32)> {
            let spans = recorder.take().spans;
            spans.iter().map(|span| (span.kind, span.begin_ns, span.end_ns, span.round)).collect()
        };
        let decided = [(Kind::Commit, 1000, 9000, 3), (Kind::Metadata, 1000, 2000, 0)];
        let then = [(Kind::Sync, 2000, 8000, 0), (Kind::Commit, 8500, 9000, 0)];
        assert_eq!(parts(&mut recorder), [decided, then].concat());
        recorder.tidied((9000, 9001), &[]);
        recorder.tidied((10_000, 20_000), &[part(NamesChore::Sync, 11_000, 12_000)]);
        assert_eq!(parts(&mut recorder), [(Kind::Commit, 10_000, 20_000, 0), (Kind::Sync, 11_000, 12_000, 0)]);
    }

    #[test]
    fn kinds_are_numbered_in_order() {
        let numbers: Vec<u8> = Kind::ALL.iter().map(|&kind| kind as u8).collect();
        assert_eq!(numbers, (0..13).collect::<Vec<u8>>());
    }

    #[test]
    fn a_step_ends_when_it_was_over_or_else_when_it_is_found_to_be() {
        let mut recorder = Recorder::default();
        recorder.hand(1, step(Kind::Pack, 10, 1));
        recorder.hand(2, Span { end_ns: 15, ..step(Kind::Pack, 10, 2) });
        recorder.now_ns = 20;
        recorder.end(1, false);
        recorder.end(2, true);
        recorder.end(3, false);
        let spans = recorder.take().spans;
        assert_eq!(
            spans.iter().map(|span| (span.step, span.end_ns, span.failed)).collect::<Vec<_>>(),
            [(1, 20, false), (2, 15, true)]
        );
        assert!(recorder.is_empty() && recorder.blamed.is_empty());
    }

    #[test]
    fn visits_to_the_transport_are_told_of_if_they_are_long_and_together_if_they_are_close() {
        let mut recorder = Recorder::default();
        for (begin, end) in
            [(0, 10), (1_000, 9_000), (9_100, 9_200), (10_000, 20_000), (40_000, 50_000), (90_000, 91_000)]
        {
            recorder.moving(begin, end);
        }
        recorder.rests();
        let spans: Vec<(Kind, u64, u64)> =
            recorder.take().spans.iter().map(|span| (span.kind, span.begin_ns, span.end_ns)).collect();
        assert_eq!(spans, [(Kind::Pack, 1_000, 20_000), (Kind::Pack, 40_000, 50_000)]);
    }

    #[test]
    fn beyond_the_limit_spans_are_counted() {
        let mut recorder = Recorder::default();
        for begin in 0..SPANS_MAX as u64 + 3 {
            recorder.push(Span::plain(Kind::Plan, begin, begin + 1));
        }
        let recorded = recorder.take();
        assert_eq!((recorded.spans.len(), recorded.dropped), (SPANS_MAX, 3));
        assert_eq!(recorder.take().dropped, 0);
    }
}
