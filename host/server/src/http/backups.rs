//! The routes of buckets and backups.

use super::extract::{Call, IdempotencyHeader, InPath, Json, Named};
use super::interface::Shared;
use super::respond::Response;
use super::routes::Routes;
use crate::api::backups;
use axum::extract::State;
use axum::routing::{get, post};
use http::Uri;
use wharf_backups::BackupFilter;
use wharf_domain::instance::Instance;
use wharf_domain::volume::Volume;
use wharf_instances::Selector;

pub(super) fn routes() -> Routes<10> {
    [
        ("/api/bucket/", get(buckets).post(add_bucket)),
        ("/api/bucket/{id}/", get(bucket).delete(forget_bucket)),
        ("/api/instance/{uuid}/backup/", post(create)),
        ("/api/volume/{id}/backup/", post(create_of_volume)),
        (
            "/api/instance/{uuid}/backup-plan/",
            get(plan).put(set_plan).delete(end_plan),
        ),
        (
            "/api/volume/{id}/backup-plan/",
            get(plan_of_volume)
                .put(set_plan_of_volume)
                .delete(end_plan_of_volume),
        ),
        ("/api/backup/", get(list)),
        ("/api/backup/{id}/", get(get_one).delete(delete)),
        ("/api/backup/{id}/verify/", post(verify)),
        ("/api/backup/{id}/restore/", post(restore)),
    ]
}

async fn buckets(State(interface): Shared, call: Call) -> Response {
    call.respond(backups::buckets(&interface.api, &call.caller))
}

async fn add_bucket(State(interface): Shared, call: Call<Json>) -> Response {
    call.respond(backups::add_bucket(&interface.api, &call.caller, &call.body.0).await)
}

async fn bucket(State(interface): Shared, InPath(named): InPath<String>, call: Call) -> Response {
    call.respond(backups::bucket(&interface.api, &call.caller, &named))
}

async fn forget_bucket(
    State(interface): Shared,
    InPath(named): InPath<String>,
    call: Call,
) -> Response {
    call.respond(backups::forget_bucket(&interface.api, &call.caller, &named).await)
}

async fn create(State(interface): Shared, Named(selector): Named, call: Call<Json>) -> Response {
    let api = &interface.api;
    call.respond(backups::create(api, &call.caller, &selector, &call.body.0).await)
}

async fn create_of_volume(
    State(interface): Shared,
    InPath(named): InPath<String>,
    call: Call<Json>,
) -> Response {
    let api = &interface.api;
    call.respond(backups::create_of_volume(api, &call.caller, &named, &call.body.0).await)
}

async fn plan(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    call.respond(backups::plan::<Instance>(
        &interface.api,
        &call.caller,
        &selector,
    ))
}

async fn set_plan(State(interface): Shared, Named(selector): Named, call: Call<Json>) -> Response {
    let api = &interface.api;
    call.respond(backups::set_plan(api, &call.caller, &selector, &call.body.0).await)
}

async fn end_plan(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    let api = &interface.api;
    call.respond(backups::end_plan::<Instance>(api, &call.caller, &selector).await)
}

async fn plan_of_volume(
    State(interface): Shared,
    InPath(named): InPath<String>,
    call: Call,
) -> Response {
    call.respond(backups::plan::<Volume>(
        &interface.api,
        &call.caller,
        &named,
    ))
}

async fn set_plan_of_volume(
    State(interface): Shared,
    InPath(named): InPath<String>,
    call: Call<Json>,
) -> Response {
    let api = &interface.api;
    call.respond(backups::set_plan_of_volume(api, &call.caller, &named, &call.body.0).await)
}

async fn end_plan_of_volume(
    State(interface): Shared,
    InPath(named): InPath<String>,
    call: Call,
) -> Response {
    let api = &interface.api;
    call.respond(backups::end_plan::<Volume>(api, &call.caller, &named).await)
}

async fn list(State(interface): Shared, uri: Uri, call: Call) -> Response {
    let query = uri.query().unwrap_or_default().as_bytes();
    let given = |wanted: &str| {
        let mut pairs = form_urlencoded::parse(query);
        pairs.find_map(|(name, value)| (name == wanted).then(|| value.into_owned()))
    };
    let wanted = BackupFilter {
        instance: given("instance").map(|of| Selector::parse(&of)),
        volume: given("volume"),
        bucket: given("bucket"),
    };
    call.respond(backups::list(&interface.api, &call.caller, &wanted))
}

async fn get_one(State(interface): Shared, InPath(id): InPath<String>, call: Call) -> Response {
    call.respond(backups::get(&interface.api, &call.caller, &id))
}

async fn delete(State(interface): Shared, InPath(id): InPath<String>, call: Call) -> Response {
    call.respond(backups::delete(&interface.api, &call.caller, &id).await)
}

async fn verify(State(interface): Shared, InPath(id): InPath<String>, call: Call) -> Response {
    call.respond(backups::verify(&interface.api, &call.caller, &id).await)
}

async fn restore(
    State(interface): Shared,
    InPath(id): InPath<String>,
    IdempotencyHeader(key): IdempotencyHeader,
    call: Call<Json>,
) -> Response {
    let (api, body) = (&interface.api, &call.body.0);
    call.respond(backups::restore(api, &call.caller, &id, body, key.as_deref()).await)
}
