//! What add-port and remove-port share: reading the port.

use super::Api;
use crate::app::{Caller, Selector};
use crate::domain::error::{Error, FieldErrors};
use crate::schema::Body;

/// The port of a request. A wrong one is reported only for an instance that is the caller's.
pub(super) async fn port(
    api: &Api,
    caller: &Caller,
    selector: &Selector,
    body: &[u8],
) -> Result<u16, Error> {
    let checked = api.schemas.port.check(Body::parse(body)?);
    match checked
        .integer("port")
        .and_then(|port| u16::try_from(port).ok())
    {
        Some(port) if checked.errors.0.is_empty() => Ok(port),
        _ => {
            api.app.get(caller, selector).await?;
            let mut errors = checked.errors;
            if errors.0.is_empty() {
                errors = FieldErrors::one("port", "must be between 1 and 65535");
            }
            Err(errors.into())
        }
    }
}
