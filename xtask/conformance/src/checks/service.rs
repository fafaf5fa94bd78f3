//! Public paths: health and documentation.

use crate::check::{Check, decision};
use anyhow::ensure;

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision("1", "/healthz and /readyz return 200 without a key", |c| {
            c.anonymous().get("/healthz")?.is(200)?;
            c.anonymous().get("/readyz")?.is(200)
        }),
        decision(
            "1",
            "/api/openapi.json returns an OpenAPI document without a key",
            |c| {
                let document = c.anonymous().get("/api/openapi.json")?.expect(200)?;
                let version = document["openapi"].as_str().unwrap_or("");
                ensure!(version.starts_with("3."), "`openapi` is `{version}`");
                let bearer = document["components"]["securitySchemes"].as_object();
                let bearer = bearer
                    .into_iter()
                    .flatten()
                    .any(|(_, s)| s["scheme"] == "bearer");
                ensure!(bearer, "the document has no bearer scheme");
                Ok(())
            },
        ),
        decision("1", "the OpenAPI document has all ten endpoints", |c| {
            let document = c.anonymous().get("/api/openapi.json")?.expect(200)?;
            for (path, method) in [
                ("/api/instance/", "get"),
                ("/api/instance/", "post"),
                ("/api/instance/{uuid}/", "get"),
                ("/api/instance/{uuid}/", "patch"),
                ("/api/instance/{uuid}/", "delete"),
                ("/api/instance/{uuid}/stop/", "post"),
                ("/api/instance/{uuid}/restart/", "post"),
                ("/api/instance/{uuid}/add-port/", "post"),
                ("/api/instance/{uuid}/remove-port/", "post"),
                ("/api/instance/{uuid}/stats/", "get"),
            ] {
                ensure!(
                    document["paths"][path][method].is_object(),
                    "the document lacks {method} {path}"
                );
            }
            Ok(())
        }),
        decision("1", "/api/docs/ returns an HTML page without a key", |c| {
            let page = c.anonymous().get("/api/docs/")?;
            page.is(200)?;
            let content_type = page.header("content-type").unwrap_or("");
            ensure!(
                content_type.starts_with("text/html"),
                "Content-Type is {content_type}"
            );
            Ok(())
        }),
        decision("1", "/api/docs without its final slash returns 308", |c| {
            c.anonymous().get("/api/docs")?.is(308)
        }),
    ]
}
