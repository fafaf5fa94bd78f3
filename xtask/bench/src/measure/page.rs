//! The flavors with a page on dockerd, from the request until the page works. The baseline is dockerd's
//! own creation and start of such a container, and then the start of the image's server by hand inside.

use super::engine::{LOCALHOST, NETWORK, Ours, is_possible, remove_network};
use crate::Options;
use crate::pairs::Pairs;
use crate::table::{Table, Target};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wharf_testkit::engine::{self, Kind, PrivateEngine};
use wharf_testkit::http::{Body, HttpClient, Request};
use wharf_testkit::{images, workspace};

/// The flavors, each with the port of its server and a path that answers without a login.
const FLAVORS: [(&str, u16, &str); 5] = [
    ("marimo", 2718, "/health"),
    ("datasciencemarimo", 2718, "/health"),
    ("jupyterlab", 8888, "/api"),
    ("rserver", 8787, "/api"),
    ("rgeospatial", 8787, "/api"),
];
/// The published port of a server that is started by hand.
const PORT: u16 = 18_700;
/// Pairs of runs.
const PAIRS: usize = 5;
const WAIT: f64 = 1.15;
const DEADLINE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(5);
const NAME: &str = "bench-page";
/// The steps of a first start before the server's: an account and a password.
const ACCOUNT: &str = "echo user:x:1000:1000::/home/user:/bin/bash >>/etc/passwd \
    && echo user:x:1000: >>/etc/group && install -d -o 1000 -g 1000 /home/user /first-boot \
    && echo 0123456789abcdef >/first-boot/web_password \
    && FIRST_BOOT=/first-boot /usr/local/lib/wharf/first-boot.d/web-password user";

/// Measures the wait for each page.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    if !is_possible(
        options,
        table,
        "create → page beside dockerd and the server alone",
    ) {
        return Ok(());
    }
    // The images are those of the tests of flavors, as these are slow to build.
    let engine = PrivateEngine::start(engine::DockerOptions {
        kind: Kind::Dockerd,
        dir: workspace::target().join("test-engine/flavors"),
        disk_gib: Some(60),
        disposable: false,
        allowed: engine::Allowed::new(&[])?,
        tls: None,
    })?;
    images::ensure(&engine.client(), &FLAVORS.map(|(flavor, ..)| flavor))?;
    let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
    let ours = Ours::start(&engine, dir.path())?;
    for (flavor, port, path) in FLAVORS {
        let by_hand = ByHand {
            client: engine.client(),
            flavor,
            port,
            path,
        };
        let page = |quiet| {
            let wanted = json!({
                "resource_type": "container", "flavor": flavor,
                "n_vcpus": 2, "mem_gib": 2, "disk_size_gib": 10,
            });
            ours.one(wanted, quiet, DEADLINE)
        };
        // To fill the disk cache.
        let mut shortest = page(Duration::ZERO)?;
        by_hand.run()?;
        let runs = Pairs::measure(
            PAIRS,
            || {
                engine.settle()?;
                let took = page(shortest * 3 / 4)?;
                shortest = shortest.min(took);
                Ok((took, Duration::ZERO))
            },
            || {
                engine.settle()?;
                by_hand.run()
            },
        )?;
        let (ours, alone, ratio) = runs.median(|(a, b)| (*a + *b).as_secs_f64())?;
        table.row(
            format!("create → page, {flavor}"),
            (
                format!("{:.2} s", ours.0.as_secs_f64()),
                format!(
                    "{:.2} s, dockerd; {:.2} s, server",
                    alone.0.as_secs_f64(),
                    alone.1.as_secs_f64()
                ),
            ),
            ratio,
            Target::AtMost(WAIT),
        );
    }
    engine.stop()
}

/// A container of a flavor, whose server is started by hand.
struct ByHand {
    client: HttpClient,
    flavor: &'static str,
    port: u16,
    path: &'static str,
}

impl ByHand {
    fn send(&self, method: &str, path: &str, body: Body) -> Result<Value> {
        let request = Request::new(method, path).timeout(DEADLINE).body(body);
        let response = self.client.send(request)?.ok();
        let response = response.with_context(|| format!("{method} {path}"))?;
        Ok(serde_json::from_slice(&response.body).unwrap_or(Value::Null))
    }

    /// The times of the engine and of the server.
    fn run(&self) -> Result<(Duration, Duration)> {
        let body = json!({
            "Image": format!("localhost/wharf/{}:1", self.flavor),
            "Entrypoint": ["/usr/bin/tini", "--", "sleep", "infinity"],
            "HostConfig": {
                "CpuPeriod": 100_000, "CpuQuota": 200_000,
                "Memory": 2_u64 << 30, "MemorySwap": 2_u64 << 30, "PidsLimit": 4096,
                "NetworkMode": NETWORK,
                "PortBindings": {
                    format!("{}/tcp", self.port):
                        [{ "HostIp": LOCALHOST, "HostPort": PORT.to_string() }],
                },
            },
        });
        let network = json!({
            "Name": NETWORK, "Driver": "bridge",
            "IPAM": { "Config": [{ "Subnet": "10.212.0.0/24" }] },
        });
        self.remove()?;
        let begin = Instant::now();
        self.send("POST", "/networks/create", Body::Json(network))?;
        let create = format!("/containers/create?name={NAME}");
        self.send("POST", &create, Body::Json(body))?;
        self.send("POST", &format!("/containers/{NAME}/start"), Body::Empty)?;
        let engine = begin.elapsed();
        self.exec(&["sh", "-c", ACCOUNT], false)?;
        let begin = Instant::now();
        let start = "exec /usr/local/lib/wharf/services/$WHARF_SERVICE";
        self.exec(&["sh", "-c", start], true)?;
        while !self.answers() {
            ensure!(begin.elapsed() < DEADLINE, "no page");
            std::thread::sleep(PAUSE);
        }
        let server = begin.elapsed();
        self.remove()?;
        remove_network(&self.client)?;
        Ok((engine, server))
    }

    /// Removes the container, also that of a killed run.
    fn remove(&self) -> Result<()> {
        let path = format!("/containers/{NAME}?force=true&v=true");
        let request = Request::new("DELETE", &path).timeout(DEADLINE);
        let answer = self.client.send(request)?;
        if answer.status == 404 {
            return Ok(());
        }
        answer.ok().map(drop)
    }

    fn exec(&self, command: &[&str], detach: bool) -> Result<()> {
        let wanted = json!({ "Cmd": command, "AttachStdout": !detach, "AttachStderr": !detach });
        let path = format!("/containers/{NAME}/exec");
        let made = self.send("POST", &path, Body::Json(wanted))?;
        let id = made["Id"].as_str().context("no exec")?;
        let start = json!({ "Detach": detach, "Tty": false });
        self.send("POST", &format!("/exec/{id}/start"), Body::Json(start))?;
        let state = self.send("GET", &format!("/exec/{id}/json"), Body::Empty)?;
        ensure!(
            detach || state["ExitCode"] == 0,
            "{command:?} fails: {state}"
        );
        Ok(())
    }

    /// Whether the page answers. A proxy of the engine may accept connections before it.
    fn answers(&self) -> bool {
        let ask = || {
            let mut stream = TcpStream::connect((LOCALHOST, PORT))?;
            stream.set_read_timeout(Some(DEADLINE))?;
            let request = format!("GET {} HTTP/1.0\r\nHost: {LOCALHOST}\r\n\r\n", self.path);
            stream.write_all(request.as_bytes())?;
            let mut head = [0; 12];
            stream.read_exact(&mut head)?;
            std::io::Result::Ok(head.ends_with(b"200"))
        };
        ask().unwrap_or(false)
    }
}
