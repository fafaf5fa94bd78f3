//! A request before it is sent.

use crate::error::ApiRefusal;
use crate::events::EventStream;
use crate::reply::Reply;
use crate::unreachable::Destination;
use crate::{Client, Error};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::Url;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::time::Duration;

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

    /// The server, and the proxy before it.
    pub(crate) fn server(&self) -> &Destination {
        &self.client.server
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
        let server = &self.client.server;
        let response = self.response().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await;
        let bytes = bytes.map_err(|error| server.unreachable(error))?;
        Reply::new(status, &headers, &bytes, &server.place())
    }

    /// Sends the request, and returns the body of the response.
    pub async fn fetch(self) -> Result<T, Error>
    where
        T: DeserializeOwned,
    {
        self.send().await?.body()
    }

    /// Sends the request, and returns the body of the response as it was received.
    pub async fn bytes(self) -> Result<Vec<u8>, Error> {
        let server = self.client.server.clone();
        let bytes = self.response().await?.bytes().await;
        Ok(bytes.map_err(|error| server.unreachable(error))?.into())
    }

    /// Sends the request for a stream of events (`text/event-stream`).
    pub async fn stream(mut self, after: Option<u64>) -> Result<EventStream, Error> {
        let accept = HeaderValue::from_static("text/event-stream");
        self.headers.insert(ACCEPT, accept);
        if let Some(after) = after {
            self = self.header(HeaderName::from_static("last-event-id"), &after.to_string());
        }
        let server = self.client.server.clone();
        Ok(EventStream::new(self.response().await?, server))
    }

    /// Returns a successful response, or one that changes the protocol. Sends the request again if the
    /// server asks for a pause.
    pub(crate) async fn response(self) -> Result<reqwest::Response, Error> {
        let url = self.url?;
        let Client { http, server, .. } = self.client;
        let mut waited = Duration::ZERO;
        loop {
            let mut request = http.request(self.method.clone(), url.clone());
            request = request.headers(self.headers.clone());
            if let Some(body) = &self.body {
                let json = request.header(CONTENT_TYPE, "application/json");
                request = json.body(body.clone());
            }
            let sent = request.send().await;
            let response = sent.map_err(|error| server.unreachable(error))?;
            let is_ok = response.status().is_success();
            if is_ok || [UPGRADED, NOT_MODIFIED].contains(&response.status().as_u16()) {
                return Ok(response);
            }
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let bytes = response.bytes().await;
            let bytes = bytes.map_err(|error| server.unreachable(error))?;
            let refusal = ApiRefusal::new(status, &headers, &bytes, server.proxy.as_deref());
            let pause = refusal.pause().filter(|_| !server.is_socket());
            let pause = pause.map(|pause| pause.max(SHORTEST_PAUSE));
            match pause.filter(|pause| waited + *pause <= LONGEST_WAIT) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(Error::Refused(Box::new(refusal))),
            }
            waited += pause.unwrap_or_default();
        }
    }
}

/// The time that a request may wait in all because of too many requests. A person would rather know.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The pause if the server names none.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) const UPGRADED: u16 = 101;
const NOT_MODIFIED: u16 = 304;
