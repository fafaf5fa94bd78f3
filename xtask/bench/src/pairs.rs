//! Two things measured in turn. How fast the machine is changes from second to second, less between
//! the two of a pair than between the best of each: so for each figure the pair with the middle ratio
//! counts.

use anyhow::{Context, Result};

/// What was measured, ours first.
pub struct Pairs<T>(Vec<(T, T)>);

impl<T> Pairs<T> {
    /// Measures so many pairs, each of the two first in turn.
    pub fn measure(
        turns: usize,
        mut ours: impl FnMut() -> Result<T>,
        mut floor: impl FnMut() -> Result<T>,
    ) -> Result<Self> {
        let mut pairs = Vec::with_capacity(turns);
        for turn in 0..turns {
            pairs.push(match turn % 2 {
                0 => (ours()?, floor()?),
                _ => {
                    let floor = floor()?;
                    (ours()?, floor)
                }
            });
        }
        Ok(Self(pairs))
    }

    /// The pair with the middle ratio of a figure, and that ratio.
    pub fn middle(&self, figure: impl Fn(&T) -> f64) -> Result<(&T, &T, f64)> {
        self.middle_of(&figure, &figure)
    }

    /// The same for a figure of ours beside another of the other's.
    pub fn middle_of(
        &self,
        ours: impl Fn(&T) -> f64,
        floor: impl Fn(&T) -> f64,
    ) -> Result<(&T, &T, f64)> {
        let ratio = |(a, b): &(T, T)| ours(a) / floor(b);
        let mut pairs: Vec<_> = self.0.iter().collect();
        pairs.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let pair = pairs.get(pairs.len() / 2).context("no turns")?;
        Ok((&pair.0, &pair.1, ratio(pair)))
    }
}
