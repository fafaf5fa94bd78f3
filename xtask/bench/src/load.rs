//! The load generator: connections that are kept, each with one request at a time. It reads just as
//! much of an answer as it must, so that as little as possible of what is measured is its own.

use anyhow::{Context, Result, bail, ensure};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long each request took, ascending, and all of them together.
#[derive(Debug, Clone)]
pub struct Outcome {
    times: Vec<Duration>,
    /// From the first to the last.
    pub whole: Duration,
}

impl Outcome {
    /// Of these times.
    pub fn new(mut times: Vec<Duration>, whole: Duration) -> Self {
        times.sort_unstable();
        Self { times, whole }
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// Requests in a second.
    pub fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.whole.as_secs_f64().max(1e-9)
    }

    /// The time that this share of requests did not exceed, ms.
    pub fn percentile_ms(&self, share: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        self.times.get(index).map_or(0.0, |t| t.as_secs_f64() * 1e3)
    }

    /// The middle one, ms.
    pub fn median_ms(&self) -> f64 {
        self.percentile_ms(0.5)
    }
}

/// What to send.
#[derive(Clone)]
pub struct Load {
    /// `HOST:PORT`.
    pub address: String,
    /// Connections.
    pub connections: usize,
    /// Whole requests; the n-th request sent is the n-th of them, and again from the start.
    pub requests: Arc<Vec<Vec<u8>>>,
    /// How many to send first that do not count, all connections together.
    pub warm_up: usize,
    /// How many to send then.
    pub count: usize,
    /// How many to send in a second, all connections together; as fast as they go without it.
    pub rate: Option<f64>,
    /// The status that every answer must have.
    pub status: u16,
}

/// A request in bytes.
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

/// A request for the smallest instance that there is.
pub fn create(key: &str) -> Vec<u8> {
    let body = r#"{"resource_type":"container","n_vcpus":1,"mem_gib":1,"disk_size_gib":10}"#;
    request("POST", "/api/instance/", key, body)
}

impl Load {
    /// Sends it all.
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
        let turns = Arc::new(Turns {
            start: Instant::now(),
            next: AtomicUsize::new(0),
            begin: OnceLock::new(),
        });
        let mut tasks = tokio::task::JoinSet::new();
        for stream in streams {
            tasks.spawn(one(stream, self.clone(), Arc::clone(&turns)));
        }
        let mut times = Vec::with_capacity(self.count);
        while let Some(done) = tasks.join_next().await {
            times.extend(done??);
        }
        let begin = turns.begin.get().context("nothing to send")?;
        Ok(Outcome::new(times, begin.elapsed()))
    }
}

/// Whose turn it is, of all connections.
struct Turns {
    start: Instant,
    next: AtomicUsize,
    /// When the first that counts was sent.
    begin: OnceLock<Instant>,
}

async fn one(mut stream: TcpStream, load: Load, turns: Arc<Turns>) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = turns.next.fetch_add(1, Ordering::Relaxed);
        if n >= load.warm_up + load.count {
            return Ok(times);
        }
        let counts = n >= load.warm_up;
        let request = load.requests.get(n % load.requests.len().max(1));
        let begin = match load.rate {
            Some(rate) => due(turns.start + Duration::from_secs_f64(n as f64 / rate)).await,
            None => Instant::now(),
        };
        if counts {
            turns.begin.get_or_init(|| begin);
        }
        stream.write_all(request.context("no request")?).await?;
        let status = answer(&mut stream, &mut buffer).await?;
        if counts {
            times.push(begin.elapsed());
        }
        ensure!(status == load.status, "{} answered {status}", load.address);
    }
}

/// When a request begins that is due at this time. A timer that rings late is not what is measured; all
/// connections that are busy is.
async fn due(at: Instant) -> Instant {
    if at <= Instant::now() {
        return at;
    }
    tokio::time::sleep_until(at.into()).await;
    Instant::now()
}

/// Reads one answer to its end; its status.
async fn answer(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<u16> {
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
            break (status.context("no status")?, end + 4, length.unwrap_or(0));
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
