//! A connection to a port inside an instance as one stream of bytes, as the gateway of pages takes it.

use bytes::{Bytes, BytesMut};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, ReadHalf, WriteHalf,
    duplex, split,
};
use tokio::sync::oneshot;
use tokio::time::sleep;
use wharf_pages::directory::PageStream;
use wharf_terminal::{PortReader, PortWriter};

/// The bytes that wait in each direction, and the most bytes of one read.
const PIECE: usize = 16 * 1024;

/// The time for the last bytes to the port after the gateway has dropped the stream.
const LAST: Duration = Duration::from_secs(2);

/// The stream of the gateway.
struct PortStream {
    gateway: DuplexStream,
    /// The connection was lost before its end.
    broken: Arc<AtomicBool>,
    /// Its drop ends the connection, whose port may neither read nor write.
    _used: oneshot::Sender<()>,
}

/// Begins to pass the bytes on. The connection ends when the stream is dropped.
pub(super) fn begin(reader: PortReader, writer: PortWriter) -> Box<dyn PageStream> {
    let (gateway, inside) = duplex(PIECE);
    let (from_gateway, to_gateway) = split(inside);
    let (used, dropped) = oneshot::channel();
    let broken = Arc::new(AtomicBool::new(false));
    let stream = PortStream {
        gateway,
        broken: Arc::clone(&broken),
        _used: used,
    };
    let unused = async {
        // An error is the drop.
        let _ = dropped.await;
        sleep(LAST).await;
    };
    tokio::spawn(async move {
        tokio::select! {
            () = to_port(from_gateway, writer) => {}
            () = from_port(reader, to_gateway, &broken) => {}
            () = unused => {}
        }
    });
    Box::new(stream)
}

/// Passes bytes to the port until the gateway has no more.
async fn to_port(mut gateway: ReadHalf<DuplexStream>, mut writer: PortWriter) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(PIECE);
        match gateway.read_buf(&mut buffer).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let bytes: Bytes = buffer.split().freeze();
        if writer.write(bytes).await.is_err() {
            // The port may have answered before it closed.
            std::future::pending().await
        }
    }
}

/// Passes bytes from the port, then its end, which the gateway answers by dropping the stream.
async fn from_port(
    mut reader: PortReader,
    mut gateway: WriteHalf<DuplexStream>,
    broken: &AtomicBool,
) {
    loop {
        match reader.read().await {
            Ok(Some(bytes)) => {
                if gateway.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::debug!("the connection to a port inside broke: {error}");
                broken.store(true, Ordering::Release);
                break;
            }
        }
    }
    let _ = gateway.shutdown().await;
}

impl AsyncRead for PortStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, has_room) = (buffer.filled().len(), buffer.remaining() > 0);
        ready!(Pin::new(&mut self.gateway).poll_read(context, buffer))?;
        let is_end = has_room && buffer.filled().len() == before;
        if is_end && self.broken.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.gateway).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.gateway).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.gateway).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::{LAST, PIECE, begin};
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::runtime::Handle;
    use tokio::time::{sleep, timeout};
    use wharf_terminal::InstancePorts;

    #[tokio::test]
    async fn a_connection_whose_port_neither_reads_nor_writes_ends_with_its_stream() {
        let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let opened = InstancePorts::open_ssh("127.0.0.1", port).await;
        let (reader, writer) = opened.unwrap();
        let _inside = silent.accept().await.unwrap();
        let mut stream = begin(reader, writer);
        // The buffers on the way are full after that.
        let pause = Duration::from_millis(200);
        while timeout(pause, stream.write_all(&[0; PIECE])).await.is_ok() {}
        let tasks = || Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks(), 1);
        drop(stream);
        let ended = async {
            while tasks() > 0 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(timeout(5 * LAST, ended).await.is_ok());
    }
}
