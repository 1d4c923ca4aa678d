//! A rank's memory of an array: guards, strides of either sign, and what must be in it.

use super::oracle;
use super::random::any_order;
use hyperslab_layout::View;
use hyperslab_pack::Memory;
use hyperslab_plan::Ask;
use hyperslab_world::Exposed;
use std::sync::Arc;

/// What no element may overwrite.
const GUARD: u8 = 0xEE;

/// One rank's memory of an array, in a random layout, and what it holds or shall hold.
pub(crate) struct Part {
    pub(crate) user: Exposed,
    pub(crate) expected: Vec<u8>,
}

impl Part {
    /// Lays a rank's part out and fills it with guards, or with its elements when `filled`.
    pub(crate) fn random(
        random: &mut fastrand::Rng,
        ask: &Ask,
        rank: u32,
        value: impl Fn(&[u64]) -> u64,
        imaginary: bool,
        filled: bool,
    ) -> Part {
        let d = ask.spread.regular().expect("a closed form");
        let none = vec![Vec::new(); d.shape().len()];
        let owned = oracle::owned(d.shape(), d.dims(), d.mesh(), d.over(), u64::from(rank));
        let (here, owned) = (owned.is_some(), owned.unwrap_or(none));
        let size = ask.memory.bytes() as i64;
        let mut step = size * random.i64(1..3);
        let mut strides = vec![0; owned.len()];
        let mut base = random.i64(0..3) * 4;
        for d in any_order(random, owned.len()) {
            let (low, high) = if random.bool() { (0, 0) } else { (random.i64(0..3), random.i64(0..3)) };
            let extent = low + owned[d].len() as i64 + high;
            let flip = random.u8(0..4) == 0 && extent > 0;
            base += if flip { (extent - 1 - low) * step } else { low * step };
            strides[d] = if flip { -step } else { step };
            step *= extent.max(1);
        }
        let mut expected = vec![GUARD; (base.max(0) + step + size) as usize];
        let plain = expected.clone();
        let selected: Vec<Vec<u64>> = ask.section.dims.iter().map(|&t| oracle::selected(t)).collect();
        if here {
            for place in oracle::indices(&owned.iter().map(|o| o.len() as u64).collect::<Vec<_>>()) {
                let position: Vec<u64> = place.iter().zip(&owned).map(|(&p, o)| o[p as usize]).collect();
                let index: Vec<u64> = position.iter().zip(&selected).map(|(&p, all)| all[p as usize]).collect();
                let at = (base + place.iter().zip(&strides).map(|(&p, &s)| p as i64 * s).sum::<i64>()) as usize;
                let bytes = oracle::encode(value(&index), ask.memory, imaginary);
                expected[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        let view = View::held(&d.owned(rank), base, &strides, ask.memory);
        let memory = Memory::from_vec(if filled { expected.clone() } else { plain });
        Part { user: Exposed { memory, view: Arc::new(view) }, expected }
    }

    /// Whether every byte is as it shall be, guards included.
    pub(crate) fn check(&self, what: &str) {
        let found = self.user.memory.to_vec(0, self.user.memory.bytes());
        assert!(found == self.expected, "{what}: found {found:02x?}\nexpected {:02x?}", self.expected);
    }
}
