//! An archive as the body of a request. It is read and written at the pace of the slower side.

use super::objects::ObjectSource;
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
pub struct TransferProgress {
    bytes: AtomicU64,
    whole: AtomicBool,
    malformed: OnceLock<Malformed>,
    lines: Arc<dyn ProgressSink>,
}

impl TransferProgress {
    /// A transfer of which nothing was read. `lines` gets a line now and then.
    pub fn new(lines: Arc<dyn ProgressSink>) -> Self {
        Self {
            bytes: AtomicU64::new(0),
            whole: AtomicBool::new(false),
            malformed: OnceLock::new(),
            lines,
        }
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the archive was read to its end.
    pub fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Acquire)
    }

    /// Notes the next bytes, and whether they end the archive.
    pub fn read(&self, bytes: usize, is_whole: bool) {
        let bytes = bytes as u64;
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let now = before.saturating_add(bytes);
        if before / LINE != now / LINE {
            self.lines.chunk(format!("{} MiB\n", now >> 20).as_bytes());
        }
        if is_whole {
            self.whole.store(true, Ordering::Release);
        }
    }

    /// Notes the error that ends the archive.
    pub fn broke(&self, malformed: Malformed) -> io::Error {
        self.malformed.get_or_init(|| malformed);
        io::Error::other(malformed)
    }

    /// The error that ended the archive.
    pub fn malformed(&self) -> Option<Malformed> {
        self.malformed.get().copied()
    }
}

/// The origin of an archive.
#[derive(Debug)]
pub enum Archive {
    /// The answer of an engine.
    Engine(Incoming),
    Object(ObjectSource),
}

impl Archive {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self {
            Self::Engine(answer) => Pin::new(answer).poll_frame(cx).map(|frame| {
                let frame = frame?.map_err(io::Error::other);
                Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
            }),
            Self::Object(object) => object.poll_next(cx),
        }
    }
}

/// The body of the writing request.
pub struct TarPipe {
    source: Archive,
    stream: TarStream,
    first: Vec<u8>,
    /// The bytes after the archive.
    last: Vec<u8>,
    transferred: Arc<TransferProgress>,
}

impl TarPipe {
    /// Reads from `source`.
    pub fn new(
        source: Archive,
        rewrite: &Rewrite,
        transferred: Arc<TransferProgress>,
    ) -> Result<Self, Malformed> {
        let form = rewrite.form.as_ref();
        let mut first = form.map_or_else(Vec::new, |form| form.before.clone());
        let last = form.map_or_else(Vec::new, |form| form.after.clone());
        let stream = TarStream::begin(rewrite, &mut first)?;
        Ok(Self {
            source,
            stream,
            first,
            last,
            transferred,
        })
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
            let Some(data) = ready!(self.source.poll_next(cx)).transpose()? else {
                let last = std::mem::take(&mut self.last);
                return Poll::Ready(if self.stream.is_whole() {
                    (!last.is_empty()).then(|| Ok(Frame::data(last.into())))
                } else {
                    Some(Err(io::ErrorKind::UnexpectedEof.into()))
                });
            };
            if let Err(malformed) = self.stream.push(&data, &mut out) {
                return Poll::Ready(Some(Err(self.transferred.broke(malformed))));
            }
            let is_whole = self.stream.is_whole();
            self.transferred.read(data.len(), is_whole);
        }
        Poll::Ready(Some(Ok(Frame::data(out.into()))))
    }
}
