//! Agreement: before bytes move, all ranks compare what they were asked; afterwards, how it went.
//!
//! Answers climb a tree of ranks to rank 0 as hashes, merged on the way so that no message grows with the number
//! of ranks; the decision comes down the same tree. Only when hashes differ does rank 0 ask a few ranks for values, to
//! say in the error what differs and where. A rank that failed before the call takes part with its failure.

use crate::compared::{Compared, Fields};
use crate::inbox::tag;
use crate::limits::{Awaited, RANKS_NAMED_MAX, Waits};
use crate::names::{Names, named};
use crate::party::Party;
use crate::policy::{FAULTS_MAX, GROUPS_MAX};
use hyperslab_world::{Fault, FaultKind, Reader, World, Writer};
use std::collections::BTreeMap;

/// What ranks compare of which one says nothing.
const NOT_GIVEN: &str = "not given";

/// Bits that are ways; those above say other things.
const WAYS_MAX: u32 = 28;

/// Ways of carrying out a call, each a bit but the three highest: those that some rank cannot take, all ranks leave. Which bit means
/// what is known to those who ask.
pub type Ways = u32;

/// What ranks say beside what they ask, taken together on the way to rank 0: no ground for an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Votes {
    /// What some rank cannot do, of what others may.
    pub cannot: Ways,
    /// From where to where the pieces of all ranks reach, in something whose extent none of them knows.
    pub reach: Option<(u64, u64)>,
    /// What parts that were read contribute to checksums: the exclusive or of all ranks, 0 where they add up.
    pub sum: u32,
    /// How many calls wait that could follow as one: on all ranks, the fewest.
    pub waiting: u32,
    /// Whether some rank has changed something that readers may have seen before.
    pub changed: bool,
    /// How many elements ranks hold, all of them together.
    pub held: Option<u64>,
}

impl Votes {
    fn merge(&mut self, other: Votes) {
        self.cannot |= other.cannot;
        self.reach = match (self.reach, other.reach) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
        self.sum ^= other.sum;
        self.waiting = self.waiting.min(other.waiting);
        self.changed |= other.changed;
        self.held = match (self.held, other.held) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
    }

    fn tell(self, w: Writer) -> Writer {
        // Above the ways: whether it says from where to where it reaches, whether calls wait, how much is held, whether something
        // has changed.
        let bits =
            [(self.reach.is_some(), 31), (self.waiting > 0, 30), (self.held.is_some(), 29), (self.changed, WAYS_MAX)];
        let more = bits.iter().fold(0, |more, (bit, at)| more | u64::from(*bit) << at);
        let w = w.number(u64::from(self.sum) << 32 | more | u64::from(self.cannot));
        let w = self.reach.into_iter().fold(w, |w, (low, high)| w.number(low).number(high));
        let w = if self.waiting > 0 { w.number(self.waiting.into()) } else { w };
        self.held.into_iter().fold(w, Writer::number)
    }

    fn hear(r: &mut Reader) -> Option<Votes> {
        let all = r.number()?;
        let reach = if all >> 31 & 1 == 1 { Some((r.number()?, r.number()?)) } else { None };
        let waiting = if all >> 30 & 1 == 1 { r.number()? as u32 } else { 0 };
        let held = if all >> 29 & 1 == 1 { Some(r.number()?) } else { None };
        let (cannot, changed) = (all as Ways & ((1 << WAYS_MAX) - 1), all >> WAYS_MAX & 1 == 1);
        Some(Votes { cannot, reach, sum: (all >> 32) as u32, waiting, changed, held })
    }
}

/// What rank 0 does when all agree, told how all voted: gives something once it is done, and is asked again until then.
pub type Decide<'a> = dyn FnMut(&mut dyn World, Votes) -> Option<Result<Vec<u8>, Fault>> + 'a;

/// What rank 0 has to say of a failure before all ranks get it, told how all voted.
pub type Failed = Box<dyn FnOnce(Votes, Fault) -> Fault + Send>;

/// What all ranks get of an agreement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Agreed {
    /// What rank 0 decided.
    pub payload: Vec<u8>,
    /// How all voted.
    pub votes: Votes,
}

/// What a rank brings to an agreement.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// What is being done, for messages: `write of 'rho'`.
    pub what: String,
    /// What must be equal on all ranks.
    pub compared: Compared,
    /// How this rank votes.
    pub votes: Votes,
    /// What went wrong on this rank already.
    pub fault: Option<Fault>,
    /// Whether this is the opening of a call, which ranks may legitimately reach late.
    pub opens: bool,
    /// Whether rank 0 works in storage when all agree. Then it tells the others before: from now on they wait for storage and
    /// no more for ranks that come late, and they may hear nothing from it meanwhile.
    pub stores: bool,
}

impl Question {
    /// The one that opens a call.
    pub fn opening(what: impl Into<String>, compared: impl Into<Compared>, fault: Option<Fault>) -> Question {
        Question { what: what.into(), compared: compared.into(), fault, opens: true, ..Question::default() }
    }
}

/// Ranks with the same answer.
#[derive(Clone, Debug)]
struct Group {
    hash: u64,
    count: u64,
    ranks: Vec<u32>,
}

/// What is known of the ranks below.
#[derive(Default, Debug)]
struct Merged {
    groups: Vec<Group>,
    votes: Votes,
    faults: Vec<(u32, Fault)>,
    fault_count: u64,
}

impl Merged {
    fn add_group(&mut self, group: Group) {
        if let Some(same) = self.groups.iter_mut().find(|g| g.hash == group.hash) {
            same.count += group.count;
            same.ranks.extend(group.ranks);
            same.ranks.sort_unstable();
            same.ranks.truncate(RANKS_NAMED_MAX);
        } else if self.groups.len() < GROUPS_MAX {
            self.groups.push(group);
        }
        self.groups.sort_by_key(|group| group.ranks[0]);
    }

    fn add_faults(&mut self, count: u64, faults: impl IntoIterator<Item = (u32, Fault)>) {
        self.fault_count += count;
        self.faults.extend(faults);
        self.faults.sort_by_key(|fault| fault.0);
        self.faults.truncate(FAULTS_MAX);
    }

    fn to_message(&self, call: u64) -> Vec<u8> {
        let mut w = self.votes.tell(Writer::tagged(tag::UP).number(call)).number(self.groups.len() as u64);
        for group in &self.groups {
            w = w.number(group.hash).number(group.count).number(group.ranks.len() as u64);
            w = group.ranks.iter().fold(w, |w, &rank| w.number(u64::from(rank)));
        }
        w = w.number(self.fault_count).number(self.faults.len() as u64);
        for (rank, fault) in &self.faults {
            w = w.number(u64::from(*rank)).bytes(&fault.to_bytes());
        }
        w.0
    }

    fn merge(&mut self, contents: &[u8]) -> Option<()> {
        let mut r = Reader::new(contents);
        self.votes.merge(Votes::hear(&mut r)?);
        for _ in 0..r.number()? {
            let (hash, count) = (r.number()?, r.number()?);
            let named = r.number()?;
            let ranks = (0..named).map(|_| r.number().map(|rank| rank as u32)).collect::<Option<Vec<u32>>>()?;
            self.add_group(Group { hash, count, ranks });
        }
        let count = r.number()?;
        let listed = r.number()?;
        let faults = (0..listed).map(|_| Some((r.number()? as u32, Fault::from_bytes(r.bytes()?)?)));
        let faults = faults.collect::<Option<Vec<_>>>()?;
        self.add_faults(count, faults);
        Some(())
    }
}

/// An agreement under way on one rank.
pub struct Consensus {
    call: u64,
    question: Question,
    parent: Option<u32>,
    children: Vec<u32>,
    missing: Vec<u32>,
    merged: Merged,
    sent_up: bool,
    /// On rank 0: values of the ranks that were asked for them.
    values: BTreeMap<u32, Vec<(String, String)>>,
    asked: Vec<u32>,
    names: Names,
    /// Whether rank 0 is at work for all, who wait.
    deciding: bool,
    /// Whether ranks may come late.
    arrives: bool,
    /// When this rank came, and when rank 0 began to decide, if that is recorded \[ns\].
    came_ns: Option<u64>,
    decides_ns: Option<u64>,
    /// What rank 0 says of a failure.
    failed: Option<Failed>,
}

impl Consensus {
    /// Starts the next agreement of this party.
    pub fn new(party: &mut Party, question: Question) -> Consensus {
        let call = party.next_call(&question);
        let (rank, tree) = (party.rank(), party.tree());
        let children: Vec<u32> = tree.children().collect();
        let mut merged = Merged { votes: question.votes, ..Merged::default() };
        if !party.is_server() {
            merged.add_group(Group { hash: question.compared.digest(), count: 1, ranks: vec![rank] });
        }
        merged.add_faults(u64::from(question.fault.is_some()), question.fault.clone().map(|fault| (rank, fault)));
        let (missing, arrives) = (children.clone(), question.opens || party.is_server());
        Consensus {
            call,
            question,
            parent: tree.parent(),
            children,
            missing,
            merged,
            sent_up: false,
            values: BTreeMap::new(),
            asked: Vec::new(),
            names: party.names.clone(),
            deciding: false,
            arrives,
            came_ns: None,
            decides_ns: None,
            failed: None,
        }
    }

    /// The same, where rank 0 has something to say of a failure.
    #[must_use]
    pub fn where_failed(self, failed: Option<Failed>) -> Consensus {
        Consensus { failed, ..self }
    }

    /// Goes on, and records it if anybody wants to know. Once all ranks have answered and agree, `decide` runs on rank 0 and
    /// its result is everybody's; any failure, of it or of a rank, is everybody's too. Returns `None` while it is not over.
    pub fn poll(
        &mut self,
        world: &mut dyn World,
        party: &mut Party,
        decide: &mut dyn FnMut() -> Result<Vec<u8>, Fault>,
    ) -> Option<Result<Vec<u8>, Fault>> {
        let agreed = self.poll_with(world, party, &mut |_, _| Some(decide()))?;
        Some(agreed.map(|agreed| agreed.payload))
    }

    /// As [`Consensus::poll`], where `decide` may take its time: it is called again until it gives something.
    pub fn poll_with(
        &mut self,
        world: &mut dyn World,
        party: &mut Party,
        decide: &mut Decide,
    ) -> Option<Result<Agreed, Fault>> {
        if party.trace.is_none() {
            return self.advance(world, party, decide);
        }
        let came = *self.came_ns.get_or_insert_with(|| world.clock().stamp_ns());
        let result = self.advance(world, party, decide);
        if let (Some(result), Some(trace)) = (&result, &mut party.trace) {
            trace.agreed(self.call, came, world.clock().stamp_ns(), result.is_err());
        }
        result
    }

    fn advance(
        &mut self,
        world: &mut dyn World,
        party: &mut Party,
        decide: &mut Decide,
    ) -> Option<Result<Agreed, Fault>> {
        while let Some((from, tag, contents)) = party.inbox.next_consensus(self.call) {
            party.progress();
            match tag {
                tag::UP => {
                    self.missing.retain(|&child| child != from);
                    if self.merged.merge(&contents).is_none() {
                        let fault = Fault::new(
                            FaultKind::Peer,
                            format!("an agreement that rank {from} sent cannot be decoded"),
                        );
                        self.merged.add_faults(1, [(from, fault.hint("run the same version on all ranks"))]);
                    }
                }
                tag::DECIDING => {
                    party.patient = true;
                    self.deciding = true;
                    self.note_deciding(world);
                }
                tag::QUERY => world.transport().signal(from, self.values_message()),
                tag::VALUES => {
                    self.values.insert(from, fields(&contents).unwrap_or_default());
                }
                _ => {
                    party.patient = false;
                    let decision = decision(&contents);
                    self.send_down(world, &contents);
                    return Some(decision);
                }
            }
        }
        if !self.missing.is_empty() {
            return None;
        }
        if let Some(parent) = self.parent {
            if !std::mem::replace(&mut self.sent_up, true) {
                world.transport().signal(parent, self.merged.to_message(self.call));
            }
            return None;
        }
        self.decide(world, party, decide)
    }

    /// On rank 0, when all have answered.
    fn decide(
        &mut self,
        world: &mut dyn World,
        party: &mut Party,
        decide: &mut Decide,
    ) -> Option<Result<Agreed, Fault>> {
        let result = if !self.merged.faults.is_empty() {
            Err(failures(&self.merged, &self.names))
        } else if self.merged.groups.len() > 1 {
            self.ask_values(world);
            if self.values.len() < self.asked.len() {
                return None;
            }
            Err(self.difference())
        } else {
            if !self.deciding && party.inbox.is_lost() {
                // This rank comes late, and others have told their users that the call failed.
                return None;
            }
            let begins = !std::mem::replace(&mut self.deciding, true);
            if begins {
                party.progress();
            }
            if self.question.stores && begins {
                self.note_deciding(world);
            }
            if party.trace.is_some() {
                self.decides_ns.get_or_insert_with(|| world.clock().stamp_ns());
            }
            let began = world.clock().now_ns();
            let decided = decide(world, self.merged.votes)?;
            if begins && world.clock().now_ns() - began > party.limits.storage.as_nanos() as u64 {
                // It did so itself, and the others have given up on it.
                return Some(Err(party.end_stalled(world, 0, &self.waits_for(), party.limits.storage)));
            }
            self.deciding = false;
            if let (Some(trace), Some(begin)) = (&mut party.trace, self.decides_ns) {
                trace.decided(self.call, begin, world.clock().stamp_ns());
            }
            decided.map(|payload| Agreed { payload, votes: self.merged.votes })
        };
        let result = result.map_err(|fault| match self.failed.take() {
            Some(failed) => failed(self.merged.votes, fault),
            None => fault,
        });
        let contents = match &result {
            Ok(Agreed { payload, votes }) => votes.tell(Writer::tagged(1).bytes(payload)).0,
            Err(fault) => Writer::tagged(0).bytes(&fault.to_bytes()).0,
        };
        self.send_down(world, &contents);
        Some(result)
    }

    fn send_down(&self, world: &mut dyn World, contents: &[u8]) {
        let mut message = Writer::tagged(tag::DOWN).number(self.call).0;
        message.extend(contents);
        for &child in &self.children {
            world.transport().signal(child, message.clone());
        }
    }

    /// Wakes nobody up: where ranks share cores, that takes as long as another agreement does.
    fn note_deciding(&self, world: &mut dyn World) {
        for &child in &self.children {
            world.transport().note(child, Writer::tagged(tag::DECIDING).number(self.call).0);
        }
    }

    fn ask_values(&mut self, world: &mut dyn World) {
        if !self.asked.is_empty() {
            return;
        }
        let own = world.transport().rank();
        self.asked = self.merged.groups.iter().map(|group| group.ranks[0]).collect();
        for &rank in &self.asked {
            if rank == own {
                self.values.insert(own, self.question.compared.fields());
            } else {
                world.transport().signal(rank, Writer::tagged(tag::QUERY).number(self.call).0);
            }
        }
    }

    fn values_message(&self) -> Vec<u8> {
        let w = Writer::tagged(tag::VALUES).number(self.call);
        self.question
            .compared
            .fields()
            .iter()
            .fold(w, |w, (name, value)| w.bytes(name.as_bytes()).bytes(value.as_bytes()))
            .0
    }

    /// The error that says which values differ, on which ranks.
    fn difference(&self) -> Fault {
        let (mut lines, mut hint) = (Vec::new(), None);
        let expected = &self.values[&0];
        for group in &self.merged.groups[1..] {
            let found = &self.values[&group.ranks[0]];
            let names = expected.iter().chain(found).map(|(name, _)| name);
            let mut seen = Vec::new();
            for name in names {
                let of = |fields: &[(String, String)]| fields.iter().find(|f| &f.0 == name).map(|f| f.1.clone());
                let (ours, theirs) = (of(expected), of(found));
                // Of calls that differ, or of different objects, what only one of them says is no news.
                let is_news = seen.is_empty() || (ours.is_some() && theirs.is_some());
                if ours == theirs || !is_news || seen.contains(&name) || seen.len() == 3 {
                    continue;
                }
                seen.push(name);
                let more = group.count.saturating_sub(group.ranks.len() as u64);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let [ours, theirs] = [ours, theirs].map(|value| value.unwrap_or_else(|| NOT_GIVEN.into()));
                lines.push(format!("{name} is {ours} on rank 0, but {theirs} on {}{more}", named(&group.ranks)));
            }
            hint = hint.or_else(|| seen.first().map(|name| hint_for(name)));
        }
        if lines.is_empty() {
            lines.push("what they ask for looks alike, and is not".into());
        }
        let others: Vec<u32> = self.merged.groups[1..].iter().flat_map(|group| group.ranks.clone()).collect();
        let mut fault = Fault::new(FaultKind::Disagreement, "the ranks ask for different things:");
        fault.others = lines;
        fault
            .on(&others[..others.len().min(RANKS_NAMED_MAX)], "")
            .context(&self.question.what)
            .hint(hint.unwrap_or(ARGUMENTS_HINT))
    }
}

impl Awaited for Consensus {
    fn waits(&self) -> Waits {
        Waits { storage: self.deciding && self.parent.is_none(), arrival: self.arrives }
    }

    fn waits_for(&self) -> String {
        if self.deciding {
            return format!("{}: waits for storage, which rank 0 reads or changes for all", self.question.what);
        }
        let above = self.parent.filter(|_| self.missing.is_empty());
        let whom = above.map_or_else(|| self.missing.clone(), |parent| vec![parent]);
        format!("{}: waits for {}", self.question.what, self.names.list(&whom))
    }
}

/// What to do about values that differ, by the name of the first of them; what is of an array is named so.
fn hint_for(name: &str) -> &'static str {
    match name.split(" of ").next().unwrap_or(name) {
        "operation" | "number" | "file or store" => {
            "make the same collective calls in the same order on every rank; look for a call that only some ranks reach"
        }
        "version" => "install the same version of hyperslab for all ranks",
        "path" => "make the path from what all ranks have in common, or let rank 0 broadcast it",
        "name" | "names" | "arrays" => "name the same arrays in the same order on every rank",
        "shape" | "distribution" => {
            "give every rank the same distribution, of the shape of the whole array; only the local arrays differ"
        }
        "codecs" => "give the same codecs, zstd and checksum on every rank",
        "element type" => "convert the local arrays to the same type on every rank",
        _ if name.starts_with("attribute ") => {
            "let rank 0 broadcast what only it knows, such as the time, before all ranks give it"
        }
        _ => ARGUMENTS_HINT,
    }
}

/// What to do about values that differ of which no more is known.
const ARGUMENTS_HINT: &str = "give the same arguments on every rank, but for the local arrays";

fn decision(contents: &[u8]) -> Result<Agreed, Fault> {
    let mut r = Reader::new(contents);
    let broken = || Fault::new(FaultKind::Peer, "a decision that rank 0 sent cannot be decoded");
    match (r.tag(), r.bytes()) {
        (Some(1), Some(payload)) => {
            let votes = Votes::hear(&mut r).ok_or_else(broken)?;
            Ok(Agreed { payload: payload.to_vec(), votes })
        }
        (Some(_), Some(bytes)) => Err(Fault::from_bytes(bytes).unwrap_or_else(broken)),
        _ => Err(broken()),
    }
}

fn fields(contents: &[u8]) -> Option<Fields> {
    let mut r = Reader::new(contents);
    let mut fields = Vec::new();
    while let Some(name) = r.text() {
        fields.push((name, r.text()?));
    }
    Some(fields)
}

/// One error out of those of several ranks: the same text once, with the ranks that it befell.
fn failures(merged: &Merged, names: &Names) -> Fault {
    let mut distinct: Vec<(Fault, Vec<u32>)> = Vec::new();
    for (rank, fault) in &merged.faults {
        match distinct.iter_mut().find(|(known, _)| known == fault) {
            Some((_, ranks)) => ranks.push(*rank),
            None => distinct.push((fault.clone(), vec![*rank])),
        }
    }
    let more = merged.fault_count - merged.faults.len() as u64;
    let (first, ranks) = distinct[0].clone();
    // Who is alone does not have to know which rank it was.
    let alone = names.clients() == 1 && names.servers().is_empty();
    // Where it befell all of them, who it was is no news.
    let all = ranks.len() as u64 == u64::from(names.clients()) && names.servers().is_empty();
    let named = |(fault, ranks): &(Fault, Vec<u32>)| match alone {
        true => fault.clone(),
        false => fault.clone().on(ranks, if all { String::new() } else { names.list(ranks) }),
    };
    let mut others: Vec<String> = distinct[1..].iter().map(|other| named(other).text()).collect();
    if more > 0 {
        others.push(format!("and on {more} more ranks"));
    }
    named(&(first, ranks)).beside(others)
}
