//! Texts of any length on their way to a file that has them in heaps: all ranks write the heaps of their texts first, in a stretch
//! behind all else. What is written of arrays are then elements of one size, which say where the texts lie: so sections, chunks,
//! filters and rows that are appended are those of any other array.

use super::File;
use super::putting::Putting;
use crate::array_write::{ArrayWrite, completed};
use crate::error::Error;
use crate::options::WriteOptions;
use crate::slots::{each_slot, found_text, has_slots, no_slots, shown_text, slots};
use hyperslab_collective::{Arguments, ArrayRequest, LocalArray, Ownership, Selected, Target};
use hyperslab_format::hdf5::{TEXT_ELEMENT_BYTES, TextHeap};
use hyperslab_format::zarr::BytesCodec;
use hyperslab_layout::{Casting, ElementType, Kind, Opaque, Stored, dense_strides, text_of_slot};
use hyperslab_pack::Memory;
use hyperslab_plan::Direction;
use hyperslab_walk::{Question, Votes};
use hyperslab_world::{Fault, FaultKind, fingerprint};
use std::sync::Arc;

/// What is written of texts, once they lie in the file: arrays of elements, and options that have their type.
type KeptTexts = (Vec<ArrayWrite>, WriteOptions);

/// The texts of this rank, in heaps that have no place yet.
#[derive(Default)]
struct Heaps {
    /// Of arrays that all ranks have: rank 0 writes these.
    shared: TextHeap,
    own: TextHeap,
    /// Elements of local arrays: of which array, which of its parts, and whether all ranks have it.
    elements: Vec<(usize, usize, bool, Vec<u8>)>,
}

impl Heaps {
    fn of(asks: &[ArrayWrite]) -> Result<Heaps, Fault> {
        let mut heaps = Heaps::default();
        for (number, ask) in asks.iter().enumerate() {
            if let Some(found) = found_text(ask, |text| text.contains(&0)) {
                let text = format!("a text of '{}' has a character of zero, which ends texts in HDF5", ask.name);
                let fault = Fault::new(FaultKind::Invalid, text).expected("texts without such", shown_text(&found));
                return Err(fault.hint("take it out, or write Zarr"));
            }
            let is_shared =
                ask.holding.as_deref().and_then(Ownership::regular).is_some_and(|all| all.replication() == all.ranks());
            let heap = if is_shared { &mut heaps.shared } else { &mut heaps.own };
            let texts = ask.arrays.iter().enumerate().filter(|(_, array)| slots(Some(array.element)).is_some());
            for (part, array) in texts {
                let mut elements = Vec::new();
                each_slot(array, |slot| elements.extend(heap.keep(text_of_slot(slot))));
                heaps.elements.push((number, part, is_shared, elements));
            }
        }
        Ok(heaps)
    }

    /// The arrays with elements in place of texts, where the heaps begin there.
    fn placed(self, mut asks: Vec<ArrayWrite>, (shared, own): (u64, u64)) -> Vec<ArrayWrite> {
        let element = text_element();
        for (number, part, is_shared, mut elements) in self.elements {
            TextHeap::place(&mut elements, if is_shared { shared } else { own });
            let array = &mut asks[number].arrays[part];
            let order: Vec<usize> = (0..array.shape.len()).collect();
            let strides = dense_strides(&array.shape, &order, element.bytes());
            let (memory, shape) = (Memory::from_vec(elements), array.shape.clone());
            *array = LocalArray { memory, element, shape, strides, offset: 0 };
        }
        asks
    }
}

/// The type of elements that say where texts lie.
fn text_element() -> ElementType {
    let reference = Opaque::from_code(&format!("O{TEXT_ELEMENT_BYTES}")).map(Kind::Opaque);
    ElementType::native(reference.expect("a code of a type"))
}

impl File {
    /// What is written of arrays of texts of any length, with the texts themselves in the file; nothing where there are none, or
    /// nothing can be written. Collective where there are.
    ///
    /// # Errors
    /// The same on all ranks.
    pub(super) fn with_texts_kept(
        &self,
        doing: &str,
        (asks, options): (&[ArrayWrite], &WriteOptions),
    ) -> Result<Option<KeptTexts>, Error> {
        if !self.has_texts(asks, options) || !self.mode.writes() {
            return Ok(None);
        }
        let what = format!("{doing} to '{}'", self.path().display());
        if !self.inside().form.takes_texts() {
            return Err(self.comm.attend_with(&what, no_slots(asks).context(&what)));
        }
        self.await_calls();
        let (asks, unfit) = completed(asks.to_vec(), self.comm.size());
        let made = unfit.map_or_else(|| Heaps::of(&asks), Err);
        let (mut heaps, fault) = match made {
            Ok(heaps) => (heaps, None),
            Err(fault) => (Heaps::default(), Some(fault.context(&what))),
        };
        let shared = heaps.shared.bytes();
        let root = if self.comm.rank() == 0 { shared.clone() } else { Vec::new() };
        let bytes = [root, std::mem::take(&mut heaps.own).bytes()].concat();
        let fields = vec![
            ("operation".to_string(), "write of texts of variable length".to_string()),
            ("texts of arrays that all ranks have".into(), format!("{:016x}", fingerprint(&shared))),
        ];
        let question = Question::opening(&*what, fields, fault);
        let (most, _) = self.greatest(question, bytes.len() as u64)?;
        let places = if most == 0 { (0, 0) } else { self.put_texts(&what, bytes, shared.len() as u64)? };
        let options = options.but_element(|of| slots(of).map_or(of, |_| Some(text_element())));
        Ok(Some((heaps.placed(asks, places), options)))
    }

    /// Whether texts of any length are written, or elements of an array that has such.
    fn has_texts(&self, asks: &[ArrayWrite], options: &WriteOptions) -> bool {
        if has_slots(asks, options) {
            return true;
        }
        let inside = self.inside();
        if !inside.form.has_texts() {
            return false;
        }
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let mut numbers = inside.form.numbers_of(&self.paths(&names)).into_iter().flatten();
        numbers.any(|number| is_text(inside.form.array(number).element))
    }

    /// The greatest of what ranks say, and where the next byte behind all else lies, as rank 0 knows it.
    fn greatest(&self, question: Question, own: u64) -> Result<(u64, u64), Error> {
        let votes = Votes { reach: Some((0, own)), ..Votes::default() };
        let end = self.inside().form.extent().bytes.next_multiple_of(8);
        let told = self.comm.agree_by(
            Question { votes, ..question },
            Box::new(move |votes| {
                let most = votes.reach.map_or(0, |(_, most)| most);
                (Box::new(move || Ok([most.to_le_bytes(), end.to_le_bytes()].concat())), true)
            }),
        )?;
        let number =
            |at: usize| told.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Ok((number(0), number(8)))
    }

    /// Writes the heaps of all ranks; gives where that of rank 0 begins, and the part of this rank's that is its own.
    fn put_texts(&self, what: &str, bytes: Vec<u8>, shared: u64) -> Result<(u64, u64), Error> {
        let own = bytes.len() as u64;
        let first = self.comm.stretch_of(what, own)?;
        let fields = vec![("operation".to_string(), "dividing room for texts".to_string())];
        let question = Question::opening(what, fields, self.check_writable().err());
        let (total, base) = self.greatest(question, first + own)?;
        self.put_behind(what, (first, bytes), (base, total))?;
        let before = if self.comm.rank() == 0 { shared } else { 0 };
        Ok((base, base + first + before))
    }

    /// Writes bytes of all ranks at a place behind all else, of which this rank has these from there on.
    fn put_behind(&self, what: &str, (first, bytes): (u64, Vec<u8>), (base, total): (u64, u64)) -> Result<(), Error> {
        let (before, beginning) = self.gone_so_far();
        let element = ElementType::native(Kind::UInt8);
        let (count, shape) = (bytes.len() as u64, vec![total]);
        let boxes = if count > 0 { vec![vec![(first, first + count)]] } else { Vec::new() };
        let holding = match self.comm.size() {
            1 => Ownership::replicated(&shape, 1)?,
            _ => Ownership::Boxes { shape: shape.clone(), boxes },
        };
        let (memory, strides) = (Memory::from_vec(bytes), vec![1]);
        let array = LocalArray { memory, element, shape: vec![count], strides, offset: 0 };
        let arrays = if count > 0 || self.comm.size() == 1 { vec![array] } else { Vec::new() };
        let target = || -> Box<dyn Target> {
            let stored = vec![Stored::in_file(&shape, element, self.object(), base)];
            let putting = Putting::new(self.clone(), before.clone(), beginning);
            Box::new(Putting { stored, end: base + total, reaches: true, ..putting })
        };
        let target = (self.comm.rank() == 0).then(target);
        let new = self.is_new();
        let done = self.comm.transfer(Arguments {
            what: what.into(),
            compared: self.compared("texts", &WriteOptions::default()),
            fault: None,
            direction: Direction::Write,
            arrays: vec![ArrayRequest {
                name: "texts".into(),
                selected: Selected::Whole,
                holding: Some(Arc::new(holding)),
                memory: arrays.iter().map(|array| array.element).collect(),
            }],
            locals: Some(vec![arrays]),
            casting: Casting::default(),
            policies: self.policies_of_writes(),
            together: true,
            target,
            publishes: !new,
            at_once: self.attempts.at_once(1),
        });
        let done = self.unfinished.note(done, |_| self.name.clone());
        let failed = done.as_ref().is_err_and(|fault| fault.kind != FaultKind::Unsynced);
        self.has_put(failed, before, false);
        done?;
        self.inside().form.reaches(base + total);
        Ok(())
    }
}

/// Whether elements say where texts of any length lie.
pub(super) fn is_text(element: ElementType) -> bool {
    matches!(element.kind, Kind::Opaque(opaque) if opaque.is_reference())
}

/// Refuses options that arrays of texts of any length cannot have. Fill values are empty: HDF5's library takes each element for the
/// only one that has its text, and frees that when it writes another.
pub(super) fn check_texts(name: &str, element: ElementType, options: &WriteOptions) -> Result<(), Fault> {
    let refused = |why: &str, hint: &str| {
        let text = format!("'{name}' has texts of variable length, which are not written {why}");
        Err(Fault::new(FaultKind::Unsupported, text).hint(hint))
    };
    match options {
        _ if !is_text(element) => Ok(()),
        WriteOptions { fill_value: Some(value), .. } if value.as_str() != Some("") => {
            refused("with a fill value", "leave it out: what no rank writes is empty")
        }
        WriteOptions { codecs: Some(codecs), .. } if codecs.chain.contains(&BytesCodec::Fletcher32) => {
            refused("with a checksum", "leave it out: HDF5 has no checksums of texts")
        }
        _ => Ok(()),
    }
}
