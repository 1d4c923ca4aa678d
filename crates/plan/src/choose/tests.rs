//! Checks of the planner.

use super::margins::{MARGIN, PAST_CACHE_MARGIN};
use super::*;
use crate::price::{Machine, MemoryLayout};
use crate::profile::{Profile, built_in};
use crate::strategy::{Infeasible, Parameters, Role, Strategy};
use crate::transfer::Transfer;
use crate::transfer::{Direction, Exchange, Spread, TransferArray};
use hyperslab_layout::stored::{Coding, Keys, Objects, Stored};
use hyperslab_layout::{Codec, CodecError, Dim, Distribution, Durability, ElementType, Kind, Policies, Section};
use std::sync::Arc;

fn transfer(shape: &[u64], mesh: &[u64], dims: &[Dim], chunk: Option<&[u64]>, direction: Direction) -> Arc<Transfer> {
    let element = ElementType::native(Kind::Float64);
    let stored = match chunk {
        None => Stored::in_file(shape, element, "a", 0),
        Some(chunk) => Stored::in_chunks(shape, element, chunk, Keys::nested("a/"), Coding::Trailer),
    };
    let distribution = Distribution::new(shape, mesh, dims).unwrap();
    let ranks = distribution.ranks() as u32;
    let (section, spread) = (Section::whole(shape), Spread::Regular(distribution));
    let ask = TransferArray { name: "a".into(), section, spread, memory: element, stored };
    Arc::new(Transfer { direction, asks: vec![ask], ranks, policies: Policies::default() })
}

fn choose(transfer: &Arc<Transfer>, hints: &Preference) -> Result<Choice, Infeasible> {
    choose_where(transfer, hints, false)
}

/// The same where reads may copy out of mappings.
fn choose_where(transfer: &Arc<Transfer>, hints: &Preference, maps_files: bool) -> Result<Choice, Infeasible> {
    let profile = built_in();
    let machine = Machine { ranks_per_node: transfer.ranks, cores_per_node: 2, maps_files };
    Planner { profile: &profile, machine, strategies: &Strategy::ALL }.choose(transfer, hints, &|_| None)
}

const BLOCKS: [Dim; 3] = [const { Dim::Block }; 3];

#[test]
fn what_is_known_to_be_best_on_one_node_is_chosen() {
    let cube = [512, 512, 256];
    let strategy = |mesh: &[u64], dims: &[Dim], chunk: Option<&[u64]>, direction| {
        choose(&transfer(&cube, mesh, dims, chunk, direction), &Preference::default()).unwrap().parameters.strategy
    };
    // Long runs, and chunks of a rank's own, need nobody else.
    assert_eq!(strategy(&[2, 1, 1], &BLOCKS, None, Direction::Write), Strategy::INDEPENDENT);
    assert_eq!(strategy(&[2, 2, 2], &BLOCKS, Some(&[256, 256, 128]), Direction::Write), Strategy::INDEPENDENT);
    // Runs of 1 KiB of a file that lets one writer in are assembled by few.
    let assembled = |strategy| [Strategy::SERVER_DIRECTED, Strategy::TWO_PHASE].contains(&strategy);
    assert!(assembled(strategy(&[2, 2, 2], &BLOCKS, None, Direction::Write)));
    assert!(assembled(strategy(&[4], &[Dim::Whole, Dim::Whole, Dim::Cyclic(1)], None, Direction::Write)));
    // Chunks that ranks share have one owner each.
    assert!(assembled(strategy(&[2, 2, 2], &BLOCKS, Some(&[200, 200, 100]), Direction::Write)));
}

#[test]
fn what_the_cache_holds_of_files_on_this_host_is_read_straight_into_arrays() {
    let asked = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Read);
    let mapped = choose_where(&asked, &Preference::default(), true).unwrap();
    assert_eq!((mapped.parameters.strategy, mapped.parameters.direct_run_bytes), (Strategy::INDEPENDENT, 1));
    let called = choose(&asked, &Preference::default()).unwrap();
    assert!(called.parameters.direct_run_bytes > 1 && called.price.whole_ns() > 1.2 * mapped.price.whole_ns());
    // Few elements of each page are better read by calls.
    let sparse =
        transfer(&[512, 512, 4096], &[1, 1, 2], &[Dim::Whole, Dim::Whole, Dim::Cyclic(1)], None, Direction::Read);
    let mut ask = sparse.asks[0].clone();
    ask.section.dims[2] = ask.section.dims[2].every(2048);
    let sparse = Arc::new(Transfer { asks: vec![ask], ..Transfer::clone(&sparse) });
    let price = |maps_files| choose_where(&sparse, &Preference::default(), maps_files).unwrap().price.whole_ns();
    assert!(price(true) >= 0.99 * price(false));
}

/// The elements of a rank lie one by one between those of others: whoever wrote them for himself would call for each.
#[test]
fn elements_that_are_listed_in_no_order_are_assembled() {
    let profile = built_in();
    for (ranks, elements) in [(2, 100_000), (4, 1_000_000), (16, 1_000_000)] {
        let machine = Machine { ranks_per_node: ranks, cores_per_node: 2, maps_files: false };
        let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
        let asked = transfer(&[elements], &[u64::from(ranks)], &[Dim::Block], None, Direction::Write);
        let ask = TransferArray { spread: Spread::Explicit, ..asked.asks[0].clone() };
        let asked = Arc::new(Transfer { asks: vec![ask], ..Transfer::clone(&asked) });
        let laid = |run: u64| MemoryLayout::of_runs(elements, elements / run, (8, 8));
        let chosen = |run| planner.choose(&asked, &Preference::default(), &|_| Some(laid(run))).unwrap().parameters;
        assert!([Strategy::SERVER_DIRECTED, Strategy::TWO_PHASE].contains(&chosen(1).strategy), "{ranks} ranks");
        assert!([Strategy::SERVER_DIRECTED, Strategy::TWO_PHASE].contains(&chosen(4).strategy), "{ranks} ranks");
    }
}

#[test]
fn who_waits_for_nothing_has_one_large_slot_in_place_of_two() {
    // In memory the first dimension is the fastest, so that the more rows a subchunk has, the longer are the runs there.
    let asked = transfer(&[512, 512, 512], &[2, 2, 2], &BLOCKS, None, Direction::Read);
    let turned =
        MemoryLayout { order: vec![2, 1, 0], pitch: 8, padding: vec![0; 3], held: vec![256; 3], scattered: false };
    let profile = built_in();
    let machine = Machine { ranks_per_node: 8, cores_per_node: 2, maps_files: true };
    let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
    let bytes = 5 << 20;
    let node_budget = Some(NodeBudget { bytes: 8 * bytes, least_bytes: bytes });
    let hints = Preference { node_budget, ..Preference::default() };
    let Parameters { strategy, slots, subchunk_bytes, .. } =
        planner.choose(&asked, &hints, &|_| Some(turned.clone())).unwrap().parameters;
    assert_eq!((strategy, slots), (Strategy::INDEPENDENT, 1));
    assert!(subchunk_bytes > bytes / 2 && subchunk_bytes < 4 * bytes, "{subchunk_bytes}");
}

#[test]
fn writers_that_share_a_lock_copy_before_they_have_it() {
    let cube = [512, 512, 256];
    let parameters = |mesh: u64, chunk: Option<&[u64]>, direction| {
        let asked = transfer(&cube, &[mesh, 1, 1], &BLOCKS, chunk, direction);
        choose(&asked, &Preference::default()).unwrap().parameters
    };
    // By way of a buffer: no run is as long as those that go without.
    let shared = parameters(2, None, Direction::Write);
    assert_eq!((shared.strategy, shared.subchunk_bytes), (Strategy::INDEPENDENT, 512 << 10));
    assert!(shared.direct_run_bytes > shared.subchunk_bytes);
    // Who has a file alone, files of his own, or only reads, waits for nobody and needs no copy.
    for (mesh, chunk, direction) in
        [(1, None, Direction::Write), (2, Some(&[256, 512, 256][..]), Direction::Write), (2, None, Direction::Read)]
    {
        let alone = parameters(mesh, chunk, direction);
        assert!(alone.direct_run_bytes < alone.subchunk_bytes, "{alone:?}");
    }
}

#[test]
fn candidates_are_sorted_and_hold_the_chosen_one() {
    let asked = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let choice = choose(&asked, &Preference::default()).unwrap();
    assert!(choice.candidates.len() > 8, "{}", choice.candidates.len());
    assert!(choice.candidates.is_sorted_by(|a, b| a.price.compared_ns() <= b.price.compared_ns()));
    let chosen = choice.candidates.iter().find(|one| one.parameters == choice.parameters).unwrap();
    assert_eq!(chosen.price, choice.price);
    assert!(choice.price.compared_ns() <= choice.candidates[0].price.compared_ns() * (1.0 + MARGIN));
    // The same question gets the same answer.
    assert_eq!(choose(&asked, &Preference::default()).unwrap(), choice);
}

#[test]
fn what_comes_again_may_have_more_buffers() {
    let mut changed = 0;
    for rows in [500, 1000, 2000, 4000, 8000] {
        let asked = transfer(&[rows, 92, 29], &[1, 1, 4], &BLOCKS, None, Direction::Read);
        let first = choose(&asked, &Preference::default()).unwrap();
        let Some(again) = first.again(&asked) else { continue };
        assert!(again.price.moving_ns() < first.price.moving_ns() && again.price.first_ns > first.price.first_ns);
        assert!(again.candidates.iter().any(|one| one.parameters == again.parameters && one.price == again.price));
        assert_eq!(again.again(&asked), None, "it stays");
        changed += 1;
    }
    assert!(changed > 0);
}

#[test]
fn what_comes_again_is_looked_at_for_longer() {
    let profile = built_in();
    let planner = Planner {
        profile: &profile,
        machine: Machine { ranks_per_node: 8, cores_per_node: 2, maps_files: false },
        strategies: &Strategy::ALL,
    };
    let mut better = 0;
    for (shape, chunk) in [([374, 374, 374], None), ([96, 200, 200], Some(&[24, 50, 200][..])), ([999, 100, 90], None)]
    {
        for dims in [BLOCKS, [Dim::Cyclic(3), Dim::Block, Dim::Cyclic(1)]] {
            let asked = transfer(&shape, &[2, 2, 2], &dims, chunk, Direction::Read);
            let column_major = MemoryLayout {
                order: vec![2, 1, 0],
                pitch: 8,
                padding: vec![0; 3],
                held: vec![50; 3],
                scattered: false,
            };
            let (hints, memory) = (Preference::default(), |_: usize| Some(column_major.clone()));
            let first = planner.choose(&asked, &hints, &memory).unwrap();
            let took = first.price.seconds();
            assert!(!first.is_worth_more(1e-3), "looking on takes longer than that");
            assert_eq!(first.is_worth_more(1e3 * took), first.unfinished);
            let looked = planner.look_on(&asked, &hints, &memory, &first, 1e3 * took);
            assert!(!looked.is_worth_more(f64::INFINITY), "it has an end");
            assert!(first.candidates.iter().all(|one| looked.candidates.contains(one)), "nothing is looked at twice");
            let costs =
                |choice: &Choice| choice.candidates.iter().map(|one| one.price.whole_ns()).min_by(f64::total_cmp);
            better += i32::from(costs(&looked) < costs(&first).map(|least| least * (1.0 - MARGIN)));
            let taken = looked.again(&asked).unwrap_or(looked);
            assert!(taken.price.whole_ns() <= first.price.whole_ns());
        }
    }
    assert!(better > 0, "a first look finds all there is");
}

/// One of eight arrays that are alike is looked at, and all have to fit.
#[test]
fn buffers_fit_for_all_arrays_and_not_for_the_one_that_is_looked_at() {
    let one =
        transfer(&[64, 64, 64], &[2, 2, 2], &[const { Dim::Cyclic(1) }; 3], Some(&[64, 64, 64]), Direction::Write);
    let named = |number: u64| TransferArray { name: format!("a{number}"), ..one.asks[0].clone() };
    let asked = Arc::new(Transfer { asks: (0..8).map(named).collect(), ..Transfer::clone(&one) });
    for strategy in [Strategy::SERVER_DIRECTED, Strategy::TWO_PHASE] {
        for (budget, slots) in [(3 << 20, 1), (5 << 20, 2)] {
            let hints = Preference { strategy: Some(strategy), servers: Some(2), ..Preference::default() };
            let choice = choose(&asked, &Preference { buffer_bytes_max: Some(budget), ..hints }).unwrap();
            assert_eq!(choice.parameters.slots, slots, "{strategy}: {}", choice.why);
        }
    }
}

#[test]
fn who_handles_storage_shares_the_memory_of_a_node() {
    let asked = transfer(&[512, 512, 64], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let node_budget = Some(NodeBudget { bytes: 64 << 20, least_bytes: 10 << 20 });
    let budgets = |hints: &Preference| {
        let all = choose(&asked, hints).unwrap().candidates.into_iter();
        all.map(|one| {
            assert!(one.price.buffer_bytes <= one.parameters.buffer_bytes_max, "{one:?}");
            let handling = match one.parameters.role() {
                Role::Root => 1,
                Role::Own | Role::Holders => 8,
                Role::Servers => one.parameters.servers.len(),
            };
            (handling, one.parameters.buffer_bytes_max >> 20)
        })
    };
    let hints = Preference { node_budget, exchange: Some(Exchange::All), ..Preference::default() };
    let found: std::collections::BTreeSet<_> = budgets(&hints).collect();
    assert!(found.contains(&(2, 32)) && found.contains(&(8, 10)), "{found:?}");
    assert!(found.iter().all(|&(servers, bytes)| bytes == (64 / servers as u64).max(10)), "{found:?}");
    // What the user says holds for each rank.
    let given = Preference { buffer_bytes_max: Some(16 << 20), ..hints };
    assert!(budgets(&given).all(|(_, bytes)| bytes == 16));
}

#[test]
fn what_comes_again_is_done_as_before_where_new_memory_costs_nothing() {
    let profile = Profile { measured: None, ..built_in() };
    let machine = Machine { ranks_per_node: 8, cores_per_node: 2, maps_files: false };
    for direction in [Direction::Write, Direction::Read] {
        for (mesh, chunk) in [([2, 2, 2], None), ([8, 1, 1], None), ([2, 2, 2], Some(&[200, 200, 100][..]))] {
            let asked = transfer(&[512, 512, 256], &mesh, &BLOCKS, chunk, direction);
            let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
            let choice = planner.choose(&asked, &Preference::default(), &|_| None).unwrap();
            assert_eq!(choice.again(&asked), None, "{}", choice.why);
        }
    }
}

#[test]
fn what_the_user_forces_is_kept_and_the_rest_is_chosen() {
    let asked = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let hints = Preference {
        strategy: Some(Strategy::TWO_PHASE),
        subchunk_bytes: Some(1 << 20),
        server_ranks: Some(vec![1, 5]),
        ..Preference::default()
    };
    let choice = choose(&asked, &hints).unwrap();
    for one in &choice.candidates {
        let Parameters { strategy, servers, subchunk_bytes, .. } = &one.parameters;
        assert_eq!((*strategy, &servers[..], *subchunk_bytes), (Strategy::TWO_PHASE, &[1, 5][..], 1 << 20));
    }
}

#[test]
fn every_choice_is_within_the_budget() {
    for budget in [1 << 12, 1 << 16, 1 << 20, 1 << 26] {
        let asked = transfer(&[64, 64, 64], &[2, 2, 2], &BLOCKS, None, Direction::Write);
        let hints = Preference { buffer_bytes_max: Some(budget), ..Preference::default() };
        let choice = choose(&asked, &hints).unwrap();
        for one in &choice.candidates {
            assert!(one.price.buffer_bytes <= budget, "{budget}: {one:?}");
        }
    }
    let chunked = transfer(&[64, 64, 64], &[2, 2, 2], &BLOCKS, Some(&[48, 48, 48]), Direction::Write);
    let hints = Preference { buffer_bytes_max: Some(1 << 10), ..Preference::default() };
    let refused = choose(&chunked, &hints).unwrap_err().to_string();
    assert!(refused.contains("may have 1024 B") && refused.contains("hint: "), "{refused}");
}

/// What is chosen on a machine with direct I/O at these rates, if it has any \[B/s\].
fn past_cache(rates: (Option<f64>, Option<f64>), transfer: &Arc<Transfer>, hints: &Preference) -> Choice {
    let mut profile = built_in();
    let files = &mut profile.measured.as_mut().unwrap().files;
    (files.direct_write_rate, files.direct_read_rate) = rates;
    let machine = Machine { ranks_per_node: transfer.ranks, cores_per_node: 2, maps_files: false };
    Planner { profile: &profile, machine, strategies: &Strategy::ALL }.choose(transfer, hints, &|_| None).unwrap()
}

/// How many of the candidates follow the disk.
fn following_disk(choice: &Choice) -> usize {
    choice.candidates.iter().filter(|one| one.parameters.strategy == Strategy::DISK_DIRECTED).count()
}

const FAST: (Option<f64>, Option<f64>) = (Some(4e9), Some(1e9));
const SLOW: (Option<f64>, Option<f64>) = (Some(0.3e9), Some(0.3e9));
const NONE: (Option<f64>, Option<f64>) = (None, None);

#[test]
fn what_goes_past_the_cache_faster_than_it_is_made_durable_does_so() {
    let cached = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let durable = Arc::new(Transfer { policies: Policies::of(Durability::Now), ..(*cached).clone() });
    let later = Arc::new(Transfer { policies: Policies::of(Durability::Soon), ..(*cached).clone() });
    for asked in [&durable, &later] {
        let hints = Preference::default();
        let fast = past_cache(FAST, asked, &hints);
        assert_eq!(fast.parameters.strategy, Strategy::DISK_DIRECTED, "{}", fast.why);
        assert_ne!(past_cache(SLOW, asked, &hints).parameters.strategy, Strategy::DISK_DIRECTED);
        // Who wants some servers gets them, with direct I/O or without.
        let hints = Preference { servers: Some(3), ..hints };
        let served = past_cache(FAST, asked, &hints).parameters;
        assert_eq!((served.strategy, served.servers.len()), (Strategy::DISK_DIRECTED, 3));
    }
    // It has to be clearly faster.
    let mut near = 0;
    for tenths in 5..40 {
        let choice = past_cache((Some(f64::from(tenths) * 1e8), None), &durable, &Preference::default());
        let disk = |one: &&Candidate| one.parameters.strategy == Strategy::DISK_DIRECTED;
        let Some(best) = choice.candidates.iter().find(disk) else { continue };
        let through = choice.candidates.iter().find(|one| !disk(one)).unwrap();
        let times = through.moving_ns() / best.moving_ns();
        let taken = choice.parameters.strategy == Strategy::DISK_DIRECTED;
        assert_eq!(taken, times > 1.0 + PAST_CACHE_MARGIN, "{tenths}: {times}, {}", choice.why);
        let told = choice.why.contains("past the system's cache must be cheaper");
        assert!(if taken { !told } else { told || times < 1.1 }, "{tenths}: {times}, {}", choice.why);
        near += u32::from(times > 1.0 && !taken);
    }
    assert!(near > 0);
    // What nobody makes durable is copied into the cache, and that is that.
    let copied = past_cache((Some(2e9), None), &cached, &Preference::default());
    assert_ne!(copied.parameters.strategy, Strategy::DISK_DIRECTED, "{}", copied.why);
    // What is read lies in the cache.
    let read = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Read);
    assert_ne!(past_cache(FAST, &read, &Preference::default()).parameters.strategy, Strategy::DISK_DIRECTED);
}

#[test]
fn nothing_goes_past_a_cache_unless_somebody_measured_that_it_can() {
    let cached = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let durable = Arc::new(Transfer { policies: Policies::of(Durability::Now), ..(*cached).clone() });
    assert!(following_disk(&past_cache(FAST, &durable, &Preference::default())) > 0);
    assert_eq!(following_disk(&past_cache(NONE, &durable, &Preference::default())), 0);
    let in_memory = Preference { cached: true, ..Preference::default() };
    assert_eq!(following_disk(&past_cache(FAST, &durable, &in_memory)), 0);
    // Reads have a rate of their own.
    let read = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Read);
    assert_eq!(following_disk(&past_cache((Some(4e9), None), &read, &Preference::default())), 0);
    // By name it can be had, and costs what it does: it goes through the cache, and to the disk at the end.
    let named = |strategy| Preference { strategy: Some(strategy), servers: Some(2), ..Preference::default() };
    let forced = past_cache(NONE, &durable, &named(Strategy::DISK_DIRECTED));
    let through = past_cache(NONE, &durable, &named(Strategy::SERVER_DIRECTED));
    let sync = |choice: &Choice| choice.price.phase(crate::Phase::Sync);
    assert_eq!(forced.parameters.strategy, Strategy::DISK_DIRECTED);
    assert!(sync(&forced) > sync(&through), "{forced:?}");
    let rate = built_in().measured.unwrap().files.sync_rate;
    let bytes_ns = durable.stored_bytes() as f64 * 1e9 / rate;
    assert!(sync(&forced) > bytes_ns, "{} ns, but the bytes alone take {bytes_ns}", sync(&forced));
}

/// Doubles each byte.
#[derive(Debug)]
struct Twice;

impl Codec for Twice {
    fn encode(&self, plain: &[u8], _object: &str) -> Result<Vec<u8>, CodecError> {
        Ok(plain.iter().flat_map(|&byte| [byte; 2]).collect())
    }

    fn decode(&self, stored: &[u8], _plain_bytes: u64, _object: &str) -> Result<Vec<u8>, CodecError> {
        Ok(stored.iter().copied().step_by(2).collect())
    }

    fn encoded_bytes_max(&self, plain_bytes: u64) -> u64 {
        2 * plain_bytes
    }

    fn compresses(&self) -> bool {
        false
    }

    fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }

    fn index(&self) -> Option<&dyn hyperslab_layout::ShardIndex> {
        None
    }

    fn numbering(&self) -> Option<&hyperslab_layout::Numbering> {
        None
    }
}

#[test]
fn chunks_go_through_the_cache_where_files_are_real_or_something_is_coded() {
    let chunk: Option<&[u64]> = Some(&[128, 128, 128]);
    let plain = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, chunk, Direction::Write);
    let mut coded = (*plain).clone();
    coded.asks[0].stored.coding = Coding::Encoded(Arc::new(Twice));
    let coded = Arc::new(coded);
    assert_eq!(following_disk(&past_cache(FAST, &plain, &Preference::default())), 0);
    let mut imagined = built_in();
    imagined.measured = None;
    let machine = Machine { ranks_per_node: 8, cores_per_node: 2, maps_files: false };
    let planner = Planner { profile: &imagined, machine, strategies: &Strategy::ALL };
    let on = |transfer| following_disk(&planner.choose(transfer, &Preference::default(), &|_| None).unwrap());
    assert!(on(&plain) > 0);
    assert_eq!(on(&coded), 0);
}

#[test]
fn what_does_not_begin_between_pages_is_slower_past_the_cache() {
    let asked = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let hints = Preference { strategy: Some(Strategy::DISK_DIRECTED), servers: Some(1), ..Preference::default() };
    let with_header = |bytes| {
        let mut behind = (*asked).clone();
        behind.asks[0].stored.objects = Objects::One { name: "a".into(), offset: bytes };
        past_cache((Some(0.5e9), None), &Arc::new(behind), &hints).price.moving_ns()
    };
    let none = with_header(0);
    assert!((with_header(4096) / none - 1.0).abs() < 1e-6);
    assert!(with_header(128) > 1.8 * none);
}

#[test]
fn servers_with_disks_move_what_lies_on_their_own() {
    let mut starfish = built_in();
    starfish.measured = None;
    starfish.storage.servers.layout = crate::profile::Layout::Ranks { unit_bytes: 8 << 10 };
    starfish.storage.disk = crate::profile::Disk::Hp97560;
    let machine = Machine { ranks_per_node: 1, cores_per_node: 1, maps_files: false };
    let asked = transfer(&[64, 64, 64], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let hints = Preference { servers: Some(4), ..Preference::default() };
    let choice =
        Planner { profile: &starfish, machine, strategies: &Strategy::ALL }.choose(&asked, &hints, &|_| None).unwrap();
    let Parameters { strategy, subchunk_bytes, .. } = choice.parameters;
    assert_eq!((strategy, subchunk_bytes), (Strategy::DISK_DIRECTED, 8 << 10), "{}", choice.why);
}

#[test]
fn asking_where_files_lie_costs_something() {
    let asked = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let open = |strategy, subchunk| {
        let hints = Preference { strategy: Some(strategy), subchunk_bytes: Some(subchunk), ..Preference::default() };
        past_cache(FAST, &asked, &hints).price.phase(crate::Phase::Open)
    };
    let (coarse, fine) = (open(Strategy::DISK_DIRECTED, 8 << 20), open(Strategy::DISK_DIRECTED, 1 << 20));
    assert!(open(Strategy::SERVER_DIRECTED, 1 << 20) < coarse && coarse < fine);
}

#[test]
fn nodes_that_are_not_full_have_their_own_servers() {
    let asked = transfer(&[512, 512, 256], &[12, 1, 1], &BLOCKS, None, Direction::Write);
    let machine = Machine { ranks_per_node: 8, cores_per_node: 8, maps_files: false };
    let some = |wanted| servers::some(&asked, machine, wanted);
    let of = |ranks: &[u32]| Arc::<[u32]>::from(ranks);
    // At equal distances, both of two servers would be on the first node.
    assert_eq!(some(Some(2)), [of(&[0, 8])]);
    assert_eq!(some(Some(4)), [of(&[0, 4, 8, 10])]);
    assert_eq!(some(Some(3)), [] as [Arc<[u32]>; 0]);
    assert!(some(None).contains(&of(&[0, 6])) && some(None).contains(&of(&[0, 8])));
    // Full nodes have theirs at equal distances, which are tried once.
    let full = transfer(&[512, 512, 256], &[16, 1, 1], &BLOCKS, None, Direction::Write);
    let all = servers::some(&full, machine, None);
    let mut known = all.clone();
    known.sort();
    known.dedup();
    assert_eq!(known.len(), all.len(), "{all:?}");
}

#[test]
fn ranks_that_hold_what_they_serve_are_tried() {
    // A file whose columns are contiguous: the domain of a server is a column of the mesh.
    let mut columns = (*transfer(&[1024, 1024], &[4, 4], &BLOCKS[..2], None, Direction::Write)).clone();
    columns.asks[0].stored.strides.order = vec![1, 0];
    let columns = Arc::new(columns);
    let servers = servers::spread(4, 16);
    let parameters =
        Parameters { strategy: Strategy::TWO_PHASE, servers, subchunk_bytes: 1 << 20, ..Default::default() };
    assert_eq!(servers::holding(&columns, &parameters).as_deref(), Some(&[0, 1, 2, 3][..]));
    // In rows they are where they should be.
    let rows = transfer(&[1024, 1024], &[4, 4], &BLOCKS[..2], None, Direction::Write);
    assert_eq!(servers::holding(&rows, &parameters), None);
    let pieces = Arc::new(Transfer {
        asks: vec![TransferArray { spread: Spread::Explicit, ..columns.asks[0].clone() }],
        ..(*columns).clone()
    });
    assert_eq!(servers::holding(&pieces, &parameters), None);
    // Where all data cross a slow network, it is worth it, and the choice is the same each time.
    let mut profile = built_in();
    profile.measured = None;
    profile.network.link_rate = 50e6;
    let machine = Machine { ranks_per_node: 1, cores_per_node: 1, maps_files: false };
    let hints = Preference { strategy: Some(Strategy::TWO_PHASE), servers: Some(4), ..Preference::default() };
    let choose = || {
        Planner { profile: &profile, machine, strategies: &Strategy::ALL }.choose(&columns, &hints, &|_| None).unwrap()
    };
    assert_eq!(choose().parameters.servers[..], [0, 1, 2, 3], "{:?}", choose().candidates);
    assert_eq!(choose(), choose());
}

/// The chunks that are taken for arrays so held, where ranks write so many of them in one call, durable.
fn shaped(arrays: usize, (shape, mesh, dims): (&[u64], &[u64], &[Dim]), hints: &Preference) -> Taken {
    let profile = built_in();
    let distribution = Distribution::new(shape, mesh, dims).unwrap();
    let machine = Machine { ranks_per_node: distribution.ranks() as u32, cores_per_node: 2, maps_files: false };
    let first = hyperslab_layout::natural_chunks(&distribution, 8, 32 << 20);
    let ladders = hyperslab_layout::near_shapes(shape, &first, 8, (1 << 20, 32 << 20));
    let uses = |chunk: &[u64]| {
        let one = transfer(shape, mesh, dims, Some(chunk), Direction::Write);
        let asks = vec![one.asks[0].clone(); arrays];
        vec![Use {
            transfer: Arc::new(Transfer { asks, policies: Policies::of(Durability::Now), ..(*one).clone() }),
            times: 1.0,
            hints: hints.clone(),
            laid: vec![],
        }]
    };
    Planner { profile: &profile, machine, strategies: &Strategy::ALL }.cheapest_layout(&first, &ladders, uses)
}

#[test]
fn small_arrays_are_few_chunks_and_large_ones_those_of_ranks() {
    let small: (&[u64], &[u64], &[Dim]) = (&[32, 16, 16], &[2, 2, 2], &BLOCKS);
    let joined = shaped(8, small, &Preference::default());
    assert!(joined.chunk.iter().product::<u64>() >= 4 * 16 * 8 * 8 && joined.times > 1.2, "{joined:?}");
    let large: (&[u64], &[u64], &[Dim]) = (&[512, 512, 128], &[2, 2, 2], &BLOCKS);
    assert_eq!(shaped(1, large, &Preference::default()), Taken { chunk: vec![256, 256, 64], times: 1.0 });
    // Whoever wants each rank to write for itself gets chunks of which that is possible.
    let alone = Preference { strategy: Some(Strategy::INDEPENDENT), ..Preference::default() };
    assert_eq!(shaped(8, small, &alone).chunk, [16, 8, 8]);
    let cyclic: (&[u64], &[u64], &[Dim]) = (&[64, 64], &[4], &[Dim::Cyclic(1), Dim::Whole]);
    let possible = shaped(1, cyclic, &alone);
    assert!(possible.chunk == [16, 64] && possible.times == 1.0, "{possible:?}");
    // What no layout can do is for the planner to refuse.
    let nobody = Preference { server_ranks: Some(vec![99]), ..Preference::default() };
    assert_eq!(shaped(8, small, &nobody), Taken { chunk: vec![16, 8, 8], times: 1.0 });
}
