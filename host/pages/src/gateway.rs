//! The gateway: decides about a request, and passes it to the page and the response back.

use crate::address::{Addresses, authority};
use crate::answer::{self, Answer};
use crate::body::{Download, OwnBody, Upload};
use crate::connection::{self, Connection, Running, Socket};
use crate::cookie::{self, Cookies};
use crate::directory::{
    Directory, NoVisitor, Page, PageClient, PageState, Right, Upstream, Visitor,
};
use crate::entrance::{self, Entrance};
use crate::exchange::{self, Exchanges, Held, PageLimits};
use crate::from_page::FromPage;
use crate::provenance::Provenance;
use crate::report::Report;
use crate::ticket::{PageInBrowser, Tickets};
use crate::to_page::ToPage;
use crate::upstream::{Lease, Pool};
use crate::web_socket::Opening;
use crate::wire::LargeHeads;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, Uri, Version};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioExecutor;
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use wharf_domain::secret::SecretText;

/// The largest head of a request that a page gets, in bytes of its names and values.
const MAX_HEAD: usize = 64 * 1024;

/// The paths by which an authority of certificates asks for the owner of a host, which is the operator.
const CHALLENGES: [&str; 2] = ["/.well-known/acme-challenge", "/.well-known/pki-validation"];

/// The settings of the gateway.
pub struct GatewaySettings {
    pub addresses: Addresses,
    /// The address of the console's sign-in for pages.
    pub sign_in: String,
    pub limits: PageLimits,
    pub cookie_key: CookieKey,
    /// Returns the address of the client of a request: the peer, or the one that a trusted proxy names.
    pub client: ClientAddress,
}

/// Returns the address of a client from that of the peer and the headers of its request.
pub type ClientAddress = Box<dyn Fn(IpAddr, &HeaderMap) -> IpAddr + Send + Sync>;

/// Returns the present key of the cookies. Another one ends all visits.
pub type CookieKey = Box<dyn Fn() -> [u8; 32] + Send + Sync>;

/// Serves the pages of instances.
pub struct Gateway {
    directory: Arc<dyn Directory>,
    addresses: Addresses,
    client: ClientAddress,
    entrance: Entrance,
    exchanges: Arc<Exchanges>,
    pool: Arc<Pool>,
    pub(crate) large_heads: Arc<LargeHeads>,
    pub(crate) builder: Builder<TokioExecutor>,
}

pub(crate) type ResponseBody = Either<OwnBody, Download>;

/// A visitor with a right.
struct Admitted {
    visitor: Visitor,
    right: Right,
    by_password: bool,
}

/// A request that a page may get.
struct Passing {
    parts: Parts,
    body: Incoming,
    upgrade: Option<(Opening, hyper::upgrade::OnUpgrade)>,
    host: String,
    address: IpAddr,
    client: PageClient,
    by_password: bool,
}

impl Gateway {
    pub fn new(directory: Arc<dyn Directory>, settings: GatewaySettings) -> Self {
        Self {
            directory,
            addresses: settings.addresses,
            client: settings.client,
            entrance: Entrance {
                cookies: Cookies::new(settings.cookie_key),
                tickets: Tickets::default(),
                sign_in: settings.sign_in,
            },
            exchanges: Exchanges::new(settings.limits),
            pool: Arc::default(),
            large_heads: Arc::default(),
            builder: connection::builder(),
        }
    }

    /// Returns an address that lets a visitor in to a page in a browser. It goes on to a path of the page, and works
    /// once and for a short time. There is none if a visitor has asked for too many.
    pub fn entrance(
        &self,
        visitor: Visitor,
        at: PageInBrowser<'_>,
        to: &str,
    ) -> Option<SecretText> {
        let tickets = &self.entrance.tickets;
        let ticket = tickets.issue(visitor, at, Instant::now())?;
        Some(self.entrance.url(&self.addresses, at.label, &ticket, to))
    }

    /// Ends exchanges whose right, session or instance is gone, until `stopped` turns true.
    pub async fn watch(&self, mut stopped: watch::Receiver<bool>) {
        let mut look = tokio::time::interval(exchange::LOOK_EVERY / 2);
        let mut is_odd = false;
        loop {
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => break,
                _ = look.tick() => {}
            }
            self.pool.close_old();
            is_odd = !is_odd;
            if is_odd {
                self.exchanges.look(&*self.directory);
            }
        }
    }

    /// Answers a request. The response is the page's or the gateway's own.
    pub(crate) async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> Result<Response<ResponseBody>, Infallible> {
        let running = Running::begin(&connection);
        let mut report = Report {
            directory: &*self.directory,
            begun: Instant::now(),
            method: request.method().clone(),
            client: (self.client)(connection.peer, request.headers()),
            label: None,
            user: None,
            status: None,
        };
        let is_html = provenance(request.method(), request.headers(), false).accepts_html();
        let response = match self
            .decide(request, &connection, running, &mut report)
            .await
        {
            Ok(response) => response,
            Err(answer) => {
                let own = |body| Either::Left(OwnBody::new(body, &connection));
                answer.respond(is_html).map(own)
            }
        };
        report.status = Some(response.status().as_u16());
        Ok(response)
    }

    async fn decide(
        &self,
        mut request: Request<Incoming>,
        connection: &Arc<Connection>,
        running: Running,
        report: &mut Report<'_>,
    ) -> Result<Response<ResponseBody>, Answer> {
        if head_size(&request) > MAX_HEAD {
            let cookies = cookie::removals(request.headers(), &self.addresses.domain);
            return Err(Answer::Head { cookies });
        }
        let host = authority(&request).ok_or(Answer::Host)?.to_owned();
        let label = self.addresses.label(&host).ok_or(Answer::Elsewhere)?;
        report.label = Some(label.clone());
        if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
            return Err(Answer::Method);
        }
        let path = request.uri().path();
        if !path.starts_with('/') {
            return Err(Answer::Malformed);
        }
        if CHALLENGES
            .iter()
            .any(|challenge| path.starts_with(challenge))
        {
            return Err(Answer::NotFound);
        }
        let opening = Opening::of(&request).map_err(|_| Answer::Malformed)?;
        let asked = provenance(request.method(), request.headers(), opening.is_some());
        if asked.is_foreign(&self.addresses.origin(&label)) {
            return Err(Answer::Foreign);
        }
        if path.starts_with(entrance::OWN) {
            return Err(match *request.method() {
                Method::GET => self
                    .entrance
                    .enter(&label, request.uri(), request.headers()),
                _ => Answer::Method,
            });
        }
        let client = report.client;
        let page = self.directory.page(&label);
        let admitted = match &page {
            Some(page) => self.admit(page, &asked, client)?,
            None => {
                self.refuse_password(&label, &asked, client)?;
                None
            }
        };
        // An unknown label is answered like one that the visitor has no right to.
        let (Some(page), Some(admitted)) = (page, admitted) else {
            return Err(self.sign_in(&label, &asked, request.uri()));
        };
        if admitted.visitor != Visitor::Anyone {
            (connection.welcome)();
        }
        let is_session = matches!(admitted.visitor, Visitor::Session(_));
        report.user = is_session.then_some(admitted.right.user);
        let upstream = self.upstream(&page, &admitted, request.uri())?;
        // HTTP/2 has other exchanges on the connection, which go on.
        let is_alone = request.version() != Version::HTTP_2;
        let closing = is_alone.then(|| Arc::clone(&connection.closing));
        let page_client = PageClient {
            user: admitted.right.user,
            address: (admitted.visitor == Visitor::Anyone).then_some(client),
        };
        let Admitted {
            visitor,
            right,
            by_password,
        } = admitted;
        let held = (self.exchanges).begin(&page, &upstream, visitor, right, closing);
        let held = held.ok_or(Answer::Busy)?.with(running);
        let upgrade = opening.map(|opening| (opening, hyper::upgrade::on(&mut request)));
        let (parts, body) = request.into_parts();
        let passing = Passing {
            parts,
            body,
            upgrade,
            host,
            address: client,
            client: page_client,
            by_password,
        };
        self.pass(passing, &page, &upstream, held, connection).await
    }

    /// Returns the visitor of a request, if one with a right is there.
    fn admit(
        &self,
        page: &Page,
        asked: &Provenance<'_>,
        client: IpAddr,
    ) -> Result<Option<Admitted>, Answer> {
        let with = |visitor: Visitor, by_password| {
            let right = self.directory.right(page, &visitor)?;
            Some(Admitted {
                visitor,
                right,
                by_password,
            })
        };
        if asked.may_use_cookie() {
            let mut visitors = self.entrance.visitors(&page.label, asked.headers);
            if let Some(admitted) = visitors.find_map(|visitor| with(visitor, false)) {
                return Ok(Some(admitted));
            }
        }
        if page.is_public {
            return Ok(with(Visitor::Anyone, false));
        }
        let Some(password) = password(asked.headers) else {
            return Ok(None);
        };
        match self
            .directory
            .visitor_with_password(page, &password, client)
        {
            Ok(visitor) => Ok(with(visitor, true)),
            Err(NoVisitor::Wrong) => Ok(None),
            Err(NoVisitor::TooMany) => Err(Answer::TooManyAttempts),
        }
    }

    /// Counts a password for a label without a page.
    fn refuse_password(
        &self,
        label: &str,
        asked: &Provenance<'_>,
        client: IpAddr,
    ) -> Result<(), Answer> {
        let refused =
            password(asked.headers).map(|_| self.directory.refuse_password(label, client));
        match refused {
            Some(NoVisitor::TooMany) => Err(Answer::TooManyAttempts),
            Some(NoVisitor::Wrong) | None => Ok(()),
        }
    }

    /// The answer to a visitor without a right.
    fn sign_in(&self, label: &str, asked: &Provenance<'_>, uri: &Uri) -> Answer {
        let unauthorized = Answer::Unauthorized {
            // A browser would ask for a password in the middle of a page.
            may_use_password: !asked.is_browser(),
        };
        if asked.is_navigation() {
            let sent = self.entrance.ask(label, uri, asked.headers);
            sent.unwrap_or(unauthorized)
        } else {
            unauthorized
        }
    }

    /// Returns the server of a page.
    fn upstream(&self, page: &Page, admitted: &Admitted, uri: &Uri) -> Result<Upstream, Answer> {
        if let Some(label) = &page.moved_to {
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            return Err(Answer::Redirect {
                to: format!("{}{path}", self.addresses.origin(label)),
                cookies: Vec::new(),
            });
        }
        match &page.state {
            PageState::Running(upstream) => Ok(upstream.clone()),
            PageState::Starting => Err(Answer::Starting),
            PageState::Stopped => {
                let console = || self.directory.console_url(page.instance);
                Err(Answer::Stopped {
                    console: admitted.right.is_owner.then(console),
                })
            }
        }
    }

    /// Passes a request to its page, and the response back.
    async fn pass(
        &self,
        passing: Passing,
        page: &Page,
        upstream: &Upstream,
        held: Held,
        connection: &Connection,
    ) -> Result<Response<ResponseBody>, Answer> {
        let to_page = ToPage {
            host: &passing.host,
            scheme: self.addresses.scheme(),
            client: passing.address,
            credential: upstream.credential.as_ref(),
            authorization_is_spent: passing.by_password,
            is_socket: passing.upgrade.is_some(),
        };
        let headers = to_page
            .rewrite(&passing.parts.headers)
            .ok_or(Answer::Malformed)?;
        let body = Upload::new(passing.body, held.exchange());
        let is_alone = passing.parts.version != Version::HTTP_2;
        let method = passing.parts.method.clone();
        let is_repeatable = matches!(method, Method::GET | Method::HEAD) && body.is_none();
        let may_be_kept = is_repeatable && passing.upgrade.is_none();
        let path = passing.parts.uri.path_and_query().cloned();
        let uri = path.map(Uri::from).ok_or(Answer::Malformed)?;
        let request = |body| {
            let mut request = Request::new(body);
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            request
        };
        let mut sent = None;
        // A server may close a kept connection at any time, so only requests that may be repeated go there.
        if may_be_kept && let Some(lease) = self.pool.kept(upstream, &passing.client) {
            sent = send(lease, request(Upload::none()), &held).await.ok();
        }
        let (mut response, lease) = match sent {
            Some(sent) => sent,
            None => {
                let opened = self
                    .pool
                    .open(&*self.directory, upstream, &passing.client)
                    .await;
                let lease = opened.map_err(|error| {
                    tracing::debug!("a page cannot be reached: {error}");
                    Answer::Unreachable
                })?;
                send(lease, request(body), &held).await?
            }
        };
        let is_socket = answer::is_upgrade(&response);
        let from_page = FromPage {
            is_https: self.addresses.is_https,
            is_public: page.is_public,
            is_bare: method == Method::HEAD || answer::is_unmodified(&response),
            is_socket,
        };
        let headers = from_page.rewrite(response.headers());
        let status = response.status();
        let body = if is_socket {
            let (opening, visitor) = passing.upgrade.ok_or(Answer::Broken)?;
            if !opening.is_accepted_by(&response) {
                return Err(Answer::Broken);
            }
            let page = hyper::upgrade::on(&mut response);
            *connection.socket.lock() = Some(Socket {
                visitor,
                page,
                held,
                lease,
            });
            Either::Left(OwnBody::new(Full::default(), connection))
        } else {
            // The streams of HTTP/2 have bounds of their own.
            let wire = is_alone.then(|| Arc::clone(&connection.wire));
            Either::Right(Download::new(response.into_body(), held, lease, wire))
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// Sends a request on a connection, and waits for the head of the response.
async fn send(
    mut lease: Lease,
    request: Request<Upload>,
    held: &Held,
) -> Result<(Response<Incoming>, Lease), Answer> {
    if !held.exchange().drive(lease.connection.driver()) {
        return Err(Answer::Unreachable);
    }
    let response = lease.connection.sender.send_request(request).await;
    let response = response.map_err(|error| {
        tracing::debug!("a page gave no response: {error}");
        if error.is_parse() {
            Answer::Broken
        } else {
            Answer::Unreachable
        }
    })?;
    Ok((response, lease))
}

fn provenance<'a>(method: &'a Method, headers: &'a HeaderMap, is_socket: bool) -> Provenance<'a> {
    Provenance {
        method,
        headers,
        is_socket,
    }
}

/// The size of a head in bytes.
fn head_size<B>(request: &Request<B>) -> usize {
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + 4);
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    headers.sum::<usize>() + target
}

/// The password of a request with HTTP Basic.
fn password(headers: &HeaderMap) -> Option<SecretText> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?.to_str().ok()?, values.next()) else {
        return None;
    };
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let decoded = String::from_utf8(decoded).ok()?;
    let (_, password) = decoded.split_once(':')?;
    scheme
        .eq_ignore_ascii_case("basic")
        .then(|| SecretText::new(password))
}
