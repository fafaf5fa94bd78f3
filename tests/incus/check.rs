//! `wharf node check` on nodes that are right and wrong, and `wharf images`.

use super::context::{IncusContext, pinned};
use crate::lab::node_checks;
use anyhow::{Result, ensure};
use serde_json::Value;
use wharf_testkit::images::recipes;

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

/// The members of a cluster share their images. The certificate of a node has a right to those of its project alone.
pub fn images(context: &IncusContext) -> Result<()> {
    let server = context.server(&[0, 1])?;
    let recipes = recipes();
    let directory = format!("--recipes={}", recipes.directory.display());
    let cache = format!("--cache={}", recipes.cache.display());
    let images = |action: &[&str]| -> Result<Value> {
        let all = [&["images", "--output=json", &directory, &cache], action].concat();
        Ok(serde_json::from_str(&server.cli(&all)?)?)
    };
    let of = |rows: &Value, image: &str| -> Vec<Value> {
        let rows = rows.as_array().into_iter().flatten();
        rows.filter(|row| row["image"] == image).cloned().collect()
    };
    let shown = images(&[])?;
    let base = of(&shown, "base");
    ensure!(base.len() == 1 && base[0]["state"] == "current", "{shown}");
    ensure!(of(&shown, "marimo")[0]["state"] == "missing", "{shown}");
    let built = images(&["build", "base"])?;
    ensure!(of(&built, "base")[0]["is_new"] == false, "{built}");
    let error = images(&["build", "marimo"]).expect_err("it is built on another image");
    ensure!(error.to_string().contains("--builder"), "{error}");
    server.finish()
}
