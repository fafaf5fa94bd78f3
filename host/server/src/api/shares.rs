//! `/api/instance/{uuid}/share/`: the shares of an instance.

use super::{EndpointReply, EndpointRequest, EndpointResult, TIME, render};
use crate::schema::CheckedBody;
use bytes::Bytes;
use serde::Serialize;
use wharf_domain::email;
use wharf_domain::error::Error;
use wharf_domain::scope::Scope;
use wharf_domain::share::ShareAccess;
use wharf_domain::time::Timestamp;
use wharf_ground::caller::Caller;
use wharf_instances::{Selector, Share, ShareUpdate};

/// Approximate bytes of a share.
const SHARE_BYTES: usize = 256;

/// The id of the share of the flavor's page. That of a port has the port's number.
const PAGE: &str = "page";

#[derive(Serialize)]
struct ShareWire {
    id: String,
    port: Option<u16>,
    access: &'static str,
    users: Vec<String>,
    created_at: String,
    expires_at: Option<String>,
    url: Option<String>,
}

/// A share for a caller without the scope `read`, which has changed it.
#[derive(Serialize)]
struct ChangedShare {
    id: String,
}

fn id(port: Option<u16>) -> String {
    port.map_or_else(|| PAGE.to_owned(), |port| port.to_string())
}

/// A share that the caller has changed.
fn changed(caller: &Caller, share: Share) -> Result<Bytes, Error> {
    if caller.scopes.has(Scope::Read) {
        return render(&ShareWire::from(share), SHARE_BYTES);
    }
    let id = id(share.port);
    render(&ChangedShare { id }, 16)
}

impl From<Share> for ShareWire {
    fn from(share: Share) -> Self {
        Self {
            id: id(share.port),
            port: share.port,
            access: share.access.as_str(),
            users: match share.access {
                ShareAccess::Users(users) => users,
                ShareAccess::Owner | ShareAccess::SignedIn | ShareAccess::Public => Vec::new(),
            },
            created_at: share.created_at.to_rfc3339(),
            expires_at: share.expires_at.map(Timestamp::to_rfc3339),
            url: share.url,
        }
    }
}

/// An id of another form names no share.
fn parse(id: &str) -> Result<Option<u16>, Error> {
    match id {
        PAGE => Ok(None),
        port => match port.parse::<u16>() {
            Ok(number) if number > 0 && number.to_string() == port => Ok(Some(number)),
            _ => Err(Error::Missing("Share")),
        },
    }
}

/// The shares, that of the page first.
pub fn list(request: EndpointRequest<Selector>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let shares = api.app.shares(caller, selector)?.into_iter();
    EndpointReply::list(shares.map(ShareWire::from), SHARE_BYTES)
}

/// Shares the page or a port.
pub async fn create(request: EndpointRequest<Selector, Bytes>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let mut checked = api.schemas.share.check(&request.body)?;
    let port = checked.integer("port").map(u16::try_from).transpose();
    let expires_at = time(&mut checked);
    let access = access(&mut checked);
    checked.errors.into_result()?;
    let port = port.map_err(|error| Error::caused("a port is too large", error))?;
    let access = access.unwrap_or(ShareAccess::Owner);
    let shared = api.app.share(caller, selector, port, access, expires_at);
    Ok(EndpointReply::KeyCreated(changed(caller, shared.await?)?))
}

/// Changes a share.
pub async fn update(request: EndpointRequest<(Selector, String), Bytes>) -> EndpointResult {
    let (api, caller, (selector, id)) = request.parts();
    let mut checked = api.schemas.share_update.check(&request.body)?;
    let removes_end = checked.is_null("expires_at");
    let expires_at = time(&mut checked);
    let access = access(&mut checked);
    checked.errors.into_result()?;
    let update = ShareUpdate {
        access,
        expires_at: if removes_end {
            Some(None)
        } else {
            expires_at.map(Some)
        },
    };
    let shared = api.app.update_share(caller, selector, parse(id)?, update);
    Ok(EndpointReply::Done(changed(caller, shared.await?)?))
}

/// Withdraws a share.
pub async fn delete(request: EndpointRequest<(Selector, String)>) -> EndpointResult {
    let (api, caller, (selector, id)) = request.parts();
    api.app.withdraw_share(caller, selector, parse(id)?).await?;
    Ok(EndpointReply::Gone)
}

fn time(checked: &mut CheckedBody) -> Option<Timestamp> {
    checked.parse("expires_at", |text| {
        Timestamp::parse(text).ok_or_else(|| TIME.to_owned())
    })
}

/// Reads `access` with the addresses that belong to `users` alone.
fn access(checked: &mut CheckedBody) -> Option<ShareAccess> {
    let access = checked.text("access").map(str::to_owned);
    let users = users(checked);
    let Some(access) = access else {
        if checked.given("users") {
            checked
                .errors
                .add("users", "needs `access` to be \"users\"");
        }
        return None;
    };
    if access != "users" {
        if users.is_some_and(|users| !users.is_empty()) {
            checked
                .errors
                .add("users", "needs `access` to be \"users\"");
        }
        return Some(match &*access {
            "signed_in" => ShareAccess::SignedIn,
            "public" => ShareAccess::Public,
            _ => ShareAccess::Owner,
        });
    }
    match users {
        Some(users) if !users.is_empty() => Some(ShareAccess::Users(users)),
        _ => {
            if !checked.errors.has("users") {
                checked
                    .errors
                    .add("users", "must name at least one e-mail address");
            }
            None
        }
    }
}

/// The addresses in their canonical form, each once.
fn users(checked: &mut CheckedBody) -> Option<Vec<String>> {
    let given = checked.texts("users")?;
    let canonical: Result<Vec<_>, _> = given.into_iter().map(email::canonical).collect();
    match canonical {
        Ok(mut users) => {
            users.sort_unstable();
            users.dedup();
            Some(users)
        }
        Err(rule) => {
            checked.errors.add("users", rule);
            None
        }
    }
}
