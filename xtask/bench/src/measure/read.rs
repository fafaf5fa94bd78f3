//! Reads: one instance, and a list. The baseline is an axum server that answers with the same bytes.

use crate::Options;
use crate::baseline::Baseline;
use crate::data::Data;
use crate::load::{Load, Outcome, request};
use crate::pairs::Pairs;
use crate::process::cpu_time;
use crate::server::Wharf;
use crate::table::{Table, Target};
use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;

/// Of the baseline's requests per second.
const TARGET: f64 = 0.45;

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let (users, instances) = if options.quick {
        (10, 1_000)
    } else {
        (100, 100_000)
    };
    let data = Data::of_size(users, instances)?;
    let wharf = Wharf::on(&data)?;
    let paths = data.first.iter().map(|id| format!("/api/instance/{id}/"));
    let paths: Vec<_> = paths.collect();
    let bodies = paths.iter().map(|path| wharf.body(path, data.key()));
    let (count, pairs) = if options.quick {
        (500, 1)
    } else {
        (30_000, 15)
    };
    let baseline = Baseline::start(&bodies.collect::<Result<Vec<_>>>()?)?;
    for connections in [1, 64] {
        let pair = Pair {
            wharf: &wharf,
            baseline: &baseline,
            key: data.key(),
            connections,
            count,
            pairs,
        };
        let runs = pair.measure(&paths)?;
        let what = format!("GET one of {instances}, connections: {connections}");
        report(table, &what, &runs)?;
    }
    let list = wharf.body("/api/instance/", data.key())?;
    let baseline = Baseline::start(&[list])?;
    let pair = Pair {
        wharf: &wharf,
        baseline: &baseline,
        key: data.key(),
        connections: 1,
        count: count / 20,
        pairs,
    };
    let runs = pair.measure(&["/api/instance/".to_owned()])?;
    let what = format!("LIST of {} of {instances}", data.first.len());
    report(table, &what, &runs)
}

/// Wharf and the baseline, and the requests to both.
struct Pair<'a> {
    wharf: &'a Wharf,
    baseline: &'a Baseline,
    key: &'a str,
    connections: usize,
    count: usize,
    pairs: usize,
}

/// A run, with the CPU time of the server for each request.
struct Run {
    outcome: Outcome,
    cpu: Duration,
}

impl Run {
    fn rate(&self) -> f64 {
        self.outcome.per_second()
    }
}

impl Pair<'_> {
    fn measure(&self, paths: &[String]) -> Result<Pairs<Run>> {
        let requests = paths.iter().map(|path| request("GET", path, self.key, ""));
        let requests: Arc<Vec<_>> = Arc::new(requests.collect());
        let load = |address: String| Load {
            address,
            connections: self.connections,
            requests: Arc::clone(&requests),
            warm_up: self.count / 10,
            count: self.count,
            status: 200,
        };
        let (wharf, baseline) = (
            load(self.wharf.address()?),
            load(self.baseline.address.clone()),
        );
        Pairs::measure(
            self.pairs,
            || run_once(&wharf, || self.wharf.cpu_time()),
            || run_once(&baseline, || cpu_time(self.baseline.pid())),
        )
    }
}

fn run_once(load: &Load, cpu: impl Fn() -> Duration) -> Result<Run> {
    let before = cpu();
    let outcome = load.run()?;
    let count = u32::try_from(outcome.count).unwrap_or(u32::MAX).max(1);
    let cpu = cpu().saturating_sub(before) / count;
    Ok(Run { outcome, cpu })
}

fn report(table: &mut Table, what: &str, runs: &Pairs<Run>) -> Result<()> {
    let text = |run: &Run| {
        let (rate, cpu) = (run.rate(), run.cpu.as_secs_f64() * 1e6);
        format!("{rate:.0}/s, {cpu:.0} µs of CPU each")
    };
    let (ours, theirs, ratio) = runs.median(Run::rate)?;
    table.row(
        what,
        (text(ours), text(theirs)),
        ratio,
        Target::AtLeast(TARGET),
    );
    Ok(())
}
