//! The OpenAPI document and its explorer. All files are embedded: nothing is fetched from elsewhere.

use super::compress::{self, accepts_gzip};
use super::respond::{self, HttpError, Response};
use super::unsent::Static;
use bytes::Bytes;
use flate2::read::GzDecoder;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use serde_json::{Value, json};
use std::io::Read;
use std::sync::OnceLock;
use wharf_domain::flavor::Flavor;

const DOCUMENT: &str = include_str!("../../../../schemas/generated/openapi.json");

/// Allows scripts and images of this server only; the explorer sets styles in its elements.
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

/// The files for clients that do not accept gzip, decompressed at first use.
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

/// The OpenAPI document of this installation.
#[derive(Debug)]
pub(super) struct Docs {
    document: Bytes,
    gzipped: Bytes,
}

impl Docs {
    /// Completes the document with the flavors and GPU models of the installation.
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
        let document = serde_json::to_vec(&document)?;
        Ok(Self {
            // Once, since anyone may request it.
            gzipped: compress::gzip(&document),
            document: document.into(),
        })
    }

    pub(super) fn document(&self, request: &HeaderMap) -> Response {
        let gzip = accepts_gzip(request);
        let content = if gzip { &self.gzipped } else { &self.document };
        let mut response = respond::document("application/json", content.clone());
        response.extensions_mut().insert(Static);
        compress::declare(response.headers_mut(), gzip);
        response
    }

    pub(super) fn page() -> Response {
        page("text/html; charset=utf-8", Bytes::from_static(PAGE))
    }

    pub(super) fn file(name: &str, request: &HeaderMap) -> Result<Response, HttpError> {
        let (file, plain) = FILES
            .iter()
            .zip(&PLAIN)
            .find(|(file, _)| file.name == name)
            .ok_or(HttpError::UnknownPath)?;
        let content = Bytes::from_static(file.content);
        if !file.gzipped {
            return Ok(page(file.content_type, content));
        }
        let gzip = accepts_gzip(request);
        let content = match gzip {
            true => content,
            false => plain
                .get_or_init(|| {
                    let mut plain = Vec::new();
                    // The embedded file is whole; a short read would show in the tests.
                    let _ = GzDecoder::new(file.content).read_to_end(&mut plain);
                    plain.into()
                })
                .clone(),
        };
        let mut response = page(file.content_type, content);
        compress::declare(response.headers_mut(), gzip);
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
    response.extensions_mut().insert(Static);
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
            .document(&HeaderMap::new())
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
        let gzip = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]);
        let gzipped = docs.document(&gzip).into_body().collect().await.unwrap();
        let mut plain = Vec::new();
        std::io::Read::read_to_end(
            &mut super::GzDecoder::new(&gzipped.to_bytes()[..]),
            &mut plain,
        )
        .unwrap();
        assert_eq!(plain, body);
    }
}
