//! All routes, and a handler for each: it takes what its endpoint needs, and returns the response.

use super::access_log::observe;
use super::auth::authenticate;
use super::console;
use super::docs::Docs;
use super::enter_page;
use super::entity_tags::Conditions;
use super::events;
use super::extract::{Call, IdempotencyHeader, InPath, Json, Named, NoBody, OptionalJson};
use super::forwarded;
use super::hosts;
use super::interface::{Interface, Shared};
use super::list;
use super::metrics::scrape;
use super::passkeys;
use super::provider;
use super::respond::{self, HttpError, Response};
use super::shares;
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
use axum::routing::{MethodRouter, delete as delete_method, get, post};
use http::{HeaderMap, Uri};
use serde_json::json;
use std::sync::Arc;
use wharf_domain::error::Error;
use wharf_ground::audit::AuditOrder;

pub(super) type Routes<const N: usize> = [(&'static str, MethodRouter<Arc<Interface>>); N];

/// Routes for callers with a key.
pub(super) fn private() -> Routes<25> {
    [
        ("/api/instance/", get(list::handler).post(create)),
        (
            "/api/instance/{uuid}/",
            get(get_one).patch(update).delete(delete),
        ),
        ("/api/instance/{uuid}/stop/", post(stop)),
        ("/api/instance/{uuid}/restart/", post(restart)),
        (
            "/api/instance/{uuid}/recreate/",
            get(remains).post(recreate),
        ),
        ("/api/instance/{uuid}/add-port/", post(add_port)),
        ("/api/instance/{uuid}/remove-port/", post(remove_port)),
        ("/api/instance/{uuid}/stats/", get(stats)),
        ("/api/instance/{uuid}/host-key/", get(host_keys)),
        ("/api/session/", get(session)),
        ("/api/instance/{uuid}/terminal/", get(terminal::open)),
        ("/api/instance/{uuid}/tunnel/", get(tunnel::open)),
        ("/api/quota/", get(quota)),
        ("/metrics", get(scrape)),
        ("/api/audit/", get(audit)),
        ("/api/event/", get(events::handler)),
        ("/api/key/", get(list_keys).post(create_key)),
        ("/api/key/{id}/", delete_method(revoke_key)),
        ("/api/ssh-key/", get(list_ssh_keys).post(create_ssh_key)),
        ("/api/ssh-key/{id}/", delete_method(delete_ssh_key)),
        (
            "/api/preferences/",
            get(preferences).patch(update_preferences),
        ),
        ("/api/flavor/", get(flavors)),
        ("/api/offer/", get(offer)),
        ("/api/estimate/", post(estimate)),
        ("/api/usage/", get(usage::handler)),
    ]
}

/// The path templates of all routes.
pub fn paths() -> impl Iterator<Item = &'static str> {
    let private = private().map(|(path, _)| path);
    let webhooks = webhooks::routes().map(|(path, _)| path);
    let sign_in = auth().map(|(path, _)| path);
    let public = public().map(|(path, _)| path);
    private
        .into_iter()
        .chain(shares::routes().map(|(path, _)| path))
        .chain(volumes::routes().map(|(path, _)| path))
        .chain(snapshots::routes().map(|(path, _)| path))
        .chain(backups::routes().map(|(path, _)| path))
        .chain(webhooks)
        .chain(sign_in)
        .chain(public)
        .chain(console::paths())
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
    let of_users = private().into_iter().chain(shares::routes());
    let of_users = of_users.chain(volumes::routes()).chain(snapshots::routes());
    let private = with_routes(of_users.chain(backups::routes()).chain(webhooks::routes()))
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
    Named(selector): Named,
    conditions: Conditions,
    call: Call,
) -> Response {
    let instance = api::get::run(&interface.api, &call.caller, &selector);
    respond::conditional(call.respond(instance), &conditions)
}

async fn update(State(interface): Shared, Named(selector): Named, call: Call<Json>) -> Response {
    let api = &interface.api;
    call.respond(
        api::update::run(api, &call.caller, &selector, &call.condition, &call.body.0).await,
    )
}

async fn delete(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    let api = &interface.api;
    call.respond(api::delete::run(api, &call.caller, &selector, &call.condition).await)
}

async fn stop(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    let api = &interface.api;
    call.respond(api::stop::run(api, &call.caller, &selector, &call.condition).await)
}

async fn restart(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    let api = &interface.api;
    call.respond(api::restart::run(api, &call.caller, &selector, &call.condition).await)
}

async fn remains(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    let api = &interface.api;
    call.respond(api::backups::remains(api, &call.caller, &selector))
}

async fn recreate(
    State(interface): Shared,
    Named(selector): Named,
    call: Call<OptionalJson>,
) -> Response {
    let body = call.body.0.as_ref().map(|body| &*body.0);
    let (api, caller, condition) = (&interface.api, &call.caller, &call.condition);
    call.respond(api::recreate::run(api, caller, &selector, condition, body).await)
}

async fn add_port(State(interface): Shared, Named(selector): Named, call: Call<Json>) -> Response {
    let api = &interface.api;
    call.respond(api::ports::add(api, &call.caller, &selector, &call.condition, &call.body.0).await)
}

async fn remove_port(
    State(interface): Shared,
    Named(selector): Named,
    call: Call<Json>,
) -> Response {
    let api = &interface.api;
    call.respond(
        api::ports::remove(api, &call.caller, &selector, &call.condition, &call.body.0).await,
    )
}

async fn stats(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    call.respond(api::stats::run(&interface.api, &call.caller, &selector).await)
}

async fn host_keys(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    call.respond(api::host_key::list(&interface.api, &call.caller, &selector))
}

async fn session(State(interface): Shared, call: Call) -> Response {
    call.respond(api::account::session(&interface.api, &call.caller))
}

async fn quota(State(interface): Shared, call: Call) -> Response {
    call.respond(api::quota::run(&interface.api, &call.caller))
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

async fn list_keys(State(interface): Shared, call: Call) -> Response {
    call.respond(api::keys::list(&interface.api, &call.caller))
}

async fn create_key(State(interface): Shared, call: Call<Json>) -> Response {
    call.respond(api::keys::create(&interface.api, &call.caller, &call.body.0).await)
}

async fn revoke_key(State(interface): Shared, InPath(id): InPath<String>, call: Call) -> Response {
    call.respond(api::keys::revoke(&interface.api, &call.caller, &id).await)
}

async fn list_ssh_keys(State(interface): Shared, call: Call) -> Response {
    call.respond(api::ssh_keys::list(&interface.api, &call.caller))
}

async fn create_ssh_key(State(interface): Shared, call: Call<Json>) -> Response {
    call.respond(api::ssh_keys::create(&interface.api, &call.caller, &call.body.0).await)
}

async fn delete_ssh_key(
    State(interface): Shared,
    InPath(id): InPath<String>,
    call: Call,
) -> Response {
    call.respond(api::ssh_keys::delete(&interface.api, &call.caller, &id).await)
}

async fn preferences(State(interface): Shared, call: Call) -> Response {
    call.respond(api::preferences::get(&interface.api, &call.caller))
}

async fn update_preferences(State(interface): Shared, call: Call<Json>) -> Response {
    call.respond(api::preferences::update(&interface.api, &call.caller, &call.body.0).await)
}

async fn flavors(State(interface): Shared, call: Call) -> Response {
    call.respond(api::flavors::run(&interface.api))
}

async fn offer(State(interface): Shared, call: Call) -> Response {
    call.respond(api::offer::run(&interface.api, &call.caller))
}

async fn estimate(State(interface): Shared, call: Call<Json>) -> Response {
    let api = &interface.api;
    call.respond(api::estimate::run(api, &call.caller, &call.body.0).await)
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
