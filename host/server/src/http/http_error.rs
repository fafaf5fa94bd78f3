//! The refusals of requests that no use case saw. Their responses are in [`super::respond`].

use super::rate::RateExceeded;
use http::HeaderName;
use wharf_config::BaseUrl;
use wharf_domain::scope::Scope;

/// A request that is refused before any use case sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpError {
    /// No valid key.
    Unauthorized,
    /// The request needs a valid session.
    SignedOut,
    /// The request may come from a page elsewhere; the URL of the console.
    Origin(BaseUrl),
    /// Nobody can sign in.
    SignInOff,
    /// Browsers know no passkeys at the address of the console.
    NoPasskeys,
    /// The configuration has no provider of OpenID Connect.
    NoProvider,
    /// The key lacks this scope.
    Scope(Scope),
    /// No route has this path.
    UnknownPath,
    /// The route has other methods; the router adds `Allow`.
    Method,
    /// The path lacks its final slash; the path with it.
    Slash(String),
    /// The body is not declared as JSON.
    MediaType,
    /// The body has a content coding.
    ContentCoding,
    /// The body is larger than this number of bytes.
    TooLarge(usize),
    /// The body took too long.
    BodyTimeout,
    /// The body broke off or was garbled.
    BodyBroken,
    /// HTTP/1.1 requires exactly one `Host`.
    Host,
    /// The host is for pages of instances.
    HostOfPages,
    /// A header with entity tags has another form.
    EntityTags(HeaderName),
    /// The `Idempotency-Key` is not valid.
    IdempotencyKey,
    /// The request needs a WebSocket.
    NoUpgrade,
    /// A rate is exceeded.
    TooManyRequests(RateExceeded),
    /// The user has reached the limit on event streams.
    TooManyStreams(usize),
    /// Too many requests are running, or too much is unsent.
    Busy,
    /// The service does not accept requests now.
    NotReady,
}
