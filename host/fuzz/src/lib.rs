//! The checks that fuzzers feed with bytes: no input may panic or break a promise. Each function returns
//! whether it accepted the input, and panics if accepting it was wrong.
//!
//! `host/server/tests/fuzz.rs` compiles this file too, so that every test run has it.

use axum::Router;
use axum::body::Body as HttpBody;
use axum::extract::{Path, Request};
use axum::routing::any;
use http::Uri;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};
use tower::Service;
use wharf::api::{create, ports, public_key, update};
use wharf::http::respond::HttpError;
use wharf::http::{InPath, routes};
use wharf::schema::{Body, Schemas};
use wharf_domain::draft::CreateDraft;
use wharf_domain::ids::InstanceId;
use wharf_domain::name::Name;
use wharf_instances::Selector;

static SCHEMAS: LazyLock<Option<Schemas>> = LazyLock::new(|| Schemas::compile().ok());

/// A body, read as that of each endpoint that takes one.
///
/// # Panics
///
/// If a promise is broken.
pub fn body(bytes: &[u8]) -> bool {
    let Some(schemas) = SCHEMAS.as_ref() else {
        return false;
    };
    let object = serde_json::from_slice::<Map<String, Value>>(bytes);
    assert_eq!(
        Body::parse(bytes).is_ok(),
        object.is_ok(),
        "bodies are objects"
    );
    let created = create::read(schemas, bytes).is_ok_and(|draft| is_within_bounds(&draft));
    let updated = update::read(schemas, bytes).is_ok_and(|(request, errors)| {
        let cpus = request.n_vcpus.is_none_or(|n| (1..=256).contains(&n));
        assert!(!errors.0.is_empty() || cpus, "n_vcpus out of bounds");
        errors.0.is_empty()
    });
    let port = ports::read(schemas, bytes).is_ok_and(|port| {
        assert_ne!(port, Ok(0), "port out of bounds");
        port.is_ok()
    });
    created || updated || port
}

fn is_within_bounds(draft: &CreateDraft) -> bool {
    if !draft.errors.0.is_empty() {
        return false;
    }
    for (size, least, most) in [
        (draft.n_vcpus, 1, 256),
        (draft.mem_gib, 1, 512),
        (draft.disk_size_gib, 10, 2000),
    ] {
        assert!(size.is_some_and(|n| (least..=most).contains(&n)), "sizes");
    }
    assert!(draft.resource_type.is_some(), "resource_type");
    true
}

/// A name.
///
/// # Panics
///
/// If a promise is broken.
pub fn name(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Ok(name) = Name::parse(&text) else {
        return false;
    };
    assert_eq!(name.as_str(), text, "a name stays as it is");
    assert!((2..=63).contains(&text.len()), "length");
    let host_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(text.chars().all(host_name), "characters");
    assert!(!text.starts_with('-') && !text.ends_with('-'), "hyphens");
    true
}

/// A public key.
///
/// # Panics
///
/// If a promise is broken.
pub fn public_key(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Ok(plain) = public_key::parse(&text) else {
        return false;
    };
    assert!(!plain.chars().any(char::is_control), "one line of text");
    assert!(
        plain.starts_with("ssh-") || plain.starts_with("ecdsa-") || plain.starts_with("sk-"),
        "the algorithm comes first, not an option"
    );
    assert_eq!(public_key::parse(&plain), Ok(plain), "plain stays plain");
    true
}

/// All routes, each with a handler that checks what it gets.
static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    routes::paths().fold(Router::new(), |router, path| router.route(path, any(check)))
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
    let mut request = Request::new(HttpBody::empty());
    *request.uri_mut() = uri;
    let Ok(response) = runtime.block_on(ROUTER.clone().call(request));
    response.status().is_success()
}

/// The segment of a path is decoded once, and names an instance by its only spelling or by name.
/// No instance has the empty name.
async fn check(
    uri: Uri,
    InPath(selector): InPath<Selector>,
    segment: Option<Path<String>>,
) -> Result<(), HttpError> {
    let Some(Path(segment)) = segment else {
        return Ok(());
    };
    if segment.is_empty() {
        return Err(HttpError::UnknownPath);
    }
    assert!(segment.len() <= uri.path().len(), "decoding only shortens");
    match selector {
        Selector::Id(id) => assert_eq!(InstanceId::parse(&segment), Some(id)),
        Selector::Name(name) => {
            assert_eq!(name, segment);
            assert_eq!(InstanceId::parse(&segment), None);
        }
    }
    Ok(())
}
