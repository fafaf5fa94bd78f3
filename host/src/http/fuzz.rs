//! The fuzz target of paths: no input may panic or break a promise about them. The other targets are
//! in [`crate::api::fuzz`]; `host/fuzz/` has the programs, `host/tests/fuzz.rs` their seeds.

use super::routes;
use crate::app::Selector;
use crate::domain::ids::InstanceId;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::routing::any;
use http::{StatusCode, Uri};
use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};
use tower::Service;

/// All routes, each with a handler that checks what it gets.
static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    let paths = routes::private().map(|(path, _)| path).into_iter();
    paths
        .chain(routes::public().map(|(path, _)| path))
        .fold(Router::new(), |router, path| router.route(path, any(check)))
});

static RUNTIME: LazyLock<Option<Runtime>> =
    LazyLock::new(|| Builder::new_current_thread().build().ok());

/// Routes a request target, and returns whether it leads anywhere.
///
/// # Panics
///
/// If a promise is broken.
pub fn path(bytes: &[u8]) -> bool {
    let (Ok(uri), Some(runtime)) = (Uri::try_from(bytes), RUNTIME.as_ref()) else {
        return false;
    };
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = uri;
    let Ok(response) = runtime.block_on(ROUTER.clone().call(request));
    response.status() == StatusCode::OK
}

/// The segment of a path is decoded once, and names an instance by its only spelling or by name.
async fn check(uri: Uri, selector: Selector, segment: Option<Path<String>>) {
    let Some(Path(segment)) = segment else {
        return;
    };
    assert!(!segment.is_empty(), "a segment is not empty");
    assert!(segment.len() <= uri.path().len(), "decoding only shortens");
    match selector {
        Selector::Id(id) => assert_eq!(InstanceId::parse(&segment), Some(id)),
        Selector::Name(name) => {
            assert_eq!(name, segment);
            assert_eq!(InstanceId::parse(&segment), None);
        }
    }
}
