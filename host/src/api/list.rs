//! `GET /api/instance/`.

use super::{Api, Reply, wire};
use crate::app::Caller;
use crate::domain::error::Error;

/// All of the caller's instances.
pub async fn run(api: &Api, caller: &Caller) -> Result<Reply, Error> {
    let views = api.app.list(caller).await?;
    Ok(Reply::Done(wire::list(&views)?))
}
