//! A transfer as bytes, for servers, which are told what the others ask.

pub(crate) mod opened;
mod stored;

use crate::Decode;
use hyperslab_layout::{
    Dim, Distribution, Durability, ElementType, EndOfFile, Holes, Overlapping, Policies, Section, Triplet,
};
use hyperslab_plan::{Direction, Spread, Transfer, TransferArray};
use hyperslab_world::{Reader, Writer};
pub(crate) use stored::{hear_stored, tell_stored};

/// Most dimensions, arrays or codecs that are believed: what is told came from this library, but a number that makes no
/// sense must not become an allocation.
const COUNT_MAX: u64 = 1 << 24;

/// Bytes of a transfer.
pub(crate) fn tell(transfer: &Transfer) -> Vec<u8> {
    let w = Writer::default().number(u64::from(transfer.direction == Direction::Read));
    let w = tell_policies(w.number(u64::from(transfer.ranks)), transfer.policies).number(transfer.asks.len() as u64);
    transfer.asks.iter().fold(w, tell_ask).0
}

/// Reads what [`tell`] made.
pub(crate) fn hear(bytes: &[u8], decode: Decode) -> Option<Transfer> {
    let mut r = Reader::new(bytes);
    let direction = if r.number()? == 1 { Direction::Read } else { Direction::Write };
    let (ranks, policies) = (r.number()?.try_into().ok()?, hear_policies(&mut r)?);
    let asks = list(&mut r, |r| hear_ask(r, decode))?;
    Some(Transfer { direction, asks, ranks, policies })
}

fn tell_policies(w: Writer, Policies { durability, overlapping, holes, end }: Policies) -> Writer {
    let w = w.number(match durability {
        Durability::Cached => 0,
        Durability::Soon => 1,
        Durability::Now => 2,
    });
    let w = w.number(u64::from(overlapping == Overlapping::Any)).number(u64::from(holes == Holes::Kept));
    w.number(u64::from(end == EndOfFile::Short))
}

fn hear_policies(r: &mut Reader) -> Option<Policies> {
    let durability = match r.number()? {
        0 => Durability::Cached,
        1 => Durability::Soon,
        2 => Durability::Now,
        _ => return None,
    };
    let overlapping = if r.number()? == 1 { Overlapping::Any } else { Overlapping::Refused };
    let holes = if r.number()? == 1 { Holes::Kept } else { Holes::MayBeRewritten };
    let end = if r.number()? == 1 { EndOfFile::Short } else { EndOfFile::Fault };
    Some(Policies { durability, overlapping, holes, end })
}

fn tell_ask(w: Writer, ask: &TransferArray) -> Writer {
    let w = tell_section(w.bytes(ask.name.as_bytes()), &ask.section);
    let w = match &ask.spread {
        Spread::Regular(distribution) => tell_distribution(w.number(0), distribution),
        Spread::Explicit => w.number(1),
    };
    let w = w.bytes(ask.memory.numpy().as_bytes());
    tell_stored(w, &ask.stored)
}

fn hear_ask(r: &mut Reader, decode: Decode) -> Option<TransferArray> {
    let name = r.text()?;
    let section = hear_section(r)?;
    let spread = match r.number()? {
        0 => Spread::Regular(hear_distribution(r)?),
        _ => Spread::Explicit,
    };
    let memory = ElementType::from_numpy(&r.text()?)?;
    Some(TransferArray { name, section, spread, memory, stored: hear_stored(r, decode)? })
}

fn tell_section(w: Writer, section: &Section) -> Writer {
    let triplet = |w: Writer, t: &Triplet| w.number(t.start).number(t.stride).number(t.count).number(t.block);
    section.dims.iter().fold(w.number(section.dims.len() as u64), triplet)
}

fn hear_section(r: &mut Reader) -> Option<Section> {
    let triplet = |r: &mut Reader| {
        Some(Triplet { start: r.number()?, stride: r.number()?, count: r.number()?, block: r.number()? })
    };
    Some(Section { dims: list(r, triplet)? })
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
    Distribution::over_mesh(&shape, &mesh, &dims, &over).ok()
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
    use hyperslab_format::zarr::{
        ArrayMetadata, BytesCodec, Codecs, KeyEncoding, KeyStyle, Separator, Sharding, codec_from_bytes,
    };
    use hyperslab_layout::stored::{Address, Change, Stored, Strides, Table};
    use hyperslab_layout::{ByteOrder, Kind};

    fn decode(bytes: &[u8]) -> Option<std::sync::Arc<dyn hyperslab_layout::Codec>> {
        codec_from_bytes(bytes)
    }

    fn asks() -> Vec<TransferArray> {
        let element = ElementType { kind: Kind::Float32, order: ByteOrder::Big };
        let chain = vec![
            BytesCodec::Gzip { level: 3 },
            BytesCodec::Zstd { level: -7, checksum: true },
            BytesCodec::Zstd { level: 22, checksum: false },
            BytesCodec::Crc32c,
        ];
        let shape = [7, 8, 9];
        let file = Stored::in_file(&shape, element, "/a/b.raw", 1 << 40).ordered(vec![2, 1, 0]);
        let records = Strides { record: Some(4096), ..file.strides.clone() };
        let records = Stored { strides: records, fill: vec![1, 2, 3, 4].into(), ..file.clone() };
        let keys = KeyEncoding { style: KeyStyle::V2, separator: Separator::Dot }.keys("rho/");
        let chunks = |chain| {
            let coding = Codecs { chain, ..Codecs::plain(false) }.coding();
            Stored::in_chunks(&shape, element, &[2, 3, 4], keys.clone(), coding).changed(Change::Replace)
        };
        let table = Table::of("x.h5", vec![Address { number: 7, offset: 1 << 33, bytes: 77 }]);
        let table = Stored::in_table(&shape, element, &[2, 3, 4], table);
        let sharding = Sharding::new(&[2, 3, 4], Codecs::zstd(3, true));
        let metadata = ArrayMetadata::new("x", &shape, Kind::Float32, &[4, 9, 4], Codecs::sharded(sharding)).unwrap();
        let inner = metadata.inner(&[0; 4]).unwrap();
        let shards = Stored::in_shards(&shape, element, &inner.chunk, inner.shards, inner.coding);
        let dims = [Dim::Cyclic(2), Dim::Whole, Dim::BlockOf(5)];
        let distribution = Distribution::over_mesh(&[7, 8, 9], &[2, 3], &dims, &[1, 0]).unwrap();
        let ask = |stored: Stored, name: &str, spread: Spread| TransferArray {
            name: name.into(),
            section: Section { dims: vec![Triplet { start: 1, stride: 4, count: 2, block: 3 }; 3] },
            spread,
            memory: ElementType::native(Kind::Complex128),
            stored,
        };
        let uneven = [Dim::blocks(&[3, 0, 4]).unwrap(), Dim::Block, Dim::Whole];
        let uneven = Distribution::new(&[7, 8, 9], &[3, 2], &uneven).unwrap();
        vec![
            ask(file.clone(), "ψ", Spread::Regular(distribution)),
            ask(chunks(chain), "rho", Spread::Regular(uneven)),
            ask(chunks(vec![BytesCodec::Crc32c]), "plain", Spread::Explicit),
            ask(table, "table", Spread::Explicit),
            ask(shards, "shards", Spread::Explicit),
            ask(records, "records", Spread::Explicit),
            TransferArray {
                section: Section::whole(&[7 * 8 * 9]),
                stored: file.in_order(&Section::whole(&[7, 8, 9])).unwrap(),
                ..ask(file.clone(), "numbered", Spread::Explicit)
            },
            ask(file, "boxes", Spread::Explicit),
        ]
    }

    #[test]
    fn transfers_travel_unchanged() {
        let durability = Durability::Soon;
        let odd = Policies { overlapping: Overlapping::Any, holes: Holes::Kept, durability, end: EndOfFile::Short };
        for (direction, policies) in [(Direction::Read, odd), (Direction::Write, Policies::of(Durability::Now))] {
            let transfer = Transfer { direction, asks: asks(), ranks: 70000, policies };
            let heard = hear(&tell(&transfer), decode).unwrap();
            // Neither has equality; how they are shown has all of both.
            assert_eq!(format!("{heard:?}"), format!("{transfer:?}"));
        }
    }

    #[test]
    fn what_is_cut_short_or_makes_no_sense_is_refused() {
        let bytes =
            tell(&Transfer { direction: Direction::Read, asks: asks(), ranks: 3, policies: Policies::default() });
        for end in 0..bytes.len() {
            assert!(hear(&bytes[..end], decode).is_none(), "{end} of {} bytes", bytes.len());
        }
        for at in 0..bytes.len() {
            let mut bent = bytes.clone();
            bent[at] = 0xff;
            // Whatever comes out, nothing breaks.
            let _ = hear(&bent, decode);
        }
    }
}
