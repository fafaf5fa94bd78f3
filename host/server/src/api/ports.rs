//! `POST /api/instance/{uuid}/add-port/` and `POST /api/instance/{uuid}/remove-port/`.

use super::{Api, EndpointReply, EndpointRequest, EndpointResult, Sight, wire};
use crate::schema::Schemas;
use bytes::Bytes;
use wharf_domain::error::{Error, FieldErrors};
use wharf_ground::caller::Caller;
use wharf_instances::Selector;

/// Opens a port of a VM.
pub async fn add(request: EndpointRequest<Selector, Bytes>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let condition = &request.condition;
    let port = asked(api, caller, selector, &request.body).await?;
    let view = api.app.add_port(caller, selector, condition, port).await?;
    let sight = Sight::of(caller.scopes);
    let body = wire::ports(&view, sight, format!("Port {port} is open."))?;
    Ok(EndpointReply::Done(body))
}

/// Closes a port of a VM.
pub async fn remove(request: EndpointRequest<Selector, Bytes>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let condition = &request.condition;
    let port = asked(api, caller, selector, &request.body).await?;
    let view = api
        .app
        .remove_port(caller, selector, condition, port)
        .await?;
    let sight = Sight::of(caller.scopes);
    let body = wire::ports(&view, sight, format!("Port {port} is closed."))?;
    Ok(EndpointReply::Done(body))
}

/// The port of a request. A wrong one is reported only for an instance that is the caller's.
async fn asked(api: &Api, caller: &Caller, selector: &Selector, body: &[u8]) -> Result<u16, Error> {
    match read(&api.schemas, body)? {
        Ok(port) => Ok(port),
        Err(errors) => {
            api.app.get(caller, selector)?;
            Err(errors.into())
        }
    }
}

/// Reads the port. The outer error is that of a body that cannot be read at all.
pub fn read(schemas: &Schemas, body: &[u8]) -> Result<Result<u16, FieldErrors>, FieldErrors> {
    let checked = schemas.port.check(body)?;
    if !checked.errors.0.is_empty() {
        return Ok(Err(checked.errors));
    }
    let port = checked.integer("port").map(u16::try_from);
    Ok(match port {
        Some(Ok(port)) => Ok(port),
        _ => Err(FieldErrors::one("port", "must be between 1 and 65535")),
    })
}
