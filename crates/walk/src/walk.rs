//! The walker: runs the steps of a program whose predecessors are over, and watches them to their end.

mod coding;
mod issuing;

use crate::changes::Changes;
use crate::limits::{Awaited, Pace, Waits};
use crate::names::describe;
use crate::party::Party;
use crate::room::{PlacedChunk, RoomForChunks};
use coding::{Coded, Coding};
use hyperslab_layout::{Durability, Region, View};
use hyperslab_pack::Memory;
use hyperslab_plan::{Action, Lane, Place, Program, Step, StepId};
use hyperslab_world::{
    Computation, Cost, Exposed, Fault, FaultKind, Here, Moves, Outcome, Part, Request, Root, Ticket, World,
    fingerprint, told_apart,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How many steps of a lane are looked at ahead of the first that is not over.
pub(crate) const WINDOW: usize = 256;

/// What a finished walk did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Walked {
    /// Steps.
    pub steps: u64,
    /// Bytes read from and written to the store.
    pub store_bytes: u64,
    /// Requests of the store to the system beneath.
    pub store_calls: u64,
    /// Bytes of buffers: of slots, and most of encoded chunks, and of chunks on their way to be, at one time \[B\].
    pub buffer_bytes: u64,
    /// Time until what was written was durable, after all else was over \[ns\].
    pub sync_ns: u64,
    /// What the parts that were read contribute to the checksums of their objects.
    pub sum: u32,
}

struct Pending {
    step: Step,
    /// Predecessors that are not over.
    waits: usize,
    followers: Vec<StepId>,
}

struct Running {
    lane: std::iter::Peekable<Lane>,
    pending: BTreeMap<StepId, Pending>,
    /// Messages that were not handed over yet, in the order of the program.
    messages: VecDeque<StepId>,
    /// Whether a send was handed over that the next message must wait for.
    sending: bool,
}

impl Running {
    /// The next message, once it is ready: in the order of the program, since the k-th send to a rank meets its k-th receive.
    fn next_message(&mut self) -> Option<StepId> {
        let ready = !self.sending && self.messages.front().is_some_and(|id| self.pending[id].waits == 0);
        if ready { self.messages.pop_front() } else { None }
    }
}

/// A program being carried out on one rank.
pub struct Walk {
    lanes: Vec<Running>,
    window: usize,
    blocking_sends: bool,
    users: Vec<Exposed>,
    /// Names of the arrays whose first parts are exposed under these numbers; of further parts there are none.
    names: Vec<String>,
    /// Below which its objects lie.
    roots: Arc<[Root]>,
    slots: Vec<Option<Memory>>,
    slot_bytes: u64,
    spare_bytes: u64,
    /// How durable what it writes shall become.
    durability: Durability,
    registers: BTreeMap<u64, Vec<u8>>,
    /// Where encoded chunks go that share an object.
    room: RoomForChunks,
    coding: Coding,
    ready: Vec<(usize, StepId)>,
    /// Work that was found to be over before results are collected.
    computed: Vec<(Ticket, Result<Vec<u8>, Fault>)>,
    /// The first failure. After it, nothing more is read or written, but messages go on, so that no peer hangs.
    fault: Option<Fault>,
    /// Whether something was changed in place.
    changes: Changes,
    walked: Walked,
    begun: bool,
    /// When it began to wait for what was written to be durable \[ns\].
    syncs_since: u64,
    /// Requests that the store has.
    at_store: u64,
}

impl Walk {
    /// A walk over a program in which these arrays of the user take part.
    pub fn new(program: Program, users: Vec<Exposed>) -> Walk {
        Walk {
            lanes: program
                .lanes
                .into_iter()
                .map(|lane| Running {
                    lane: lane.peekable(),
                    pending: BTreeMap::new(),
                    messages: VecDeque::new(),
                    sending: false,
                })
                .collect(),
            window: WINDOW,
            blocking_sends: false,
            users,
            names: Vec::new(),
            roots: [].into(),
            slots: (0..program.slots).map(|_| None).collect(),
            slot_bytes: program.slot_bytes,
            spare_bytes: program.spare_bytes,
            durability: program.durability,
            registers: BTreeMap::new(),
            room: RoomForChunks::default(),
            coding: Coding::default(),
            ready: Vec::new(),
            computed: Vec::new(),
            fault: None,
            changes: Changes::default(),
            walked: Walked::default(),
            begun: false,
            syncs_since: 0,
            at_store: 0,
        }
    }

    /// The same, looking only this many steps ahead in each lane.
    #[must_use]
    pub fn with_window(mut self, window: usize) -> Walk {
        self.window = window.max(1);
        self
    }

    /// The same at this pace.
    #[must_use]
    pub fn at(mut self, pace: Pace) -> Walk {
        self.blocking_sends |= pace.blocking_sends;
        self.window = pace.window.map_or(self.window, |window| window.max(1));
        self
    }

    /// The same, handing a message over only when the last send of its lane is over, as programs do that call
    /// `MPI_Send` (Panda; Chen et al. 1996, section 2).
    #[must_use]
    pub fn with_blocking_sends(mut self) -> Walk {
        self.blocking_sends = true;
        self
    }

    /// The same, after indexes were read, or were not: then nothing is read or written, but messages go on.
    #[must_use]
    pub fn after(mut self, walked: Walked, fault: Option<Fault>) -> Walk {
        (self.walked, self.fault) = (walked, fault);
        self
    }

    /// The same, whose failures in copies of arrays name them.
    #[must_use]
    pub fn with_names(mut self, names: Vec<String>) -> Walk {
        self.names = names;
        self
    }

    /// A failure of a step, with the arrays that it moves if it is about their elements.
    fn named(&self, action: &Action, fault: Fault) -> Fault {
        let user = |place: &Place| if let Place::User(array) = place { Some(*array) } else { None };
        let numbers: Vec<u32> = match action {
            Action::Send { parts, .. } | Action::Recv { parts, .. } => parts.iter().map(|part| part.0).collect(),
            Action::Copy { from, to, .. } => user(from).or(user(to)).into_iter().collect(),
            _ => Vec::new(),
        };
        let names: BTreeSet<&str> =
            numbers.iter().filter_map(|&number| self.names.get(number as usize)).map(String::as_str).collect();
        if fault.kind != FaultKind::Invalid || names.is_empty() {
            return fault;
        }
        let names: Vec<String> = names.into_iter().map(|name| format!("'{name}'")).collect();
        fault.context(names.join(" or "))
    }

    /// Takes where chunks lie now that got room when they were encoded.
    pub fn take_placed(&mut self) -> Vec<PlacedChunk> {
        std::mem::take(&mut self.room.placed)
    }

    /// Whether it has changed something that readers may have seen before.
    pub fn has_changed(&self) -> bool {
        self.changes.any()
    }

    /// Steps over so far.
    pub fn walked(&self) -> Walked {
        Walked { buffer_bytes: self.walked.buffer_bytes + self.coding.most, ..self.walked }
    }

    /// Goes on; gives the outcome once all steps are over, `None` until then.
    pub fn poll(&mut self, world: &mut dyn World, party: &mut Party) -> Option<Result<Walked, Fault>> {
        if !std::mem::replace(&mut self.begun, true) {
            world.transport().begin(party.agreements, self.users.clone());
            self.roots = world.store().roots();
            if !self.slots.is_empty() {
                party.trim_pool(self.slots.len(), self.slot_bytes, self.spare_bytes);
            }
        }
        let over = self.walked.steps;
        if let Some(trace) = &mut party.trace {
            trace.tick(world);
        }
        self.collect(world, party);
        if let Some(trace) = party.trace.as_mut().filter(|_| self.walked.steps > over) {
            trace.resumes();
        }
        loop {
            self.pull(world, party);
            let ready = std::mem::take(&mut self.ready);
            let mut idle = ready.is_empty();
            for (lane, id) in ready {
                if self.lanes[lane].pending.get(&id).is_some_and(|pending| !is_message(&pending.step.action)) {
                    self.start(world, party, lane, id);
                }
            }
            for lane in 0..self.lanes.len() {
                while let Some(id) = self.lanes[lane].next_message() {
                    idle = false;
                    self.start(world, party, lane, id);
                }
            }
            if idle {
                break;
            }
        }
        if self.lanes.iter_mut().any(|lane| !lane.pending.is_empty() || lane.lane.peek().is_some()) {
            world.compute().help();
            if let Some(trace) = &mut party.trace {
                trace.waits(world);
            }
            return None;
        }
        if let Some(trace) = &mut party.trace {
            trace.rests();
        }
        world.transport().end();
        party.pool.extend(self.slots.drain(..).flatten());
        let walked = self.walked();
        Some(self.fault.take().map_or(Ok(walked), Err))
    }

    /// Takes finished operations from the seams.
    fn collect(&mut self, world: &mut dyn World, party: &mut Party) {
        for (ticket, result) in std::mem::take(&mut party.inbox.done) {
            let (lane, id) = split(ticket);
            self.finish(party, lane, id, result);
        }
        let mut computed = std::mem::take(&mut self.computed);
        world.compute().poll(&mut computed);
        for (ticket, result) in computed {
            let (lane, id) = split(ticket);
            let result = result.map(|bytes| self.keep_encoded(lane, id, bytes));
            self.finish(party, lane, id, result);
        }
        let mut stored = Vec::new();
        world.store().poll(&mut stored);
        for (ticket, result) in stored {
            self.at_store -= 1;
            self.stored(world, party, ticket, result);
        }
        if !self.room.waiting.is_empty() {
            self.room.hear(party);
            self.put_where_there_is_room(world, party);
        }
    }

    fn stored(&mut self, world: &mut dyn World, party: &mut Party, ticket: Ticket, result: Result<Outcome, Fault>) {
        let (lane, id) = split(ticket);
        let action = &self.lanes[lane].pending[&id].step.action;
        if matches!(action, Action::Sync { .. }) {
            // Of lanes that sync at the same time, each moment counts once.
            let now = world.clock().now_ns();
            self.walked.sync_ns += now - std::mem::replace(&mut self.syncs_since, now);
        }
        let result = match (result, action) {
            (Err(fault), action) => {
                self.changes.failed(action, &fault);
                Err(fault)
            }
            (Ok(Outcome::Done(moved)), action) => {
                self.changes.done(action, self.durability, || world.store().replaces_by_syncs());
                self.walked.store_bytes += moved.bytes;
                self.walked.store_calls += moved.calls;
                if let Action::Read { object, part: Some(_), .. } = action {
                    let of_object = fingerprint(object.name.as_bytes()).wrapping_add(u64::from(object.root));
                    self.walked.sum ^= told_apart(moved.sum, of_object);
                }
                if let Action::Get { register, .. } = action {
                    if let Some(trace) = &mut party.trace {
                        trace.moved(ticket, moved.content.len() as u64);
                    }
                    self.coding.begin(Coded::Register(*register), moved.content.len());
                    self.registers.insert(*register, moved.content);
                }
                Ok(())
            }
            (Ok(Outcome::Absent), Action::Get { .. }) => Ok(()),
            (Ok(Outcome::Absent), Action::Read { region, to, absent: Some(value), .. }) => {
                let (region, to, value) = (region.clone(), to.clone(), value.clone());
                match self.place(world, party, &to) {
                    Ok((memory, view)) => {
                        party.progress();
                        return world.compute().submit(ticket, issuing::filling(region, memory, view, value));
                    }
                    Err(fault) => Err(fault),
                }
            }
            (Ok(Outcome::Absent), action) => Err(Fault::new(
                FaultKind::NotFound,
                format!("{}: the object does not exist", describe(action, &self.roots)),
            )),
        };
        self.finish(party, lane, id, result);
    }

    fn keep_encoded(&mut self, lane: usize, id: StepId, bytes: Vec<u8>) {
        if let Action::Encode { register, .. } = self.lanes[lane].pending[&id].step.action {
            self.coding.begin(Coded::Register(register), bytes.len());
            self.registers.insert(register, bytes);
        }
    }

    /// Looks at more steps, as far as the window allows.
    fn pull(&mut self, world: &mut dyn World, party: &mut Party) {
        let (mut steps, mut pieces) = (0, 0);
        if let Some(trace) = &mut party.trace {
            trace.tick(world);
        }
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            while lane.pending.len() < self.window {
                let Some(step) = lane.lane.next() else { break };
                let id = step.id;
                match &step.action {
                    Action::Send { parts, .. } | Action::Recv { parts, .. } => pieces += parts.len() as u64,
                    Action::Put { chunk: Some(_), .. } => {
                        self.room.coming += 1;
                        steps += 1;
                    }
                    _ => steps += 1,
                }
                let mut waits = 0;
                for &(low, high) in step.after.ranges() {
                    for (_, pending) in lane.pending.range_mut(low..high) {
                        pending.followers.push(id);
                        waits += 1;
                    }
                }
                if waits == 0 {
                    self.ready.push((number, id));
                }
                if is_message(&step.action) {
                    lane.messages.push_back(id);
                }
                lane.pending.insert(id, Pending { step, waits, followers: Vec::new() });
            }
        }
        if steps + pieces > 0 {
            world.compute().planned(steps, pieces);
            if let Some(trace) = &mut party.trace {
                trace.planned(world);
            }
        }
    }

    fn finish(&mut self, party: &mut Party, lane: usize, id: StepId, result: Result<(), Fault>) {
        party.progress();
        self.walked.steps += 1;
        let pending = self.lanes[lane].pending.remove(&id).expect("a step ends once");
        self.coding.end(Coded::Copy(join(lane, id)));
        if matches!(pending.step.action, Action::Send { .. }) {
            self.lanes[lane].sending = false;
        }
        if let Action::Put { register, .. } | Action::Decode { register, .. } = pending.step.action {
            self.coding.end(Coded::Register(register));
        }
        if let Some(trace) = &mut party.trace {
            trace.end(join(lane, id), result.is_err());
        }
        if let Err(fault) = result {
            let fault = self.named(&pending.step.action, fault);
            self.fault.get_or_insert(fault);
        }
        for follower in pending.followers {
            let next = self.lanes[lane].pending.get_mut(&follower).expect("a follower waits");
            next.waits -= 1;
            if next.waits == 0 {
                self.ready.push((lane, follower));
                if let Some(trace) = &mut party.trace {
                    trace.readied(join(lane, follower), id);
                }
            }
        }
    }

    /// The memory of a place and where elements lie in it.
    fn place(&mut self, world: &mut dyn World, party: &mut Party, place: &Place) -> Result<(Memory, Arc<View>), Fault> {
        match place {
            Place::User(array) => {
                let user = &self.users[*array as usize];
                Ok((user.memory.clone(), user.view.clone()))
            }
            Place::Slot(slot, view) => {
                let slot_bytes = self.slot_bytes;
                let slot = &mut self.slots[*slot as usize];
                if slot.is_none() {
                    let pooled = party.pool.iter().position(|memory| memory.bytes() >= slot_bytes);
                    let memory = match pooled {
                        Some(at) => party.pool.remove(at),
                        None => buffer(world, slot_bytes)?,
                    };
                    self.walked.buffer_bytes += memory.bytes();
                    *slot = Some(memory);
                }
                Ok((slot.clone().expect("just filled"), view.clone()))
            }
        }
    }

    fn parts(
        &mut self,
        world: &mut dyn World,
        party: &mut Party,
        parts: &[(u32, Region, Place)],
    ) -> Result<Vec<Part>, Fault> {
        let mut out = Vec::with_capacity(parts.len());
        for (array, region, place) in parts {
            let here = match place {
                Place::User(_) => Here::Exposed,
                Place::Slot(..) => {
                    let (memory, view) = self.place(world, party, place)?;
                    Here::Slot(memory, view)
                }
            };
            out.push(Part { array: *array, region: region.clone(), here });
        }
        Ok(out)
    }

    fn moves(
        &mut self,
        world: &mut dyn World,
        party: &mut Party,
        region: &Region,
        place: &Place,
        there: &Arc<View>,
    ) -> Result<Moves, Fault> {
        let (memory, here) = self.place(world, party, place)?;
        Ok(Moves { region: region.clone(), memory, here, there: there.clone() })
    }

    fn start(&mut self, world: &mut dyn World, party: &mut Party, lane: usize, id: StepId) {
        if let Err(fault) = self.issue(world, party, lane, id) {
            self.finish(party, lane, id, Err(fault));
        }
    }

    /// Hands a step to the seam that does it.
    fn issue(&mut self, world: &mut dyn World, party: &mut Party, lane: usize, id: StepId) -> Result<(), Fault> {
        let action = self.lanes[lane].pending[&id].step.action.clone();
        let ticket = join(lane, id);
        if let Some(trace) = &mut party.trace {
            trace.begin(world, ticket, lane, &self.lanes[lane].pending[&id].step, (&self.users, &self.roots));
        }
        let is_message = is_message(&action);
        match action {
            Action::Send { to, parts } => {
                let parts = self.parts(world, party, &parts)?;
                self.lanes[lane].sending = self.blocking_sends;
                world.transport().send(ticket, to, parts);
            }
            Action::Recv { from, parts } => {
                let parts = self.parts(world, party, &parts)?;
                world.transport().recv(ticket, from, parts);
            }
            // After a failure, what would touch storage or follow from it is let go.
            _ if self.fault.is_some() => self.finish(party, lane, id, Ok(())),
            Action::Copy { .. } | Action::Fill { .. } | Action::Encode { .. } | Action::Decode { .. } => {
                let work = self.computation(world, party, action)?;
                if let Computation::Other(Cost::Code { bytes, .. }, _) = work {
                    self.coding.begin(Coded::Copy(ticket), bytes as usize);
                }
                world.compute().submit(ticket, work);
                self.note_computed(world, party);
            }
            Action::Put { register, chunk: Some(_), .. } => {
                let bytes = self.registers.get(&register).map_or(0, |bytes| bytes.len() as u64);
                self.room.coming -= 1;
                self.room.waiting.push_back(((lane, id), bytes));
                self.put_where_there_is_room(world, party);
            }
            action => {
                let request = self.request(world, party, action)?;
                if matches!(request, Request::Sync { .. }) {
                    self.syncs_since = world.clock().now_ns();
                }
                self.changes.begins(&request);
                self.at_store += 1;
                world.store().submit(ticket, request);
            }
        }
        if let Some(trace) = party.trace.as_mut().filter(|_| is_message) {
            trace.handed(world);
        }
        Ok(())
    }

    /// Work that is done inside of its submission is over now, and not when results are collected.
    fn note_computed(&mut self, world: &mut dyn World, party: &mut Party) {
        let Some(trace) = &mut party.trace else { return };
        let known = self.computed.len();
        world.compute().poll(&mut self.computed);
        for (ticket, _) in &self.computed[known..] {
            trace.over(world, *ticket);
        }
    }
}

impl Awaited for Walk {
    fn waits(&self) -> Waits {
        Waits { storage: self.at_store > 0, ..Waits::default() }
    }

    /// The oldest steps that are not over.
    fn waits_for(&self) -> String {
        if !self.room.waiting.is_empty() {
            return "waits for rank 0 to give out room in the file".into();
        }
        let oldest = self.lanes.iter().filter_map(|lane| lane.pending.values().next());
        let told: Vec<String> = oldest.map(|pending| describe(&pending.step.action, &self.roots)).collect();
        format!("waits for {}", told.join(" and for "))
    }
}

fn is_message(action: &Action) -> bool {
    matches!(action, Action::Send { .. } | Action::Recv { .. })
}

fn join(lane: usize, id: StepId) -> Ticket {
    (lane as u64) << 56 | id
}

fn split(ticket: Ticket) -> (usize, StepId) {
    ((ticket >> 56) as usize, ticket & ((1 << 56) - 1))
}

fn buffer(world: &mut dyn World, bytes: u64) -> Result<Memory, Fault> {
    world.buffer(bytes).map_err(|_| {
        Fault::no_memory(format_args!("a buffer of {bytes} B"))
            .hint("allow fewer buffer bytes, or store smaller chunks")
    })
}
