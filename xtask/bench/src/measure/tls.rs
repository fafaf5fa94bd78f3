//! The CPU time of looks at engines over TLS, beside Unix sockets. Both servers look at the same number of
//! equal engines in the same seconds.

use crate::Options;
use crate::data::{Data, engine, name};
use crate::pairs::Pairs;
use crate::replay::{Certificates, Engine, instances};
use crate::server::Wharf;
use crate::table::{Table, Target};
use anyhow::{Result, ensure};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use wharf_testkit::process::wait_until;

const USERS: usize = 10;

/// A server with its engines.
struct Side {
    wharf: Wharf,
    lists: Arc<AtomicUsize>,
    _data: Data,
}

/// The CPU time and the number of lists, up to now.
type Reading = (Duration, usize);

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let (nodes, per_node, span, spans) = if options.quick {
        (2, 10, Duration::from_secs(2), 1)
    } else {
        (20, 1_000, Duration::from_secs(20), 5)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let tls = side(&runtime, nodes, per_node, true)?;
    let socket = side(&runtime, nodes, per_node, false)?;
    // The first looks read more than lists.
    let looked = || tls.read().1.min(socket.read().1) >= 2 * spans * nodes;
    let looked = wait_until(Duration::from_secs(120), looked);
    ensure!(looked, "the engines are not looked at");
    let spans = (0..spans).map(|_| -> Result<_> {
        let (ours, baseline) = (tls.read(), socket.read());
        std::thread::sleep(span);
        Ok((
            per_look(ours, tls.read())?,
            per_look(baseline, socket.read())?,
        ))
    });
    let spans = Pairs::of(spans.collect::<Result<_>>()?);
    let (ours, baseline, ratio) = spans.median(|figure| *figure)?;
    table.row(
        format!("CPU time of a look at {per_node} containers, TLS"),
        (
            format!("{ours:.2} ms"),
            format!("{baseline:.2} ms, Unix socket"),
        ),
        ratio,
        Target::AtMost(1.1),
    );
    Ok(())
}

/// Milliseconds of CPU time for a look.
fn per_look((cpu, lists): Reading, (cpu_after, lists_after): Reading) -> Result<f64> {
    let lists = lists_after.saturating_sub(lists);
    ensure!(lists > 0, "no looks");
    Ok(cpu_after.saturating_sub(cpu).as_secs_f64() * 1e3 / lists as f64)
}

/// Starts engines, and a server that looks at each every second.
fn side(runtime: &Runtime, nodes: usize, per_node: usize, tls: bool) -> Result<Side> {
    let data = Data::observed(nodes, USERS, nodes * per_node, Duration::from_secs(1))?;
    let dir = data.config();
    let dir = dir.parent().unwrap_or(&dir);
    let certificates = Certificates::new(dir)?;
    let lists = Arc::new(AtomicUsize::new(0));
    let mut config = fs::read_to_string(data.config())?;
    config = config.replace("driver = \"simulated\"", "driver = \"docker\"");
    let _entered = runtime.enter();
    for n in 0..nodes {
        let file = engine(dir, &name(n));
        let (installation, ids) = instances(&file)?;
        let replay = Engine::new(&installation, &ids, &lists);
        let socket = file.with_extension("sock");
        let simulated = format!("endpoint = \"simulated://{}\"", file.display());
        let endpoint = if tls {
            let endpoint = runtime.block_on(replay.on_port(&certificates))?;
            format!("endpoint = \"{endpoint}\"\ntls = {}", certificates.node)
        } else {
            replay.on_socket(&socket)?;
            format!("endpoint = \"unix://{}\"", socket.display())
        };
        config = config.replace(&simulated, &endpoint);
    }
    fs::write(data.config(), config)?;
    let wharf = Wharf::on(&data)?;
    Ok(Side {
        wharf,
        lists,
        _data: data,
    })
}

impl Side {
    fn read(&self) -> Reading {
        (self.wharf.cpu_time(), self.lists.load(Ordering::Relaxed))
    }
}
