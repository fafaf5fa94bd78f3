//! A server that does nothing but answer: HTTP by the same library, in as many threads, with the same
//! bytes. The floor under every request.

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
use tokio::net::TcpListener;

/// Serves until the process is ended.
pub fn serve(body: &Path) -> Result<()> {
    let body = Bytes::from(std::fs::read(body)?);
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
            let body = body.clone();
            let service = service_fn(move |_| {
                let response = Response::builder()
                    .header("content-type", "application/json")
                    .header("x-request-id", "0123456789abcdef0")
                    .body(Full::new(body.clone()));
                async { Ok::<_, Infallible>(response.unwrap_or_default()) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

/// Such a server as a process of its own; ended when dropped.
pub struct Bare {
    child: Child,
    _body: tempfile::NamedTempFile,
    /// Where it listens.
    pub address: String,
}

impl Bare {
    /// Starts one that answers with these bytes.
    pub fn start(body: &[u8]) -> Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(body)?;
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
            _body: file,
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
