//! Wharf's answers to the gateway of pages by name.

use super::attempts::Attempts;
use super::client::network;
use super::metrics::HttpMetrics;
use quick_cache::sync::Cache;
use std::net::IpAddr;
use std::sync::Arc;
use wharf_accounts::Accounts;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::secret::SecretText;
use wharf_domain::state::InstanceState;
use wharf_instances::{App, NamedPage, password_digest};
use wharf_pages::directory::{
    Answered, Directory, NoVisitor, Page, PageState, Right, Upstream, Visitor,
};

/// The most passwords that are known to be right, and credentials of pages. Programs send the password with
/// each request, and a page takes its credential with each.
const MAX_KNOWN: usize = 4096;

/// The route of all requests for pages in the log and the metrics. Their paths are the users' own.
const ROUTE: &str = "page";

/// The pages and the rights of this installation.
pub(super) struct PageDirectory {
    app: Arc<App>,
    accounts: Arc<Accounts>,
    attempts: Arc<Attempts>,
    metrics: HttpMetrics,
    /// Digests of passwords that were right, with their instances. Giving them again is no attempt.
    known: Cache<String, ()>,
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
            known: Cache::new(MAX_KNOWN),
            credentials: Cache::new(MAX_KNOWN),
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
        match (instance.state(), &named.address) {
            (InstanceState::Running, Some((host, port))) => PageState::Running(Upstream {
                instance: instance.id,
                incarnation: instance.incarnation,
                host: host.clone(),
                port: *port,
                credential: self.credential(instance),
            }),
            (InstanceState::Provisioning, _) => PageState::Starting,
            _ if instance.intent == Intent::Start => PageState::Starting,
            _ => PageState::Stopped,
        }
    }

    /// Whether this is the digest of the password of a page's instance.
    fn is_password(&self, page: &Page, digest: &str) -> bool {
        let named = self.named(&page.label);
        let named = named.filter(|named| named.instance.id == page.instance);
        named.is_some_and(|named| {
            let password = self.app.page_password(&named.instance);
            password.as_deref() == Some(digest) && !self.accounts.is_disabled(page.owner)
        })
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
            is_public: false,
        })
    }

    fn right(&self, page: &Page, visitor: &Visitor) -> Option<Right> {
        match visitor {
            Visitor::Session(id) => {
                let user = self.accounts.user_of_session(id)?;
                (user == page.owner).then_some(Right {
                    user,
                    is_owner: true,
                })
            }
            Visitor::Password(given) => {
                let is_right = self.is_password(page, given);
                is_right.then_some(Right {
                    user: page.owner,
                    is_owner: false,
                })
            }
            Visitor::Anyone => None,
        }
    }

    fn visitor_with_password(
        &self,
        page: &Page,
        password: &SecretText,
        client: IpAddr,
    ) -> Result<Visitor, NoVisitor> {
        let digest = password_digest(page.instance, password);
        if self.known.get(&digest).is_none() {
            let taken = self.attempts.take_page(page.instance, network(client));
            taken.map_err(|_| NoVisitor::TooMany)?;
        }
        if !self.is_password(page, &digest) {
            return Err(NoVisitor::Wrong);
        }
        self.known.insert(digest.clone(), ());
        Ok(Visitor::Password(digest))
    }

    fn console_url(&self, instance: InstanceId) -> String {
        format!("{}/instances/{instance}", self.app.config().base_url())
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
