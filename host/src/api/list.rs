//! `GET /api/instance/`.

use super::{Api, Reply, wire};
use crate::app::Caller;
use crate::domain::error::Error;

/// All of the caller's instances.
pub fn run(api: &Api, caller: &Caller) -> Result<Reply, Error> {
    let body = api
        .lists
        .body(caller.user, |known| match api.app.list(caller, known)? {
            Some((version, instances)) => Ok(Some((version, wire::list(&instances)?))),
            None => Ok(None),
        })?;
    Ok(Reply::Done(body))
}
