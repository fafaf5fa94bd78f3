//! All routes, and the handlers of those whose endpoints take more than caller, path and body.

use super::access_log::observe;
use super::auth::authenticate;
use super::console;
use super::docs::Docs;
use super::endpoint::{Endpoint, reader};
use super::enter_page;
use super::entity_tags::Conditions;
use super::events;
use super::extract::{Call, IdempotencyHeader, InPath, Json, NoBody};
use super::forwarded;
use super::hosts;
use super::interface::{Interface, Shared};
use super::list;
use super::metrics::scrape;
use super::passkeys;
use super::provider;
use super::respond::{self, HttpError, Response};
use super::sign_in;
use super::terminal;
use super::tunnel;
use super::usage;
use super::webhooks;
use super::{backups, snapshots, volumes};
use crate::api;
use crate::api::list::ListPage;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, delete, get, patch, post};
use http::{HeaderMap, Uri};
use serde_json::json;
use std::sync::Arc;
use wharf_domain::error::Error;
use wharf_ground::audit::AuditOrder;
use wharf_instances::Selector;

pub(super) type Routes<const N: usize> = [(&'static str, MethodRouter<Arc<Interface>>); N];

/// All routes for callers with a key.
fn of_callers() -> impl Iterator<Item = (&'static str, MethodRouter<Arc<Interface>>)> {
    let of_kept = volumes::routes().into_iter().chain(snapshots::routes());
    let routes = private().into_iter().chain(of_kept);
    routes.chain(backups::routes()).chain(webhooks::routes())
}

/// Those of no other file.
fn private() -> Routes<27> {
    [
        ("/api/instance/", get(list::handler).post(create)),
        (
            "/api/instance/{uuid}/",
            get(get_one)
                .patch(Endpoint(api::update::run))
                .delete(Endpoint(api::delete::run)),
        ),
        ("/api/instance/{uuid}/stop/", post(Endpoint(api::stop::run))),
        (
            "/api/instance/{uuid}/restart/",
            post(Endpoint(api::restart::run)),
        ),
        (
            "/api/instance/{uuid}/recreate/",
            get(reader(api::backups::remains)).post(Endpoint(api::recreate::run)),
        ),
        (
            "/api/instance/{uuid}/add-port/",
            post(Endpoint(api::ports::add)),
        ),
        (
            "/api/instance/{uuid}/remove-port/",
            post(Endpoint(api::ports::remove)),
        ),
        (
            "/api/instance/{uuid}/stats/",
            get(Endpoint(api::stats::run)),
        ),
        (
            "/api/instance/{uuid}/host-key/",
            get(reader(api::host_key::list)),
        ),
        (
            "/api/instance/{uuid}/share/",
            get(reader(api::shares::list)).post(Endpoint(api::shares::create)),
        ),
        (
            "/api/instance/{uuid}/share/{id}/",
            patch(Endpoint(api::shares::update)).delete(Endpoint(api::shares::delete)),
        ),
        ("/api/session/", get(reader(api::account::session))),
        ("/api/instance/{uuid}/terminal/", get(terminal::open)),
        ("/api/instance/{uuid}/tunnel/", get(tunnel::open)),
        ("/api/quota/", get(reader(api::quota::run))),
        ("/metrics", get(scrape)),
        ("/api/audit/", get(audit)),
        ("/api/event/", get(events::handler)),
        (
            "/api/key/",
            get(reader(api::keys::list)).post(Endpoint(api::keys::create)),
        ),
        ("/api/key/{id}/", delete(Endpoint(api::keys::revoke))),
        (
            "/api/ssh-key/",
            get(reader(api::ssh_keys::list)).post(Endpoint(api::ssh_keys::create)),
        ),
        (
            "/api/ssh-key/{id}/",
            delete(Endpoint(api::ssh_keys::delete)),
        ),
        (
            "/api/preferences/",
            get(reader(api::preferences::get)).patch(Endpoint(api::preferences::update)),
        ),
        ("/api/flavor/", get(flavors)),
        ("/api/offer/", get(reader(api::offer::run))),
        ("/api/estimate/", post(Endpoint(api::estimate::run))),
        ("/api/usage/", get(usage::handler)),
    ]
}

/// The path templates of all routes.
pub fn paths() -> impl Iterator<Item = &'static str> {
    let routes = of_callers().chain(auth()).chain(public());
    routes.map(|(path, _)| path).chain(console::paths())
}

/// Those of the console, which are not part of the REST interface.
pub fn console_paths() -> impl Iterator<Item = &'static str> {
    console::paths()
}

/// The routes under `/auth/`.
fn auth() -> impl Iterator<Item = (&'static str, MethodRouter<Arc<Interface>>)> {
    let ways = passkeys::routes().into_iter().chain(provider::routes());
    let pages = enter_page::routes();
    sign_in::routes().into_iter().chain(ways).chain(pages)
}

/// Routes for everyone.
pub(super) fn public() -> Routes<5> {
    [
        ("/healthz", get(health)),
        ("/readyz", get(ready)),
        ("/api/openapi.json", get(document)),
        ("/api/docs/", get(docs_page)),
        ("/api/docs/{file}", get(docs_file)),
    ]
}

/// The whole interface.
pub(super) fn router(interface: Arc<Interface>) -> Router {
    let authenticate = from_fn_with_state(Arc::clone(&interface), authenticate);
    let private = with_routes(of_callers())
        .fallback(async || HttpError::UnknownPath)
        .layer(authenticate);
    let metrics = interface.metrics.clone();
    let guard = from_fn_with_state(Arc::clone(&interface), sign_in::guard);
    let sign_in = with_routes(auth()).layer(guard);
    let public = with_routes(public().into_iter().chain(console::routes()));
    let count = from_fn_with_state(Arc::clone(&interface), forwarded::count);
    let mut counted = public.merge(sign_in).merge(private).layer(count);
    if let Some(pages) = &interface.api.app().config().pages {
        let refuse = from_fn_with_state(pages.domain.clone(), hosts::refuse_pages);
        counted = counted.layer(refuse);
    }
    observe(counted, metrics).with_state(interface)
}

fn with_routes(
    routes: impl IntoIterator<Item = (&'static str, MethodRouter<Arc<Interface>>)>,
) -> Router<Arc<Interface>> {
    let mut router = Router::new();
    for (path, methods) in routes {
        let unslashed = path.strip_suffix('/').filter(|path| !path.is_empty());
        if let Some(unslashed) = unslashed {
            let redirect = methods.clone().route_layer(from_fn(redirect_to_slash));
            router = router.route(unslashed, redirect);
        }
        router = router.route(path, methods);
    }
    router.method_not_allowed_fallback(async || HttpError::Method)
}

async fn redirect_to_slash(request: Request, _: Next) -> HttpError {
    let uri = request.uri();
    let query = uri.query().map(|query| format!("?{query}"));
    HttpError::Slash(format!("{}/{}", uri.path(), query.unwrap_or_default()))
}

async fn create(
    State(interface): Shared,
    IdempotencyHeader(key): IdempotencyHeader,
    call: Call<Json>,
) -> Response {
    let api = &interface.api;
    call.respond(api::create::run(api, &call.caller, &call.body.0, key.as_deref()).await)
}

async fn get_one(
    State(interface): Shared,
    InPath(selector): InPath<Selector>,
    conditions: Conditions,
    call: Call,
) -> Response {
    let instance = api::get::run(&interface.api, &call.caller, &selector);
    respond::conditional(call.respond(instance), &conditions)
}

async fn audit(State(interface): Shared, uri: Uri, call: Call) -> Response {
    let query = || form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let read = || {
        let page = ListPage::parse(query())?.unwrap_or_else(ListPage::first);
        let order = api::audit::order(query())?;
        let (body, next) = api::audit::page(&interface.api, &call.caller, order, page)?;
        let path = match order {
            AuditOrder::Oldest => "/api/audit/?",
            AuditOrder::Newest => "/api/audit/?order=newest&",
        };
        Ok::<_, Error>((body, next.map(|next| list::link(path, next))))
    };
    match read() {
        Ok((body, next)) => respond::page(body, next),
        Err(error) => call.fail(&error),
    }
}

async fn flavors(State(interface): Shared, call: Call) -> Response {
    call.respond(api::flavors::run(&interface.api))
}

async fn health(_: NoBody) -> Response {
    respond::ok(&json!({ "status": "ok" }))
}

async fn ready(State(interface): Shared, _: NoBody) -> Result<Response, HttpError> {
    let app = interface.api.app();
    if !app.ready() {
        return Err(HttpError::NotReady);
    }
    let db = app.db();
    let notice = if db.damaged_pages() > 0 {
        Some(respond::DAMAGED)
    } else if db.disk().is_low() {
        // Reads are served, and deletions make room.
        Some(respond::DISK_FULL)
    } else {
        None
    };
    Ok(respond::ok(&match notice {
        Some(notice) => json!({ "status": "ready", "notice": notice }),
        None => json!({ "status": "ready" }),
    }))
}

async fn document(State(interface): Shared, headers: HeaderMap, _: NoBody) -> Response {
    interface.docs.document(&headers)
}

async fn docs_page(headers: HeaderMap, _: NoBody) -> Response {
    Docs::page(&headers)
}

async fn docs_file(
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    _: NoBody,
) -> Result<Response, HttpError> {
    let Path(name) = name.map_err(|_| HttpError::UnknownPath)?;
    Docs::file(&name, &headers)
}
