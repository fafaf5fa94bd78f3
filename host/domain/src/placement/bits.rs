//! A bit set of small numbers that finds the lowest free number word by word.

use std::collections::BTreeSet;

/// The set of taken numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bits {
    /// Words up to the largest number that was ever taken.
    words: Vec<u64>,
}

impl Bits {
    /// Marks a number as taken or free.
    pub fn set(&mut self, number: u32, taken: bool) {
        let (index, bit) = (number as usize / 64, 1_u64 << (number % 64));
        if taken && self.words.len() <= index {
            self.words.resize(index + 1, 0);
        }
        let Some(word) = self.words.get_mut(index) else {
            return;
        };
        if taken { *word |= bit } else { *word &= !bit }
    }

    /// Returns the lowest free number in `from..to` that is not kept out.
    pub fn free_of(&self, mut from: u32, to: u32, out: &BTreeSet<u32>) -> Option<u32> {
        loop {
            let number = self.free(from, to)?;
            if !out.contains(&number) {
                return Some(number);
            }
            from = number + 1;
        }
    }

    /// Returns the lowest free number in `from..to`.
    pub fn free(&self, from: u32, to: u32) -> Option<u32> {
        let mut at = from;
        while at < to {
            let word = self.words.get(at as usize / 64).copied().unwrap_or(0);
            let free = !word >> (at % 64);
            if free != 0 {
                at += free.trailing_zeros();
                return (at < to).then_some(at);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn like_a_set_of_numbers(
            steps in prop::collection::vec((0..300_u32, any::<bool>()), 0..400),
            from in 0..310_u32,
            to in 0..310_u32,
        ) {
            let (mut bits, mut set) = (Bits::default(), BTreeSet::new());
            for (number, taken) in steps {
                bits.set(number, taken);
                if taken { set.insert(number); } else { set.remove(&number); }
            }
            prop_assert_eq!(bits.free(from, to), (from..to).find(|n| !set.contains(n)));
        }
    }
}
