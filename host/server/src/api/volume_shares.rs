//! `/api/volume/{id}/share/`: the readers of a volume.

use super::{Api, EndpointReply, render};
use crate::schema::Body;
use serde::Serialize;
use wharf_domain::email;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::scope::Scope;
use wharf_domain::volume::OfVolume;
use wharf_ground::caller::Caller;
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
pub fn list(api: &Api, caller: &Caller, named: &str) -> Result<EndpointReply, Error> {
    let shares = api.app.volume_shares(caller, named)?.into_iter();
    let shares: Vec<VolumeShareWire> = shares.map(VolumeShareWire::from).collect();
    let bytes = SHARE_BYTES * shares.len() + 2;
    Ok(EndpointReply::Done(render(&shares, bytes)?))
}

/// Shares a volume with a user.
pub async fn create(
    api: &Api,
    caller: &Caller,
    named: &str,
    body: &[u8],
) -> Result<EndpointReply, Error> {
    let mut checked = api.schemas.volume_share.check(Body::parse(body)?);
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
pub async fn delete(
    api: &Api,
    caller: &Caller,
    named: &str,
    id: &str,
) -> Result<EndpointReply, Error> {
    let number = u64::from_str_radix(id, 16);
    let number = number.ok().filter(|number| format!("{number:016x}") == id);
    api.app.unshare_volume(caller, named, number).await?;
    Ok(EndpointReply::Gone)
}
