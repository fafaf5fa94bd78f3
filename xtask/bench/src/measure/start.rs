//! Starting: empty, and with any number of instances; and what these cost in memory.

use crate::Options;
use crate::data::Data;
use crate::load::{Load, create};
use crate::server::Wharf;
use crate::table::{Curve, Reach, Table};
use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;

/// Starts, of which the best counts; the first may compile the plugins and counts not at all.
const TURNS: usize = 4;
/// Of so many instances there is one more before the server is killed.
const NEW: usize = 100;
/// Until every node was looked at.
const SETTLE: Duration = Duration::from_secs(6);
const SETTLE_QUICK: Duration = Duration::from_secs(1);

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let empty = Data::make(1, 1, 0)?;
    drop(Wharf::on(&empty)?);
    let mut took = Duration::MAX;
    for _ in 0..TURNS {
        took = took.min(Wharf::on(&empty)?.took);
    }
    let ms = took.as_secs_f64() * 1e3;
    table.row(
        "start, empty, plugins compiled, ms",
        (format!("{ms:.0} ms"), String::new()),
        ms,
        Reach::AtMost(150.0),
    );
    let (most, settle) = if options.quick {
        (1_000, SETTLE_QUICK)
    } else {
        (1_000_000, SETTLE)
    };
    let (mut times, mut memory) = (Vec::new(), Vec::new());
    let mut size = 100;
    while size <= most {
        let Started {
            seconds,
            cpu,
            bytes,
            after_a_crash,
        } = with(size, settle)?;
        times.push((size as f64, seconds * 1e3));
        // What fewer of them take is lost among what a server takes more or less each time.
        if size >= 10_000 || options.quick {
            memory.push((size as f64, bytes.max(1.0)));
        }
        if size == most {
            table.row(
                format!("start with {size} instances, s"),
                (format!("{seconds:.2} s, {cpu:.2} s of CPU"), String::new()),
                seconds,
                Reach::AtMost(3.0),
            );
            table.row(
                format!("the same after a crash with {} more, s", size / NEW),
                (format!("{after_a_crash:.2} s"), String::new()),
                after_a_crash,
                Reach::AtMost(3.0),
            );
            table.row(
                format!("memory for each of {size} instances, bytes"),
                (format!("{bytes:.0} B"), String::new()),
                bytes,
                Reach::AtMost(1024.0),
            );
        }
        size *= 10;
    }
    for (name, unit, line, why) in [
        (
            "start",
            "ms until it listens",
            times,
            "Loading the plugins is all there is to few instances; from where reading the claims \
             outweighs it, it grows with them.",
        ),
        (
            "memory",
            "bytes for each instance",
            memory,
            "Each has its place in what is derived from the rows; the tables of that double when they \
             are full, so that it is now more and now less for each.",
        ),
    ] {
        table.curve(Curve {
            name: name.to_owned(),
            size: "instances".to_owned(),
            unit: unit.to_owned(),
            lines: vec![("Wharf".to_owned(), line)],
            why,
        });
    }
    Ok(())
}

/// A start with instances.
struct Started {
    /// Until it listens.
    seconds: f64,
    /// CPU time until then.
    cpu: f64,
    /// Memory for each instance, above a server with as many nodes and none.
    bytes: f64,
    /// Until it listens after it was killed while it wrote, seconds.
    after_a_crash: f64,
}

fn with(instances: usize, settle: Duration) -> Result<Started> {
    let data = Data::of_size(instances.div_ceil(10_000), instances)?;
    let resident = |data: &Data| -> Result<((f64, f64), u64)> {
        drop(Wharf::on(data)?);
        let wharf = Wharf::on(data)?;
        let took = (wharf.took.as_secs_f64(), wharf.cpu_time().as_secs_f64());
        std::thread::sleep(settle);
        Ok((took, wharf.resident_kib()))
    };
    let nodes = data.nodes;
    let ((seconds, cpu), full) = resident(&data)?;
    let after_a_crash = after_a_crash(&data, instances / NEW)?;
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

/// A start after the server was killed while it wrote.
fn after_a_crash(data: &Data, count: usize) -> Result<f64> {
    let wharf = Wharf::on(data)?;
    let requests = data.keys.iter();
    let load = Load {
        address: wharf.address()?,
        connections: 64,
        requests: Arc::new(requests.map(|key| create(key)).collect()),
        warm_up: 0,
        count,
        rate: None,
        status: 201,
    };
    load.run()?;
    wharf.kill()?;
    Ok(Wharf::on(data)?.took.as_secs_f64())
}
