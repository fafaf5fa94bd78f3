//! Paths without a key: health and documentation.

use crate::check::{Check, decision};
use anyhow::ensure;

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision("1", "/healthz and /readyz answer 200 without a key", |c| {
            c.anyone().get("/healthz")?.is(200)?;
            c.anyone().get("/readyz")?.is(200)
        }),
        decision(
            "1",
            "/api/openapi.json is an OpenAPI document, and needs no key",
            |c| {
                let document = c.anyone().get("/api/openapi.json")?.expect(200)?;
                let version = document["openapi"].as_str().unwrap_or("");
                ensure!(version.starts_with("3."), "`openapi` is `{version}`");
                let bearer = document["components"]["securitySchemes"].as_object();
                let bearer = bearer
                    .into_iter()
                    .flatten()
                    .any(|(_, s)| s["scheme"] == "bearer");
                ensure!(bearer, "it has no bearer scheme");
                Ok(())
            },
        ),
        decision("1", "the OpenAPI document has all ten endpoints", |c| {
            let document = c.anyone().get("/api/openapi.json")?.expect(200)?;
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
                    "no {method} {path}"
                );
            }
            Ok(())
        }),
        decision("1", "/api/docs/ is a page, and needs no key", |c| {
            let page = c.anyone().get("/api/docs/")?;
            page.is(200)?;
            let content_type = page.header("content-type").unwrap_or("");
            ensure!(
                content_type.starts_with("text/html"),
                "it is {content_type}"
            );
            Ok(())
        }),
        decision("1", "/api/docs without its slash is 308", |c| {
            c.anyone().get("/api/docs")?.is(308)
        }),
    ]
}
