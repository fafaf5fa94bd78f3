//! `GET /api/instance/{uuid}/`.

use super::{Api, Reply, wire};
use crate::app::{Caller, Selector, Topic};
use crate::domain::error::Error;

/// One instance.
pub fn run(api: &Api, caller: &Caller, selector: &Selector) -> Result<Reply, Error> {
    let Selector::Id(id) = selector else {
        let view = api.app.get(caller, selector)?;
        return Ok(Reply::Done(wire::instance(&view)?));
    };
    let topic = Topic::Instance(*id);
    let read = || wire::instance(&api.app.get(caller, selector)?);
    let body = api.answers.answer(&api.app, caller.user, topic, read)?;
    Ok(Reply::Done(body))
}
