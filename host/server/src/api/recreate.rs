//! `POST /api/instance/{uuid}/recreate/`.

use super::snapshots::checked;
use super::{Api, EndpointReply, EndpointRequest, EndpointResult};
use bytes::Bytes;
use wharf_domain::error::Error;
use wharf_domain::ids::BackupId;
use wharf_ground::caller::Caller;
use wharf_instances::{NewDisk, RecreateRequest, Selector};

/// Creates an instance again whose host was lost. Without a body its disk is empty.
pub async fn run(request: EndpointRequest<Selector, Option<Bytes>>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let condition = &request.condition;
    let wanted = match request.body.as_deref().filter(|body| !body.is_empty()) {
        Some(body) => wanted(api, caller, selector, body)?,
        None => RecreateRequest {
            disk: NewDisk::Empty,
            volumes: true,
        },
    };
    let recreated = api.app.recreate(caller, selector, condition, wanted);
    let view = recreated.await?;
    EndpointReply::instance(caller, &view)
}

fn wanted(
    api: &Api,
    caller: &Caller,
    selector: &Selector,
    body: &[u8],
) -> Result<RecreateRequest, Error> {
    let mut read = api.schemas.recreate.check(body)?;
    let disk = read.parse("backup", |text| match text {
        "newest" => Ok(NewDisk::Newest),
        id => {
            let id = BackupId::parse(id).map(NewDisk::Backup);
            id.ok_or_else(|| "this instance has no such backup".to_owned())
        }
    });
    let volumes = !read.given("volumes") || read.is_true("volumes");
    checked(api, caller, selector, read.errors)?;
    Ok(RecreateRequest {
        disk: disk.unwrap_or(NewDisk::Empty),
        volumes,
    })
}
