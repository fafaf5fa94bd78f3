//! Tunnels to ports of instances, on WebSockets.

use crate::socket::Socket;
use crate::{Client, Error};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::Method;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

pub use tokio_tungstenite::tungstenite::Bytes;

const PATH: &str = "/api/instance/{uuid}/tunnel/";
const PROTOCOL: &str = "wharf.tunnel.v1";
/// The most bytes of one message.
const MAX_MESSAGE: usize = 64 * 1024;
/// The status of the response to a request without an upgrade that would be accepted with one.
const UPGRADE_REQUIRED: u16 = 426;

/// The direction of a tunnel to its port.
#[derive(Debug)]
pub struct TunnelInput(SplitSink<Socket, Message>);

/// The direction of a tunnel from its port.
#[derive(Debug)]
pub struct TunnelOutput(SplitStream<Socket>);

/// An event of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TunnelEvent {
    /// Bytes from the port.
    Bytes(Bytes),
    /// The end of the bytes from the port, which may still read.
    End,
    /// Both directions have ended.
    Closed,
    /// The tunnel has ended for another reason, in words.
    Failed(String),
}

impl Client {
    /// Opens a tunnel to a port of an instance.
    pub async fn open_tunnel(
        &self,
        instance: &str,
        port: u16,
    ) -> Result<(TunnelInput, TunnelOutput), Error> {
        let request = self.operation::<()>(Method::GET, PATH, &[instance]);
        let socket = request.query("port", Some(port)).socket(PROTOCOL).await?;
        let (input, output) = socket.split();
        Ok((TunnelInput(input), TunnelOutput(output)))
    }

    /// Checks that a tunnel of an instance would be opened, without opening one.
    pub async fn check_tunnel(&self, instance: &str) -> Result<(), Error> {
        let request = self.operation::<()>(Method::GET, PATH, &[instance]);
        match request.response().await {
            Err(Error::Refused(refusal)) if refusal.status == UPGRADE_REQUIRED => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(Error::Setup("the server opened no WebSocket".into())),
        }
    }
}

impl TunnelInput {
    /// Writes bytes to the port. Waits while it does not read.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<(), Error> {
        while !bytes.is_empty() {
            let part = bytes.split_to(bytes.len().min(MAX_MESSAGE));
            self.send(part).await?;
        }
        Ok(())
    }

    /// Ends the bytes to the port; those from it go on.
    pub async fn finish(&mut self) -> Result<(), Error> {
        self.send(Bytes::new()).await
    }

    async fn send(&mut self, bytes: Bytes) -> Result<(), Error> {
        let sent = self.0.send(Message::Binary(bytes)).await;
        sent.map_err(|error| Error::Disconnected(error.into()))
    }
}

impl TunnelOutput {
    /// Waits for the next event.
    pub async fn next(&mut self) -> Result<TunnelEvent, Error> {
        loop {
            let message = self.0.next().await.transpose();
            match message.map_err(|error| Error::Disconnected(error.into()))? {
                Some(Message::Binary(bytes)) if bytes.is_empty() => return Ok(TunnelEvent::End),
                Some(Message::Binary(bytes)) => return Ok(TunnelEvent::Bytes(bytes)),
                Some(Message::Close(Some(frame))) if frame.code == CloseCode::Normal => {
                    return Ok(TunnelEvent::Closed);
                }
                Some(Message::Close(Some(frame))) if !frame.reason.is_empty() => {
                    return Ok(TunnelEvent::Failed(frame.reason.to_string()));
                }
                Some(Message::Close(_)) | None => {
                    return Err(Error::Disconnected(
                        "the server closed the WebSocket".into(),
                    ));
                }
                Some(_) => {}
            }
        }
    }
}
