//! Wharf's answers to the gateway of pages by name.

use super::attempts::Attempts;
use super::client::network;
use super::metrics::HttpMetrics;
use super::port_stream;
use quick_cache::sync::Cache;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use wharf_accounts::Accounts;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::secret::SecretText;
use wharf_domain::state::InstanceState;
use wharf_instances::{App, NamedPage, password_digest};
use wharf_pages::directory::{
    Answered, Connecting, Directory, NoVisitor, Page, PageClient, PageState, Right, Upstream,
    UpstreamAddress, Visitor, connect_tcp,
};
use wharf_terminal::PortUser;

/// The most cached passwords that were right, and credentials of pages. Programs send the password with
/// each request, and a page takes its credential with each.
const MAX_CACHED: usize = 4096;

/// The route of all requests for pages in the log and the metrics. Their paths are the users' own.
const ROUTE: &str = "page";

/// The pages and the rights of this installation.
pub(super) struct PageDirectory {
    app: Arc<App>,
    accounts: Arc<Accounts>,
    attempts: Arc<Attempts>,
    metrics: HttpMetrics,
    /// Digests of passwords that were right, with their instances. Giving them again is no attempt.
    right_passwords: Cache<String, ()>,
    /// The credentials of pages that were asked for.
    credentials: Cache<InstanceId, Option<SecretText>>,
}

impl PageDirectory {
    pub(super) fn new(
        app: Arc<App>,
        accounts: Arc<Accounts>,
        attempts: Arc<Attempts>,
        metrics: HttpMetrics,
    ) -> Self {
        Self {
            app,
            accounts,
            attempts,
            metrics,
            right_passwords: Cache::new(MAX_CACHED),
            credentials: Cache::new(MAX_CACHED),
        }
    }

    fn named(&self, label: &str) -> Option<NamedPage> {
        match self.app.named_page(label) {
            Ok(named) => named,
            Err(error) => {
                tracing::error!(error = %error.chain(), "a page cannot be read");
                None
            }
        }
    }

    /// The value of `Authorization` for the server of a page. A page without one asks its visitors itself.
    fn credential(&self, instance: &Instance) -> Option<SecretText> {
        let found = self
            .credentials
            .get_or_insert_with(&instance.id, || self.app.page_credential(instance));
        match found {
            Ok(credential) => credential,
            Err(error) => {
                tracing::error!(error = %error.chain(), "the credential of a page cannot be read");
                None
            }
        }
    }

    /// Whether the server of a page can be reached, by the state that its user sees.
    fn state(&self, named: &NamedPage) -> PageState {
        let instance = &named.instance;
        // A port has no credential that Wharf knows, and a visitor's own reaches it.
        let address = match (named.port, &named.address) {
            (Some(port), _) => Some((UpstreamAddress::Inside(port), None)),
            (None, Some((host, port))) => {
                let (host, port) = (host.clone(), *port);
                Some((
                    UpstreamAddress::Node { host, port },
                    self.credential(instance),
                ))
            }
            (None, None) => None,
        };
        match (instance.state(), address) {
            (InstanceState::Running, Some((address, credential))) => PageState::Running(Upstream {
                instance: instance.id,
                incarnation: instance.incarnation,
                address,
                credential,
            }),
            (InstanceState::Provisioning, _) => PageState::Starting,
            _ if instance.intent == Intent::Start => PageState::Starting,
            _ => PageState::Stopped,
        }
    }

    /// Whether a share lets a visitor other than the owner see a page; none is a visitor without an account.
    fn is_shared_with(&self, named: &NamedPage, visitor: Option<(UserId, &str)>) -> bool {
        if self.accounts.is_disabled(named.instance.owner) {
            return false;
        }
        match self.app.is_shared_with(named, visitor) {
            Ok(is_shared) => is_shared,
            Err(error) => {
                tracing::error!(error = %error.chain(), "a share cannot be read");
                false
            }
        }
    }

    /// The share of a page with a visitor other than the owner, as it is now.
    fn has_share(&self, page: &Page, visitor: Option<(UserId, &str)>) -> bool {
        let named = self.named(&page.label);
        let named = named.filter(|named| named.instance.id == page.instance);
        named.is_some_and(|named| self.is_shared_with(&named, visitor))
    }

    /// Whether this is the digest of the password of the instance of a flavor's page.
    fn is_password(&self, page: &Page, digest: &str) -> bool {
        let named = self.named(&page.label);
        let named = named.filter(|named| named.instance.id == page.instance);
        named
            .filter(|named| named.port.is_none())
            .is_some_and(|named| {
                let password = self.app.page_password(&named.instance);
                password.as_deref() == Some(digest) && !self.accounts.is_disabled(page.owner)
            })
    }

    /// The right of a visitor, without a use of its session.
    fn right_of(&self, page: &Page, visitor: &Visitor) -> Option<Right> {
        match visitor {
            Visitor::Session(id) => {
                let (user, email) = self.accounts.user_of_session(id)?;
                let is_owner = user == page.owner;
                let may_see = is_owner || self.has_share(page, Some((user, &email)));
                may_see.then_some(Right { user, is_owner })
            }
            Visitor::Password(given) => {
                let is_right = self.is_password(page, given);
                is_right.then_some(Right {
                    user: page.owner,
                    is_owner: false,
                })
            }
            Visitor::Anyone => self.has_share(page, None).then_some(Right {
                user: page.owner,
                is_owner: false,
            }),
        }
    }
}

impl Directory for PageDirectory {
    fn page(&self, label: &str) -> Option<Page> {
        let named = self.named(label)?;
        let instance = &named.instance;
        Some(Page {
            label: label.to_owned(),
            moved_to: (named.label != label).then(|| named.label.clone()),
            owner: instance.owner,
            instance: instance.id,
            state: self.state(&named),
            is_public: self.is_shared_with(&named, None),
        })
    }

    fn right(&self, page: &Page, visitor: &Visitor) -> Option<Right> {
        let right = self.right_of(page, visitor)?;
        if let Visitor::Session(id) = visitor {
            self.accounts.use_session(id);
        }
        Some(right)
    }

    fn keeps_right(&self, page: &Page, visitor: &Visitor) -> bool {
        self.right_of(page, visitor).is_some()
    }

    fn visitor_with_password(
        &self,
        page: &Page,
        password: &SecretText,
        client: IpAddr,
    ) -> Result<Visitor, NoVisitor> {
        let named = self.named(&page.label);
        if named.is_none_or(|named| named.port.is_some()) {
            // The server of a port may ask for a password of its own.
            return Err(self.refuse_password(&page.label, client));
        }
        let digest = password_digest(page.instance, password);
        if self.right_passwords.get(&digest).is_none() {
            let taken = self.attempts.take_page(&page.label, network(client));
            taken.map_err(|_| NoVisitor::TooMany)?;
        }
        if !self.is_password(page, &digest) {
            return Err(NoVisitor::Wrong);
        }
        self.right_passwords.insert(digest.clone(), ());
        Ok(Visitor::Password(digest))
    }

    fn refuse_password(&self, label: &str, client: IpAddr) -> NoVisitor {
        match self.attempts.take_page(label, network(client)) {
            Ok(()) => NoVisitor::Wrong,
            Err(_) => NoVisitor::TooMany,
        }
    }

    fn console_url(&self, instance: InstanceId) -> String {
        format!("{}/instances/{instance}", self.app.config().base_url())
    }

    fn connect(&self, upstream: &Upstream, client: &PageClient) -> Connecting {
        let (address, app) = (upstream.address.clone(), Arc::clone(&self.app));
        let (instance, incarnation) = (upstream.instance, upstream.incarnation);
        let visitor = PortUser {
            user: client.user,
            network: client.address.map(network),
        };
        Box::pin(async move {
            match address {
                UpstreamAddress::Node { host, port } => connect_tcp(host, port).await,
                UpstreamAddress::Inside(port) => {
                    let dialled = app.dial_page(instance, incarnation, visitor, port).await;
                    let (reader, writer) = dialled.map_err(io::Error::other)?;
                    Ok(port_stream::begin(reader, writer))
                }
            }
        })
    }

    fn answered(&self, answered: &Answered<'_>) {
        let (method, elapsed) = (answered.method, answered.elapsed);
        // 499 is the customary number for a client that went away.
        let status = answered.status.unwrap_or(499);
        self.metrics.answered(method, ROUTE, status, elapsed);
        let ms = (elapsed.as_secs_f64() * 1e6).round() / 1e3;
        let (method, user) = (method.as_str(), answered.user.map(|user| user.0));
        let (page, client) = (answered.label, answered.client);
        tracing::info!(
            target: "wharf::request", method, route = ROUTE, page, status, ms, user, %client
        );
    }
}
