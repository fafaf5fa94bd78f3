//! `/api/volume/{id}/share/`: the readers of a volume.

use super::{EndpointReply, EndpointRequest, EndpointResult, render};
use bytes::Bytes;
use serde::Serialize;
use wharf_domain::email;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::scope::Scope;
use wharf_domain::volume::OfVolume;
use wharf_instances::volumes::VolumeShare;

/// Approximate bytes of a share.
const SHARE_BYTES: usize = 128;

#[derive(Serialize)]
struct VolumeShareWire {
    id: String,
    user: String,
    created_at: String,
}

/// A share for a caller without the scope `read`, which has made it.
#[derive(Serialize)]
struct ChangedVolumeShare {
    id: String,
}

fn id(share: &VolumeShare) -> String {
    format!("{:016x}", share.id)
}

impl From<VolumeShare> for VolumeShareWire {
    fn from(share: VolumeShare) -> Self {
        Self {
            id: id(&share),
            user: share.user,
            created_at: share.created_at.to_rfc3339(),
        }
    }
}

/// The shares in the order of their creation.
pub fn list(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, named) = request.parts();
    let shares = api.app.volume_shares(caller, named)?.into_iter();
    EndpointReply::list(shares.map(VolumeShareWire::from), SHARE_BYTES)
}

/// Shares a volume with a user.
pub async fn create(request: EndpointRequest<String, Bytes>) -> EndpointResult {
    let (api, caller, named) = request.parts();
    let mut checked = api.schemas.volume_share.check(&request.body)?;
    let user = checked.parse("user", |text| email::canonical(text).map_err(str::to_owned));
    if let Err(errors) = checked.errors.into_result() {
        // Wrong fields are reported only to the owner.
        if api.app.kept::<OfVolume>(caller, named)?.shared {
            return Err(Error::Missing("Volume"));
        }
        return Err(errors.into());
    }
    let user = user.ok_or_else(|| FieldErrors::one("user", "required"))?;
    let share = api.app.share_volume(caller, named, user).await?;
    let body = if caller.scopes.has(Scope::Read) {
        render(&VolumeShareWire::from(share), SHARE_BYTES)?
    } else {
        render(&ChangedVolumeShare { id: id(&share) }, 32)?
    };
    Ok(EndpointReply::KeyCreated(body))
}

/// Ends a share. An id of another form names none.
pub async fn delete(request: EndpointRequest<(String, String)>) -> EndpointResult {
    let (api, caller, (named, id)) = request.parts();
    let number = u64::from_str_radix(id, 16);
    let number = number.ok().filter(|number| format!("{number:016x}") == *id);
    api.app.unshare_volume(caller, named, number).await?;
    Ok(EndpointReply::Gone)
}
