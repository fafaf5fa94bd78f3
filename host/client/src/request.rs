//! A request before it is sent.

use crate::error::Refusal;
use crate::events::EventStream;
use crate::reply::Reply;
use crate::{Client, Error};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::Url;
use serde::Serialize;
use std::marker::PhantomData;

/// A request, whose response has a body of the type `T`.
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request<'c, T> {
    client: &'c Client,
    method: Method,
    url: Result<Url, Error>,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    answer: PhantomData<fn() -> T>,
}

impl<'c, T> Request<'c, T> {
    pub(crate) fn new(client: &'c Client, method: Method, url: Result<Url, Error>) -> Self {
        Self {
            client,
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            answer: PhantomData,
        }
    }

    /// Adds a parameter to the query, if it has a value.
    pub fn query(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let (Ok(url), Some(value)) = (&mut self.url, value) {
            url.query_pairs_mut().append_pair(name, &value.to_string());
        }
        self
    }

    /// Sets the body.
    pub fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.body = Some(bytes),
            Err(error) => self.url = Err(Error::Setup(error.into())),
        }
        self
    }

    /// Makes the change only if the instance still has this `ETag`.
    pub fn if_match(self, etag: &str) -> Self {
        self.header(IF_MATCH, etag)
    }

    /// Asks for nothing if the representation still has this `ETag`.
    pub fn if_none_match(self, etag: &str) -> Self {
        self.header(IF_NONE_MATCH, etag)
    }

    /// Makes retries of a creation safe: a retry with this key gets the first answer.
    pub fn idempotency_key(self, key: &str) -> Self {
        self.header(HeaderName::from_static("idempotency-key"), key)
    }

    /// Sets a header.
    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => drop(self.headers.insert(name, value)),
            Err(error) => self.url = Err(Error::Setup(error.into())),
        }
        self
    }

    /// Sends the request.
    pub async fn send(self) -> Result<Reply<T>, Error> {
        let response = self.response().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.map_err(Error::unreachable)?;
        Reply::new(status, &headers, &bytes)
    }

    /// Sends the request for a stream of events (`text/event-stream`).
    pub async fn stream(mut self, after: Option<u64>) -> Result<EventStream, Error> {
        let accept = HeaderValue::from_static("text/event-stream");
        self.headers.insert(ACCEPT, accept);
        if let Some(after) = after {
            self = self.header(HeaderName::from_static("last-event-id"), &after.to_string());
        }
        Ok(EventStream::new(self.response().await?))
    }

    /// Returns a successful response, or one that changes the protocol.
    pub(crate) async fn response(self) -> Result<reqwest::Response, Error> {
        let mut request = self.client.http.request(self.method, self.url?);
        request = request.headers(self.headers);
        if let Some(body) = self.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let response = request.send().await.map_err(Error::unreachable)?;
        let is_ok = response.status().is_success();
        if is_ok || [UPGRADED, NOT_MODIFIED].contains(&response.status().as_u16()) {
            return Ok(response);
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.map_err(Error::unreachable)?;
        Err(Error::Refused(Box::new(Refusal::new(
            status, &headers, &bytes,
        ))))
    }
}

pub(crate) const UPGRADED: u16 = 101;
const NOT_MODIFIED: u16 = 304;
