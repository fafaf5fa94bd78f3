//! Starts, empty and with 1,000,000 instances, and the memory of these.

use crate::Options;
use crate::data::Data;
use crate::load::{Load, create};
use crate::server::Wharf;
use crate::table::{Table, Target};
use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;

/// Starts of an empty server, of which the best counts.
const STARTS: usize = 4;
/// Before the server is killed, one instance is created for this many.
const PER_NEW: usize = 100;
/// The time until every node was observed.
const SETTLE: Duration = Duration::from_secs(6);
const SETTLE_QUICK: Duration = Duration::from_secs(1);

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let empty = Data::make(1, 1, 0)?;
    // The first start may compile the plugins.
    drop(Wharf::on(&empty)?);
    let mut took = Duration::MAX;
    for _ in 0..STARTS {
        took = took.min(Wharf::on(&empty)?.start_time);
    }
    let ms = took.as_secs_f64() * 1e3;
    table.row(
        "start, empty, plugins compiled before, ms",
        (format!("{ms:.0} ms"), String::new()),
        ms,
        Target::AtMost(150.0),
    );
    let (size, settle) = if options.quick {
        (1_000, SETTLE_QUICK)
    } else {
        (1_000_000, SETTLE)
    };
    let Started {
        seconds,
        cpu,
        bytes,
        after_a_crash,
    } = with(size, settle)?;
    table.row(
        format!("start with {size} instances, s"),
        (format!("{seconds:.2} s, {cpu:.2} s of CPU"), String::new()),
        seconds,
        Target::AtMost(3.0),
    );
    table.row(
        format!("start after a crash with {} more, s", size / PER_NEW),
        (format!("{after_a_crash:.2} s"), String::new()),
        after_a_crash,
        Target::AtMost(3.0),
    );
    table.row(
        format!("memory per instance of {size}, bytes"),
        (format!("{bytes:.0} B"), String::new()),
        bytes,
        Target::AtMost(1024.0),
    );
    Ok(())
}

/// A start with instances.
struct Started {
    /// The time until it listens.
    seconds: f64,
    /// The CPU time until then.
    cpu: f64,
    /// Memory per instance, above that of a server with the same nodes and no instances.
    bytes: f64,
    /// The time until it listens after a crash, seconds.
    after_a_crash: f64,
}

fn with(instances: usize, settle: Duration) -> Result<Started> {
    let data = Data::of_size(instances.div_ceil(10_000), instances)?;
    let resident = |data: &Data| -> Result<((f64, f64), u64)> {
        drop(Wharf::on(data)?);
        let wharf = Wharf::on(data)?;
        let took = (
            wharf.start_time.as_secs_f64(),
            wharf.cpu_time().as_secs_f64(),
        );
        std::thread::sleep(settle);
        Ok((took, wharf.resident_kib()))
    };
    let nodes = data.nodes;
    let ((seconds, cpu), full) = resident(&data)?;
    let after_a_crash = after_a_crash(&data, instances / PER_NEW)?;
    drop(data);
    let (_, empty) = resident(&Data::make(nodes, 1, 0)?)?;
    let bytes = full.saturating_sub(empty) as f64 * 1024.0 / instances as f64;
    Ok(Started {
        seconds,
        cpu,
        bytes,
        after_a_crash,
    })
}

/// Creates instances, kills the server, and times the next start.
fn after_a_crash(data: &Data, count: usize) -> Result<f64> {
    let wharf = Wharf::on(data)?;
    let requests = data.keys.iter();
    let load = Load {
        address: wharf.address()?,
        connections: 64,
        requests: Arc::new(requests.map(|key| create(key)).collect()),
        warm_up: 0,
        count,
        status: 201,
    };
    load.run()?;
    wharf.kill()?;
    Ok(Wharf::on(data)?.start_time.as_secs_f64())
}
