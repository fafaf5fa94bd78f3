//! The node's clock set back, and forward, while Wharf runs. The machine's own clock is left alone:
//! Wharf is shown another one.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wharf_testkit::packages::{Need, ensure as installed};
use wharf_tests::{Login, Ports, Server, until};

/// Short, so that a deadline that moved with the clock would show.
const SETTINGS: &str = "provisioning_deadline_s = 5\n[limits]\nobserve_every_ms = 300\n";
/// Far enough that nothing could be mistaken for slowness.
const FORWARD: &str = "+7200";
const BACK: &str = "-7200";

fn uuid(instance: &Value) -> &str {
    instance["uuid"].as_str().unwrap_or_default()
}

/// The library that comes with the program `faketime`.
fn library() -> Result<PathBuf> {
    installed(&[Need {
        program: "faketime",
        package: "faketime",
        why: "the tests show Wharf another clock",
    }])?;
    let directories = std::fs::read_dir("/usr/lib")?.filter_map(Result::ok);
    let mut found = directories.map(|d| d.path().join("faketime/libfaketimeMT.so.1"));
    found
        .find(|path| path.is_file())
        .context("libfaketimeMT.so.1")
}

pub fn set_back(context: &Context) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let clock = scratch.path().join("offset");
    let set = |offset: &str| -> Result<()> {
        let new = clock.with_extension("new");
        std::fs::write(&new, format!("{offset}\n"))?;
        Ok(std::fs::rename(&new, &clock)?)
    };
    set("+0")?;
    let library = library()?;
    let environment = [
        ("LD_PRELOAD", library.to_str().context("path")?),
        ("FAKETIME_TIMESTAMP_FILE", clock.to_str().context("path")?),
        ("FAKETIME_NO_CACHE", "1"),
        // What counts from the start of the machine nobody sets.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    let settings = context.settings(Ports::take(), SETTINGS)?;
    let mut server = Server::start_in(&settings, &environment)?;
    let mut api = server.user("ann@example.com")?;
    let first = api.small_container()?;
    api.wait_for(uuid(&first), "running")?;

    set(BACK)?;
    let second = api.small_container()?;
    ensure!(
        second["created_at"].as_str() < first["created_at"].as_str(),
        "Wharf was shown no other clock: {} {}",
        first["created_at"],
        second["created_at"]
    );
    let running = api.wait_for(uuid(&second), "running")?;
    // In the order of creation, which is not the clock's.
    let listed: Vec<_> = api.list()?.iter().map(|i| i["uuid"].clone()).collect();
    ensure!(
        listed == [first["uuid"].clone(), second["uuid"].clone()],
        "{listed:?}"
    );
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    Login::Password(password).output(&running, "true")?;
    let stats = api
        .get(&format!("/api/instance/{}/stats/", uuid(&first)))?
        .expect(200)?;
    ensure!(
        stats["cpu_percent"].as_f64().is_some_and(|p| p >= 0.0),
        "{stats}"
    );
    // Everything goes on, back and forth, and over a kill.
    for offset in ["+0", BACK, FORWARD, BACK] {
        set(offset)?;
        api.act(uuid(&first), "stop")?.expect(200)?;
        set(if offset == BACK { FORWARD } else { BACK })?;
        ensure!(api.instance(uuid(&first))?.expect(200)?["state"] == "exited");
        api.act(uuid(&first), "restart")?.expect(200)?;
        api.wait_for(uuid(&first), "running")?;
    }
    server.kill()?;
    server.run()?;
    api = server.again(&api);
    ensure!(api.list()?.iter().all(|i| i["state"] == "running"));

    // A deadline is a span of time: the clock neither shortens nor lengthens it. This one cannot
    // come up, because its port is taken, and fails when its time is over.
    set("+0")?;
    let (held, taken) = take_the_rest(&running)?;
    let begin = Instant::now();
    let late = api.small_container()?;
    set(BACK)?;
    until("it has failed", || {
        let state = api.instance(uuid(&late))?.expect(200)?["state"].clone();
        Ok((state == "error").then_some(()))
    })
    .with_context(|| format!("{taken} ports were taken"))?;
    let took = begin.elapsed();
    ensure!(
        took >= Duration::from_secs(4) && took < Duration::from_secs(60),
        "{took:?}"
    );
    drop(held);

    // Time never runs backwards in what was written down.
    for instance in [&first, &second, &late] {
        let events = server.cli(&["events", uuid(instance)])?;
        let times: Vec<_> = events
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|word| word.ends_with('Z'))
            .collect();
        ensure!(!times.is_empty() && times.is_sorted(), "{events}");
        api.delete(uuid(instance))?.expect(204)?;
    }
    until("all are gone", || {
        let mut left = 0;
        for instance in [&first, &second, &late] {
            left += context.containers_of(instance)?.len();
        }
        Ok((left == 0).then_some(()))
    })?;
    set("+0")?;
    server.finish()
}

/// Listens on the ports after those in use, which are the next to be given.
fn take_the_rest(instance: &Value) -> Result<(Vec<std::net::TcpListener>, usize)> {
    let port = u16::try_from(instance["wan_ssh_port"].as_u64().context("no port")?)?;
    let held: Vec<_> = (port + 1..port + 20)
        .filter_map(|port| std::net::TcpListener::bind(("127.0.0.1", port)).ok())
        .collect();
    let many = held.len();
    Ok((held, many))
}
