//! The gateway's questions to Wharf: pages by their labels, and the rights of visitors.

use http::Method;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::secret::SecretText;

/// Answers the gateway's questions. All but [`connect`](Self::connect) are asked for each request, so they
/// must not wait. The gateway asks again twice a second for each open exchange. It ends an exchange whose
/// page has changed or whose visitor has lost the right.
pub trait Directory: Send + Sync + 'static {
    /// Returns the page with a label, which is in lower case; none if no living instance has it.
    fn page(&self, label: &str) -> Option<Page>;

    /// Returns the right of a visitor to see a page, if there is one.
    fn right(&self, page: &Page, visitor: &Visitor) -> Option<Right>;

    /// Returns the visitor with the password of a page's instance. The attempt counts for the client's
    /// address and for the page, as attempts to sign in do.
    fn visitor_with_password(
        &self,
        page: &Page,
        password: &SecretText,
        client: IpAddr,
    ) -> Result<Visitor, NoVisitor>;

    /// Whether a visitor still has the right to see a page. A look at an open connection asks it, which is no
    /// use of a session.
    fn keeps_right(&self, page: &Page, visitor: &Visitor) -> bool {
        self.right(page, visitor).is_some()
    }

    /// Returns the refusal of a password for a label without a page. The attempt counts as one for a page does,
    /// so that strangers cannot learn which labels have a page.
    fn refuse_password(&self, label: &str, client: IpAddr) -> NoVisitor;

    /// Returns the address of an instance in the console, where its owner may start it.
    fn console_url(&self, instance: InstanceId) -> String;

    /// Learns of an answer, for the log and the metrics.
    fn answered(&self, _: &Answered<'_>) {}

    /// Opens a connection to the server of a page, which serves one client. The default knows no ports inside
    /// instances.
    fn connect(&self, upstream: &Upstream, _: &PageClient) -> Connecting {
        let address = upstream.address.clone();
        Box::pin(async move {
            match address {
                UpstreamAddress::Node { host, port } => connect_tcp(host, port).await,
                UpstreamAddress::Inside(_) => Err(io::ErrorKind::Unsupported.into()),
            }
        })
    }
}

/// An answer whose head is made. It has no path, which may be a secret.
#[derive(Debug)]
pub struct Answered<'a> {
    pub method: &'a Method,
    /// The label of the host, which may belong to no page; none if the host is no address of a page.
    pub label: Option<&'a str>,
    /// None if the visitor went away before.
    pub status: Option<u16>,
    pub elapsed: Duration,
    pub client: IpAddr,
    /// The user of a session with a right to the page.
    pub user: Option<UserId>,
}

/// Opens a TCP connection to a port of a node.
pub async fn connect_tcp(host: String, port: u16) -> io::Result<Box<dyn PageStream>> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

/// A connection to the server of a page, in the making.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn PageStream>>> + Send>>;

/// A connection to the server of a page.
pub trait PageStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> PageStream for T {}

/// A page: the server in an instance that a label names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The label that was asked for.
    pub label: String,
    /// The label that replaces it, after a rename of the instance. Visitors are sent there.
    pub moved_to: Option<String>,
    pub owner: UserId,
    pub instance: InstanceId,
    pub state: PageState,
    /// Whether everyone may see it. Search engines are told to leave it out.
    pub is_public: bool,
}

/// Whether the server of a page can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageState {
    Running(Upstream),
    /// The instance is being made, started or resized.
    Starting,
    /// The instance is stopped, has failed, or is being deleted.
    Stopped,
}

/// The server of a page. Connections are kept for an equal one only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    pub instance: InstanceId,
    pub incarnation: u64,
    pub address: UpstreamAddress,
    /// The value of `Authorization` that the gateway adds. Without one, that of the visitor is passed on.
    pub credential: Option<SecretText>,
}

/// The address of the server of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamAddress {
    /// A port of the node, by the host name or address that the host dials.
    Node { host: String, port: u16 },
    /// A port on the loopback address inside the instance.
    Inside(u16),
}

/// A visitor, by the thing that gives the right. The gateway's cookie carries it with a MAC.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Visitor {
    /// A session of the console, by its public id.
    Session(String),
    /// The password of the instance, by a digest: another password ends this right.
    Password(String),
    /// Everyone, without a cookie. Only a public page lets them in.
    Anyone,
}

/// A party that connections to pages serve, and no other one: a user, or an address without an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageClient {
    /// The user, or the owner of the page that the address sees.
    pub user: UserId,
    pub address: Option<IpAddr>,
}

/// The right to see a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// The user whose share of connections counts: the visitor, or the owner of the page for visitors
    /// without an account.
    pub user: UserId,
    /// Whether the visitor may start the instance.
    pub is_owner: bool,
}

/// The refusal of a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoVisitor {
    Wrong,
    /// Too many attempts were made.
    TooMany,
}
