//! Many instances at once.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use wharf_testkit::ssh::has_banner;
use wharf_tests::{Api, Ports, Server, eventually, until};

/// The number of instances.
const MANY: u16 = 32;
/// The number on an engine that copies the image's top layer for each user namespace. It makes one
/// copy at a time, 5 to 10 s each, so 32 would exceed the deadline.
const MANY_COPIES: u16 = 8;
/// A range outside the ports of other tests.
const PORTS: Ports = Ports {
    from: 15_000,
    to: 15_199,
};
/// The deadline on a slow, shared machine that starts containers one by one.
const DEADLINE: Duration = Duration::from_secs(300);

fn how_many(context: &Context) -> u16 {
    if context.copies_layers() {
        MANY_COPIES
    } else {
        MANY
    }
}

/// All instances come up, share nothing, and leave nothing, and their resources are free again. The
/// benchmarks measure the time; storage that cleans up after other tests distorts it here.
pub fn at_once(context: &Context) -> Result<()> {
    let many = how_many(context);
    let server = Server::start(&context.settings(PORTS, "")?)?;
    let api = server.user("ann@example.com")?;
    let begin = Instant::now();
    let created = side_by_side(many, |_| api.small_container())?;
    let accepted = begin.elapsed();
    let ids: BTreeSet<_> = created.iter().map(|i| i["uuid"].to_string()).collect();
    let up = all_running(&api, begin)?;
    for field in ["uuid", "name", "lan_ipv4", "wan_ssh_port"] {
        let values: BTreeSet<_> = created.iter().map(|i| i[field].to_string()).collect();
        ensure!(
            values.len() == usize::from(many),
            "{field} twice: {values:?}"
        );
    }
    let listed: BTreeSet<_> = api.list()?.iter().map(|i| i["uuid"].to_string()).collect();
    ensure!(
        listed == ids,
        "the list must have exactly the created instances"
    );
    for instance in &created {
        let container = context.container_of(instance)?;
        ensure!(container["State"] == "running", "{container}");
        ensure!(
            has_banner("127.0.0.1", port(instance)?),
            "no SSH at {instance}"
        );
    }

    let begin = Instant::now();
    side_by_side(many, |n| {
        let id = created.get(usize::from(n)).context("no such instance")?;
        api.delete(id["uuid"].as_str().unwrap_or_default())?
            .expect(204)
    })?;
    let answered = begin.elapsed();
    ensure!(api.list()?.is_empty());
    eventually("all are gone from the engine", DEADLINE, || {
        let mut left = 0;
        for instance in &created {
            left += context.containers_of(instance)?.len();
        }
        Ok((left == 0).then_some(()))
    })?;
    let down = begin.elapsed();
    println!(
        "{many} at once: all accepted after {accepted:.2?}, all reachable after {up:.2?}; all \
         deleted for their user after {answered:.2?}, in the engine after {down:.2?}"
    );
    // All of their resources are free again.
    until("no resources are claimed", || {
        let nodes = server.cli(&["node", "list"])?;
        Ok(nodes.contains(" 0/64 ").then_some(()))
    })?;
    server.finish()
}

fn all_running(api: &Api, begin: Instant) -> Result<Duration> {
    eventually("all are running", DEADLINE, || {
        let list = api.list()?;
        let stuck = list.iter().find(|i| i["state"] == "error");
        ensure!(stuck.is_none(), "{stuck:?}");
        let all = list.iter().all(|i| i["state"] == "running");
        Ok(all.then_some(begin.elapsed()))
    })
}

fn side_by_side<T: Send>(many: u16, each: impl Fn(u16) -> Result<T> + Sync) -> Result<Vec<T>> {
    std::thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> = (0..many).map(|n| scope.spawn(move || each(n))).collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| anyhow::bail!("a thread panicked"))
            })
            .collect()
    })
}

fn port(instance: &Value) -> Result<u16> {
    let port = instance["wan_ssh_port"].as_u64().context("no port")?;
    Ok(u16::try_from(port)?)
}
