//! An explanation for programs.

use super::{Counts, Explanation};
use crate::price::{Phase, Price, Resource};
use crate::strategy::Parameters;
use crate::transfer::{Direction, TransferArray};
use serde_json::{Map, Value};

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_string(), value)).collect::<Map<_, _>>())
}

fn array<T>(items: impl IntoIterator<Item = T>, value: impl Fn(T) -> Value) -> Value {
    Value::Array(items.into_iter().map(value).collect())
}

fn counts(counts: Counts) -> [(&'static str, Value); 3] {
    let Counts { pieces, elements, bytes } = counts;
    [("pieces", pieces.into()), ("elements", elements.into()), ("bytes", bytes.into())]
}

fn messages((number, amount): (u64, Counts)) -> Value {
    let [pieces, elements, bytes] = counts(amount);
    object([("messages", number.into()), pieces, elements, bytes])
}

fn asked(ask: &TransferArray) -> Value {
    let (place, detail) = match ask.stored.object() {
        Some((file, offset)) => ("file", object([("object", (&*file.name).into()), ("offset", offset.into())])),
        None => {
            let (prefix, chunk) = (ask.stored.below(), ask.stored.chunk().unwrap_or_default().to_vec());
            ("chunks", object([("prefix", (&*prefix.name).into()), ("shape", chunk.into())]))
        }
    };
    object([
        ("name", ask.name.clone().into()),
        ("section", ask.section.to_string().into()),
        ("spread", ask.spread.to_string().into()),
        ("memory", ask.memory.to_string().into()),
        ("stored", ask.stored.element.to_string().into()),
        ("shape", ask.stored.shape.clone().into()),
        ("order", ask.stored.order().to_vec().into()),
        (place, detail),
    ])
}

impl Explanation {
    /// The same as data: `direction`, `arrays`, `strategy` with its parameters and reason, `others`, and the tables
    /// `rounds`, `servers` and `ranks`, with how many more of each there are.
    pub fn to_json(&self) -> Value {
        let writes = self.transfer.direction == Direction::Write;
        let rounds = array(&self.rounds, |round| {
            let peers = array(&round.peers, |peer| {
                let [pieces, elements, bytes] = counts(peer.counts);
                object([("rank", peer.rank.into()), pieces, elements, bytes])
            });
            let [pieces, elements, bytes] = counts(round.more.1);
            let more = object([("ranks", round.more.0.into()), pieces, elements, bytes]);
            object([("round", round.round.into()), ("server", round.server.into()), ("ranks", peers), ("more", more)])
        });
        let servers = array(&self.servers, |requests| {
            object([
                ("rank", requests.rank.into()),
                ("reads", requests.reads.into()),
                ("writes", requests.writes.into()),
                ("extents", requests.extents.into()),
                ("bytes", requests.bytes.into()),
                ("objects", requests.objects.into()),
                ("cut", requests.cut.into()),
            ])
        });
        let ranks = array(&self.ranks, |share| {
            object([
                ("rank", share.rank.into()),
                ("steps", share.steps.into()),
                ("cut", share.cut.into()),
                ("sent", messages(share.sent)),
                ("received", messages(share.received)),
                ("slots", share.slots.into()),
                ("slot_bytes", share.slot_bytes.into()),
            ])
        });
        object([
            ("direction", if writes { "write" } else { "read" }.into()),
            ("bytes", self.transfer.stored_bytes().into()),
            ("size", self.transfer.ranks.into()),
            ("arrays", array(&self.transfer.asks, asked)),
            ("strategy", self.choice.parameters.strategy.name().into()),
            ("why", self.choice.why.clone().into()),
            ("parameters", parameters(&self.choice.parameters)),
            ("predicted", priced(&self.choice.price)),
            (
                "candidates",
                array(&self.choice.candidates, |one| {
                    object([
                        ("strategy", one.parameters.strategy.name().into()),
                        ("parameters", parameters(&one.parameters)),
                        ("predicted", priced(&one.price)),
                    ])
                }),
            ),
            (
                "others",
                array(&self.others, |(strategy, no)| {
                    let reason = no.as_ref().map_or(Value::Null, |no| no.reason.clone().into());
                    let hint = no.as_ref().map_or(Value::Null, |no| no.hint.clone().into());
                    object([("strategy", strategy.name().into()), ("infeasible", reason), ("hint", hint)])
                }),
            ),
            ("rounds", rounds),
            ("more_rounds", self.more_rounds.into()),
            ("servers", servers),
            ("more_servers", self.more_servers.into()),
            ("ranks", ranks),
            ("more_ranks", (u64::from(self.transfer.ranks) - self.ranks.len() as u64).into()),
        ])
    }
}

fn parameters(p: &Parameters) -> Value {
    object([
        ("servers", p.servers.to_vec().into()),
        ("slots", p.slots.into()),
        ("subchunk_bytes", p.subchunk_bytes.into()),
        ("direct_run_bytes", p.direct_run_bytes.into()),
        ("buffer_bytes_max", p.buffer_bytes_max.into()),
        ("exchange", p.exchange.name().into()),
        ("order", array(&p.order, |&(first, count)| vec![first, count].into())),
    ])
}

/// Seconds by phase, and how long things are busy.
fn priced(price: &Price) -> Value {
    let named = |names: Vec<(&'static str, f64)>| {
        Value::Object(names.into_iter().map(|(name, ns)| (name.to_string(), (ns / 1e9).into())).collect::<Map<_, _>>())
    };
    object([
        ("seconds", price.seconds().into()),
        ("later_seconds", (price.later_ns / 1e9).into()),
        ("first_seconds", (price.first_ns / 1e9).into()),
        ("phases", named(Phase::ALL.map(|phase| (phase.name(), price.phase(phase))).to_vec())),
        ("busy", named(Resource::ALL.map(|one| (one.name(), price.resources[one as usize])).to_vec())),
        ("bound_by", price.bottleneck.name().into()),
        ("buffer_bytes", price.buffer_bytes.into()),
    ])
}
