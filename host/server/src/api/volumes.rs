//! `/api/volume/`: the caller's volumes, and those that others share with the caller.

use super::kept::KeptWire;
use super::list::ListPage;
use super::wire::decimal;
use super::{Api, EndpointReply, EndpointResult, create, kept};
use crate::schema::CheckedBody;
use bytes::Bytes;
use serde::Serialize;
use wharf_domain::backup::{BackupOf, ContentOf};
use wharf_domain::capacity::CpuTier;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::BackupId;
use wharf_domain::name::Name;
use wharf_domain::volume::{OfVolume, Volume, VolumeRequest};
use wharf_ground::caller::Caller;
use wharf_instances::IdempotencyKey;
use wharf_instances::volumes::{Attachment, CreateVolume, VolumeCondition, VolumeView};

#[derive(Serialize)]
struct VolumeWire<'a> {
    id: uuid::Uuid,
    name: &'a str,
    size_gib: u32,
    state: &'static str,
    reason: Option<&'static str>,
    cpu_tier: &'static str,
    owner_email: &'a str,
    shared: bool,
    attached_to: Vec<AttachmentWire<'a>>,
    created_at: String,
    storage_cost_hourly_usd: f64,
}

#[derive(Serialize)]
struct AttachmentWire<'a> {
    instance: Option<uuid::Uuid>,
    name: Option<&'a str>,
    owner_email: &'a str,
    path: Option<&'a str>,
    read_only: bool,
}

impl<'a> From<&'a Attachment> for AttachmentWire<'a> {
    fn from(attachment: &'a Attachment) -> Self {
        let own = attachment.own.as_ref();
        Self {
            instance: own.map(|(id, ..)| id.0),
            name: own.map(|(_, name, _)| name.as_str()),
            owner_email: &attachment.owner_email,
            path: own.map(|(.., path)| path.as_str()),
            read_only: attachment.read_only,
        }
    }
}

impl<'a> From<&'a VolumeView> for VolumeWire<'a> {
    fn from(view: &'a VolumeView) -> Self {
        let volume = &view.volume;
        Self {
            id: volume.id.0,
            name: volume.name.as_str(),
            size_gib: volume.size_gib,
            state: volume.status().as_str(),
            reason: volume.reason(),
            cpu_tier: volume.cpu_tier.as_str(),
            owner_email: &view.owner_email,
            shared: view.shared,
            attached_to: view.attached_to.iter().map(AttachmentWire::from).collect(),
            created_at: volume.created_at.to_rfc3339(),
            storage_cost_hourly_usd: decimal(volume.rate),
        }
    }
}

impl KeptWire for OfVolume {
    fn row(view: &VolumeView) -> &Volume {
        &view.volume
    }

    fn wire(view: &VolumeView) -> impl Serialize {
        VolumeWire::from(view)
    }
}

/// The list or a page of it, and the page that follows, if any.
pub fn list(
    api: &Api,
    caller: &Caller,
    page: Option<ListPage>,
) -> Result<(Bytes, Option<ListPage>), Error> {
    kept::list::<OfVolume>(page, |after, limit| api.app.volumes(caller, after, limit))
}

/// Creates a volume. A retry with the idempotency key of an earlier request gets its answer.
pub async fn create(api: &Api, caller: &Caller, body: &[u8], key: Option<&str>) -> EndpointResult {
    let key = key.map(|key| IdempotencyKey::new(key, body));
    let create = async {
        let request = request(api, caller, api.schemas.volume.check(body)?)?;
        let create = CreateVolume { request, key };
        api.app.create_volume(caller, create).await
    };
    let view = create::once::<Volume>(api, caller, key, create).await?;
    let sight = kept::sight(caller);
    let body = kept::body::<OfVolume>(&view, sight)?;
    Ok(EndpointReply::Created(body, sight))
}

fn request(
    api: &Api,
    caller: &Caller,
    mut checked: CheckedBody,
) -> Result<VolumeRequest, FieldErrors> {
    let name = name(&mut checked);
    let tier = checked.text("cpu_tier").and_then(|text| {
        let mut all = CpuTier::ALL.into_iter();
        all.find(|tier| tier.as_str() == text)
    });
    let size = checked.integer("size_gib");
    let source = checked.text("backup").map(str::to_owned);
    let source = source.map(|id| source_of(api, caller, &id));
    let source =
        source.and_then(|found| found.map_err(|why| checked.errors.add("backup", why)).ok());
    if let Some((least, _)) = source.as_ref().map(|(size_gib, of)| (*size_gib, of))
        && size.is_some_and(|size| size < least)
    {
        let message = format!("must be at least {least}, the size of the backup");
        checked.errors.add("size_gib", message);
    }
    checked.errors.into_result()?;
    let required = |field: &str| FieldErrors::one(field, "required");
    Ok(VolumeRequest {
        name: name.ok_or_else(|| required("name"))?,
        size_gib: size.ok_or_else(|| required("size_gib"))?,
        cpu_tier: tier.unwrap_or(CpuTier::GeneralPurpose),
        content: source.map(|(_, content)| content),
    })
}

/// The size and the content of one of the caller's backups of volumes. The error is for the field.
fn source_of(api: &Api, caller: &Caller, id: &str) -> Result<(u32, ContentOf), &'static str> {
    const NONE: &str = "you have no such backup that is done";
    let id = BackupId::parse(id).ok_or(NONE)?;
    let backup = api.backups.source(caller, id).map_err(|_| NONE)?;
    match backup.of.what {
        BackupOf::Volume { size_gib, .. } => Ok((
            size_gib,
            ContentOf {
                backup: id,
                engine_kind: backup.of.engine_kind,
            },
        )),
        BackupOf::Instance { .. } => Err("is a backup of an instance: create an instance from it"),
    }
}

fn name(checked: &mut CheckedBody) -> Option<Name> {
    checked.parse("name", |text| Name::parse(text).map_err(str::to_owned))
}

/// Renames a volume.
pub async fn update(
    api: &Api,
    caller: &Caller,
    named: &str,
    condition: &VolumeCondition,
    body: &[u8],
) -> EndpointResult {
    let mut checked = api.schemas.volume_update.check(body)?;
    let name = name(&mut checked);
    if let Err(errors) = checked.errors.into_result() {
        // Wrong fields are reported only for a volume that the caller sees.
        api.app.kept::<OfVolume>(caller, named)?;
        return Err(errors.into());
    }
    let renamed = api.app.rename_volume(caller, named, condition, name);
    kept::reply::<OfVolume>(caller, &renamed.await?)
}
