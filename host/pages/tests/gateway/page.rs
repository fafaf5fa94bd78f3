//! Servers of pages: one that tells what it got, and others by a function of a test.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub type Stream = BufReader<TcpStream>;

/// A server on a port of its own.
pub struct Server {
    pub port: u16,
    pub connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Serves each connection with a function.
    pub async fn start<F, S>(serve: S) -> Self
    where
        F: Future<Output = io::Result<()>> + Send,
        S: Fn(Stream) -> F + Send + Sync + Clone + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            loop {
                let (io, _) = listener.accept().await.unwrap();
                io.set_nodelay(true).unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                let serve = serve.clone();
                tokio::spawn(async move { serve(BufReader::with_capacity(65_536, io)).await });
            }
        });
        Self {
            port,
            connections,
            task,
        }
    }

    /// Starts a server that answers each request with its head, and with the number of bytes in its body.
    pub async fn telling() -> Self {
        Self::start(|mut io| async move {
            while let Some(head) = head(&mut io).await? {
                let length = body(&mut io, &head).await?;
                let told = format!("{head}body: {length}\n");
                respond(&mut io, "200 OK", "", told.as_bytes()).await?;
            }
            Ok(())
        })
        .await
    }
}

/// Reads a head, in lower case and with plain ends of lines; none at the end of the connection.
pub async fn head(io: &mut Stream) -> io::Result<Option<String>> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if io.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        if line.trim_end().is_empty() {
            return Ok(Some(head));
        }
        head += &line.replace("\r\n", "\n");
    }
}

/// Reads a body to its end, and returns its length.
pub async fn body(io: &mut Stream, head: &str) -> io::Result<usize> {
    if let Some(length) = value(head, "content-length") {
        let length: usize = length.parse().unwrap();
        let mut piece = vec![0; 65_536];
        let mut rest = length;
        while rest > 0 {
            let room = rest.min(piece.len());
            let read = io.read(&mut piece[..room]).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            rest -= read;
        }
        return Ok(length);
    }
    let mut length = 0;
    if value(head, "transfer-encoding") == Some("chunked") {
        loop {
            let mut line = String::new();
            io.read_line(&mut line).await?;
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            io.read_exact(&mut chunk).await?;
            length += size;
            if size == 0 {
                break;
            }
        }
    }
    Ok(length)
}

/// Returns the value of a header in a head.
pub fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines();
    let mut pairs = lines.filter_map(|line| line.split_once(": "));
    pairs.find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
}

/// Writes a response with a length.
pub async fn respond(io: &mut Stream, status: &str, lines: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{lines}\r\n");
    io.write_all(&[head.as_bytes(), body].concat()).await
}
