//! `GET /api/instance/`.

use super::{Api, Reply, wire};
use crate::app::{Caller, Topic};
use crate::domain::error::Error;

/// All of the caller's instances.
pub fn run(api: &Api, caller: &Caller) -> Result<Reply, Error> {
    let topic = Topic::Owner(caller.user);
    let read = || wire::list(&api.app.list(caller)?);
    let body = api.answers.answer(&api.app, caller.user, topic, read)?;
    Ok(Reply::Done(body))
}
