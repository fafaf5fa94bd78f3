//! `wharf tunnel`: a port of an instance on stdin and stdout.

use crate::carry::{Until, carry};
use crate::config_ssh::DOMAIN;
use crate::connection::Connection;
use crate::known_hosts;
use crate::names;
use anyhow::Result;
use clap::Args;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use wharf_client::Client;

/// Connect stdin and stdout with a port of an instance, through the server
#[derive(Args)]
pub struct TunnelCommand {
    /// Name or UUID of the instance; NAME.wharf also notes its host keys for OpenSSH
    #[arg(add = names::instances())]
    name: String,
    /// Port inside the instance
    #[arg(default_value_t = 22)]
    port: u16,
    /// Use stdin and stdout, as OpenSSH expects of a ProxyCommand
    #[arg(long, required = true)]
    stdio: bool,
    #[command(flatten)]
    connection: Connection,
}

impl TunnelCommand {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let suffix = format!(".{DOMAIN}");
        let tunnel = match self.name.strip_suffix(&suffix) {
            None => client.open_tunnel(&self.name, self.port).await?,
            // OpenSSH reads the keys once it has heard the server.
            Some(name) => {
                let noted = note_keys(&client, name, &self.name);
                let opened = async { Ok(client.open_tunnel(name, self.port).await?) };
                tokio::try_join!(opened, noted)?.0
            }
        };
        carry(tunnel, stdin()?, stdout()?, Until::PortEnds).await
    }
}

/// Notes the host keys that the server knows of an instance, in place of those of an earlier instance
/// with its name.
async fn note_keys(client: &Client, name: &str, alias: &str) -> Result<()> {
    let keys = known_hosts::of(client, name).await?;
    known_hosts::replace(alias, keys)
}

/// The read side of stdin. Pipes and sockets are read without a thread, which each byte would wait for.
fn stdin() -> Result<Box<dyn AsyncRead + Unpin>> {
    let (kind, own) = opened(std::io::stdin().as_fd().try_clone_to_owned()?)?;
    Ok(match kind {
        StreamKind::Pipe => Box::new(pipe::Receiver::from_owned_fd(own)?),
        StreamKind::Socket => Box::new(socket(own)?),
        StreamKind::Other => Box::new(tokio::io::stdin()),
    })
}

fn stdout() -> Result<Box<dyn AsyncWrite + Unpin>> {
    let (kind, own) = opened(std::io::stdout().as_fd().try_clone_to_owned()?)?;
    Ok(match kind {
        StreamKind::Pipe => Box::new(pipe::Sender::from_owned_fd(own)?),
        StreamKind::Socket => Box::new(socket(own)?),
        StreamKind::Other => Box::new(tokio::io::stdout()),
    })
}

enum StreamKind {
    Pipe,
    Socket,
    Other,
}

fn opened(own: OwnedFd) -> Result<(StreamKind, OwnedFd)> {
    let file = File::from(own);
    let kind = file.metadata()?.file_type();
    let kind = if kind.is_fifo() {
        StreamKind::Pipe
    } else if kind.is_socket() {
        StreamKind::Socket
    } else {
        StreamKind::Other
    };
    Ok((kind, file.into()))
}

fn socket(own: OwnedFd) -> Result<UnixStream> {
    let stream = StdUnixStream::from(own);
    stream.set_nonblocking(true)?;
    Ok(UnixStream::from_std(stream)?)
}
