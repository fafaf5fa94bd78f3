//! `/api/volume/`: the caller's volumes, and those that others share with the caller.

use super::list::{ListPage, page_of};
use super::tag::tag;
use super::wire::decimal;
use super::{Api, EndpointReply, Sight, render};
use crate::schema::{Body, CheckedBody};
use bytes::Bytes;
use serde::Serialize;
use wharf_domain::capacity::CpuTier;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::name::Name;
use wharf_domain::volume::VolumeRequest;
use wharf_ground::caller::Caller;
use wharf_instances::IdempotencyKey;
use wharf_instances::volumes::{Attachment, CreateVolume, VolumeCondition, VolumeView};

/// Approximate bytes of a volume.
const VOLUME_BYTES: usize = 512;

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

/// A volume for a caller without the scope `read`, which has changed it.
#[derive(Serialize)]
struct ChangedVolume {
    id: uuid::Uuid,
    state: &'static str,
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

/// The part of a volume or a snapshot that these scopes show. It has no password.
pub(super) fn sight(caller: &Caller) -> Sight {
    match Sight::of(caller.scopes) {
        Sight::State => Sight::State,
        Sight::Whole | Sight::WithoutPassword => Sight::WithoutPassword,
    }
}

fn volume(view: &VolumeView, sight: Sight) -> Result<Bytes, Error> {
    if sight == Sight::State {
        let (id, state) = (view.volume.id.0, view.volume.status().as_str());
        return render(&ChangedVolume { id, state }, 96);
    }
    render(&VolumeWire::from(view), VOLUME_BYTES)
}

/// The condition that the body of a volume has one of these tags.
pub fn condition(tags: Vec<String>) -> VolumeCondition {
    VolumeCondition::new(move |view| {
        for sight in [Sight::WithoutPassword, Sight::State] {
            if tags.contains(&tag(&volume(view, sight)?)) {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

/// The list or a page of it, and the page that follows, if any.
pub fn list(
    api: &Api,
    caller: &Caller,
    page: Option<ListPage>,
) -> Result<(Bytes, Option<ListPage>), Error> {
    let (views, next) = page_of(
        page,
        |view: &VolumeView| view.volume.seq,
        |after, limit| api.app.volumes(caller, after, limit),
    )?;
    let wire: Vec<_> = views.iter().map(VolumeWire::from).collect();
    Ok((render(&wire, VOLUME_BYTES * wire.len() + 2)?, next))
}

/// One volume.
pub fn get(api: &Api, caller: &Caller, named: &str) -> Result<EndpointReply, Error> {
    let view = api.app.volume(caller, named)?;
    let sight = sight(caller);
    Ok(EndpointReply::Instance(volume(&view, sight)?, sight))
}

/// Creates a volume. A retry with the idempotency key of an earlier request gets its answer.
pub async fn create(
    api: &Api,
    caller: &Caller,
    body: &[u8],
    key: Option<&str>,
) -> Result<EndpointReply, Error> {
    let key = key.map(|key| IdempotencyKey::new(key, body));
    let sight = sight(caller);
    let held = key.map(|key| api.app.hold_key(caller, &key)).transpose()?;
    if let Some(key) = &key
        && let Some(earlier) = api.app.volume_created_earlier(caller, key)?
    {
        return Ok(EndpointReply::Created(volume(&earlier, sight)?, sight));
    }
    let request = request(api.schemas.volume.check(Body::parse(body)?))?;
    let view = api.app.create_volume(caller, CreateVolume { request, key });
    let view = view.await?;
    drop(held);
    Ok(EndpointReply::Created(volume(&view, sight)?, sight))
}

fn request(mut checked: CheckedBody) -> Result<VolumeRequest, FieldErrors> {
    let name = name(&mut checked);
    let tier = checked.text("cpu_tier").and_then(|text| {
        let mut all = CpuTier::ALL.into_iter();
        all.find(|tier| tier.as_str() == text)
    });
    let size = checked.integer("size_gib");
    checked.errors.into_result()?;
    let required = |field: &str| FieldErrors::one(field, "required");
    Ok(VolumeRequest {
        name: name.ok_or_else(|| required("name"))?,
        size_gib: size.ok_or_else(|| required("size_gib"))?,
        cpu_tier: tier.unwrap_or(CpuTier::GeneralPurpose),
    })
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
) -> Result<EndpointReply, Error> {
    let mut checked = api.schemas.volume_update.check(Body::parse(body)?);
    let name = name(&mut checked);
    if let Err(errors) = checked.errors.into_result() {
        // Wrong fields are reported only for a volume that the caller sees.
        api.app.volume(caller, named)?;
        return Err(errors.into());
    }
    let renamed = api.app.rename_volume(caller, named, condition, name);
    let view = renamed.await?;
    let sight = sight(caller);
    Ok(EndpointReply::Instance(volume(&view, sight)?, sight))
}

/// Deletes a volume with its data.
pub async fn delete(
    api: &Api,
    caller: &Caller,
    named: &str,
    condition: &VolumeCondition,
) -> Result<EndpointReply, Error> {
    api.app.delete_volume(caller, named, condition).await?;
    Ok(EndpointReply::Gone)
}
