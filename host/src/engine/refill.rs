//! An engine's answer as the body of another request to it: an archive that is read and written at
//! the same time, at the pace of the slower side.

use super::tar_stream::TarStream;
use super::transport::Progress;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

/// Bytes between two lines of progress.
const LINE: u64 = 16 << 20;

/// How far it has come, for whoever waits.
#[derive(Debug, Default)]
pub struct Gauge {
    bytes: AtomicU64,
    whole: AtomicBool,
}

impl Gauge {
    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the archive was read to its end.
    pub fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Acquire)
    }
}

/// The body.
pub struct Refill {
    source: Incoming,
    stream: TarStream,
    first: Vec<u8>,
    gauge: Arc<Gauge>,
    progress: Arc<dyn Progress>,
}

impl Refill {
    /// Reads from `source`; the entries named in `gone` are empty at the other end.
    pub fn new(
        source: Incoming,
        gone: &[String],
        gauge: Arc<Gauge>,
        progress: Arc<dyn Progress>,
    ) -> Self {
        let mut first = Vec::new();
        let stream = TarStream::begin(gone, &mut first);
        Self {
            source,
            stream,
            first,
            gauge,
            progress,
        }
    }

    fn came(&self, bytes: u64) {
        let before = self.gauge.bytes.fetch_add(bytes, Ordering::Relaxed);
        let now = before.saturating_add(bytes);
        if before / LINE != now / LINE {
            self.progress
                .chunk(format!("{} MiB\n", now >> 20).as_bytes());
        }
        if self.stream.is_whole() {
            self.gauge.whole.store(true, Ordering::Release);
        }
    }
}

impl Body for Refill {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut out = std::mem::take(&mut self.first);
        // Once for every piece of the source, until there is something to send.
        while out.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.source).poll_frame(cx)) else {
                return Poll::Ready(match self.stream.is_whole() {
                    true => None,
                    false => Some(Err(io::ErrorKind::UnexpectedEof.into())),
                });
            };
            let data = match frame {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(error) => return Poll::Ready(Some(Err(io::Error::other(error)))),
            };
            if let Err(malformed) = self.stream.push(&data, &mut out) {
                return Poll::Ready(Some(Err(io::Error::other(malformed))));
            }
            self.came(data.len() as u64);
        }
        Poll::Ready(Some(Ok(Frame::data(out.into()))))
    }
}
