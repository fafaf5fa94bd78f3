//! `credentials`: the operator's credentials for a registry, which the host adds to a request. A file, a driver and a
//! review know no more than the name of the registry.

use super::argument::Form;
use super::fault::Fault;
use super::file::{Document, RequestDeclaration};
use super::lint;
use super::values::CallValues;
use http::Method;
use serde::Deserialize;
use wharf_domain::image::Registry;

/// The beginning of the headers that bring credentials to an engine.
const HEADERS: &str = "x-registry-";

/// The registry whose credentials a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestCredentials {
    /// That of `{image}`.
    Image,
}

/// Whether a header is the host's own. A file that could write it could send credentials of its own choice.
pub fn is_header(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with(HEADERS)
}

/// Checks a request with credentials, whose calls have `{image}`.
pub fn check(document: &Document, request: &RequestDeclaration) -> Result<(), String> {
    if !request.job || request.method != Method::POST {
        return Err("credentials: for a POST with `job = true`".to_owned());
    }
    if !lint::names(document, request).contains("image") {
        return Err("credentials: the request must have {image}".to_owned());
    }
    // A driver could name a registry of its own choice, and the engine would send it the credentials.
    let is_free = |form: &Form| matches!(form, Form::Pattern(_));
    if request
        .arguments
        .values()
        .any(|argument| is_free(&argument.form))
    {
        return Err("credentials: no argument may be free text".to_owned());
    }
    Ok(())
}

impl RequestCredentials {
    /// The registry whose credentials the request gets in this call. A flavor of an installed plugin gets none: it
    /// could name any image of the operator's.
    pub fn registry(self, values: CallValues<'_>) -> Result<Option<Registry>, Fault> {
        let Self::Image = self;
        if !values.has_trusted_image()? {
            return Ok(None);
        }
        let image = values.get("image")?;
        Ok(image.as_str().map(Registry::of))
    }
}
