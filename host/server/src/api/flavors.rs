//! `GET /api/flavor/`.

use super::wire::SizeWire;
use super::{Api, EndpointReply, render};
use serde::Serialize;
use std::collections::BTreeSet;
use wharf_domain::error::Error;
use wharf_domain::flavor::Flavor;
use wharf_instances::App;

#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "mirrors the flavor")]
struct FlavorWire<'a> {
    name: &'a str,
    description: &'a str,
    resource_types: Vec<&'static str>,
    ssh: bool,
    web: bool,
    s3_prefill: bool,
    ai: bool,
    gpu_aware: bool,
    available: bool,
    content: BTreeSet<String>,
    minimum: SizeWire,
}

/// All flavors.
pub fn run(api: &Api) -> Result<EndpointReply, Error> {
    let flavors = api.app.flavors().iter();
    let flavors: Vec<FlavorWire<'_>> = flavors.map(|flavor| wire(flavor, &api.app)).collect();
    Ok(EndpointReply::Done(render(
        &flavors,
        384 * flavors.len() + 2,
    )?))
}

fn wire<'a>(flavor: &'a Flavor, app: &App) -> FlavorWire<'a> {
    let types = flavor.resource_types.iter();
    FlavorWire {
        name: &flavor.name,
        description: &flavor.description,
        resource_types: types.map(|r| r.as_str()).collect(),
        ssh: flavor.ssh,
        web: flavor.web,
        s3_prefill: flavor.s3_prefill,
        ai: flavor.ai,
        gpu_aware: flavor.gpu_aware,
        available: app.is_available(flavor),
        content: app.contents(flavor),
        minimum: flavor.minimum.into(),
    }
}
