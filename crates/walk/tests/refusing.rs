//! What cannot be done is refused before anything moves: with figures, a hint, and one text on all ranks.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::Ranks;
use hyperslab_format::zarr::{BytesCodec, Codecs};
use hyperslab_layout::stored::Keys;
use hyperslab_layout::{Dim, Distribution, ElementType, Holes, Kind, Policies, Section};
use hyperslab_plan::{
    Direction, Exchange, Infeasible, Machine, Parameters, Planner, Preference, Spread, Stored, Strategy, Transfer,
    TransferArray, profile,
};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind};
use std::sync::Arc;

const ELEMENT: ElementType = ElementType::native(Kind::Float64);
const RANKS: u32 = 4;

fn file() -> Stored {
    Stored::in_file(&[1000], ELEMENT, "data", 0)
}

fn chunks(extent: u64, codecs: &Codecs) -> Stored {
    Stored::in_chunks(&[1000], ELEMENT, &[extent], Keys::nested("rho/"), codecs.coding())
}

/// 1000 elements over 4 ranks.
fn transfer(direction: Direction, stored: Stored, spread: Spread) -> Arc<Transfer> {
    let section = Section::whole(&[1000]);
    let ask = TransferArray { name: "rho".into(), section, spread, memory: ELEMENT, stored };
    Arc::new(Transfer { direction, asks: vec![ask], ranks: RANKS, policies: Policies::default() })
}

fn spread(dim: Dim) -> Spread {
    Spread::Regular(Distribution::new(&[1000], &[u64::from(RANKS)], &[dim]).unwrap())
}

/// Lets rank 0 refuse, and says what every rank is told.
fn refused(transfer: &Arc<Transfer>, parameters: &Parameters) -> String {
    let refused = parameters.strategy.feasible(transfer, parameters);
    let Infeasible { reason, hint } = refused.expect_err("it cannot be done");
    assert!(!hint.is_empty(), "{reason}: no hint");
    let fault = Fault::new(FaultKind::Invalid, reason).hint(hint);
    let question = Question { what: "write of 'rho'".into(), opens: true, ..Question::default() };
    let mut ranks = Ranks::in_memory(RANKS, 1, &Default::default());
    for told in ranks.agree(vec![question; RANKS as usize], &Err(fault.clone())) {
        assert_eq!(told, Err(fault.clone()));
    }
    fault.text()
}

const SERVING: [Strategy; 3] = [Strategy::TWO_PHASE, Strategy::SERVER_DIRECTED, Strategy::DISK_DIRECTED];

#[test]
fn servers_that_cannot_be() {
    let expected: [(Vec<u32>, &str); 4] = [
        (vec![], "there is no server"),
        (vec![1, 3, 1], "rank 1 is named as a server twice"),
        (vec![0, 4], "rank 4 shall be a server, but there are only 4 ranks"),
        (vec![u32::MAX], "rank 4294967295 shall be a server, but there are only 4 ranks"),
    ];
    for direction in [Direction::Write, Direction::Read] {
        for exchange in [Exchange::All, Exchange::Sharers] {
            for (servers, text) in &expected {
                for strategy in SERVING {
                    let transfer = transfer(direction, file(), spread(Dim::Block));
                    let parameters =
                        Parameters { strategy, servers: servers.clone().into(), exchange, ..Parameters::default() };
                    assert_eq!(refused(&transfer, &parameters), *text, "{strategy}");
                }
                // Servers also check what ranks say of pieces of their own.
                for strategy in Strategy::ALL.into_iter().filter(|&s| s != Strategy::ROOT_GATHER) {
                    let transfer = transfer(direction, file(), Spread::Explicit);
                    let (servers, exchange) = (servers.clone(), Exchange::All);
                    let parameters =
                        Parameters { strategy, servers: servers.into(), exchange, ..Parameters::default() };
                    assert_eq!(refused(&transfer, &parameters), *text, "{strategy}");
                }
            }
        }
    }
}

#[test]
fn subchunks_beyond_the_buffers() {
    for spread in [spread(Dim::Cyclic(1)), Spread::Explicit] {
        let parameters = Parameters { subchunk_bytes: 4096, buffer_bytes_max: 5000, slots: 2, ..Parameters::default() };
        for strategy in Strategy::ALL {
            let transfer = transfer(Direction::Write, file(), spread.clone());
            let parameters = Parameters { strategy, ..parameters.clone() };
            let own_pieces = strategy == Strategy::INDEPENDENT && spread != Spread::Explicit;
            if strategy == Strategy::ROOT_GATHER || own_pieces {
                // It has one buffer only, or its buffers hold a quarter of the array.
                assert_eq!(strategy.feasible(&transfer, &parameters), Ok(()));
                continue;
            }
            let text = refused(&transfer, &parameters);
            assert!(text.contains(" need 8192 B, but the buffers of a rank may have 5000 B"), "{strategy}: {text}");
        }
    }
}

#[test]
fn chunks_beyond_the_buffers() {
    let zstd = BytesCodec::Zstd { level: 1, checksum: false };
    let codecs = Codecs { chain: vec![zstd], ..Codecs::plain(true) };
    let coding = 2 * codecs.max_encoded_bytes(8000);
    for strategy in Strategy::ALL {
        let slots = if strategy == Strategy::ROOT_GATHER { 1 } else { 3 };
        let need = slots * (8000 + coding);
        let transfer = transfer(Direction::Read, chunks(1000, &codecs), spread(Dim::Block));
        let mut parameters = Parameters { strategy, slots: 3, buffer_bytes_max: need - 1, ..Parameters::default() };
        parameters.subchunk_bytes = 1;
        let text = refused(&transfer, &parameters);
        let figures = format!(" need {need} B, but the buffers of a rank may have {} B", need - 1);
        assert!(text.contains(&figures), "{strategy}: {text}");
        parameters.buffer_bytes_max += 1;
        assert_eq!(strategy.feasible(&transfer, &parameters), Ok(()), "{strategy}");
    }
}

#[test]
fn sharers_of_what_nobody_knows() {
    let transfer = transfer(Direction::Write, file(), Spread::Explicit);
    let parameters = Parameters { strategy: Strategy::TWO_PHASE, exchange: Exchange::Sharers, ..Parameters::default() };
    let text = refused(&transfer, &parameters);
    let expected =
        "the ranks that share an extent of 'rho' are not known beforehand, because each has pieces of its own";
    assert_eq!(text, expected);
}

#[test]
fn holes_of_what_is_written_whole() {
    for strategy in Strategy::ALL {
        let kept = |direction, stored| {
            let mut transfer = Transfer::clone(&transfer(direction, stored, spread(Dim::Block)));
            transfer.policies.holes = Holes::Kept;
            strategy.feasible(&Arc::new(transfer), &Parameters { strategy, ..Parameters::default() })
        };
        let chunked = || chunks(125, &Codecs::plain(true));
        let refused = kept(Direction::Write, chunked()).unwrap_err();
        assert_eq!(refused.reason, "holes are to be left alone, but a chunk of 'rho' is written whole");
        assert_eq!((kept(Direction::Read, chunked()), kept(Direction::Write, file())), (Ok(()), Ok(())));
    }
}

#[test]
fn writers_that_would_share_a_chunk() {
    for strategy in [Strategy::INDEPENDENT, Strategy::DATA_SIEVING] {
        let parameters = Parameters { strategy, ..Parameters::default() };
        let blocks = transfer(Direction::Write, chunks(100, &Codecs::plain(true)), spread(Dim::Block));
        let text = refused(&blocks, &parameters);
        let expected = format!(
            "two ranks hold parts of one chunk of array 'rho' (at index 250 of dimension 0; chunks (100,), distribution (1000,) as (BLOCK) over mesh (4,)), and {strategy} writers cannot share a chunk"
        );
        assert_eq!(text, expected);
        let own = transfer(Direction::Write, chunks(100, &Codecs::plain(true)), Spread::Explicit);
        let text = refused(&own, &parameters);
        assert!(text.starts_with("'rho' is written in pieces of each rank's own"), "{text}");
        // Nothing is wrong with reading so, or with chunks that lie between the edges of blocks.
        for (direction, extent) in [(Direction::Read, 100), (Direction::Write, 125)] {
            let transfer = transfer(direction, chunks(extent, &Codecs::plain(true)), spread(Dim::Block));
            assert_eq!(strategy.feasible(&transfer, &parameters), Ok(()));
        }
    }
}

#[test]
fn orders_that_are_none() {
    // 1000 elements in subchunks of 100: groups 0 to 9.
    let transfer = transfer(Direction::Read, file(), spread(Dim::Block));
    let parameters = Parameters { strategy: Strategy::DISK_DIRECTED, subchunk_bytes: 800, ..Parameters::default() };
    for (order, text) in [
        (vec![(0, 4), (5, 5)], "group 4"),
        (vec![(3, 7), (0, 4)], "group 3"),
        (vec![(1, 9)], "group 0"),
        (vec![(0, 5), (0, 5)], "group 0"),
        (vec![(0, 1), (1, u64::MAX)], "group 1"),
    ] {
        let parameters = Parameters { order: order.clone(), ..parameters.clone() };
        let told = refused(&transfer, &parameters);
        assert!(told.contains(text), "{order:?}: {told}");
        // Who ignores the order does not mind.
        let parameters = Parameters { strategy: Strategy::SERVER_DIRECTED, ..parameters };
        assert_eq!(parameters.strategy.feasible(&transfer, &parameters), Ok(()));
    }
    // Groups at the end may be left out.
    for order in [vec![(4, 2), (0, 4)], vec![(5, 5), (0, 5)], Vec::new()] {
        let parameters = Parameters { order, ..parameters.clone() };
        assert_eq!(parameters.strategy.feasible(&transfer, &parameters), Ok(()));
    }
}

#[test]
fn a_wish_that_cannot_be_granted_is_refused_with_the_reason() {
    let (profile, machine) =
        (profile::built_in(), Machine { ranks_per_node: RANKS, cores_per_node: 2, maps_files: false });
    let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
    for strategy in Strategy::ALL {
        let hints = Preference {
            strategy: Some(strategy),
            subchunk_bytes: Some(1 << 20),
            buffer_bytes_max: Some(1000),
            ..Preference::default()
        };
        let transfer = transfer(Direction::Write, file(), spread(Dim::Cyclic(1)));
        let refused =
            planner.choose(&transfer, &hints, &|_| None).expect_err("8000 B do not fit into 1000 B").to_string();
        let slots = if strategy == Strategy::ROOT_GATHER { 1 } else { u64::from(strategy.spec().slots) };
        // Who handles his own holds a quarter.
        let need = slots * if strategy == Strategy::INDEPENDENT { 2000 } else { 8000 };
        let figures = format!(" need {need} B, but the buffers of a rank may have 1000 B\n  hint: ");
        assert!(refused.contains(&figures), "{strategy}: {refused}");
    }
}
