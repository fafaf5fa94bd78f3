//! Standard output and error of a guest, as lines of the log. A line is logged at once, so that the
//! text of a panic precedes its trap.

use super::log_sink::{LogSink, MAX_LINE};
use bytes::Bytes;
use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Most bytes of one write.
const PERMIT: usize = 64 << 10;

/// One of a guest's two output streams.
#[derive(Debug, Clone)]
pub struct Stdio {
    log: LogSink,
    error: bool,
    line: Arc<Mutex<Vec<u8>>>,
}

impl Stdio {
    /// Standard error if `error`, else standard output.
    pub fn new(log: LogSink, error: bool) -> Self {
        Self {
            log,
            error,
            line: Arc::default(),
        }
    }

    fn take(&self, bytes: &[u8]) {
        let mut line = self.line.lock();
        for byte in bytes {
            if *byte == b'\n' {
                self.emit(&mut line);
            } else if line.len() < MAX_LINE {
                line.push(*byte);
            }
        }
    }

    fn emit(&self, line: &mut Vec<u8>) {
        if !line.is_empty() {
            self.log.printed(&String::from_utf8_lossy(line), self.error);
            line.clear();
        }
    }
}

impl IsTerminal for Stdio {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stdio {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Stdio {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stdio {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Stdio {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
