//! Failures.

use crate::Unreachable;
use crate::generated::types::Shortage;
use crate::reply::{REQUEST_ID, header};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The reason why a request has no successful response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused the request.
    #[error("{0}")]
    Refused(Box<ApiRefusal>),
    /// The server cannot be reached, or the connection broke. A change may have been made.
    #[error("{0}")]
    Unreachable(Box<Unreachable>),
    /// The server did not answer in time. A change may have been made.
    #[error("{} did not answer in time", .0.place())]
    TimedOut(Box<Unreachable>),
    /// The connection of a terminal is lost.
    #[error("the connection is lost")]
    Disconnected(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The response has a form that this client does not understand.
    #[error("the response of {place} is not from Wharf, or from an incompatible version")]
    Answer {
        /// The server, and the proxy before it.
        place: String,
        /// The error of the parser.
        source: serde_json::Error,
        /// The id of the request in the server's log.
        request_id: Option<String>,
    },
    /// The URL of the server is not valid.
    #[error("{0:?} is not the URL of a server; it must be like https://wharf.example.org")]
    Url(String),
    /// The path of a request is not valid.
    #[error("{0:?} is not a path of the server; it must be like /api/instance/")]
    Path(String),
    /// A name or an id in a path is not valid.
    #[error("{0:?} is not a name or an id")]
    Name(String),
    /// The API key is not valid.
    #[error("the API key must be printable ASCII")]
    Key,
    /// The request could not be built.
    #[error("the request cannot be sent")]
    Setup(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// The refusal of the server, if it is one.
    pub fn refusal(&self) -> Option<&ApiRefusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// A response that refuses a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApiRefusal {
    /// The HTTP status.
    pub status: u16,
    /// The reason, if the request is refused as a whole.
    pub detail: Option<String>,
    /// Messages by the name of the field. `non_field_errors` has those of the body as a whole.
    pub fields: BTreeMap<String, Vec<String>>,
    /// The resources that are missing.
    pub shortage: Option<Shortage>,
    /// The time to wait before a retry.
    pub retry_after: Option<Duration>,
    /// The id of the request in the server's log.
    pub request_id: Option<String>,
    /// The proxy that answered in place of the server, as far as its response shows.
    pub proxy: Option<String>,
    /// The place that the server redirects to.
    pub location: Option<String>,
    /// The body as it was received; null if it is not JSON.
    pub body: Value,
}

impl ApiRefusal {
    pub(crate) fn new(status: u16, headers: &HeaderMap, bytes: &[u8], proxy: Option<&str>) -> Self {
        let request_id = header(headers, REQUEST_ID);
        let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let detail = body.get("detail").cloned().unwrap_or_default();
        let seconds = header(headers, "retry-after").and_then(|text| text.parse().ok());
        Self {
            status,
            detail: detail.as_str().map(str::to_owned),
            shortage: Shortage::deserialize(&detail).ok(),
            fields: BTreeMap::deserialize(&body).unwrap_or_default(),
            retry_after: seconds.map(Duration::from_secs),
            // Wharf gives each of its responses an id.
            proxy: proxy.filter(|_| request_id.is_none()).map(str::to_owned),
            request_id,
            location: header(headers, "location"),
            body,
        }
    }

    /// The pause that the server asks for. The request had no effect, so it can be sent again.
    pub(crate) fn pause(&self) -> Option<Duration> {
        self.retry_after.filter(|_| self.status == 429)
    }
}

impl fmt::Display for ApiRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(shortage) = &self.shortage {
            return f.write_str(&shortage.message);
        }
        if let Some(detail) = &self.detail {
            return f.write_str(detail);
        }
        if let Some(proxy) = &self.proxy {
            return write!(
                f,
                "the proxy {proxy} of the environment answered with status {}",
                self.status
            );
        }
        if self.fields.is_empty() {
            return write!(f, "the server answered with status {}", self.status);
        }
        let lines = self.fields.iter().map(|(field, messages)| {
            let messages = messages.join("; ");
            match field.as_str() {
                "non_field_errors" => messages,
                field => format!("{field}: {messages}"),
            }
        });
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::ApiRefusal;
    use http::HeaderMap;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn refusal(status: u16, body: &Value) -> ApiRefusal {
        let mut headers = HeaderMap::new();
        headers.insert("x-request-id", "r1".parse().unwrap());
        headers.insert("retry-after", "3".parse().unwrap());
        ApiRefusal::new(status, &headers, body.to_string().as_bytes(), None)
    }

    #[test]
    fn a_refusal_carries_all_that_the_server_said() {
        let fields = refusal(
            400,
            &json!({ "n_vcpus": ["must be 1"], "name": ["a", "b"] }),
        );
        assert_eq!(fields.to_string(), "n_vcpus: must be 1\nname: a; b");
        assert_eq!(fields.request_id.as_deref(), Some("r1"));
        assert_eq!(fields.retry_after, Some(Duration::from_secs(3)));
        let detail = refusal(404, &json!({ "detail": "Instance not found." }));
        assert_eq!(detail.to_string(), "Instance not found.");
        assert!(detail.fields.is_empty() && detail.shortage.is_none());
        let short = refusal(
            422,
            &json!({ "detail": { "message": "not enough", "bottleneck": ["mem_gib"],
            "requested": { "mem_gib": 9 }, "nearest_available": { "mem_gib": 4 } } }),
        );
        assert_eq!(short.to_string(), "not enough");
        assert_eq!(short.shortage.unwrap().nearest_available["mem_gib"], 4);
        let page = |proxy| ApiRefusal::new(502, &HeaderMap::new(), b"<html>", proxy).to_string();
        assert_eq!(page(None), "the server answered with status 502");
        let of_proxy = page(Some("http://proxy:3128"));
        assert!(
            of_proxy.starts_with("the proxy http://proxy:3128 "),
            "{of_proxy}"
        );
    }
}
