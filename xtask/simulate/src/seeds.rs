//! Runs many seeds, and tells what a failure needs to be understood.

use crate::run::{self, Outcome};
use crate::script::Script;
use crate::shrink::shrink;
use anyhow::{Result, bail};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The seeds to run.
#[derive(Debug, Clone, Copy)]
pub struct Seeds {
    /// The first seed.
    pub from: u64,
    /// The number of seeds.
    pub count: u64,
    /// The number of seeds that run at once.
    pub threads: usize,
    /// Run each seed once. Otherwise each runs twice, and its traces are compared.
    pub once: bool,
    /// Go on after a failure.
    pub all: bool,
    /// Shrink nothing, and print no trace of a failure.
    pub brief: bool,
}

impl Seeds {
    /// Seeds from one on, with a thread for each core. The first failure ends the run.
    pub fn new(from: u64, count: u64) -> Self {
        Self {
            from,
            count,
            threads: thread::available_parallelism().map_or(1, usize::from),
            once: false,
            all: false,
            brief: false,
        }
    }

    /// Runs the seeds. Returns their number and a text for each failure. `each` gets the first outcome of each
    /// seed.
    pub fn run(&self, each: impl Fn(u64, &Outcome) + Sync) -> Result<(u64, Vec<String>)> {
        let (next, failures) = (AtomicU64::new(self.from), Mutex::new(Vec::new()));
        let runner = || -> Result<()> {
            loop {
                let failed = !failures.lock().is_empty();
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= self.from + self.count || (failed && !self.all) {
                    return Ok(());
                }
                if let Some(text) = self.failure(seed, &each)? {
                    failures.lock().push(text);
                }
            }
        };
        thread::scope(|scope| {
            let runners: Vec<_> = (0..self.threads.max(1))
                .map(|_| scope.spawn(runner))
                .collect();
            for runner in runners {
                match runner.join() {
                    Ok(ran) => ran?,
                    Err(_) => bail!("a thread of the simulator panicked"),
                }
            }
            Ok(())
        })?;
        let ran = next.into_inner().min(self.from + self.count) - self.from;
        Ok((ran, failures.into_inner()))
    }

    /// Runs a seed. Returns a text if it fails.
    fn failure(&self, seed: u64, each: impl Fn(u64, &Outcome)) -> Result<Option<String>> {
        let first = run::seed(seed)?;
        each(seed, &first);
        match &first.failure {
            Some(why) if self.brief => Ok(Some(format!("seed {seed}: {why}"))),
            Some(_) => explained(seed, first).map(Some),
            None if self.once => Ok(None),
            None => {
                let second = run::seed(seed)?;
                Ok(difference(seed, &first, &second))
            }
        }
    }
}

/// The difference between two runs of a seed.
fn difference(seed: u64, first: &Outcome, second: &Outcome) -> Option<String> {
    let mut lines = first.trace.iter().zip(&second.trace).enumerate();
    match lines.find(|(_, (one, two))| one != two) {
        Some((n, (one, two))) => Some(format!(
            "seed {seed}: two runs differ in line {n}:\n  {one}\n  {two}"
        )),
        None if first != second => Some(format!("seed {seed}: one of two runs is longer")),
        None => None,
    }
}

/// Shrinks the script of a failed seed, and describes the failure.
fn explained(seed: u64, outcome: Outcome) -> Result<String> {
    let shrunk = shrink(seed, Script::of_seed(seed), outcome)?;
    Ok(format!(
        "seed {seed} failed: {}\n\nTrace:\n{}\n\nScript, shrunk in {} runs:\n{}\n\
         Run it again with `cargo xtask simulate --seeds 1 --from {seed}`",
        shrunk.outcome.failure.unwrap_or_default(),
        shrunk.outcome.trace.join("\n"),
        shrunk.runs,
        shrunk.script
    ))
}
