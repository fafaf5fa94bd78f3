//! Shares: the page of an instance, or a port inside it, shown to other visitors than the owner.

use super::App;
use super::find::{Selector, find};
use super::labels::{assign_port, label_of, named};
use super::pages::NamedPage;
use super::private_ports::{NO_SHELL, has_private_page, has_shell};
use super::suspension;
use serde::{Deserialize, Serialize};
use wharf_config::Config;
use wharf_db::{Changes, INSTANCES, Read, Rows as _, Table, View, tables};
use wharf_domain::blueprint::SSH_PORT;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::share::ShareAccess;
use wharf_domain::time::Timestamp;
use wharf_ground::caller::Caller;

/// The most shares of one instance.
const MAX_SHARES: usize = 50;

/// The most sessions of visitors that one share tells its owner of in a day. A visitor can make new ones at
/// will.
const MAX_VISITS: usize = 20;
const VISITS_MS: i64 = 24 * 60 * 60 * 1000;

const NO_PAGES: Error = Error::NotApplicable(
    "this service has no pages by name, so nothing can be shared: its operator sets `[pages]` in the \
     configuration",
);

const PUBLIC_PORT: Error = Error::NotApplicable(
    "the page of this instance has a public port, where a visitor could stay signed in; create the instance \
     again to share its page",
);

tables! {
    /// Shares of instances by port, with 0 for the page of the flavor.
    pub const SHARES: Table<InstanceId, u32, ShareRow> = Table::bounded(b'i', 7,
        "50 of an instance, each for at most 50 addresses", "With their instance")
        .removed_with(&INSTANCES);
}

/// A share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareRow {
    pub access: ShareAccess,
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The time since which `visits` are counted, and the public ids of the sessions.
    visits_since: Timestamp,
    visits: Vec<String>,
}

/// A share as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// None for the page of the flavor.
    pub port: Option<u16>,
    pub access: ShareAccess,
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// None without pages by name.
    pub url: Option<String>,
}

/// A change of a share; none leaves a field as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShareUpdate {
    pub access: Option<ShareAccess>,
    /// `Some(None)` removes the end.
    pub expires_at: Option<Option<Timestamp>>,
}

/// The part of the key of a share or a label that names the page.
pub(super) fn page_key(port: Option<u16>) -> u32 {
    port.map_or(0, u32::from)
}

/// The name of a page towards the owner.
fn page_words(port: Option<u16>) -> String {
    port.map_or_else(|| "its page".to_owned(), |port| format!("port {port}"))
}

fn words(port: Option<u16>, access: &ShareAccess) -> String {
    format!("{} with {access}", page_words(port))
}

/// The name of a share in the audit log.
fn subject(port: Option<u16>) -> String {
    port.map_or_else(|| "page".to_owned(), |port| port.to_string())
}

impl Share {
    fn new(config: &Config, label: &str, port: Option<u16>, row: ShareRow) -> Self {
        Self {
            port,
            access: row.access,
            expires_at: row.expires_at,
            created_at: row.created_at,
            url: config.page_url(label),
        }
    }
}

impl App {
    /// Returns the shares of one of the caller's instances, that of its page first.
    pub fn shares(&self, caller: &Caller, selector: &Selector) -> Result<Vec<Share>, Error> {
        let config = self.config();
        self.db.read(|rows| {
            let instance = find(rows, caller.user, selector)?;
            let mut shares = Vec::new();
            for key in rows.keys_under(&SHARES, &instance.id)? {
                let port = u16::try_from(key?).ok().filter(|port| *port > 0);
                if let Some(row) = rows.get(&SHARES, (instance.id, page_key(port)))? {
                    let label = label_of(rows, instance.id, port)?;
                    shares.push(Share::new(&config, &label, port, row));
                }
            }
            Ok(shares)
        })
    }

    /// Shares the page of an instance, or a port inside it.
    pub async fn share(
        &self,
        caller: &Caller,
        selector: &Selector,
        port: Option<u16>,
        access: ShareAccess,
        expires_at: Option<Timestamp>,
    ) -> Result<Share, Error> {
        let (config, owner, asked) = (self.config(), caller.user, selector.clone());
        let (change_config, row_access) = (config.clone(), access);
        let decide = move |view: &View<'_>| {
            let instance = find(view.rows, owner, &asked)?;
            suspension::check(view.rows, &instance)?;
            check(view, &change_config, port, &row_access, expires_at)?;
            check_page(view, &instance, port)?;
            let key = (instance.id, page_key(port));
            if view.rows.get(&SHARES, key)?.is_some() {
                let message = "is shared already; change that share";
                return Err(FieldErrors::one("port", message).into());
            }
            let others = view.rows.keys_under(&SHARES, &instance.id)?;
            if others.take(MAX_SHARES).count() >= MAX_SHARES {
                let message = format!("at most {MAX_SHARES} pages of an instance can be shared");
                return Err(FieldErrors::one("port", message).into());
            }
            let row = ShareRow {
                access: row_access.clone(),
                expires_at,
                created_at: view.system,
                visits_since: view.system,
                visits: Vec::new(),
            };
            let labels = match port {
                Some(port) => assign_port(view.rows, &instance, port)?,
                None => Changes::none(),
            };
            let what = EventKind::ShareCreated(words(port, &row.access));
            let id = instance.id;
            let changes = labels
                .put(&SHARES, key, row.clone())
                .record(instance, view.now, what);
            Ok(((id, row), changes))
        };
        let (id, row) = self
            .change_share(caller, "share.create", port, decide)
            .await?;
        let label = self.db.read(|rows| label_of(rows, id, port))?;
        Ok(Share::new(&config, &label, port, row))
    }

    /// Changes a share.
    pub async fn update_share(
        &self,
        caller: &Caller,
        selector: &Selector,
        port: Option<u16>,
        update: ShareUpdate,
    ) -> Result<Share, Error> {
        let (config, owner, asked) = (self.config(), caller.user, selector.clone());
        let change_config = config.clone();
        let decide = move |view: &View<'_>| {
            let (instance, before) = shared(view.rows, owner, &asked, port)?;
            let mut row = before.clone();
            let expires_at = update.expires_at.flatten();
            row.access = update.access.clone().unwrap_or(row.access);
            row.expires_at = update.expires_at.unwrap_or(row.expires_at);
            check(view, &change_config, port, &row.access, expires_at)?;
            let id = instance.id;
            if row == before {
                return Ok(((id, row), Changes::none()));
            }
            let what = EventKind::ShareChanged(words(port, &row.access));
            let changes = Changes::none()
                .put(&SHARES, (id, page_key(port)), row.clone())
                .record(instance, view.now, what);
            Ok(((id, row), changes))
        };
        let (id, row) = self
            .change_share(caller, "share.update", port, decide)
            .await?;
        let label = self.db.read(|rows| label_of(rows, id, port))?;
        Ok(Share::new(&config, &label, port, row))
    }

    /// Withdraws a share. Its connections end.
    pub async fn withdraw_share(
        &self,
        caller: &Caller,
        selector: &Selector,
        port: Option<u16>,
    ) -> Result<(), Error> {
        let (owner, asked, origin) = (caller.user, selector.clone(), caller.origin());
        let decide = move |view: &View<'_>| {
            let (instance, _) = shared(view.rows, owner, &asked, port)?;
            let what = EventKind::ShareRemoved(page_words(port));
            let changes = Changes::none()
                .remove(&SHARES, (instance.id, page_key(port)))
                .record(instance, view.now, what)
                .audited(&origin, "share.remove", view.now)
                .about(&subject(port));
            Ok(((), changes))
        };
        self.db.write_essential(decide).await
    }

    async fn change_share<T: Send + 'static>(
        &self,
        caller: &Caller,
        operation: &'static str,
        port: Option<u16>,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        let origin = caller.origin();
        let audited = move |view: &View<'_>| {
            let (result, changes) = decide(view)?;
            let changes = changes.audited(&origin, operation, view.now);
            Ok((result, changes.about(&subject(port))))
        };
        self.db.write(audited).await
    }

    /// Whether a share lets a visitor other than the owner see a page now; none is a visitor without an account.
    pub fn is_shared_with(
        &self,
        page: &NamedPage,
        visitor: Option<(UserId, &str)>,
    ) -> Result<bool, Error> {
        let Some(share) = &page.share else {
            return Ok(false);
        };
        let config = self.config();
        let Some(pages) = &config.pages else {
            return Ok(false);
        };
        let is_over = share
            .expires_at
            .is_some_and(|end| end <= self.clock.system());
        let is_named = match (&share.access, visitor) {
            (ShareAccess::Owner, _) | (ShareAccess::Users(_) | ShareAccess::SignedIn, None) => {
                false
            }
            (ShareAccess::Users(users), Some((_, email))) => users.iter().any(|user| user == email),
            (ShareAccess::SignedIn, Some(_)) => true,
            (ShareAccess::Public, _) => pages.public && page.port.is_some(),
        };
        if is_over || !is_named {
            return Ok(false);
        }
        self.db.read(|rows| {
            let of_owner = suspension::check(rows, &page.instance);
            let of_visitor = visitor.map_or(Ok(()), |(user, _)| suspension::check_user(rows, user));
            match of_owner.and(of_visitor) {
                Ok(()) => Ok(true),
                Err(Error::Suspended { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Tells the owner of a page that the session of another user opened it, once for each session.
    pub async fn note_visit(&self, visitor: &Caller, label: &str) -> Result<(), Error> {
        let (user, session) = (visitor.user, visitor.key_id.to_string());
        let known = self.db.read(|rows| visit(rows, label, user, &session))?;
        if known.is_none() {
            return Ok(());
        }
        let (label, email) = (label.to_owned(), visitor.email.to_string());
        let decide = move |view: &View<'_>| {
            let Some((instance, port, mut row)) = visit(view.rows, &label, user, &session)? else {
                return Ok(((), Changes::none()));
            };
            if view.system.0.saturating_sub(row.visits_since.0) >= VISITS_MS {
                row.visits_since = view.system;
                row.visits.clear();
            }
            if row.visits.len() >= MAX_VISITS {
                return Ok(((), Changes::none()));
            }
            row.visits.push(session.clone());
            let what = EventKind::PageVisited {
                page: page_words(port),
                visitor: email.clone(),
            };
            let changes = Changes::none()
                .put(&SHARES, (instance.id, page_key(port)), row)
                .record(instance, view.now, what);
            Ok(((), changes))
        };
        self.db.write(decide).await
    }
}

/// The instance and the share that a session of another user visits for the first time.
fn visit(
    rows: &impl Read,
    label: &str,
    user: UserId,
    session: &str,
) -> Result<Option<(Instance, Option<u16>, ShareRow)>, Error> {
    let Some(page) = named(rows, label)? else {
        return Ok(None);
    };
    let is_other = page.instance.owner != user;
    let share = page
        .share
        .filter(|share| is_other && !share.visits.iter().any(|v| v == session));
    Ok(share.map(|share| (page.instance, page.port, share)))
}

/// The caller's instance with its share of a page.
fn shared(
    rows: &impl Read,
    owner: UserId,
    selector: &Selector,
    port: Option<u16>,
) -> Result<(Instance, ShareRow), Error> {
    let instance = find(rows, owner, selector)?;
    let share = rows.get(&SHARES, (instance.id, page_key(port)))?;
    Ok((instance, share.ok_or(Error::Missing("Share"))?))
}

/// Checks the fields of a share.
fn check(
    view: &View<'_>,
    config: &Config,
    port: Option<u16>,
    access: &ShareAccess,
    expires_at: Option<Timestamp>,
) -> Result<(), Error> {
    let pages = config.pages.as_ref().ok_or(NO_PAGES)?;
    let mut errors = FieldErrors::default();
    if port == Some(SSH_PORT) {
        errors.add("port", "port 22 is that of SSH, which has no page");
    }
    if *access == ShareAccess::Public {
        if port.is_none() {
            errors.add(
                "access",
                "the page of the flavor runs programs as you, so it cannot be public",
            );
        } else if !pages.public {
            errors.add(
                "access",
                "this service has no public pages: its operator sets `public = true` in `[pages]`",
            );
        }
    }
    if expires_at.is_some_and(|end| end <= view.system) {
        errors.add("expires_at", "must be in the future");
    }
    Ok(errors.into_result()?)
}

/// Checks that an instance has a page that can be shared.
fn check_page(view: &View<'_>, instance: &Instance, port: Option<u16>) -> Result<(), Error> {
    match port {
        Some(_) if !has_shell(view.rows, instance)? => Err(NO_SHELL),
        Some(_) => Ok(()),
        None if instance.web_port.is_none() => {
            let message = "required: the flavor of this instance has no page";
            Err(FieldErrors::one("port", message).into())
        }
        None if !has_private_page(view.rows, instance.id)? => Err(PUBLIC_PORT),
        None => Ok(()),
    }
}
