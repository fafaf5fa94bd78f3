//! Connections to the ports of instances. A port inside is reached through a channel of SSH, so that
//! servers which listen on a loopback address are reached too.
//!
//! SSH connections are kept for a while. russh returns the window of a channel on receipt. So a channel
//! whose bytes are not taken holds up all channels of its connection. Users of ports therefore have
//! connections of their own, and so have the channels of one user, up to a number. Beyond it they share some.

use super::TerminalEnd;
use super::dial::Allowance;
use super::login::{Connection, SshTarget};
use super::stream::{PortReader, PortWriter, of_channel, of_tcp};
use parking_lot::Mutex;
use russh::ChannelOpenFailure;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use wharf_domain::ids::{InstanceId, UserId};

/// The most logins of one instance at once. OpenSSH drops some of more than ten.
const LOGINS: usize = 8;
/// The time after which a user of ports takes the connection of one who does not take bytes that have come.
const STALLED: Duration = Duration::from_secs(3);
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
pub struct InstancePorts {
    limits: ConnectionLimits,
    kept: Mutex<HashMap<InstanceId, InstanceConnections>>,
}

/// The most SSH connections.
#[derive(Clone, Copy)]
struct ConnectionLimits {
    of_instance: usize,
    /// Those of one user of the ports of an instance.
    of_user: usize,
}

/// The user of a port, or a network without an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortUser {
    /// The user, or the owner of the port that the network uses.
    pub user: UserId,
    pub network: Option<IpAddr>,
}

#[derive(Default)]
struct InstanceConnections {
    incarnation: u64,
    connections: Vec<Arc<Line>>,
    /// The users of logins under way.
    opening: Vec<PortUser>,
    /// Notified of the end of a login.
    opened: Arc<Notify>,
}

/// A kept connection.
struct Line {
    connection: Connection,
    /// The last user of it alone.
    user: Mutex<PortUser>,
    channels: AtomicUsize,
    idle_since: Mutex<Instant>,
    begun: Instant,
    readers: Mutex<Vec<Arc<AtomicU64>>>,
}

/// A place for a channel on a kept connection.
pub struct Use {
    line: Arc<Line>,
    /// The time since which its reader has bytes, in milliseconds of its connection; [`WAITS`] if it waits for some.
    reader: Arc<AtomicU64>,
}

/// The reader of a channel waits for bytes.
const WAITS: u64 = u64::MAX;

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
        let reader = Arc::new(AtomicU64::new(WAITS));
        line.readers.lock().push(Arc::clone(&reader));
        Self {
            line: Arc::clone(line),
            reader,
        }
    }

    pub fn allowance(&self) -> Allowance {
        self.line.connection.allowance.clone()
    }

    /// The reader of the channel waits for bytes.
    pub fn waits(&self) {
        self.reader.store(WAITS, Ordering::Relaxed);
    }

    /// The reader of the channel has bytes, and must come back for more.
    pub fn has_bytes(&self) {
        let since = u64::try_from(self.line.begun.elapsed().as_millis());
        self.reader
            .store(since.unwrap_or(WAITS - 1), Ordering::Relaxed);
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        *self.line.idle_since.lock() = Instant::now();
        let mut readers = self.line.readers.lock();
        readers.retain(|reader| !Arc::ptr_eq(reader, &self.reader));
        drop(readers);
        self.line.channels.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Line {
    fn is_open(&self) -> bool {
        !self.connection.handle.is_closed()
    }

    fn channels(&self) -> usize {
        self.channels.load(Ordering::Relaxed)
    }

    /// The time for which a reader has not come back for bytes.
    fn stalled(&self) -> Duration {
        let readers = self.readers.lock();
        let since = readers.iter().map(|reader| reader.load(Ordering::Relaxed));
        let since = Duration::from_millis(since.min().unwrap_or(WAITS));
        self.begun.elapsed().saturating_sub(since)
    }
}

impl InstanceConnections {
    fn find(&mut self, incarnation: u64, user: PortUser, limits: ConnectionLimits) -> Found {
        self.connections.retain(|line| line.is_open());
        if self.incarnation != incarnation {
            self.incarnation = incarnation;
            self.connections.clear();
        }
        let is_own = |line: &&Arc<Line>| *line.user.lock() == user;
        let own = self.connections.iter().filter(is_own);
        let least = own.min_by_key(|line| line.channels()).cloned();
        let is_opening = self.opening.contains(&user);
        let opening = self.opening.iter().filter(|opening| **opening == user);
        let of_user = self.connections.iter().filter(is_own).count() + opening.count();
        let may_have_another = of_user < limits.of_user;
        let mut others = self.connections.iter().filter(|line| !is_own(line));
        let unused = match &least {
            Some(line) if line.channels() == 0 => Some(line),
            _ if may_have_another => others.find(|line| line.channels() == 0),
            _ => None,
        };
        if let Some(line) = unused {
            *line.user.lock() = user;
            return Found::Use(Use::of(line));
        }
        let wait = Found::Wait(Arc::clone(&self.opened));
        if may_have_another {
            if self.opening.len() >= LOGINS {
                return wait;
            }
            let has_room = self.connections.len() + self.opening.len() < limits.of_instance;
            if has_room || (of_user == 0 && self.end_stalled()) {
                self.opening.push(user);
                return Found::Login;
            }
        }
        let least = least.or_else(|| {
            let all = self.connections.iter().filter(|_| !is_opening);
            all.min_by_key(|line| line.channels()).cloned()
        });
        least.map_or(wait, |line| Found::Use(Use::of(&line)))
    }

    /// Ends the connection that was held up for longest. False if none was.
    fn end_stalled(&mut self) -> bool {
        let lines = self.connections.iter().enumerate();
        let longest = lines.max_by_key(|(_, line)| line.stalled());
        match longest {
            Some((at, line)) if line.stalled() >= STALLED => {
                line.connection.hang_up();
                self.connections.swap_remove(at);
                true
            }
            _ => false,
        }
    }
}

/// A login under way.
struct Opening<'p> {
    ports: &'p InstancePorts,
    instance: InstanceId,
    user: PortUser,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(kept) = self.ports.kept.lock().get_mut(&self.instance) {
            let at = kept.opening.iter().position(|user| *user == self.user);
            if let Some(at) = at {
                kept.opening.swap_remove(at);
            }
            kept.opened.notify_waiters();
        }
    }
}

impl InstancePorts {
    /// The ports of tunnels, which the owner of an instance alone opens.
    pub fn of_tunnels() -> Self {
        Self::new(ConnectionLimits {
            of_instance: 8,
            of_user: 8,
        })
    }

    /// The ports of pages, whose visitors are many. An SSH connection costs the instance some MiB.
    pub fn of_pages() -> Self {
        Self::new(ConnectionLimits {
            of_instance: 16,
            of_user: 2,
        })
    }

    fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits,
            kept: Mutex::default(),
        }
    }

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

    /// Connects to a port inside an instance for a user, with this login unless a connection is kept.
    pub async fn open(
        &self,
        id: InstanceId,
        incarnation: u64,
        user: PortUser,
        port: u16,
        target: SshTarget,
    ) -> Result<(PortReader, PortWriter), PortUnreached> {
        let mut target = Some(target);
        // A kept connection may have broken since its last use. A new one is tried once.
        while target.is_some() {
            let used = self.place(id, incarnation, user, &mut target).await?;
            match channel(&used.line, port).await {
                Ok(opened) => return Ok(opened),
                Err(Some(refused)) => return Err(refused),
                Err(None) => self.forget(id, &used.line),
            }
        }
        Err(PortUnreached::NoLogin(TerminalEnd::Lost))
    }

    /// A place on a connection that has no channel, or on a new one if there can be a further one.
    async fn place(
        &self,
        id: InstanceId,
        incarnation: u64,
        user: PortUser,
        login: &mut Option<SshTarget>,
    ) -> Result<Use, PortUnreached> {
        loop {
            let found = {
                let mut all = self.kept.lock();
                let kept = all.entry(id).or_default();
                kept.find(incarnation, user, self.limits)
            };
            match found {
                Found::Use(used) => return Ok(used),
                Found::Login => {
                    let opening = Opening {
                        ports: self,
                        instance: id,
                        user,
                    };
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
            user: Mutex::new(opening.user),
            channels: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            begun: Instant::now(),
            readers: Mutex::default(),
        });
        let used = Use::of(&line);
        let mut all = self.kept.lock();
        if let Some(kept) = all
            .get_mut(&opening.instance)
            .filter(|k| k.incarnation == incarnation)
        {
            kept.connections.push(line);
        }
        drop(all);
        drop(opening);
        Ok(used)
    }

    fn forget(&self, id: InstanceId, line: &Arc<Line>) {
        if let Some(kept) = self.kept.lock().get_mut(&id) {
            kept.connections.retain(|kept| !Arc::ptr_eq(kept, line));
        }
    }

    /// Drops the connections that were without a channel for long, and those of instances that do not
    /// run with this incarnation any more.
    pub fn sweep(&self, mut runs: impl FnMut(InstanceId, u64) -> bool) {
        // Keepalives are answered, which is no sign of use.
        self.kept.lock().retain(|id, kept| {
            if !runs(*id, kept.incarnation) {
                kept.connections.clear();
            }
            kept.connections.retain(|line| {
                line.connection.allowance.renew_to(ALLOWANCE);
                let is_used = line.channels() > 0 || line.idle_since.lock().elapsed() < IDLE;
                line.is_open() && is_used
            });
            !kept.connections.is_empty() || !kept.opening.is_empty()
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
        let handle = &used.line.connection.handle;
        let opened = handle.channel_open_direct_tcpip(address, port.into(), LOOPBACK[0], 0);
        opened.await.map(|channel| of_channel(channel, used))
    });
    let opened = opening.await;
    opened.unwrap_or(Err(russh::Error::Disconnect))
}
