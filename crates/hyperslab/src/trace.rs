//! The form of traces on disk. `docs/trace.md` describes it for others.
//!
//! A file is a sequence of blocks, each written by one append: what a rank did in one call, or in a part of one. Of a
//! program that was killed, the last block may be cut off; all before are whole.

use hyperslab_collective::Predicted as Seconds;
use hyperslab_plan::{Direction, Parameters, Phase, Transfer};
use hyperslab_walk::trace::{NONE, Recorded, Span};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// What a block begins with.
const MAGIC: [u8; 8] = *b"hsTRACE1";
/// Bytes of a span \[B\].
const SPAN_BYTES: usize = 64;

/// What a phase of a call was predicted to take.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Predicted {
    /// The phase: open, exchange, storage, sync, close.
    pub phase: String,
    /// How long \[s\].
    pub seconds: f64,
}

/// What moved in a call, and how: told by rank 0 only.
#[derive(Clone, Default, Debug, Serialize)]
pub struct About {
    #[serde(skip_serializing_if = "String::is_empty")]
    strategy: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    direction: &'static str,
    servers: Vec<u32>,
    subchunk_bytes: u64,
    slots: u32,
    arrays: Vec<ArrayAbout>,
    bytes: u64,
    /// What a model says of it beforehand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    predicted: Vec<Predicted>,
}

#[derive(Clone, Debug, Serialize)]
struct ArrayAbout {
    name: String,
    dtype: String,
    shape: Vec<u64>,
}

/// Most arrays that are named one by one.
const ARRAYS_MAX: usize = 64;

impl About {
    /// What a transfer is, and by phase what it is expected to take.
    pub fn new(transfer: &Transfer, parameters: &Parameters, predicted: &Seconds) -> About {
        let phase = |(phase, &seconds): (Phase, &f64)| Predicted { phase: phase.name().into(), seconds };
        let array = |ask: &hyperslab_plan::TransferArray| ArrayAbout {
            name: ask.name.clone(),
            dtype: ask.stored.element.to_string(),
            shape: ask.section.shape(),
        };
        About {
            strategy: parameters.strategy.name().into(),
            direction: if transfer.direction == Direction::Write { "write" } else { "read" },
            servers: parameters.servers.to_vec(),
            subchunk_bytes: parameters.subchunk_bytes,
            slots: parameters.slots,
            arrays: transfer.asks.iter().take(ARRAYS_MAX).map(array).collect(),
            bytes: transfer.stored_bytes(),
            predicted: Phase::ALL.into_iter().zip(predicted).map(phase).collect(),
        }
    }
}

/// What a block says of itself. Field names are those of the JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Header {
    /// Names the communicator, or the rehearsal: the same on all of its ranks.
    pub run: String,
    /// Whether time is virtual.
    pub simulated: bool,
    /// Number of the host whose clock it is, in hexadecimal digits.
    pub host: String,
    /// The rank.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
    /// Ranks before the dedicated servers.
    pub clients: u32,
    /// Number of the call, the same on all ranks; none for what the application says of itself.
    pub call: Option<u64>,
    /// What was called.
    pub what: String,
    /// When it began \[ns\].
    pub begin_ns: u64,
    /// When it ended \[ns\].
    pub end_ns: u64,
    /// What recording a span takes \[ns\].
    pub span_ns: f64,
    /// Why it failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// What moved.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    header: &'a Header,
    dropped: u64,
    /// What it took to bring these spans into this form \[ns\].
    encoding_ns: u64,
    objects: Vec<&'a str>,
}

/// A block of a file. `now_ns` is a clock by which it is measured what that takes.
pub fn block(header: &Header, recorded: &Recorded, now_ns: impl Fn() -> u64) -> Vec<u8> {
    let begin_ns = now_ns();
    let (mut objects, mut numbers): (Vec<&Arc<str>>, HashMap<&str, u32>) = Default::default();
    let mut spans = Vec::with_capacity(recorded.spans.len() * SPAN_BYTES);
    for span in &recorded.spans {
        let object = span.object.as_ref().map_or(NONE, |name| {
            *numbers.entry(&**name).or_insert_with(|| {
                objects.push(name);
                objects.len() as u32 - 1
            })
        });
        put(&mut spans, span, object);
    }
    let encoding_ns = now_ns() - begin_ns;
    let objects = objects.iter().map(|object| &***object).collect();
    let whole = Whole { header, dropped: recorded.dropped, encoding_ns, objects };
    let mut json = serde_json::to_vec(&whole).expect("texts and numbers are always JSON");
    // Spans begin at a multiple of eight bytes.
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut block = Vec::with_capacity(24 + json.len() + spans.len());
    block.extend(MAGIC);
    block.extend((json.len() as u32).to_le_bytes());
    block.extend((SPAN_BYTES as u32).to_le_bytes());
    block.extend((recorded.spans.len() as u64).to_le_bytes());
    block.extend(json);
    block.extend(spans);
    block
}

fn put(bytes: &mut Vec<u8>, span: &Span, object: u32) {
    for long in [span.begin_ns, span.end_ns, span.ready_ns, span.bytes] {
        bytes.extend(long.to_le_bytes());
    }
    for short in [span.round, span.step, span.after, span.peer, object, span.pieces] {
        bytes.extend(short.to_le_bytes());
    }
    bytes.extend([span.kind as u8, span.of as u8, span.lane, u8::from(span.failed), 0, 0, 0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_walk::trace::Kind;

    fn header() -> Header {
        Header {
            run: "run".into(),
            simulated: false,
            host: "0".into(),
            rank: 1,
            size: 2,
            clients: 2,
            call: Some(3),
            what: "write of 'ρ'".into(),
            begin_ns: 5,
            end_ns: 9,
            span_ns: 50.0,
            failed: None,
            about: None,
        }
    }

    #[test]
    fn a_block_has_the_form_that_the_documents_tell() {
        let object: Option<Arc<str>> = Some("file".into());
        let span = |kind, begin| Span { object: object.clone(), bytes: 7, ..Span::plain(kind, begin, begin + 1) };
        let spans = vec![span(Kind::Write, 5), Span::plain(Kind::Plan, 6, 8), span(Kind::Wait, 7)];
        let block = block(&header(), &Recorded { spans, dropped: 4 }, || 0);
        let word = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
        let json = word(8) as usize;
        assert_eq!((&block[..8], word(12), long(16)), (&MAGIC[..], 64, 3));
        let told: serde_json::Value = serde_json::from_slice(&block[24..24 + json]).unwrap();
        assert_eq!(told["objects"], serde_json::json!(["file"]));
        assert_eq!((&told["call"], &told["dropped"], &told["what"]), (&3.into(), &4.into(), &"write of 'ρ'".into()));
        assert!(told.get("strategy").is_none());
        let first = 24 + json;
        assert_eq!((first % 8, block.len()), (0, first + 3 * SPAN_BYTES));
        assert_eq!((long(first), long(first + 8), long(first + 24), word(first + 48)), (5, 6, 7, 0));
        assert_eq!((block[first + 56], word(first + SPAN_BYTES + 48)), (Kind::Write as u8, NONE));
        assert_eq!((block[first + 2 * SPAN_BYTES + 56], word(first + 2 * SPAN_BYTES + 48)), (8, 0));
    }
}
