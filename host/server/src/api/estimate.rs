//! `POST /api/estimate/`.

use super::shortage::ShortageWire;
use super::wire::{decimal, usd};
use super::{EndpointReply, EndpointRequest, EndpointResult, create, render};
use bytes::Bytes;
use serde::Serialize;
use wharf_domain::error::Error;

#[derive(Serialize)]
struct EstimateWire<'a> {
    fits: bool,
    shortage: Option<ShortageWire<'a>>,
    hourly_usd: f64,
    stopped_hourly_usd: f64,
    vcpu_cost_hourly_usd: f64,
    ram_cost_hourly_usd: f64,
    storage_cost_hourly_usd: f64,
    gpu_cost_hourly_usd: f64,
}

/// The decision on a create request with this body, and its price.
pub async fn run(request: EndpointRequest<(), Bytes>) -> EndpointResult {
    let (api, caller, ()) = request.parts();
    let request = create::request(api, &request.body)?;
    let estimate = api.app.estimate(caller, request).await?;
    let shortage = match &estimate.shortage {
        Some(Error::Insufficient(shortfall)) => Some(ShortageWire::of_node(shortfall)),
        Some(Error::OverQuota(shortfall)) => Some(ShortageWire::of_quota(shortfall)),
        _ => None,
    };
    let hourly = |nano: u128| i128::try_from(nano).map(usd).map_err(Error::internal);
    let wire = EstimateWire {
        fits: shortage.is_none(),
        shortage,
        hourly_usd: hourly(estimate.hourly)?,
        stopped_hourly_usd: hourly(estimate.stopped_hourly)?,
        vcpu_cost_hourly_usd: decimal(estimate.rates.vcpu),
        ram_cost_hourly_usd: decimal(estimate.rates.mem),
        storage_cost_hourly_usd: decimal(estimate.rates.disk),
        gpu_cost_hourly_usd: decimal(estimate.rates.gpu),
    };
    Ok(EndpointReply::Done(render(&wire, 512)?))
}
