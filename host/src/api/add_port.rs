//! `POST /api/instance/{uuid}/add-port/`.

use super::{Api, Reply, ports, wire};
use crate::app::{Caller, Selector};
use crate::domain::error::Error;

/// Opens a port of a VM.
pub async fn run(
    api: &Api,
    caller: &Caller,
    selector: &Selector,
    body: &[u8],
) -> Result<Reply, Error> {
    let port = ports::port(api, caller, selector, body).await?;
    let view = api.app.add_port(caller, selector, port).await?;
    Ok(Reply::Done(wire::ports(
        &view,
        format!("Port {port} is open."),
    )?))
}
