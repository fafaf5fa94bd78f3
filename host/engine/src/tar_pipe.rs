//! The archive of one response as the body of another request. It is read and written at the pace of the
//! slower side.

use super::outgoing::ProgressSink;
use super::tar_stream::{Malformed, Rewrite, TarStream};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

/// Bytes between two lines of progress.
const LINE: u64 = 16 << 20;

/// The progress of a transfer.
#[derive(Debug, Default)]
pub struct TransferProgress {
    bytes: AtomicU64,
    whole: AtomicBool,
    malformed: OnceLock<Malformed>,
}

impl TransferProgress {
    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the archive was read to its end.
    pub fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Acquire)
    }

    /// Notes a whole archive of this length.
    pub fn read_whole(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.whole.store(true, Ordering::Release);
    }

    /// The error that ended the archive.
    pub fn malformed(&self) -> Option<Malformed> {
        self.malformed.get().copied()
    }
}

/// The body of the writing request.
pub struct TarPipe {
    source: Incoming,
    stream: TarStream,
    first: Vec<u8>,
    transferred: Arc<TransferProgress>,
    progress: Arc<dyn ProgressSink>,
}

impl TarPipe {
    /// Reads from `source`.
    pub fn new(
        source: Incoming,
        rewrite: &Rewrite,
        transferred: Arc<TransferProgress>,
        progress: Arc<dyn ProgressSink>,
    ) -> Result<Self, Malformed> {
        let mut first = Vec::new();
        let stream = TarStream::begin(rewrite, &mut first)?;
        Ok(Self {
            source,
            stream,
            first,
            transferred,
            progress,
        })
    }

    fn came(&self, bytes: u64) {
        let before = self.transferred.bytes.fetch_add(bytes, Ordering::Relaxed);
        let now = before.saturating_add(bytes);
        if before / LINE != now / LINE {
            self.progress
                .chunk(format!("{} MiB\n", now >> 20).as_bytes());
        }
        if self.stream.is_whole() {
            self.transferred.whole.store(true, Ordering::Release);
        }
    }
}

impl Body for TarPipe {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut out = std::mem::take(&mut self.first);
        // A piece of the source may yield nothing to send.
        while out.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.source).poll_frame(cx)) else {
                return Poll::Ready(if self.stream.is_whole() {
                    None
                } else {
                    Some(Err(io::ErrorKind::UnexpectedEof.into()))
                });
            };
            let data = match frame {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(error) => return Poll::Ready(Some(Err(io::Error::other(error)))),
            };
            if let Err(malformed) = self.stream.push(&data, &mut out) {
                self.transferred.malformed.get_or_init(|| malformed);
                return Poll::Ready(Some(Err(io::Error::other(malformed))));
            }
            self.came(data.len() as u64);
        }
        Poll::Ready(Some(Ok(Frame::data(out.into()))))
    }
}
