//! How an array lies in storage, as bytes.

use super::{hear_section, list, numbers, tell_section};
use crate::Decode;
use hyperslab_layout::stored::{
    Address, Along, Change, Coding, Keys, Objects, OtherCodec, Shards, StorageOrder, Stored, Strides, Table, Unit,
};
use hyperslab_layout::{ElementType, TextParts, Triplet};
use hyperslab_world::{Reader, Writer};
use std::sync::Arc;

pub(crate) fn tell_stored(w: Writer, stored: &Stored) -> Writer {
    let Stored { shape, element, fill, texts, strides, unit, root, objects, coding, change, numbered } = stored;
    let w = numbers(w, shape).bytes(element.numpy().as_bytes()).bytes(fill);
    let w = tell_unit(tell_strides(w.bytes(&texts.to_bytes()), strides), unit);
    let w = tell_coding(tell_objects(w.number(u64::from(*root)), objects), coding).number(match change {
        Change::Fresh => 0,
        Change::Replace => 1,
        Change::InPlace => 2,
    });
    numbered.iter().fold(w.number(u64::from(numbered.is_some())), |w, order| tell_order(w, order))
}

fn tell_order(w: Writer, StorageOrder { section, dims, fastest }: &StorageOrder) -> Writer {
    let w = tell_section(w, section).number(*fastest as u64);
    dims.iter().fold(w, |w, Along { extent, chunk, inside, across }| {
        w.number(*extent).number(*chunk).number(*inside).number(*across)
    })
}

fn hear_order(r: &mut Reader) -> Option<StorageOrder> {
    let (section, fastest) = (hear_section(r)?, usize::try_from(r.number()?).ok()?);
    let along =
        |_: &Triplet| Some(Along { extent: r.number()?, chunk: r.number()?, inside: r.number()?, across: r.number()? });
    let dims: Vec<Along> = section.dims.iter().map(along).collect::<Option<_>>()?;
    let sound = dims.iter().all(|dim| dim.chunk > 0 && dim.inside > 0) && fastest < dims.len();
    sound.then_some(StorageOrder { section, dims, fastest })
}

pub(crate) fn hear_stored(r: &mut Reader, decode: Decode) -> Option<Stored> {
    let stored = Stored {
        shape: list(r, |r| r.number())?,
        element: ElementType::from_numpy(&r.text()?)?,
        fill: r.bytes()?.into(),
        texts: TextParts::from_bytes(r.bytes()?)?,
        strides: hear_strides(r)?,
        unit: hear_unit(r)?,
        root: r.number()?.try_into().ok()?,
        objects: hear_objects(r, decode)?,
        coding: hear_coding(r, decode)?,
        change: match r.number()? {
            0 => Change::Fresh,
            1 => Change::Replace,
            2 => Change::InPlace,
            _ => return None,
        },
        numbered: if r.number()? == 1 { Some(Arc::new(hear_order(r)?)) } else { None },
    };
    stored.fault().is_none().then_some(stored)
}

fn tell_strides(w: Writer, strides: &Strides) -> Writer {
    let Strides { order, record } = strides;
    let w = numbers(w, &order.iter().map(|&d| d as u64).collect::<Vec<_>>());
    numbers(w, record.as_slice())
}

fn hear_strides(r: &mut Reader) -> Option<Strides> {
    let order = list(r, |r| usize::try_from(r.number()?).ok())?;
    let record = list(r, |r| r.number())?;
    (record.len() <= 1).then(|| Strides { order, record: record.first().copied() })
}

fn tell_unit(w: Writer, unit: &Unit) -> Writer {
    match unit {
        Unit::Free => w.number(0),
        Unit::Chunk(chunk) => numbers(w.number(1), chunk),
    }
}

fn hear_unit(r: &mut Reader) -> Option<Unit> {
    match r.number()? {
        0 => Some(Unit::Free),
        1 => Some(Unit::Chunk(list(r, |r| r.number())?)),
        _ => None,
    }
}

fn tell_objects(w: Writer, objects: &Objects) -> Writer {
    match objects {
        Objects::One { name, offset } => w.number(0).bytes(name.as_bytes()).number(*offset),
        Objects::Grid { name, offset } => w.number(4).bytes(name.as_bytes()).number(*offset),
        Objects::Allotted { from, known } => tell_table(w.number(5).number(*from), known),
        Objects::Keyed(keys) => tell_keys(w.number(1), keys),
        // What an index says is learned by who reads it.
        Objects::Shards(shards) => {
            let order: Vec<u64> = shards.order.iter().map(|&d| d as u64).collect();
            let w = numbers(numbers(tell_keys(w.number(3), &shards.keys), &shards.chunks), &order);
            w.bytes(&shards.codec.to_bytes())
        }
        Objects::Table(table) => tell_table(w.number(2), table),
    }
}

fn tell_table(w: Writer, table: &Table) -> Writer {
    let w = w.bytes(table.name.as_bytes()).number(table.chunks().len() as u64);
    let w = table
        .chunks()
        .iter()
        .fold(w, |w, Address { number, offset, bytes }| w.number(*number).number(*offset).number(*bytes));
    let w = w.number(table.others.len() as u64);
    table.others.iter().fold(w, |w, (number, other)| w.number(*number).bytes(&other.0.to_bytes()))
}

fn hear_table(r: &mut Reader, decode: Decode) -> Option<Table> {
    let name: Arc<str> = r.text()?.into();
    let place = |r: &mut Reader| Some(Address { number: r.number()?, offset: r.number()?, bytes: r.number()? });
    let chunks = list(r, place)?;
    let other = |r: &mut Reader| Some((r.number()?, OtherCodec(decode(r.bytes()?)?)));
    let others = list(r, other)?.into_iter().collect();
    Some(Table::of(name, chunks).with_others(others))
}

fn hear_objects(r: &mut Reader, decode: Decode) -> Option<Objects> {
    Some(match r.number()? {
        0 => Objects::One { name: r.text()?.into(), offset: r.number()? },
        4 => Objects::Grid { name: r.text()?.into(), offset: r.number()? },
        5 => Objects::Allotted { from: r.number()?, known: Arc::new(hear_table(r, decode)?) },
        1 => Objects::Keyed(hear_keys(r)?),
        3 => {
            let (keys, chunks) = (hear_keys(r)?, list(r, |r| r.number())?);
            let order = list(r, |r| usize::try_from(r.number()?).ok())?;
            Objects::Shards(Arc::new(Shards { keys, chunks, order, codec: decode(r.bytes()?)?, known: None }))
        }
        2 => Objects::Table(Arc::new(hear_table(r, decode)?)),
        _ => return None,
    })
}

fn tell_keys(w: Writer, Keys { prefix, head, separator, single }: &Keys) -> Writer {
    let w = w.bytes(prefix.as_bytes()).bytes(head.as_bytes());
    w.number(u64::from(u32::from(*separator))).bytes(single.as_bytes())
}

fn hear_keys(r: &mut Reader) -> Option<Keys> {
    let (prefix, head) = (r.text()?.into(), r.text()?.into());
    let separator = char::from_u32(u32::try_from(r.number()?).ok()?)?;
    Some(Keys { prefix, head, separator, single: r.text()?.into() })
}

fn tell_coding(w: Writer, coding: &Coding) -> Writer {
    match coding {
        Coding::Plain => w.number(0),
        Coding::Trailer => w.number(1),
        Coding::Encoded(codec) => w.number(2).bytes(&codec.to_bytes()),
        Coding::Summed => w.number(3),
    }
}

fn hear_coding(r: &mut Reader, decode: Decode) -> Option<Coding> {
    Some(match r.number()? {
        0 => Coding::Plain,
        1 => Coding::Trailer,
        2 => Coding::Encoded(decode(r.bytes()?)?),
        3 => Coding::Summed,
        _ => return None,
    })
}
