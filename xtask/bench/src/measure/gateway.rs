//! The gateway over TLS and HTTP/1.1, beside requests to the page itself: a small GET, bodies both ways, and the
//! memory of idle WebSockets.

use crate::Options;
use crate::gateway::{GatewayProcess, HOST};
use crate::pairs::Pairs;
use crate::process::resident_kib;
use crate::table::{Table, Target};
use anyhow::{Context, Result, bail, ensure};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

/// The example of RFC 6455, section 1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

const PIECE: usize = 256 << 10;

pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(super) type Connection = BufReader<Box<dyn Stream>>;

/// The sizes of a run.
struct GatewaySizes {
    pairs: usize,
    requests: usize,
    body: usize,
    sockets: usize,
}

/// The two ways to the page.
struct Routes {
    gateway: GatewayProcess,
    tls: TlsConnector,
    page: String,
}

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let sizes = if options.quick {
        GatewaySizes {
            pairs: 1,
            requests: 200,
            body: 8 << 20,
            sockets: 50,
        }
    } else {
        GatewaySizes {
            pairs: 5,
            requests: 5_000,
            body: 1 << 30,
            sockets: 2_000,
        }
    };
    // The page and its visitors have a thread each, as the gateway has half of the cores.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let page = runtime.block_on(page(0, sizes.body))?;
    let gateway = GatewayProcess::start(page)?;
    let mut roots = RootCertStore::empty();
    roots.add(gateway.certificate.clone())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let ways = Routes {
        gateway,
        tls: TlsConnector::from(Arc::new(client)),
        page: format!("127.0.0.1:{page}"),
    };
    let measure = |what: fn(Connection, usize) -> Measured, size: usize| {
        let way = |is_direct| {
            let run = async { what(ways.connect(is_direct).await?, size).await };
            runtime.block_on(run)
        };
        Pairs::measure(sizes.pairs, || way(false), || way(true))
    };

    let gets = measure(|io, count| Box::pin(small_gets(io, count)), sizes.requests)?;
    let (ours, direct, _) = gets.median(|figure| *figure)?;
    table.row(
        "Gateway: small GET, p50, beyond the direct one, µs",
        (format!("{ours:.0} µs"), format!("{direct:.0} µs, direct")),
        ours - direct,
        Target::AtMost(120.0),
    );
    let down = measure(|io, size| Box::pin(download(io, size)), sizes.body)?;
    let up = measure(|io, size| Box::pin(upload(io, size)), sizes.body)?;
    for (what, pairs) in [("download", down), ("upload", up)] {
        let (ours, direct, _) = pairs.median(|figure| *figure)?;
        table.row(
            format!("Gateway: {what}, GB/s"),
            (
                format!("{ours:.2} GB/s"),
                format!("{direct:.2} GB/s, direct"),
            ),
            *ours,
            Target::AtLeast(0.3),
        );
    }
    let each = runtime.block_on(memory(&ways, sizes.sockets))?;
    table.row(
        format!("memory of each of {} idle WebSockets, KiB", sizes.sockets),
        (format!("{each:.1} KiB"), String::new()),
        each,
        Target::AtMost(20.0),
    );
    Ok(())
}

type Measured = std::pin::Pin<Box<dyn Future<Output = Result<f64>>>>;

impl Routes {
    async fn connect(&self, is_direct: bool) -> Result<Connection> {
        let address = if is_direct {
            &self.page
        } else {
            &self.gateway.address
        };
        let io = TcpStream::connect(address).await?;
        io.set_nodelay(true)?;
        let io: Box<dyn Stream> = if is_direct {
            Box::new(io)
        } else {
            Box::new(self.tls.connect(ServerName::try_from(HOST)?, io).await?)
        };
        Ok(BufReader::with_capacity(PIECE, io))
    }
}

/// The median time of a GET in microseconds.
async fn small_gets(mut io: Connection, count: usize) -> Result<f64> {
    let request = format!("GET /small HTTP/1.1\r\nhost: {HOST}\r\n\r\n");
    let mut times = Vec::with_capacity(count);
    for n in 0..count + count / 10 {
        let begun = Instant::now();
        io.write_all(request.as_bytes()).await?;
        io.flush().await?;
        let length = response(&mut io).await?;
        skip(&mut io, length).await?;
        if n >= count / 10 {
            times.push(begun.elapsed());
        }
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).context("no requests")?;
    Ok(median.as_secs_f64() * 1e6)
}

async fn download(mut io: Connection, size: usize) -> Result<f64> {
    let begun = Instant::now();
    let request = format!("GET /body HTTP/1.1\r\nhost: {HOST}\r\n\r\n");
    io.write_all(request.as_bytes()).await?;
    io.flush().await?;
    let length = response(&mut io).await?;
    ensure!(length == size, "a body of {length} bytes");
    skip(&mut io, length).await?;
    Ok(size as f64 / begun.elapsed().as_secs_f64() / 1e9)
}

async fn upload(mut io: Connection, size: usize) -> Result<f64> {
    let begun = Instant::now();
    let head = format!("POST / HTTP/1.1\r\nhost: {HOST}\r\ncontent-length: {size}\r\n\r\n");
    io.write_all(head.as_bytes()).await?;
    write(&mut io, size).await?;
    let length = response(&mut io).await?;
    skip(&mut io, length).await?;
    Ok(size as f64 / begun.elapsed().as_secs_f64() / 1e9)
}

/// The memory of each idle WebSocket in KiB, beyond that of a gateway that had as many requests.
async fn memory(ways: &Routes, count: usize) -> Result<f64> {
    drop(open(ways, count / 10).await?);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = resident_kib(ways.gateway.pid());
    let sockets = open(ways, count).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = resident_kib(ways.gateway.pid());
    drop(sockets);
    Ok(after.saturating_sub(before) as f64 / count as f64)
}

async fn open(ways: &Routes, count: usize) -> Result<Vec<Connection>> {
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let mut io = ways.connect(false).await?;
        // The buffers of the visitor are no part of the measurement.
        io = BufReader::with_capacity(64, io.into_inner());
        let request = format!(
            "GET /socket HTTP/1.1\r\nhost: {HOST}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\r\n"
        );
        io.write_all(request.as_bytes()).await?;
        io.flush().await?;
        response(&mut io).await?;
        sockets.push(io);
    }
    Ok(sockets)
}

/// Reads the head of a response, and returns the length of its body.
pub(super) async fn response(io: &mut Connection) -> Result<usize> {
    let head = head(io).await?.context("the connection ended")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    ensure!(matches!(status, "200" | "101"), "{head}");
    Ok(length(&head))
}

async fn head(io: &mut Connection) -> Result<Option<String>> {
    let mut head = String::new();
    loop {
        let start = head.len();
        if io.read_line(&mut head).await? == 0 {
            return Ok(None);
        }
        if head.get(start..).is_some_and(|line| line == "\r\n") {
            return Ok(Some(head));
        }
    }
}

fn length(head: &str) -> usize {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths
        .next()
        .and_then(|(_, length)| length.parse().ok())
        .unwrap_or(0)
}

pub(super) async fn skip(io: &mut Connection, mut length: usize) -> Result<()> {
    while length > 0 {
        let read = io.fill_buf().await?.len().min(length);
        if read == 0 {
            bail!("the connection ended within a body");
        }
        io.consume(read);
        length -= read;
    }
    Ok(())
}

async fn write(io: &mut Connection, mut length: usize) -> Result<()> {
    let piece = vec![0; PIECE];
    while length > 0 {
        let part = piece.get(..length.min(PIECE)).unwrap_or_default();
        io.write_all(part).await?;
        length -= part.len();
    }
    io.flush().await?;
    Ok(())
}

/// Starts the page at a port, or at a free one with 0, and returns the port.
pub(super) async fn page(port: u16, size: usize) -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((io, _)) = listener.accept().await {
            drop(io.set_nodelay(true));
            let io: Box<dyn Stream> = Box::new(io);
            tokio::spawn(answer(BufReader::with_capacity(4 << 10, io), size));
        }
    });
    Ok(port)
}

async fn answer(mut io: Connection, size: usize) -> Result<()> {
    while let Some(head) = head(&mut io).await? {
        let asked = length(&head);
        if asked > 0 {
            io = BufReader::with_capacity(PIECE, Box::new(io));
            skip(&mut io, asked).await?;
        }
        if head.starts_with("GET /socket") {
            let accepted = format!(
                "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
                 sec-websocket-accept: {ACCEPT}\r\n\r\n"
            );
            io.write_all(accepted.as_bytes()).await?;
        } else if head.starts_with("GET /body") {
            let start = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n");
            io.write_all(start.as_bytes()).await?;
            write(&mut io, size).await?;
        } else {
            io.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                .await?;
        }
    }
    Ok(())
}
