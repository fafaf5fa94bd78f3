//! `GET /api/offer/`.

use super::wire::{SizeWire, decimal};
use super::{EndpointReply, EndpointRequest, EndpointResult, render};
use serde::Serialize;

#[derive(Serialize)]
struct OfferWire {
    cpu_tiers: Vec<Tier>,
    gpu_models: Vec<GpuModel>,
    largest_free: Vec<Free>,
}

#[derive(Serialize)]
struct Tier {
    name: &'static str,
    vcpu_cost_hourly_usd: f64,
    ram_cost_hourly_usd: f64,
    storage_cost_hourly_usd: f64,
}

#[derive(Serialize)]
struct GpuModel {
    name: String,
    gpu_cost_hourly_usd: f64,
}

#[derive(Serialize)]
struct Free {
    cpu_tier: &'static str,
    resource_type: &'static str,
    #[serde(flatten)]
    size: SizeWire,
}

/// Rates, GPU models and free capacity.
pub fn run(request: EndpointRequest) -> EndpointResult {
    let offer = request.api.app.offer(&request.caller);
    let tiers = offer.cpu_tiers.into_iter().map(|(tier, rates)| Tier {
        name: tier.as_str(),
        vcpu_cost_hourly_usd: decimal(rates.vcpu),
        ram_cost_hourly_usd: decimal(rates.mem),
        storage_cost_hourly_usd: decimal(rates.disk),
    });
    let models = offer.gpu_models.into_iter().map(|(name, rate)| GpuModel {
        name,
        gpu_cost_hourly_usd: decimal(rate),
    });
    let free = offer.largest_free.into_iter();
    let free = free.map(|(cpu_tier, resource_type, size)| Free {
        cpu_tier: cpu_tier.as_str(),
        resource_type: resource_type.as_str(),
        size: size.into(),
    });
    let wire = OfferWire {
        cpu_tiers: tiers.collect(),
        gpu_models: models.collect(),
        largest_free: free.collect(),
    };
    Ok(EndpointReply::Done(render(&wire, 1024)?))
}
