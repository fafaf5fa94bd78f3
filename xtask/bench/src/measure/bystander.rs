//! A bystander's list while a page is downloaded through the gateway of the server. The baseline is its list
//! while the download takes the direct way to the page.

use super::gateway::{Connection, page, response, skip};
use crate::Options;
use crate::data::Data;
use crate::load::request;
use crate::pairs::Pairs;
use crate::server::Wharf;
use crate::table::{Table, Target};
use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// The port of the page, the first of the server's.
const PORT: u16 = 18_400;
const DEADLINE: Duration = Duration::from_secs(30);
const LATENESS: f64 = 1.3;

/// A request for the download, and the address to which it goes.
#[derive(Clone)]
struct Download {
    address: String,
    request: String,
}

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let (pairs, size) = if options.quick {
        (1, 64 << 20)
    } else {
        (3, 10_000_000_000)
    };
    let data = Data::make(1, 1, 0)?;
    let mut config = OpenOptions::new().append(true).open(data.config())?;
    let last = PORT + 9;
    write!(
        config,
        "[web]\nfrom = {PORT}\nto = {last}\n[pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n"
    )?;
    let wharf = Wharf::on(&data)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(page(PORT, size))?;
    let through = through_the_gateway(&wharf, data.key())?;
    let direct = Download {
        address: format!("127.0.0.1:{PORT}"),
        request: "GET /body HTTP/1.1\r\nhost: page\r\n\r\n".to_owned(),
    };
    let list = request("GET", "/api/instance/", data.key(), "");
    let server = wharf.address()?;
    let measure = |download: &Download| {
        // The bystander has a thread of its own.
        let download = runtime.spawn(download.clone().run(size));
        runtime.block_on(lists_during(&server, &list, download))
    };
    let runs = Pairs::measure(pairs, || measure(&through), || measure(&direct))?;
    let (ours, alone, ratio) = runs.median(|(list, _)| *list)?;
    let shown = |(list, rate): &(f64, f64)| format!("{list:.0} µs; {rate:.2} GB/s");
    table.row(
        format!("LIST beside a download of {:.1} GB", size as f64 / 1e9),
        (shown(ours), format!("{}, direct", shown(alone))),
        ratio,
        Target::AtMost(LATENESS),
    );
    Ok(())
}

/// Creates an instance with a page, and returns its download through the gateway.
fn through_the_gateway(wharf: &Wharf, key: &str) -> Result<Download> {
    let wanted = json!({
        "resource_type": "container", "flavor": "marimo",
        "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
    });
    let begin = Instant::now();
    let created = wharf.create(wanted, key)?;
    let id = created["uuid"].as_str().context("uuid")?;
    let instance = loop {
        let body = wharf.body(&format!("/api/instance/{id}/"), key)?;
        let instance: Value = serde_json::from_slice(&body)?;
        if instance["state"] == "running" {
            break instance;
        }
        ensure!(begin.elapsed() < DEADLINE, "the instance does not run");
        std::thread::sleep(Duration::from_millis(50));
    };
    let url = instance["webapp_url"].as_str().context("webapp_url")?;
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let (_, port) = host.split_once(':').context("a page without a port")?;
    let password = &instance["original_service_password"];
    let password = password.as_str().context("password")?;
    let pair = BASE64_STANDARD.encode(format!("user:{password}"));
    Ok(Download {
        address: format!("127.0.0.1:{port}"),
        request: format!(
            "GET /body HTTP/1.1\r\nhost: {host}\r\nauthorization: Basic {pair}\r\n\r\n"
        ),
    })
}

impl Download {
    /// The rate in GB/s.
    async fn run(self, size: usize) -> Result<f64> {
        let begun = Instant::now();
        let mut io = connect(&self.address).await?;
        io.write_all(self.request.as_bytes()).await?;
        let length = response(&mut io).await?;
        ensure!(length == size, "a body of {length} bytes");
        skip(&mut io, length).await?;
        Ok(size as f64 / begun.elapsed().as_secs_f64() / 1e9)
    }
}

async fn connect(address: &str) -> Result<Connection> {
    let io = TcpStream::connect(address).await?;
    io.set_nodelay(true)?;
    Ok(BufReader::with_capacity(256 << 10, Box::new(io)))
}

/// The median time of a list in microseconds while the download lasts, and the rate of the download.
async fn lists_during(
    server: &str,
    list: &[u8],
    mut download: JoinHandle<Result<f64>>,
) -> Result<(f64, f64)> {
    let mut io = connect(server).await?;
    let mut times = Vec::new();
    let rate = loop {
        let begun = Instant::now();
        let one = async {
            io.write_all(list).await?;
            let length = response(&mut io).await?;
            skip(&mut io, length).await
        };
        tokio::select! {
            rate = &mut download => break rate??,
            listed = one => listed?,
        }
        times.push(begun.elapsed());
    };
    times.sort_unstable();
    let median = times.get(times.len() / 2).context("no list ended")?;
    Ok((median.as_secs_f64() * 1e6, rate))
}
