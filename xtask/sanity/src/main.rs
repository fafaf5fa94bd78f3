//! `cargo xtask sanity`: the promises of `wit/v0.1/driver.wit`, checked on one node.
//!
//! The driver runs as in the server: its component, the request file of its kind of engine, the limits. So
//! a plugin needs no source to be checked.
//!
//! - [`options`]: the node, and the image of the instances.
//! - [`subject`]: the driver with instances of its own.
//! - [`rules`]: one check for each promise, by subject.

mod options;
mod rules;
mod subject;

use anyhow::{Result, bail};
use clap::Parser;
use options::Options;
use rules::{RULES, Verdict};
use subject::Subject;

fn main() -> Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(options))
}

/// Checks every rule, prints a line for each, and removes all instances.
async fn run(options: Options) -> Result<()> {
    let subject = Subject::open(options).await?;
    println!("{}: {}", subject.name(), subject.health.version);
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, check) in RULES.iter().filter(|(name, _)| subject.wants(name)) {
        match check(&subject).await {
            Ok(Verdict::Kept) => {
                passed += 1;
                println!("pass  {name}");
            }
            Ok(Verdict::NotApplicable(why)) => {
                skipped += 1;
                println!("skip  {name}\n        {why}");
            }
            Err(error) => {
                failed += 1;
                println!("FAIL  {name}\n        {error:#}");
                // Remains of this rule would fail later rules.
                drop(subject.remove_all().await);
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    subject.remove_all().await?;
    if failed > 0 {
        bail!("the driver breaks {failed} of its promises");
    }
    Ok(())
}
