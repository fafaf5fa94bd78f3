//! Failures of members. Instances go on, and nothing is taken for gone.

use super::context::IncusContext;
use crate::broken_limits;
use crate::lab::{Lab, inside, running, runs_since, since, state, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::time::{Duration, Instant};
use wharf_tests::lanes::is_whole_run;
use wharf_tests::{Api, Server, small, until};

/// Below the time for which Incus itself waits for a member that is out of reach.
const PROMPT: Duration = Duration::from_secs(8);

/// The line of a node in `wharf node list`.
fn listed(server: &Server, node: &str) -> Result<String> {
    let list = server.cli(&["node", "list"])?;
    let line = list.lines().find(|line| line.starts_with(node));
    Ok(line.context("the node is not listed")?.to_owned())
}

fn until_listed(server: &Server, node: &str, unreachable: bool) -> Result<()> {
    until(&format!("{node} is out of reach: {unreachable}"), || {
        let line = listed(server, node)?;
        Ok((line.contains("out of reach") == unreachable).then_some(()))
    })
}

/// The quotas of the third member's pool lose count, as they do after restores, or are switched off where they cannot.
pub fn broken_limits(context: &IncusContext) -> Result<()> {
    const LAST: usize = 2;
    let on_pool = |script: &str| context.on_pool(LAST, script).map(drop);
    broken_limits::found_and_mended(
        context,
        &context.settings_of(&[LAST], ""),
        true,
        || {
            on_pool(
                "cd $1; btrfs subvolume create a; btrfs qgroup create 1/1 .; \
                 btrfs qgroup assign --no-rescan 0/5 1/1 . || true; btrfs subvolume snapshot -i 1/1 a b; \
                 btrfs filesystem sync .; btrfs subvolume delete a b; btrfs qgroup show . 2>&1 | \
                 grep inconsistent || btrfs quota disable .",
            )
        },
        || on_pool("cd $1; btrfs quota enable .; btrfs quota rescan -w . || true"),
    )
}

/// Killed at any moment of a creation, the daemon leaves an instance that is completed or made again.
pub fn killed_daemon(context: &IncusContext) -> Result<()> {
    let server = context.server(&[0])?;
    let api = server.user("ann@example.com")?;
    let old = running(&api)?;
    let began = since(&old)?;
    // Among them: the unpacking of the image, the files, and the start.
    let after_ms = if is_whole_run() {
        &[50, 500, 900, 1_300, 1_700][..]
    } else {
        &[500, 900, 1_700]
    };
    for after_ms in after_ms.iter().copied() {
        let young = api.small_container()?;
        std::thread::sleep(Duration::from_millis(after_ms));
        context.cluster().member(0)?.kill()?;
        ensure!(state(&api, &old)? == "running");
        context.cluster().member(0)?.resume()?;
        let young = api.wait_for(uuid(&young), "running")?;
        ensure!(inside(&young, "id -un")? == "user");
        context.object(&young)?;
        context.remove(&api, &young)?;
        runs_since(&old, &began)?;
    }
    context.remove(&api, &old)?;
    server.finish()
}

/// A server with one instance on each member, which has room for no other one.
fn one_each(context: &IncusContext) -> Result<(Server, Api, Vec<Value>)> {
    let settings = context.settings_of(&[0, 1, 2], "");
    let server = Server::start(&settings.replace("n_vcpus = 16", "n_vcpus = 1"))?;
    let api = server.user("ann@example.com")?;
    let created = [0; 3].map(|_| api.small_container());
    let created = created.into_iter().collect::<Result<Vec<_>>>()?;
    let mut up = Vec::new();
    for instance in &created {
        let instance = api.wait_for(uuid(instance), "running")?;
        let member = context.object(&instance)?.place;
        up.push((member, instance));
    }
    up.sort_by(|one, other| one.0.cmp(&other.0));
    Ok((server, api, up.into_iter().map(|(_, one)| one).collect()))
}

/// The members that lead the cluster's database, or do not.
fn leader_and_others(context: &IncusContext) -> Result<(usize, Vec<usize>)> {
    let all = context.ask("GET", "/1.0/cluster/members?recursion=1", None)?;
    let roles = all.as_array().context("members")?;
    let leads = |at: &usize| {
        let name = context.member(*at).name.as_str();
        let member = roles.iter().find(|one| one["server_name"] == name);
        member.is_some_and(|one| one["roles"].to_string().contains("database-leader"))
    };
    let (leader, others): (Vec<_>, Vec<_>) = (0..3).partition(leads);
    Ok((*leader.first().context("no leader")?, others))
}

/// The longest time of some reads of an instance's usage, which the engine is asked for.
fn slowest(api: &Api, instance: &Value) -> Result<Duration> {
    let path = format!("/api/instance/{}/stats/", uuid(instance));
    let mut slowest = Duration::ZERO;
    for _ in 0..12 {
        let begin = Instant::now();
        api.get(&path)?.expect(200)?;
        slowest = slowest.max(begin.elapsed());
        // The host keeps a sample for a moment.
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(slowest)
}

pub fn cut_link(context: &IncusContext) -> Result<()> {
    let (server, api, instances) = one_each(context)?;
    let (leader, others) = leader_and_others(context)?;
    let cut = *others.iter().find(|at| **at != 0).context("a member")?;
    let name = context.member(cut).name.as_str();
    let (lost, other) = (&instances[cut], &instances[leader]);
    let began = since(lost)?;

    context.cluster().members()[cut].cut()?;
    until_listed(&server, name, true)?;
    // The cluster itself notices after seconds.
    let during = slowest(&api, other)?;
    println!("usage of an instance on another member: {during:.1?} during the cut");
    ensure!(during < PROMPT, "{during:?}");
    ensure!(inside(other, "uname -n")? == other["name"]);
    for (action, state) in [("stop", "exited"), ("restart", "running")] {
        api.act(uuid(other), action)?.expect(200)?;
        api.wait_for(uuid(other), state)?;
    }
    // Its instance keeps its state and its resources.
    ensure!(state(&api, lost)? == "running");
    ensure!(
        listed(&server, name)?.contains(" 1/1 "),
        "{}",
        listed(&server, name)?
    );
    let full = api.create(&small("container"))?;
    ensure!(full.status == 422, "{full:?}");

    context.cluster().members()[cut].reconnect()?;
    until_listed(&server, name, false)?;
    runs_since(lost, &began)?;
    for instance in &instances {
        context.remove(&api, instance)?;
    }
    server.finish()
}

pub fn no_quorum(context: &IncusContext) -> Result<()> {
    let (server, api, instances) = one_each(context)?;
    let began = instances.iter().map(since).collect::<Result<Vec<_>>>()?;
    for member in [1, 2] {
        context.cluster().member(member)?.kill()?;
    }
    for member in ["m1", "m2", "m3"] {
        until_listed(&server, member, true)?;
    }
    for (instance, began) in instances.iter().zip(&began) {
        ensure!(state(&api, instance)? == "running");
        ensure!(since(instance)? == *began, "the instance was restarted");
    }
    let full = api.create(&small("container"))?;
    ensure!(full.status == 422, "{full:?}");
    for member in [1, 2] {
        context.cluster().member(member)?.launch()?;
    }
    for member in [1, 2] {
        context.cluster().member(member)?.await_answer()?;
    }
    for member in ["m1", "m2", "m3"] {
        until_listed(&server, member, false)?;
    }
    for (instance, began) in instances.iter().zip(&began) {
        ensure!(since(instance)? == *began, "the instance was restarted");
        context.remove(&api, instance)?;
    }
    server.finish()
}
