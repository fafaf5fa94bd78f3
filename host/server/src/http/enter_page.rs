//! `POST /auth/page/`: lets a visitor in to a page by name.

use super::extract::Json;
use super::interface::Interface;
use super::respond::{HttpError, Response};
use super::sign_in::Visit;
use crate::api;
use axum::extract::State;
use axum::routing::{MethodRouter, post};
use std::sync::Arc;

/// The route.
pub(super) fn routes() -> [(&'static str, MethodRouter<Arc<Interface>>); 1] {
    [("/auth/page/", post(enter))]
}

async fn enter(
    State(interface): State<Arc<Interface>>,
    visit: Visit<Json>,
) -> Result<Response, HttpError> {
    let caller = visit.caller()?;
    let entered = match &interface.pages {
        Some(pages) => {
            let (gateway, directory) = (&pages.gateway, &*pages.directory);
            api::page::enter(&interface.api, gateway, directory, caller, &visit.body.0)
        }
        None => Err(api::page::NONE),
    };
    Ok(visit.respond(entered))
}
