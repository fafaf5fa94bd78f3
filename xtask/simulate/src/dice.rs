//! Random numbers from a seed. A part of the simulation has dice of its own, so that its numbers do not depend on
//! those that other parts have drawn.

/// Random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice for a part of the simulation.
    pub fn of_part(seed: u64, part: &str) -> Self {
        let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(part.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.roll().checked_rem(n).unwrap_or_default()
    }

    /// A number in a range, both ends included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from) + 1)
    }

    /// True in `n` of a thousand cases.
    pub fn chance(&mut self, n: u64) -> bool {
        self.below(1000) < n
    }

    /// One of these; `None` if there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let n = self.below(from.len() as u64);
        from.get(usize::try_from(n).unwrap_or_default())
    }
}
