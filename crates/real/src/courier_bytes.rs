//! The letters of the transport as bytes.

use crate::neighbour::Identity;
use crate::transport::Peek;
use hyperslab_layout::{Axis, ByteOrder, ElementType, Kind, Listed, Opaque, Term, Triplet, View};
use hyperslab_world::{Exposed, Reader, Writer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A datagram of the transport. All but signals belong to a transfer, whose number comes first.
pub(crate) enum Letter {
    Signal(Vec<u8>),
    /// Where the sender's arrays lie.
    Expose(u64, Vec<u8>),
    /// So many messages were taken out of the receiver's arrays.
    Pulled(u64, u64),
    /// So many messages were put into the receiver's arrays.
    Pushed(u64, u64),
    /// So many messages may be sent for slots.
    Grant(u64, u64),
    /// So many more messages may be sent for exposed arrays.
    Credit(u64, u64),
    /// Pieces for a slot.
    ForSlot(u64, Packed),
    /// Pieces for an exposed array.
    ForExposed(u64, Packed),
}

/// Pieces as a datagram. Its first [`Packed::HEAD`] bytes are left to the letter in which they travel, so that what may be
/// megabytes is copied neither into a letter nor out of it.
pub(crate) struct Packed(pub(crate) Vec<u8>);

impl Packed {
    /// Bytes before those of the pieces: a tag and the number of a transfer \[B\].
    pub(crate) const HEAD: usize = 9;

    fn stamped(self, tag: u8, transfer: u64) -> Vec<u8> {
        let Packed(mut datagram) = self;
        let head = Writer::tagged(tag).number(transfer).0;
        datagram[..Packed::HEAD].copy_from_slice(&head);
        datagram
    }
}

impl Letter {
    pub(crate) fn transfer(&self) -> Option<u64> {
        match self {
            Letter::Signal(_) => None,
            Letter::Expose(t, _)
            | Letter::Pulled(t, _)
            | Letter::Pushed(t, _)
            | Letter::Grant(t, _)
            | Letter::Credit(t, _)
            | Letter::ForSlot(t, _)
            | Letter::ForExposed(t, _) => Some(*t),
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let bulk = |tag: u8, transfer: u64, bytes: &[u8]| {
            let mut message = Writer::tagged(tag).number(transfer);
            message.0.extend(bytes);
            message.0
        };
        let count = |tag, transfer, count| Writer::tagged(tag).number(transfer).number(count).0;
        match self {
            Letter::Signal(bytes) => bulk(0, 0, &bytes),
            Letter::Expose(t, bytes) => bulk(1, t, &bytes),
            Letter::ForSlot(t, pieces) => pieces.stamped(2, t),
            Letter::ForExposed(t, pieces) => pieces.stamped(3, t),
            Letter::Pulled(t, n) => count(4, t, n),
            Letter::Pushed(t, n) => count(5, t, n),
            Letter::Grant(t, n) => count(6, t, n),
            Letter::Credit(t, n) => count(7, t, n),
        }
    }

    pub(crate) fn from_bytes(mut bytes: Vec<u8>) -> Option<Letter> {
        let mut reader = Reader::new(&bytes);
        let (tag, transfer) = (reader.tag()?, reader.number()?);
        if tag >= 4 {
            let count = reader.number()?;
            return Some(match tag {
                4 => Letter::Pulled(transfer, count),
                5 => Letter::Pushed(transfer, count),
                6 => Letter::Grant(transfer, count),
                7 => Letter::Credit(transfer, count),
                _ => return None,
            });
        }
        Some(match tag {
            0 => Letter::Signal(bytes.split_off(Packed::HEAD)),
            1 => Letter::Expose(transfer, bytes.split_off(Packed::HEAD)),
            2 => Letter::ForSlot(transfer, Packed(bytes)),
            _ => Letter::ForExposed(transfer, Packed(bytes)),
        })
    }
}

/// Bytes of a type of elements.
pub(crate) const ELEMENT_BYTES: usize = 6;
/// In place of the number of a kind of number. What opaque bytes mean is compared before they travel: only which of them have an
/// order is told.
const OPAQUE: u8 = u8::MAX;

pub(crate) fn element_bytes(element: ElementType) -> [u8; ELEMENT_BYTES] {
    let (kind, size) = match element.kind {
        Kind::Opaque(opaque) => (OPAQUE, opaque.bytes()),
        number => (Kind::ALL.iter().position(|&kind| kind == number).expect("every number is listed") as u8, 0),
    };
    let [a, b, c, d] = size.to_le_bytes();
    let unit = if let Kind::Opaque(opaque) = element.kind { opaque.swap_bytes() as u8 } else { 0 };
    [kind, u8::from(element.order == ByteOrder::Big) | unit << 1, a, b, c, d]
}

pub(crate) fn element_from(bytes: &[u8]) -> Option<ElementType> {
    let &[kind, order, a, b, c, d] = bytes else { return None };
    let (order, unit) = (if order & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big }, order >> 1);
    let bytes = u32::from_le_bytes([a, b, c, d]);
    let kind = match kind {
        OPAQUE if unit == 1 => Kind::opaque(bytes),
        OPAQUE if matches!(unit, 4 | 8) && bytes.is_multiple_of(unit.into()) => {
            Kind::Opaque(Opaque::ordered(bytes, unit))
        }
        OPAQUE => return None,
        number => *Kind::ALL.get(usize::from(number))?,
    };
    Some(ElementType { kind, order })
}

pub(crate) fn expose_bytes(identity: &Identity, arrays: &[Exposed]) -> Vec<u8> {
    let mut w = Writer::default().bytes(&identity.to_bytes()).number(arrays.len() as u64);
    let mut lists = BTreeMap::new();
    for array in arrays {
        // What no neighbour can reach has no bytes for it.
        let (address, bytes) = array.memory.host_address().map_or((0, 0), |at| (at as u64, array.memory.bytes()));
        let told = !array.view.axes.iter().any(|(axis, _)| matches!(axis, Axis::Scattered(_)));
        w = w.number(address).number(bytes).number(u64::from(told));
        w = if told { view_bytes(w, &array.view, &mut lists) } else { w };
    }
    w.0
}

pub(crate) fn exposed_views(bytes: &[u8]) -> Option<Peek> {
    let mut r = Reader::new(bytes);
    let identity = Identity::from_bytes(r.bytes()?.try_into().ok()?);
    let count = r.number()?;
    let mut lists = Vec::new();
    let array = |_| {
        let (address, bytes, told) = (r.number()?, r.number()?, r.number()? == 1);
        Some((address, bytes, if told { Some(view_from(&mut r, &mut lists)?) } else { None }))
    };
    let arrays = (0..count).map(array).collect::<Option<_>>()?;
    Some(Peek { identity, arrays })
}

/// Kinds of axes.
const HELD: u64 = 0;
const FOLDED: u64 = 1;
const LISTED: u64 = 2;
const SELECTED: u64 = 3;

fn view_bytes(w: Writer, view: &View, lists: &mut BTreeMap<usize, u64>) -> Writer {
    let mut w = w.number(view.base as u64).bytes(&element_bytes(view.element)).number(view.axes.len() as u64);
    for (axis, stride) in &view.axes {
        w = w.number(*stride as u64);
        match axis {
            Axis::Owned(set) => w = w.number(HELD).set(set),
            Axis::Folded(set, dims) => {
                w = w.number(FOLDED).set(set).number(dims.len() as u64);
                w = dims.iter().fold(w, |w, &(count, step)| w.number(count).number(step as u64));
            }
            Axis::Listed(list) => {
                // Hundreds of arrays may lie as one list says: its number, and, the first time, the list.
                let next = lists.len() as u64;
                let number = *lists.entry(list.as_ptr().addr()).or_insert(next);
                w = w.number(LISTED).number(number);
                if number < next {
                    continue;
                }
                w = w.number(list.len() as u64);
                for Listed { term, at, at_step } in list.iter() {
                    w = w.number(term.start).number(term.len).number(term.step).number(term.count);
                    w = w.number(*at as u64).number(*at_step as u64);
                }
            }
            // A view with such an axis is not told.
            Axis::Scattered(_) => {}
            Axis::Selected(t, low) => {
                w = w.number(SELECTED).number(t.start).number(t.stride).number(t.count).number(t.block).number(*low);
            }
        }
    }
    w
}

fn view_from(r: &mut Reader, lists: &mut Vec<Arc<[Listed]>>) -> Option<View> {
    let base = r.number()? as i64;
    let element = element_from(r.bytes()?)?;
    let ndim = r.number()?;
    let axes = (0..ndim).map(|_| {
        let stride = r.number()? as i64;
        let axis = match r.number()? {
            HELD => Axis::Owned(r.set()?),
            FOLDED => {
                let (set, dims) = (r.set()?, r.number()?);
                let dim = |r: &mut Reader| Some((r.number()?, r.number()? as i64));
                Axis::Folded(set, (0..dims).map(|_| dim(r)).collect::<Option<_>>()?)
            }
            LISTED => {
                let listed = |r: &mut Reader| {
                    let term = Term { start: r.number()?, len: r.number()?, step: r.number()?, count: r.number()? };
                    Some(Listed { term, at: r.number()? as i64, at_step: r.number()? as i64 })
                };
                let number = usize::try_from(r.number()?).ok()?;
                if number == lists.len() {
                    lists.push((0..r.number()?).map(|_| listed(r)).collect::<Option<_>>()?);
                }
                Axis::Listed(lists.get(number)?.clone())
            }
            SELECTED => {
                let (start, stride) = (r.number()?, r.number()?);
                let triplet = Triplet { start, stride, count: r.number()?, block: r.number()? };
                Axis::Selected(triplet, r.number()?)
            }
            _ => return None,
        };
        Some((axis, stride))
    });
    Some(View { base, axes: axes.collect::<Option<_>>()?, element })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::IndexSet;

    #[test]
    fn types_of_elements_travel_unchanged() {
        let ordered = Kind::Opaque(Opaque::ordered(8, 8));
        let text = Kind::Opaque(Opaque::ordered(20, 4));
        for kind in Kind::ALL.into_iter().chain([0, 1, 12, u32::MAX].map(Kind::opaque)).chain([ordered, text]) {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let element = ElementType { kind, order };
                assert_eq!(element_from(&element_bytes(element)), Some(element));
            }
        }
        let date = ElementType::from_numpy(">M8[ns]").unwrap();
        assert_eq!(element_from(&element_bytes(date)), Some(ElementType { kind: ordered, ..date }));
        assert_eq!(element_from(&[99, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn views_of_all_kinds_travel_unchanged() {
        let nested = IndexSet::nested(3, 2, &[(2, 40), (3, 9), (2, 4)]).unwrap();
        let term = Term { start: 2, len: 3, step: 5, count: 4 };
        let list: Arc<[Listed]> = [Listed { term, at: -7, at_step: 3 }].into();
        let axes = vec![
            (Axis::Owned(nested.clone()), 8),
            (Axis::Owned(IndexSet::empty()), 8),
            (Axis::Folded(nested, [(12, -64), (2, 8)].into()), 1),
            (Axis::Listed(list.clone()), -8),
            (Axis::Selected(Triplet { start: 1, stride: 3, count: 2, block: 2 }, 4), 16),
            (Axis::Listed(list), 4),
        ];
        let view = View { base: -5, axes, element: ElementType::native(Kind::opaque(3)) };
        let bytes = view_bytes(Writer::default(), &view, &mut BTreeMap::new()).0;
        let read = |bytes: &[u8]| view_from(&mut Reader::new(bytes), &mut Vec::new());
        assert_eq!(read(&bytes), Some(view));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), None);
        }
    }
}
