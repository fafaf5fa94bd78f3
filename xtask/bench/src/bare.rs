//! A server that does nothing but answer: HTTP by the same library, in as many threads, with the same
//! bytes as Wharf, one answer after the other. The floor under every request.

use anyhow::{Context, Result};
use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;

/// Serves the lines of a file in turn, until the process is ended.
pub fn serve(bodies: &Path) -> Result<()> {
    let text = std::fs::read_to_string(bodies)?;
    let bodies: Vec<Bytes> = text.lines().map(|line| line.to_owned().into()).collect();
    let (bodies, next) = (Arc::new(bodies), Arc::new(AtomicUsize::new(0)));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (bodies, next) = (Arc::clone(&bodies), Arc::clone(&next));
            let service = service_fn(move |_| {
                let n = next.fetch_add(1, Ordering::Relaxed) % bodies.len().max(1);
                let body = bodies.get(n).cloned().unwrap_or_default();
                let response = Response::builder()
                    .header("content-type", "application/json")
                    .header("x-request-id", "0123456789abcdef0")
                    .body(Full::new(body));
                async { Ok::<_, Infallible>(response.unwrap_or_default()) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

/// Such a server as a process of its own; ended when dropped.
pub struct Bare {
    child: Child,
    _bodies: tempfile::NamedTempFile,
    /// Where it listens.
    pub address: String,
}

impl Bare {
    /// Starts one that answers with these bodies of one line each, in turn.
    pub fn start(bodies: &[Vec<u8>]) -> Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(&bodies.join(&b'\n'))?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("bare")
            .arg(file.path())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        let stdout = child.stdout.take().context("no stdout")?;
        BufReader::new(stdout).read_line(&mut address)?;
        Ok(Self {
            child,
            _bodies: file,
            address: address.trim().to_owned(),
        })
    }

    /// Of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
