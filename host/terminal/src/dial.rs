//! TCP connections that end with their owner, and read no more than its server has reason to send.

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes that a server may send until the next sign of use. A login takes a hundredth of it, and the window
/// of a shell a quarter. Messages that SSH ignores could else come without end, and cost CPU time.
const ALLOWANCE: u64 = 1024 * 1024;

/// Closes a connection when it is dropped, whichever task uses it.
#[derive(Debug)]
pub struct Hangup(std::net::TcpStream);

impl Hangup {
    /// Closes the connection.
    pub fn hang_up(&self) {
        // A connection that the server has closed cannot be shut down.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Drop for Hangup {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// The bytes that a server may still send.
#[derive(Debug, Clone)]
pub struct Allowance(Arc<AtomicU64>);

impl Allowance {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(ALLOWANCE)))
    }

    /// The bytes so far were of use.
    pub fn renew(&self) {
        self.renew_to(ALLOWANCE);
    }

    /// The bytes so far were of use, and this number may follow.
    pub fn renew_to(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let left = self.0.load(Ordering::Relaxed);
        let left = left.checked_sub(bytes).ok_or_else(|| {
            let error = "the SSH server sends much that is of no use";
            io::Error::new(io::ErrorKind::InvalidData, error)
        })?;
        self.0.store(left, Ordering::Relaxed);
        Ok(())
    }
}

/// A connection whose reads have an allowance.
#[derive(Debug)]
pub struct Dialled {
    stream: TcpStream,
    allowance: Allowance,
}

impl Dialled {
    /// The allowance of the server.
    pub fn allowance(&self) -> Allowance {
        self.allowance.clone()
    }
}

impl AsyncRead for Dialled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        Poll::Ready(self.allowance.take(read))
    }
}

impl AsyncWrite for Dialled {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Connects to an SSH server. russh serves a connection in a task of its own, which would wait for a
/// silent server for ever.
pub async fn dial(host: &str, port: u16) -> io::Result<(Dialled, Hangup)> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let stream = stream.into_std()?;
    let hangup = Hangup(stream.try_clone()?);
    let dialled = Dialled {
        stream: TcpStream::from_std(stream)?,
        allowance: Allowance::new(),
    };
    Ok((dialled, hangup))
}
