//! Compression of answers, where the caller asks for it.

use super::respond::Response;
use flate2::{Compression, write::GzEncoder};
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use std::io::Write;

/// Shorter answers fit into a packet as they are.
const MIN_BYTES: u64 = 1400;

/// Whether `Accept-Encoding` names gzip and does not rule it out.
pub(super) fn accepted(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT_ENCODING).iter().any(|value| {
        value.to_str().unwrap_or_default().split(',').any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let weight = parts.find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")));
            let refused = weight.is_some_and(|q| q.trim().parse() == Ok(0.0_f32));
            name.eq_ignore_ascii_case("gzip") && !refused
        })
    })
}

/// Whether it is a long JSON answer.
pub(super) fn is_worth_it(response: &Response) -> bool {
    let json = HeaderValue::from_static("application/json");
    response.body().size_hint().lower() >= MIN_BYTES
        && response.headers().get(CONTENT_TYPE) == Some(&json)
}

/// Compresses an answer that is worth it, for who has asked for that.
pub(super) async fn compress(asked: bool, response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    parts
        .headers
        .insert(VARY, HeaderValue::from_name(ACCEPT_ENCODING));
    if !asked {
        return Response::from_parts(parts, body);
    }
    let Ok(plain) = body.collect().await;
    let plain = plain.to_bytes();
    // A list can be long: it is compressed beside the tasks that serve other connections.
    let packed = tokio::task::spawn_blocking({
        let plain = plain.clone();
        move || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&plain).and_then(|()| encoder.finish())
        }
    })
    .await;
    match packed {
        Ok(Ok(packed)) => {
            parts
                .headers
                .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            Response::from_parts(parts, Full::new(packed.into()))
        }
        _ => Response::from_parts(parts, Full::new(plain)),
    }
}

#[cfg(test)]
mod tests {
    use super::{accepted, compress, is_worth_it};
    use crate::api::Reply;
    use crate::http::respond;
    use flate2::read::GzDecoder;
    use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};
    use http_body_util::BodyExt;
    use std::io::Read;

    #[test]
    fn asked_for_or_not() {
        for (value, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("br", false),
            ("", false),
            ("x-gzip", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(accepted(&headers), expected, "{value}");
        }
    }

    #[tokio::test]
    async fn long_answers_only() {
        let body = format!("[{}1]", "1,".repeat(5000)).into_bytes();
        let packed = compress(true, respond::reply(Reply::Done(body.clone().into()))).await;
        assert_eq!(packed.headers()["content-encoding"], "gzip");
        let packed = packed.into_body().collect().await.unwrap().to_bytes();
        let mut plain = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
        assert!(plain == body && packed.len() < body.len() / 4);
        let unasked = compress(false, respond::reply(Reply::Done(body.into()))).await;
        assert!(unasked.headers().get("content-encoding").is_none());
        assert_eq!(unasked.headers()["vary"], "accept-encoding");
        assert!(is_worth_it(&respond::reply(Reply::Done(
            vec![b' '; 1400].into()
        ))));
        assert!(!is_worth_it(&respond::reply(Reply::Done(
            vec![b' '; 1399].into()
        ))));
        assert!(!is_worth_it(&respond::document(
            "text/css",
            vec![b' '; 1400].into()
        )));
    }
}
