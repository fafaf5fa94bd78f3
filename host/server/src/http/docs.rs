//! The OpenAPI document and its explorer. All files are embedded: nothing is fetched from elsewhere.

use super::asset::{Asset, Rules};
use super::compress::{self, accepts_gzip};
use super::respond::{self, HttpError, Response};
use super::unsent::Static;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
use wharf_client::DOCUMENT;
use wharf_domain::flavor::Flavor;

/// Allows scripts and images of this server only; the explorer sets styles in its elements.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const RULES: Rules = Rules {
    policy: POLICY,
    cache: "no-cache",
};

static PAGE: Asset = Asset::plain(
    "text/html; charset=utf-8",
    include_bytes!("../../assets/swagger-ui/index.html"),
);

/// The files of the explorer, by name.
static FILES: [(&str, Asset); 4] = [
    (
        "swagger-ui-bundle.js",
        Asset::gzipped(
            "text/javascript; charset=utf-8",
            include_bytes!("../../assets/swagger-ui/swagger-ui-bundle.js.gz"),
        ),
    ),
    (
        "swagger-ui.css",
        Asset::gzipped(
            "text/css; charset=utf-8",
            include_bytes!("../../assets/swagger-ui/swagger-ui.css.gz"),
        ),
    ),
    (
        "start.js",
        Asset::plain(
            "text/javascript; charset=utf-8",
            include_bytes!("../../assets/swagger-ui/start.js"),
        ),
    ),
    (
        "favicon-32x32.png",
        Asset::incompressible(
            "image/png",
            include_bytes!("../../assets/swagger-ui/favicon-32x32.png"),
        ),
    ),
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

    pub(super) fn page(request: &HeaderMap) -> Response {
        PAGE.respond(request, &RULES)
    }

    pub(super) fn file(name: &str, request: &HeaderMap) -> Result<Response, HttpError> {
        let file = FILES.iter().find(|(known, _)| *known == name);
        let (_, asset) = file.ok_or(HttpError::UnknownPath)?;
        Ok(asset.respond(request, &RULES))
    }
}

fn offer<'a>(document: &mut Value, field: &str, names: impl Iterator<Item = &'a str>) {
    let names: Vec<Value> = names.map(|n| json!(n)).chain([Value::Null]).collect();
    for request in ["CreateRequest", "CloneRequest"] {
        let path = format!("/components/schemas/{request}/properties/{field}");
        if let Some(property) = document.pointer_mut(&path).and_then(Value::as_object_mut) {
            property.insert("enum".to_owned(), Value::Array(names.clone()));
            property.remove("examples");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Docs, FILES};
    use flate2::read::GzDecoder;
    use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn the_page_has_its_files_compressed_or_not() {
        let page = Docs::page(&HeaderMap::new()).into_body();
        let page = page.collect().await.unwrap().to_bytes();
        let page = std::str::from_utf8(&page).unwrap();
        let mut gzip = HeaderMap::new();
        gzip.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, br"));
        for (name, _) in &FILES {
            assert!(page.contains(&format!("\"{name}\"")), "{name}");
            let packed = Docs::file(name, &gzip).unwrap();
            let is_packed = packed.headers().contains_key("content-encoding");
            assert_eq!(is_packed, !name.ends_with(".png"), "{name}");
            let plain = Docs::file(name, &HeaderMap::new()).unwrap();
            assert!(!plain.headers().contains_key("content-encoding"));
            let packed = packed.into_body().collect().await.unwrap().to_bytes();
            let plain = plain.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(packed.len() < plain.len(), is_packed, "{name}");
            if name.ends_with("bundle.js") {
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
        std::io::Read::read_to_end(&mut GzDecoder::new(&gzipped.to_bytes()[..]), &mut plain)
            .unwrap();
        assert_eq!(plain, body);
    }
}
