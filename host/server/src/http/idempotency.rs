//! The header `Idempotency-Key`.

use super::respond::HttpError;
use axum::extract::FromRequestParts;
use http::HeaderName;
use http::request::Parts;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest key accepted.
const MAX_LENGTH: usize = 128;

/// The idempotency key of a request, if it has one.
pub(super) struct IdempotencyHeader(pub(super) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyHeader {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        let mut values = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else {
            return Ok(Self(None));
        };
        let right = (1..=MAX_LENGTH).contains(&value.len())
            && value.as_bytes().iter().all(u8::is_ascii_graphic)
            && values.next().is_none();
        match value.to_str() {
            Ok(key) if right => Ok(Self(Some(key.to_owned()))),
            _ => Err(HttpError::IdempotencyKey),
        }
    }
}
