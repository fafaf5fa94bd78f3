//! The routes under `/auth/`: sign-in to the console, and the account of its user.

use super::access_log::Entry;
use super::attempts::SignInAttempt;
use super::auth::session;
use super::client::{RequestClient, client};
use super::extract::{Json, NoBody, OptionalJson, fail};
use super::interface::{Interface, Shared};
use super::respond::{self, HandlerResult, HttpError, Response};
use super::same_origin;
use super::session_cookie::{Cookies, PART};
use crate::api::{self, EndpointReply};
use axum::extract::{FromRequest, Request, State};
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};
use http::HeaderMap;
use std::sync::Arc;
use wharf_accounts::AnonymousSender;
use wharf_accounts::session::NewSession;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_ground::caller::Caller;

/// The path of the options, which are shown even if nobody can sign in.
const OPTIONS: &str = "/auth/options/";

/// The paths without a rate of the user. A user signs out although another program uses up the rate.
const UNLIMITED: [&str; 3] = [OPTIONS, SIGN_OUT, SIGN_OUT_EVERYWHERE];
const SIGN_OUT: &str = "/auth/sign-out/";
const SIGN_OUT_EVERYWHERE: &str = "/auth/sign-out-everywhere/";

/// The routes.
pub(super) fn routes() -> [(&'static str, MethodRouter<Arc<Interface>>); 11] {
    [
        (OPTIONS, get(options)),
        ("/auth/invite/", post(invite)),
        ("/auth/invite/accept/", post(accept)),
        ("/auth/sign-in/", post(sign_in)),
        ("/auth/ticket/", post(ticket)),
        (SIGN_OUT, post(sign_out)),
        (SIGN_OUT_EVERYWHERE, post(sign_out_everywhere)),
        ("/auth/password/", post(password)),
        ("/auth/device/", post(device)),
        ("/auth/device/token/", post(device_token)),
        ("/auth/device/approve/", post(approve_device)),
    ]
}

/// The response to a request by which a user has signed in or has a new password. The browser is known to
/// the user from now on.
pub(super) fn remembered(response: Response, interface: &Interface, user: UserId) -> Response {
    let app = interface.api.app();
    // A browser without the proof signs in as others do.
    match interface.api.accounts().browser_proof(user) {
        Ok(Some(proof)) => {
            let cookie = Cookies::of(app, &app.config()).give_browser(&proof);
            respond::with_cookie(response, cookie)
        }
        Ok(None) => response,
        Err(error) => {
            tracing::warn!(error = %error.chain(), "a browser has no proof of its sign-in");
            response
        }
    }
}

/// A request under `/auth/`, and the caller if it has a valid session.
pub(super) struct Visit<B = NoBody> {
    pub(super) visitor: AnonymousSender,
    caller: Option<Caller>,
    pub(super) body: B,
}

#[derive(Clone)]
struct Visiting(AnonymousSender, Option<Caller>);

impl<B> Visit<B> {
    /// The caller, who must be signed in.
    pub(super) fn caller(&self) -> Result<&Caller, HttpError> {
        self.caller.as_ref().ok_or(HttpError::SignedOut)
    }

    /// The response to this request; an internal error goes to the log.
    pub(super) fn respond(&self, result: Result<EndpointReply, Error>) -> Response {
        result.map_or_else(|error| self.fail(&error), respond::reply)
    }

    /// The response to a request that began a session.
    pub(super) fn signed_in(
        &self,
        interface: &Interface,
        result: Result<NewSession, Error>,
    ) -> Response {
        match result {
            Ok(new) => {
                let app = interface.api.app();
                let config = app.config();
                let given = Cookies::of(app, &config).give(&new.token, &config.session);
                let response = respond::with_session(respond::reply(EndpointReply::Gone), given);
                remembered(response, interface, new.user)
            }
            Err(error) => self.fail(&error),
        }
    }

    fn signed_out(&self, interface: &Interface, result: Result<(), Error>) -> Response {
        match result {
            Ok(()) => {
                let app = interface.api.app();
                let cookie = Cookies::of(app, &app.config()).clear();
                respond::with_cookie(respond::reply(EndpointReply::Gone), cookie)
            }
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&self, error: &Error) -> Response {
        fail(&self.visitor.request_id, error)
    }
}

impl<B> FromRequest<Arc<Interface>> for Visit<B>
where
    B: FromRequest<Arc<Interface>, Rejection = HttpError>,
{
    type Rejection = HttpError;

    async fn from_request(mut request: Request, state: &Arc<Interface>) -> Result<Self, HttpError> {
        // The middleware puts it there.
        let Some(Visiting(visitor, caller)) = request.extensions_mut().remove() else {
            return Err(HttpError::SignedOut);
        };
        let body = B::from_request(request, state).await?;
        Ok(Self {
            visitor,
            caller,
            body,
        })
    }
}

/// Middleware of these routes. It refuses pages elsewhere, and finds the session.
pub(super) async fn guard(State(interface): Shared, mut request: Request, next: Next) -> Response {
    let config = interface.api.app().config();
    if !config.session.enabled && request.uri().path() != OPTIONS {
        return HttpError::SignInOff.into_response();
    }
    if !request.method().is_safe() && same_origin::is_foreign(&request, &config) {
        let console = same_origin::shown(&request, &config);
        return HttpError::Origin(console).into_response();
    }
    let extensions = request.extensions();
    let (entry, client) = (extensions.get::<Entry>(), client(extensions));
    let visitor = AnonymousSender {
        peer: client.map(|client| client.address),
        network: client.map(RequestClient::network),
        request_id: entry.map_or_else(|| "".into(), |entry| Arc::clone(&entry.request_id)),
    };
    let caller = session(&interface, &request);
    if let Some(caller) = &caller
        && !UNLIMITED.contains(&request.uri().path())
        && let Err(exceeded) = interface.rates.take(caller, &request)
    {
        return HttpError::TooManyRequests(exceeded).into_response();
    }
    if caller.is_some()
        && same_origin::needs_proof(&request)
        && !same_origin::is_proven(&request, &config)
    {
        let console = same_origin::shown(&request, &config);
        return HttpError::Origin(console).into_response();
    }
    request.extensions_mut().insert(Visiting(visitor, caller));
    next.run(request).await
}

async fn options(State(interface): Shared, visit: Visit) -> Response {
    visit.respond(api::account::options(&interface.api))
}

async fn invite(State(interface): Shared, visit: SignInAttempt<Json>) -> HandlerResult {
    Ok(visit.respond(api::account::invite(&interface.api, &visit.body.0)))
}

async fn accept(State(interface): Shared, visit: SignInAttempt<Json>) -> HandlerResult {
    let accepted = api::account::accept(&interface.api, &visit.visitor, &visit.body.0).await;
    Ok(visit.signed_in(&interface, accepted))
}

async fn sign_in(State(interface): Shared, visit: SignInAttempt<Json>) -> HandlerResult {
    let given = match api::account::Credentials::parse(&interface.api, &visit.body.0) {
        Ok(given) => given,
        Err(error) => return Ok(visit.fail(&error)),
    };
    visit.take_account(&interface, &given.email)?;
    let accounts = interface.api.accounts();
    let signed_in = accounts
        .sign_in(&visit.visitor, &given.email, given.password)
        .await;
    Ok(visit.signed_in(&interface, signed_in))
}

/// The ticket stands for the part of the token that this request has in a header.
async fn ticket(State(interface): Shared, headers: HeaderMap, visit: Visit) -> HandlerResult {
    let caller = visit.caller()?;
    let part = headers.get(PART).and_then(|part| part.to_str().ok());
    let part = part.unwrap_or_default();
    Ok(visit.respond(api::account::ticket(&interface.api, caller, part)))
}

async fn sign_out(State(interface): Shared, visit: Visit) -> HandlerResult {
    let caller = visit.caller()?;
    let accounts = interface.api.accounts();
    let ended = accounts.end_sessions(caller, Some(&caller.key_id)).await;
    Ok(visit.signed_out(&interface, ended))
}

async fn sign_out_everywhere(
    State(interface): Shared,
    visit: Visit<OptionalJson>,
) -> HandlerResult {
    let body = visit.body.0.as_ref().map(|body| &*body.0);
    let ended = api::account::sign_out_everywhere(&interface.api, visit.caller()?, body).await;
    Ok(visit.signed_out(&interface, ended))
}

async fn password(State(interface): Shared, visit: Visit<Json>) -> HandlerResult {
    let caller = visit.caller()?;
    interface.attempts.take_session(caller)?;
    let changed = api::account::password(&interface.api, caller, &visit.body.0).await;
    let is_changed = changed.is_ok();
    let response = visit.respond(changed);
    Ok(if is_changed {
        remembered(response, &interface, caller.user)
    } else {
        response
    })
}

async fn device(State(interface): Shared, visit: SignInAttempt<Json>) -> HandlerResult {
    Ok(visit.respond(api::device::begin(
        &interface.api,
        &visit.visitor,
        &visit.body.0,
    )))
}

/// A request has an interval of its own, so that many programs behind one address can wait.
async fn device_token(State(interface): Shared, visit: Visit<Json>) -> Response {
    visit.respond(api::device::token(&interface.api, &visit.body.0))
}

async fn approve_device(State(interface): Shared, visit: Visit<Json>) -> HandlerResult {
    let caller = visit.caller()?;
    interface.attempts.take_session(caller)?;
    Ok(visit.respond(api::device::approve(&interface.api, caller, &visit.body.0).await))
}
