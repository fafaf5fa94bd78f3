//! `wharf forward`: ports of an instance on this computer.

use crate::carry::{Until, carry};
use crate::connection::Connection;
use crate::failure::{Failure, failure_message};
use crate::names;
use crate::output::note;
use anyhow::{Context, Result};
use clap::Args;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;
use wharf_client::Client;

/// The pause after a connection that was not accepted.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Make ports of an instance reachable on this computer, through the server; Ctrl-C ends it
#[derive(Args)]
pub struct Forward {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// Port inside the instance, after the port of 127.0.0.1 if that differs
    #[arg(value_name = "[LOCAL:]PORT", required = true, value_parser = ports)]
    ports: Vec<Ports>,
    #[command(flatten)]
    connection: Connection,
}

/// A port of this computer, and the one that it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ports {
    local: u16,
    inside: u16,
}

fn ports(text: &str) -> Result<Ports, &'static str> {
    let (local, inside) = text.split_once(':').unwrap_or((text, text));
    let port = |text: &str| text.parse().ok().filter(|port| *port > 0);
    match (port(local), port(inside)) {
        (Some(local), Some(inside)) => Ok(Ports { local, inside }),
        _ => Err("must be a port from 1 to 65535, or two such as 8080:80"),
    }
}

impl Forward {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        client.check_tunnel(&self.name).await?;
        let mut listeners = JoinSet::new();
        for ports in self.ports {
            let listener = listen(ports.local).await?;
            note(&format!(
                "127.0.0.1:{} leads to port {} of {}.",
                ports.local, ports.inside, self.name
            ));
            listeners.spawn(serve(
                listener,
                client.clone(),
                self.name.clone(),
                ports.inside,
            ));
        }
        // Each listener goes on for ever, so the end of one is a failure.
        if let Some(ended) = listeners.join_next().await {
            ended.context("a port of this computer is not served any more")?;
        }
        Ok(())
    }
}

async fn listen(port: u16) -> Result<TcpListener> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let message = format!(
                "port {port} of this computer is in use; give another one, such as {}:{port}",
                port.wrapping_add(10_000).max(1024)
            );
            Err(Failure::Usage(message).into())
        }
        bound => bound.with_context(|| format!("port {port} of this computer")),
    }
}

/// Serves the connections to one port.
async fn serve(listener: TcpListener, client: Client, name: String, port: u16) {
    let mut connections = JoinSet::new();
    let mut noted = None;
    // A page that is loaded again and again says it once.
    let mut tell = |failure: Option<String>| {
        if failure != noted
            && let Some(failure) = &failure
        {
            note(&format!("port {port}: {failure}"));
        }
        noted = failure;
    };
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (client, name) = (client.clone(), name.clone());
                    connections.spawn(async move { through(stream, &client, &name, port).await });
                }
                // This computer may have too many open files.
                Err(error) => {
                    tell(Some(format!("cannot accept connections: {error}")));
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = connections.join_next() => tell(match ended {
                Ok(Err(error)) => failure_message(&error),
                _ => None,
            }),
        }
    }
}

async fn through(mut stream: TcpStream, client: &Client, name: &str, port: u16) -> Result<()> {
    stream.set_nodelay(true)?;
    let tunnel = client.open_tunnel(name, port).await?;
    let (reader, writer) = stream.split();
    carry(tunnel, reader, writer, Until::BothEnd).await
}

#[cfg(test)]
mod tests {
    use super::{Ports, ports};

    #[test]
    fn a_port_may_have_another_one_on_this_computer() {
        let of = |local, inside| Ok(Ports { local, inside });
        assert_eq!(ports("8888"), of(8888, 8888));
        assert_eq!(ports("8080:80"), of(8080, 80));
        for wrong in ["", "0", "80:", ":80", "80:0", "80:81:82", "65536", "http"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
    }
}
