//! The baseline of every request: an axum server that answers with the bytes that Wharf answers with,
//! and does nothing else.

use anyhow::Result;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::serve::ListenerExt;
use bytes::Bytes;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use wharf_testkit::child::KilledOnDrop;

/// As long as the request ids of Wharf.
const REQUEST_ID: &str = "0123456789abcdef0";

/// Serves the lines of a file in turn, until the process is killed.
pub fn serve(bodies: &Path) -> Result<()> {
    let text = std::fs::read_to_string(bodies)?;
    let bodies: Arc<[Bytes]> = text.lines().map(|line| line.to_owned().into()).collect();
    let next = Arc::new(AtomicUsize::new(0));
    let handler = move || {
        let n = next.fetch_add(1, Ordering::Relaxed) % bodies.len().max(1);
        let body = bodies.get(n).cloned().unwrap_or_default();
        let headers = [
            (CONTENT_TYPE.as_str(), "application/json"),
            ("x-request-id", REQUEST_ID),
        ];
        async move { (headers, body) }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, Router::new().fallback(handler)).await?;
        Ok(())
    })
}

/// A baseline server in a process of its own; dropping it kills the process.
pub struct Baseline {
    child: KilledOnDrop,
    _bodies: tempfile::NamedTempFile,
    /// `HOST:PORT`.
    pub address: String,
}

impl Baseline {
    /// Starts a server that answers with these bodies in turn, one line each.
    pub fn start(bodies: &[Vec<u8>]) -> Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(&bodies.join(&b'\n'))?;
        let child = Command::new(std::env::current_exe()?)
            .arg("baseline")
            .arg(file.path())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut child = KilledOnDrop(child);
        Ok(Self {
            address: child.first_line()?,
            child,
            _bodies: file,
        })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }
}
