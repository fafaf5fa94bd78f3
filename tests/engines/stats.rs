//! Live stats against a load that is known.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};
use wharf_tests::{Login, Proxy, small};

/// One process that keeps a CPU busy, so 100 %, with 400 MiB and a file of 300 MiB.
const LOAD: &str = "dd if=/dev/urandom of=~/file bs=1M count=300 2>/dev/null; sync; \
    nohup timeout 60 python3 -c 'x = b\"x\" * (400 << 20)\nwhile True: pass' >/dev/null 2>&1 & sleep 2";

pub fn of_a_known_load(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let mut body = small("container");
    body["name"] = json!("busy-box");
    body["n_vcpus"] = json!(1);
    body["mem_gib"] = json!(2);
    api.create(&body)?.expect(201)?;
    let running = api.wait_for("busy-box", "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    let stats = || api.get("/api/instance/busy-box/stats/")?.expect(200);
    let idle = stats()?;
    Login::Password(password).output(&running, LOAD)?;
    // What it really got of a machine that others use too, from its own clock ticks.
    let ticks = "awk '{s=0; for(i=14;i<=15;i++) s+=$i; print s}' /proc/$(pgrep -n python3)/stat; date +%s%N";
    let measure = || -> Result<(f64, f64)> {
        let text = Login::Password(password).output(&running, ticks)?;
        let numbers: Vec<f64> = text
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        Ok((numbers[0] / 100.0, numbers[1] / 1e9))
    };
    // Three windows, because a window of our own never begins and ends exactly with theirs.
    let mut differences = Vec::new();
    for _ in 0..3 {
        let before = measure()?;
        stats()?;
        std::thread::sleep(Duration::from_secs(2));
        let shown = stats()?["cpu_percent"].as_f64().context("cpu_percent")?;
        let after = measure()?;
        let real = 100.0 * (after.0 - before.0) / (after.1 - before.1);
        println!("cpu_percent {shown:.1}, from inside {real:.1}");
        differences.push((shown - real).abs());
    }
    differences.sort_by(f64::total_cmp);
    ensure!(differences[0] <= 10.0, "{differences:?}");
    let loaded = stats()?;
    let of = |stats: &serde_json::Value, field: &str| stats[field].as_f64().unwrap_or_default();
    let memory = of(&loaded, "mem_used_gib") - of(&idle, "mem_used_gib");
    ensure!(
        (memory - 400.0 / 1024.0).abs() < 0.05,
        "400 MiB show as {memory} GiB"
    );
    let disk = of(&loaded, "disk_used_gib") - of(&idle, "disk_used_gib");
    ensure!(
        (disk - 300.0 / 1024.0).abs() < 0.05,
        "300 MiB show as {disk} GiB"
    );
    ensure!(of(&loaded, "mem_total_gib") == 2.0 && of(&loaded, "disk_total_gib") == 10.0);
    api.delete("busy-box")?.expect(204)?;
    server.finish()
}

/// An engine that accepts and never answers.
pub fn while_the_engine_hangs(context: &Context) -> Result<()> {
    let mut proxy = Proxy::new(&context.socket()?)?;
    let server = context.server_on(&proxy.socket())?;
    let api = server.user("ann@example.com")?;
    let created = api.small_container()?;
    let uuid = created["uuid"].as_str().unwrap_or_default();
    api.wait_for(uuid, "running")?;
    let path = format!("/api/instance/{uuid}/stats/");
    api.get(&path)?.expect(200)?;
    proxy.down()?;
    let begin = Instant::now();
    ensure!(api.get(&path)?.status == 502);
    let silent = UnixListener::bind(proxy.socket())?;
    let answer = api.get(&path)?;
    ensure!(answer.status == 502, "{answer:?}");
    // Its own bound is 3 seconds; the rest is for a slow machine.
    ensure!(
        begin.elapsed() < Duration::from_secs(8),
        "{:?}",
        begin.elapsed()
    );
    drop(silent);
    std::fs::remove_file(proxy.socket())?;
    proxy.up()?;
    api.delete(uuid)?.expect(204)?;
    server.finish()
}
