//! The load generator: persistent connections with one request at a time each. It parses no more of a
//! response than it must, so that its own share of the measured time is small.

use anyhow::{Context, Result, bail, ensure};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The requests of a run, and its time.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// The number of requests.
    pub count: usize,
    /// The time from the first request to the last response.
    pub whole: Duration,
}

impl Outcome {
    /// Requests per second.
    pub fn per_second(&self) -> f64 {
        self.count as f64 / self.whole.as_secs_f64().max(1e-9)
    }
}

/// The requests of a run.
#[derive(Clone)]
pub struct Load {
    /// `HOST:PORT`.
    pub address: String,
    /// The number of connections.
    pub connections: usize,
    /// Whole requests, sent in turn.
    pub requests: Arc<Vec<Vec<u8>>>,
    /// The number of requests before those that count.
    pub warm_up: usize,
    /// The number of requests that count.
    pub count: usize,
    /// The status that every response must have.
    pub status: u16,
}

/// The bytes of a request.
pub fn request(method: &str, path: &str, key: &str, body: &str) -> Vec<u8> {
    let content = if body.is_empty() {
        String::new()
    } else {
        format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        )
    };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n{content}\r\n{body}"
    )
    .into_bytes()
}

/// The bytes of a request for the smallest instance.
pub fn create(key: &str) -> Vec<u8> {
    let body = r#"{"resource_type":"container","n_vcpus":1,"mem_gib":1,"disk_size_gib":10}"#;
    request("POST", "/api/instance/", key, body)
}

impl Load {
    /// Sends all requests.
    pub fn run(&self) -> Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(self.send())
    }

    async fn send(&self) -> Result<Outcome> {
        let mut streams = Vec::new();
        for _ in 0..self.connections {
            let stream = TcpStream::connect(&self.address).await;
            let stream = stream.with_context(|| self.address.clone())?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let progress = Arc::new(Progress {
            next: AtomicUsize::new(0),
            begin: OnceLock::new(),
        });
        let mut tasks = tokio::task::JoinSet::new();
        for stream in streams {
            tasks.spawn(one(stream, self.clone(), Arc::clone(&progress)));
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        let begin = progress.begin.get().context("nothing to send")?;
        Ok(Outcome {
            count: self.count,
            whole: begin.elapsed(),
        })
    }
}

/// The progress of all connections.
struct Progress {
    next: AtomicUsize,
    /// The time of the first request that counts.
    begin: OnceLock<Instant>,
}

async fn one(mut stream: TcpStream, load: Load, progress: Arc<Progress>) -> Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = progress.next.fetch_add(1, Ordering::Relaxed);
        if n >= load.warm_up + load.count {
            return Ok(());
        }
        let request = load.requests.get(n % load.requests.len().max(1));
        if n >= load.warm_up {
            progress.begin.get_or_init(Instant::now);
        }
        stream.write_all(request.context("no request")?).await?;
        let status = response(&mut stream, &mut buffer).await?;
        ensure!(status == load.status, "{} answered {status}", load.address);
    }
}

/// Reads one response to its end, and returns its status.
async fn response(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<u16> {
    let mut have = 0;
    let (status, head, length) = loop {
        let room = buffer.get_mut(have..).context("an endless head")?;
        let read = stream.read(room).await?;
        if read == 0 {
            bail!("the connection ended");
        }
        have += read;
        let bytes = buffer.get(..have).unwrap_or_default();
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = std::str::from_utf8(bytes.get(..end).unwrap_or_default())?;
            let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let wanted = name.eq_ignore_ascii_case("content-length");
                wanted.then(|| value.trim().parse::<usize>().ok())?
            });
            break (
                status.context("no status")?,
                end + 4,
                length.context("no Content-Length")?,
            );
        }
    };
    let mut left = (head + length).saturating_sub(have);
    while left > 0 {
        let read = stream.read(buffer).await?;
        ensure!(read > 0, "the connection ended within a body");
        left = left.saturating_sub(read);
    }
    Ok(status)
}
