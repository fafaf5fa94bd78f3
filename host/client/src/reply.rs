//! A successful response.

use crate::Error;
use http::HeaderMap;
use http::header::{ETAG, LINK};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::marker::PhantomData;

/// A successful response with a body of the type `T`.
#[derive(Clone)]
pub struct Reply<T> {
    status: u16,
    value: Value,
    /// The server, and the proxy before it.
    place: String,
    request_id: Option<String>,
    etag: Option<String>,
    next: Option<String>,
    body: PhantomData<fn() -> T>,
}

impl<T> Reply<T> {
    pub(crate) fn new(
        status: u16,
        headers: &HeaderMap,
        bytes: &[u8],
        place: &str,
    ) -> Result<Self, Error> {
        let request_id = header(headers, REQUEST_ID);
        let value = match bytes {
            [] => Value::Null,
            bytes => serde_json::from_slice(bytes).map_err(|source| Error::Answer {
                place: place.to_owned(),
                source,
                request_id: request_id.clone(),
            })?,
        };
        Ok(Self {
            status,
            value,
            place: place.to_owned(),
            request_id,
            etag: header(headers, ETAG.as_str()),
            next: header(headers, LINK.as_str()).and_then(|link| next(&link)),
            body: PhantomData,
        })
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The id of the request in the server's log.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The `ETag` for [`crate::Request::if_match`].
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// The path of the next page, for [`crate::Client::request`].
    pub fn next(&self) -> Option<&str> {
        self.next.as_deref()
    }

    /// The body as it was received, with fields that this client does not know; null if there was none.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

impl<T: DeserializeOwned> Reply<T> {
    /// The body.
    pub fn body(&self) -> Result<T, Error> {
        T::deserialize(&self.value).map_err(|source| Error::Answer {
            place: self.place.clone(),
            source,
            request_id: self.request_id.clone(),
        })
    }
}

impl<T> std::fmt::Debug for Reply<T> {
    /// Leaves the body out, because it may have secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

pub(crate) const REQUEST_ID: &str = "x-request-id";

pub(crate) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

/// The path and query of the link `<URL>; rel="next"`.
fn next(link: &str) -> Option<String> {
    let (url, relation) = link.strip_prefix('<')?.split_once('>')?;
    if !relation.contains("rel=\"next\"") {
        return None;
    }
    let url: http::Uri = url.parse().ok()?;
    Some(url.path_and_query()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn the_link_of_the_next_page_is_a_path() {
        for url in [
            "/api/audit/?after=7&limit=2",
            "http://a:1/api/audit/?after=7&limit=2",
        ] {
            let link = format!("<{url}>; rel=\"next\"");
            assert_eq!(next(&link).as_deref(), Some("/api/audit/?after=7&limit=2"));
        }
        assert_eq!(next("</api/audit/>; rel=\"prev\""), None);
    }
}
