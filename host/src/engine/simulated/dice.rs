//! Reproducible random choices: a function of the seed, the call and its number.

use super::api::Call;
use std::sync::atomic::{AtomicU64, Ordering};

/// One node's choices, with the number of calls of each function.
#[derive(Debug)]
pub struct Dice {
    seed: u64,
    counts: [AtomicU64; Call::COUNT],
}

impl Dice {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            counts: Default::default(),
        }
    }

    /// The number of this call of its function, counted from 1.
    pub fn count(&self, call: Call) -> u64 {
        self.counts
            .get(call as usize)
            .map_or(0, |count| count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The random number of a call (SplitMix64).
    pub fn roll(&self, call: Call, nth: u64) -> u64 {
        let mut z =
            self.seed ^ (call as u64).rotate_left(48) ^ nth.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
