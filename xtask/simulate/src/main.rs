//! `cargo xtask simulate`: runs seeds, and prints what a failure needs to be understood.

use anyhow::{Result, bail};
use clap::Parser;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;
use wharf_simulate::run::{self, Outcome};
use wharf_simulate::script::Script;
use wharf_simulate::shrink::shrink;

/// Runs the use cases, the reconciler and the database on simulated nodes and a simulated disk.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask simulate")]
struct Options {
    /// The number of seeds
    #[arg(long, default_value_t = 300)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Run each seed once, and not twice to compare its traces
    #[arg(long)]
    once: bool,
    /// Print the trace of each seed
    #[arg(long)]
    trace: bool,
    /// Go on after a failure, and shrink nothing
    #[arg(long)]
    all: bool,
    /// The number of seeds that run at once
    #[arg(long, default_value_t = 2)]
    threads: u64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let (next, failures) = (AtomicU64::new(options.from), AtomicU64::new(0));
    let end = options.from + options.seeds;
    let begin = Instant::now();
    thread::scope(|scope| {
        let runners: Vec<_> = (0..options.threads.max(1))
            .map(|_| scope.spawn(|| runner(&options, &next, end, &failures)))
            .collect();
        for runner in runners {
            match runner.join() {
                Ok(ran) => ran?,
                Err(_) => bail!("a thread of the simulator panicked"),
            }
        }
        Ok(())
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let ran = next.load(Ordering::Relaxed).min(end) - options.from;
    println!(
        "{ran} seeds in {seconds:.1} s, {:.1} a second",
        ran as f64 / seconds
    );
    match failures.load(Ordering::Relaxed) {
        0 => Ok(()),
        n => bail!("{n} seeds failed"),
    }
}

/// Takes seeds until there are no more, or one has failed.
fn runner(options: &Options, next: &AtomicU64, end: u64, failures: &AtomicU64) -> Result<()> {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end || (failures.load(Ordering::Relaxed) > 0 && !options.all) {
            return Ok(());
        }
        let outcome = run::seed(seed)?;
        if options.trace {
            println!("seed {seed}\n{}", outcome.trace.join("\n"));
        }
        if let Some(why) = &outcome.failure {
            failures.fetch_add(1, Ordering::Relaxed);
            if options.all {
                println!("seed {seed}: {why}");
            } else {
                print_failure(seed, outcome)?;
            }
        } else if !options.once {
            compare(seed, &outcome, failures)?;
        }
    }
}

/// Runs a seed again: its trace must be equal.
fn compare(seed: u64, first: &Outcome, failures: &AtomicU64) -> Result<()> {
    let second = run::seed(seed)?;
    let lines = first.trace.iter().zip(&second.trace);
    if let Some((n, (one, two))) = lines.enumerate().find(|(_, (one, two))| one != two) {
        failures.fetch_add(1, Ordering::Relaxed);
        println!("seed {seed}: two runs differ in line {n}:\n  {one}\n  {two}");
    } else if *first != second {
        failures.fetch_add(1, Ordering::Relaxed);
        println!("seed {seed}: one of two runs is longer");
    }
    Ok(())
}

fn print_failure(seed: u64, outcome: Outcome) -> Result<()> {
    let shrunk = shrink(seed, Script::of_seed(seed), outcome)?;
    println!(
        "seed {seed} failed: {}\n\nTrace:\n{}\n\nScript, shrunk in {} runs:\n{}",
        shrunk.outcome.failure.unwrap_or_default(),
        shrunk.outcome.trace.join("\n"),
        shrunk.runs,
        shrunk.script
    );
    println!("Run it again with `cargo xtask simulate --seeds 1 --from {seed}`");
    Ok(())
}
