//! `/api/snapshot/`: the caller's snapshots, with restores and clones; and the snapshots of one instance.

use super::kept::KeptWire;
use super::list::ListPage;
use super::wire::{decimal, usd};
use super::{Api, EndpointReply, EndpointRequest, EndpointResult, create, kept, render};
use crate::schema::CheckedBody;
use bytes::Bytes;
use serde::Serialize;
use wharf_domain::draft::Field;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::instance::ResourceType;
use wharf_domain::kept::KeptStatus;
use wharf_domain::name::Name;
use wharf_domain::snapshot::{OfSnapshot, PlanRequest, Snapshot};
use wharf_ground::caller::Caller;
use wharf_instances::plans::PlanView;
use wharf_instances::snapshots::{SnapshotPlans, SnapshotView};
use wharf_instances::{IdempotencyKey, Selector};

#[derive(Serialize)]
struct SnapshotWire<'a> {
    id: uuid::Uuid,
    instance: uuid::Uuid,
    instance_name: &'a str,
    name: &'a str,
    state: &'static str,
    reason: Option<&'static str>,
    progress: Option<&'a str>,
    size_gib: Option<u32>,
    disk_size_gib: u32,
    clonable: bool,
    planned: bool,
    created_at: String,
    ready_at: Option<String>,
    storage_cost_hourly_usd: f64,
}

impl<'a> From<&'a SnapshotView> for SnapshotWire<'a> {
    fn from(view: &'a SnapshotView) -> Self {
        let (snapshot, of) = (&view.snapshot, &view.snapshot.of);
        Self {
            id: snapshot.id.0,
            instance: of.instance.0,
            instance_name: &view.instance_name,
            name: snapshot.name.as_str(),
            state: snapshot.status().as_str(),
            reason: snapshot.reason(),
            progress: view.progress.as_deref().filter(|words| !words.is_empty()),
            size_gib: snapshot.made.then_some(snapshot.size_gib),
            disk_size_gib: of.disk_size_gib,
            clonable: of.clonable && snapshot.status() == KeptStatus::Ready,
            planned: of.planned.is_some(),
            created_at: snapshot.created_at.to_rfc3339(),
            ready_at: of.ready_at.map(|at| at.to_rfc3339()),
            storage_cost_hourly_usd: decimal(snapshot.rate),
        }
    }
}

impl KeptWire for OfSnapshot {
    fn row(view: &SnapshotView) -> &Snapshot {
        &view.snapshot
    }

    fn wire(view: &SnapshotView) -> impl Serialize {
        SnapshotWire::from(view)
    }
}

/// The list or a page of it, and the page that follows, if any.
pub fn list(
    api: &Api,
    caller: &Caller,
    of: Option<&Selector>,
    page: Option<ListPage>,
) -> Result<(Bytes, Option<ListPage>), Error> {
    let fetch = |after, limit| api.app.snapshots(caller, of, after, limit);
    kept::list::<OfSnapshot>(page, fetch)
}

/// A key belongs to the body and the path of its request.
pub(super) fn key_of(key: &str, named: &str, body: &[u8]) -> IdempotencyKey {
    IdempotencyKey::new(key, &[named.as_bytes(), b"\0", body].concat())
}

/// Fails if fields are wrong. They are reported only for an instance that is the caller's.
pub(super) fn checked(
    api: &Api,
    caller: &Caller,
    selector: &Selector,
    errors: FieldErrors,
) -> Result<(), Error> {
    if let Err(errors) = errors.into_result() {
        api.app.get(caller, selector)?;
        return Err(errors.into());
    }
    Ok(())
}

/// Takes a snapshot of an instance. A retry with the idempotency key of an earlier request gets its answer.
pub async fn take(
    api: &Api,
    caller: &Caller,
    instance: &str,
    body: &[u8],
    key: Option<&str>,
) -> EndpointResult {
    let key = key.map(|key| key_of(key, instance, body));
    let take = async {
        let mut read = api.schemas.snapshot.check(body)?;
        let name = read.parse("name", |text| Name::parse(text).map_err(str::to_owned));
        let selector = Selector::parse(instance);
        checked(api, caller, &selector, read.errors)?;
        api.app.take_snapshot(caller, &selector, name, key).await
    };
    let view = create::once::<Snapshot>(api, caller, key, take).await?;
    let sight = kept::sight(caller);
    let body = kept::body::<OfSnapshot>(&view, sight)?;
    Ok(EndpointReply::Created(body, sight))
}

/// Fails if fields are wrong. They are reported only for a snapshot that is the caller's.
fn checked_of(api: &Api, caller: &Caller, named: &str, read: CheckedBody) -> Result<(), Error> {
    if let Err(errors) = read.errors.into_result() {
        api.app.kept::<OfSnapshot>(caller, named)?;
        return Err(errors.into());
    }
    Ok(())
}

/// Restores the instance of a snapshot from it.
pub async fn restore(request: EndpointRequest<String, Bytes>) -> EndpointResult {
    let (api, caller, named) = request.parts();
    let read = api.schemas.restore.check(&request.body)?;
    let first = read.is_true("snapshot_first");
    checked_of(api, caller, named, read)?;
    let view = api.app.restore(caller, named, first).await?;
    EndpointReply::instance(caller, &view)
}

/// Creates an instance from a snapshot.
pub async fn clone(
    api: &Api,
    caller: &Caller,
    named: &str,
    body: &[u8],
    key: Option<&str>,
) -> EndpointResult {
    let key = key.map(|key| key_of(key, named, body));
    create::instance(api, caller, key, || {
        let source = api.app.clone_source(caller, named)?;
        let mut draft = create::draft(api.schemas.clone.check(body)?);
        draft.resource_type = Some(ResourceType::Container);
        draft.flavor = Field::Right(source.of.flavor);
        if matches!(draft.cpu_tier, Field::Absent) {
            draft.cpu_tier = Field::Right(source.cpu_tier);
        }
        let mut request = create::finish(api, draft)?;
        request.source = Some(source.id);
        Ok(request)
    })
    .await
}

#[derive(Serialize)]
struct EstimateWire {
    seconds: u64,
    frozen: bool,
    size_gib: u32,
    storage_cost_hourly_usd: f64,
    hourly_usd: f64,
}

/// The time that a snapshot of an instance will take, and its cost.
pub async fn estimate(request: EndpointRequest<Selector>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let estimate = api.app.estimate_snapshot(caller, selector).await?;
    let rate = i128::from(estimate.rate.0);
    let wire = EstimateWire {
        seconds: estimate.seconds,
        frozen: estimate.frozen,
        size_gib: estimate.size_gib,
        storage_cost_hourly_usd: decimal(estimate.rate),
        hourly_usd: usd(rate.saturating_mul(estimate.size_gib.into())),
    };
    Ok(EndpointReply::Done(render(&wire, 160)?))
}

/// The part of a plan that all kinds have.
#[derive(Serialize)]
pub(super) struct PlanWire {
    #[serde(flatten)]
    request: PlanRequest,
    created_at: String,
    next_at: String,
}

impl<R: AsRef<PlanRequest>> From<&PlanView<R>> for PlanWire {
    fn from(view: &PlanView<R>) -> Self {
        Self {
            request: *view.request.as_ref(),
            created_at: view.created_at.to_rfc3339(),
            next_at: view.next_at.to_rfc3339(),
        }
    }
}

/// The times of a plan that a request has.
pub(super) fn plan_times(read: &CheckedBody) -> Option<PlanRequest> {
    Some(PlanRequest {
        every_h: read.integer("every_h")?,
        keep: read.integer("keep")?,
        keep_days: read.integer("keep_days"),
    })
}

fn plan_reply(view: &PlanView<PlanRequest>) -> EndpointResult {
    Ok(EndpointReply::Done(render(&PlanWire::from(view), 160)?))
}

/// The plan of an instance.
pub fn plan(request: EndpointRequest<Selector>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    plan_reply(&api.app.plan::<SnapshotPlans>(caller, selector)?)
}

/// Sets the plan of an instance.
pub async fn set_plan(request: EndpointRequest<Selector, Bytes>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let read = api.schemas.snapshot_plan.check(&request.body)?;
    let times = plan_times(&read);
    checked(api, caller, selector, read.errors)?;
    let request = times.ok_or_else(|| FieldErrors::one("every_h", "required"))?;
    plan_reply(&api.app.plan_snapshots(caller, selector, request).await?)
}

/// Ends the plan of an instance.
pub async fn end_plan(request: EndpointRequest<Selector>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    api.app.end_plan::<SnapshotPlans>(caller, selector).await?;
    Ok(EndpointReply::Gone)
}
