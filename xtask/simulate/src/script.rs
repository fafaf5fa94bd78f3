//! The script of a run: what users, operators and the machine do, and when. A seed makes it, and shrinking removes
//! steps from it.

use crate::act::{Act, Args, SUBJECTS};
use crate::dice::Dice;
use std::fmt;
use std::time::Duration;

/// A step: an act after a pause. The next step does not wait for its end.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub pause: Duration,
    pub act: &'static Act,
    pub args: Args,
}

/// A script.
#[derive(Debug, Clone, Default)]
pub struct Script(pub Vec<Step>);

/// The pauses between steps in milliseconds. Two steps without a pause are one moment.
const PAUSES: [u64; 12] = [0, 0, 0, 5, 20, 40, 300, 300, 1500, 6000, 20_000, 120_000];

/// The fewest and the most steps of a seed.
const STEPS: (u64, u64) = (5, 45);

/// How much more often half of the scripts have the acts of one subject. Few steps would rarely be about one volume.
const FOCUS: u64 = 6;

impl Script {
    /// The script of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let mut dice = Dice::of_part(seed, "script");
        let count = dice.between(STEPS.0, STEPS.1);
        let focus = dice.below(2 * SUBJECTS.len() as u64);
        let acts = (0..).zip(SUBJECTS).flat_map(|(subject, acts)| {
            let times = if subject == focus { FOCUS } else { 1 };
            acts.iter().map(move |act| (act, times * act.weight))
        });
        let acts: Vec<_> = acts.collect();
        let total: u64 = acts.iter().map(|(_, weight)| weight).sum();
        let step = |_| {
            let pause = dice.pick(&PAUSES).copied().unwrap_or_default();
            let mut at = dice.below(total);
            let fits = |(_, weight): &&(&'static Act, u64)| {
                let found = at < *weight;
                at = at.saturating_sub(*weight);
                found
            };
            let (act, _) = acts.iter().find(fits)?;
            Some(Step {
                pause: Duration::from_millis(pause),
                act,
                args: Args([dice.roll(), dice.roll(), dice.roll(), dice.roll()]),
            })
        };
        Self((0..count).filter_map(step).collect())
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in self.0.iter().enumerate() {
            let (pause, Args([a, b, c, d])) = (step.pause.as_millis(), step.args);
            let name = step.act.name;
            writeln!(
                f,
                "  {n:>3}. after {pause:>7} ms  {name} {a:x} {b:x} {c:x} {d:x}"
            )?;
        }
        Ok(())
    }
}
