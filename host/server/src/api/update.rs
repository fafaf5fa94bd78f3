//! `PATCH /api/instance/{uuid}/`.

use super::{Api, EndpointReply, Sight, wire};
use crate::schema::{Body, Schemas};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::name::Name;
use wharf_domain::request::UpdateRequest;
use wharf_ground::caller::Caller;
use wharf_instances::{InstanceCondition, Selector};

/// Renames, resizes, or both.
pub async fn run(
    api: &Api,
    caller: &Caller,
    selector: &Selector,
    condition: &InstanceCondition,
    body: &[u8],
) -> Result<EndpointReply, Error> {
    let (request, errors) = read(&api.schemas, body)?;
    let updated = api.app.update(caller, selector, condition, request, errors);
    let view = updated.await?;
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
