//! The routes of buckets and backups.

use super::endpoint::{Endpoint, reader};
use super::extract::{Call, IdempotencyHeader, InPath, Json};
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
        (
            "/api/bucket/",
            get(reader(backups::buckets)).post(Endpoint(backups::add_bucket)),
        ),
        (
            "/api/bucket/{id}/",
            get(reader(backups::bucket)).delete(Endpoint(backups::forget_bucket)),
        ),
        (
            "/api/instance/{uuid}/backup/",
            post(Endpoint(backups::create)),
        ),
        (
            "/api/volume/{id}/backup/",
            post(Endpoint(backups::create_of_volume)),
        ),
        (
            "/api/instance/{uuid}/backup-plan/",
            get(reader(backups::plan::<Instance>))
                .put(Endpoint(backups::set_plan))
                .delete(Endpoint(backups::end_plan::<Instance>)),
        ),
        (
            "/api/volume/{id}/backup-plan/",
            get(reader(backups::plan::<Volume>))
                .put(Endpoint(backups::set_plan_of_volume))
                .delete(Endpoint(backups::end_plan::<Volume>)),
        ),
        ("/api/backup/", get(list)),
        (
            "/api/backup/{id}/",
            get(reader(backups::get)).delete(Endpoint(backups::delete)),
        ),
        ("/api/backup/{id}/verify/", post(Endpoint(backups::verify))),
        ("/api/backup/{id}/restore/", post(restore)),
    ]
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

async fn restore(
    State(interface): Shared,
    InPath(id): InPath<String>,
    IdempotencyHeader(key): IdempotencyHeader,
    call: Call<Json>,
) -> Response {
    let (api, body) = (&interface.api, &call.body.0);
    call.respond(backups::restore(api, &call.caller, &id, body, key.as_deref()).await)
}
