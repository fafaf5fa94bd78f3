//! `wharf node check` where the operator's part is missing or wrong.

use super::context::OvnContext;
use crate::lab::node_checks;
use anyhow::Result;

pub fn wrong_nodes(context: &OvnContext) -> Result<()> {
    let right = context.settings_of(&[1]);
    let edit = |from: &str, to: &str| right.replace(from, to);
    let cases = [
        (right.clone(), true, "Incus 6"),
        (
            edit("uplink = \"up0\"", "uplink = \"up1\""),
            false,
            "settings.uplink",
        ),
        (
            edit("acl = \"wharf\"", "acl = \"none\""),
            false,
            "no network ACL",
        ),
        (edit("acl = \"wharf\", ", ""), false, "settings.acl"),
        (
            edit("198.18.40.128/26", "198.18.41.0/24"),
            false,
            "settings.publish_cidr",
        ),
        (
            edit("project = \"ovnlab\"", "project = \"default\""),
            false,
            "project",
        ),
        (
            edit("dns = \"9.9.9.9\"", "dns = \"\""),
            false,
            "settings.dns",
        ),
    ];
    node_checks("m1", &cases)
}
