//! A connection to a port inside an instance as one stream of bytes, as the gateway of pages takes it.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use wharf_pages::directory::Stream;
use wharf_terminal::{PortReader, PortWriter};

/// The bytes that wait in each direction, and the most bytes of one read.
const PIECE: usize = 16 * 1024;

/// Begins to pass the bytes on. The connection ends when the stream is dropped.
pub(super) fn begin(reader: PortReader, writer: PortWriter) -> Box<dyn Stream> {
    let (gateway, inside) = duplex(PIECE);
    let (from_gateway, to_gateway) = split(inside);
    tokio::spawn(async move {
        tokio::select! {
            () = to_port(from_gateway, writer) => {}
            () = from_port(reader, to_gateway) => {}
        }
    });
    Box::new(gateway)
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
async fn from_port(mut reader: PortReader, mut gateway: WriteHalf<DuplexStream>) {
    while let Ok(Some(bytes)) = reader.read().await {
        if gateway.write_all(&bytes).await.is_err() {
            return;
        }
    }
    let _ = gateway.shutdown().await;
}
