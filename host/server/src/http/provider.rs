//! The routes of a sign-in with a provider of OpenID Connect. The browser follows them itself, so they
//! answer with pages.

use super::interface::Interface;
use super::respond::{self, HttpError, Response};
use super::session_cookie;
use super::sign_in::Visit;
use crate::oidc::{CALLBACK, SignInFailure};
use axum::extract::State;
use axum::routing::{MethodRouter, get};
use http::{HeaderMap, Uri};
use std::sync::Arc;
use wharf_control::NewSession;

/// The page of the sign-in, which goes on to the console if there is a session.
const PAGE: &str = "/sign-in";

/// The routes.
pub(super) fn routes() -> [(&'static str, MethodRouter<Arc<Interface>>); 2] {
    [("/auth/oidc/", get(begin)), (CALLBACK, get(finish))]
}

type Shared = State<Arc<Interface>>;
type Answer = Result<Response, HttpError>;

async fn begin(State(interface): Shared, visit: Visit) -> Answer {
    interface.attempts.take_peer(&visit.visitor)?;
    let config = interface.api.app().config();
    let provider = config.oidc.as_ref().ok_or(HttpError::NoProvider)?;
    let base_url = config.base_url();
    Ok(match interface.provider.begin(provider, &base_url).await {
        Ok(begun) => {
            let cookie = session_cookie::set_attempt(&begun.browser, &base_url);
            respond::with_cookie(respond::see_other(&begun.url), cookie)
        }
        Err(refusal) => refused(refusal),
    })
}

async fn finish(State(interface): Shared, uri: Uri, headers: HeaderMap, visit: Visit) -> Answer {
    interface.attempts.take_peer(&visit.visitor)?;
    let config = interface.api.app().config();
    let oidc = config.oidc.as_ref().ok_or(HttpError::NoProvider)?;
    let base_url = config.base_url();
    let browser = session_cookie::find_attempt(&headers, &base_url);
    let query = uri.query().unwrap_or_default();
    let proven = interface.provider.finish(oidc, &base_url, query, browser);
    let begun: Result<NewSession, SignInFailure> = match proven.await {
        Ok(identity) => {
            let accounts = interface.api.app().accounts();
            let begun = accounts.sign_in_with_identity(&visit.visitor, identity, oidc.create_users);
            begun.await.map_err(SignInFailure::from)
        }
        Err(refusal) => Err(refusal),
    };
    let spent = session_cookie::clear_attempt(&base_url);
    let response = match begun {
        Ok(new) => {
            let cookie = session_cookie::set(&new.token, &base_url, &config.session);
            respond::with_cookie(respond::see_other(PAGE), cookie)
        }
        Err(refusal) => refused(refusal),
    };
    Ok(respond::with_cookie(response, spent))
}

fn refused(refusal: SignInFailure) -> Response {
    respond::see_other(&format!("{PAGE}#{}", refusal.as_str()))
}
