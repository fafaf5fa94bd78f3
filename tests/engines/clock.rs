//! Changes of the node's clock while Wharf runs. Only Wharf sees the fake clock; the machine's own
//! is untouched.

use crate::context::EngineContext;
use crate::lab::{Lab, inside, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::time::{Duration, Instant};
use wharf_tests::{FakeClock, Server};

/// Short intervals, so that a deadline that depends on the clock would be visible.
const SETTINGS: &str = "provisioning_deadline_s = 60\n[limits]\nobserve_every_ms = 300\n";
/// A deadline before the end of an instance that gets one port in use after the other, about ten seconds.
const DEADLINE: &str = "provisioning_deadline_s = 5\n";
/// An offset far beyond any slowness of the machine, and beyond the deadline.
const FORWARD: &str = "+7200";
const BACK: &str = "-7200";

pub fn set_back(context: &EngineContext) -> Result<()> {
    let clock = FakeClock::new()?;
    let set = |offset: &str| clock.set(offset);
    let settings = context.settings(SETTINGS)?;
    let mut server = Server::start_in(&settings, &clock.environment())?;
    let mut api = server.user("ann@example.com")?;
    let first = api.small_container()?;
    api.wait_for(uuid(&first), "running")?;

    set(BACK)?;
    let second = api.small_container()?;
    ensure!(
        server.cli(&["clock", "show"])?.contains("refused"),
        "Wharf did not see the fake clock"
    );
    // People read the system's time, and bills follow Wharf's own.
    ensure!(
        second["created_at"].as_str() < first["created_at"].as_str(),
        "{} {}",
        first["created_at"],
        second["created_at"]
    );
    let running = api.wait_for(uuid(&second), "running")?;
    // The list is in the order of creation.
    let listed: Vec<_> = api.list()?.iter().map(|i| i["uuid"].clone()).collect();
    ensure!(
        listed == [first["uuid"].clone(), second["uuid"].clone()],
        "{listed:?}"
    );
    inside(&running, "true")?;
    let stats = api.stats(uuid(&first))?;
    ensure!(
        stats["cpu_percent"].as_f64().is_some_and(|p| p >= 0.0),
        "{stats}"
    );
    // Operations work under forward and backward changes, and over a kill.
    for offset in ["+0", BACK, FORWARD, BACK] {
        set(offset)?;
        api.act(uuid(&first), "stop")?.expect(200)?;
        set(if offset == BACK { FORWARD } else { BACK })?;
        api.wait_for(uuid(&first), "exited")?;
        api.act(uuid(&first), "restart")?.expect(200)?;
        api.wait_for(uuid(&first), "running")?;
    }
    server.kill()?;
    let config = std::fs::read_to_string(server.config_path())?;
    let brief = config.replacen("provisioning_deadline_s = 60\n", DEADLINE, 1);
    std::fs::write(server.config_path(), brief)?;
    server.run()?;
    api = server.again(&api);
    ensure!(api.list()?.iter().all(|i| i["state"] == "running"));

    // A deadline is a duration: changes of the clock must not affect it. This instance cannot come
    // up, because its port is in use, and fails at the deadline.
    set("+0")?;
    let (held, taken) = take_the_rest(&running)?;
    let begin = Instant::now();
    let late = api.small_container()?;
    set(BACK)?;
    api.wait_for(uuid(&late), "error")
        .with_context(|| format!("{taken} ports were taken"))?;
    let took = begin.elapsed();
    ensure!(
        took >= Duration::from_secs(4) && took < Duration::from_secs(60),
        "{took:?}"
    );
    drop(held);

    // No hour of a wrong clock is billed, and the ledger never runs backwards: the check of the database at
    // the end compares it with the events.
    let usage = api.get("/api/usage/")?.expect(200)?;
    let parts = ["vcpu", "ram", "storage", "gpu"].map(|part| format!("{part}_cost_hourly_usd"));
    let hourly: f64 = parts.iter().filter_map(|part| first[part].as_f64()).sum();
    let total = usage["total_usd"].as_f64().context("total_usd")?;
    ensure!(
        (0.0..3.0 * hourly).contains(&total),
        "{total} of {hourly} an hour"
    );
    for instance in [&first, &second, &late] {
        let events = server.cli(&["events", uuid(instance)])?;
        let mut times = events
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        ensure!(times.any(|word| word.ends_with('Z')), "{events}");
        context.remove(&api, instance)?;
    }
    set("+0")?;
    server.finish()
}

/// Listens on the ports after those in use, which would be assigned next.
fn take_the_rest(instance: &Value) -> Result<(Vec<std::net::TcpListener>, usize)> {
    let port = u16::try_from(instance["wan_ssh_port"].as_u64().context("no port")?)?;
    let held: Vec<_> = (port + 1..port + 20)
        .filter_map(|port| std::net::TcpListener::bind(("127.0.0.1", port)).ok())
        .collect();
    let many = held.len();
    Ok((held, many))
}
