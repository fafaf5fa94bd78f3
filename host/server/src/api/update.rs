//! `PATCH /api/instance/{uuid}/`.

use super::{Api, EndpointReply, Sight, wire};
use crate::schema::{Body, Schemas};
use wharf_control::{Caller, Selector};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::name::Name;
use wharf_domain::request::UpdateRequest;

/// Renames, resizes, or both.
pub async fn run(
    api: &Api,
    caller: &Caller,
    selector: &Selector,
    body: &[u8],
) -> Result<EndpointReply, Error> {
    let (request, errors) = read(&api.schemas, body)?;
    let view = api.app.update(caller, selector, request, errors).await?;
    let sight = Sight::of(caller.scopes);
    Ok(EndpointReply::Instance(
        wire::instance(&view, sight)?,
        sight,
    ))
}

/// Reads the fields that are right, and names the others.
pub fn read(schemas: &Schemas, body: &[u8]) -> Result<(UpdateRequest, FieldErrors), FieldErrors> {
    let mut checked = schemas.update.check(Body::parse(body)?);
    let request = UpdateRequest {
        name: checked.parse("name", |text| Name::parse(text).map_err(str::to_owned)),
        n_vcpus: checked.integer("n_vcpus"),
        mem_gib: checked.integer("mem_gib"),
        disk_size_gib: checked.integer("disk_size_gib"),
    };
    Ok((request, checked.errors))
}
