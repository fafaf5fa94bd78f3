//! What fuzzers feed with bytes: it must neither panic nor break a promise. Each function says
//! whether the input was accepted, and panics where accepting it would be wrong.

use super::{create, ports, public_key, update};
use crate::domain::draft::CreateDraft;
use crate::domain::name::Name;
use crate::schema::{Body, Schemas};
use serde_json::{Map, Value};
use std::sync::LazyLock;

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
