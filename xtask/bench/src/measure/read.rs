//! Reading: one instance, and a list. Beside a server that answers the same bytes without thinking.

use crate::Options;
use crate::bare::Bare;
use crate::data::Data;
use crate::load::{Load, Outcome, request};
use crate::pairs::Pairs;
use crate::process::cpu_time;
use crate::server::Wharf;
use crate::table::{Curve, Reach, Table};
use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;

/// Pairs of runs.
const TURNS: usize = 15;

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
    let count = if options.quick { 500 } else { 30_000 };
    let bare = Bare::start(&bodies.collect::<Result<Vec<_>>>()?)?;
    let (mut rates, mut floors) = (Vec::new(), Vec::new());
    for connections in [1, 4, 16, 64, 256] {
        let pair = Pair {
            wharf: &wharf,
            bare: &bare,
            key: data.key(),
            connections,
            count,
        };
        let runs = pair.turns(&paths)?;
        let (ours, floor, _) = runs.middle(Run::rate)?;
        rates.push((connections as f64, ours.rate()));
        floors.push((connections as f64, floor.rate()));
        if [1, 64].contains(&connections) {
            let what = format!("GET one of {instances}, {connections} connections");
            report(table, &what, &runs, 0.80)?;
        }
    }
    table.curve(Curve {
        name: "get".to_owned(),
        size: "connections".to_owned(),
        unit: "requests in a second".to_owned(),
        lines: vec![
            ("Wharf".to_owned(), rates),
            ("the same bytes, bare".to_owned(), floors),
        ],
        why: "One connection waits for its answer each time; with some of them the cores, which the \
              load generator needs too, always have something to do, and more connections add \
              nothing.",
    });
    let list = wharf.body("/api/instance/", data.key())?;
    let bare = Bare::start(&[list])?;
    let pair = Pair {
        wharf: &wharf,
        bare: &bare,
        key: data.key(),
        connections: 1,
        count: count / 20,
    };
    let runs = pair.turns(&["/api/instance/".to_owned()])?;
    let what = format!("LIST of {} of {instances}", data.first.len());
    report(table, &what, &runs, 0.70)?;
    drop(wharf);
    lists(options, table)
}

/// One server beside the other.
struct Pair<'a> {
    wharf: &'a Wharf,
    bare: &'a Bare,
    key: &'a str,
    connections: usize,
    count: usize,
}

/// A run, and the CPU time that the server took for each request.
struct Run {
    outcome: Outcome,
    cpu: Duration,
}

impl Run {
    fn rate(&self) -> f64 {
        self.outcome.per_second()
    }

    fn p99_ms(&self) -> f64 {
        self.outcome.percentile_ms(0.99)
    }

    fn median_ms(&self) -> f64 {
        self.outcome.median_ms()
    }
}

impl Pair<'_> {
    fn turns(&self, paths: &[String]) -> Result<Pairs<Run>> {
        let requests = paths.iter().map(|path| request("GET", path, self.key, ""));
        let requests: Arc<Vec<_>> = Arc::new(requests.collect());
        let load = |address: String| Load {
            address,
            connections: self.connections,
            requests: Arc::clone(&requests),
            warm_up: self.count / 10,
            count: self.count,
            rate: None,
            status: 200,
        };
        let (wharf, bare) = (load(self.wharf.address()?), load(self.bare.address.clone()));
        Pairs::measure(
            TURNS,
            || run_once(&wharf, || self.wharf.cpu_time()),
            || run_once(&bare, || cpu_time(self.bare.pid())),
        )
    }
}

fn run_once(load: &Load, cpu: impl Fn() -> Duration) -> Result<Run> {
    let before = cpu();
    let outcome = load.run()?;
    let count = u32::try_from(outcome.count()).unwrap_or(u32::MAX).max(1);
    let cpu = cpu().saturating_sub(before) / count;
    Ok(Run { outcome, cpu })
}

fn report(table: &mut Table, what: &str, runs: &Pairs<Run>, reach: f64) -> Result<()> {
    let text = |run: &Run| {
        let (rate, cpu) = (run.rate(), run.cpu.as_secs_f64() * 1e6);
        format!("{rate:.0}/s, {cpu:.0} µs of CPU each")
    };
    let (ours, floor, ratio) = runs.middle(Run::rate)?;
    table.row(
        what,
        (text(ours), text(floor)),
        ratio,
        Reach::AtLeast(reach),
    );
    let (ours, floor, ratio) = runs.middle(Run::p99_ms)?;
    let text = |run: &Run| format!("{:.3} ms", run.p99_ms());
    let both = (text(ours), text(floor));
    table.row(format!("{what}: p99"), both, ratio, Reach::AtMost(1.5));
    Ok(())
}

/// How a list's time grows with its length, first asked for and asked for again.
fn lists(options: &Options, table: &mut Table) -> Result<()> {
    let lengths: &[usize] = if options.quick {
        &[1, 10, 100]
    } else {
        &[1, 10, 100, 1_000, 10_000]
    };
    let (mut again, mut floors) = (Vec::new(), Vec::new());
    for length in lengths {
        let data = Data::of_size(1, *length)?;
        let wharf = Wharf::on(&data)?;
        let bare = Bare::start(&[wharf.body("/api/instance/", data.key())?])?;
        let pair = Pair {
            wharf: &wharf,
            bare: &bare,
            key: data.key(),
            connections: 1,
            count: (20_000 / length).clamp(20, 2_000),
        };
        let runs = pair.turns(&["/api/instance/".to_owned()])?;
        let (ours, floor, _) = runs.middle(Run::median_ms)?;
        again.push((*length as f64, ours.median_ms()));
        floors.push((*length as f64, floor.median_ms()));
    }
    table.curve(Curve {
        name: "list".to_owned(),
        size: "instances in the list".to_owned(),
        unit: "ms, median".to_owned(),
        lines: vec![
            ("Wharf".to_owned(), again),
            ("the same bytes, bare".to_owned(), floors),
        ],
        why: "Short lists cost what any request costs; from where their bytes outweigh that, as much \
              more as they are longer.",
    });
    Ok(())
}
