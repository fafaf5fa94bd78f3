//! A connection that reads on after its last response. Else TCP would discard the response with the bytes
//! that were not read.

use super::activity::Activity;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, copy, sink};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Bounds on the bytes that are discarded, and on the time.
const MAX_DISCARDED: u64 = 16 * 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(3);

/// A connection. When it is dropped, it lingers if its activity says so.
pub(super) struct Linger<I: AsyncRead + AsyncWrite + Unpin + Send + 'static> {
    /// None after the drop.
    io: Option<I>,
    activity: Arc<Activity>,
}

impl<I: AsyncRead + AsyncWrite + Unpin + Send + 'static> Linger<I> {
    pub(super) fn new(io: I, activity: &Arc<Activity>) -> Self {
        Self {
            io: Some(io),
            activity: Arc::clone(activity),
        }
    }

    fn io(self: Pin<&mut Self>) -> io::Result<Pin<&mut I>> {
        let io = self.get_mut().io.as_mut().map(Pin::new);
        io.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin + Send + 'static> Drop for Linger<I> {
    fn drop(&mut self) {
        if self.activity.lingers()
            && let Some(mut io) = self.io.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let end = async move {
                io.shutdown().await?;
                copy(&mut io.take(MAX_DISCARDED), &mut sink()).await
            };
            runtime.spawn(async { drop(timeout(TIMEOUT, end).await) });
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncRead for Linger<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.io()?.poll_read(context, buffer)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncWrite for Linger<I> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io()?.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io()?.poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.as_ref().is_some_and(I::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io()?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io()?.poll_shutdown(context)
    }
}
