//! The CPU time of observing idle instances.

use crate::Options;
use crate::data::Data;
use crate::load::{Load, create};
use crate::server::Wharf;
use crate::table::{Table, Target};
use anyhow::{Result, bail};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The owners of the instances.
const USERS: usize = 10;
const DEADLINE: Duration = Duration::from_secs(300);

/// Measures the CPU time of idle instances.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let size = if options.quick { 100 } else { 10_000 };
    let (settle, watched) = if options.quick {
        (Duration::from_millis(500), Duration::from_secs(1))
    } else {
        // One or two observations after the last change.
        (Duration::from_secs(5), Duration::from_secs(20))
    };
    let share = measure(size, settle, watched)? * 100.0;
    table.row(
        format!("{size} running instances, idle, % of a core"),
        (format!("{share:.2} %"), String::new()),
        share,
        Target::AtMost(1.0),
    );
    Ok(())
}

/// Measures the share of a core.
fn measure(size: usize, settle: Duration, watched: Duration) -> Result<f64> {
    // Two nodes and several users, so that neither ports nor addresses run out.
    let data = Data::make(2, USERS, 0)?;
    let wharf = Wharf::on(&data)?;
    let requests = data.keys.iter();
    let requests = requests.map(|key| create(key));
    let load = Load {
        address: wharf.address()?,
        connections: 32.min(size),
        requests: Arc::new(requests.collect()),
        warm_up: 0,
        count: size,
        status: 201,
    };
    load.run()?;
    let begin = Instant::now();
    loop {
        let mut running = 0;
        for key in &data.keys {
            let list = wharf.body("/api/instance/", key)?;
            let list: serde_json::Value = serde_json::from_slice(&list)?;
            let instances = list.as_array().into_iter().flatten();
            running += instances.filter(|i| i["state"] == "running").count();
        }
        if running == size {
            break;
        }
        if begin.elapsed() > DEADLINE {
            bail!("not all {size} instances run");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    std::thread::sleep(settle);
    let (cpu, begin) = (wharf.cpu_time(), Instant::now());
    std::thread::sleep(watched);
    let used = wharf.cpu_time().saturating_sub(cpu);
    Ok(used.as_secs_f64() / begin.elapsed().as_secs_f64())
}
