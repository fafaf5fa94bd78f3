//! Both directions of a connection to a port of an instance: TCP, or a channel of SSH.

use super::dial::Allowance;
use super::ports::{ALLOWANCE, Use};
use bytes::{BufMut, Bytes, BytesMut};
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, client};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Handle;

/// The most bytes of one read.
const PIECE: usize = 64 * 1024;

/// The bytes from a port.
pub struct PortReader(ReadFrom);

enum ReadFrom {
    Tcp(OwnedReadHalf, BytesMut),
    Channel {
        half: ChannelReadHalf,
        allowance: Allowance,
        /// The end of the bytes has come.
        ended: bool,
        used: Arc<Use>,
    },
}

/// The bytes to a port. The connection ends when this is dropped.
pub struct PortWriter(WriteTo);

enum WriteTo {
    Tcp(OwnedWriteHalf),
    Channel {
        half: Option<ChannelWriteHalf<client::Msg>>,
        _used: Arc<Use>,
    },
}

impl PortReader {
    /// The next bytes; none at their end. A connection that is lost before the end is an error.
    pub async fn read(&mut self) -> io::Result<Option<Bytes>> {
        match &mut self.0 {
            ReadFrom::Tcp(half, buffer) => {
                buffer.reserve(PIECE);
                half.read_buf(&mut buffer.limit(PIECE)).await?;
                let bytes = buffer.split().freeze();
                Ok((!bytes.is_empty()).then_some(bytes))
            }
            ReadFrom::Channel {
                half,
                allowance,
                ended,
                used,
            } => loop {
                used.waits();
                let message = half.wait().await;
                allowance.renew_to(ALLOWANCE);
                match message {
                    Some(ChannelMsg::Data { data }) if !data.is_empty() => {
                        used.has_bytes();
                        return Ok(Some(data));
                    }
                    Some(ChannelMsg::Eof | ChannelMsg::Close) => {
                        *ended = true;
                        return Ok(None);
                    }
                    None if *ended => return Ok(None),
                    None => return Err(io::ErrorKind::ConnectionReset.into()),
                    Some(_) => {}
                }
            },
        }
    }

    /// Waits until the port has closed its connection as a whole. TCP shows that to writers only.
    pub async fn closed(&mut self) {
        match &mut self.0 {
            ReadFrom::Tcp(..) => std::future::pending().await,
            ReadFrom::Channel { half, .. } => while half.wait().await.is_some() {},
        }
    }
}

impl PortWriter {
    /// Writes bytes. Waits while the port does not read.
    pub async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        match &mut self.0 {
            WriteTo::Tcp(half) => half.write_all(&bytes).await,
            WriteTo::Channel {
                half: Some(half), ..
            } => half.data_bytes(bytes).await.map_err(io::Error::other),
            WriteTo::Channel { half: None, .. } => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Ends the bytes; those from the port may go on.
    pub async fn finish(&mut self) -> io::Result<()> {
        match &mut self.0 {
            WriteTo::Tcp(half) => half.shutdown().await,
            WriteTo::Channel {
                half: Some(half), ..
            } => half.eof().await.map_err(io::Error::other),
            WriteTo::Channel { half: None, .. } => Ok(()),
        }
    }
}

impl Drop for PortWriter {
    fn drop(&mut self) {
        // russh closes no channel by itself.
        if let WriteTo::Channel { half, .. } = &mut self.0
            && let Some(half) = half.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { half.close().await });
        }
    }
}

/// Both directions of a TCP connection.
pub fn of_tcp(stream: TcpStream) -> (PortReader, PortWriter) {
    let (reader, writer) = stream.into_split();
    let reader = ReadFrom::Tcp(reader, BytesMut::new());
    (PortReader(reader), PortWriter(WriteTo::Tcp(writer)))
}

/// Both directions of a channel.
pub fn of_channel(channel: russh::Channel<client::Msg>, used: Use) -> (PortReader, PortWriter) {
    let (half, writer) = channel.split();
    let (allowance, used) = (used.allowance(), Arc::new(used));
    let reader = ReadFrom::Channel {
        half,
        allowance,
        ended: false,
        used: Arc::clone(&used),
    };
    (
        PortReader(reader),
        PortWriter(WriteTo::Channel {
            half: Some(writer),
            _used: used,
        }),
    )
}
