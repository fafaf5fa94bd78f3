//! `GET /api/quota/`.

use super::{EndpointReply, EndpointRequest, EndpointResult, render};
use serde::Serialize;
use std::collections::BTreeMap;

/// One quantity; the limit is null if there is none.
#[derive(Serialize)]
struct QuotaWire {
    used: u64,
    limit: Option<u64>,
}

/// The caller's usage and limits.
pub fn run(request: EndpointRequest) -> EndpointResult {
    let (used, limits) = request.api.app.quota(&request.caller)?;
    let amounts = used.zip(limits, |used, limit| QuotaWire { used, limit });
    let fields: BTreeMap<_, _> = amounts.fields().into_iter().collect();
    Ok(EndpointReply::Done(render(&fields, 320)?))
}
