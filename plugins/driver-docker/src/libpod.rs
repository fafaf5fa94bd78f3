//! Requests to Podman's own interface, for features that its Docker interface lacks.

use crate::context::Context;
use crate::create_body::Update;
use crate::found::Found;
use crate::{names, stats};
use serde_json::{Value, json};
use wharf_guest::{Error, Network};

/// Builds an owner's network: without a name server, and isolated from other networks.
#[must_use]
pub fn network(installation: &str, own_name: &str, network: &Network) -> Value {
    json!({
        "name": names::network(own_name),
        "driver": "bridge",
        "network_interface": names::bridge(own_name),
        "subnets": [{ "subnet": network.subnet, "gateway": network.gateway }],
        "labels": { names::INSTALLATION: installation, names::OWNER: network.id },
        "dns_enabled": false,
        "options": { "isolate": "true" },
    })
}

/// Resizes a running container on a Podman before 5. Podman keeps reporting the size of the
/// creation, and restores it when the container stops.
///
/// # Errors
/// [`Error::Invalid`] if the usage of memory exceeds the new size; then nothing has changed.
pub fn resize(ctx: &Context, found: &Found, limits: &Update) -> Result<(), Error> {
    let memory = stats::sample(ctx, &found.name)?.memory_stats;
    let wanted = limits.memory();
    let is_short = memory.usage > wanted;
    if is_short {
        let needed = stats::needed(ctx, found, &memory)?;
        if needed > wanted {
            return Err(stats::too_little(needed));
        }
    }
    match ctx.api.update_libpod(&found.name, &limits.libpod())? {
        Ok(()) => Ok(()),
        Err(refusal) if refusal.is_no_container() => Err(Error::NotFound),
        Err(refusal) if refusal.is_not_found() => Err(Error::Unsupported(
            "this engine cannot change the size of a container".into(),
        )),
        Err(_) if is_short || wanted < memory.limit => Err(stats::more_in_use()),
        Err(refusal) => Err(refusal.during("changing the size")),
    }
}
