//! Connections to the ports of instances. A port inside is reached through a channel of SSH, so that
//! servers which listen on a loopback address are reached too.
//!
//! SSH connections are kept for a while. russh returns the window of a channel on receipt. So a channel
//! whose bytes are not taken holds up all channels of its connection. A further tunnel therefore gets a
//! connection of its own, up to a number, and shares one beyond it.

use super::TerminalEnd;
use super::dial::Allowance;
use super::login::{Connection, SshTarget};
use super::stream::{PortReader, PortWriter, of_channel, of_tcp};
use parking_lot::Mutex;
use russh::ChannelOpenFailure;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use wharf_domain::ids::InstanceId;

/// The most kept SSH connections of one instance. OpenSSH drops some of more than ten that log in at once.
const CONNECTIONS: usize = 8;
/// Time for which a connection without channels is kept.
const IDLE: Duration = Duration::from_secs(60);
/// Time to connect, and to log in.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that the server of a kept connection may send until the next sign of use: the waiting packets of
/// all channels of a user.
pub const ALLOWANCE: u64 = 16 * 1024 * 1024;
/// The most channels of one connection, with those that the SSH server has not answered yet.
const CHANNELS: usize = 256;
/// The addresses of a server inside.
const LOOPBACK: [&str; 2] = ["127.0.0.1", "::1"];

/// The SSH connections that are kept.
#[derive(Default)]
pub struct InstancePorts(Mutex<HashMap<InstanceId, InstanceConnections>>);

#[derive(Default)]
struct InstanceConnections {
    incarnation: u64,
    connections: Vec<Arc<Line>>,
    /// Logins under way.
    opening: usize,
    /// Notified of the end of a login.
    opened: Arc<Notify>,
}

/// A kept connection.
struct Line {
    connection: Connection,
    channels: AtomicUsize,
    idle_since: Mutex<Instant>,
}

/// A place for a channel on a kept connection.
pub struct Use(Arc<Line>);

/// The reason for which a port was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortUnreached {
    /// No server listens at the port.
    Closed,
    /// The SSH server refuses to pass on connections.
    Forbidden,
    /// The SSH server opened no channel for another reason.
    Refused,
    /// There was no login.
    NoLogin(TerminalEnd),
}

enum Found {
    Use(Use),
    Login,
    Wait(Arc<Notify>),
}

impl Use {
    fn of(line: &Arc<Line>) -> Self {
        line.channels.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(line))
    }

    pub fn allowance(&self) -> Allowance {
        self.0.connection.allowance.clone()
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        *self.0.idle_since.lock() = Instant::now();
        self.0.channels.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Line {
    fn is_open(&self) -> bool {
        !self.connection.handle.is_closed()
    }

    fn channels(&self) -> usize {
        self.channels.load(Ordering::Relaxed)
    }
}

impl InstanceConnections {
    fn find(&mut self, incarnation: u64) -> Found {
        self.connections.retain(|line| line.is_open());
        if self.incarnation != incarnation {
            self.incarnation = incarnation;
            self.connections.clear();
        }
        let least = self.connections.iter().min_by_key(|line| line.channels());
        let is_full = self.connections.len() + self.opening >= CONNECTIONS;
        match least {
            Some(line) if is_full || line.channels() == 0 => Found::Use(Use::of(line)),
            _ if !is_full => {
                self.opening += 1;
                Found::Login
            }
            _ => Found::Wait(Arc::clone(&self.opened)),
        }
    }
}

/// A login under way.
struct Opening<'p>(&'p InstancePorts, InstanceId);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(kept) = self.0.0.lock().get_mut(&self.1) {
            kept.opening = kept.opening.saturating_sub(1);
            kept.opened.notify_waiters();
        }
    }
}

impl InstancePorts {
    /// Connects to the SSH port of an instance itself.
    pub async fn open_ssh(
        host: &str,
        port: u16,
    ) -> Result<(PortReader, PortWriter), PortUnreached> {
        let connect = timeout(OPEN_TIMEOUT, TcpStream::connect((host, port)));
        match connect.await {
            Ok(Ok(stream)) if stream.set_nodelay(true).is_ok() => Ok(of_tcp(stream)),
            Ok(Err(error)) => {
                tracing::debug!(%error, "the SSH port of an instance takes no connection");
                Err(PortUnreached::NoLogin(TerminalEnd::Unreachable))
            }
            Ok(Ok(_)) | Err(_) => Err(PortUnreached::NoLogin(TerminalEnd::Unreachable)),
        }
    }

    /// Connects to a port inside an instance, with this login unless a connection is kept.
    pub async fn open(
        &self,
        (id, incarnation): (InstanceId, u64),
        port: u16,
        target: SshTarget,
    ) -> Result<(PortReader, PortWriter), PortUnreached> {
        let mut target = Some(target);
        // A kept connection may have broken since its last use. A new one is tried once.
        while target.is_some() {
            let used = self.place(id, incarnation, &mut target).await?;
            match channel(&used.0, port).await {
                Ok(opened) => return Ok(opened),
                Err(Some(refused)) => return Err(refused),
                Err(None) => self.forget(id, &used.0),
            }
        }
        Err(PortUnreached::NoLogin(TerminalEnd::Lost))
    }

    /// A place on a connection that has no channel, or on a new one if there can be a further one.
    async fn place(
        &self,
        id: InstanceId,
        incarnation: u64,
        login: &mut Option<SshTarget>,
    ) -> Result<Use, PortUnreached> {
        loop {
            let found = self.0.lock().entry(id).or_default().find(incarnation);
            match found {
                Found::Use(used) => return Ok(used),
                Found::Login => {
                    let opening = Opening(self, id);
                    let target = login
                        .take()
                        .ok_or(PortUnreached::NoLogin(TerminalEnd::Lost))?;
                    return self.log_in(opening, incarnation, target).await;
                }
                Found::Wait(opened) => {
                    // The end of a login that came before this wait is seen after its time.
                    let _ = timeout(Duration::from_millis(50), opened.notified()).await;
                }
            }
        }
    }

    async fn log_in(
        &self,
        opening: Opening<'_>,
        incarnation: u64,
        target: SshTarget,
    ) -> Result<Use, PortUnreached> {
        let connection = timeout(OPEN_TIMEOUT, Connection::open(target)).await;
        let connection = connection
            .unwrap_or(Err(TerminalEnd::Unreachable))
            .map_err(PortUnreached::NoLogin)?;
        connection.allowance.renew_to(ALLOWANCE);
        let line = Arc::new(Line {
            connection,
            channels: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
        });
        let used = Use::of(&line);
        let mut all = self.0.lock();
        if let Some(kept) = all
            .get_mut(&opening.1)
            .filter(|k| k.incarnation == incarnation)
        {
            kept.connections.push(line);
        }
        drop(all);
        drop(opening);
        Ok(used)
    }

    fn forget(&self, id: InstanceId, line: &Arc<Line>) {
        if let Some(kept) = self.0.lock().get_mut(&id) {
            kept.connections.retain(|kept| !Arc::ptr_eq(kept, line));
        }
    }

    /// Drops the connections that were without a channel for long, and those of instances that do not
    /// run with this incarnation any more.
    pub fn sweep(&self, mut runs: impl FnMut(InstanceId, u64) -> bool) {
        // Keepalives are answered, which is no sign of use.
        self.0.lock().retain(|id, kept| {
            if !runs(*id, kept.incarnation) {
                kept.connections.clear();
            }
            kept.connections.retain(|line| {
                line.connection.allowance.renew_to(ALLOWANCE);
                let is_used = line.channels() > 0 || line.idle_since.lock().elapsed() < IDLE;
                line.is_open() && is_used
            });
            !kept.connections.is_empty() || kept.opening > 0
        });
    }
}

/// Opens a channel; an error without a reason is that of a broken connection.
async fn channel(
    line: &Arc<Line>,
    port: u16,
) -> Result<(PortReader, PortWriter), Option<PortUnreached>> {
    let mut refused = PortUnreached::Closed;
    for address in LOOPBACK {
        if line.channels() > CHANNELS {
            return Err(Some(PortUnreached::Refused));
        }
        let opened = channel_to(Use::of(line), address, port);
        refused = match timeout(OPEN_TIMEOUT, opened).await {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(russh::Error::ChannelOpenFailure(reason))) => match reason {
                ChannelOpenFailure::ConnectFailed => PortUnreached::Closed,
                ChannelOpenFailure::AdministrativelyProhibited => {
                    return Err(Some(PortUnreached::Forbidden));
                }
                _ => return Err(Some(PortUnreached::Refused)),
            },
            Ok(Err(_)) => return Err(None),
            // Another channel of the connection may hold it up.
            Err(_) => return Err(Some(PortUnreached::Refused)),
        };
    }
    Err(Some(refused))
}

/// Opens a channel in a task of its own. One that opens after its requester has gone is dropped in it, which
/// closes the channel.
async fn channel_to(
    used: Use,
    address: &'static str,
    port: u16,
) -> Result<(PortReader, PortWriter), russh::Error> {
    let opening = tokio::spawn(async move {
        let handle = &used.0.connection.handle;
        let opened = handle.channel_open_direct_tcpip(address, port.into(), LOOPBACK[0], 0);
        opened.await.map(|channel| of_channel(channel, used))
    });
    let opened = opening.await;
    opened.unwrap_or(Err(russh::Error::Disconnect))
}
