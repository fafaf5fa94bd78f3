//! `PATCH /api/instance/{uuid}/`.

use super::{EndpointReply, EndpointRequest, EndpointResult};
use crate::schema::Schemas;
use bytes::Bytes;
use wharf_domain::error::FieldErrors;
use wharf_domain::name::Name;
use wharf_domain::request::UpdateRequest;
use wharf_instances::Selector;

/// Renames, resizes, or both.
pub async fn run(request: EndpointRequest<Selector, Bytes>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let condition = &request.condition;
    let (request, errors) = read(&api.schemas, &request.body)?;
    let updated = api.app.update(caller, selector, condition, request, errors);
    let view = updated.await?;
    EndpointReply::instance(caller, &view)
}

/// Reads the fields that are right, and names the others.
pub fn read(schemas: &Schemas, body: &[u8]) -> Result<(UpdateRequest, FieldErrors), FieldErrors> {
    let mut checked = schemas.update.check(body)?;
    let request = UpdateRequest {
        name: checked.parse("name", |text| Name::parse(text).map_err(str::to_owned)),
        n_vcpus: checked.integer("n_vcpus"),
        mem_gib: checked.integer("mem_gib"),
        disk_size_gib: checked.integer("disk_size_gib"),
    };
    Ok((request, checked.errors))
}
