//! Members of JSON objects as text: a change of one leaves all else in a document as it was written, its order, its digits and
//! the words `NaN` and `Infinity` (which are not JSON).

use std::ops::Range;

/// A member of the object that a document is.
pub(super) struct Member {
    pub(super) name: Option<String>,
    /// From the first quote of its name to the end of its value.
    pub(super) all: Range<usize>,
    pub(super) value: Range<usize>,
}

impl Member {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }
}

/// The members of a document that is known to be a JSON object, but for the words that are not JSON.
pub(super) fn members(bytes: &[u8]) -> Vec<Member> {
    let mut members = Vec::new();
    let skip = |mut at: usize, what: &[u8]| {
        while bytes.get(at).is_some_and(|byte| what.contains(byte)) {
            at += 1;
        }
        at
    };
    let mut at = skip(0, b" \t\r\n{");
    while bytes.get(at) == Some(&b'"') {
        let start = at;
        let end = string_end(bytes, at);
        let name: Option<String> = serde_json::from_slice(&bytes[start..end]).ok();
        let value = skip(end, b" \t\r\n:");
        let mut depth = 0u32;
        at = value;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at = string_end(bytes, at);
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b',' | b'}' if depth == 0 => break,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        let length = bytes[value..at].trim_ascii_end().len();
        members.push(Member { name, all: start..value + length, value: value..value + length });
        at = skip(at, b" \t\r\n,");
    }
    members
}

/// One past the last quote of the string that begins here.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The document without the members of this name, whatever their values.
pub(super) fn without(bytes: &[u8], name: &str) -> Vec<u8> {
    let members = members(bytes);
    let (Some(first), Some(last)) = (members.first(), members.last()) else { return bytes.to_vec() };
    let mut out = bytes[..first.all.start].to_vec();
    let mut before: Option<usize> = None;
    for (number, member) in members.iter().enumerate().filter(|(_, member)| !member.is(name)) {
        if let Some(before) = before {
            // The comma behind it, and the space around that.
            out.extend(&bytes[members[before].all.end..members[before + 1].all.start]);
        }
        out.extend(&bytes[member.all.clone()]);
        before = Some(number);
    }
    out.extend(&bytes[last.all.end..]);
    out
}

/// The document with this value of the member, which it does not have, at the end.
pub(super) fn with(bytes: &[u8], name: &str, value: &str) -> Vec<u8> {
    let members = members(bytes);
    let Some(last) = members.last() else { return bytes.to_vec() };
    let mut out = bytes[..last.all.end].to_vec();
    out.extend(format!(",\n  {}: {value}", serde_json::Value::from(name)).as_bytes());
    out.extend(&bytes[last.all.end..]);
    out
}
