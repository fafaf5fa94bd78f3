//! Validation of every response of the tests against the OpenAPI document.

use crate::api::Answer;
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use std::fs;
use std::sync::OnceLock;
use wharf_conformance::openapi::Document;
use wharf_testkit::workspace::root;

const FILE: &str = "schemas/openapi.yaml";

/// Checks status, headers and body of a response. Responses that the document does not describe (unknown
/// paths, other methods, pages) are checked by the rules for all responses.
pub fn check(method: &str, path: &str, answer: &Answer, has_body: bool) -> Result<()> {
    let body = has_body.then_some(&answer.body);
    let wrong = |why: String| anyhow!("against the OpenAPI document: {method} {path}: {why}");
    let document = document()?;
    document
        .check(method, path, answer.status, body)
        .and_then(|()| {
            document.check_headers(method, path, answer.status, |name| answer.header(name))
        })
        .map_err(wrong)?;
    ensure!(
        answer.header("x-request-id").is_some(),
        wrong("no X-Request-Id".to_owned())
    );
    let page = (path.starts_with("/api/docs/") || path == "/metrics") && answer.status == 200;
    if has_body && !page {
        let content_type = answer.header("content-type");
        ensure!(
            content_type == Some("application/json") && !matches!(answer.body, Value::String(_)),
            wrong(format!("a response of type {content_type:?}"))
        );
    }
    Ok(())
}

/// Checks a body against the response of an operation, which must be documented.
pub fn check_body(method: &str, path: &str, status: u16, body: &Value) -> Result<()> {
    let document = document()?;
    ensure!(
        document.describes(method, path),
        "the document has no {method} {path}"
    );
    document
        .check(method, path, status, Some(body))
        .map_err(|why| anyhow!("against the OpenAPI document: {method} {path}: {why}"))
}

/// Returns the OpenAPI document.
pub fn documented() -> Result<Value> {
    let text = fs::read_to_string(root().join(FILE)).context(FILE)?;
    serde_saphyr::from_str(&text).context(FILE)
}

fn document() -> Result<&'static Document> {
    static DOCUMENT: OnceLock<Result<Document>> = OnceLock::new();
    let read = || Document::new(&documented()?);
    match DOCUMENT.get_or_init(read) {
        Ok(document) => Ok(document),
        Err(error) => bail!("{error:#}"),
    }
}
