//! `GET /api/quota/`.

use super::{Api, EndpointReply, render};
use serde::Serialize;
use std::collections::BTreeMap;
use wharf_domain::error::Error;
use wharf_ground::caller::Caller;

/// One quantity; the limit is null if there is none.
#[derive(Serialize)]
struct QuotaWire {
    used: u64,
    limit: Option<u64>,
}

/// The caller's usage and limits.
pub fn run(api: &Api, caller: &Caller) -> Result<EndpointReply, Error> {
    let (used, limits) = api.app.quota(caller)?;
    let amounts = used.zip(limits, |used, limit| QuotaWire { used, limit });
    let fields: BTreeMap<_, _> = amounts.fields().into_iter().collect();
    Ok(EndpointReply::Done(render(&fields, 320)?))
}
