//! A transfer as bytes, for servers, which are told what the others ask.

use hyperslab_format::zarr::{BytesCodec, Codecs, KeyEncoding, KeyStyle, Separator};
use hyperslab_layout::{ByteOrder, Dim, Distribution, ElementType, Section, Triplet};
use hyperslab_plan::{Ask, Direction, Placement, Spread, Stored, Transfer};
use hyperslab_world::{Reader, Writer};
use std::sync::Arc;

/// Most dimensions, arrays or codecs that are believed: what is told came from this library, but a number that makes no
/// sense must not become an allocation.
const COUNT_MAX: u64 = 1 << 24;

/// Bytes of a transfer.
pub(crate) fn tell(transfer: &Transfer) -> Vec<u8> {
    let w = Writer::default().number(u64::from(transfer.direction == Direction::Read));
    let w = w.number(u64::from(transfer.ranks)).number(u64::from(transfer.sync)).number(transfer.asks.len() as u64);
    transfer.asks.iter().fold(w, tell_ask).0
}

/// Reads what [`tell`] made.
pub(crate) fn hear(bytes: &[u8]) -> Option<Transfer> {
    let mut r = Reader::new(bytes);
    let direction = if r.number()? == 1 { Direction::Read } else { Direction::Write };
    let (ranks, sync) = (r.number()?.try_into().ok()?, r.number()? == 1);
    let asks = list(&mut r, hear_ask)?;
    Some(Transfer { direction, asks, ranks, sync })
}

fn tell_ask(w: Writer, ask: &Ask) -> Writer {
    let w = w.bytes(ask.name.as_bytes()).number(ask.section.dims.len() as u64);
    let triplet = |w: Writer, t: &Triplet| w.number(t.start).number(t.stride).number(t.count).number(t.block);
    let w = ask.section.dims.iter().fold(w, triplet);
    let w = match &ask.spread {
        Spread::Regular(distribution) => tell_distribution(w.number(0), distribution),
        Spread::Explicit => w.number(1),
    };
    let w = w.bytes(ask.memory.numpy().as_bytes());
    let stored = &ask.stored;
    let w = numbers(w, &stored.shape).bytes(stored.element.numpy().as_bytes()).bytes(&stored.fill);
    let w = numbers(w, &stored.order.iter().map(|&d| d as u64).collect::<Vec<_>>());
    match &stored.placement {
        Placement::File { object, offset } => w.number(0).bytes(object.as_bytes()).number(*offset),
        Placement::Chunks { prefix, chunk, keys, codecs, fresh } => {
            let w = numbers(w.number(1).bytes(prefix.as_bytes()), chunk);
            let w = w.number(u64::from(keys.style == KeyStyle::V2)).number(u64::from(keys.separator == Separator::Dot));
            tell_codecs(w, codecs).number(u64::from(*fresh))
        }
    }
}

fn hear_ask(r: &mut Reader) -> Option<Ask> {
    let name = r.text()?;
    let triplet = |r: &mut Reader| {
        Some(Triplet { start: r.number()?, stride: r.number()?, count: r.number()?, block: r.number()? })
    };
    let section = Section { dims: list(r, triplet)? };
    let spread = match r.number()? {
        0 => Spread::Regular(hear_distribution(r)?),
        _ => Spread::Explicit,
    };
    let memory = ElementType::from_numpy(&r.text()?)?;
    let shape = list(r, |r| r.number())?;
    let element = ElementType::from_numpy(&r.text()?)?;
    let fill = r.bytes()?.into();
    let order = list(r, |r| usize::try_from(r.number()?).ok())?;
    let placement = match r.number()? {
        0 => Placement::File { object: r.text()?.into(), offset: r.number()? },
        _ => {
            let (prefix, chunk) = (r.text()?.into(), list(r, |r| r.number())?);
            let style = if r.number()? == 1 { KeyStyle::V2 } else { KeyStyle::Default };
            let separator = if r.number()? == 1 { Separator::Dot } else { Separator::Slash };
            let codecs = Arc::new(hear_codecs(r)?);
            Placement::Chunks { prefix, chunk, keys: KeyEncoding { style, separator }, codecs, fresh: r.number()? == 1 }
        }
    };
    Some(Ask { name, section, spread, memory, stored: Stored { shape, element, fill, order, placement } })
}

fn tell_distribution(w: Writer, distribution: &Distribution) -> Writer {
    let w = numbers(numbers(w, distribution.shape()), distribution.mesh());
    let dim = |w: Writer, dim: &Dim| match dim {
        Dim::Block => w.number(0),
        Dim::BlockOf(n) => w.number(1).number(*n),
        Dim::Cyclic(k) => w.number(2).number(*k),
        Dim::Whole => w.number(3),
        Dim::Blocks(ends) => numbers(w.number(4), ends),
    };
    let w = distribution.dims().iter().fold(w.number(distribution.dims().len() as u64), dim);
    numbers(w, &distribution.over().iter().flatten().map(|&m| m as u64).collect::<Vec<_>>())
}

fn hear_distribution(r: &mut Reader) -> Option<Distribution> {
    let (shape, mesh) = (list(r, |r| r.number())?, list(r, |r| r.number())?);
    let dim = |r: &mut Reader| {
        Some(match r.number()? {
            0 => Dim::Block,
            1 => Dim::BlockOf(r.number()?),
            2 => Dim::Cyclic(r.number()?),
            3 => Dim::Whole,
            4 => Dim::Blocks(list(r, |r| r.number())?.into()),
            _ => return None,
        })
    };
    let dims = list(r, dim)?;
    let over = list(r, |r| usize::try_from(r.number()?).ok())?;
    Distribution::new(&shape, &mesh, &dims, Some(&over)).ok()
}

fn tell_codecs(w: Writer, codecs: &Codecs) -> Writer {
    let w = numbers(w, &codecs.order.iter().map(|&d| d as u64).collect::<Vec<_>>());
    let w = w.number(u64::from(codecs.endian == ByteOrder::Big)).number(codecs.chain.len() as u64);
    // Levels may be negative; their bits travel.
    codecs.chain.iter().fold(w, |w, codec| match *codec {
        BytesCodec::Crc32c => w.number(0).number(0).number(0),
        BytesCodec::Zstd { level, checksum } => w.number(1).number(level as u64).number(u64::from(checksum)),
        BytesCodec::Gzip { level } => w.number(2).number(u64::from(level)).number(0),
    })
}

fn hear_codecs(r: &mut Reader) -> Option<Codecs> {
    let order = list(r, |r| usize::try_from(r.number()?).ok())?;
    let endian = if r.number()? == 1 { ByteOrder::Big } else { ByteOrder::Little };
    let codec = |r: &mut Reader| {
        let (kind, level, checksum) = (r.number()?, r.number()?, r.number()? == 1);
        Some(match kind {
            0 => BytesCodec::Crc32c,
            1 => BytesCodec::Zstd { level: level as i32, checksum },
            2 => BytesCodec::Gzip { level: level as u32 },
            _ => return None,
        })
    };
    Some(Codecs { order, endian, chain: list(r, codec)? })
}

fn numbers(w: Writer, numbers: &[u64]) -> Writer {
    numbers.iter().fold(w.number(numbers.len() as u64), |w, &number| w.number(number))
}

fn list<T>(r: &mut Reader, mut one: impl FnMut(&mut Reader) -> Option<T>) -> Option<Vec<T>> {
    let count = r.number().filter(|&count| count <= COUNT_MAX)?;
    (0..count).map(|_| one(r)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::Kind;

    fn asks() -> Vec<Ask> {
        let element = ElementType { kind: Kind::Float32, order: ByteOrder::Big };
        let file = Placement::File { object: "/a/b.raw".into(), offset: 1 << 40 };
        let chain = vec![
            BytesCodec::Gzip { level: 3 },
            BytesCodec::Zstd { level: -7, checksum: true },
            BytesCodec::Zstd { level: 22, checksum: false },
            BytesCodec::Crc32c,
        ];
        let chunks = Placement::Chunks {
            prefix: "rho/".into(),
            chunk: vec![2, 3, 4],
            keys: KeyEncoding { style: KeyStyle::V2, separator: Separator::Dot },
            codecs: Arc::new(Codecs { order: vec![2, 0, 1], endian: ByteOrder::Big, chain }),
            fresh: true,
        };
        let dims = [Dim::Cyclic(2), Dim::Whole, Dim::BlockOf(5)];
        let distribution = Distribution::new(&[7, 8, 9], &[2, 3], &dims, Some(&[1, 0])).unwrap();
        let ask = |placement: Placement, name: &str, spread: Spread| Ask {
            name: name.into(),
            section: Section { dims: vec![Triplet { start: 1, stride: 4, count: 2, block: 3 }; 3] },
            spread,
            memory: ElementType::native(Kind::Complex128),
            stored: Stored {
                shape: vec![7, 8, 9],
                element,
                fill: vec![1, 2, 3, 4].into(),
                order: vec![2, 1, 0],
                placement,
            },
        };
        let uneven = [Dim::blocks(&[3, 0, 4]).unwrap(), Dim::Block, Dim::Whole];
        let uneven = Distribution::new(&[7, 8, 9], &[3, 2], &uneven, None).unwrap();
        vec![
            ask(file.clone(), "ψ", Spread::Regular(distribution)),
            ask(chunks, "rho", Spread::Regular(uneven)),
            ask(file, "boxes", Spread::Explicit),
        ]
    }

    #[test]
    fn transfers_travel_unchanged() {
        for (direction, sync) in [(Direction::Read, false), (Direction::Write, true)] {
            let transfer = Transfer { direction, asks: asks(), ranks: 70000, sync };
            let heard = hear(&tell(&transfer)).unwrap();
            // Neither has equality; how they are shown has all of both.
            assert_eq!(format!("{heard:?}"), format!("{transfer:?}"));
        }
    }

    #[test]
    fn what_is_cut_short_or_makes_no_sense_is_refused() {
        let bytes = tell(&Transfer { direction: Direction::Read, asks: asks(), ranks: 3, sync: false });
        for end in 0..bytes.len() {
            assert!(hear(&bytes[..end]).is_none(), "{end} of {} bytes", bytes.len());
        }
        for at in 0..bytes.len() {
            let mut bent = bytes.clone();
            bent[at] = 0xff;
            // Whatever comes out, nothing breaks.
            let _ = hear(&bent);
        }
    }
}
