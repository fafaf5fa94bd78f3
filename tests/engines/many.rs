//! Many instances at once.

use crate::lab::{Lab, inside, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use wharf_testkit::ssh::has_banner;
use wharf_tests::{Server, eventually, until};

/// The deadline on a slow, shared machine that starts containers one by one.
const DEADLINE: Duration = Duration::from_secs(300);

/// The most instances that are all logged in to.
const LOGINS: u16 = 8;

/// Returns the members with instances. All instances come up, share nothing, and leave nothing, and their resources are free again. The
/// benchmarks measure the time; storage that cleans up after other tests distorts it here.
pub fn at_once(lab: &impl Lab, settings: &str) -> Result<BTreeSet<String>> {
    let many = lab.facts().many;
    let server = Server::start(settings)?;
    let api = server.user("ann@example.com")?;
    let begin = Instant::now();
    let created = side_by_side(many, |_| api.small_container())?;
    let accepted = begin.elapsed();
    let ids: BTreeSet<_> = created.iter().map(|i| i["uuid"].to_string()).collect();
    let up = eventually("all are running", DEADLINE, || {
        let list = api.list()?;
        let stuck = list.iter().find(|i| i["state"] == "error");
        ensure!(stuck.is_none(), "{stuck:?}");
        let all = list.iter().all(|i| i["state"] == "running");
        Ok(all.then_some(begin.elapsed()))
    })?;
    // Each node has its ports.
    for field in ["uuid", "name", "lan_ipv4", "ssh_command"] {
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
    let mut places = BTreeSet::new();
    for instance in &created {
        let object = lab.object(instance)?;
        ensure!(object.runs, "{instance} does not run");
        places.insert(object.place);
        let (host, port) = address(instance)?;
        ensure!(has_banner(host, port), "no SSH at {instance}");
        if many <= LOGINS {
            ensure!(inside(instance, "uname -n")? == instance["name"]);
        }
    }
    let begin = Instant::now();
    side_by_side(many, |n| {
        let id = created.get(usize::from(n)).context("no such instance")?;
        api.delete(uuid(id))?.expect(204)
    })?;
    let answered = begin.elapsed();
    ensure!(api.list()?.is_empty());
    eventually("all are gone from the engine", DEADLINE, || {
        let mut left = 0;
        for instance in &created {
            left += lab.objects(instance)?.len();
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
        let mut lines = nodes.lines().filter(|line| line.contains('/'));
        Ok(lines.all(|line| line.contains(" 0/")).then_some(()))
    })?;
    server.finish()?;
    Ok(places)
}

pub fn side_by_side<T: Send>(many: u16, each: impl Fn(u16) -> Result<T> + Sync) -> Result<Vec<T>> {
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

fn address(instance: &Value) -> Result<(&str, u16)> {
    let command = instance["ssh_command"].as_str().context("ssh_command")?;
    let host = command.rsplit('@').next().unwrap_or_default();
    let port = instance["wan_ssh_port"].as_u64().context("no port")?;
    Ok((host, u16::try_from(port)?))
}
