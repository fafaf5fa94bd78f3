//! Shrinks the script of a failure: it removes steps as long as the run still fails.

use crate::run::{self, Outcome};
use crate::script::Script;
use anyhow::Result;

/// The most runs of one shrinking.
const RUNS: usize = 400;

/// A failure with the shortest script that was found.
#[derive(Debug)]
pub struct Shrunk {
    pub script: Script,
    pub outcome: Outcome,
    pub runs: usize,
}

/// Shrinks a script that fails with the faults of a seed.
pub fn shrink(seed: u64, script: Script, outcome: Outcome) -> Result<Shrunk> {
    let mut best = Shrunk {
        script,
        outcome,
        runs: 0,
    };
    // Parts of a half, of a quarter and so on are left out, down to single steps.
    let mut part = best.script.0.len() / 2;
    while part > 0 && best.runs < RUNS {
        let mut from = 0;
        let mut removed = false;
        while from < best.script.0.len() && best.runs < RUNS {
            let mut steps = best.script.0.clone();
            steps.drain(from..(from + part).min(steps.len()));
            let shorter = Script(steps);
            let outcome = run::script(seed, &shorter, run::faults(seed))?;
            best.runs += 1;
            if outcome.failure.is_some() {
                best.script = shorter;
                best.outcome = outcome;
                removed = true;
            } else {
                from += part;
            }
        }
        if !(removed && part == 1) {
            part /= 2;
        }
    }
    Ok(best)
}
