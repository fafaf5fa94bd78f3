//! `POST /api/instance/{uuid}/attach-volume/` and `POST /api/instance/{uuid}/detach-volume/`.

use super::{Api, EndpointReply, EndpointRequest, EndpointResult, Sight, wire};
use crate::schema::CheckedBody;
use bytes::Bytes;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::volume::{MountPath, MountRequest};
use wharf_ground::caller::Caller;
use wharf_instances::Selector;

/// Attaches a volume to an instance.
pub async fn attach(request: EndpointRequest<Selector, Bytes>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let condition = &request.condition;
    let mut checked = api.schemas.volume_mount.check(&request.body)?;
    let path = checked.parse("path", |text| MountPath::parse(text).map_err(str::to_owned));
    let read_only = checked
        .value("read_only")
        .and_then(serde_json::Value::as_bool);
    let volume = volume(api, caller, selector, checked)?;
    let path = path.ok_or_else(|| FieldErrors::one("path", "required"))?;
    let request = MountRequest {
        volume,
        path,
        read_only,
    };
    let attached = api.app.attach_volume(caller, selector, condition, request);
    let (view, message) = attached.await?;
    let sight = Sight::of(caller.scopes);
    Ok(EndpointReply::Done(wire::volumes(&view, sight, message)?))
}

/// Detaches a volume from an instance.
pub async fn detach(request: EndpointRequest<Selector, Bytes>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let condition = &request.condition;
    let checked = api.schemas.volume_detachment.check(&request.body)?;
    let volume = volume(api, caller, selector, checked)?;
    let detached = api.app.detach_volume(caller, selector, condition, volume);
    let (view, message) = detached.await?;
    let sight = Sight::of(caller.scopes);
    Ok(EndpointReply::Done(wire::volumes(&view, sight, message)?))
}

/// The volume of a request. Wrong fields are reported only for an instance that is the caller's.
fn volume(
    api: &Api,
    caller: &Caller,
    selector: &Selector,
    checked: CheckedBody,
) -> Result<String, Error> {
    let volume = checked.text("volume").map(str::to_owned);
    if let Err(errors) = checked.errors.into_result() {
        api.app.get(caller, selector)?;
        return Err(errors.into());
    }
    Ok(volume.ok_or_else(|| FieldErrors::one("volume", "required"))?)
}
