//! The machine-readable description and the explorer on top of it. Everything is in the program:
//! nothing is fetched from elsewhere.

use super::respond::{self, Refusal, Response};
use crate::domain::flavor::Flavor;
use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderValue, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use serde_json::{Value, json};
use std::io::Read;
use std::sync::OnceLock;

const DOCUMENT: &str = include_str!("../../../schemas/generated/openapi.json");

/// Only what this server sends may run or be shown; the explorer sets styles in its elements.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const PAGE: &[u8] = include_bytes!("../../assets/swagger-ui/index.html");

/// A file of the explorer.
struct File {
    name: &'static str,
    content_type: &'static str,
    gzipped: bool,
    content: &'static [u8],
}

/// The files for those who do not take gzip; made when first asked for.
static PLAIN: [OnceLock<Bytes>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];

const FILES: &[File] = &[
    File {
        name: "swagger-ui-bundle.js",
        content_type: "text/javascript; charset=utf-8",
        gzipped: true,
        content: include_bytes!("../../assets/swagger-ui/swagger-ui-bundle.js.gz"),
    },
    File {
        name: "swagger-ui.css",
        content_type: "text/css; charset=utf-8",
        gzipped: true,
        content: include_bytes!("../../assets/swagger-ui/swagger-ui.css.gz"),
    },
    File {
        name: "start.js",
        content_type: "text/javascript; charset=utf-8",
        gzipped: false,
        content: include_bytes!("../../assets/swagger-ui/start.js"),
    },
    File {
        name: "favicon-32x32.png",
        content_type: "image/png",
        gzipped: false,
        content: include_bytes!("../../assets/swagger-ui/favicon-32x32.png"),
    },
];

/// The description of this installation.
#[derive(Debug)]
pub(super) struct Docs {
    document: Bytes,
}

impl Docs {
    /// Completes the document with what only the installation knows: its flavors and GPU models.
    pub(super) fn new(
        flavors: &[std::sync::Arc<Flavor>],
        gpu_models: &[String],
    ) -> Result<Self, serde_json::Error> {
        let mut document: Value = serde_json::from_str(DOCUMENT)?;
        let flavors = flavors.iter().map(|flavor| flavor.name.as_str());
        offer(&mut document, "flavor", flavors);
        offer(
            &mut document,
            "gpu_model",
            gpu_models.iter().map(String::as_str),
        );
        Ok(Self {
            document: serde_json::to_vec(&document)?.into(),
        })
    }

    pub(super) fn document(&self) -> Response {
        respond::document("application/json", self.document.clone())
    }

    pub(super) fn page() -> Response {
        page("text/html; charset=utf-8", Bytes::from_static(PAGE))
    }

    pub(super) fn file(name: &str, headers: &http::HeaderMap) -> Result<Response, Refusal> {
        let (file, plain) = FILES
            .iter()
            .zip(&PLAIN)
            .find(|(file, _)| file.name == name)
            .ok_or(Refusal::UnknownPath)?;
        let content = Bytes::from_static(file.content);
        if !file.gzipped {
            return Ok(page(file.content_type, content));
        }
        let mut response = if super::gzip::accepted(headers) {
            let mut response = page(file.content_type, content);
            let headers = response.headers_mut();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        } else {
            let plain = plain.get_or_init(|| {
                let mut plain = Vec::new();
                // What was compressed at build time is whole; a short read would show in the tests.
                let _ = GzDecoder::new(file.content).read_to_end(&mut plain);
                plain.into()
            });
            page(file.content_type, plain.clone())
        };
        let vary = HeaderValue::from_name(ACCEPT_ENCODING);
        response.headers_mut().insert(VARY, vary);
        Ok(response)
    }
}

fn offer<'a>(document: &mut Value, field: &str, names: impl Iterator<Item = &'a str>) {
    let path = format!("/components/schemas/CreateRequest/properties/{field}");
    if let Some(property) = document.pointer_mut(&path).and_then(Value::as_object_mut) {
        let names: Vec<Value> = names.map(|n| json!(n)).chain([Value::Null]).collect();
        property.insert("enum".to_owned(), Value::Array(names));
        property.remove("examples");
    }
}

fn page(content_type: &'static str, content: Bytes) -> Response {
    let mut response = respond::document(content_type, content);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[cfg(test)]
mod tests {
    use super::{Docs, FILES, PAGE};
    use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn the_page_has_its_files_compressed_or_not() {
        let page = std::str::from_utf8(PAGE).unwrap();
        let mut gzip = HeaderMap::new();
        gzip.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, br"));
        for file in FILES {
            assert!(
                page.contains(&format!("\"{}\"", file.name)),
                "{}",
                file.name
            );
            let packed = Docs::file(file.name, &gzip).unwrap();
            assert_eq!(
                packed.headers().contains_key("content-encoding"),
                file.gzipped
            );
            let plain = Docs::file(file.name, &HeaderMap::new()).unwrap();
            assert!(!plain.headers().contains_key("content-encoding"));
            let packed = packed.into_body().collect().await.unwrap().to_bytes();
            let plain = plain.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(packed.len() < plain.len(), file.gzipped);
            if file.name.ends_with("bundle.js") {
                assert!(plain.len() > 1_000_000);
            }
        }
        assert!(Docs::file("index.html", &gzip).is_err());
    }

    #[tokio::test]
    async fn the_document_knows_this_installation() {
        let docs = Docs::new(&[], &["H100".to_owned()]).unwrap();
        let body = docs
            .document()
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes();
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let properties = &document["components"]["schemas"]["CreateRequest"]["properties"];
        assert_eq!(
            properties["gpu_model"]["enum"],
            serde_json::json!(["H100", null])
        );
        assert!(!body.windows(5).any(|w| w == b"\n    "));
    }
}
