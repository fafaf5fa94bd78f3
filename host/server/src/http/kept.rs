//! The handlers of volumes and snapshots that are alike.

use super::entity_tags::{Conditions, Tags};
use super::extract::{Call, InPath};
use super::interface::Shared;
use super::respond::{self, Response};
use crate::api::kept::{self, KeptWire};
use axum::extract::State;
use wharf_instances::Condition;

/// The condition on the one that a request changes.
pub(super) fn condition<K: KeptWire>(conditions: Conditions) -> Condition<K::View> {
    let tags = conditions.if_match.and_then(Tags::strong);
    tags.map_or_else(Condition::default, kept::condition::<K>)
}

pub(super) async fn get_one<K: KeptWire>(
    State(interface): Shared,
    InPath(named): InPath<String>,
    conditions: Conditions,
    call: Call,
) -> Response {
    let found = kept::get::<K>(&interface.api, &call.caller, &named);
    respond::conditional(call.respond(found), &conditions)
}

pub(super) async fn delete<K: KeptWire>(
    State(interface): Shared,
    InPath(named): InPath<String>,
    conditions: Conditions,
    call: Call,
) -> Response {
    let condition = condition::<K>(conditions);
    call.respond(kept::delete::<K>(&interface.api, &call.caller, &named, &condition).await)
}
