//! The routes of a sign-in with a provider of OpenID Connect. The browser follows them itself, so they
//! answer with pages.

use super::attempts::SignInAttempt;
use super::interface::{Interface, Shared};
use super::respond::{self, HandlerResult, HttpError, Response};
use super::session_cookie::Cookies;
use super::sign_in::remembered;
use crate::oidc::{CALLBACK, SignInFailure};
use axum::extract::State;
use axum::routing::{MethodRouter, get};
use http::{HeaderMap, Uri};
use std::sync::Arc;
use wharf_accounts::session::NewSession;

/// The page of the sign-in, which goes on to the console if there is a session.
const PAGE: &str = "/sign-in";

/// The beginning of the fragment with the part of the token that the page keeps. No server gets it.
const SESSION: &str = "session=";

/// The routes.
pub(super) fn routes() -> [(&'static str, MethodRouter<Arc<Interface>>); 2] {
    [("/auth/oidc/", get(begin)), (CALLBACK, get(finish))]
}

async fn begin(State(interface): Shared, visit: SignInAttempt) -> HandlerResult {
    let config = interface.api.app().config();
    let provider = config.oidc.as_ref().ok_or(HttpError::NoProvider)?;
    let base_url = config.base_url();
    let network = visit.visitor.network;
    let begun = interface.provider.begin(provider, &base_url, network).await;
    Ok(match begun {
        Ok(begun) => {
            let app = interface.api.app();
            let cookie = Cookies::of(app, &config).give_attempt(&begun.browser);
            respond::with_cookie(respond::see_other(&begun.url), cookie)
        }
        Err(refusal) => refused(refusal),
    })
}

async fn finish(
    State(interface): Shared,
    uri: Uri,
    headers: HeaderMap,
    visit: SignInAttempt,
) -> HandlerResult {
    let config = interface.api.app().config();
    let oidc = config.oidc.as_ref().ok_or(HttpError::NoProvider)?;
    let base_url = config.base_url();
    let cookies = Cookies::of(interface.api.app(), &config);
    let browser = cookies.attempt(&headers);
    let query = uri.query().unwrap_or_default();
    let proven = interface.provider.finish(oidc, &base_url, query, browser);
    let begun: Result<NewSession, SignInFailure> = match proven.await {
        Ok(identity) => {
            let accounts = interface.api.accounts();
            let begun = accounts.sign_in_with_identity(&visit.visitor, identity, oidc.create_users);
            begun.await.map_err(SignInFailure::from)
        }
        Err(refusal) => Err(refusal),
    };
    let spent = cookies.clear_attempt();
    let response = match begun {
        Ok(new) => {
            let given = cookies.give(&new.token, &config.session);
            let page = match &given.part {
                Some(part) => format!("{PAGE}#{SESSION}{}", part.expose()),
                None => PAGE.to_owned(),
            };
            let response = respond::with_cookie(respond::see_other(&page), given.cookie);
            remembered(response, &interface, new.user)
        }
        Err(refusal) => refused(refusal),
    };
    Ok(respond::with_cookie(response, spent))
}

fn refused(refusal: SignInFailure) -> Response {
    respond::see_other(&format!("{PAGE}#{}", refusal.as_str()))
}
