//! `/api/bucket/` and `/api/backup/`: the caller's buckets, the backups in them, and the instances made from these.

use super::snapshots::{PlanWire, key_of, plan_times};
use super::{Api, EndpointReply, EndpointRequest, EndpointResult, create, render};
use crate::schema::CheckedBody;
use bytes::Bytes;
use serde::Serialize;
use uuid::Uuid;
use wharf_backups::{
    BackedUpByPlan, BackupFilter, BackupPlanView, BackupView, BucketView, NewBucket,
};
use wharf_domain::backup::{Backup, BackupOf, BackupTask, BucketAddress, ContentOf};
use wharf_domain::draft::Field;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::BackupId;
use wharf_domain::instance::{Instance, ResourceType};
use wharf_domain::name::Name;
use wharf_domain::secret::SecretText;
use wharf_domain::snapshot::PlanRequest;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::{OfVolume, Volume};
use wharf_ground::caller::Caller;
use wharf_instances::Selector;

/// Approximate bytes of a bucket and of a backup.
const BUCKET_BYTES: usize = 256;
const BACKUP_BYTES: usize = 640;

const NO_BUCKET: &str = "you have no such bucket";

/// A bucket, without its keys.
#[derive(Serialize)]
struct BucketWire<'a> {
    id: Uuid,
    name: &'a str,
    #[serde(flatten)]
    address: &'a BucketAddress,
    n_backups: usize,
    created_at: String,
}

impl<'a> From<&'a BucketView> for BucketWire<'a> {
    fn from(BucketView { bucket, n_backups }: &'a BucketView) -> Self {
        Self {
            id: bucket.id.0,
            name: bucket.name.as_str(),
            address: &bucket.address,
            n_backups: *n_backups,
            created_at: bucket.created_at.to_rfc3339(),
        }
    }
}

#[derive(Serialize)]
struct BackupWire<'a> {
    id: Uuid,
    bucket: Uuid,
    bucket_name: &'a str,
    instance: Option<Uuid>,
    instance_name: Option<&'a str>,
    volume: Option<Uuid>,
    volume_name: Option<&'a str>,
    flavor: Option<&'a str>,
    cpu_tier: &'static str,
    n_vcpus: Option<u32>,
    mem_gib: Option<u32>,
    disk_size_gib: u32,
    state: &'static str,
    progress: Option<&'a str>,
    reason: Option<&'a str>,
    content_bytes: Option<u64>,
    object_bytes: Option<u64>,
    created_at: String,
    done_at: Option<String>,
    verified_at: Option<String>,
    verifying: bool,
    planned: bool,
}

#[derive(Serialize)]
struct BackupPlanWire<'a> {
    bucket: Uuid,
    bucket_name: &'a str,
    #[serde(flatten)]
    plan: PlanWire,
}

impl<'a> From<&'a BackupView> for BackupWire<'a> {
    fn from(view: &'a BackupView) -> Self {
        let Backup { of, work, .. } = &view.backup;
        let stored = view.backup.stored();
        let name = Some(of.name.as_str());
        let (flavor, size, disk_size_gib) = match &of.what {
            BackupOf::Instance { flavor, size, .. } => {
                (Some(flavor.as_str()), Some(size), size.disk_size_gib)
            }
            BackupOf::Volume { size_gib, .. } => (None, None, *size_gib),
        };
        Self {
            id: view.backup.id.0,
            bucket: view.backup.bucket.0,
            bucket_name: &view.bucket_name,
            instance: of.instance().map(|id| id.0),
            instance_name: name.filter(|_| of.instance().is_some()),
            volume: of.volume().map(|id| id.0),
            volume_name: name.filter(|_| of.volume().is_some()),
            flavor,
            cpu_tier: of.cpu_tier.as_str(),
            n_vcpus: size.map(|size| size.n_vcpus),
            mem_gib: size.map(|size| size.mem_gib),
            disk_size_gib,
            state: view.backup.state_word(),
            progress: view.progress.as_deref(),
            reason: view.backup.reason.as_deref(),
            content_bytes: stored.map(|stored| stored.content),
            object_bytes: stored.map(|stored| stored.object),
            created_at: view.backup.created_at.to_rfc3339(),
            done_at: stored.map(|stored| stored.at.to_rfc3339()),
            verified_at: view.backup.verified_at.map(Timestamp::to_rfc3339),
            verifying: work.is_some_and(|work| work.what == BackupTask::Verify),
            planned: view.backup.planned.is_some(),
        }
    }
}

/// The buckets, by name.
pub fn buckets(request: EndpointRequest) -> EndpointResult {
    let buckets = request.api.backups.buckets(&request.caller)?;
    EndpointReply::list(buckets.iter().map(BucketWire::from), BUCKET_BYTES)
}

/// Adds a bucket.
pub async fn add_bucket(request: EndpointRequest<(), Bytes>) -> EndpointResult {
    let (api, caller, ()) = request.parts();
    let mut read = api.schemas.bucket.check(&request.body)?;
    let name = read.parse("name", |text| Name::parse(text).map_err(str::to_owned));
    let text = |field, default: &str| read.text(field).unwrap_or(default).to_owned();
    let secret = |field| SecretText::new(text(field, ""));
    let address = BucketAddress {
        endpoint: text("endpoint", ""),
        region: text("region", "us-east-1"),
        bucket: text("bucket", ""),
        prefix: text("prefix", "wharf"),
    };
    let [access_key_id, secret_access_key, passphrase] =
        ["access_key_id", "secret_access_key", "passphrase"].map(secret);
    read.errors.into_result()?;
    let new = NewBucket {
        name: name.ok_or_else(|| FieldErrors::one("name", "required"))?,
        address,
        access_key_id,
        secret_access_key,
        passphrase,
    };
    let view = api.backups.add_bucket(caller, new).await?;
    let wire = BucketWire::from(&view);
    Ok(EndpointReply::KeyCreated(render(&wire, BUCKET_BYTES)?))
}

/// One bucket.
pub fn bucket(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, named) = request.parts();
    let view = api.backups.bucket(caller, named)?;
    let wire = BucketWire::from(&view);
    Ok(EndpointReply::Done(render(&wire, BUCKET_BYTES)?))
}

/// Forgets a bucket.
pub async fn forget_bucket(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, named) = request.parts();
    api.backups.forget_bucket(caller, named).await?;
    Ok(EndpointReply::Gone)
}

/// An id of another form names no backup.
fn parse(id: &str) -> Result<BackupId, Error> {
    BackupId::parse(id).ok_or(Error::Missing("Backup"))
}

fn rendered(view: &BackupView) -> Result<bytes::Bytes, Error> {
    render(&BackupWire::from(view), BACKUP_BYTES)
}

/// The bucket that a request names. Wrong fields are reported only to a caller who may see what it is about.
fn bucket_of<T>(
    api: &Api,
    caller: &Caller,
    read: CheckedBody,
    see: impl FnOnce() -> Result<T, Error>,
) -> Result<String, Error> {
    let bucket = read.text("bucket").unwrap_or_default().to_owned();
    let mut errors = read.errors;
    if !errors.has("bucket") && api.backups.bucket(caller, &bucket).is_err() {
        errors.add("bucket", NO_BUCKET);
    }
    if let Err(errors) = errors.into_result() {
        see()?;
        return Err(errors.into());
    }
    Ok(bucket)
}

/// Begins a backup of an instance.
pub async fn create(request: EndpointRequest<Selector, Bytes>) -> EndpointResult {
    let (api, caller, instance) = request.parts();
    let read = api.schemas.backup.check(&request.body)?;
    let bucket = bucket_of(api, caller, read, || api.app.get(caller, instance))?;
    let view = api.backups.create(caller, instance, &bucket).await?;
    Ok(EndpointReply::KeyCreated(rendered(&view)?))
}

/// Begins a backup of a volume.
pub async fn create_of_volume(request: EndpointRequest<String, Bytes>) -> EndpointResult {
    let (api, caller, named) = request.parts();
    let read = api.schemas.backup.check(&request.body)?;
    let see = || api.app.kept::<OfVolume>(caller, named);
    let bucket = bucket_of(api, caller, read, see)?;
    let view = api.backups.create_of_volume(caller, named, &bucket).await?;
    Ok(EndpointReply::KeyCreated(rendered(&view)?))
}

fn plan_reply(view: &BackupPlanView) -> EndpointResult {
    let wire = BackupPlanWire {
        bucket: view.plan.request.bucket.0,
        bucket_name: &view.bucket_name,
        plan: PlanWire::from(&view.plan),
    };
    Ok(EndpointReply::Done(render(&wire, BUCKET_BYTES)?))
}

/// The plan of an instance or a volume.
pub fn plan<O: BackedUpByPlan>(request: EndpointRequest<O::Named>) -> EndpointResult {
    let (api, caller, named) = request.parts();
    plan_reply(&api.backups.plan::<O>(caller, named)?)
}

/// Sets the plan of an instance.
pub async fn set_plan(request: EndpointRequest<Selector, Bytes>) -> EndpointResult {
    let (api, caller, instance) = request.parts();
    let read = api.schemas.backup_plan.check(&request.body)?;
    let times = plan_times(&read);
    let bucket = bucket_of(api, caller, read, || api.app.get(caller, instance))?;
    set::<Instance>(api, caller, instance, &bucket, times).await
}

/// Sets the plan of a volume.
pub async fn set_plan_of_volume(request: EndpointRequest<String, Bytes>) -> EndpointResult {
    let (api, caller, named) = request.parts();
    let read = api.schemas.backup_plan.check(&request.body)?;
    let times = plan_times(&read);
    let see = || api.app.kept::<OfVolume>(caller, named);
    let bucket = bucket_of(api, caller, read, see)?;
    // Right after a start, the features of the nodes are not known yet.
    api.app.volume_nodes_seen().await;
    set::<Volume>(api, caller, named, &bucket, times).await
}

async fn set<O: BackedUpByPlan>(
    api: &Api,
    caller: &Caller,
    named: &O::Named,
    bucket: &str,
    times: Option<PlanRequest>,
) -> EndpointResult {
    let times = times.ok_or_else(|| FieldErrors::one("every_h", "required"))?;
    let set = api.backups.set_plan::<O>(caller, named, bucket, times);
    plan_reply(&set.await?)
}

/// Ends the plan of an instance or a volume.
pub async fn end_plan<O: BackedUpByPlan>(request: EndpointRequest<O::Named>) -> EndpointResult {
    let (api, caller, named) = request.parts();
    api.backups.end_plan::<O>(caller, named).await?;
    Ok(EndpointReply::Gone)
}

/// The remains of a lost instance.
#[derive(Serialize)]
struct RemainsWire<'a> {
    backup: Option<BackupWire<'a>>,
    lost_at: Option<String>,
    missing_s: Option<u64>,
    volumes: Vec<ReturningWire<'a>>,
    volumes_lost: &'a [String],
}

/// A volume that comes back with a lost instance.
#[derive(Serialize)]
struct ReturningWire<'a> {
    volume: Uuid,
    name: &'a str,
    path: &'a str,
    read_only: bool,
    backup: Option<BackupWire<'a>>,
    missing_s: Option<u64>,
}

/// Returns the newest backup of a lost instance, and its losses since then.
pub fn remains(request: EndpointRequest<Selector>) -> EndpointResult {
    let (api, caller, instance) = request.parts();
    let remains = api.backups.remains(caller, instance)?;
    let missing = |of: Option<&BackupView>| {
        let (lost, of) = remains.lost_at.zip(of)?;
        Some(lost.millis_since(of.backup.created_at) / 1000)
    };
    let volumes = remains.volumes.iter();
    let volumes = volumes.map(|(mount, newest)| ReturningWire {
        volume: mount.row.id.0,
        name: mount.row.name.as_str(),
        path: mount.path.as_str(),
        read_only: mount.read_only,
        backup: newest.as_ref().map(BackupWire::from),
        missing_s: missing(newest.as_ref()),
    });
    let newest = remains.newest.as_ref();
    let wire = RemainsWire {
        backup: newest.map(BackupWire::from),
        lost_at: remains.lost_at.map(Timestamp::to_rfc3339),
        missing_s: missing(newest),
        volumes: volumes.collect(),
        volumes_lost: &remains.volumes_lost,
    };
    let bytes = BACKUP_BYTES * (1 + wire.volumes.len());
    Ok(EndpointReply::Done(render(&wire, bytes)?))
}

/// The backups that a filter lets pass, the newest first.
pub fn list(api: &Api, caller: &Caller, wanted: &BackupFilter) -> EndpointResult {
    let backups = api.backups.list(caller, wanted)?;
    EndpointReply::list(backups.iter().map(BackupWire::from), BACKUP_BYTES)
}

/// One backup.
pub fn get(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, id) = request.parts();
    let view = api.backups.get(caller, parse(id)?)?;
    Ok(EndpointReply::Done(rendered(&view)?))
}

/// Deletes a backup.
pub async fn delete(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, id) = request.parts();
    api.backups.delete(caller, parse(id)?).await?;
    Ok(EndpointReply::Gone)
}

/// Has the content of a backup read back.
pub async fn verify(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, id) = request.parts();
    let view = api.backups.verify(caller, parse(id)?).await?;
    Ok(EndpointReply::Done(rendered(&view)?))
}

/// Creates an instance from a backup. What the body lacks is as in the backup.
pub async fn restore(
    api: &Api,
    caller: &Caller,
    id: &str,
    body: &[u8],
    key: Option<&str>,
) -> EndpointResult {
    let key = key.map(|key| key_of(key, id, body));
    create::instance(api, caller, key, || {
        let source = api.backups.source(caller, parse(id)?)?;
        let of = source.of;
        let BackupOf::Instance { flavor, size, .. } = of.what else {
            return Err(Error::NotApplicable(
                "this is the backup of a volume: create a volume with `backup`",
            ));
        };
        let mut draft = create::draft(api.schemas.recovery.check(body)?);
        draft.resource_type = Some(ResourceType::Container);
        draft.flavor = Field::Right(flavor);
        draft.n_vcpus.get_or_insert(size.n_vcpus);
        draft.mem_gib.get_or_insert(size.mem_gib);
        let least = size.disk_size_gib;
        if *draft.disk_size_gib.get_or_insert(least) < least {
            let message = format!("must be at least {least}, the disk of the backup");
            draft.errors.add("disk_size_gib", message);
        }
        if matches!(draft.cpu_tier, Field::Absent) {
            draft.cpu_tier = Field::Right(of.cpu_tier);
        }
        let mut request = create::finish(api, draft)?;
        request.content = Some(ContentOf {
            backup: source.id,
            engine_kind: of.engine_kind,
        });
        Ok(request)
    })
    .await
}
