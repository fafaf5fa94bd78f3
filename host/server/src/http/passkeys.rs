//! The routes of passkeys and identities under `/auth/`.

use super::attempts::SignInAttempt;
use super::extract::{InPath, Json};
use super::interface::{Interface, Shared};
use super::respond::{HandlerResult, HttpError};
use super::sign_in::Visit;
use crate::api::passkeys;
use axum::extract::State;
use axum::routing::{MethodRouter, delete, get, patch, post};
use std::sync::Arc;
use wharf_accounts::passkey::RelyingParty;

/// The routes.
pub(super) fn routes() -> [(&'static str, MethodRouter<Arc<Interface>>); 8] {
    [
        ("/auth/invite/passkey/options/", post(begin_invited)),
        ("/auth/invite/passkey/", post(accept)),
        ("/auth/passkey/sign-in/options/", post(begin_sign_in)),
        ("/auth/passkey/sign-in/", post(sign_in)),
        ("/auth/passkey/options/", post(begin)),
        ("/auth/passkey/", get(list).post(add)),
        ("/auth/passkey/{id}/", patch(rename).delete(remove)),
        ("/auth/identity/{id}/", delete(unlink)),
    ]
}

/// The console as browsers know it.
fn console(interface: &Interface) -> Result<RelyingParty, HttpError> {
    passkeys::console(&interface.api).ok_or(HttpError::NoPasskeys)
}

async fn begin_invited(State(interface): Shared, visit: SignInAttempt<Json>) -> HandlerResult {
    let console = console(&interface)?;
    let begun = passkeys::begin_invited(&interface.api, &console, &visit.visitor, &visit.body.0);
    Ok(visit.respond(begun))
}

async fn accept(State(interface): Shared, visit: SignInAttempt<Json>) -> HandlerResult {
    let console = console(&interface)?;
    let (api, body) = (&interface.api, &visit.body.0);
    let accepted = passkeys::accept(api, &console, &visit.visitor, body).await;
    Ok(visit.signed_in(&interface, accepted))
}

async fn begin_sign_in(State(interface): Shared, visit: SignInAttempt) -> HandlerResult {
    let console = console(&interface)?;
    Ok(visit.respond(passkeys::begin_sign_in(
        &interface.api,
        &console,
        &visit.visitor,
    )))
}

async fn sign_in(State(interface): Shared, visit: SignInAttempt<Json>) -> HandlerResult {
    let console = console(&interface)?;
    let (api, body) = (&interface.api, &visit.body.0);
    let signed_in = passkeys::sign_in(api, &console, &visit.visitor, body).await;
    Ok(visit.signed_in(&interface, signed_in))
}

async fn begin(State(interface): Shared, visit: Visit) -> HandlerResult {
    let caller = visit.caller()?;
    let console = console(&interface)?;
    Ok(visit.respond(passkeys::begin(
        &interface.api,
        &console,
        &visit.visitor,
        caller,
    )))
}

async fn list(State(interface): Shared, visit: Visit) -> HandlerResult {
    Ok(visit.respond(passkeys::list(&interface.api, visit.caller()?)))
}

async fn add(State(interface): Shared, visit: Visit<Json>) -> HandlerResult {
    let caller = visit.caller()?;
    let console = console(&interface)?;
    let added = passkeys::add(&interface.api, &console, caller, &visit.body.0).await;
    Ok(visit.respond(added))
}

async fn rename(
    State(interface): Shared,
    InPath(id): InPath<String>,
    visit: Visit<Json>,
) -> HandlerResult {
    let body = &visit.body.0;
    let renamed = passkeys::rename(&interface.api, visit.caller()?, &id, body);
    Ok(visit.respond(renamed.await))
}

async fn remove(
    State(interface): Shared,
    InPath(id): InPath<String>,
    visit: Visit,
) -> HandlerResult {
    let removed = passkeys::remove(&interface.api, visit.caller()?, &id);
    Ok(visit.respond(removed.await))
}

async fn unlink(
    State(interface): Shared,
    InPath(id): InPath<String>,
    visit: Visit,
) -> HandlerResult {
    let unlinked = passkeys::unlink(&interface.api, visit.caller()?, &id);
    Ok(visit.respond(unlinked.await))
}
