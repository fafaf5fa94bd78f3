//! Many nodes: starts, memory, the CPU time of looks at all of them, and requests beside one node.

use crate::Options;
use crate::data::Data;
use crate::load::{self, Load, Outcome, create};
use crate::pairs::Pairs;
use crate::server::Wharf;
use crate::table::{Table, Target};
use anyhow::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Users of an installation.
const USERS: usize = 100;

/// Sizes of the measurement.
struct Sizes {
    nodes: usize,
    /// Instances of each node.
    per_node: usize,
    /// The interval of looks at each node, which is the time of a measurement too.
    every: Duration,
    /// Requests of each run.
    requests: usize,
    /// Pairs of runs of requests.
    pairs: usize,
    /// The time for which the server must be idle before a measurement.
    idle: Duration,
}

const FULL: Sizes = Sizes {
    nodes: 1_000,
    per_node: 1_000,
    every: Duration::from_secs(60),
    requests: 1_000,
    pairs: 5,
    idle: Duration::from_secs(1),
};
const QUICK: Sizes = Sizes {
    nodes: 10,
    per_node: 10,
    every: Duration::from_secs(1),
    requests: 100,
    pairs: 1,
    idle: Duration::from_millis(100),
};

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let sizes = if options.quick { &QUICK } else { &FULL };
    let Sizes {
        nodes,
        per_node,
        every,
        ..
    } = *sizes;
    let what = format!("{nodes} nodes × {per_node} instances");
    start(table, &what, sizes)?;
    let data = Data::observed(nodes, USERS, nodes * per_node, every)?;
    let wharf = Wharf::on(&data)?;
    let share = share_of_looks(&wharf, sizes)? * 100.0;
    table.row(
        format!("looks at {what} every {} s, % of a core", every.as_secs()),
        (format!("{share:.2} %"), String::new()),
        share,
        Target::AtMost(25.0),
    );
    beside_one_node(table, &what, (&wharf, &data), sizes)
}

/// Measures a start and the memory, without the memory of simulated engines.
fn start(table: &mut Table, what: &str, sizes: &Sizes) -> Result<()> {
    let instances = sizes.nodes * sizes.per_node;
    let data = Data::make(sizes.nodes, USERS, instances)?;
    drop(Wharf::on(&data)?);
    let wharf = Wharf::on(&data)?;
    let seconds = wharf.start_time.as_secs_f64();
    settle(&wharf, sizes.idle);
    let full = wharf.resident_kib();
    drop((wharf, data));
    let empty = Data::make(sizes.nodes, USERS, 0)?;
    let wharf = Wharf::on(&empty)?;
    settle(&wharf, sizes.idle);
    let bytes = full.saturating_sub(wharf.resident_kib()) as f64 * 1024.0 / instances as f64;
    table.row(
        format!("start with {what}, s"),
        (format!("{seconds:.2} s"), String::new()),
        seconds,
        Target::AtMost(3.0),
    );
    table.row(
        format!("memory per instance, {what}, bytes"),
        (format!("{bytes:.0} B"), String::new()),
        bytes,
        Target::AtMost(1024.0),
    );
    Ok(())
}

/// Waits until the first looks, which follow a start at once, are over: the server has used less
/// than a third of a core for this time.
fn settle(wharf: &Wharf, idle: Duration) {
    let end = Instant::now() + Duration::from_secs(120);
    let mut before = wharf.cpu_time();
    while Instant::now() < end {
        std::thread::sleep(idle);
        let now = wharf.cpu_time();
        if now.saturating_sub(before) < idle / 3 {
            return;
        }
        before = now;
    }
}

/// The share of a core that looks take.
fn share_of_looks(wharf: &Wharf, sizes: &Sizes) -> Result<f64> {
    settle(wharf, sizes.idle);
    let (cpu, begin) = (wharf.cpu_time(), Instant::now());
    std::thread::sleep(sizes.every);
    let used = wharf.cpu_time().saturating_sub(cpu);
    Ok(used.as_secs_f64() / begin.elapsed().as_secs_f64())
}

/// Measures creates and lists beside an installation of one node.
fn beside_one_node(
    table: &mut Table,
    what: &str,
    (wharf, data): (&Wharf, &Data),
    sizes: &Sizes,
) -> Result<()> {
    let one = Data::observed(1, USERS, sizes.per_node, sizes.every)?;
    let alone = Wharf::on(&one)?;
    for (name, connections) in [("POST", 64), ("LIST ?limit=10", 1)] {
        let run = |wharf: &Wharf, data: &Data| -> Result<Outcome> {
            let requests = data.keys.iter().map(|key| match name {
                "POST" => create(key),
                _ => load::request("GET", "/api/instance/?limit=10", key, ""),
            });
            let load = Load {
                address: wharf.address()?,
                connections,
                requests: Arc::new(requests.collect()),
                warm_up: sizes.requests / 10,
                count: sizes.requests,
                status: if name == "POST" { 201 } else { 200 },
            };
            let outcome = load.run()?;
            // The reconciler's work on new instances must not slow down the next run.
            settle(wharf, sizes.idle);
            Ok(outcome)
        };
        let runs = Pairs::measure(sizes.pairs, || run(wharf, data), || run(&alone, &one))?;
        let (ours, baseline, ratio) = runs.median(Outcome::per_second)?;
        table.row(
            format!("{name}, {what}"),
            (
                format!("{:.0}/s", ours.per_second()),
                format!("{:.0}/s, one node", baseline.per_second()),
            ),
            ratio,
            Target::AtLeast(0.6),
        );
    }
    Ok(())
}
