//! What tests of whole calls share: ranks in one thread, polled in any order.

use hyperslab_collective::{Call, Done};
use hyperslab_layout::Codec;
use hyperslab_walk::{Awaited, Party};
use hyperslab_world::lockstep::{Hub, HubWorld};
use hyperslab_world::{Fault, Store};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Rounds without progress after which ranks can go no further.
const IDLE_ROUNDS: u32 = 5;

/// Codecs travel as those of Zarr do.
pub(crate) fn decode(bytes: &[u8]) -> Option<Arc<dyn Codec>> {
    hyperslab_format::zarr::codec_from_bytes(bytes)
}

/// Polls all ranks in any order until each has given a result.
pub(crate) fn finish<S: Store>(
    hub: &Rc<RefCell<Hub>>,
    random: &mut fastrand::Rng,
    worlds: &mut [HubWorld<S>],
    parties: &mut [Party],
    calls: &mut [Call],
) -> Vec<Result<Done, Fault>> {
    let mut results: Vec<Option<Result<Done, Fault>>> = calls.iter().map(|_| None).collect();
    let mut order: Vec<usize> = (0..calls.len()).collect();
    let mut idle = 0;
    while results.iter().any(Option::is_none) {
        random.shuffle(&mut order);
        let mut moved = false;
        for &rank in &order {
            if results[rank].is_some() || (idle == 0 && random.u8(0..4) == 0) {
                continue;
            }
            parties[rank].pump(&mut worlds[rank]).expect("the hub never breaks");
            let before = (calls[rank].waits_for(), calls[rank].walked().steps);
            results[rank] = calls[rank].poll(&mut worlds[rank], &mut parties[rank]);
            moved |= results[rank].is_some() || (calls[rank].waits_for(), calls[rank].walked().steps) != before;
        }
        let delivered = hub.borrow_mut().turn();
        idle = if delivered || moved { 0 } else { idle + 1 };
        if idle > IDLE_ROUNDS {
            let stuck: Vec<String> = calls.iter().map(Awaited::waits_for).collect();
            panic!("deadlock: {stuck:?}");
        }
    }
    results.into_iter().flatten().collect()
}

/// Seeds to try; `HYPERSLAB_SEED` says one.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    let times = std::env::var("HYPERSLAB_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let one = std::env::var("HYPERSLAB_SEED").ok().and_then(|seed| seed.parse().ok());
    one.map_or_else(|| (0..count * times).collect(), |seed| vec![seed])
}

/// Says which seed to run again when a test panics.
pub(crate) struct Told(pub(crate) u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failing case: run again with HYPERSLAB_SEED={}", self.0);
        }
    }
}
