//! Messages between ranks: what they cost on the processors at both ends, and when they arrive.
//!
//! ```text
//! receiver   asks (if its side is a slot) ----> sender      a question: start-ups and the wire
//! sender     gathers, sends ------------------> receiver    if long: a question and an answer first
//! receiver   scatters
//! ```
//!
//! Between ranks of one node there is no message: the side with the slot copies, as it does over a real neighbour's memory.

use crate::machine::{Machine, Work};
use hyperslab_layout::{View, nests};
use hyperslab_pack::{CopyError, copy};
use hyperslab_plan::profile::Requests;
use hyperslab_world::{Event, Fault, Here, Part, Ticket};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// One end of a message that waits for the other.
struct End {
    ticket: Ticket,
    parts: Vec<Part>,
    /// Whether its data lie in a buffer slot, and not in a user's array.
    slot: bool,
}

impl End {
    fn new(ticket: Ticket, parts: Vec<Part>) -> End {
        let slot = matches!(parts.first().map(|part| &part.here), Some(Here::Slot(..)));
        End { ticket, parts, slot }
    }
}

#[derive(Default)]
struct Pair {
    sends: VecDeque<End>,
    recvs: VecDeque<End>,
    /// Questions for the first of the receives that have reached the sender.
    asked: u64,
    /// Nothing is sent before \[ns\].
    held_ns: u64,
}

/// Messages under way, by receiver and sender.
pub(crate) struct Pairs(Vec<BTreeMap<u32, Pair>>);

impl Pairs {
    pub(crate) fn new(ranks: u32) -> Pairs {
        Pairs((0..ranks).map(|_| BTreeMap::new()).collect())
    }

    fn of(&mut self, from: u32, to: u32) -> &mut Pair {
        self.0[to as usize].entry(from).or_default()
    }
}

/// A message whose ends have met.
struct Message {
    from: u32,
    to: u32,
    send: End,
    recv: End,
    bytes: u64,
    /// Contiguous runs, of which each lies together on both sides.
    runs: u64,
    /// Parts in which it is sent.
    count: u64,
}

/// A side of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Send,
    Receive,
}

impl Machine {
    pub(crate) fn send(&mut self, from: u32, to: u32, ticket: Ticket, parts: Vec<Part>) {
        self.pairs.of(from, to).sends.push_back(End::new(ticket, parts));
        self.meet(from, to);
    }

    /// Holds back what a rank sends to another one, until then or for good \[ns\].
    pub(crate) fn hold_back(&mut self, from: u32, to: u32, until_ns: Option<u64>) {
        self.pairs.of(from, to).held_ns = until_ns.unwrap_or(u64::MAX);
        if let Some(at) = until_ns {
            self.kernel.at(at, move |machine| machine.meet(from, to));
        }
    }

    pub(crate) fn recv(&mut self, from: u32, to: u32, ticket: Ticket, parts: Vec<Part>) {
        let end = End::new(ticket, parts);
        let asks = self.asks(from, to) && (end.slot || self.profile.messages.requests == Requests::All);
        self.pairs.of(from, to).recvs.push_back(end);
        if asks {
            self.tally.questions += 1;
            self.small(to, from, 0, move |machine| machine.asked(from, to));
        } else {
            self.asked(from, to);
        }
    }

    /// Whether data between two ranks are asked for at all.
    fn asks(&self, from: u32, to: u32) -> bool {
        self.node(from) != self.node(to)
    }

    fn asked(&mut self, from: u32, to: u32) {
        self.pairs.of(from, to).asked += 1;
        self.meet(from, to);
    }

    /// Starts the messages of a pair whose ends have met.
    fn meet(&mut self, from: u32, to: u32) {
        while let Some(pair) = self.pairs.0[to as usize].get_mut(&from) {
            if pair.asked == 0 || pair.sends.is_empty() || self.kernel.now_ns() < pair.held_ns {
                return;
            }
            let (Some(mut send), Some(mut recv)) = (pair.sends.pop_front(), pair.recvs.pop_front()) else { return };
            pair.asked -= 1;
            if pair.sends.is_empty() && pair.recvs.is_empty() && pair.held_ns == 0 {
                self.pairs.0[to as usize].remove(&from);
            }
            let (bytes, runs) = self.extent(from, to, &send.parts, &recv.parts);
            self.tally.messages += 1;
            self.tally.message_bytes += bytes;
            self.tally.message_runs += runs;
            if !self.carries_bytes {
                // There may be millions of messages under way.
                (send.parts, recv.parts) = (Vec::new(), Vec::new());
            }
            let count = bytes.div_ceil(self.profile.messages.bytes_max.max(1)).max(1);
            self.carry(Box::new(Message { from, to, send, recv, bytes, runs, count }));
        }
    }

    /// The view of a part on a rank.
    fn view(&self, rank: u32, part: &Part) -> Arc<View> {
        match &part.here {
            Here::Slot(_, view) => view.clone(),
            Here::Exposed => self.exposed[rank as usize][part.array as usize].view.clone(),
        }
    }

    /// Bytes and runs of a message.
    fn extent(&self, from: u32, to: u32, sent: &[Part], received: &[Part]) -> (u64, u64) {
        let (mut bytes, mut runs) = (0, 0);
        for (a, b) in sent.iter().zip(received) {
            let (here, there) = (self.view(from, a), self.view(to, b));
            // Messages carry elements as their sender has them; who receives them converts.
            let (sent, received) = (here.element.bytes(), there.element.bytes());
            bytes += a.region.elements() * sent;
            runs += nests(&a.region, &here, &there).map(|nest| nest.runs(sent, received)).sum::<u64>();
        }
        (bytes, runs)
    }

    fn carry(&mut self, message: Box<Message>) {
        let costs = &self.profile.messages;
        if self.node(message.from) == self.node(message.to) {
            let active = if message.send.slot { message.from } else { message.to };
            let ns = self.copying_ns(message.bytes, message.runs);
            let end = self.work(self.processor(active), Work::Copy, ns);
            return self.kernel.at(end, move |machine| {
                let (mut sent, mut received) = (Ok(()), machine.deliver(&message));
                if message.send.slot {
                    std::mem::swap(&mut sent, &mut received);
                }
                machine.sent(&message, sent);
                machine.received(&message, received);
            });
        }
        let ns = self.side_ns(Side::Send, message.bytes, message.count) + self.runs_ns(&message.send, message.runs);
        let long = message.bytes > costs.eager_bytes;
        let end = self.work(self.processor(message.from), Work::Message, ns);
        self.kernel.at(end, move |machine| {
            if !long {
                return machine.cross(message);
            }
            let (from, to) = (message.from, message.to);
            machine.tally.questions += 2;
            machine.small(from, to, 0, move |machine| {
                machine.small(to, from, 0, move |machine| machine.cross(message));
            });
        });
    }

    /// What a message of so many parts costs the processor at one side, besides runs.
    pub(crate) fn side_ns(&self, side: Side, bytes: u64, parts: u64) -> f64 {
        let costs = &self.profile.messages;
        let (start, byte) = match side {
            Side::Send => (costs.send_ns, costs.send_byte_ns),
            Side::Receive => (costs.receive_ns, costs.receive_byte_ns),
        };
        if self.what_if.instant_network { 0.0 } else { start * parts as f64 + byte * bytes as f64 }
    }

    /// What runs cost the processor at one end.
    fn runs_ns(&self, end: &End, runs: u64) -> f64 {
        let costs = &self.profile.messages;
        runs as f64 * if end.slot { costs.slot_run_ns } else { costs.array_run_ns }
    }

    /// Lets a message cross the wire.
    fn cross(&mut self, message: Box<Message>) {
        let bytes = message.bytes + self.profile.messages.header_bytes * message.count;
        let (from, to) = (self.node(message.from), self.node(message.to));
        let passage = self.network.send(self.kernel.now_ns(), from, to, bytes);
        self.kernel.at(passage.left_ns, move |machine| {
            // The sender may use its memory again from here on.
            let moved = machine.deliver(&message);
            machine.sent(&message, Ok(()));
            machine.kernel.at(passage.arrived_ns, move |machine| machine.arrive(message, moved));
        });
    }

    fn arrive(&mut self, message: Box<Message>, moved: Result<(), Fault>) {
        let ns = self.side_ns(Side::Receive, message.bytes, message.count) + self.runs_ns(&message.recv, message.runs);
        let end = self.work(self.processor(message.to), Work::Message, ns);
        self.kernel.at(end, move |machine| machine.received(&message, moved));
    }

    /// Moves the data, if payloads carry any.
    fn deliver(&mut self, message: &Message) -> Result<(), Fault> {
        if !self.carries_bytes {
            return Ok(());
        }
        let mut moved = Ok(());
        for (a, b) in message.send.parts.iter().zip(&message.recv.parts) {
            let (here, there) = (self.view(message.from, a), self.view(message.to, b));
            let memory = |rank: u32, part: &Part| match &part.here {
                Here::Slot(memory, _) => memory.clone(),
                Here::Exposed => self.exposed[rank as usize][part.array as usize].memory.clone(),
            };
            let (source, target) = (memory(message.from, a), memory(message.to, b));
            for nest in nests(&a.region, &here, &there) {
                let copied = copy(&nest, &source, here.element, &target, there.element);
                assert!(!matches!(copied, Err(CopyError::OutOfBounds(_))), "views fit memories: {copied:?}");
                moved = moved.and(copied.map_err(|error| Fault::of_copy(error, Some(&a.region))));
            }
        }
        moved
    }

    fn sent(&mut self, message: &Message, result: Result<(), Fault>) {
        let (ticket, from, to, bytes) = (message.send.ticket, message.from, message.to, message.bytes);
        self.note(|| format!("{from} sent {bytes} B to {to}"));
        self.post(from, |mail| mail.events.push(Event::Done(ticket, result)));
    }

    fn received(&mut self, message: &Message, result: Result<(), Fault>) {
        let (ticket, from, to, bytes) = (message.recv.ticket, message.from, message.to, message.bytes);
        self.note(|| format!("{to} received {bytes} B from {from}"));
        self.post(to, |mail| mail.events.push(Event::Done(ticket, result)));
    }

    /// Sends a message without data from rank to rank, then goes on.
    pub(crate) fn small(&mut self, from: u32, to: u32, bytes: u64, then: impl FnOnce(&mut Machine) + 'static) {
        let (start, end) = (self.side_ns(Side::Send, 0, 1), self.side_ns(Side::Receive, 0, 1));
        let left = self.work(self.processor(from), Work::Message, start);
        let (a, b) = (self.node(from), self.node(to));
        let bytes = bytes + self.profile.messages.header_bytes;
        let arrive = move |machine: &mut Machine| {
            let done = machine.work(machine.processor(to), Work::Message, end);
            machine.kernel.at(done, then);
        };
        if let Some(arrived) = self.network.short(left, a, b, bytes) {
            return self.kernel.at(arrived, arrive);
        }
        self.kernel.at(left, move |machine| {
            let passage = machine.network.send(machine.kernel.now_ns(), a, b, bytes);
            machine.kernel.at(passage.arrived_ns, arrive);
        });
    }

    /// What a copy costs \[ns\].
    pub(crate) fn copying_ns(&self, bytes: u64, runs: u64) -> f64 {
        bytes as f64 * 1e9 / self.profile.processor.copy_rate + runs as f64 * self.profile.processor.run_ns
    }

    /// Sends a signal.
    pub(crate) fn signal(&mut self, from: u32, to: u32, content: Vec<u8>) {
        self.tally.signals += 1;
        self.small(from, to, content.len() as u64, move |machine| {
            machine.post(to, |mail| mail.events.push(Event::Signal(from, content)));
        });
    }
}
