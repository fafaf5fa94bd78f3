//! Pairs of runs, ours and a baseline's. The speed of the machine changes from second to second, and
//! changes less between the two runs of a pair than between the best runs of each. The pair with the
//! median ratio counts.

use anyhow::{Context, Result};

/// Pairs of results, ours first.
pub struct Pairs<T>(Vec<(T, T)>);

impl<T> Pairs<T> {
    /// Measures `count` pairs; each side begins every second pair.
    pub fn measure(
        count: usize,
        mut ours: impl FnMut() -> Result<T>,
        mut baseline: impl FnMut() -> Result<T>,
    ) -> Result<Self> {
        let mut pairs = Vec::with_capacity(count);
        for n in 0..count {
            pairs.push(match n % 2 {
                0 => (ours()?, baseline()?),
                _ => {
                    let baseline = baseline()?;
                    (ours()?, baseline)
                }
            });
        }
        Ok(Self(pairs))
    }

    /// The pair with the median ratio of a figure, and that ratio.
    pub fn median(&self, figure: impl Fn(&T) -> f64) -> Result<(&T, &T, f64)> {
        let ratio = |(ours, baseline): &(T, T)| figure(ours) / figure(baseline);
        let mut pairs: Vec<_> = self.0.iter().collect();
        pairs.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let pair = pairs.get(pairs.len() / 2).context("no pairs")?;
        Ok((&pair.0, &pair.1, ratio(pair)))
    }
}
