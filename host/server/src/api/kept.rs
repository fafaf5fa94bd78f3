//! The parts of the endpoints of volumes and snapshots that are alike.

use super::list::{ListPage, page_of};
use super::tag::tag;
use super::{Api, EndpointReply, EndpointResult, Sight, render};
use bytes::Bytes;
use serde::Serialize;
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_domain::kept::Kept;
use wharf_ground::caller::Caller;
use wharf_instances::{Condition, KeptUse};

/// Approximate bytes of a volume or a snapshot.
const BYTES: usize = 512;

/// A kind of kept data in the REST interface.
pub trait KeptWire: KeptUse {
    fn row(view: &Self::View) -> &Kept<Self>;

    /// The body for callers with the scope `read`.
    fn wire(view: &Self::View) -> impl Serialize;
}

/// The body for a caller without the scope `read`, who has changed it.
#[derive(Serialize)]
struct ChangedKept {
    id: uuid::Uuid,
    state: &'static str,
}

/// The part that the scopes of the caller show. It has no password.
pub(super) fn sight(caller: &Caller) -> Sight {
    match Sight::of(caller.scopes) {
        Sight::State => Sight::State,
        Sight::Whole | Sight::WithoutPassword => Sight::WithoutPassword,
    }
}

pub(super) fn body<K: KeptWire>(view: &K::View, sight: Sight) -> Result<Bytes, Error> {
    if sight == Sight::State {
        let row = K::row(view);
        let (id, state): (InstanceId, _) = (row.id.into(), row.status().as_str());
        return render(&ChangedKept { id: id.0, state }, 96);
    }
    render(&K::wire(view), BYTES)
}

/// The answer with one.
pub(super) fn reply<K: KeptWire>(caller: &Caller, view: &K::View) -> EndpointResult {
    let sight = sight(caller);
    Ok(EndpointReply::Instance(body::<K>(view, sight)?, sight))
}

/// The condition that the body has one of these tags.
pub fn condition<K: KeptWire>(tags: Vec<String>) -> Condition<K::View> {
    Condition::new(move |view| {
        for sight in [Sight::WithoutPassword, Sight::State] {
            if tags.contains(&tag(&body::<K>(view, sight)?)) {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

/// The list or a page of it, and the page that follows, if any.
pub(super) fn list<K: KeptWire>(
    page: Option<ListPage>,
    fetch: impl FnOnce(Option<u64>, usize) -> Result<Vec<K::View>, Error>,
) -> Result<(Bytes, Option<ListPage>), Error> {
    let (views, next) = page_of(page, |view| K::row(view).seq, fetch)?;
    let wire: Vec<_> = views.iter().map(K::wire).collect();
    Ok((render(&wire, BYTES * wire.len() + 2)?, next))
}

/// One of them.
pub fn get<K: KeptWire>(api: &Api, caller: &Caller, named: &str) -> EndpointResult {
    reply::<K>(caller, &api.app.kept::<K>(caller, named)?)
}

/// Deletes one with its data.
pub async fn delete<K: KeptWire>(
    api: &Api,
    caller: &Caller,
    named: &str,
    condition: &Condition<K::View>,
) -> EndpointResult {
    api.app.delete_kept::<K>(caller, named, condition).await?;
    Ok(EndpointReply::Gone)
}
