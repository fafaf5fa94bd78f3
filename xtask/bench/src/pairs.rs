//! Two things measured in turn. How fast the machine is changes from second to second, less between
//! the two of a pair than between the best of each: so the pair with the middle ratio counts.

use anyhow::{Context, Result};

/// Measures so many pairs, each of the two first as often as second, and gives the middle one.
pub fn middle<T>(
    turns: usize,
    mut ours: impl FnMut() -> Result<T>,
    mut floor: impl FnMut() -> Result<T>,
    ratio: impl Fn(&T, &T) -> f64,
) -> Result<(T, T)> {
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
    pairs.sort_by(|(a, b), (c, d)| ratio(a, b).total_cmp(&ratio(c, d)));
    pairs.into_iter().nth(turns / 2).context("no turns")
}
