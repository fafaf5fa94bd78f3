//! `POST /auth/page/`: lets a visitor in to a page by name.

use super::extract::Json;
use super::interface::{Interface, Shared};
use super::respond::{HttpError, Response};
use super::sign_in::Visit;
use crate::api;
use axum::extract::State;
use axum::routing::{MethodRouter, post};
use std::sync::Arc;
use wharf_pages::directory::Directory;

/// The route.
pub(super) fn routes() -> [(&'static str, MethodRouter<Arc<Interface>>); 1] {
    [("/auth/page/", post(enter))]
}

async fn enter(State(interface): Shared, visit: Visit<Json>) -> Result<Response, HttpError> {
    let caller = visit.caller()?;
    let pages = interface.pages.as_ref();
    let pages = pages.map(|pages| (&*pages.gateway, &*pages.directory as &dyn Directory));
    let entered = api::page::enter(&interface.api, pages, caller, &visit.body.0).await;
    Ok(visit.respond(entered))
}
