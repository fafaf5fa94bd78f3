//! `wharf node check` on nodes that are right and wrong.

use super::context::{IncusContext, pinned};
use crate::lab::node_checks;
use anyhow::Result;

pub fn wrong_nodes(context: &IncusContext) -> Result<()> {
    let right = context.settings_of(&[0], "");
    let (first, second) = (context.member(0), context.member(1));
    let unknown = context.unknown_certificate()?;
    let tls = right.lines().last().unwrap_or_default();
    let server_cert = tls.rsplit('"').nth(1).unwrap_or_default();
    let edit = |from: &str, to: &str| right.replace(from, to);
    let cases = [
        (right.clone(), true, "Incus 6"),
        (right.clone(), true, "volumes, snapshots"),
        (
            edit(&first.endpoint, &second.endpoint),
            false,
            "settings.member",
        ),
        (
            edit(tls, &pinned(&unknown, server_cert.as_ref())),
            false,
            "does not trust",
        ),
        (
            edit("network = \"wharf0\"", "network = \"none0\""),
            false,
            "settings.network",
        ),
        (
            edit("project = \"wharf\"", "project = \"none\""),
            false,
            "project",
        ),
        (edit("gateway = \"10.79.0.1\", ", ""), false, "gateway"),
        (edit("server_cert", "ca"), false, "certificate"),
    ];
    node_checks(&first.name, &cases)
}
