//! What fuzzers feed with bytes: it must neither panic nor break a promise about paths. The others
//! are in [`crate::api::fuzz`]; `host/fuzz/` has the targets, `host/tests/fuzz.rs` their seeds.

use super::router::{Router, decode};
use crate::app::Selector;
use crate::domain::ids::InstanceId;
use http::Uri;
use std::sync::LazyLock;

static ROUTER: LazyLock<Option<Router>> = LazyLock::new(|| Router::new().ok());

/// A request target: what it leads to, and the instance that it names. True if it leads anywhere.
///
/// # Panics
///
/// If a promise is broken.
pub fn path(bytes: &[u8]) -> bool {
    let Some(router) = ROUTER.as_ref() else {
        return false;
    };
    let Ok(uri) = Uri::try_from(bytes) else {
        return false;
    };
    let path = uri.path();
    if router.find_slashed(path).is_some() {
        assert!(router.find(&format!("{path}/")).is_some(), "no such target");
    }
    let Some(found) = router.find(path) else {
        return false;
    };
    let segment = found.segment;
    assert!(!segment.contains('/'), "a segment is one");
    assert!(path.contains(segment), "a segment is from the path");
    let decoded = decode(segment);
    let is_id = matches!(Selector::parse(&decoded), Selector::Id(_));
    assert_eq!(is_id, InstanceId::parse(&decoded).is_some());
    assert!(decoded.len() <= segment.len(), "decoding only shortens");
    true
}
