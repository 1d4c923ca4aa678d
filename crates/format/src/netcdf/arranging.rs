//! Where elements lie of a file that nobody reads yet, and where the format has them.
//!
//! Variables come one after another. One that has no place among the others without moving them is a draft behind all of them,
//! and when the file is to be seen, one pass brings everything into the order of the format:
//!
//! ```text
//! | header | fixed | record 0 | record 1 | draft: fixed | draft: records of a, one behind another | draft: of b |
//! | header      | fixed | fixed | record 0, with a and b | record 1, with a and b |
//! ```

use super::NetcdfHeader;

/// Bytes that move, so many times: from there, each so far from the one before it, to there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shifted {
    /// Where the first lie, in the old order \[B\].
    pub from: u64,
    /// How far each lies from the one before it there \[B\].
    pub from_step: u64,
    /// Where the first come to lie \[B\].
    pub to: u64,
    /// How far each comes to lie from the one before it \[B\].
    pub to_step: u64,
    /// How many there are.
    pub count: u64,
    /// Bytes of each \[B\].
    pub bytes: u64,
}

/// What moves when a file is arranged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arranged {
    /// Where data begin then, and end \[B\].
    pub data: (u64, u64),
    /// What moves of fixed variables, each once.
    pub fixed: Vec<Shifted>,
    /// What moves of records, of each variable; the distance of two is the same for all.
    pub records: Vec<Shifted>,
    /// Bytes that lie between each other in the old order, from there on, of each record \[B\].
    pub interleaved: (u64, u64),
}

impl NetcdfHeader {
    /// Whether all lie where the format has them.
    pub fn is_arranged(&self) -> bool {
        self.arranged == self.variables.len()
    }

    /// Gives all variables the places that the format has for them. Says what has to be moved for that; `None` where all lie there
    /// already.
    pub fn arrange(&mut self) -> Option<Arranged> {
        if self.is_arranged() && self.has_room(self.arranged) {
            return None;
        }
        let old = std::mem::replace(self, NetcdfHeader { arranged: self.variables.len(), ..self.clone() });
        self.place(0);
        let (before, now) = (old.record_bytes().unwrap_or(0), self.record_bytes().unwrap_or(0));
        let moved = |number: usize| {
            let (bytes, is_record) = (self.slab_bytes(number).unwrap_or(0), self.is_record(number));
            let from_step = if number < old.arranged { before } else { bytes };
            Shifted {
                from: old.variables[number].begin,
                from_step: if is_record { from_step } else { 0 },
                to: self.variables[number].begin,
                to_step: if is_record { now } else { 0 },
                count: if is_record { self.records } else { 1 },
                bytes,
            }
        };
        let all = (0..self.variables.len()).map(moved).filter(|moved| moved.count > 0 && moved.bytes > 0);
        let (records, fixed): (Vec<Shifted>, Vec<Shifted>) = all.partition(|moved| moved.to_step > 0);
        let first = old.interleaved().map(|number| old.variables[number].begin).min();
        let begin = self.variables.iter().map(|variable| variable.begin).min().unwrap_or(0);
        // Without records, all may end in front of where these begin.
        let data = (begin, self.padded_end().max(begin));
        Some(Arranged { data, fixed, records, interleaved: (first.unwrap_or(0), before) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NewVariable, Version};
    use super::*;
    use crate::attribute::Attributes;
    use hyperslab_layout::Kind;

    /// Moves bytes one by one, as slowly and as simply as can be.
    fn moved(arranged: &Arranged, old: &[u8]) -> Vec<u8> {
        let mut new = vec![0; arranged.data.1 as usize];
        for one in arranged.fixed.iter().chain(&arranged.records) {
            for n in 0..one.count {
                let (from, to) = ((one.from + n * one.from_step) as usize, (one.to + n * one.to_step) as usize);
                new[to..][..one.bytes as usize].copy_from_slice(&old[from..][..one.bytes as usize]);
            }
        }
        new
    }

    /// Each byte of an element, where it lies by what a header says: of this variable, record and place in the slab.
    fn written(header: &NetcdfHeader) -> Vec<u8> {
        let mut bytes = vec![0; header.padded_end() as usize];
        let record = header.record_bytes().unwrap();
        for number in 0..header.variables.len() {
            let slab = header.slab_bytes(number).unwrap();
            let (count, step) = match (header.is_record(number), number < header.arranged) {
                (false, _) => (1, 0),
                (true, true) => (header.records, record),
                (true, false) => (header.records, slab),
            };
            for (n, at) in (0..count).flat_map(|n| (0..slab).map(move |at| (n, at))) {
                let to = (header.variables[number].begin + n * step + at) as usize;
                assert_eq!(bytes[to], 0, "two elements at byte {to}");
                bytes[to] = (number as u64 * 31 + n * 7 + at) as u8 | 1;
            }
        }
        bytes
    }

    #[test]
    fn records_that_are_not_there_yet_take_no_room() {
        let attributes = Attributes::new();
        let mut header = NetcdfHeader::new(Version::Classic, Vec::new());
        let names = ["t", "x"].map(|name| Some(name.to_string()));
        let new = NewVariable {
            name: "v",
            shape: &[0, 5],
            kind: Kind::Int8,
            dimension_names: Some(&names),
            attributes: &attributes,
            fill: None,
        };
        header.add(&[new], Some("t"), None).unwrap();
        header.arranged = 0;
        let (begin, end) = header.arrange().unwrap().data;
        assert!(begin > header.to_bytes().len() as u64, "there is room for a longer header");
        assert_eq!(begin, end);
    }

    #[test]
    fn variables_one_after_another_come_to_lie_as_the_format_has_them() {
        let attributes = Attributes::new();
        let names = |of: &[&str]| of.iter().map(|name| Some((*name).to_string())).collect::<Vec<_>>();
        let (fixed, growing) = (names(&["x", "y"]), names(&["t", "x"]));
        // Of each: whether it grows, its type, how long it is in the other dimension.
        let kinds = [Kind::Float64, Kind::Int16, Kind::Int8];
        for case in 0..3_u32.pow(4) * 16 {
            let mut header = NetcdfHeader::new(Version::Offset64, Vec::new());
            for at in 0..4 {
                let (grows, kind) = (case >> at & 1 == 1, kinds[(case / 16 / 3_u32.pow(at) % 3) as usize]);
                let (name, dims) = (format!("v{at}"), if grows { &growing } else { &fixed });
                let shape = if grows { [2, 3] } else { [3, 5] };
                let new = NewVariable {
                    name: &name,
                    shape: &shape,
                    kind,
                    dimension_names: Some(dims),
                    attributes: &attributes,
                    fill: None,
                };
                header.add(&[new], Some("t"), None).unwrap();
                assert_eq!(header.header_bytes(), header.to_bytes().len() as u64);
            }
            let before = written(&header);
            let Some(arranged) = header.arrange() else {
                assert!(header.is_arranged());
                continue;
            };
            assert!(header.is_arranged() && header.arrange().is_none());
            assert_eq!(moved(&arranged, &before), written(&header), "case {case}");
            let parsed = NetcdfHeader::parse(&header.to_bytes(), before.len() as u64, "f").unwrap().unwrap().0;
            assert_eq!(parsed, header);
        }
    }

    #[test]
    fn a_header_without_room_is_arranged_behind_a_longer_one() {
        let attributes = Attributes::new();
        let mut header = NetcdfHeader::new(Version::Offset64, Vec::new());
        for number in 0..900 {
            let name = format!("a_variable_of_a_long_name_{number}");
            let new = NewVariable {
                name: &name,
                shape: &[2],
                kind: Kind::Float64,
                dimension_names: None,
                attributes: &attributes,
                fill: None,
            };
            header.add(&[new], None, None).unwrap();
        }
        assert!(header.arranged < 900 && !header.is_arranged());
        let before = written(&header);
        let arranged = header.arrange().unwrap();
        assert_eq!(moved(&arranged, &before), written(&header));
        assert!(arranged.data.0 >= header.to_bytes().len() as u64);
    }
}
