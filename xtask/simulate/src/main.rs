//! `cargo xtask simulate`: runs seeds, and prints what a failure needs to be understood.

use anyhow::{Result, bail};
use clap::Parser;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;
use wharf_simulate::exhaustive::{self, Scope};
use wharf_simulate::planted;
use wharf_simulate::run::Outcome;
use wharf_simulate::seeds::Seeds;

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
    /// Shrink nothing, and print one line for a failure
    #[arg(long)]
    brief: bool,
    /// The number of seeds that run at once. Default: one for each core
    #[arg(long)]
    threads: Option<usize>,
    /// Instead of seeds: every fault at every call of scripts of up to two operations
    #[arg(long)]
    exhaustive: bool,
    /// Instead of seeds: plant the faults of `planted.toml` in this copy of the sources, one at a time, and find them
    #[arg(long, value_name = "DIRECTORY")]
    planted: Option<PathBuf>,
    /// Only planted faults, or tries of the exhaustive mode, whose descriptions contain this text
    #[arg(long, default_value = "")]
    filter: String,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if let Some(tree) = &options.planted {
        return planted::run(tree, &options.filter);
    }
    if options.exhaustive {
        return try_all(&options, options.threads.unwrap_or(cores));
    }
    let seeds = Seeds {
        from: options.from,
        count: options.seeds,
        threads: options.threads.unwrap_or(cores),
        once: options.once,
        all: options.all,
        brief: options.brief || options.all,
    };
    let begin = Instant::now();
    let print = |seed, outcome: &Outcome| {
        if options.trace {
            println!("seed {seed}\n{}", outcome.trace.join("\n"));
        }
    };
    let (ran, failures) = seeds.run(print)?;
    for failure in &failures {
        println!("{failure}");
    }
    let seconds = begin.elapsed().as_secs_f64();
    let rate = ran as f64 / seconds;
    println!("{ran} seeds in {seconds:.1} s, {rate:.1} a second");
    if !failures.is_empty() {
        bail!("{} seeds failed", failures.len());
    }
    Ok(())
}

fn try_all(options: &Options, threads: usize) -> Result<()> {
    let begin = Instant::now();
    let (ran, broken) = exhaustive::run(Scope::All, &options.filter, threads, |line| {
        println!("{line}");
    })?;
    for one in broken.iter().filter(|_| options.trace) {
        println!("{}\n{}", one.what, one.trace.join("\n"));
    }
    println!("{ran} runs in {:.0} s", begin.elapsed().as_secs_f64());
    if !broken.is_empty() {
        bail!("{} runs failed", broken.len());
    }
    Ok(())
}
