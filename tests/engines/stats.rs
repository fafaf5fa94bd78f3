//! Live stats under a known load.

use crate::context::EngineContext;
use crate::lab::{Lab, running, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wharf_tests::{Proxy, small, until};

/// The maximum relative error of each figure.
const TOLERANCE: f64 = 0.10;
const HELD_MIB: u32 = 800;
const FILE_MIB: u32 = 300;
/// Shares of a CPU: all of it, and a part.
const SHARES: [f64; 2] = [1.0, 0.4];
/// Longer than the host's shortest window, shorter than its longest.
const WINDOW: Duration = Duration::from_secs(3);
/// Number of windows, of which the median counts: a busy machine may shorten a window.
const WINDOWS: usize = 3;

/// A load that holds memory, keeps a share of a CPU busy, and records its progress twenty times per
/// second: seconds since 1970, and seconds of CPU.
const LOAD: &str = r#"
import sys, time
share, mib = float(sys.argv[1]), int(sys.argv[2])
held = b"x" * (mib << 20)
with open("got", "w", buffering=1) as got:
    while True:
        print(time.time(), time.process_time(), file=got)
        end = time.monotonic() + 0.05 * share
        while time.monotonic() < end:
            pass
        time.sleep(0.05 * (1 - share))
"#;

pub fn of_a_known_load(context: &EngineContext) -> Result<()> {
    let (server, api) = context.served("")?;
    let mut body = small("container");
    body["name"] = json!("busy-box");
    body["n_vcpus"] = json!(1);
    body["mem_gib"] = json!(2);
    api.create(&body)?.expect(201)?;
    let running = api.wait_for("busy-box", "running")?;
    let inside = |command: &str| crate::lab::inside(&running, command);
    let stats = || api.stats("busy-box");
    let idle = stats()?;
    ensure!(of(&idle, "cpu_percent")? < 10.0, "{idle}");

    inside(&format!(
        "dd if=/dev/urandom of=file bs=1M count={FILE_MIB} 2>/dev/null; sync; \
         cat >load.py <<'END'\n{LOAD}END"
    ))?;
    for share in SHARES {
        inside(&format!(
            "nohup timeout 120 python3 load.py {share} {HELD_MIB} </dev/null >/dev/null 2>&1 & sleep 3"
        ))?;
        let mut windows = Vec::new();
        for _ in 0..WINDOWS {
            stats()?;
            let begin = now()?;
            std::thread::sleep(WINDOW);
            let shown = of(&stats()?, "cpu_percent")?;
            windows.push((begin, now()?, shown));
        }
        let loaded = stats()?;
        let got = inside("cat got; pkill -f load.p[y]; sleep 1")?;
        let mut ratios = Vec::new();
        for (begin, end, shown) in windows {
            let (least, most) = rates(&got, begin - WINDOW.as_secs_f64(), end)?;
            println!("cpu_percent {shown:.1}, from inside {least:.1} to {most:.1}");
            ratios.push(shown / shown.clamp(least, most));
        }
        ratios.sort_by(f64::total_cmp);
        is_right("cpu_percent of what it got", ratios[WINDOWS / 2], 1.0)?;
        let more = |field| Ok::<_, anyhow::Error>(of(&loaded, field)? - of(&idle, field)?);
        let gib = |mib: u32| f64::from(mib) / 1024.0;
        is_right("mem_used_gib", more("mem_used_gib")?, gib(HELD_MIB))?;
        is_right("disk_used_gib", more("disk_used_gib")?, gib(FILE_MIB))?;
        ensure!(of(&loaded, "mem_total_gib")? == 2.0);
        ensure!(of(&loaded, "disk_total_gib")? == 10.0);
    }
    api.delete("busy-box")?.expect(204)?;
    server.finish()
}

fn of(stats: &Value, field: &str) -> Result<f64> {
    stats[field]
        .as_f64()
        .with_context(|| format!("{field}: {stats}"))
}

fn is_right(what: &str, shown: f64, real: f64) -> Result<()> {
    println!("{what}: {shown:.3}, actual {real:.3}");
    ensure!(
        (shown / real - 1.0).abs() <= TOLERANCE,
        "{what}: {shown} is shown, {real} is right"
    );
    Ok(())
}

/// Seconds since 1970; an instance shares the node's clock.
fn now() -> Result<f64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64())
}

/// Returns the lowest and the highest share of a CPU, in percent, that the load got in a second or more of this
/// time. The host takes its samples at moments of its own, and a busy machine gives the load more at one moment
/// than at another.
fn rates(got: &str, from: f64, to: f64) -> Result<(f64, f64)> {
    let steps = || (0..).map(|n| 0.25 * f64::from(n));
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for begin in steps()
        .map(|s| from + s)
        .take_while(|begin| begin + 1.0 <= to)
    {
        for end in steps()
            .map(|s| begin + 1.0 + s)
            .take_while(|end| *end <= to)
        {
            let rate = 100.0 * (cpu_at(got, end)? - cpu_at(got, begin)?) / (end - begin);
            (least, most) = (least.min(rate), most.max(rate));
        }
    }
    Ok((least, most))
}

/// Returns the load's CPU seconds at a time, interpolated between two lines.
fn cpu_at(got: &str, then: f64) -> Result<f64> {
    let mut before: Option<(f64, f64)> = None;
    for line in got.lines() {
        let Some((time, cpu)) = line.split_once(' ') else {
            continue;
        };
        // The last line may be incomplete.
        let (Ok(time), Ok(cpu)) = (time.parse::<f64>(), cpu.parse::<f64>()) else {
            continue;
        };
        if let Some((earlier, had)) = before
            && time >= then
        {
            return Ok(had + (cpu - had) * (then - earlier) / (time - earlier));
        }
        before = Some((time, cpu));
    }
    anyhow::bail!("the load wrote nothing after {then}")
}

/// The engine accepts connections and never answers.
pub fn while_the_engine_hangs(context: &EngineContext) -> Result<()> {
    let mut proxy = Proxy::new(&context.socket()?)?;
    let server = context.server_on(&proxy.socket())?;
    let api = server.user("ann@example.com")?;
    let instance = running(&api)?;
    let uuid = uuid(&instance);
    let path = format!("/api/instance/{uuid}/stats/");
    api.stats(uuid)?;
    proxy.down()?;
    // The sample is at hand until the next one fails.
    until("the sample is gone", || {
        Ok((api.get(&path)?.status == 502).then_some(()))
    })?;
    let silent = UnixListener::bind(proxy.socket())?;
    let begin = Instant::now();
    let answer = api.get(&path)?;
    let took = begin.elapsed();
    ensure!(answer.status == 502, "{answer:?}");
    println!("502 after {took:?}");
    ensure!(took < Duration::from_secs(10), "{took:?}");
    drop(silent);
    std::fs::remove_file(proxy.socket())?;
    proxy.up()?;
    api.delete(uuid)?.expect(204)?;
    server.finish()
}
