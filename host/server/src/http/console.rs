//! The web console: one page for all of its addresses, and the files that the page loads.

use super::asset::{Asset, Rules};
use super::extract::NoBody;
use super::interface::Interface;
use super::respond::{HttpError, Response};
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::routing::{MethodRouter, get};
use http::HeaderMap;
use rust_embed::Embed;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

#[derive(Embed)]
#[folder = "../console/dist"]
struct Dist;

/// Everything comes from this server, and nothing is inline.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'; object-src 'none'";
const PAGE: Rules = Rules {
    policy: POLICY,
    cache: "no-cache",
};
/// The terminal sets styles in its elements.
const TERMINAL: Rules = Rules {
    policy: "default-src 'self'; style-src 'self' 'unsafe-inline'; base-uri 'none'; \
             form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    ..PAGE
};
/// The name of each file has a digest of its content.
const FILE: Rules = Rules {
    policy: POLICY,
    cache: "public, max-age=31536000, immutable",
};

/// The addresses that show the console.
const PAGES: [&str; 19] = [
    "/",
    "/sign-in",
    "/invite",
    "/device",
    "/page",
    "/instances",
    "/instances/new",
    "/instances/{name}",
    "/volumes",
    "/volumes/{name}",
    "/usage",
    "/events",
    "/settings/keys",
    "/settings/ssh-keys",
    "/settings/account",
    "/settings/webhooks",
    "/settings/buckets",
    "/settings/buckets/{name}",
    "/audit",
];
/// The address of the terminal of an instance.
const TERMINAL_PAGE: &str = "/instances/{name}/terminal";
/// The address of the page's files.
const FILES: &str = "/assets/{file}";

static ASSETS: LazyLock<HashMap<Cow<'static, str>, Asset>> = LazyLock::new(|| {
    let all = Dist::iter();
    all.filter_map(|path| Some((path.clone(), asset(&path)?)))
        .collect()
});

fn asset(path: &str) -> Option<Asset> {
    // In a release build, the content is part of the program.
    let content = match Dist::get(path)?.data {
        Cow::Borrowed(content) => content,
        Cow::Owned(content) => content.leak(),
    };
    Some(match path.rsplit('.').next()? {
        "html" => Asset::plain("text/html; charset=utf-8", content),
        "js" => Asset::plain("text/javascript; charset=utf-8", content),
        "css" => Asset::plain("text/css; charset=utf-8", content),
        "svg" => Asset::plain("image/svg+xml", content),
        _ => Asset::incompressible("application/octet-stream", content),
    })
}

/// The path templates of the console.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    PAGES.into_iter().chain([TERMINAL_PAGE, FILES])
}

/// The routes of the console, which are not part of the REST interface.
pub(super) fn routes() -> impl Iterator<Item = (&'static str, MethodRouter<Arc<Interface>>)> {
    let pages = PAGES.map(|path| (path, get(page)));
    pages
        .into_iter()
        .chain([(TERMINAL_PAGE, get(terminal)), (FILES, get(file))])
}

async fn page(headers: HeaderMap, _: NoBody) -> Result<Response, HttpError> {
    respond("index.html", &headers, &PAGE)
}

async fn terminal(headers: HeaderMap, _: NoBody) -> Result<Response, HttpError> {
    respond("index.html", &headers, &TERMINAL)
}

async fn file(
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    _: NoBody,
) -> Result<Response, HttpError> {
    let Path(name) = name.map_err(|_| HttpError::UnknownPath)?;
    respond(&format!("assets/{name}"), &headers, &FILE)
}

fn respond(path: &str, headers: &HeaderMap, rules: &Rules) -> Result<Response, HttpError> {
    let asset = ASSETS.get(path).ok_or(HttpError::UnknownPath)?;
    Ok(asset.respond(headers, rules))
}

#[cfg(test)]
mod tests {
    use super::{ASSETS, PAGE, respond};
    use flate2::read::GzDecoder;
    use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
    use http::{HeaderMap, HeaderValue};
    use http_body_util::BodyExt;
    use std::io::Read;

    #[tokio::test]
    async fn every_file_of_the_page_is_embedded_in_both_forms() {
        let gzip = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]);
        for path in ASSETS.keys() {
            let plain = respond(path, &HeaderMap::new(), &PAGE).unwrap();
            assert!(!plain.headers().contains_key(CONTENT_ENCODING), "{path}");
            let packed = respond(path, &gzip, &PAGE).unwrap();
            assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip", "{path}");
            let plain = plain.into_body().collect().await.unwrap().to_bytes();
            let packed = packed.into_body().collect().await.unwrap().to_bytes();
            let mut unpacked = Vec::new();
            GzDecoder::new(&packed[..])
                .read_to_end(&mut unpacked)
                .unwrap();
            assert_eq!(plain, unpacked, "{path}");
        }
        let page = respond("index.html", &HeaderMap::new(), &PAGE).unwrap();
        let page = page.into_body().collect().await.unwrap().to_bytes();
        let page = String::from_utf8(page.into()).unwrap();
        let files = page.split("/assets/").skip(1);
        let files: Vec<&str> = files.filter_map(|rest| rest.split('"').next()).collect();
        assert!(files.len() >= 3, "{page}");
        for file in files {
            assert!(ASSETS.contains_key(&*format!("assets/{file}")), "{file}");
        }
    }
}
