//! The headers `If-Match` and `If-None-Match` of a request. On a request that changes an instance,
//! `If-Match` is decided within the write.

use super::entity_tags::{Conditions, Tags, read};
use super::respond::HttpError;
use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, HeaderName, header};

impl<S: Send + Sync> FromRequestParts<S> for Conditions {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        Ok(Self {
            if_match: if_match(&parts.headers)?,
            if_none_match: tags(&parts.headers, header::IF_NONE_MATCH)?,
        })
    }
}

/// The tags of `If-Match`, if it is there.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Option<Tags>, HttpError> {
    tags(headers, header::IF_MATCH)
}

fn tags(headers: &HeaderMap, name: HeaderName) -> Result<Option<Tags>, HttpError> {
    read(headers, &name).map_err(|_| HttpError::EntityTags(name))
}
