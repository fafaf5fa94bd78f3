//! Bytes between a tunnel and a connection of this computer.

use anyhow::{Result, bail};
use std::future::pending;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use wharf_client::{Bytes, TunnelEvent, TunnelInput, TunnelOutput};

/// The most bytes of one read.
const PIECE: usize = 64 * 1024;

/// The end of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Both directions have ended.
    BothEnd,
    /// The port has ended its bytes. A program that reads stdout learns of that by the end of this one.
    PortEnds,
}

/// Carries bytes in both directions. The end of the bytes of this computer leaves the others open.
pub async fn carry(
    (mut input, mut output): (TunnelInput, TunnelOutput),
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    until: Until,
) -> Result<()> {
    let up = async {
        let mut piece = vec![0; PIECE];
        loop {
            let length = reader.read(&mut piece).await?;
            let bytes = piece.get(..length).unwrap_or_default();
            let sent = if bytes.is_empty() {
                input.finish().await
            } else {
                input.write(Bytes::copy_from_slice(bytes)).await
            };
            // The other direction learns the reason of a lost connection.
            if bytes.is_empty() || sent.is_err() {
                return pending::<Result<()>>().await;
            }
        }
    };
    let down = async {
        loop {
            match output.next().await? {
                TunnelEvent::Bytes(bytes) => {
                    writer.write_all(&bytes).await?;
                    writer.flush().await?;
                }
                TunnelEvent::End if until == Until::PortEnds => return Ok(()),
                // A reader that is gone needs no end.
                TunnelEvent::End => drop(writer.shutdown().await),
                TunnelEvent::Failed(words) => bail!(words),
                _ => return Ok(()),
            }
        }
    };
    tokio::select! {
        end = up => end,
        end = down => end,
    }
}
