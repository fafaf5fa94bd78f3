//! Time until an instance is reachable, compared with the engine's own create and start.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wharf_testkit::http::Request;
use wharf_tests::Api;

const RUNS: usize = 3;
/// The port of the engine's own container.
const PORT: u16 = 19_977;

/// The deadline of a request to the engine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Prints the ratio; the benchmarks have the target.
pub fn to_running(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let (mut ours, mut engines, mut accepted) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..=RUNS {
        let (answer, running) = through_wharf(&api)?;
        let engine = engine_alone(context)?;
        // The first run warms up.
        if run > 0 {
            accepted.push(answer);
            ours.push(running);
            engines.push(engine);
        }
    }
    let (accepted, ours, engines) = (median(accepted), median(ours), median(engines));
    println!(
        "POST to 201: {:.1} ms; POST to running: {:.0} ms; the engine's own create + start + SSH \
         banner: {:.0} ms; ratio {:.2} (medians of {RUNS})",
        accepted.as_secs_f64() * 1e3,
        ours.as_secs_f64() * 1e3,
        engines.as_secs_f64() * 1e3,
        ours.as_secs_f64() / engines.as_secs_f64()
    );
    server.finish()
}

fn through_wharf(api: &Api) -> Result<(Duration, Duration)> {
    let begin = Instant::now();
    let created = api.small_container()?;
    let accepted = begin.elapsed();
    let uuid = created["uuid"].as_str().context("uuid")?;
    while api.instance(uuid)?.expect(200)?["state"] != "running" {
        ensure!(begin.elapsed() < Duration::from_secs(120), "not running");
        std::thread::sleep(Duration::from_millis(2));
    }
    let running = begin.elapsed();
    api.delete(uuid)?.expect(204)?;
    Ok((accepted, running))
}

/// Measures a bare container of `base` until its banner on a published port.
fn engine_alone(context: &Context) -> Result<Duration> {
    let client = context.client();
    let call = |method: &str, path: &str, body: Option<Value>| -> Result<Vec<u8>> {
        let mut request = Request::new(method, path).timeout(DEADLINE);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = client.send(request)?;
        ensure!(
            answer.status < 300,
            "{method} {path}: {}",
            String::from_utf8_lossy(&answer.body)
        );
        Ok(answer.body)
    };
    let begin = Instant::now();
    let network = json!({"Name": "timing-bare", "Driver": "bridge", "CheckDuplicate": true});
    call("POST", "/networks/create", Some(network))?;
    let body = json!({
        "Image": "localhost/wharf/base:1",
        "ExposedPorts": {"22/tcp": {}},
        "HostConfig": context.host_config(json!({
            "NetworkMode": "timing-bare",
            "PortBindings": {"22/tcp": [{"HostIp": "127.0.0.1", "HostPort": PORT.to_string()}]},
        })),
    });
    call("POST", "/containers/create?name=timing-bare", Some(body))?;
    call("POST", "/containers/timing-bare/start", None)?;
    while !banner(PORT) {
        ensure!(begin.elapsed() < Duration::from_secs(60), "no banner");
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = begin.elapsed();
    call("DELETE", "/containers/timing-bare?force=true&v=true", None)?;
    call("DELETE", "/networks/timing-bare", None)?;
    Ok(took)
}

/// Returns whether an SSH server greets at this port of the node.
pub fn banner(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    // A proxy may accept long before the server does, and send nothing.
    let limited = stream.set_read_timeout(Some(Duration::from_secs(1)));
    let mut banner = [0; 4];
    limited.is_ok() && stream.read_exact(&mut banner).is_ok() && &banner == b"SSH-"
}

/// Returns the median.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
